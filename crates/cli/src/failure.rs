//! Errors as the command shows them, and its exit status.

pub use millrace::Error as Failure;
use millrace::Kind;

use crate::log::{Level, Message};
use crate::{refusal, screen};

/// Done.
pub const DONE: u8 = 0;
/// The answer is no.
pub const NO: u8 = 1;
/// Wrong use, or an input or output that failed.
pub const WRONG: u8 = 2;

/// The exit status of an error.
pub fn code(failure: &Failure) -> u8 {
    match failure.kind {
        Kind::No => NO,
        Kind::Wrong => WRONG,
    }
}

/// The longer text that belongs to an error: refusals in the author's lines, or what another program said.
pub fn detail(failure: &Failure) -> Option<String> {
    let Some(refused) = &failure.refused else {
        return failure.detail.clone();
    };
    let refusals = refused.refusals.iter();
    let shown: Vec<_> = refusals
        .map(|r| refusal::text(r, &refused.folder))
        .collect();
    Some(shown.join("\n\n"))
}

/// Tells an error on standard error, and as JSON on standard output if that was asked for.
pub fn report(failure: &Failure, json: bool) {
    let detail = detail(failure);
    Message::new(Level::Error, &failure.what)
        .detail(detail.clone())
        .help(failure.help.clone().unwrap_or_default())
        .say();
    if json {
        let document = serde_json::json!({
            "error": failure.what,
            "help": failure.help,
            "detail": detail,
        });
        screen::out(&document.to_string());
    }
}
