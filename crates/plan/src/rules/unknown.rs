//! Where the model's paths are not all, nothing is said of an object's keys.

use millrace_model::Model;

use super::{Bar, Barred, Said};
use crate::plan::Rule;
use crate::words;

/// An object that an unknown path may reach by any key.
pub(crate) fn judge(model: &Model, name: &str, object: usize, why: &str) -> Barred {
    let mut touched = model.entries.iter().flat_map(|e| &e.at_most);
    let at = touched.find(|t| t.object.0 == object);
    let reason = format!("not all paths to {name} are known ({why})");
    let line = at.and_then(|t| t.line.as_ref()).map(words::place);
    Barred {
        by: Bar::Paths,
        ..Said::new(Rule::R4, reason, line).barred(
            "give the model more time, or make the program simpler",
            false,
        )
    }
}
