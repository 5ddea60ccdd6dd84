//! A network function ready to run: its module, and what the program says of ports and reasons.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use millrace_dataplane::Module;

use crate::failure::Failure;

/// A loaded function.
pub struct Function {
    /// its name
    pub name: String,
    /// the code
    pub module: Arc<Module>,
    /// names of its ports; empty where the program names none
    pub ports: Vec<String>,
    /// names of drop reasons, by index
    pub reasons: Vec<String>,
    /// per object: content at start, or zeros
    pub initial: Vec<Option<Vec<u8>>>,
    /// which packet entry of the module to run
    pub entry: usize,
    /// bytes that its objects take, from their declarations
    pub objects_bytes: u64,
    /// how long it took from source to loaded
    pub prepared: Duration,
}

impl Function {
    /// A module that was built before, alone: nothing is known of names.
    pub fn bare(path: &Path) -> Result<Self, Failure> {
        let began = Instant::now();
        let module = Module::load(path).map_err(|e| {
            Failure::wrong(e)
                .help("give a source (.c), an object (.o) or a module that `millrace build` made")
        })?;
        let name = path
            .file_stem()
            .map_or_else(|| "module".into(), |s| s.to_string_lossy());
        Ok(Self {
            name: name.into_owned(),
            objects_bytes: module.state_bytes(),
            module: Arc::new(module),
            ports: Vec::new(),
            reasons: vec!["dropped".into()],
            initial: Vec::new(),
            entry: 0,
            prepared: began.elapsed(),
        })
    }
}
