//! Time by handler and by line, from the instructions at which workers were seen.

use std::collections::{BTreeMap, BTreeSet};

use addr2line::Loader;
use millrace_dataplane::Module;
use millrace_object::program::Program;

use crate::document::Time;

/// Time in code that no line of the author's is behind: what runs once a burst, and what precedes the first line.
const BESIDE: &str = "beside the lines";
/// Time outside of the module.
const HOST: &str = "receiving, sending, counting";

/// What emitted functions of an entry are called, before its number (crates/emit/src/codegen, crates/emit/src/sync).
const OF_ENTRIES: [&str; 7] = [
    "run", "burst", "try", "packet", "resume", "prefetch", "taken_up",
];

/// Where workers were, the most first; empty where nothing was seen, or the module has no line table.
#[must_use]
pub fn times(module: &Module, program: &Program, addresses: &[usize]) -> Vec<Time> {
    let Ok(loader) = Loader::new(module.file()) else {
        return Vec::new();
    };
    let lines = program.functions.iter().flat_map(|f| &f.lines).flatten();
    let files: BTreeSet<&str> = lines.map(|l| base(&l.file)).collect();
    let mut seen: BTreeMap<(String, String), u64> = BTreeMap::new();
    for address in addresses {
        let place = module.place(*address);
        let place = place.map(|at| line(&loader, at, program, &files));
        let place = place.unwrap_or_else(|| (String::new(), HOST.to_owned()));
        *seen.entry(place).or_default() += 1;
    }
    let all = addresses.len().max(1) as f64;
    let mut times: Vec<Time> = (seen.into_iter())
        .map(|((handler, line), samples)| Time {
            handler,
            line,
            samples,
            share: samples as f64 / all,
        })
        .collect();
    times.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.line.cmp(&b.line)));
    times
}

/// The handler and the innermost line of the author's at a place: what the fast path's headers do is the line's that calls it.
fn line(loader: &Loader, at: u64, program: &Program, files: &BTreeSet<&str>) -> (String, String) {
    let (mut handler, mut line) = (String::new(), None);
    if let Ok(mut frames) = loader.find_frames(at) {
        while let Ok(Some(frame)) = frames.next() {
            if let Some(place) = frame.location
                && line.is_none()
                && let (Some(file), Some(number)) = (place.file, place.line)
                && files.contains(base(file))
            {
                line = Some(format!("{}:{number}", base(file)));
            }
            if let Some(function) = frame.function {
                handler = function.raw_name().unwrap_or_default().into_owned();
                if let Some(entry) = author(program, &handler) {
                    handler = entry.to_owned();
                }
            }
        }
    }
    (handler, line.unwrap_or_else(|| BESIDE.to_owned()))
}

/// The author's function of an emitted one, whose name has the entry's number behind what it is for: `try0_passes`.
fn author<'a>(program: &'a Program, emitted: &str) -> Option<&'a str> {
    let number = emitted.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '_');
    let digits = number.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = number.split_at(digits.unwrap_or(number.len()));
    let kind = emitted.strip_suffix(number)?;
    if !OF_ENTRIES.contains(&kind) || !(rest.is_empty() || rest.starts_with('_')) {
        return None;
    }
    let entry = program.entries.get(digits.parse::<usize>().ok()?)?;
    let function = program.functions.get(entry.function.0)?;
    let name = function.name.as_str();
    Some(name.strip_prefix("millrace_").unwrap_or(name))
}

fn base(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}
