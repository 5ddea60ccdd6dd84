//! The things that are looked at: each a function from the system's files to a finding.

use std::path::{Path, PathBuf};

use millrace_dataplane::place;
use millrace_dataplane::port::dpdk::BUILT;
use millrace_emit::cache::Cache;
use millrace_emit::toolchain;

use super::{Finding, State};

/// Capabilities as capabilities(7) numbers them.
const CAP_NET_ADMIN: u32 = 12;
const CAP_NET_RAW: u32 = 13;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_BPF: u32 = 39;
/// Drivers that hand AF_XDP sockets their own buffers, in Linux 6.
const ZERO_COPY: [&str; 9] = [
    "i40e",
    "ice",
    "ixgbe",
    "igb",
    "igc",
    "mlx5_core",
    "stmmac",
    "nfp",
    "virtio_net",
];

/// Where the system's files are: `/`, or a folder of a test.
pub struct System {
    root: PathBuf,
}

impl System {
    /// This machine.
    pub fn here() -> Self {
        Self { root: "/".into() }
    }

    #[cfg(test)]
    fn at(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// A file's text; nothing where it cannot be read.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_default()
    }

    /// The value of a line `NAME: VALUE`.
    pub fn field(&self, path: &str, name: &str) -> Option<String> {
        let text = self.read(path);
        let line = text.lines().find(|line| {
            line.split_once(':')
                .is_some_and(|(key, _)| key.trim() == name)
        })?;
        Some(line.split_once(':')?.1.trim().to_owned())
    }

    fn can(&self, capability: u32) -> bool {
        let set = self.field("proc/self/status", "CapEff");
        let set = set.and_then(|s| u64::from_str_radix(&s, 16).ok());
        set.unwrap_or(0) >> capability & 1 == 1
    }
}

/// Looks at everything.
pub fn all(system: &System) -> Vec<Finding> {
    vec![
        clang(),
        headers(system),
        processors(system),
        counter(system),
        pages(system),
        keys(system),
        live(system),
        tap(system),
        xdp(system),
        dpdk(system),
        drivers(system),
        super::guests::guests(system),
    ]
}

fn finding(
    name: &'static str,
    ok: bool,
    found: impl Into<String>,
    serves: &'static str,
    remedy: &str,
) -> Finding {
    Finding {
        name,
        state: if ok { State::Ok } else { State::Limited },
        found: found.into(),
        serves,
        remedy: (!ok && !remedy.is_empty()).then(|| remedy.to_owned()),
    }
}

fn clang() -> Finding {
    let serves = "building functions (bundles run without it)";
    let found = Cache::of_user().and_then(|cache| toolchain::find(&cache));
    match found {
        Ok(clang) => {
            let version = clang.version.lines().next().unwrap_or("").to_owned();
            let text = format!("{} ({version})", clang.clang.display());
            finding("clang", true, text, serves, "")
        }
        Err(error) => Finding {
            name: "clang",
            state: State::Missing,
            found: error.to_string(),
            serves,
            remedy: Some("sudo apt-get install clang-19".into()),
        },
    }
}

fn headers(system: &System) -> Finding {
    let kernel = system.path("usr/include/linux/bpf.h").exists();
    let libbpf = system.path("usr/include/bpf/bpf_helpers.h").exists();
    let found = match (kernel, libbpf) {
        (true, true) => "linux/bpf.h, bpf/bpf_helpers.h",
        (true, false) => "no bpf/bpf_helpers.h",
        (false, _) => "no linux/bpf.h",
    };
    finding(
        "headers",
        kernel && libbpf,
        found,
        "sources in the XDP dialect",
        "sudo apt-get install linux-libc-dev libbpf-dev",
    )
}

fn processors(system: &System) -> Finding {
    let count = place::cpus().len();
    let name = system.field("proc/cpuinfo", "model name");
    let text = format!("{count} of {}", name.unwrap_or_else(|| "unknown".into()));
    let serves =
        "several workers; measuring on the software NIC takes two, one of them for the NIC";
    finding("processors", count > 1, text, serves, "")
}

