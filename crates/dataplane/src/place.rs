//! Where workers run and where their memory lies: on the NUMA node of the device that they serve.
//!
//! Linux gives memory from the node of the processor that touches it first. So the ports are opened
//! and a worker's state is made by a thread that is on that node ([`Stay`]), and of the processors that
//! may be used those of the device's node come first ([`processors`]). Where there is one node, or the
//! device has none (a veth), nothing is done.
//!
//! Read from sysfs (Documentation/ABI/stable/sysfs-devices-node, testing/sysfs-bus-pci). hwloc would answer
//! the same two questions (which node is a device on, which processors has a node) from the same two files, and
//! would be a library of C that has to be installed wherever a bundle runs.

use std::fs::read_to_string;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The system's files.
const SYS: &str = "/sys";
/// The most processors that a node's list is read for.
const MOST: usize = CpuSet::MAX_CPU;

/// The processors that this process may use, in order.
#[must_use]
pub fn cpus() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..MOST).filter(|cpu| set.is_set(*cpu)).collect(),
        Err(_) => Vec::new(),
    }
}

/// The processors that this process may use, those of the nodes first that these ports' devices are
/// on.
#[must_use]
pub fn processors<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
    let nodes = Nodes::read(Path::new(SYS));
    let wanted: Vec<u32> = words
        .into_iter()
        .filter_map(|word| node_of(Path::new(SYS), word))
        .collect();
    nodes.order(cpus(), &wanted)
}

/// Pins the calling thread to a processor. Where that is not allowed it runs wherever it is put.
pub fn pin(cpu: usize) {
    if cpu < MOST {
        let mut set = CpuSet::new();
        set.set(cpu);
        let _ = sched_setaffinity(None, &set);
    }
}

/// While it lives, the calling thread runs on the node of a processor, and memory that it touches
/// first lies there.
pub struct Stay(Option<CpuSet>);

impl Stay {
    /// On the node of this processor, if there is more than one node.
    #[must_use]
    pub fn near(cpu: Option<usize>) -> Self {
        let nodes = Nodes::read(Path::new(SYS));
        let Some(list) = cpu.and_then(|cpu| nodes.around(cpu)) else {
            return Self(None);
        };
        let before = sched_getaffinity(None).ok();
        let mut set = CpuSet::new();
        list.iter().for_each(|cpu| set.set(*cpu));
        match sched_setaffinity(None, &set) {
            Ok(()) => Self(before),
            Err(_) => Self(None),
        }
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// The machine's nodes and their processors.
struct Nodes(Vec<(u32, Vec<usize>)>);

impl Nodes {
    fn read(sys: &Path) -> Self {
        let mut nodes = Vec::new();
        let folder = sys.join("devices/system/node");
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|n| n.strip_prefix("node"));
            let Some(number) = number.and_then(|n| n.parse().ok()) else {
                continue;
            };
            let list = read_to_string(entry.path().join("cpulist")).unwrap_or_default();
            nodes.push((number, processors_in(&list)));
        }
        nodes.sort();
        Self(nodes)
    }

    /// The processors of the node that has this one, where there are several nodes.
    fn around(&self, cpu: usize) -> Option<&[usize]> {
        if self.0.len() < 2 {
            return None;
        }
        let node = self.0.iter().find(|(_, list)| list.contains(&cpu));
        node.map(|(_, list)| list.as_slice())
    }

    fn order(&self, mut allowed: Vec<usize>, wanted: &[u32]) -> Vec<usize> {
        let near = |cpu: &usize| {
            let mut nodes = self.0.iter().filter(|(number, _)| wanted.contains(number));
            nodes.any(|(_, list)| list.contains(cpu))
        };
        // Stable: false comes first.
        allowed.sort_by_key(|cpu| !near(cpu));
        allowed
    }
}

/// Processors of a list such as `0-3,8,10-11`; what is not one is left out.
fn processors_in(list: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            found.extend(first..=last.min(MOST - 1));
        }
    }
    found
}

