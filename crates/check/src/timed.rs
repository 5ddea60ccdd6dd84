//! Which functions timers call: what proven flows hand to `bpf_timer_set_callback`, and what those
//! functions hand to it in turn.

use millrace_object::helper::timer_set_callback;
use millrace_object::insn::Insn;
use millrace_object::program::{FunctionId, ObjectId, Program};

use crate::facts::{ArgFact, Flow, Op, Refusal, StepId, Timed};
use crate::refuse::{Fault, refusal};
use crate::{Options, Statistics, prove};

/// Most functions of timers, of a program: the emitted code numbers them in 16 bits.
const MOST: usize = 256;

/// Proves every function safe that a timer of these flows may call, and those that they set.
///
/// # Errors
/// The rule that one of them breaks, `callback`.
pub fn prove(
    program: &Program,
    flows: &[Flow],
    options: &Options,
    statistics: &mut Statistics,
) -> Result<Vec<Timed>, Box<Refusal>> {
    let mut pending = Vec::new();
    for flow in flows {
        pending.extend(set_by(program, flow)?);
    }
    let mut timers: Vec<Timed> = Vec::new();
    while let Some((object, function, site)) = pending.pop() {
        let known = |t: &Timed| (t.object, t.function) == (object, function);
        if timers.iter().any(known) {
            continue;
        }
        if timers.len() == MOST {
            return Err(site);
        }
        let flow = prove::prove_timed(program, object, function, options, statistics)?;
        pending.extend(set_by(program, &flow)?);
        timers.push(Timed {
            object,
            function,
            flow,
        });
    }
    timers.sort_by_key(|t| (t.object, t.function));
    Ok(timers)
}

type Set = (ObjectId, FunctionId, Box<Refusal>);

/// The map and the function of each call in a flow, and what is to be said there of too many.
fn set_by(program: &Program, flow: &Flow) -> Result<Vec<Set>, Box<Refusal>> {
    let mut found = Vec::new();
    for (at, step) in flow.steps.iter().enumerate() {
        let Op::Plain(Insn::Call { helper }) = step.op else {
            continue;
        };
        if !step.reached || helper != timer_set_callback::HELPER.number {
            continue;
        }
        let fault = |what: &str, remedy: &str| {
            refusal(program, flow, StepId(at), Fault::new("callback", what, remedy))
        };
        match step.args.as_slice() {
            [ArgFact::Timer(object), ArgFact::Function(function), ..] => {
                let many = fault(
                    "timers call more functions than are supported",
                    "Let fewer functions serve more maps.",
                );
                found.push((*object, *function, many));
            }
            _ => {
                return Err(fault(
                    "this call sets one of several functions",
                    "Name the function in the call itself; one call for each.",
                ));
            }
        }
    }
    Ok(found)
}
