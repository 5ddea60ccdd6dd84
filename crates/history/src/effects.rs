//! What a step has to do with replicated state, by the contracts of kinds and helpers.

use std::collections::BTreeSet;

use millrace_check::facts::{Access, ArgFact, Kind, Op, Step};
use millrace_object::Program;
use millrace_object::contract::Act;
use millrace_object::helper::{self, Helper};
use millrace_object::insn::Insn;
use millrace_object::program::ObjectId;

/// What a step has to do with state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// nothing: its result is a function of its operands, the packet, the time and settings
    Free,
    /// it reads replicated state
    Reads(ObjectId),
    /// it may change replicated state
    Writes(ObjectId),
    /// it is output of the packet's own worker: records, per-CPU values, redirects. What it answers is not
    /// the same on all replicas, for the reason that stands here.
    Output(Option<ObjectId>, &'static str),
    /// it cannot be replicated whether state depends on it or not
    Never(Option<ObjectId>, &'static str),
}

/// Where the context has the receive queue, bytes.
const CONTEXT_QUEUE: u32 = 16;

const FULL: &str = "whether a record finds room depends on how fast the host takes records, which differs between cores";
/// Why a per-CPU object that something depends on is not replicated.
pub const PER_CPU: &str = "each core has its own values of a per-CPU object, so that what is read there differs between cores; where they are only added to, `merge` serves it";
/// Why an object for records of which packets see more than whether there was room is not replicated.
pub const RECORDS: &str = "each core has its own of an object for records, so that what packets see of it differs between cores; count in a map what they should see";
const PARTED: &str = "it is sharded, and what the core of the packet finds there decides over state that all cores have to change alike";
const OUTPUT: &str = "the answer belongs to the worker of the packet alone";
const CPU: &str = "the number of the core differs between cores";
const QUEUE: &str = "the receive queue that a packet comes in by differs between cores, and the sequencer's is no core's";
const MIXED: &str = "one instruction reaches several kinds of memory; split it";
const TAIL: &str = "a tail call goes on with a program that a row does not name";
const UNKNOWN: &str = "what it touches is not known";

/// Whether an object's content is the same constant on every core for the whole run: variables that nobody writes.
#[must_use]
pub fn constant(program: &Program, object: ObjectId) -> bool {
    let object = program.objects.get(object.0);
    object.is_some_and(|o| o.kind.is_global() && o.read_only)
}

/// Whether every core has the same content of an object under replication: neither per CPU nor records for the host.
#[must_use]
pub fn replicated(program: &Program, object: ObjectId) -> bool {
    let found = program.objects.get(object.0);
    found.is_some_and(|o| !o.kind.per_cpu && !o.kind.holds_records()) && !constant(program, object)
}

/// Why each core has an object's content for itself; none of what is replicated. `parted`: objects of which each core has a part.
fn own(program: &Program, parted: &BTreeSet<ObjectId>, object: ObjectId) -> Option<&'static str> {
    let found = program.objects.get(object.0);
    match found {
        Some(o) if o.kind.per_cpu => Some(PER_CPU),
        _ => parted.contains(&object).then_some(PARTED),
    }
}

/// What a step does, where each core has its own part of the objects `parted`.
#[must_use]
pub fn effect(program: &Program, parted: &BTreeSet<ObjectId>, step: &Step) -> Effect {
    let value = |o: ObjectId, writes: bool| match own(program, parted, o) {
        _ if constant(program, o) => Effect::Free,
        Some(why) => Effect::Output(Some(o), why),
        _ if writes => Effect::Writes(o),
        _ => Effect::Reads(o),
    };
    match step.op {
        Op::Plain(Insn::Load { .. }) => match step.access {
            Some(Access::Value(o)) => value(o, false),
            Some(Access::Record(o)) => Effect::Output(Some(o), OUTPUT),
            Some(Access::Several) => several(program, step, false),
            Some(Access::Context {
                offset: CONTEXT_QUEUE,
            }) => Effect::Output(None, QUEUE),
            Some(_) => Effect::Free,
            None => Effect::Never(None, UNKNOWN),
        },
        Op::Plain(Insn::Store { .. } | Insn::Atomic { .. }) => match step.access {
            Some(Access::Value(o)) => value(o, true),
            Some(Access::Record(o)) => Effect::Output(Some(o), OUTPUT),
            Some(Access::Context { .. }) => Effect::Never(None, UNKNOWN),
            Some(Access::Several) => several(program, step, true),
            Some(_) => Effect::Free,
            None => Effect::Never(None, UNKNOWN),
        },
        Op::Plain(Insn::Call { helper }) => match helper::by_number(helper) {
            Some(helper) => call((program, parted), step, helper),
            None => Effect::Never(None, UNKNOWN),
        },
        Op::Plain(Insn::CallRegister { .. } | Insn::LegacyPacketLoad) => {
            Effect::Never(None, UNKNOWN)
        }
        _ => Effect::Free,
    }
}