fn counter(system: &System) -> Finding {
    let flags = system.field("proc/cpuinfo", "flags").unwrap_or_default();
    let steady = ["constant_tsc", "nonstop_tsc"]
        .iter()
        .all(|flag| flags.split_whitespace().any(|f| f == *flag));
    let found = if steady {
        "steady time stamp counter"
    } else {
        "no steady time stamp counter: figures of time may be wrong"
    };
    finding("clock", steady, found, "measuring", "")
}

fn pages(system: &System) -> Finding {
    let reserved = system.field("proc/meminfo", "HugePages_Total");
    let reserved = reserved.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    let mode = system.read("sys/kernel/mm/transparent_hugepage/enabled");
    let transparent = mode.contains("[always]") || mode.contains("[madvise]");
    let text = format!(
        "{reserved} reserved; transparent ones {}",
        if transparent { "on" } else { "off" }
    );
    finding(
        "huge pages",
        transparent || reserved > 0,
        text,
        "speed only: nothing needs them",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    )
}

fn keys(system: &System) -> Finding {
    let flags = system.field("proc/cpuinfo", "flags").unwrap_or_default();
    let on = flags.split_whitespace().any(|f| f == "ospke");
    let found = if on {
        "protection keys"
    } else {
        "no protection keys: neither the processor nor the system offers them here"
    };
    finding(
        "pku",
        on,
        found,
        "keeping hosted programs out of each other's memory",
        "",
    )
}

fn live(system: &System) -> Finding {
    let missing: Vec<_> = [
        (CAP_NET_RAW, "CAP_NET_RAW"),
        (CAP_NET_ADMIN, "CAP_NET_ADMIN"),
    ]
    .into_iter()
    .filter(|(number, _)| !system.can(*number))
    .map(|(_, name)| name)
    .collect();
    let found = if missing.is_empty() {
        "allowed".to_owned()
    } else {
        format!("not allowed: no {}", missing.join(", no "))
    };
    finding(
        "live ports",
        missing.is_empty(),
        found,
        "afpacket: and tap: (files and vnic: need nothing)",
        "run with sudo, or: sudo setcap cap_net_raw,cap_net_admin+ep $(command -v millrace)",
    )
}

fn tap(system: &System) -> Finding {
    let there = system.path("dev/net/tun").exists();
    let found = if there {
        "/dev/net/tun"
    } else {
        "no /dev/net/tun"
    };
    finding(
        "tap",
        there,
        found,
        "tap:",
        "sudo modprobe tun && sudo mkdir -p /dev/net && sudo mknod /dev/net/tun c 10 200",
    )
}

fn xdp(system: &System) -> Finding {
    let release = system.read("proc/sys/kernel/osrelease").trim().to_owned();
    let types = system.path("sys/kernel/btf/vmlinux").exists();
    let allowed = system.can(CAP_SYS_ADMIN) || (system.can(CAP_BPF) && system.can(CAP_NET_ADMIN));
    let text = format!(
        "Linux {release}, {}, {}",
        if types { "with BTF" } else { "without BTF" },
        if allowed {
            "loading programs allowed"
        } else {
            "loading programs not allowed"
        }
    );
    let remedy = if allowed {
        "use a kernel built with CONFIG_DEBUG_INFO_BTF"
    } else {
        "run with sudo, or: sudo setcap cap_bpf,cap_net_admin+ep $(command -v millrace)"
    };
    finding(
        "xdp",
        types && allowed,
        text,
        "xdp: and afxdp:, and the kernel as an oracle of the tests",
        remedy,
    )
}

/// Ports of DPDK: whether this build has them, and where DPDK's drivers are.
fn dpdk(system: &System) -> Finding {
    let serves = "dpdk: (it needs no huge pages)";
    if !BUILT {
        let remedy = "sudo apt-get install libdpdk-dev && cargo build --release --features dpdk";
        return finding("dpdk", false, "not in this build", serves, remedy);
    }
    let folders = std::fs::read_dir(system.path("usr/lib"));
    let drivers = folders.into_iter().flatten().flatten().any(|folder| {
        let inner = std::fs::read_dir(folder.path().join("dpdk"));
        inner
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with("pmds-"))
    });
    let found = match drivers {
        true => "in this build, with drivers",
        false => "in this build, and no drivers are installed",
    };
    finding(
        "dpdk",
        drivers,
        found,
        serves,
        "sudo apt-get install libdpdk-dev",
    )
}