/// The node of the device behind a port's word: of the interface or PCI device that it names, in front or
/// as an argument of a driver of DPDK (`iface=`). A PCI address may leave its domain out.
fn node_of(sys: &Path, word: &str) -> Option<u32> {
    // A plain name is an interface's.
    let rest = word.split_once(':').map_or(word, |(_, rest)| rest);
    let mut parts = rest.split('?').next()?.split([',', ';']);
    let first = parts.next()?;
    let interface = parts.find_map(|part| {
        let (key, value) = part.split_once('=')?;
        key.ends_with("iface").then_some(value)
    });
    let read = |place: &str, name: &str| {
        let sound = !name.is_empty() && !name.contains(['/', '\0']) && !name.starts_with('.');
        let [folder, file] = place.split('*').collect::<Vec<_>>()[..] else {
            return None;
        };
        let path = sys.join(format!("{folder}{name}{file}"));
        // -1 says that the device has none.
        sound.then(|| read_to_string(path).ok()?.trim().parse().ok())?
    };
    let names = [Some(first), interface].into_iter().flatten();
    names.into_iter().find_map(|name| {
        let address = name.to_ascii_lowercase();
        read("class/net/*/device/numa_node", name)
            .or_else(|| read("bus/pci/devices/*/numa_node", &address))
            .or_else(|| read("bus/pci/devices/0000:*/numa_node", &address))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes of four processors; eth1 and a PCI device on the second, eth0 on none.
    fn machine() -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        let files = [
            ("devices/system/node/node0/cpulist", "0-1,4-5\n"),
            ("devices/system/node/node1/cpulist", "2-3,6,7\n"),
            ("devices/system/node/possible", "0-1\n"),
            ("class/net/eth0/device/numa_node", "-1\n"),
            ("class/net/eth1/device/numa_node", "1\n"),
            ("bus/pci/devices/0000:3b:00.0/numa_node", "1\n"),
        ];
        for (file, text) in files {
            let file = sys.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        sys
    }

    #[test]
    fn processors_of_the_devices_node_come_first() {
        let sys = machine();
        let nodes = Nodes::read(sys.path());
        let node = |word| node_of(sys.path(), word);
        assert_eq!(node("afxdp:eth1?ring=512"), Some(1));
        for device in [
            "0000:3b:00.0",
            "3b:00.0",
            "3B:00.0?ring=64",
            "net_af_packet0,iface=eth1",
            "net_pcap0,rx_iface=eth1,tx_iface=eth0?mtu=9000",
        ] {
            let word = format!("dpdk:{device}");
            assert_eq!(node_of(sys.path(), &word), Some(1), "{device}");
        }
        assert_eq!(node("dpdk:3c:00.0"), None);
        assert_eq!(node("dpdk:net_tap0,iface=../net/eth1"), None);
        assert_eq!(node("afpacket:eth0"), None);
        assert_eq!(node("tap:eth7"), None);
        assert_eq!(node("afpacket:../net/eth1"), None);
        assert_eq!(node("eth1"), Some(1));
        assert_eq!(node("out.pcap"), None);
        let allowed = vec![0, 1, 2, 3, 4, 6];
        assert_eq!(nodes.order(allowed.clone(), &[1]), [2, 3, 6, 0, 1, 4]);
        assert_eq!(nodes.order(allowed.clone(), &[]), allowed);
        assert_eq!(nodes.around(6), Some(&[2, 3, 6, 7][..]));
        assert_eq!(nodes.around(9), None);
    }

    #[test]
    fn one_node_is_no_choice() {
        let sys = tempfile::tempdir().unwrap();
        assert_eq!(Nodes::read(sys.path()).around(0), None);
        let node = sys.path().join("devices/system/node/node0");
        std::fs::create_dir_all(&node).unwrap();
        std::fs::write(node.join("cpulist"), "0-1").unwrap();
        assert_eq!(Nodes::read(sys.path()).around(0), None);
    }

    #[test]
    fn lists_are_read_and_bounded() {
        assert_eq!(processors_in("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(processors_in(""), [0; 0]);
        assert_eq!(processors_in("x,3-1,7-"), [0; 0]);
        assert_eq!(processors_in("1020-99999999999").len(), MOST - 1020);
    }

    #[test]
    fn a_thread_is_where_it_was_afterwards() {
        let before = cpus();
        drop(Stay::near(before.first().copied()));
        assert_eq!(cpus(), before);
    }
}
