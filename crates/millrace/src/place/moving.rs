//! Buckets of a function's indirection table that move between its workers while packets come.

use std::sync::Arc;

use millrace_dataplane::Module;
use millrace_dataplane::classes::Classes;
use millrace_dataplane::moved::Contents;
use millrace_place::Placement;

use crate::Error;

/// The buckets of a function on so many workers, and what goes along with each.
///
/// # Errors
/// They cannot move: with the reason.
pub fn buckets(
    name: &str,
    placement: Option<&Placement>,
    module: &Module,
    workers: usize,
) -> Result<(Arc<Classes>, Contents), Error> {
    let refused = |why: &str| {
        Error::no(format!(
            "--balance: buckets of {name} cannot move between workers: {why}"
        ))
        .help("leave --balance out")
    };
    let Some(placement) = placement else {
        return Err(refused("it runs on one core"));
    };
    if let Some(why) = &placement.stays {
        return Err(refused(why));
    }
    let found = placement
        .buckets
        .clone()
        .zip(placement.table(workers as u32));
    let of = found.zip(Contents::of(placement, module));
    let Some(((buckets, table), contents)) = of else {
        return Err(refused("any packet may go to any worker"));
    };
    Ok((Classes::of_buckets(buckets, &table, workers), contents))
}
