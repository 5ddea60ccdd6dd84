//! A network function ready to run: its module, and what the program says of ports and reasons.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use millrace_check::{Budget, Checked, Options, Refusal};
use millrace_control::Exposed;
use millrace_dataplane::Module;
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::{self, ModuleOptions};
use millrace_emit::{Built, Timings, alone};
use millrace_object::program::{Program, Role};
use millrace_object::types::{EntryTypes, entry_types};
use millrace_place::Placement;

use crate::failure::Failure;
use crate::progress::Stages;
use crate::word::{self, Found, Source};
use crate::{budget, bundle, trouble};

/// A loaded function.
pub struct Function {
    /// its name
    pub name: String,
    /// the code
    pub module: Arc<Module>,
    /// what it was made from; none for a module alone
    pub program: Option<Program>,
    /// the BPF object that it was made from; none for a module alone
    pub object: Option<PathBuf>,
    /// names of its ports; empty where the program names none
    pub ports: Vec<String>,
    /// names of drop reasons, by index
    pub reasons: Vec<String>,
    /// per object: content at start, or zeros
    pub initial: Vec<Option<Vec<u8>>>,
    /// which packet entry of the module to run
    pub entry: usize,
    /// its state as it is seen from outside
    pub exposed: Arc<Exposed>,
    /// bytes that its objects take, from their declarations
    pub objects_bytes: u64,
    /// from the word to loaded
    pub prepared: Duration,
    /// the parts of that which building took
    pub timings: Timings,
    /// whether the module was there already
    pub from_cache: bool,
}

/// How a function is made.
#[derive(Clone, Debug, Default)]
pub struct Make {
    /// `--set`, as given
    pub set: Vec<String>,
    /// `--capacity`, as given
    pub capacity: Vec<String>,
    /// `--program`
    pub program: Option<String>,
    /// with the sanitizers
    pub sanitize: bool,
    /// how its objects live on several workers; none: on one
    pub placement: Option<Arc<Placement>>,
    /// threads are switched where they touch those, at places that this seed chooses: for verification
    pub yields: Option<u64>,
    /// what is left for the object; none: it begins with the making
    pub budget: Option<Budget>,
}

impl Make {
    /// The same with other capacities of objects, by their names, in place of what `--capacity` says.
    pub fn with_capacities(&self, capacities: &[(String, u64)]) -> Self {
        let own = |text: &&String| {
            let name = text.split_once('=').map_or("", |(name, _)| name);
            !capacities.iter().any(|(n, _)| n == name)
        };
        let own = self.capacity.iter().filter(own).cloned();
        let others = capacities.iter().map(|(name, n)| format!("{name}={n}"));
        Self {
            capacity: own.chain(others).collect(),
            ..self.clone()
        }
    }

    /// Whether anything is asked for.
    fn given(&self) -> bool {
        let lists = self.set.is_empty() && self.capacity.is_empty();
        !lists || self.program.is_some() || self.sanitize
    }
}

impl Function {
    /// From the word that names it to loaded.
    ///
    /// # Errors
    /// What a stage finds; exit status 1 when the program is refused, 2 for all else.
    pub fn load(word: &str, make: &Make) -> Result<Self, Failure> {
        let began = Instant::now();
        let found = word::find(word)?;
        let mut function = match &found.source {
            Source::Module(path) => Self::bare(path, make)?,
            Source::Bundle(folder) => {
                if !make.capacity.is_empty() || make.sanitize {
                    return Err(Failure::wrong(
                        "a bundle is built: it has no --capacity or --sanitize",
                    )
                    .help("give its source or its object"));
                }
                let (program, module) = bundle::open(folder)?;
                let program = settled(program, &make.set)?;
                Self::of(program, &bundle::object(folder), &module, make, &found)?
            }
            Source::C(input) | Source::Object(input) => {
                let mut make = make.clone();
                make.program = make.program.or_else(|| found.program.clone());
                let built = build(input, &make)?;
                let mut function =
                    Self::of(built.program, &built.object, &built.module, &make, &found)?;
                (function.timings, function.from_cache) = (built.timings, built.from_cache);
                function
            }
        };
        budget::maps(&function, |_| 1)?;
        if !function.from_cache {
            millrace_dataplane::memory::give_back();
        }
        function.prepared = began.elapsed();
        Ok(function)
    }

