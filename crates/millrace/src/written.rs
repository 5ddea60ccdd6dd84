//! A program as it is written, and as it is proved: what the model and the plan are made from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use millrace_check::{Budget, Checked, Options};
use millrace_emit::alone;
use millrace_emit::cache::Cache;
use millrace_history::History;
use millrace_model::{Limits, Model, kept};
use millrace_object::program::{Program, Role};
use millrace_object::types::{EntryTypes, entry_types};

use crate::find::{Found, Source};
use crate::{Error, Make, bundle, hints, verdicts};

/// The types of entries, by the name of the object.
pub type Types = BTreeMap<String, EntryTypes>;

/// A program, compiled if need be, with its settings and capacities, not proved.
pub struct Written {
    /// decoded instructions, state objects, parameters, ports
    pub program: Program,
    /// what keys and values are made of, where that is known
    pub types: Types,
    /// clang's warnings about the source, if it was compiled
    pub warnings: String,
    /// the function's folder; its refusals show sources below it
    pub folder: PathBuf,
    /// it comes from a bundle, whose module is as it is
    pub built: bool,
    /// bytes of the BPF objects that it is read from, one after the other; none of a bundle
    pub objects: Vec<u8>,
}

/// A program that was proved safe, and what the proof learned.
pub struct Proved<'a> {
    /// the program
    pub program: &'a Program,
    /// the proof
    pub checked: Checked,
    /// its module was built before: what it locks and how large its objects are does not change any more
    pub built: bool,
}

impl Proved<'_> {
    /// What of its packets reaches state, for plans that may replicate it.
    #[must_use]
    pub fn history(&self) -> Arc<History> {
        Arc::new(History::of(self.program, &self.checked))
    }
}

impl Found {
    /// Reads the program, which is compiled to BPF first if it is C; of an object that holds several, only the wanted
    /// one or the one in the word.
    ///
    /// # Errors
    /// It cannot be read or compiled, it is a module alone, or it has not what `make` names.
    pub fn read(&self, make: &Make) -> Result<Written, Error> {
        let mut written = self.declared(make)?;
        let program = &mut written.program;
        if let Some(wanted) = make.program.as_deref().or(self.program.as_deref()) {
            packet_entry(program, Some(wanted))?;
            program.narrow(wanted);
        }
        for (name, entries) in &make.capacities {
            program.set_capacity(name, *entries).map_err(|e| {
                Error::wrong(format!("--capacity {name}={entries}: {e}"))
                    .help("`millrace check` lists the objects")
            })?;
        }
        set(program, &make.settings)?;
        Ok(written)
    }

    fn declared(&self, make: &Make) -> Result<Written, Error> {
        let (object, path, warnings) = match &self.source {
            Source::Linked(row) => return self.linked(row, make),
            Source::Object(path) => (path.clone(), path, String::new()),
            Source::Bundle(folder) => {
                let program = bundle::open(folder)?.0;
                return Ok(Written {
                    program,
                    types: Types::new(),
                    warnings: String::new(),
                    folder: self.folder.clone(),
                    built: true,
                    objects: Vec::new(),
                });
            }
            Source::Module(path) => {
                let path = path.display();
                return Err(
                    Error::wrong(format!("{path}: a module alone cannot be examined"))
                        .help("give its source or its object"),
                );
            }
            Source::C(path) => {
                let cache = Cache::of_user()?;
                let within = make.budgets.begin();
                let (object, warnings) = millrace_emit::object(&cache, path, &within)?;
                (object, path, warnings)
            }
        };
        let bytes = millrace_object::read_file(&object)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let program = millrace_object::load_with(&bytes, &name, &make.capacities);
        let program = program.map_err(|e| match &self.source {
            Source::Object(path) => e.in_file(&path.display().to_string()),
            Source::C(path) => hints::in_source(e, path),
            _ => e,
        })?;
        let mut warnings = warnings;
        if matches!(self.source, Source::C(_)) {
            warnings.push_str(&verdicts::warnings(&program));
        }
        Ok(Written {
            program,
            types: entry_types(&bytes),
            warnings,
            folder: self.folder.clone(),
            built: false,
            objects: bytes,
        })
    }
}

/// The folder where models are kept: of the user's cache, which others may not write, if there is one.
#[must_use]
pub fn models() -> Option<PathBuf> {
    Some(Cache::of_user().ok()?.models())
}

