//! R3, disjoint dependencies: each of two objects can be separated, but not both.

use super::Judged;
use crate::plan::Rule;
use millrace_place::Treatment;

/// An object that gives way to others.
pub(crate) fn judge(
    own: &Judged,
    name: &str,
    others: &[String],
    why: &str,
    proved: bool,
) -> Judged {
    let others = crate::words::listed(others);
    Judged {
        treatment: Treatment::Lock,
        rule: Rule::R3,
        reason: format!(
            "{name} could be sharded alone, but not together with {others}: {why}; it is locked, and {others} \
             sharded"
        ),
        remedy: Some(format!(
            "give {name} a key that has the fields of the key of {others}, or make it a counter that is only \
             added to, which is merged"
        )),
        line: own.line.clone(),
        infeasible: proved,
    }
}

/// An object whose own accesses ask for too much.
pub(crate) fn alone(
    name: &str,
    keys: &[String],
    why: &str,
    line: Option<String>,
    proved: bool,
) -> Judged {
    Judged {
        treatment: Treatment::Lock,
        rule: Rule::R3,
        reason: format!(
            "{name} is reached by keys that cannot all be kept together: {}; {why}",
            crate::words::listed(keys)
        ),
        remedy: Some("use one key, or one object for each of them".to_owned()),
        line,
        infeasible: proved,
    }
}
