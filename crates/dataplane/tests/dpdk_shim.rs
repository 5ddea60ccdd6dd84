//! What is called of DPDK (src/port/dpdk/shim), under AddressSanitizer and UndefinedBehaviorSanitizer.
#![cfg(feature = "dpdk")]

use std::path::Path;
use std::process::Command;

fn clang() -> String {
    std::env::var("MILLRACE_CLANG").unwrap_or("clang-19".into())
}

#[test]
fn the_shim_holds_under_sanitizers() {
    let dir = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = Command::new("pkg-config")
        .args(["--cflags", "--libs", "libdpdk"])
        .output()
        .unwrap();
    let flags = String::from_utf8(found.stdout).unwrap();
    // As build.rs does: DPDK's headers are not meant to be free of warnings.
    let flags = flags
        .split_whitespace()
        .map(|f| match f.strip_prefix("-I") {
            Some(path) => format!("-isystem{path}"),
            None => f.to_owned(),
        });
    let program = dir.path().join("shim");
    let shim = here.join("src/port/dpdk/shim");
    let built = Command::new(clang())
        .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"])
        .args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
        .args(["eal.c", "device.c", "burst.c"].map(|file| shim.join(file)))
        .arg(here.join("tests/dpdk_shim.c"))
        .args(flags)
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&built.stderr);
    if text.contains("libclang_rt") {
        println!("skipped: no AddressSanitizer runtime; apt-get install libclang-rt-19-dev");
        return;
    }
    assert!(built.status.success(), "{text}");
    let ran = Command::new(&program)
        .arg(dir.path())
        // DPDK keeps its own for as long as the process lives.
        .env("ASAN_OPTIONS", "detect_leaks=0")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{text}");
    assert!(ran.stdout.ends_with(b"the shim holds\n"), "{text}");
}