/// Interfaces of devices, with their drivers; those without a device are virtual.
fn drivers(system: &System) -> Finding {
    let mut names = Vec::new();
    let entries = std::fs::read_dir(system.path("sys/class/net"));
    for entry in entries.into_iter().flatten().flatten() {
        if let Ok(driver) = std::fs::read_link(entry.path().join("device/driver")) {
            let driver = file_name(&driver);
            let zero = if ZERO_COPY.contains(&driver.as_str()) {
                ", zero copy"
            } else {
                ""
            };
            let name = entry.file_name().to_string_lossy().into_owned();
            names.push(format!("{name} ({driver}{zero})"));
        }
    }
    names.sort();
    let found = if names.is_empty() {
        "no interface of a device here; virtual ones, files and vnic: work".to_owned()
    } else {
        names.join(", ")
    };
    finding(
        "drivers",
        true,
        found,
        "live ports at the speed of a device",
        "",
    )
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map_or_else(String::new, |n| n.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn system(files: &[(&str, &str)]) -> (tempfile::TempDir, System) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let system = System::at(dir.path());
        (dir, system)
    }

    #[test]
    fn what_is_lacking_has_a_remedy_or_a_reason() {
        let (_dir, bare) = system(&[("proc/self/status", "CapEff:\t0000000000000000\n")]);
        for finding in [
            headers(&bare),
            live(&bare),
            tap(&bare),
            xdp(&bare),
            pages(&bare),
        ] {
            assert_eq!(finding.state, State::Limited, "{}", finding.name);
            assert!(finding.remedy.is_some(), "{}", finding.name);
        }
        assert_eq!(counter(&bare).state, State::Limited);
        assert_eq!(drivers(&bare).state, State::Ok);
    }

    #[test]
    fn what_is_there_is_found() {
        let (dir, full) = system(&[
            ("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n"),
            (
                "proc/cpuinfo",
                "model name\t: Some CPU\nflags\t\t: fpu constant_tsc nonstop_tsc ospke\n",
            ),
            ("proc/meminfo", "HugePages_Total:       4\n"),
            ("proc/sys/kernel/osrelease", "6.1.0\n"),
            ("sys/kernel/btf/vmlinux", ""),
            ("dev/net/tun", ""),
            ("usr/include/linux/bpf.h", ""),
            ("usr/include/bpf/bpf_helpers.h", ""),
            ("sys/class/net/eth0/device/x", ""),
        ]);
        std::os::unix::fs::symlink(
            "/drivers/ice",
            dir.path().join("sys/class/net/eth0/device/driver"),
        )
        .unwrap();
        for finding in [
            headers(&full),
            live(&full),
            tap(&full),
            xdp(&full),
            pages(&full),
            counter(&full),
            keys(&full),
        ] {
            assert_eq!(
                finding.state,
                State::Ok,
                "{}: {}",
                finding.name,
                finding.found
            );
            assert_eq!(finding.remedy, None);
        }
        assert_eq!(drivers(&full).found, "eth0 (ice, zero copy)");
        assert!(processors(&full).found.ends_with("Some CPU"));
    }

    #[test]
    fn dpdk_needs_a_build_with_it_and_drivers() {
        let (_dir, bare) = system(&[("usr/lib/x86_64-linux-gnu/dpdk/x", "")]);
        assert_eq!(dpdk(&bare).state, State::Limited);
        assert!(dpdk(&bare).remedy.is_some());
        let (_dir, full) = system(&[("usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/x", "")]);
        assert_eq!(dpdk(&full).state == State::Ok, BUILT);
    }

    #[test]
    fn nonsense_in_the_systems_files_does_no_harm() {
        let (_dir, odd) = system(&[
            ("proc/self/status", "CapEff:\tzz\nCapEff"),
            ("proc/cpuinfo", ":::\nflags"),
            ("proc/meminfo", "HugePages_Total: many"),
        ]);
        assert!(all(&odd).len() >= 10);
        assert_eq!(live(&odd).state, State::Limited);
    }
}
