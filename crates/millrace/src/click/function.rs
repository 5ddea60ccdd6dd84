//! Functions of a chain that have no state, as elements of its configurations ([`millrace_synth::function`]).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use millrace_chain::{Description, Element, Function as Asked};
use millrace_model::Limits;
use millrace_synth::Synthesis;
use millrace_synth::function::{self, Function};

use super::joined::{host, word_of};
use crate::Make;
use crate::find::{Source, find};

/// Most time for a model: that of a function without state is small, or too large to be one of a few tests.
const TIME: Duration = Duration::from_secs(millrace_model::SECONDS / 4);

/// An element of a chain as a function whose paths are known, and as a configuration of its own.
///
/// # Errors
/// Why it is none.
pub fn of(
    description: &Description,
    element: &Element,
    asked: &Asked,
) -> Result<(Synthesis, Arc<Function>), String> {
    let mut found = find(&word_of(description, asked)).map_err(|e| e.what)?;
    if !matches!(found.source, Source::C(_) | Source::Object(_)) {
        return Err("it is no source and no object".into());
    }
    if asked.program.is_some() {
        found.program.clone_from(&asked.program);
    }
    let make = Make::default();
    let written = found.read(&make).map_err(|e| e.what)?;
    let program = &written.program;
    function::fits(program)?;
    let named = program.ports.clone();
    let ports = match named.is_empty() {
        false => named,
        true => (0..unnamed(description, &element.name))
            .map(|n| n.to_string())
            .collect(),
    };
    let proved = written.check(make.begin()).map_err(|e| e.what)?;
    let model = proved.model(&Limits {
        time: TIME,
        ..Limits::default()
    });
    let decided = function::of(program, model, ports.len())?;
    let function = Arc::new(Function::new(
        element.name.clone(),
        program.clone(),
        decided,
    )?);
    let files = host(Path::new(""));
    let of = function::synthesise("f", function.clone(), &ports, files)?;
    Ok((of, function))
}

/// How many ports of an element are connected, by their numbers; at least two.
fn unnamed(description: &Description, element: &str) -> usize {
    let joins = description.connections.iter().flat_map(|(a, b)| [a, b]);
    let named = joins
        .chain(&description.entries)
        .filter(|p| p.element == element);
    let numbers = named.filter_map(|p| p.port.parse::<u8>().ok());
    numbers.max().map_or(2, |most| usize::from(most) + 1).max(2)
}
