//! The repository's own NFs, compiled for a test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use millrace_emit::toolchain::compile_nf;
use millrace_object::Program;

use super::Bench;

/// The folder of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// An NF of nfs/, compiled and read; once a process.
pub fn load(bench: &Bench, name: &str) -> Program {
    static LOADED: Mutex<BTreeMap<String, Program>> = Mutex::new(BTreeMap::new());
    let mut loaded = LOADED.lock().unwrap();
    let program = loaded
        .entry(name.to_owned())
        .or_insert_with(|| read(bench, name));
    program.clone()
}

fn read(bench: &Bench, name: &str) -> Program {
    let include = bench.cache.headers().unwrap().join("include");
    let source = repository().join(format!("nfs/{name}/{name}.c"));
    let object = bench.path(&format!("{name}.o"));
    compile_nf(&bench.toolchain, &source, &include, &object).unwrap();
    millrace_object::load(&std::fs::read(object).unwrap(), name).unwrap()
}

/// An NF of the test's own.
pub fn compile(bench: &Bench, name: &str, text: &str) -> Program {
    let include = bench.cache.headers().unwrap().join("include");
    let (source, object) = (
        bench.path(&format!("{name}.c")),
        bench.path(&format!("{name}.o")),
    );
    std::fs::write(&source, text).unwrap();
    compile_nf(&bench.toolchain, &source, &include, &object).unwrap();
    millrace_object::load(&std::fs::read(object).unwrap(), name).unwrap()
}
