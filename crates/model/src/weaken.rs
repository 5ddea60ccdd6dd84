//! Rules switched off on purpose, one at a time: the generator of state programs (tests/tests/stateful.rs) has to find
//! each of these mistakes. In builds with debug assertions alone, by the variable `MILLRACE_WEAKEN`; in all others every
//! rule holds. And a way of following paths that is otherwise taken only where there are too many.

/// Every rule that can be switched off.
pub const RULES: [&str; 23] = [
    "observe-guard",
    "observe-told",
    "observe-borders",
    "observe-byte",
    "observe-place",
    "observe-target",
    "observe-verdict",
    "observe-key",
    "observe-stored",
    "inert-borders",
    "sums-own",
    "sums-observed",
    "nothing-records",
    "nothing-percpu",
    "meet-readers",
    "meet-ports",
    "meet-kinds",
    "meet-coarser",
    "derived",
    "handed-over",
    "lock-spread",
    "alone-spread",
    "merge-spread",
];

/// Switched off as well, but looked for by programs of its own (tests/tests/numbered.rs): what is wrong then the others cannot
/// see, who leave it open which number is leased.
pub const NUMBERS_APART: &str = "numbers-apart";

/// The rule that is switched off.
#[cfg(debug_assertions)]
fn named() -> Option<&'static str> {
    use std::sync::OnceLock;
    static NAMED: OnceLock<Option<String>> = OnceLock::new();
    let named = NAMED.get_or_init(|| std::env::var("MILLRACE_WEAKEN").ok());
    named.as_deref()
}

/// The rule that is switched off.
#[cfg(not(debug_assertions))]
fn named() -> Option<&'static str> {
    None
}

/// Whether this rule is switched off.
#[must_use]
pub fn weak(rule: &str) -> bool {
    named() == Some(rule)
}

/// Whether any is.
#[must_use]
pub fn any() -> bool {
    named().is_some()
}

/// Paths are cut where more than this many meet, though no budget is spent: `MILLRACE_CUT`, in the same builds. What is
/// planned then must be as right as what is planned from whole paths.
pub(crate) fn cut() -> Option<usize> {
    match cfg!(debug_assertions) {
        true => std::env::var("MILLRACE_CUT").ok()?.parse().ok(),
        false => None,
    }
}
