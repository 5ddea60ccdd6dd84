//! The prefetch pass: the part of a program up to its first keyed operation, to run ahead over a burst.
//!
//! A packet's state is mostly not in the cache. So each burst is passed three times: a prefetch pass runs the
//! program's own steps up to the first operation with a key, keeps the key with its token and
//! prefetches the first line; then each entry is prefetched; then the program goes on from there
//! (see [`super::resume`]).
//!
//! Why it may. The prefetch pass is a slice of the same steps and stops
//! before anything with an effect, or that reads what another packet's run may write; it only reads
//! the packet, the context, constants and settings, and writes its own stack. Nothing in between
//! writes those, so the program, run anew, would come to the same operation with the same key. A
//! packet's bytes are not always ours alone (a shared ring can be written by who filled it): then what
//! the prefetch pass read and checked is what holds, since key, token and everything else that the rest needs
//! were kept. Where they could not be, the program runs anew, compares its key with the prefetch pass's and
//! takes the token only if they are equal; a token is a function of object, shape and key alone. The
//! prefetch pass's loads and stores are as safe as the program's: each is reached through the same checks, made
//! by the prefetch pass itself.

use std::collections::BTreeMap;

use millrace_check::facts::{Access, ArgFact, Op, Step, StepId};
use millrace_object::Program;
use millrace_object::helper;
use millrace_object::insn::Insn;
use millrace_object::program::ObjectId;

use super::forms::is_pure;
use super::objects::offers;
use super::slice::{Role, Slice};

/// A prefetch pass and what it can find.
pub struct PrefetchPass<'a> {
    /// its steps
    pub slice: Slice<'a>,
    /// where it ends with a token: numbers from 1
    pub sites: BTreeMap<StepId, u32>,
    /// the object of each site, by number less 1
    pub objects: Vec<ObjectId>,
}

/// The two prefetch passes of a program that comes to a call on an object whose answers are found for a batch at once
/// ([`super::objects::offers`] `tokens`), and may come to another keyed operation behind it.
pub struct Staged<'a> {
    /// up to the first of those calls
    pub first: PrefetchPass<'a>,
    /// through them, with their answers, up to the next keyed operation
    pub second: PrefetchPass<'a>,
}

/// Which keyed operations a prefetch pass ends at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// at any
    First,
    /// at those whose answers are found at once; at others with nothing
    AtOnce,
    /// at the others; those whose answers are known are run
    Behind,
}

/// The prefetch pass of a program, or none if no execution comes to a keyed operation first.
pub fn pass<'a>(whole: &Slice<'a>) -> Option<PrefetchPass<'a>> {
    ending(whole, Ends::First)
}

/// The two passes of a program that has a use for them.
pub fn staged<'a>(whole: &Slice<'a>) -> Option<Staged<'a>> {
    let first = ending(whole, Ends::AtOnce)?;
    let second = ending(whole, Ends::Behind)?;
    let through = |id: &StepId| second.slice.role(*id) == Role::Run;
    first
        .sites
        .keys()
        .any(through)
        .then_some(Staged { first, second })
}

fn ending<'a>(whole: &Slice<'a>, ends: Ends) -> Option<PrefetchPass<'a>> {
    let steps = whole.flow.steps.len();
    let mut roles = vec![Role::Absent; steps];
    let mut predecessors = vec![Vec::new(); steps];
    let mut sites = BTreeMap::new();
    let mut objects = Vec::new();
    let mut pending = vec![StepId(0)];
    while let Some(id) = pending.pop() {
        if roles[id.0] != Role::Absent {
            continue;
        }
        roles[id.0] = match whole.role(id) {
            Role::Stop => Role::Stop,
            _ => role(whole, whole.step(id), ends),
        };
        if let Role::Site(_) = roles[id.0] {
            sites.insert(id, 0);
        }
        if roles[id.0] == Role::Run {
            for next in whole.successors(id) {
                predecessors[next.0].push(id);
                pending.push(next);
            }
        }
    }
    for (number, (id, site)) in (1..).zip(&mut sites) {
        *site = number;
        roles[id.0] = Role::Site(number);
        if let Some(ArgFact::Object(object)) = whole.step(*id).args.first() {
            objects.push(*object);
        }
    }
    if sites.is_empty() || objects.len() != sites.len() {
        return None;
    }
    // What leads to no site is not worth running.
    let mut leads = vec![false; steps];
    let mut pending: Vec<StepId> = sites.keys().copied().collect();
    while let Some(id) = pending.pop() {
        if !std::mem::replace(&mut leads[id.0], true) {
            pending.extend(&predecessors[id.0]);
        }
    }
    for (role, leads) in roles.iter_mut().zip(leads) {
        if *role == Role::Run && !leads {
            *role = Role::Stop;
        }
    }
    Some(PrefetchPass {
        slice: whole.with_roles(roles),
        sites,
        objects,
    })
}

