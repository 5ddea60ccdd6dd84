//! Allocators: `ALLOCATOR`.

use millrace_dataplane::module::What;
use millrace_object::state::allocator;

use super::{Advice, Idea, Met, word};

/// The advice.
pub const ADVICE: Advice = Advice {
    about: |object| *object.kind == allocator::KIND,
    cause,
    ideas,
    forces: |_| false,
};

/// Whether no number is free.
fn empty(met: &Met<'_>) -> bool {
    met.entries
        .is_some_and(|entries| entries >= met.object.capacity)
}

/// So many times as many leases as there are numbers leased: they are made anew for what had one before.
const AGAIN: u64 = 2;

fn cause(met: &Met<'_>) -> String {
    let (name, mine) = (&met.object.name, word(&met.abort.operation));
    let pool = met.what == Some(What::Pool);
    match empty(met) || pool {
        true => format!(
            "allocation from an empty pool: {} of {} numbers of {name} are leased{}",
            met.entries.unwrap_or(0),
            met.object.capacity,
            match pool {
                true => ", and a worker whose own are used up runs alone to take some of another's",
                false => "",
            }
        ),
        false if met.what.is_some() => format!(
            "packets of several cores use one lease of {name}, {}: {mine} and a change of its value or its end",
            met.of_keys()
        ),
        false => format!(
            "concurrent allocation: {mine} changes the list of free numbers of {name}, which all cores have in common, and runs alone"
        ),
    }
}

/// A list that each core has a part of is another strategy's: `shard` (docs/parallel.md, "Numbers that come home").
fn ideas(met: &Met<'_>) -> Vec<Idea> {
    let capacity = met.object.capacity;
    let mut ideas = Vec::new();
    if met.what == Some(What::Pool) {
        ideas.push(Idea::option(
            "capacity",
            capacity.saturating_add(capacity.div_ceil(25)),
            0.9,
            "over-provisioning: with 4 % more numbers each worker has some of its own left",
        ));
    } else if empty(met) {
        ideas.push(Idea::option(
            "capacity",
            capacity.saturating_mul(2),
            0.1,
            "over-provisioning: with numbers to spare no packet is refused; each lease still changes the list",
        ));
    }
    let again = met
        .entries
        .is_some_and(|entries| met.abort.count / entries.max(1) >= AGAIN);
    if met.object.expire_after > 0 && !empty(met) && again {
        ideas.push(Idea::option(
            "expire_after",
            met.object.expire_after.saturating_mul(2),
            0.4,
            "leases that last longer are refreshed where they would be made anew, and a refresh waits for nobody",
        ));
    }
    ideas
}
