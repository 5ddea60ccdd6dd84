//! Why a configuration cannot be synthesised, in its author's lines.

use millrace_click::error::Error;
use millrace_click::language::Element;

/// A refusal at an element.
#[must_use]
pub fn at(element: &Element, why: &str) -> Error {
    Error::at(
        &element.place,
        format!("{} cannot be synthesised: {why}", element.title()),
        "replace the element, or run the configuration as a guest or with Click",
    )
}

/// The budget is spent.
#[must_use]
pub fn full() -> Error {
    Error {
        place: None,
        what:
            "the configuration has too many traffic classes, or ways through loops, for a diagram"
                .into(),
        help: "divide it, test fewer fields together, or take connections out that lead back"
            .into(),
    }
}
