//! Whether a read past a packet's end is caught when the module is sanitised and packets lie in
//! allocations of their exact size.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use millrace_dataplane::packet::{Arrival, Burst, Fate, Layout};
use millrace_dataplane::{Config, Instance, Module};

/// Set in the process that has the sanitizer's runtime: the module, and the packet's first byte.
const CHILD: &str = "MILLRACE_SANITIZER_TEST";

fn clang() -> String {
    std::env::var("MILLRACE_CLANG").unwrap_or("clang-19".into())
}

fn runtime() -> Option<PathBuf> {
    let name = format!("libclang_rt.asan-{}.so", std::env::consts::ARCH);
    let output = Command::new(clang())
        .arg(format!("-print-file-name={name}"))
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_absolute().then_some(path)
}

fn build(out: &Path) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let status = Command::new(clang())
        .args([
            "-std=gnu11",
            "-O1",
            "-g",
            "-shared",
            "-fPIC",
            "-fsanitize=address",
        ])
        .arg("-I")
        .arg(here.join("../../fastpath"))
        .arg(here.join("tests/fixture.c"))
        .arg("-o")
        .arg(out)
        .status()
        .unwrap();
    assert!(status.success());
}

/// One packet through the module; the fixture does what its first byte says.
fn child(what: &str) {
    let (module, kind) = what.split_once('\n').unwrap();
    let module = Arc::new(Module::load(Path::new(module)).unwrap());
    let mut instance = Instance::create(module, &Config::default()).unwrap();
    let mut burst = Burst::new(1, 2, Layout::Exact);
    let frame = [kind.parse().unwrap(), 1, 2, 3, 4];
    assert!(burst.push(&frame, Arrival::default()));
    instance.burst(0, true, &mut burst);
    assert_eq!(burst.outcome(0).unwrap().fate, Fate::Forwarded(1));
}

fn run(module: &Path, runtime: &Path, kind: u8) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "sanitizer::a_read_past_the_packet_is_caught",
            "--nocapture",
        ])
        .env(CHILD, format!("{}\n{kind}", module.display()))
        .env("LD_PRELOAD", runtime)
        .env("ASAN_OPTIONS", "detect_leaks=0:exitcode=86")
        .output()
        .unwrap()
}

#[test]
fn a_read_past_the_packet_is_caught() {
    if let Ok(what) = std::env::var(CHILD) {
        return child(&what);
    }
    let Some(runtime) = runtime() else {
        println!("skipped: no AddressSanitizer runtime; apt-get install libclang-rt-19-dev");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let module = dir.path().join("fixture.so");
    build(&module);

    let good = run(&module, &runtime, 3);
    assert!(
        good.status.success(),
        "{}",
        String::from_utf8_lossy(&good.stderr)
    );

    let bad = run(&module, &runtime, 10);
    let text = String::from_utf8_lossy(&bad.stderr);
    assert_eq!(bad.status.code(), Some(86), "{text}");
    assert!(
        text.contains("heap-buffer-overflow") && text.contains("fixture.c"),
        "{text}"
    );
}
