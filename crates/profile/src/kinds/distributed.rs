//! Numbers that packets add to: `DISTRIBUTED`.

use millrace_object::state::distributed;

use super::{Advice, Idea, Met};

/// The advice.
pub const ADVICE: Advice = Advice {
    about: |object| *object.kind == distributed::KIND,
    cause,
    ideas,
    forces: |object| object.staleness == 0,
};

/// How old a sum may be, ns: what a person who reads it does not notice.
const STALE: u64 = 1_000_000;

fn cause(met: &Met<'_>) -> String {
    let name = &met.object.name;
    match met.object.staleness {
        0 => format!(
            "{name} is exact: each packet reads or changes it as the packet before it left it, wherever that ran \
             (a stale read is not allowed)"
        ),
        ns => format!("sums of {name} are made anew each {} µs", ns / 1000),
    }
}

fn ideas(met: &Met<'_>) -> Vec<Idea> {
    let why = "a stale read lets each core add to a part of its own, and read a sum that is this old at most";
    let to = met.object.staleness.saturating_mul(10).max(STALE);
    vec![Idea::option("staleness", to, 0.95, why)]
}
