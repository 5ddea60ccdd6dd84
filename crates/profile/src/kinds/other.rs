//! Any other kind of object.

use super::{Advice, Idea, Met};

/// The advice.
pub const ADVICE: Advice = Advice {
    about: |_| true,
    cause,
    ideas,
    forces: |_| false,
};

fn cause(met: &Met<'_>) -> String {
    format!(
        "{} changes {} (a {}), so that the packet runs alone",
        met.abort.operation, met.object.name, met.object.kind.name
    )
}

fn ideas(_: &Met<'_>) -> Vec<Idea> {
    Vec::new()
}
