//! A network function ready to run: its module, and what the program says of ports and reasons.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use millrace_check::egress::egress;
use millrace_check::{Budget, Options};
use millrace_control::Exposed;
use millrace_dataplane::module::{Entry, Homes};
use millrace_dataplane::packet::Layout;
use millrace_dataplane::replica::{Heavies, Small};
use millrace_dataplane::worker::slow::SlowPaths;
use millrace_dataplane::worker::{Behaviour, Code, Link, ModuleCode};
use millrace_dataplane::{Config, Module, Share};
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::ModuleOptions;
use millrace_emit::{Built, Stage, Timings};
use millrace_object::helper;
use millrace_object::insn::Insn;
use millrace_object::program::Program;
use millrace_object::types::entry_types;
use millrace_place::{Held, Placement};
use millrace_steer::Owners;

use crate::budget::Budgets;
use crate::click::slow::{self, Slow};
use crate::find::{Found, Source};
use crate::written::{Proved, Types, packet_entry, set};
use crate::{Error, bundle, place, rules, seed, verdicts};

/// How a function is made.
#[derive(Clone, Debug, Default)]
pub struct Make {
    /// parameters by name, with their values as text: the parameter's type says how that is read
    pub settings: Vec<(String, String)>,
    /// state objects by name, and the entries that each shall have room for; `*` stands for all whose author left it to
    /// the loader
    pub capacities: Vec<(String, u64)>,
    /// which program of an object that holds several
    pub program: Option<String>,
    /// with the sanitizers, whose runtime must be in the process from its start
    pub sanitize: bool,
    /// how its objects live on several workers; none: on one
    pub placement: Option<Arc<Placement>>,
    /// on how many workers the placement puts it; 0 and 1: on one
    pub workers: usize,
    /// threads are switched where they touch shared objects, at places that this seed chooses: for verification
    pub yields: Option<u64>,
    /// what packets of one worker met of another's is counted: for a profile
    pub profile: bool,
    /// what packets see of other workers' parts of numbers is noted: for verification
    pub noted: bool,
    /// what is left for the object; none: its budget begins with the making
    pub budget: Option<Budget>,
    /// what an object may take
    pub budgets: Budgets,
}

impl Make {
    /// The same with other capacities of objects in place of those of the same names.
    #[must_use]
    pub fn with_capacities(&self, capacities: &[(String, u64)]) -> Self {
        let own = |(name, _): &&(String, u64)| !capacities.iter().any(|(n, _)| n == name);
        let own = self.capacities.iter().filter(own);
        Self {
            capacities: own.chain(capacities).cloned().collect(),
            ..self.clone()
        }
    }

    /// What is left for the object.
    #[must_use]
    pub fn begin(&self) -> Budget {
        self.budget.unwrap_or_else(|| self.budgets.begin())
    }

    /// Whether anything is asked for.
    fn given(&self) -> bool {
        let lists = self.settings.is_empty() && self.capacities.is_empty();
        !lists || self.program.is_some() || self.sanitize
    }
}

/// Ports of a function that names none, as far as is looked where it sends packets: more are seldom connected.
const UNNAMED: u32 = 8;

/// A loaded function.
pub struct Function {
    /// its name
    pub name: String,
    /// the code
    pub module: Arc<Module>,
    /// what it was made from; none for a module alone
    pub program: Option<Program>,
    /// the BPF object that it was made from; none for a module alone, and for a linked row
    pub object: Option<PathBuf>,
    /// the folder that it stands in; its packet tests are in `tests` there
    pub folder: PathBuf,
    /// names of its ports; empty where the program names none
    pub ports: Vec<String>,
    /// names of drop reasons, by index
    pub reasons: Vec<String>,
    /// per object: content at start, or zeros
    pub initial: Vec<Option<Vec<u8>>>,
    /// rules that classifiers begin with
    pub rules: Vec<Entry>,
    /// which packet entry of the module to run
    pub entry: usize,
    /// its state as it is seen from outside
    pub exposed: Arc<Exposed>,
    /// bytes that its objects take, from their declarations
    pub objects_bytes: u64,
    /// how buffers are laid out for it: exactly, if it has the sanitizers
    pub layout: Layout,
    /// on how many workers it was made to run
    pub workers: usize,
    /// how its objects live on them; none on one
    pub placement: Option<Arc<Placement>>,
    /// where a few heavy keys are replicated: the code for these, beside the one for each worker's part
    pub small: Option<Arc<Module>>,
    /// what runs packets that it hands over; none of a function that is not synthesised, or hands none over
    pub slow: Option<Arc<slow::Configuration>>,
    /// clang's warnings about the source, if it was compiled
    pub warnings: String,
    /// from the word to loaded
    pub prepared: Duration,
    /// the parts of that which building took
    pub timings: Timings,
    /// whether the module was there already
    pub from_cache: bool,
}

