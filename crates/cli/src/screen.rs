//! Text for people and programs. A reader that has gone away (`millrace … | head`) is no error.

use std::io::Write;

/// A line on standard output.
pub fn out(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// A line on standard error that is no message of its own ([`crate::log`]).
pub fn err(text: &str) {
    crate::log::plain(text);
}

/// A report for people: on standard output, or on standard error where that is taken by a document
/// or a capture.
pub fn report(taken: bool, text: &str) {
    if taken { err(text) } else { out(text) }
}

/// The one JSON document of a verb.
pub fn document(value: &impl serde::Serialize) {
    // Our own types have string keys and no failing serializers, so this cannot fail; if it ever did,
    // silence would be worse than the reason.
    match serde_json::to_string_pretty(value) {
        Ok(text) => out(&text),
        Err(error) => err(&format!("error: cannot be written as JSON: {error}")),
    }
}
