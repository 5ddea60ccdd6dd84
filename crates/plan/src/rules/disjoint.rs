//! R3, disjoint dependencies: each of two objects can be separated, but not both.

use super::{Bar, Barred, Said};
use crate::plan::Rule;
use crate::words;

/// An object that gives way to others; `own` is said of it by itself.
pub(crate) fn judge(own: Said, name: &str, others: &[String], why: &str, proved: bool) -> Barred {
    let others = words::listed(others);
    let reason = format!("{name} could be sharded alone, but not together with {others}: {why}");
    let remedy = format!(
        "give {name} a key that has the fields of the key of {others}, or make it a counter that is only added to, which \
         is merged"
    );
    Barred {
        by: Bar::Others(others),
        ..Said::new(Rule::R3, reason, own.line).barred(&remedy, proved)
    }
}

/// An object whose own accesses ask for too much.
pub(crate) fn alone(
    name: &str,
    keys: &[String],
    why: &str,
    line: Option<String>,
    proved: bool,
) -> Barred {
    let reason = format!(
        "{name} is reached by keys that cannot all be kept together: {}; {why}",
        words::listed(keys)
    );
    Said::new(Rule::R3, reason, line).barred("use one key, or one object for each of them", proved)
}
