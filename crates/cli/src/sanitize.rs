//! `--sanitize`: the emitted code under AddressSanitizer and UndefinedBehaviorSanitizer.
//!
//! A sanitised module needs the sanitizers' runtime in the process before anything is allocated, so
//! the command starts itself again with the runtime preloaded. Packets then lie in heap allocations
//! of their exact size (`packet::Layout::Exact`): a read past the end of a packet is a read past an
//! allocation, and ends the process with a report.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use millrace_emit::cache::Cache;
use millrace_emit::toolchain::{self, Toolchain};

use crate::failure::Failure;

/// Set in the process that has the runtime.
const MARK: &str = "MILLRACE_SANITIZED";

/// Makes sure that this process has the runtime; comes back only when it has.
pub fn ensure() -> Result<(), Failure> {
    if std::env::var_os(MARK).is_some() {
        return Ok(());
    }
    let cannot = |e: &dyn std::fmt::Display| Failure::wrong(format!("--sanitize: {e}"));
    let cache = Cache::of_user().map_err(|e| cannot(&e))?;
    let toolchain = toolchain::find(&cache).map_err(|e| cannot(&e))?;
    let runtime = runtime(&toolchain).ok_or_else(|| {
        Failure::wrong("--sanitize: clang's AddressSanitizer runtime is not installed").help(
            format!("apt-get install libclang-rt-{}-dev", toolchain.major),
        )
    })?;
    let this = std::env::current_exe().map_err(|e| cannot(&e))?;
    let preload = std::env::var_os("LD_PRELOAD").filter(|p| !p.is_empty());
    let mut libraries = runtime.into_os_string();
    if let Some(more) = preload {
        libraries.push(":");
        libraries.push(more);
    }
    let error = Command::new(this)
        .args(std::env::args_os().skip(1))
        .env(MARK, "1")
        .env("LD_PRELOAD", libraries)
        // The leak checker stops every thread with ptrace, which containers forbid; a report must
        // not look like "the answer is no" (1) or wrong use (2).
        .env(
            "ASAN_OPTIONS",
            options("ASAN_OPTIONS", "detect_leaks=0:exitcode=86"),
        )
        .env(
            "UBSAN_OPTIONS",
            options("UBSAN_OPTIONS", "print_stacktrace=1"),
        )
        .exec();
    Err(cannot(&error))
}

/// Ours first, so that the user's win.
fn options(name: &str, ours: &str) -> String {
    match std::env::var(name) {
        Ok(theirs) if !theirs.is_empty() => format!("{ours}:{theirs}"),
        _ => ours.to_owned(),
    }
}

fn runtime(toolchain: &Toolchain) -> Option<PathBuf> {
    let machine = std::env::consts::ARCH;
    let names = [
        format!("libclang_rt.asan-{machine}.so"),
        "libclang_rt.asan.so".to_owned(),
    ];
    names.iter().find_map(|name| {
        let output = Command::new(&toolchain.clang)
            .arg(format!("-print-file-name={name}"))
            .output();
        let path = PathBuf::from(String::from_utf8(output.ok()?.stdout).ok()?.trim());
        // clang gives the bare name back when it has no such file.
        path.is_absolute().then_some(path).filter(|p| p.is_file())
    })
}
