//! Traces, and functions on workers that have buckets.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use millrace::{Asked, Function, Make, place};
use millrace_dataplane::classes::Classes;
use millrace_dataplane::moved::Contents;
use millrace_traffic::capture::Writer;
use millrace_traffic::generate::{Generator, Spec};

/// Which packets the LAN sends.
pub const SPLIT: &str = "lan=10.0.0.0/16";

/// Writes what the specification says.
pub fn trace(file: &Path, spec: Spec) -> Result<String> {
    let mut generator = Generator::new(spec).map_err(|e| anyhow!("{e}"))?;
    let mut writer = Writer::create(file, &["a"])?;
    while let Some(record) = generator.next() {
        writer.write(record.time_ns, 0, record.original_length, record.data)?;
    }
    writer.finish()?;
    Ok(file.display().to_string())
}

/// A function that is loaded, and its buckets.
pub struct Made {
    pub function: Function,
    pub classes: Arc<Classes>,
    pub contents: Contents,
}

/// FUNCTION, or FUNCTION:OBJECT=N,… with the room of its objects; `copied`: it notes what changes.
pub fn made(word: &str, workers: usize, copied: bool) -> Result<Made> {
    let (name, capacities) = word.split_once(':').unwrap_or((word, ""));
    let mut make = Make::default();
    for one in capacities.split(',').filter(|c| !c.is_empty()) {
        let (object, entries) = one.split_once('=').context("OBJECT=N")?;
        make.capacities.push((object.to_owned(), entries.parse()?));
    }
    let failed = |e: millrace::Error| anyhow!("{word}: {e}");
    let found = millrace::find(name).map_err(failed)?;
    let written = found.read(&make).map_err(failed)?;
    let proved = written.check(make.begin()).map_err(failed)?;
    let asked = Asked {
        cores: workers,
        copied,
        ..Asked::default()
    };
    let within = (millrace::model::SECONDS, make.begin());
    let mut model = proved.model_for(asked.purpose(), within, &mut || {});
    let arranged = proved.arrange(&mut model, &asked).map_err(failed)?;
    let arranged = arranged.several(workers).map_err(failed)?;
    let function = found.load(&arranged.divided(&make), &mut |_| {});
    let function = function.map_err(failed)?;
    let placement = function.placement.as_deref();
    let (classes, contents) =
        place::buckets(&function.name, placement, &function.module, workers).map_err(failed)?;
    Ok(Made {
        function,
        classes,
        contents,
    })
}
