//! The functions that timers call: what proven flows hand to `bpf_timer_set_callback`, and what those functions hand
//! to it in turn. And those that run when entries expire, which declarations name.

use millrace_object::program::{ObjectId, Program};

use crate::budget::Budget;
use crate::facts::{Flow, Refusal, Timed};
use crate::refuse::{Fault, refusal_at};
use crate::rule::Rule;
use crate::{Options, Statistics, prove};

/// Most functions of timers, of a program; each is emitted once for each map.
const MOST: usize = 256;

/// Proves every function safe that a timer of these flows may call, and those that they set.
///
/// # Errors
/// The rule that one of them breaks, `callback`.
pub fn prove(
    program: &Program,
    flows: &[Flow],
    (options, budget): (&Options, Budget),
    statistics: &mut Statistics,
) -> Result<Vec<Timed>, Box<Refusal>> {
    let mut pending: Vec<_> = flows.iter().flat_map(|f| f.callbacks.clone()).collect();
    let objects = program.objects.iter().enumerate();
    pending.extend(objects.filter_map(|(i, o)| Some((ObjectId(i), o.expiry?))));
    let mut timers: Vec<Timed> = Vec::new();
    while let Some((object, function)) = pending.pop() {
        let known = |t: &Timed| (t.object, t.function) == (object, function);
        if timers.iter().any(known) {
            continue;
        }
        if timers.len() == MOST {
            let fault = Fault::new(
                Rule::Callback,
                format!("timers call more than {MOST} functions, counted for each map"),
                "Let fewer functions serve the timers.",
            );
            return Err(refusal_at(program, function, 0, fault));
        }
        let rest = options.after(timers.iter().map(|t| &t.flow));
        let flow = prove::prove_timed(program, object, function, (&rest, budget), statistics)?;
        pending.extend(flow.callbacks.iter().copied());
        timers.push(Timed {
            object,
            function,
            flow,
        });
    }
    timers.sort_by_key(|t| (t.object, t.function));
    Ok(timers)
}
