//! Bundled functions, plans written by hand, and traffic.
#![allow(dead_code, unused_imports)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millrace_check::Checked;
use millrace_dataplane::Module;
use millrace_dataplane::module::{Config, Homes};
use millrace_emit::Test;
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::ModuleOptions;
use millrace_model::{Limits, Model, kept};
use millrace_object::Program;
use millrace_object::program::{ObjectId, StateObject};
use millrace_place::{Held, Word};
use millrace_steer::{Field, Kind, Nic, Rss, Steering, nic};
use millrace_traffic::generate::{Mix, Spec};
use millrace_verify::{
    Build, Bytes, Case, Deal, Dispatch, Findings, Generated, Schedule, Trace, VerifyError, Wanted,
    text, verify,
};

pub use Field::{DestinationAddress, DestinationPort, SourceAddress, SourcePort};

/// ns.
const SECOND: u64 = 1_000_000_000;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a function is built from.
struct Sources {
    cache: Cache,
    source: PathBuf,
    settings: Vec<(String, String)>,
    capacities: Vec<(String, u64)>,
}

/// Something wrong that is put into the parallel side alone: a text, and what stands there instead of it.
#[derive(Clone, Copy, Debug)]
pub struct Plant {
    pub place: Place,
    pub text: &'static str,
    pub wrong: &'static str,
}

/// Where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// the function's source
    Source,
    /// the emitted code
    Module,
    /// a header of the fast path
    Header(&'static str),
}

impl Plant {
    fn into(self, text: &str) -> String {
        assert!(
            text.contains(self.text),
            "there is no `{}` any more",
            self.text
        );
        text.replace(self.text, self.wrong)
    }
}

/// What is compared here is not the optimiser's work, which would be most of the time.
const QUICK: ModuleOptions = ModuleOptions {
    sanitize: false,
    strict: false,
    unoptimised: true,
};

impl Sources {
    fn built(&self, wanted: &Wanted<'_>, dropped: bool) -> (Arc<Module>, Program) {
        let capacities = wanted.capacities;
        let mut all = self.capacities.clone();
        all.retain(|(n, _)| !capacities.iter().any(|(m, _)| m == n));
        all.extend(capacities.iter().cloned());
        let options = millrace_emit::Options {
            capacities: all,
            placement: wanted.placement.cloned().map(Arc::new),
            test: (wanted.yields.is_some() || wanted.noted).then(|| Test {
                seed: wanted.yields.unwrap_or(0),
                dropped,
                log: wanted.noted || wanted.placement.is_some_and(|p| p.transacts()),
            }),
            module: QUICK,
            ..Default::default()
        };
        let (cache, source) = (&self.cache, &self.source);
        let built = millrace_emit::build(cache, source, &self.settings, &options, &mut |_| {});
        let built = built.unwrap();
        (
            Arc::new(Module::load(&built.module).unwrap()),
            built.program,
        )
    }

    /// The module with something wrong in it.
    fn planted(&self, wanted: &Wanted<'_>, plant: Plant) -> Arc<Module> {
        let folder = tempfile::tempdir().unwrap();
        let mut all = self.capacities.clone();
        all.retain(|(n, _)| !wanted.capacities.iter().any(|(m, _)| m == n));
        all.extend(wanted.capacities.iter().cloned());
        let options = millrace_emit::Options {
            capacities: all,
            placement: wanted.placement.cloned().map(Arc::new),
            test: (wanted.yields.is_some() || wanted.noted).then(|| Test {
                seed: wanted.yields.unwrap_or(0),
                dropped: false,
                log: wanted.noted,
            }),
            module: QUICK,
            ..Default::default()
        };
        let mut source = self.source.clone();
        if plant.place == Place::Source {
            // With what it includes beside it.
            for entry in std::fs::read_dir(self.source.parent().unwrap()).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
                }
            }
            source = folder.path().join(self.source.file_name().unwrap());
            let text = plant.into(&std::fs::read_to_string(&self.source).unwrap());
            std::fs::write(&source, text).unwrap();
        }
        let (cache, settings) = (&self.cache, &self.settings);
        let built = millrace_emit::build(cache, &source, settings, &options, &mut |_| {}).unwrap();
        if plant.place == Place::Source {
            return Arc::new(Module::load(&built.module).unwrap());
        }
        let mut fastpath = cache.headers().unwrap().join("fastpath");
        let mut text = std::fs::read_to_string(&built.source).unwrap();
        match plant.place {
            Place::Header(name) => {
                let own = folder.path().join("fastpath");
                copied(&fastpath, &own);
                let header = own.join(name);
                let wrong = plant.into(&std::fs::read_to_string(&header).unwrap());
                std::fs::write(&header, wrong).unwrap();
                fastpath = own;
            }
            _ => text = plant.into(&text),
        }
        let (c, so) = (
            folder.path().join("wrong.c"),
            folder.path().join("wrong.so"),
        );
        std::fs::write(&c, text).unwrap();
        let toolchain = millrace_emit::toolchain::find(cache).unwrap();
        millrace_emit::toolchain::compile_module(&toolchain, &c, &fastpath, &so, QUICK).unwrap();
        Arc::new(Module::load(&so).unwrap())
    }
}

fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let there = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copied(&path, &there);
        } else {
            std::fs::copy(&path, &there).unwrap();
        }
    }
}

/// A function, and what builds it with other capacities.
pub struct Function {
    sources: Sources,
    pub program: Program,
    /// writers take no lock: something wrong that must be found
    pub dropped: bool,
    /// something else that is wrong on the parallel side
    pub plant: Option<Plant>,
    /// that is in the code of heavy keys, where only these are replicated
    pub heavy: bool,
}

/// The model of a program, as the tests before it left it.
pub fn modelled(program: &Program, checked: &Checked) -> Model {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache/models");
    kept::model(program, checked, &Limits::default(), Some(&folder)).0
}

impl Function {
    /// One of nfs/.
    pub fn named(name: &str) -> Self {
        let source = root().join(format!("nfs/{name}/{name}.c"));
        Self::of(&source, &[], &[])
    }

    /// One of nfs/ with settings and capacities of the sequential side.
    pub fn with(name: &str, settings: &[(&str, &str)], capacities: &[(&str, u64)]) -> Self {
        let source = root().join(format!("nfs/{name}/{name}.c"));
        Self::of(&source, settings, capacities)
    }

    /// From a source.
    pub fn of(source: &Path, settings: &[(&str, &str)], capacities: &[(&str, u64)]) -> Self {
        // One for all tests, which verify the same functions under other plans.
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
        let cache = Cache::at(&cache).unwrap();
        let own = |(n, v): &(&str, &str)| ((*n).to_owned(), (*v).to_owned());
        let sources = Sources {
            cache,
            source: source.to_owned(),
            settings: settings.iter().map(own).collect(),
            capacities: capacities
                .iter()
                .map(|(n, c)| ((*n).to_owned(), *c))
                .collect(),
        };
        let none = Wanted {
            capacities: &[],
            placement: None,
            yields: None,
            noted: false,
        };
        let program = sources.built(&none, false).1;
        Self {
            sources,
            program,
            dropped: false,
            plant: None,
            heavy: false,
        }
    }

    /// Every object divided that packets write.
    pub fn divided(&self) -> Vec<Held> {
        self.program
            .objects
            .iter()
            .map(Held::where_all_is_divided)
            .collect()
    }

    /// All that packets write under the lock.
    pub fn locked(&self) -> Vec<Held> {
        let shared = |held| match held {
            Held::Divided => Held::Locked,
            other => other,
        };
        self.divided().into_iter().map(shared).collect()
    }

    /// All that packets may find replicated, and the rest each worker's own.
    pub fn replicated(&self) -> Vec<Held> {
        use millrace_history::effects::{constant, replicated};
        let ids = (0..self.program.objects.len()).map(ObjectId);
        let held = |id| match (replicated(&self.program, id), constant(&self.program, id)) {
            (true, _) => Held::Replicated,
            (_, true) => Held::Copied,
            _ => Held::Own { latest: false },
        };
        ids.map(held).collect()
    }

    /// Verifies a deal over a trace.
    pub fn verify(&self, deal: &Deal<'_>, schedule: Schedule, trace: &mut dyn Trace) -> Findings {
        self.try_verify(deal, schedule, trace).unwrap()
    }

    /// The same, where it may fail.
    pub fn try_verify(
        &self,
        deal: &Deal<'_>,
        schedule: Schedule,
        trace: &mut dyn Trace,
    ) -> Result<Findings, VerifyError> {
        self.coming_home(deal, None, schedule, trace)
    }

