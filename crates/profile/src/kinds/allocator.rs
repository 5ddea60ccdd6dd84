//! Allocators: `ALLOCATOR`.

use millrace_object::state::allocator;

use super::{Advice, Idea, Met, word};

/// The advice.
pub const ADVICE: Advice = Advice {
    about: |object| *object.kind == allocator::KIND,
    cause,
    ideas,
};

fn empty(met: &Met<'_>) -> bool {
    met.entries
        .is_some_and(|entries| entries.saturating_mul(20) >= met.object.capacity.saturating_mul(19))
}

fn cause(met: &Met<'_>) -> String {
    let (name, mine) = (&met.object.name, word(&met.abort.operation));
    match empty(met) {
        true => format!(
            "allocation from an empty pool: {} of {} numbers of {name} are leased",
            met.entries.unwrap_or(0),
            met.object.capacity
        ),
        false if met.what.is_some() => format!(
            "packets of several cores use one lease of {name}, {}: {mine} and a change of its value or its end",
            met.of_keys()
        ),
        false => format!(
            "allocation: {mine} changes the list of free numbers of {name}, which all cores have in common"
        ),
    }
}

fn ideas(met: &Met<'_>) -> Vec<Idea> {
    let capacity = met.object.capacity;
    let why = "over-provisioning: with numbers to spare a lease finds one at once";
    let removes = if empty(met) { 0.9 } else { 0.1 };
    let mut ideas = vec![Idea::option(
        "capacity",
        capacity.saturating_mul(2),
        removes,
        why,
    )];
    if met.object.expire_after > 0 && !empty(met) {
        ideas.push(Idea::option(
            "expire_after",
            met.object.expire_after.saturating_mul(2),
            0.4,
            "leases that last longer are renewed where they would be made anew",
        ));
    }
    ideas
}