impl Found {
    /// Builds the function, through the cache, and loads it. `progress` hears of each stage of building.
    ///
    /// # Errors
    /// What a stage finds; [`crate::Kind::No`] when the program is refused.
    pub fn load(&self, make: &Make, progress: &mut dyn FnMut(Stage)) -> Result<Function, Error> {
        let began = Instant::now();
        let mut function = match &self.source {
            Source::Module(path) => self.bare(path, make)?,
            Source::Bundle(folder) => {
                if !make.capacities.is_empty() || make.sanitize {
                    return Err(Error::wrong(
                        "a bundle is built: it has no --capacity or --sanitize",
                    )
                    .help("give its source or its object"));
                }
                let (mut program, module) = bundle::open(folder)?;
                set(&mut program, &make.settings)?;
                let object = bundle::object(folder);
                let types = types(&object);
                self.loaded(program, (Some(object), types), &module, make)?
            }
            Source::C(_) | Source::Object(_) | Source::Linked(_) => {
                let (built, types) = self.built(make, progress)?;
                let mut function =
                    self.loaded(built.program, (built.object, types), &built.module, make)?;
                (function.timings, function.from_cache) = (built.timings, built.from_cache);
                function.warnings = built.warnings;
                if let (Source::C(_), Some(program)) = (&self.source, &function.program) {
                    function.warnings.push_str(&verdicts::warnings(program));
                }
                if make.sanitize {
                    function.layout = Layout::Exact;
                }
                function
            }
        };
        make.budgets
            .holds(&function.name, &function.module, |_| 1)?;
        // With one worker, too, where other machines have the other parts.
        let parted = make.placement.as_ref().is_some_and(|placement| {
            placement.buckets.is_some() && placement.names(|h| *h == Held::Divided).next().is_some()
        });
        if make.workers > 1 || parted {
            function.divide(make)?;
            let elephants = make.placement.as_ref().and_then(|p| p.elephants.as_ref());
            if let Some(elephants) = elephants {
                let replicas = Make {
                    placement: Some(elephants.replicas.clone()),
                    workers: 1,
                    ..make.with_capacities(
                        &make
                            .placement
                            .iter()
                            .flat_map(|p| p.whole())
                            .collect::<Vec<_>>(),
                    )
                };
                function.small = Some(self.load(&replicas, progress)?.module);
            }
        }
        function.prepared = began.elapsed();
        Ok(function)
    }

    /// Builds a source or an object through the cache.
    ///
    /// # Errors
    /// What a stage finds; or it is built already.
    pub fn build(&self, make: &Make, progress: &mut dyn FnMut(Stage)) -> Result<Built, Error> {
        Ok(self.built(make, progress)?.0)
    }

    /// The same, with the types of entries.
    fn built(&self, make: &Make, progress: &mut dyn FnMut(Stage)) -> Result<(Built, Types), Error> {
        let options = millrace_emit::Options {
            module: ModuleOptions {
                sanitize: make.sanitize,
                ..ModuleOptions::of_command()
            },
            check: Options::within(make.begin()),
            capacities: make.capacities.clone(),
            program: make.program.clone().or_else(|| self.program.clone()),
            placement: make.placement.clone(),
            test: (make.yields.is_some() || make.noted).then(|| millrace_emit::Test {
                seed: make.yields.unwrap_or(0),
                dropped: false,
                log: make.noted || make.placement.as_ref().is_some_and(|p| p.transacts()),
            }),
            profile: make.profile,
        };
        let cache = Cache::of_user()?;
        let built = match &self.source {
            Source::C(input) | Source::Object(input) => {
                millrace_emit::build(&cache, input, &make.settings, &options, progress)?
            }
            Source::Linked(_) => {
                let written = self.read(make)?;
                let mut built = millrace_emit::build_program(
                    &cache,
                    (written.program, &written.objects),
                    Path::new(&self.word),
                    &options,
                    progress,
                )?;
                built.warnings.insert_str(0, &written.warnings);
                return Ok((built, written.types));
            }
            Source::Bundle(_) | Source::Module(_) => {
                return Err(Error::wrong(format!("{} is built already", self.word))
                    .help("give a source (.c) or an object (.o)"));
            }
        };
        let types = built.object.as_deref().map(types).unwrap_or_default();
        Ok((built, types))
    }