    /// The same, with where packets come home that carry leased numbers.
    pub fn coming_home(
        &self,
        deal: &Deal<'_>,
        homes: Option<Arc<Homes>>,
        schedule: Schedule,
        trace: &mut dyn Trace,
    ) -> Result<Findings, VerifyError> {
        let ports = match self.program.ports.len() {
            0 => vec!["0".into(), "1".into()],
            _ => self.program.ports.clone(),
        };
        let case = Case {
            program: &self.program,
            entry: 0,
            ports,
            config: Config {
                hash_seed: 7,
                initial: self
                    .program
                    .objects
                    .iter()
                    .map(|o| o.initial.clone())
                    .collect(),
                homes,
                ..Config::default()
            },
            deal,
            apart: Some(SECOND),
            schedule,
            names: &Bytes,
        };
        let found = verify(&case, trace, &mut Builder(self, 0), &mut |_, _| {})?;
        println!("{}: {}", self.program.name, text(&found));
        Ok(found)
    }

    /// The same at this many workers, with every object divided and this steering.
    pub fn shard(&self, workers: u32, dispatch: &dyn Dispatch, trace: &mut dyn Trace) -> Findings {
        let deal = Deal::even(&self.program, workers, dispatch, self.divided());
        self.verify(&deal, Schedule::Ingress, trace)
    }
}

/// The function, and how many modules it was asked for: the sequential side's and the parallel side's in turn.
struct Builder<'a>(&'a Function, u32);

impl Build for Builder<'_> {
    fn module(&mut self, wanted: &Wanted<'_>) -> Result<Arc<Module>, String> {
        self.1 += 1;
        let sources = &self.0.sources;
        Ok(match self.0.plant {
            // Of heavy keys alone, where only these are replicated.
            Some(plant)
                if wanted.placement.is_some_and(|p| p.replicates())
                    || self.1.is_multiple_of(2) && !self.0.heavy =>
            {
                sources.planted(wanted, plant)
            }
            _ => sources.built(wanted, self.0.dropped).0,
        })
    }
}

/// Each worker adds to all numbers of an object's values, which are this many bytes wide.
pub fn sums(object: &StateObject, bytes: usize) -> Held {
    let offsets = (0..object.value_bytes as usize).step_by(bytes);
    Held::merged(
        &offsets
            .map(|offset| Word {
                offset,
                bytes,
                low: 0,
            })
            .collect::<Vec<_>>(),
    )
}

/// Flows that start and end, mostly of TCP, over two and a half minutes: entries expire on the way.
pub fn over_minutes(packets: u64, flows: u64, churn: f64, seed: u64) -> Generated {
    Generated(Spec {
        packets,
        flows,
        churn,
        rate: packets as f64 / 150.0,
        seed,
        mix: Mix {
            tcp: 6.0,
            udp: 3.0,
            icmp: 1.0,
        },
        ..Spec::default()
    })
}

/// Numbers of workers: all up to the greatest with `MILLRACE_LONG`, else some.
pub fn counts(some: &[u32], most: u32) -> Vec<u32> {
    match std::env::var_os("MILLRACE_LONG") {
        Some(_) => (2..=most).collect(),
        None => some.to_vec(),
    }
}

/// A model that hashes whatever it is told to.
pub fn device() -> Nic {
    nic::named("software").unwrap()
}

/// A key under which both directions of a flow have one hash: it repeats every 16 bits, the distance by which
/// both addresses and both ports change places being a multiple of that.
pub fn symmetric_key() -> Vec<u8> {
    [0x6d, 0x5a].into_iter().cycle().take(52).collect()
}

/// A key that keeps nothing together.
pub fn plain_key() -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..52).map(|_| next()).collect()
}

/// A port's steering by these fields.
pub fn by(key: &[u8], workers: u32, fields: &[Field]) -> Steering {
    let device = device();
    let mut rss = Rss::new(&device, workers).with_key(&device, key).unwrap();
    for kind in Kind::ALL {
        let Some(rule) = device.kinds.get(&kind) else {
            continue;
        };
        let chosen: Vec<Field> = rule
            .fields
            .iter()
            .copied()
            .filter(|f| fields.contains(f))
            .collect();
        rss = rss.with_fields(&device, kind, &chosen).unwrap();
    }
    Steering {
        nic: rss,
        software: BTreeMap::new(),
        inside: true,
        echoes: false,
        odd: None,
    }
}
