//! Compilers that take too long, or too much: they end with the budget, with all that they have started.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use millrace_check::{Budget, budget};
use millrace_emit::Error;
use millrace_emit::toolchain::{
    ModuleOptions, Toolchain, compile_module_within, compile_nf_within,
};

/// A compiler that is a script; `$object` is where its output goes.
fn compiler(folder: &Path, script: &str) -> Toolchain {
    let clang = folder.join("clang");
    let find = "object=; for word; do [ \"$last\" = -o ] && object=$word; last=$word; done\n";
    fs::write(&clang, format!("#!/bin/sh\n{find}{script}\n")).unwrap();
    fs::set_permissions(&clang, fs::Permissions::from_mode(0o700)).unwrap();
    Toolchain {
        clang,
        version: "a script".to_owned(),
        major: 19,
        link: None,
    }
}

fn compile(
    toolchain: &Toolchain,
    folder: &Path,
    budget: &Budget,
) -> (Result<Option<String>, Error>, PathBuf) {
    let module = folder.join("module.so");
    let source = folder.join("nf.c");
    let options = ModuleOptions::default();
    (
        compile_module_within(toolchain, &source, folder, &module, options, budget),
        module,
    )
}

#[test]
fn what_cannot_be_optimised_in_time_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let script = "case \"$*\" in *-O0*) echo made >$object;; *) sleep 60;; esac";
    let clang = compiler(folder.path(), script);
    let budget = Budget::begin(Duration::from_secs(2), budget::MEMORY);
    let (made, module) = compile(&clang, folder.path(), &budget);
    let said = made.unwrap().unwrap();
    assert_eq!(fs::read_to_string(module).unwrap(), "made\n");
    for words in ["clang: ", "budget of 2 s", "-O0", "--budget-time"] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn what_is_never_done_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let alive = folder.path().join("alive");
    // As clang does, whose work another process does.
    let script = format!(
        "(while :; do date +%N >{}; sleep 0.02; done) & wait",
        alive.display()
    );
    let clang = compiler(folder.path(), &script);
    let budget = Budget::begin(Duration::from_millis(600), budget::MEMORY);
    let (made, _) = compile(&clang, folder.path(), &budget);
    let said = made.unwrap_err().to_string();
    for words in ["clang: ", "budget of 0.6 s", "nf.c", "--budget-time"] {
        assert!(said.contains(words), "{said}");
    }
    let last = fs::read_to_string(&alive).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(fs::read_to_string(&alive).unwrap(), last);
}

#[test]
fn memory_has_an_end() {
    let folder = tempfile::tempdir().unwrap();
    // It says what LLVM does if it may not take what it needs.
    let script = "[ \"$(ulimit -v)\" -gt 2000000 ] && exec sleep 60; echo 'LLVM ERROR: out of memory' >&2; exit 134";
    let clang = compiler(folder.path(), script);
    let budget = Budget::begin(budget::TIME, 512 << 20);
    let began = Instant::now();
    let (made, _) = compile(&clang, folder.path(), &budget);
    let said = made.unwrap_err().to_string();
    for words in ["clang: ", "budget of 512 MiB", "--budget-memory"] {
        assert!(said.contains(words), "{said}");
    }
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn the_author_s_source_has_the_same_budget() {
    let folder = tempfile::tempdir().unwrap();
    let clang = compiler(folder.path(), "sleep 60");
    let budget = Budget::begin(Duration::from_millis(300), budget::MEMORY);
    let (source, object) = (folder.path().join("nf.c"), folder.path().join("nf.o"));
    let made = compile_nf_within(&clang, &source, folder.path(), &object, &budget);
    let said = made.unwrap_err().to_string();
    assert!(
        said.contains("clang: ") && said.contains("--budget-time"),
        "{said}"
    );
}
