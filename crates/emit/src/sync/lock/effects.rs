//! Effects of a step that other workers can see: operations that change an object, and those that only read it.

use std::collections::BTreeSet;

use millrace_check::facts::{Access, ArgFact, Flow, Kind, Op, Step};
use millrace_object::Program;
use millrace_object::contract::Act;
use millrace_object::helper::{self, Helper};
use millrace_object::insn::{Imm64, Insn, Operand, Reg};
use millrace_object::program::ObjectId;

use crate::headers;

/// What a step does, as far as others could see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// nothing
    None,
    /// it may change a shared object
    Write,
    /// it stores into a shared object, which it changes if something else is there
    Compare,
    /// it reads shared state
    Read,
    /// it reads a shared object by its function for readers, which may not be able to tell
    Ask,
    /// it stores up to 8 bytes into the packet or the worker's own state
    Store,
    /// it refreshes an entry of the worker's own: a second time it changes nothing more
    Refresh,
    /// it changes the packet or the worker's own state otherwise
    Own,
}

/// What a step does.
pub fn effect(program: &Program, shared: &BTreeSet<ObjectId>, step: &Step) -> Effect {
    match step.op {
        Op::Plain(Insn::Load { .. }) => match step.access {
            Some(Access::Value(o) | Access::Record(o)) if shared.contains(&o) => Effect::Read,
            Some(Access::Several) => Effect::Read,
            _ => Effect::None,
        },
        Op::Plain(Insn::Store { src, .. }) if matches!(step.access, Some(Access::Value(o)) if shared.contains(&o)) => {
            match src {
                Operand::Reg(src) if !is_number(step, src) => Effect::Write,
                _ => Effect::Compare,
            }
        }
        Op::Plain(Insn::Store { .. } | Insn::Atomic { .. }) => match step.access {
            Some(Access::Stack { .. } | Access::Context { .. }) => Effect::None,
            Some(access) if may_be_shared(shared, access) => Effect::Write,
            Some(_) => Effect::Store,
            None => Effect::Write,
        },
        Op::Plain(Insn::Call { helper }) => match helper::by_number(helper) {
            Some(helper) => call(program, shared, step, helper),
            None => Effect::Write,
        },
        Op::Plain(Insn::CallRegister { .. } | Insn::LegacyPacketLoad) => Effect::Write,
        _ => Effect::None,
    }
}

/// Whether a register holds a number and nothing else.
fn is_number(step: &Step, reg: Reg) -> bool {
    step.before.get(usize::from(reg.0)) == Some(&Kind::Scalar)
}

fn may_be_shared(shared: &BTreeSet<ObjectId>, access: Access) -> bool {
    match access {
        Access::Value(o) | Access::Record(o) => shared.contains(&o),
        Access::Several => true,
        Access::Context { .. } | Access::Packet | Access::Stack { .. } => false,
    }
}

fn call(program: &Program, shared: &BTreeSet<ObjectId>, step: &Step, helper: &Helper) -> Effect {
    let found = on_object(program, shared, step, helper);
    on_memory(shared, step, helper, found)
}

/// What a call does to the memory that its arguments point to, beside what it does to its object.
pub fn on_memory(
    shared: &BTreeSet<ObjectId>,
    step: &Step,
    helper: &Helper,
    mut found: Effect,
) -> Effect {
    for (arg, fact) in helper.args.iter().zip(&step.args) {
        let ArgFact::Memory { access, .. } = *fact else {
            continue;
        };
        let writes = arg.writes_memory();
        let here = match access {
            Access::Stack { .. } | Access::Context { .. } => Effect::None,
            access if may_be_shared(shared, access) && writes => Effect::Write,
            access if may_be_shared(shared, access) => Effect::Read,
            _ if writes => Effect::Own,
            _ => Effect::None,
        };
        found = stronger(found, here);
    }
    found
}