    fn loaded(
        &self,
        program: Program,
        (object, types): (Option<PathBuf>, Types),
        module: &Path,
        make: &Make,
    ) -> Result<Function, Error> {
        let wanted = make.program.as_deref().or(self.program.as_deref());
        let entry = packet_entry(&program, wanted)?;
        let module = Arc::new(module_of(
            module,
            "build it again; if that does not help, remove the cache folder",
        )?);
        let exposed = Exposed {
            linked: matches!(self.source, Source::Linked(_)),
            ..Exposed::new(&program.name, &module, Some(&program), types)
        };
        Ok(Function {
            name: program.name.clone(),
            object,
            ports: program.ports.clone(),
            reasons: program.reasons.clone(),
            initial: program.objects.iter().map(|o| o.initial.clone()).collect(),
            rules: rules::given(&program)?,
            entry,
            objects_bytes: objects_bytes(&program),
            program: Some(program),
            ..self.alone(module, exposed)
        })
    }

    /// A module that was built before, alone: nothing is known of names.
    fn bare(&self, path: &Path, make: &Make) -> Result<Function, Error> {
        if make.given() {
            return Err(Error::wrong(
                "a module alone has no --set, --capacity, --program or --sanitize",
            )
            .help("give its source or its object"));
        }
        let module = Arc::new(module_of(
            path,
            "give a source (.c), an object (.o) or what `millrace build` made",
        )?);
        let name = path
            .file_stem()
            .map_or_else(|| "module".into(), |s| s.to_string_lossy());
        let exposed = Exposed::new(&name, &module, None, BTreeMap::new());
        Ok(Function {
            name: name.into_owned(),
            from_cache: true,
            ..self.alone(module, exposed)
        })
    }

    fn alone(&self, module: Arc<Module>, exposed: Exposed) -> Function {
        Function {
            name: String::new(),
            objects_bytes: module.state_bytes(),
            module,
            program: None,
            object: None,
            folder: self.folder.clone(),
            ports: Vec::new(),
            reasons: vec!["dropped".into()],
            initial: Vec::new(),
            rules: Vec::new(),
            entry: 0,
            exposed: Arc::new(exposed),
            layout: Layout::Pooled,
            workers: 1,
            placement: None,
            small: None,
            slow: self.slow.clone(),
            warnings: String::new(),
            prepared: Duration::ZERO,
            timings: Timings::default(),
            from_cache: false,
        }
    }
}

impl Function {
    /// Takes the placement over: whoever looks at the state from outside sees it as one.
    fn divide(&mut self, make: &Make) -> Result<(), Error> {
        (self.workers, self.placement) = (make.workers, make.placement.clone());
        let shares = self.shares();
        let copies = |object: usize| match shares.get(object).map(|s| &s.held) {
            Some(held) if held.shared() => 1,
            _ => make.workers as u64,
        };
        make.budgets.holds(&self.name, &self.module, copies)?;
        // Just loaded: nobody else has it yet.
        if let Some(exposed) = Arc::get_mut(&mut self.exposed) {
            exposed.shares = shares;
            exposed.owning = self.placement.as_ref().and_then(|p| p.owning.clone());
        }
        Ok(())
    }