    fn of(
        program: Program,
        object: &Path,
        module: &Path,
        make: &Make,
        found: &Found,
    ) -> Result<Self, Failure> {
        let wanted = make.program.as_deref().or(found.program.as_deref());
        let entry = packet_entry(&program, wanted)?;
        let module = Module::load(module).map_err(|e| {
            Failure::wrong(e).help("build it again; if that does not help, remove the cache folder")
        })?;
        let module = Arc::new(module);
        // Without the object's types, entries are bytes.
        let types = millrace_object::read_file(object).map(|bytes| entry_types(&bytes));
        let exposed = Exposed::new(
            &program.name,
            &module,
            Some(&program),
            types.unwrap_or_default(),
        );
        Ok(Self {
            name: program.name.clone(),
            module,
            exposed: Arc::new(exposed),
            object: Some(object.to_owned()),
            ports: program.ports.clone(),
            reasons: program.reasons.clone(),
            initial: program.objects.iter().map(|o| o.initial.clone()).collect(),
            entry,
            objects_bytes: objects_bytes(&program),
            program: Some(program),
            prepared: Duration::ZERO,
            timings: Timings::default(),
            from_cache: false,
        })
    }

    /// A module that was built before, alone: nothing is known of names.
    fn bare(path: &Path, make: &Make) -> Result<Self, Failure> {
        if make.given() {
            return Err(Failure::wrong(
                "a module alone has no --set, --capacity, --program or --sanitize",
            )
            .help("give its source or its object"));
        }
        let module = Module::load(path).map_err(|e| {
            Failure::wrong(e)
                .help("give a source (.c), an object (.o) or what `millrace build` made")
        })?;
        let name = path
            .file_stem()
            .map_or_else(|| "module".into(), |s| s.to_string_lossy());
        let module = Arc::new(module);
        let exposed = Exposed::new(&name, &module, None, BTreeMap::new());
        Ok(Self {
            name: name.into_owned(),
            objects_bytes: module.state_bytes(),
            module,
            exposed: Arc::new(exposed),
            program: None,
            object: None,
            ports: Vec::new(),
            reasons: vec!["dropped".into()],
            initial: Vec::new(),
            entry: 0,
            prepared: Duration::ZERO,
            timings: Timings::default(),
            from_cache: true,
        })
    }
}

/// Builds a source or an object through the cache, and shows clang's warnings.
pub fn build(input: &Path, make: &Make) -> Result<Built, Failure> {
    let settings = settings(&make.set)?;
    let module = ModuleOptions {
        sanitize: make.sanitize,
        ..ModuleOptions::default()
    };
    let options = millrace_emit::Options {
        module,
        check: Options::within(make.budget.unwrap_or_else(budget::begin)),
        capacities: capacities(&make.capacity)?,
        program: make.program.clone(),
        placement: make.placement.clone(),
        test: make.yields.map(|seed| millrace_emit::Test {
            seed,
            dropped: false,
        }),
    };
    let mut stages = Stages::new();
    let built = Cache::of_user().and_then(|cache| {
        millrace_emit::build(&cache, input, &settings, &options, &mut |s| stages.show(s))
    });
    stages.end();
    let built = built.map_err(trouble::emit)?;
    if !built.warnings.is_empty() {
        crate::screen::err(built.warnings.trim_end());
    }
    Ok(built)
}

/// The program that a word names, compiled if need be, not proved; of an object that holds several, only
/// the wanted one or the one in the word.
pub fn program(word: &str, capacity: &[String], wanted: Option<&str>) -> Result<Program, Failure> {
    typed(word, capacity, wanted).map(|p| p.0)
}

/// The types of entries, by the name of the object.
pub type Types = BTreeMap<String, EntryTypes>;

/// The same, and what keys and values are made of, where that is known.
pub fn typed(
    word: &str,
    capacity: &[String],
    wanted: Option<&str>,
) -> Result<(Program, Types), Failure> {
    let capacities = capacities(capacity)?;
    let (mut program, types) = declared(word, &capacities)?;
    let found = word::find(word)?;
    if let Some(wanted) = wanted.or(found.program.as_deref()) {
        packet_entry(&program, Some(wanted))?;
        program.narrow(wanted);
    }
    for (name, entries) in capacities {
        program.set_capacity(&name, entries).map_err(|e| {
            Failure::wrong(format!("--capacity {name}={entries}: {e}"))
                .help("`millrace check` lists the objects")
        })?;
    }
    Ok((program, types))
}

fn declared(word: &str, capacities: &[(String, u64)]) -> Result<(Program, Types), Failure> {
    let found = word::find(word)?;
    match &found.source {
        Source::Object(path) => {
            let bytes = millrace_object::read_file(path).map_err(|e| trouble::load(&e))?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let program = millrace_object::load_with(&bytes, &name, capacities);
            let program =
                program.map_err(|e| trouble::load(&e.in_file(&path.display().to_string())));
            Ok((program?, entry_types(&bytes)))
        }
        Source::Bundle(folder) => Ok((bundle::open(folder)?.0, Types::new())),
        Source::Module(path) => Err(Failure::wrong(format!(
            "{}: a module alone cannot be examined",
            path.display()
        ))
        .help("give its source or its object")),
        Source::C(path) => compiled(path, capacities),
    }
}

