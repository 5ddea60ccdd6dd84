//! A bundled function, built and modelled.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use millrace_dataplane::Module;
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::ModuleOptions;
use millrace_model::{Limits, Model};
use millrace_object::Program;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Program, model and module of a function in nfs/.
pub fn built(name: &str, limits: &Limits) -> (Program, Model, Arc<Module>) {
    built_from(&root().join(format!("nfs/{name}/{name}.c")), limits)
}

/// The same of a source anywhere.
pub fn built_from(source: &Path, limits: &Limits) -> (Program, Model, Arc<Module>) {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let cache = Cache::at(&cache).unwrap();
    let options = millrace_emit::Options {
        module: ModuleOptions {
            unoptimised: true,
            ..ModuleOptions::default()
        },
        ..millrace_emit::Options::default()
    };
    let built = millrace_emit::build(&cache, source, &[], &options, &mut |_| {}).unwrap();
    let module = Arc::new(Module::load(&built.module).unwrap());
    let checked =
        millrace_check::check(&built.program, &millrace_check::Options::default()).unwrap();
    let model = millrace_model::model(&built.program, &checked, limits);
    (built.program, model, module)
}
