//! Compiles the preload that guests get: a shared library of C, carried inside the program.

use std::path::PathBuf;

const SOURCES: [&str; 5] = [
    "yield.S",
    "receive.c",
    "pcap_handle.c",
    "pcap_receive.c",
    "pcap_device.c",
];
const HEADERS: [&str; 3] = ["port.h", "receive.h", "pcap.h"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?).join("preload.so");
    let compiler = cc::Build::new().cargo_metadata(false).try_get_compiler()?;
    let mut command = std::process::Command::new(compiler.path());
    command.args([
        "-std=gnu11",
        "-O2",
        "-g",
        "-fPIC",
        "-shared",
        "-Wall",
        "-Wextra",
    ]);
    command.args(["-Werror", "-Wl,-z,defs", "-Wl,-soname,millrace-guest.so"]);
    for name in SOURCES {
        command.arg(format!("preload/{name}"));
    }
    command.arg("-o").arg(&out);
    for name in SOURCES.iter().chain(&HEADERS) {
        println!("cargo::rerun-if-changed=preload/{name}");
    }
    let status = command.status()?;
    if !status.success() {
        return Err(format!(
            "the preload of guests: {} {status}",
            compiler.path().display()
        )
        .into());
    }
    vdso(compiler.path())
}

/// What guests get for the kernel's vDSO: one page, laid out by a script.
fn vdso(compiler: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?).join("vdso.so");
    let status = std::process::Command::new(compiler)
        .args(["-shared", "-fPIC", "-nostdlib", "-Wl,--hash-style=both"])
        .args(["-Wl,-soname,linux-vdso.so.1", "-Wl,--build-id=none"])
        .args(["-Wl,-z,noseparate-code", "-Wl,-z,norelro"])
        .args(["-Wl,-z,max-page-size=4096", "-Wl,-T,preload/vdso.ld"])
        .arg("-o")
        .arg(&out)
        .arg("preload/vdso.S")
        .status()?;
    for name in ["vdso.S", "vdso.ld"] {
        println!("cargo::rerun-if-changed=preload/{name}");
    }
    if status.success() {
        Ok(())
    } else {
        Err(format!("guests' vDSO: {} {status}", compiler.display()).into())
    }
}
