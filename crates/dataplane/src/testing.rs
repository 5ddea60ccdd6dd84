//! What the unit tests share: clang, the fixture module, and temporary folders.
#![allow(missing_docs)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use crate::module::Module;

fn fastpath() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fastpath")
}

fn clang() -> Command {
    let mut command = Command::new(std::env::var("MILLRACE_CLANG").unwrap_or("clang-19".into()));
    command.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I"]);
    command.arg(fastpath());
    command
}

/// Compiles a C program that may include `abi.h`, runs it, gives what it printed.
pub fn compile_and_run(source: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("program.c");
    let binary = folder.path().join("program");
    std::fs::write(&file, source).unwrap();
    let status = clang().arg(&file).arg("-o").arg(&binary).status().unwrap();
    assert!(status.success(), "clang failed");
    let output = Command::new(&binary).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Compiles C text as a module, with extra clang arguments.
pub fn compile_module(name: &str, source: &Path, extra: &[&str]) -> PathBuf {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().unwrap());
    let out = folder.path().join(format!("{name}.so"));
    let status = clang()
        .args(["-shared", "-fPIC"])
        .args(extra)
        .arg(source)
        .arg("-o")
        .arg(&out)
        .status()
        .unwrap();
    assert!(status.success(), "clang failed");
    out
}

/// The fixture's source: a module written by hand.
pub fn fixture_source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture.c")
}

/// The fixture, loaded.
pub fn fixture() -> Arc<Module> {
    static MODULE: OnceLock<Arc<Module>> = OnceLock::new();
    MODULE
        .get_or_init(|| {
            let path = compile_module("fixture", &fixture_source(), &[]);
            Arc::new(Module::load(&path).unwrap())
        })
        .clone()
}
