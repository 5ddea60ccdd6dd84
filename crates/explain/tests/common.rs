//! Functions that are built, and traffic.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millrace_check::{Checked, Options};
use millrace_control::Exposed;
use millrace_dataplane::module::{Config, Module};
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::ModuleOptions;
use millrace_explain::Part;
use millrace_object::program::Program;
use millrace_object::types::{EntryTypes, entry_types};
use millrace_traffic::generate::{Mix, Spec};
use millrace_verify::Generated;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What is compared here is not the optimiser's work, which would be most of the time.
const QUICK: ModuleOptions = ModuleOptions {
    sanitize: false,
    strict: false,
    unoptimised: true,
};

/// A function that is built.
pub struct Built {
    pub name: String,
    pub program: Program,
    pub checked: Checked,
    pub module: Arc<Module>,
    pub exposed: Exposed,
    pub types: BTreeMap<String, EntryTypes>,
}

impl Built {
    /// One of nfs/.
    pub fn named(name: &str) -> Self {
        Self::of(&root().join(format!("nfs/{name}/{name}.c")), &[], &[])
    }

    /// From a source or an object.
    pub fn of(source: &Path, settings: &[(&str, &str)], capacities: &[(&str, u64)]) -> Self {
        let built = Self::build(source, settings, capacities);
        built.unwrap_or_else(|e| panic!("{}: {e}", source.display()))
    }

    /// One that may be refused, as an object of somebody else's.
    pub fn try_of(source: &Path, capacities: &[(&str, u64)]) -> Option<Self> {
        let built = Self::build(source, &[], capacities);
        built
            .map_err(|e| println!("{}: {e}", source.display()))
            .ok()
    }

    fn build(
        source: &Path,
        settings: &[(&str, &str)],
        capacities: &[(&str, u64)],
    ) -> Result<Self, String> {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
        let cache = Cache::at(&cache).unwrap();
        let own = |(n, v): &(&str, &str)| ((*n).to_owned(), (*v).to_owned());
        let settings: Vec<(String, String)> = settings.iter().map(own).collect();
        let room = |(n, c): &(&str, u64)| ((*n).to_owned(), *c);
        let options = millrace_emit::Options {
            module: QUICK,
            capacities: capacities.iter().map(room).collect(),
            ..millrace_emit::Options::default()
        };
        let built = millrace_emit::build(&cache, source, &settings, &options, &mut |_| {});
        let built = built.map_err(|e| e.to_string())?;
        let module = Arc::new(Module::load(&built.module).unwrap());
        let types =
            entry_types(&millrace_object::read_file(built.object.as_ref().unwrap()).unwrap());
        let exposed = Exposed::new(
            &built.program.name,
            &module,
            Some(&built.program),
            types.clone(),
        );
        let checked = millrace_check::check(&built.program, &Options::default());
        Ok(Self {
            name: built.program.name.clone(),
            checked: checked.map_err(|_| "it is refused".to_owned())?,
            program: built.program,
            module,
            exposed,
            types,
        })
    }

    /// As it is explained.
    pub fn part(&self) -> Part<'_> {
        self.with(self.module.clone())
    }

    /// The same with other code.
    pub fn with(&self, module: Arc<Module>) -> Part<'_> {
        let named = &self.program.ports;
        Part {
            name: self.name.clone(),
            program: &self.program,
            checked: &self.checked,
            exposed: &self.exposed,
            types: &self.types,
            module,
            config: Config {
                hash_seed: 1,
                initial: self
                    .program
                    .objects
                    .iter()
                    .map(|o| o.initial.clone())
                    .collect(),
                ..Config::default()
            },
            entry: 0,
            ports: match named.is_empty() {
                true => vec!["0".into(), "1".into()],
                false => named.clone(),
            },
        }
    }
}

/// Flows that start and end, with answers; entries expire on the way.
pub fn traffic(packets: u64) -> Generated {
    few(packets, 24, packets as f64 / 200.0)
}

/// The same of so many flows, of which so many start a minute.
pub fn few(packets: u64, flows: u64, churn: f64) -> Generated {
    Generated(Spec {
        packets,
        flows,
        churn,
        rate: packets as f64 / 150.0,
        mix: Mix {
            tcp: 6.0,
            udp: 3.0,
            icmp: 1.0,
        },
        ..Spec::default()
    })
}