/// What counts if one step does both.
fn stronger(a: Effect, b: Effect) -> Effect {
    let rank = |e: Effect| match e {
        Effect::None => 0,
        Effect::Read => 1,
        Effect::Refresh => 2,
        Effect::Store | Effect::Own => 3,
        Effect::Compare | Effect::Ask => 4,
        Effect::Write => 5,
    };
    match (a, b) {
        // One that may have to run again must not have done anything.
        (Effect::Ask, Effect::Own | Effect::Store) | (Effect::Own | Effect::Store, Effect::Ask) => {
            Effect::Write
        }
        _ if rank(a) >= rank(b) => a,
        _ => b,
    }
}

fn on_object(
    program: &Program,
    shared: &BTreeSet<ObjectId>,
    step: &Step,
    helper: &Helper,
) -> Effect {
    let implied = helper::implied(helper)
        .and_then(|kind| program.objects.iter().position(|o| o.kind == kind))
        .map(ObjectId);
    let Some(id) = object(step, helper).or(implied) else {
        return if helper.object_argument().is_some() {
            Effect::Write
        } else if helper.effects.moves_packet || helper.effects.writes_packet {
            Effect::Own
        } else {
            // Marks in the descriptor are set anew by each run. Whose a lock in a value is, the argument's memory
            // says; a record, likewise.
            Effect::None
        };
    };
    let Some(object) = program.objects.get(id.0) else {
        return Effect::Write;
    };
    let act = object.does(helper).map_or(Act::Write, |d| d.act);
    match (shared.contains(&id), act) {
        // Of what expires a reader joins the stamps that workers keep apart (fastpath/sync/stamps.h).
        (true, Act::Look) if object.expire_after == 0 => Effect::Read,
        (true, _) if headers::reads(object.kind.c, helper.name) => Effect::Ask,
        (true, _) => Effect::Write,
        (false, Act::Look) => Effect::None,
        // What it changes of its own it can take back.
        (false, Act::Touch | Act::Add) if headers::keeps(object.kind.c) => Effect::Refresh,
        (false, _) => Effect::Own,
    }
}

/// The object that a call works on, where it names one.
pub fn object(step: &Step, helper: &Helper) -> Option<ObjectId> {
    let named = step.args.iter().find_map(|arg| match arg {
        ArgFact::Object(o) | ArgFact::Timer(o) => Some(*o),
        _ => None,
    });
    let position = helper.object_argument().unwrap_or(0) + 1;
    named.or(match step.before.get(position) {
        Some(Kind::Object(o)) => Some(*o),
        _ => None,
    })
}

/// Where a handler finds the packet's time in its context (docs/dialect.md).
const TIME: std::ops::Range<u32> = 24..32;

/// Whether some execution reads the packet's time as a number. What only compares it with stamps of entries does not.
pub fn reads_clock(flow: &Flow) -> bool {
    flow.steps
        .iter()
        .filter(|s| s.reached)
        .any(|step| match step.op {
            Op::Plain(Insn::Load { .. }) => {
                matches!(step.access, Some(Access::Context { offset }) if TIME.contains(&offset))
            }
            Op::Plain(Insn::Call { helper }) => helper::by_number(helper)
                .is_none_or(|h| h.effects.time && h.object_argument().is_none()),
            Op::Plain(Insn::CallRegister { .. }) => true,
            _ => false,
        })
}

/// Every object that some execution touches.
pub fn touched(program: &Program, flow: &Flow) -> BTreeSet<ObjectId> {
    let mut found = BTreeSet::new();
    for step in flow.steps.iter().filter(|s| s.reached) {
        let (Op::Plain(insn) | Op::Branch { insn, .. }) = step.op else {
            continue;
        };
        match insn {
            Insn::LoadImm {
                value: Imm64::Object(o) | Imm64::ObjectValue { object: o, .. },
                ..
            } => {
                found.insert(o);
            }
            Insn::Call { helper } => {
                let implied = helper::by_number(helper).and_then(helper::implied);
                let of_kind = program.objects.iter().enumerate();
                found.extend(
                    of_kind
                        .filter(|(_, o)| implied.is_some_and(|kind| o.kind == kind))
                        .map(|(at, _)| ObjectId(at)),
                );
            }
            _ => {}
        }
        if let Some(Access::Value(o) | Access::Record(o)) = step.access {
            found.insert(o);
        }
    }
    found
}