fn role(slice: &Slice, step: &Step, ends: Ends) -> Role {
    let pure = match step.op {
        Op::Plain(Insn::Load { .. }) => step.access.is_some_and(|a| readable(slice, a)),
        Op::Plain(Insn::Store { .. } | Insn::Atomic { .. }) => {
            matches!(step.access, Some(Access::Stack { .. }))
        }
        Op::Plain(Insn::Call { helper }) => return call(slice, step, helper, ends),
        Op::Plain(Insn::CallRegister { .. } | Insn::LegacyPacketLoad) => false,
        _ => true,
    };
    if pure { Role::Run } else { Role::Stop }
}

/// Memory that no packet's run changes but this packet's own.
fn readable(slice: &Slice, access: Access) -> bool {
    match access {
        Access::Context { .. } | Access::Packet | Access::Stack { .. } => true,
        Access::Value(object) => slice
            .program
            .objects
            .get(object.0)
            .is_some_and(|o| o.read_only),
        Access::Record(_) | Access::Several => false,
    }
}

fn call(slice: &Slice, step: &Step, number: u32, ends: Ends) -> Role {
    let Some(helper) = helper::by_number(number) else {
        return Role::Stop;
    };
    let memory = step.args.iter().all(|arg| match arg {
        ArgFact::Memory { access, .. } => readable(slice, *access),
        _ => true,
    });
    if let Some((object, access)) = keyed(step) {
        // A function of the key and of what no packet changes.
        let at_once = found_at_once(slice.program, object);
        match (ends, at_once && readable(slice, access)) {
            (Ends::AtOnce, false) => return Role::Stop,
            (Ends::Behind, true) => return Role::Run,
            _ => {}
        }
        return if prefetches(slice.program, object) && readable(slice, access) {
            Role::Site(0)
        } else {
            Role::Stop
        };
    }
    if is_pure(number) && memory && helper.object_argument().is_none() {
        Role::Run
    } else {
        Role::Stop
    }
}

/// The object and the key's memory of a step that is a keyed operation.
fn keyed(step: &Step) -> Option<(ObjectId, Access)> {
    let Op::Plain(Insn::Call { helper: number }) = step.op else {
        return None;
    };
    let key = helper::by_number(number)?.key_argument()?;
    match (step.args.first(), step.args.get(key)) {
        (Some(ArgFact::Object(object)), Some(ArgFact::Memory { access, .. })) => {
            Some((*object, *access))
        }
        _ => None,
    }
}

/// Whether the entries of an object can be fetched ahead. Which of the maps of a shape it is, a lookup says, and no
/// prefetch pass makes one.
fn prefetches(program: &Program, object: ObjectId) -> bool {
    let functions = ["token", "prefetch", "prefetch_entry", "cold"];
    let declaration = program.objects.get(object.0);
    declaration.is_some_and(|o| !o.is_shape() && functions.iter().all(|f| offers(o, f)))
}

/// Whether answers of an object are found for a batch at once: its token is the answer.
fn found_at_once(program: &Program, object: ObjectId) -> bool {
    let declaration = program.objects.get(object.0);
    declaration.is_some_and(|o| !o.is_shape() && offers(o, "tokens"))
}

/// The object of a step that is a keyed operation with its key on the stack, if its entries can be fetched ahead.
pub fn prefetched(program: &Program, step: &Step) -> Option<ObjectId> {
    let (object, access) = keyed(step)?;
    let stack = matches!(access, Access::Stack { .. });
    (stack && prefetches(program, object)).then_some(object)
}
