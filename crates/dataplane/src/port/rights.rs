//! Capabilities (capabilities(7)) that live ports need, and what is said where one is missing.

/// A capability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Right {
    /// its number in capabilities(7)
    pub number: u32,
    /// its name there
    pub name: &'static str,
}

const fn right(number: u32, name: &'static str) -> Right {
    Right { number, name }
}

/// Configuring the network: interfaces of `tap:`, maps of sockets, attaching XDP programs.
pub const NET_ADMIN: Right = right(12, "CAP_NET_ADMIN");
/// Packet sockets and AF_XDP sockets.
pub const NET_RAW: Right = right(13, "CAP_NET_RAW");
/// Locking memory beyond RLIMIT_MEMLOCK: the packet memory of AF_XDP sockets.
pub const IPC_LOCK: Right = right(14, "CAP_IPC_LOCK");
/// Includes BPF and PERFMON.
pub const SYS_ADMIN: Right = right(21, "CAP_SYS_ADMIN");
/// Pointer arithmetic in BPF programs beyond what unprivileged ones may do.
pub const PERFMON: Right = right(38, "CAP_PERFMON");
/// Loading BPF programs and maps.
pub const BPF: Right = right(39, "CAP_BPF");

/// Gives the command all that ports need. One line for all of them: each setcap replaces what the last one set.
pub const SETCAP: &str = "sudo setcap cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon,cap_ipc_lock+ep $(command -v millrace)";

/// What a kind of port needs, by its scheme: as measured on Linux 6, without any other capability.
#[must_use]
pub fn of(scheme: &str) -> &'static [Right] {
    match scheme {
        "afpacket" => &[NET_RAW],
        "tap" => &[NET_ADMIN],
        "afxdp" => &[NET_RAW, NET_ADMIN, BPF],
        "xdp" => &[NET_RAW, NET_ADMIN, BPF, PERFMON],
        // Of what drivers of DPDK need, what those of kernel interfaces do.
        "dpdk" => &[NET_RAW, NET_ADMIN],
        _ => &[],
    }
}

/// What to do where a port, named by its word, is refused a permission.
#[must_use]
pub fn help(word: &str) -> String {
    let scheme = word.split_once(':').map_or("", |(scheme, _)| scheme);
    let names: Vec<_> = of(scheme).iter().map(|r| r.name).collect();
    let needs = match names.as_slice() {
        [] => "live ports need capabilities".to_owned(),
        [one] => format!("{scheme}: needs {one}"),
        [first @ .., last] => format!("{scheme}: needs {} and {last}", first.join(", ")),
    };
    let apart = match scheme {
        "afpacket" | "tap" => {
            "; or run in a user namespace that has the interface (`unshare --user --map-root-user --net`)"
        }
        _ => "",
    };
    format!(
        "{needs}: run as root, or as the service millrace@NAME (docs/operate.md), or give the command what all ports \
         need, in one line: {SETCAP}{apart}"
    )
}

/// What to do where AF_XDP's packet memory cannot be locked: `needs` bytes for each queue, under a `limit` in bytes for
/// all of a user's processes (RLIMIT_MEMLOCK; none: no limit).
#[must_use]
pub fn locked(needs: u64, limit: Option<u64>) -> String {
    let limit = match limit {
        Some(bytes) => format!("this user may lock {} KiB in all", bytes >> 10),
        None => "no limit is set here".to_owned(),
    };
    format!(
        "each queue locks {} KiB of packet memory, and {limit} (RLIMIT_MEMLOCK): give the command CAP_IPC_LOCK \
         ({SETCAP}), or raise the limit (`ulimit -l unlimited` as root, LimitMEMLOCK=infinity in a unit); a smaller \
         ring=N locks less",
        needs >> 10
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::KINDS;

    #[test]
    fn every_kind_of_the_kernels_says_what_it_needs_and_one_line_gives_it() {
        for kind in KINDS {
            let live = kind.live.is_some() && kind.scheme != "vnic" || kind.scheme == "xdp";
            assert_eq!(!of(kind.scheme).is_empty(), live, "{}", kind.scheme);
            for right in of(kind.scheme) {
                assert!(
                    SETCAP.contains(&right.name.to_lowercase()),
                    "{}",
                    right.name
                );
                assert!(help(&format!("{}:x", kind.scheme)).contains(right.name));
            }
        }
        assert_eq!(SETCAP.matches("setcap").count(), 1);
    }

    #[test]
    fn locked_memory_is_told_with_its_limit_and_the_capability() {
        let help = locked(8 << 20, Some(64 << 10));
        assert!(
            help.contains("8192 KiB") && help.contains("64 KiB"),
            "{help}"
        );
        assert!(help.contains("CAP_IPC_LOCK"), "{help}");
        assert!(help.find("CAP_IPC_LOCK") < help.find("ring=N"), "{help}");
    }
}
