//! A bundled function, built and modelled.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use millrace_dataplane::Module;
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::ModuleOptions;
use millrace_model::{Limits, Model};
use millrace_object::Program;
use millrace_object::state::Addressing;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Program, model and module of a function in nfs/.
pub fn built(name: &str, limits: &Limits) -> (Program, Model, Arc<Module>) {
    built_from(&root().join(format!("nfs/{name}/{name}.c")), limits)
}

/// What is compared here is not the optimiser's work.
const QUICK: ModuleOptions = ModuleOptions {
    sanitize: false,
    strict: false,
    unoptimised: true,
};

/// Entries that fit into a table of [`built_small`].
const FEW: u64 = 61;

/// The same with tables of few entries: the path that finds one full takes as many insertions as it has places, in each
/// execution. Capacity is one number to the generated code and the model alike, as with `run --capacity`; tables of
/// prefixes keep theirs, as the code for large ones is another.
pub fn built_small(name: &str, limits: &Limits) -> (Program, Model, Arc<Module>) {
    let source = root().join(format!("nfs/{name}/{name}.c"));
    let folder = tempfile::tempdir().unwrap();
    let cache = cache();
    let toolchain = millrace_emit::toolchain::find(&cache).unwrap();
    let object = folder.path().join(format!("{name}.o"));
    let include = cache.headers().unwrap().join("include");
    millrace_emit::toolchain::compile_nf(&toolchain, &source, &include, &object).unwrap();
    let mut program = millrace_object::load(&std::fs::read(&object).unwrap(), name).unwrap();
    let objects = program.objects.clone().into_iter();
    let capacities = objects
        .filter(|o| (o.kind.is_table() || o.kind.leases()) && o.capacity > FEW)
        .filter(|o| o.kind.addressing != Addressing::Prefix)
        .filter(|o| program.set_capacity(&o.name, FEW).is_ok())
        .map(|o| (o.name, FEW))
        .collect();
    let options = millrace_emit::Options {
        capacities,
        module: QUICK,
        ..millrace_emit::Options::default()
    };
    made(&cache, &object, &options, limits)
}

/// The same of a source anywhere.
pub fn built_from(source: &Path, limits: &Limits) -> (Program, Model, Arc<Module>) {
    let cache = cache();
    let options = millrace_emit::Options {
        module: QUICK,
        ..millrace_emit::Options::default()
    };
    made(&cache, source, &options, limits)
}

/// One for all tests.
fn cache() -> Cache {
    Cache::at(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")).unwrap()
}

fn made(
    cache: &Cache,
    input: &Path,
    options: &millrace_emit::Options,
    limits: &Limits,
) -> (Program, Model, Arc<Module>) {
    let built = millrace_emit::build(cache, input, &[], options, &mut |_| {}).unwrap();
    let module = Arc::new(Module::load(&built.module).unwrap());
    let again =
        || millrace_check::check(&built.program, &millrace_check::Options::default()).unwrap();
    let checked = built.checked.clone().unwrap_or_else(again);
    let model =
        millrace_model::kept::model(&built.program, &checked, limits, Some(&cache.models())).0;
    (built.program, model, module)
}