/// An instruction that reaches several kinds of memory: packet and stack, if no object is among them.
fn several(program: &Program, step: &Step, writes: bool) -> Effect {
    let object = (step.extents.iter()).find(|e| !constant(program, e.object));
    match object {
        Some(extent) if writes => Effect::Never(Some(extent.object), MIXED),
        Some(extent) => Effect::Output(Some(extent.object), MIXED),
        None => Effect::Output(None, MIXED),
    }
}

fn call(
    (program, parted): (&Program, &BTreeSet<ObjectId>),
    step: &Step,
    helper: &Helper,
) -> Effect {
    if [helper::TAIL_CALL.number, helper::TAIL_AWAY.number].contains(&helper.number) {
        return Effect::Never(object(step, helper), TAIL);
    }
    let mut found = on_object((program, parted), step, helper);
    for (arg, fact) in helper.args.iter().zip(&step.args) {
        let ArgFact::Memory { access, .. } = *fact else {
            continue;
        };
        let writes = arg.writes_memory();
        let here = match access {
            // Locks in values: one thread has a replica.
            Access::Value(_)
                if helper.does.is_some_and(|d| d.act == Act::Touch) && !helper.takes_object() =>
            {
                Effect::Output(None, OUTPUT)
            }
            Access::Value(o) if constant(program, o) => Effect::Free,
            Access::Value(o) => match own(program, parted, o) {
                Some(why) => Effect::Output(Some(o), why),
                None if writes => Effect::Writes(o),
                None => Effect::Reads(o),
            },
            Access::Record(o) => Effect::Output(Some(o), OUTPUT),
            Access::Several => Effect::Never(None, MIXED),
            _ => Effect::Free,
        };
        found = stronger(found, here);
    }
    found
}

fn stronger(a: Effect, b: Effect) -> Effect {
    let rank = |e: &Effect| match e {
        Effect::Free => 0,
        Effect::Reads(_) => 1,
        Effect::Writes(_) => 2,
        Effect::Output(..) => 3,
        Effect::Never(..) => 4,
    };
    match (a, b) {
        // State that is written from what only one worker has.
        (Effect::Output(o, why), Effect::Writes(_))
        | (Effect::Writes(_), Effect::Output(o, why)) => Effect::Never(o, why),
        _ if rank(&a) >= rank(&b) => a,
        _ => b,
    }
}

fn on_object(
    (program, parted): (&Program, &BTreeSet<ObjectId>),
    step: &Step,
    helper: &Helper,
) -> Effect {
    let implied = helper::implied(helper)
        .and_then(|kind| program.objects.iter().position(|o| o.kind == kind))
        .map(ObjectId);
    let Some(id) = object(step, helper).or(implied) else {
        return match () {
            () if helper.takes_object() => Effect::Never(None, UNKNOWN),
            () if helper.number == helper::GET_SMP_PROCESSOR_ID.number => Effect::Output(None, CPU),
            () if helper.effects.other => Effect::Output(None, OUTPUT),
            // Draws beside `get_prandom_u32` depend on a secret of the worker.
            () if helper.effects.random && helper.number != helper::GET_PRANDOM_U32.number => {
                Effect::Output(None, OUTPUT)
            }
            () => Effect::Free,
        };
    };
    let Some(object) = program.objects.get(id.0) else {
        return Effect::Never(None, UNKNOWN);
    };
    if object.kind.holds_records() {
        return Effect::Output(Some(id), FULL);
    }
    if let Some(why) = own(program, parted, id) {
        return Effect::Output(Some(id), why);
    }
    if helper.effects.other {
        return Effect::Output(Some(id), OUTPUT);
    }
    match object.does(helper).map_or(Act::Write, |d| d.act) {
        Act::Look => Effect::Reads(id),
        Act::Touch | Act::Add | Act::Write => Effect::Writes(id),
    }
}

/// The object that a call works on.
#[must_use]
pub fn object(step: &Step, helper: &Helper) -> Option<ObjectId> {
    let named = step.args.iter().find_map(|arg| match arg {
        ArgFact::Object(o) | ArgFact::Timer(o) => Some(*o),
        _ => None,
    });
    let position = helper.object_argument().unwrap_or(0) + 1;
    named.or(match step.before.get(position) {
        Some(Kind::Object(o) | Kind::Inner(o)) => Some(*o),
        _ => None,
    })
}
