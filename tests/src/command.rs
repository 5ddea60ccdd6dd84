//! The `millrace` command, as a user runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
        .to_path_buf()
}

/// A `millrace` command line, run from the root of the repository, with the binary of this build and the tests' cache. Its modules
/// are not optimised, as those of the command's own tests, which takes an eighth of the time: what an optimiser makes of emitted
/// code is looked for by generated programs (soundness.rs) and with each function that has prefetching passes (prefetch.rs).
#[must_use]
pub fn millrace() -> Command {
    let mut command = Command::new(binary());
    command.env("MILLRACE_UNOPTIMISED", "1");
    // target/tmp, where cargo puts what tests of packages keep: one cache for all of them.
    if let Some(target) = binary().ancestors().nth(2) {
        command.env("MILLRACE_CACHE", target.join("tmp/cache"));
    }
    command.current_dir(root());
    command
}

fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        // Long runs of generated programs name one that was built for speed.
        if let Some(named) = std::env::var_os("MILLRACE_COMMAND") {
            return named.into();
        }
        // A test is target/PROFILE/deps/NAME, the benchmark target/PROFILE/NAME; cargo puts the command
        // beside the latter. It is built by the same `cargo test --workspace`; building here covers
        // `cargo test -p`.
        let this = std::env::current_exe().unwrap_or_default();
        let profile = this
            .ancestors()
            .skip(1)
            .find(|folder| !folder.ends_with("deps"))
            .unwrap_or(Path::new("target/debug"))
            .to_path_buf();
        let mut build = Command::new(env!("CARGO"));
        build
            .args(["build", "--quiet", "-p", "millrace-cli"])
            .current_dir(root());
        if profile.ends_with("release") {
            build.arg("--release");
        }
        let built = build.status();
        assert!(
            built.is_ok_and(|s| s.success()),
            "the millrace command does not build"
        );
        profile.join("millrace")
    })
}

/// What a command line with `--json` printed, and its exit code. Fails the test when it is not one
/// JSON document.
#[must_use]
pub fn json(command: &mut Command) -> (Value, i32) {
    let output = run(command);
    let document = serde_json::from_slice(&output.stdout);
    assert!(
        document.is_ok(),
        "{command:?} printed no JSON document:\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (
        document.unwrap_or_default(),
        output.status.code().unwrap_or(-1),
    )
}

/// Runs it to its end. Fails the test when it cannot be started or dies of a signal.
#[must_use]
pub fn run(command: &mut Command) -> Output {
    let output = command.output();
    assert!(output.is_ok(), "{command:?} does not start");
    let output = output.unwrap_or_else(|_| unreachable!());
    assert!(
        output.status.code().is_some(),
        "{command:?} died: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Every NF in `nfs/`, by name.
#[must_use]
pub fn nfs() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(root().join("nfs"))
        .into_iter()
        .flatten()
        .flatten()
        .filter(|e| e.path().is_dir())
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert!(!names.is_empty(), "nfs/ is empty");
    names
}

/// The captures that tests run over: the bundled one and, where they are, the public ones beside the
/// checkout (or in `MILLRACE_CORPORA`). Says so when the latter are missing.
#[must_use]
pub fn captures() -> Vec<PathBuf> {
    let mut found = vec![root().join("captures/talk.pcap")];
    let corpora = std::env::var_os("MILLRACE_CORPORA")
        .map_or_else(|| root().join("../shared/corpora"), PathBuf::from)
        .join("pcap");
    match std::fs::read_dir(&corpora) {
        Ok(entries) => {
            let mut more: Vec<PathBuf> = entries
                .flatten()
                .map(|e| e.path())
                .filter(|p| p.extension().is_some_and(|e| e == "pcap" || e == "pcapng"))
                .collect();
            more.sort();
            found.extend(more);
        }
        Err(_) => println!("skipped: public captures, set MILLRACE_CORPORA to their folder"),
    }
    found
}