    /// Proves the program again, with what was set: what a model and a plan of it are made from.
    ///
    /// # Errors
    /// It is refused, or it is a module alone, of which nothing is known.
    pub fn check(&self, budget: Budget) -> Result<Proved<'_>, Error> {
        let program = self.program.as_ref().ok_or_else(|| {
            Error::wrong("a module alone has no model").help("give its source or its object")
        })?;
        Proved::new(program, &self.folder, budget)
    }

    /// Share of each object, in the module's order; none on one worker.
    #[must_use]
    pub fn shares(&self) -> Vec<Share> {
        let of = |placement: &Arc<Placement>| Share::of(placement, &self.module);
        self.placement.as_ref().map_or_else(Vec::new, of)
    }

    /// Owners of the packets of each of `ports` ports; none on one worker.
    ///
    /// # Errors
    /// More workers than the indirection table has entries.
    pub fn owners(&self, ports: usize) -> Result<Vec<Owners>, Error> {
        match &self.placement {
            Some(placement) => place::owners(placement, ports, self.workers),
            None => Ok(Vec::new()),
        }
    }

    /// Whether it may draw random numbers; a module alone does not say that it draws none.
    #[must_use]
    pub fn draws(&self) -> bool {
        let Some(program) = &self.program else {
            return true;
        };
        let mut insns = program.functions.iter().flat_map(|f| &f.insns);
        insns.any(|insn| match *insn {
            Insn::Call { helper } => {
                let helper = helper::by_number(helper);
                helper.is_some_and(|h| h.effects.random)
            }
            _ => false,
        })
    }

    /// The seed of a function of a row whose seed is `row`, behind so many functions that draw, of which it may be one more. Functions
    /// that draw must not draw the same; sketches of all have the row's seed, as those of a linked row have (docs/chains.md).
    #[must_use]
    pub fn seed(&self, row: u64, drawing: &mut u64) -> u64 {
        let seed = row.wrapping_add(*drawing);
        match self.draws() {
            true => {
                *drawing += 1;
                seed
            }
            false => row,
        }
    }

    /// Its state at start: with these entries, sketches and random draws from this seed, hashes from a secret.
    #[must_use]
    pub fn state(&self, seed: u64, mut entries: Vec<Entry>) -> Config {
        // Those that are named come later, and replace what was given.
        entries.splice(0..0, self.rules.iter().cloned());
        let homes = self.placement.as_deref().and_then(Homes::of_placement);
        Config {
            hash_seed: seed::secret(),
            sketch_seed: seed,
            time: 0,
            initial: self.initial.clone(),
            entries,
            homes: homes.map(Arc::new),
            resumed: false,
        }
    }

    /// What heavy keys have, where only these are replicated.
    #[must_use]
    pub fn heavies(&self, seed: u64, entries: &[Entry]) -> Option<Small> {
        let module = self.small.clone()?;
        let placement = self.placement.as_ref()?;
        let elephants = placement.elephants.as_ref()?;
        let parts = placement.objects.iter().enumerate();
        let divided = parts.filter(|(_, o)| o.held == Held::Divided).map(|p| p.0);
        Some(Small {
            module,
            config: self.state(seed, entries.to_vec()),
            heavies: Heavies {
                keys: elephants.keys.clone(),
                objects: divided.collect(),
                row: elephants.row,
            },
        })
    }

    /// The function as an element of what runs.
    ///
    /// # Errors
    /// Contents at start of an object that is divided over the workers, of which the key does not tell the worker.
    pub fn link(&self, seed: u64, entries: Vec<Entry>, prefetch: bool) -> Result<Link, Error> {
        let entries = match &self.placement {
            Some(placement) => place::owned(placement, self.workers, &self.exposed, entries)?,
            None => entries,
        };
        Ok(Link {
            name: self.name.clone(),
            code: Code::Module(ModuleCode {
                module: self.module.clone(),
                small: self.heavies(seed, &entries).map(Arc::new),
                config: self.state(seed, entries),
                program: self.entry,
                prefetch,
                behaviour: self.behaviour(),
                replicas: None,
            }),
            reasons: self.reasons.clone(),
            objects_bytes: self.objects_bytes + self.small.as_ref().map_or(0, |m| m.state_bytes()),
            // What elements held when packets began is one, for workers and for those who look from outside.
            shares: match &self.placement {
                Some(_) => self.exposed.shares.clone(),
                None => Vec::new(),
            },
            slow: self.slow_path()?,
            linked: self.exposed.linked,
        })
    }
}

impl Function {
    /// What runs packets that it hands over.
    fn slow_path(&self) -> Result<Option<Arc<dyn SlowPaths>>, Error> {
        let Some(configuration) = &self.slow else {
            return Ok(None);
        };
        let slow = Slow::new((**configuration).clone()).map_err(Error::wrong)?;
        Ok(Some(Arc::new(slow)))
    }

    /// What its program says of it beside other elements of a chain; nothing of a module alone.
    fn behaviour(&self) -> Behaviour {
        let Some(program) = &self.program else {
            return Behaviour::default();
        };
        let ports = match program.ports.len() {
            0 => UNNAMED,
            named => named as u32,
        };
        Behaviour {
            stateless: program.objects.iter().all(|o| o.read_only || o.leads_on()),
            egress: egress(program, self.entry, ports),
        }
    }
}

/// Types of the entries of an object file; without them entries are bytes.
fn types(object: &Path) -> Types {
    let types = millrace_object::read_file(object).map(|bytes| entry_types(&bytes));
    types.unwrap_or_default()
}

fn module_of(path: &Path, help: &str) -> Result<Module, Error> {
    Module::load(path).map_err(|e| Error::wrong(e).help(help))
}

/// Bytes that the objects take, from their declarations.
#[must_use]
pub fn objects_bytes(program: &Program) -> u64 {
    let objects = program.objects.iter();
    objects.fold(0, |sum, o| o.bytes().saturating_add(sum))
}
