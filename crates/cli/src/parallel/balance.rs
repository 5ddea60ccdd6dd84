//! `run --trace`: an indirection table that is balanced to a capture before anything runs.

use millrace_object::program::Program;
use millrace_plan::Plan;
use millrace_steer::Steering;

use crate::cost::Frames;
use crate::failure::Failure;
use crate::wiring::{self, Words};

/// Gives all ports the table under which the busiest worker has least of the captures' packets, and says what it
/// has.
///
/// # Errors
/// A capture cannot be read.
pub fn to(
    plan: &Plan,
    program: &Program,
    words: &Words<'_>,
    steering: &mut [Steering],
) -> Result<String, Failure> {
    let ports = wiring::port_names(&program.ports, words)?;
    let frames = Frames::read(words, &ports)?;
    let mut loads = plan.loads();
    for (frame, port) in frames.all() {
        loads.add(steering, port as usize, frame);
    }
    plan.balance(steering, &loads).map_err(Failure::wrong)?;
    let (busiest, mean) = (loads.busiest(plan.cores), 1.0 / f64::from(plan.cores));
    Ok(format!(
        "the table is balanced to {}: the busiest worker has {:.2} times the mean of its {} packets, the heaviest \
         entry {:.2} % of all",
        words.inputs.join(", "),
        busiest / mean,
        loads.packets(),
        loads.heaviest() * 100.0
    ))
}