impl Written {
    /// Proves it safe, within a budget.
    ///
    /// # Errors
    /// It is refused: [`Error::refused`] says for what.
    pub fn check(&self, budget: Budget) -> Result<Proved<'_>, Error> {
        let mut proved = Proved::new(&self.program, &self.folder, budget)?;
        proved.built = self.built;
        Ok(proved)
    }
}

impl<'a> Proved<'a> {
    pub(crate) fn new(program: &'a Program, folder: &Path, budget: Budget) -> Result<Self, Error> {
        match millrace_check::check(program, &Options::within(budget)) {
            Ok(checked) => Ok(Self {
                program,
                checked,
                built: false,
            }),
            Err(refusals) => Err(Error::refused(&program.name, folder, refusals)),
        }
    }

    /// Every path of it, or as many as the limits allow; from the user's cache if it was made before.
    #[must_use]
    pub fn model(&self, limits: &Limits) -> Model {
        let cache = Cache::of_user().ok();
        let shelf = cache.as_ref().map(Cache::models);
        let (model, was) = kept::model(self.program, &self.checked, limits, shelf.as_deref());
        if let Some(cache) = cache.filter(|_| !was) {
            cache.trim();
        }
        model
    }

    /// Whether the user's cache has the model that a plan is made from.
    #[must_use]
    pub fn is_followed(&self) -> bool {
        let folder = models();
        folder.is_some_and(|f| kept::is_there(self.program, &Limits::default(), &f))
    }

    /// The same as far as is seen without following paths: what the proof of safety says of accesses, which are all that there
    /// may be.
    pub(crate) fn glance(&self, budget: Budget) -> Model {
        let limits = Limits {
            time: Duration::ZERO,
            budget: Some(budget),
            ..Limits::default()
        };
        millrace_model::model(self.program, &self.checked, &limits)
    }

    /// The C that is generated for one core.
    ///
    /// # Errors
    /// Something of it is not supported.
    pub fn emit(&self) -> Result<String, Error> {
        let file = format!("{}.c", millrace_emit::identifier(&self.program.name));
        Ok(alone::emit(self.program, &self.checked, &file)?)
    }
}

/// Sets parameters.
pub(crate) fn set(program: &mut Program, settings: &[(String, String)]) -> Result<(), Error> {
    for (name, value) in settings {
        program.set_param(name, value).map_err(|e| {
            Error::wrong(format!("--set {name}={value}: {e}"))
                .help("`millrace check` lists the parameters")
        })?;
    }
    Ok(())
}

/// The index, among the entries that take packets, of the one that is wanted: by its function's or
/// its section's name, or the only one, or the only one that no program array holds.
pub(crate) fn packet_entry(program: &Program, wanted: Option<&str>) -> Result<usize, Error> {
    let entries = program
        .entries
        .iter()
        .filter(|e| matches!(e.role, Role::Xdp | Role::OnPacket));
    let names: Vec<(&str, &str)> = entries
        .filter_map(|e| program.functions.get(e.function.0))
        .map(|f| (f.name.as_str(), f.section.as_str()))
        .collect();
    let list = || {
        names
            .iter()
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    // Programs of handlers have no program arrays, so that places among all entries are the same.
    let begins: Vec<usize> = (0..names.len())
        .filter(|entry| !program.is_tail_call_target(*entry))
        .collect();
    match wanted {
        Some(wanted) => {
            let by_name = names.iter().position(|(name, _)| *name == wanted);
            let found = by_name.or_else(|| names.iter().position(|(_, s)| *s == wanted));
            found.ok_or_else(|| {
                Error::wrong(format!("{}: there is no program `{wanted}`", program.name))
                    .help(format!("the programs are {}", list()))
            })
        }
        None if names.len() == 1 => Ok(0),
        None if let [only] = begins.as_slice() => Ok(*only),
        None if names.is_empty() => Err(Error::wrong(format!(
            "{}: no entry takes packets",
            program.name
        ))
        .help("write ON_PACKET, or SEC(\"xdp\")")),
        None => Err(Error::wrong(format!(
            "{}: {} programs take packets",
            program.name,
            names.len()
        ))
        .help(format!("choose one with --program: {}", list()))),
    }
}
