//! Compiles the C of the tests with whichever of the supported compilers are here.
// Every test uses a part of this.
#![allow(dead_code)]

pub mod refusal;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compilers whose objects are read.
pub const CLANGS: [&str; 3] = ["clang-14", "clang-16", "clang-19"];

/// The newest instruction set of each.
fn cpu(clang: &str) -> &'static str {
    if clang == "clang-19" { "v4" } else { "v3" }
}

/// The path of a program of `tests/programs`.
pub fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

/// Calls `test` with the recorded object of a source file and with what each compiler here makes of
/// it; says which compilers are not here.
pub fn each_clang(source: &Path, test: impl Fn(&str, &[u8])) {
    test(
        "recorded",
        &std::fs::read(source.with_extension("elf")).unwrap(),
    );
    for clang in CLANGS {
        if let Some(object) = compile(clang, source, &[]) {
            test(clang, &object);
        }
    }
}

/// The object that a compiler makes of a source file; none if the compiler is not here.
pub fn compile(clang: &str, source: &Path, flags: &[&str]) -> Option<Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let object = directory.path().join("program.o");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(clang)
        .args(["-O2", "-g", "-target", "bpf", "-Wall", "-Wno-unused", "-c"])
        .arg(format!("-mcpu={}", cpu(clang)))
        .arg("-I/usr/include/x86_64-linux-gnu")
        .arg("-I/usr/include/aarch64-linux-gnu")
        .arg("-I")
        .arg(root.join("include"))
        .args(flags)
        .arg("-o")
        .arg(&object)
        .arg(source)
        .output();
    let output = match output {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            eprintln!("skipped: {clang} is not installed");
            return None;
        }
        output => output.unwrap(),
    };
    assert!(
        output.status.success(),
        "{clang} on {}:\n{}",
        source.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Some(std::fs::read(object).unwrap())
}

/// Compiles C given as text.
pub fn compile_text(clang: &str, text: &str, flags: &[&str]) -> Option<Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("program.c");
    std::fs::write(&source, text).unwrap();
    compile(clang, &source, flags)
}
