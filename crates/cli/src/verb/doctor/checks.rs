//! The things that are looked at: each a function from the system's files to a finding.

use std::path::{Path, PathBuf};

use millrace_dataplane::place;
use millrace_dataplane::port::dpdk::BUILT;
use millrace_dataplane::port::rights::{self, Right};
use millrace_emit::cache::Cache;
use millrace_emit::toolchain;

use super::{Finding, State};

/// Bytes that the packet memory of one receive queue of `afxdp:` locks, with rings as they are without an option.
const LOCKED: u64 = 8 << 20;
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

    fn can(&self, right: Right) -> bool {
        let set = self.field("proc/self/status", "CapEff");
        let set = set
            .and_then(|s| u64::from_str_radix(&s, 16).ok())
            .unwrap_or(0);
        let has = |right: Right| set >> right.number & 1 == 1;
        // It stands for those that were taken out of it (capabilities(7)).
        let within = [rights::BPF, rights::PERFMON].contains(&right);
        has(right) || within && has(rights::SYS_ADMIN)
    }

    /// The names of what a kind of port needs and this process does not have.
    fn lacks(&self, scheme: &str) -> Vec<&'static str> {
        let needed = rights::of(scheme).iter();
        needed.filter(|r| !self.can(**r)).map(|r| r.name).collect()
    }

    /// Memory that this user's processes may lock, bytes; none: as much as they like.
    fn may_lock(&self) -> Option<u64> {
        let limits = self.read("proc/self/limits");
        let line = limits
            .lines()
            .find_map(|l| l.strip_prefix("Max locked memory"));
        let soft = line
            .and_then(|l| l.split_whitespace().next())
            .unwrap_or("unlimited");
        soft.parse().ok()
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
        afxdp(system),
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

/// Words for capabilities that are missing.
fn allowed(missing: &[&str]) -> String {
    match missing {
        [] => "allowed".to_owned(),
        names => format!("not allowed: no {}", names.join(", no ")),
    }
}

/// What to do where capabilities are missing.
fn remedy() -> String {
    format!(
        "run with sudo, or as the service millrace@NAME, or: {}",
        rights::SETCAP
    )
}

fn live(system: &System) -> Finding {
    let missing = system.lacks("afpacket");
    finding(
        "live ports",
        missing.is_empty(),
        allowed(&missing),
        "afpacket: (files and vnic: need nothing)",
        &remedy(),
    )
}

fn tap(system: &System) -> Finding {
    let there = system.path("dev/net/tun").exists();
    let missing = system.lacks("tap");
    let device = match there {
        true => "/dev/net/tun",
        false => "no /dev/net/tun",
    };
    let remedy = match there {
        true => remedy(),
        false => {
            "sudo modprobe tun && sudo mkdir -p /dev/net && sudo mknod /dev/net/tun c 10 200".into()
        }
    };
    finding(
        "tap",
        there && missing.is_empty(),
        format!("{device}, {}", allowed(&missing)),
        "tap:",
        &remedy,
    )
}

/// AF_XDP sockets: what they may do, and whether their packet memory may be locked.
fn afxdp(system: &System) -> Finding {
    let missing = system.lacks("afxdp");
    let limit = system.may_lock().filter(|_| !system.can(rights::IPC_LOCK));
    // Two ports of one queue are the least that a function stands between.
    let enough = limit.is_none_or(|bytes| bytes >= 2 * LOCKED);
    let memory = match limit {
        None => "memory may be locked".to_owned(),
        Some(bytes) => format!(
            "{} KiB may be locked, a queue takes {} KiB",
            bytes >> 10,
            LOCKED >> 10
        ),
    };
    finding(
        "afxdp",
        missing.is_empty() && enough,
        format!("{}; {memory}", allowed(&missing)),
        "afxdp:, and the plain name of an interface whose driver runs XDP programs",
        &remedy(),
    )
}

fn xdp(system: &System) -> Finding {
    let release = system.read("proc/sys/kernel/osrelease").trim().to_owned();
    let types = system.path("sys/kernel/btf/vmlinux").exists();
    let missing = system.lacks("xdp");
    let text = format!(
        "Linux {release}, {}, loading programs {}",
        if types { "with BTF" } else { "without BTF" },
        allowed(&missing)
    );
    let remedy = match missing.is_empty() {
        true => "use a kernel built with CONFIG_DEBUG_INFO_BTF".to_owned(),
        false => remedy(),
    };
    finding(
        "xdp",
        types && missing.is_empty(),
        text,
        "xdp:, and the kernel as an oracle of the tests",
        &remedy,
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
            afxdp(&bare),
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
            afxdp(&full),
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

    /// The file of a process with these capabilities.
    fn with(capabilities: &[Right]) -> String {
        let set = capabilities
            .iter()
            .fold(0_u64, |set, r| set | 1 << r.number);
        format!("CapEff:\t{set:016x}\n")
    }

    #[test]
    fn a_port_is_ok_where_a_run_has_all_that_it_needs_and_nowhere_else() {
        let all = [
            rights::NET_RAW,
            rights::NET_ADMIN,
            rights::BPF,
            rights::PERFMON,
        ];
        let of = |status: &str, limits: &str| {
            let files = [
                ("proc/self/status", status),
                ("proc/self/limits", limits),
                ("sys/kernel/btf/vmlinux", ""),
                ("dev/net/tun", ""),
            ];
            let (_dir, system) = system(&files);
            [live(&system), tap(&system), afxdp(&system), xdp(&system)]
                .map(|f| f.state == State::Ok)
        };
        assert_eq!(of(&with(&all), ""), [true; 4]);
        assert_eq!(of(&with(&all[..3]), ""), [true, true, true, false]);
        assert_eq!(of(&with(&all[..2]), ""), [true, true, false, false]);
        assert_eq!(of(&with(&all[..1]), ""), [true, false, false, false]);
        let admin = [rights::NET_RAW, rights::NET_ADMIN, rights::SYS_ADMIN];
        assert_eq!(of(&with(&admin), ""), [true; 4]);
        let limits = "Max locked memory         8388608              8388608              bytes\n";
        assert_eq!(of(&with(&all), limits), [true, true, false, true]);
        let lock = [&all[..], &[rights::IPC_LOCK]].concat();
        assert_eq!(of(&with(&lock), limits), [true; 4]);
    }

    #[test]
    fn remedies_do_not_undo_each_other() {
        let (_dir, bare) = system(&[("dev/net/tun", "")]);
        let found = [live(&bare), tap(&bare), afxdp(&bare), xdp(&bare)];
        let remedies: Vec<_> = found.into_iter().map(|f| f.remedy.unwrap()).collect();
        assert!(
            remedies.iter().all(|r| r == remedies.first().unwrap()),
            "{remedies:?}"
        );
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