fn compiled(source: &Path, capacities: &[(String, u64)]) -> Result<(Program, Types), Failure> {
    let io = |e: std::io::Error| Failure::wrong(format!("{}: {e}", source.display()));
    let cache = Cache::of_user().map_err(trouble::emit)?;
    let toolchain = toolchain::find(&cache).map_err(trouble::emit)?;
    let include = cache.headers().map_err(trouble::emit)?.join("include");
    let work = tempfile::tempdir().map_err(io)?;
    let object = work.path().join("nf.o");
    let within = budget::begin();
    let compiled = toolchain::compile_nf_within(&toolchain, source, &include, &object, &within);
    let compiled = compiled.map_err(trouble::emit)?;
    if !compiled.warnings.is_empty() {
        crate::screen::err(compiled.warnings.trim_end());
    }
    let bytes = millrace_object::read_file(&object).map_err(|e| trouble::load(&e))?;
    let name = source
        .file_stem()
        .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let program = millrace_object::load_with(&bytes, &name, capacities);
    Ok((program.map_err(|e| trouble::load(&e))?, entry_types(&bytes)))
}

/// Whether a program is safe, and what the proof learned, within what its object may take.
pub fn prove(program: &Program, budget: Budget) -> Result<Checked, Vec<Refusal>> {
    millrace_check::check(program, &Options::within(budget))
}

/// The same for what this word names, of which a refusal shows the source.
pub fn proved(word: &str, program: &Program, budget: Budget) -> Result<Checked, Failure> {
    prove(program, budget).map_err(|r| trouble::refused(&program.name, &word::folder_of(word), &r))
}

/// A function's name and the C that is generated for it.
pub fn emitted(word: &str) -> Result<(String, String), Failure> {
    let program = program(word, &[], None)?;
    let checked = proved(word, &program, budget::begin())?;
    let file = format!("{}.c", millrace_emit::identifier(&program.name));
    let text = alone::emit(&program, &checked, &file).map_err(trouble::emit)?;
    Ok((program.name, text))
}

/// The folder that a function stands in.
pub fn folder(word: &str) -> Result<PathBuf, Failure> {
    Ok(word::find(word)?.folder)
}

/// Bytes that the objects take, from their declarations.
pub fn objects_bytes(program: &Program) -> u64 {
    program
        .objects
        .iter()
        .fold(0, |sum, o| o.bytes().saturating_add(sum))
}

/// The program with its settings applied.
pub fn settled(mut program: Program, set: &[String]) -> Result<Program, Failure> {
    for (name, value) in settings(set)? {
        program.set_param(&name, &value).map_err(|e| {
            Failure::wrong(format!("--set {name}={value}: {e}"))
                .help("`millrace check` lists the parameters")
        })?;
    }
    Ok(program)
}

/// `NAME=N` of `--capacity`.
pub fn capacities(given: &[String]) -> Result<Vec<(String, u64)>, Failure> {
    let capacity = |text: &String| {
        let pair = text
            .split_once('=')
            .and_then(|(n, c)| Some((n.to_owned(), c.parse().ok()?)));
        pair.filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            Failure::wrong(format!("--capacity {text}: not a capacity"))
                .help("write --capacity OBJECT=ENTRIES, as in flows=1000000")
        })
    };
    given.iter().map(capacity).collect()
}

/// `NAME=VALUE` of `--set`.
pub fn settings(set: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let setting = |text: &String| {
        let pair = text
            .split_once('=')
            .filter(|(name, value)| !name.is_empty() && !value.is_empty());
        pair.map(|(n, v)| (n.to_owned(), v.to_owned()))
            .ok_or_else(|| {
                Failure::wrong(format!("--set {text}: not a setting"))
                    .help("write --set NAME=VALUE")
            })
    };
    set.iter().map(setting).collect()
}

/// The index, among the entries that take packets, of the one that is wanted: by its function's or
/// its section's name, or the only one, or the only one that no program array holds.
fn packet_entry(program: &Program, wanted: Option<&str>) -> Result<usize, Failure> {
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
                Failure::wrong(format!("{}: there is no program `{wanted}`", program.name))
                    .help(format!("the programs are {}", list()))
            })
        }
        None if names.len() == 1 => Ok(0),
        None if let [only] = begins.as_slice() => Ok(*only),
        None if names.is_empty() => Err(Failure::wrong(format!(
            "{}: no entry takes packets",
            program.name
        ))
        .help("write ON_PACKET, or SEC(\"xdp\")")),
        None => Err(Failure::wrong(format!(
            "{}: {} programs take packets",
            program.name,
            names.len()
        ))
        .help(format!("choose one with --program: {}", list()))),
    }
}
