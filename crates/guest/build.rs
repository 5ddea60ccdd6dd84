//! Compiles the preloads that guests get: shared libraries of C, carried inside the program.

use std::path::{Path, PathBuf};
use std::process::Command;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const SOURCES: [&str; 12] = [
    "ids.c",
    "ipc.c",
    "receive.c",
    "send.c",
    "pcap_handle.c",
    "pcap_receive.c",
    "pcap_device.c",
    "packet_socket.c",
    "packet_receive.c",
    "packet_ring.c",
    "packet_wait.c",
    "packet_filter.c",
];
/// Those of programs of DPDK, which need its headers.
const DPDK: [&str; 4] = ["dpdk_eal.c", "dpdk_pool.c", "dpdk_port.c", "dpdk_device.c"];
const HEADERS: [&str; 6] = [
    "port.h",
    "yield.h",
    "receive.h",
    "pcap.h",
    "packet.h",
    "dpdk.h",
];
/// What the DPDK preload calls; whatever else a program is linked with is its own affair.
const LIBRARIES: [&str; 5] = [
    "-lrte_ethdev",
    "-lrte_net",
    "-lrte_mbuf",
    "-lrte_mempool",
    "-lrte_eal",
];

fn main() -> Outcome {
    let folder = PathBuf::from(std::env::var("OUT_DIR")?);
    let guest = folder.join("preload.so");
    for name in SOURCES.iter().chain(&HEADERS).chain(&DPDK) {
        println!("cargo::rerun-if-changed=preload/{name}");
    }
    library(&guest, "millrace-guest.so", &SOURCES, &[])?;

    // An empty file stands for no DPDK: such programs are then refused, with what to install.
    let dpdk = folder.join("preload-dpdk.so");
    let flags = Command::new("pkg-config")
        .args(["--cflags", "libdpdk"])
        .output();
    let flags = match flags {
        Ok(found) if found.status.success() => String::from_utf8(found.stdout)?,
        _ => return Ok(std::fs::write(&dpdk, [])?),
    };
    let mut words: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
    words.push(guest.display().to_string());
    words.extend(LIBRARIES.map(str::to_owned));
    library(&dpdk, "millrace-guest-dpdk.so", &DPDK, &words)
}

fn library(out: &Path, name: &str, sources: &[&str], words: &[String]) -> Outcome {
    let compiler = cc::Build::new().cargo_metadata(false).try_get_compiler()?;
    let mut command = Command::new(compiler.path());
    command.args(["-std=gnu11", "-O2", "-g", "-fPIC", "-shared", "-Wall"]);
    // yield.h pushes.
    command.arg("-mno-red-zone");
    command.args(["-Wextra", "-Werror", "-Wl,-z,defs"]);
    command.arg(format!("-Wl,-soname,{name}"));
    command.args(sources.iter().map(|source| format!("preload/{source}")));
    command.args(words).arg("-o").arg(out);
    let status = command.status()?;
    if !status.success() {
        return Err(format!(
            "the preload {name} of guests: {} {status}",
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
