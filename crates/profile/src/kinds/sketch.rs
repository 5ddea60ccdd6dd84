//! Counts of very many keys: `SKETCH`.

use millrace_object::state::sketch;

use super::{Advice, Idea, Met};

/// The advice.
pub const ADVICE: Advice = Advice {
    about: |object| *object.kind == sketch::KIND,
    cause,
    ideas,
    forces: |_| false,
};

fn cause(met: &Met<'_>) -> String {
    let name = &met.object.name;
    format!(
        "packets of several cores add to {name}, whose counters all keys have in common, so that the packet waits for all other \
         cores and runs alone"
    )
}

fn ideas(met: &Met<'_>) -> Vec<Idea> {
    let name = &met.object.name;
    vec![Idea::source(
        format!("sketch_add(&{name}, …)"),
        format!("sketch_count(&{name}, …) first, and sketch_add only below the threshold"),
        0.5,
        "an estimate is read beside other cores, and a key that is above the threshold need not be counted on",
    )]
}
