//! Requirements of hosted programs on this machine.

use super::checks::System;
use super::{Finding, State};

/// Looks at it.
pub fn guests(system: &System) -> Finding {
    let actions = system.read("proc/sys/kernel/seccomp/actions_avail");
    let traps = actions.split_whitespace().any(|a| a == "trap");
    let flags = system.field("proc/cpuinfo", "flags").unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|f| f == flag);
    let mut found = if traps {
        "seccomp filters"
    } else {
        "no seccomp filters that trap"
    }
    .to_owned();
    found += if has("fsgsbase") {
        ", FSGSBASE"
    } else {
        ", no FSGSBASE: a switch costs two system calls"
    };
    // Without "ospke" the kernel does not let programs use them.
    found += if has("ospke") {
        ", PKU: a guest's stray writes into the host or another guest are caught (faults, not malice)"
    } else {
        ", no PKU: a guest's stray writes into the host or another guest are not caught"
    };
    found += match millrace_guest::snapshot::track::by() {
        "userfaultfd" => ", moved with pages tracked by userfaultfd",
        _ => ", moved with pages compared: no userfaultfd with PAGEMAP_SCAN (Linux 6.7)",
    };
    Finding {
        name: "guests",
        state: if traps { State::Ok } else { State::Limited },
        found,
        serves: "hosting unmodified programs (guest:'tcpdump -n -i @')",
        remedy: (!traps).then(|| "boot a kernel with CONFIG_SECCOMP_FILTER".to_owned()),
    }
}
