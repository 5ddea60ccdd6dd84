//! Routing against the kernel: in a network namespace of the test's own, with interfaces, routes and
//! neighbours of every sort, the kernel, the emitted code and the interpreter are asked the same.
//!
//! The test runs itself once more under `unshare -n`; the namespace and all that is in it go with that
//! process. Our side reads the table as `--routes system` does.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use millrace_object::program::{ObjectId, Program, Role};
use millrace_reference::{End, Machine};
use millrace_routes::{Table, system};
use millrace_tests::command::root;
use millrace_tests::emitted::Emitted;
use millrace_tests::kernel::{Kernel, unavailable};
use millrace_tests::random::Random;

const INSIDE: &str = "MILLRACE_TEST_NAMESPACE";

/// What the namespace has; interface indices are 1 (lo) to 5 without a gap.
const NETWORK: &str = r"
set -e
ip link set lo up
for i in 2 4; do
    ip link add v$i index $i address 02:00:00:00:00:0$i type veth peer name v$((i + 1)) index $((i + 1)) address 02:00:00:00:00:0$((i + 1))
    ip link set v$i up
    ip link set v$((i + 1)) up
done
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
echo 0 > /proc/sys/net/ipv4/conf/v3/forwarding
echo 0 > /proc/sys/net/ipv6/conf/v5/forwarding
ip link set v4 mtu 1400
ip address add 10.0.2.1/24 dev v2
ip address add 10.0.2.7/24 dev v2
ip address add 10.0.4.1/24 dev v4
ip address add 192.0.2.1/32 dev v5
ip -6 address add 2001:db8:2::1/64 dev v2 nodad
ip -6 address add 2001:db8:2::ff:1/64 dev v2 nodad
ip -6 address add 2001:db8:4::1/64 dev v4 nodad
ip route add 10.1.0.0/16 via 10.0.2.2
ip route add 10.1.1.0/24 via 10.0.4.2 metric 7
ip route add 10.1.1.0/24 via 10.0.2.2 metric 9
ip route add 10.1.1.128/25 via 10.0.4.3 src 10.0.2.7
ip route add 10.1.1.130/32 via 10.0.2.2 mtu lock 1300
ip route add 10.1.1.131/32 via 10.0.2.2 mtu 1300
ip route add blackhole 10.2.0.0/16
ip route add unreachable 10.2.1.0/24
ip route add prohibit 10.2.2.0/24
ip route add throw 10.2.3.0/24
ip route add 10.2.4.0/24 via 10.0.2.2
ip route add 10.3.0.0/16 via inet6 fe80::9 dev v4
ip route add 10.4.0.0/16 nexthop via 10.0.2.2 weight 3 nexthop via 10.0.4.2
ip route add 10.5.0.0/16 dev v5
ip route add default via 10.0.4.2 metric 50
ip route add 10.1.0.0/16 via 10.0.4.2 table 100
ip route add unreachable default table 100
ip -6 route add 2001:db8:10::/48 via 2001:db8:2::2
ip -6 route add 2001:db8:10:1::/64 via fe80::9 dev v4 metric 7
ip -6 route add 2001:db8:10:1::/64 via 2001:db8:2::2 metric 9
ip -6 route add 2001:db8:10:2::/64 via 2001:db8:2::2 mtu lock 1290
ip -6 route add 2001:db8:10:3::/64 dev v5 src 2001:db8:4::1
ip -6 route add blackhole 2001:db8:20::/48
ip -6 route add unreachable 2001:db8:20:1::/64
ip -6 route add prohibit 2001:db8:20:2::/64
ip -6 route add 2001:db8:40::/48 nexthop via 2001:db8:2::2 nexthop via 2001:db8:4::2
ip -6 route add default via 2001:db8:4::2
ip -6 route add 2001:db8:10::/48 via 2001:db8:4::2 table 100
ip neighbour add 10.0.2.2 lladdr 02:00:00:00:02:02 dev v2
ip neighbour add 10.0.4.2 lladdr 02:00:00:00:04:02 dev v4 nud stale
ip neighbour add 10.5.0.1 lladdr 02:00:00:00:05:01 dev v5 nud noarp
ip neighbour add 10.5.0.2 dev v5 lladdr 02:00:00:00:05:02 nud failed
ip neighbour add fe80::9 lladdr 02:00:00:00:04:09 dev v4
ip neighbour add 2001:db8:2::2 lladdr 02:00:00:00:02:22 dev v2
ip neighbour add 2001:db8:4::2 lladdr 02:00:00:00:04:22 dev v4
";

/// Addresses in every route, at its edges, and outside.
const FOUR: [&str; 30] = [
    "10.0.2.1",
    "10.0.2.2",
    "10.0.2.3",
    "10.0.2.255",
    "10.0.4.2",
    "10.1.0.1",
    "10.1.1.1",
    "10.1.1.127",
    "10.1.1.128",
    "10.1.1.130",
    "10.1.1.131",
    "10.1.2.0",
    "10.2.0.1",
    "10.2.1.1",
    "10.2.2.1",
    "10.2.3.1",
    "10.2.4.1",
    "10.3.0.1",
    "10.4.0.1",
    "10.4.77.3",
    "10.5.0.1",
    "10.5.0.2",
    "10.5.0.3",
    "127.0.0.1",
    "127.1.2.3",
    "192.0.2.1",
    "224.0.0.1",
    "255.255.255.255",
    "0.0.0.0",
    "8.8.8.8",
];
const SIX: [&str; 22] = [
    "2001:db8:2::1",
    "2001:db8:2::2",
    "2001:db8:2::3",
    "2001:db8:4::2",
    "2001:db8:10::1",
    "2001:db8:10:1::1",
    "2001:db8:10:2::1",
    "2001:db8:10:3::1",
    "2001:db8:20::1",
    "2001:db8:20:1::1",
    "2001:db8:20:2::1",
    "2001:db8:40::1",
    "2001:db8:40::2:1",
    "fe80::9",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "::1",
    "::",
    "::ffff:10.1.0.1",
    "2001:db8:99::1",
];

/// Where the kernel's choice among several next hops is its own.
const SHARED: [&str; 4] = [
    "10.4.0.1",
    "10.4.77.3",
    "2001:db8:40::1",
    "2001:db8:40::2:1",
];

/// Size, flags and parameters of a call; whether its answer is the kernel's own choice.
fn question(draw: &mut Random) -> (Vec<u8>, bool) {
    let mut params = [0_u8; 64];
    for byte in &mut params {
        *byte = draw.below(256) as u8;
    }
    let six = draw.below(2) == 1;
    params[0] = if draw.below(40) == 0 {
        7
    } else if six {
        10
    } else {
        2
    };
    let length = draw.of(&[
        0_u16, 20, 1280, 1281, 1290, 1291, 1300, 1301, 1400, 1401, 1500, 1501, 65535,
    ]);
    params[6..8].copy_from_slice(&length.to_le_bytes());
    let ifindex = draw.of(&[1_u32, 2, 2, 2, 3, 4, 4, 4, 5, 6, 0, 0xffff_ffff]);
    params[8..12].copy_from_slice(&ifindex.to_le_bytes());
    let mut shared = false;
    for at in [16, 32] {
        let word = if six { draw.of(&SIX) } else { draw.of(&FOUR) };
        if six {
            let word: std::net::Ipv6Addr = word.parse().unwrap();
            params[at..at + 16].copy_from_slice(&word.octets());
        } else {
            let word: std::net::Ipv4Addr = word.parse().unwrap();
            params[at..at + 4].copy_from_slice(&word.octets());
        }
        shared = SHARED.contains(&word);
    }
    let table = draw.of(&[0_u32, 100, 100, 253, 254, 255, 77]);
    params[48..52].copy_from_slice(&table.to_le_bytes());
    let flags = match draw.below(20) {
        0 => 1 << (6 + draw.below(26)),
        1..=8 => 0,
        _ => draw.below(64) as u32,
    };
    // The source for an IPv6 route is chosen when it is read, not for each destination: `::` is of another
    // scope than the rest of `default`, and for an address of its own the kernel names this one.
    let own = [
        std::net::Ipv6Addr::UNSPECIFIED,
        "2001:db8:2::1".parse().unwrap(),
    ];
    let to: [u8; 16] = params[32..48].try_into().unwrap();
    shared |= flags & 0x10 != 0 && params[0] == 10 && own.contains(&to.into());
    let size = if draw.below(30) == 0 {
        1 + draw.below(63)
    } else {
        64
    };
    let mut frame = vec![0; 16];
    frame.extend((size as u32 - 1).to_le_bytes());
    frame.extend(flags.to_le_bytes());
    frame.extend([0; 8]);
    frame.extend(params);
    (frame, shared)
}

struct Three {
    kernel: Kernel,
    emitted: Emitted,
    program: Program,
    entries: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Three {
    fn new(cache: &Path, name: &str, table: &Table) -> Self {
        let source = root().join("tests/programs/routing.c");
        let mut emitted = Emitted::of(cache, &source, 5, &[]).unwrap();
        emitted.select(name).unwrap();
        let entries = table.entries();
        for (key, value) in &entries {
            emitted.set(".routes", key, value).unwrap();
        }
        Self {
            kernel: Kernel::load(&emitted.object).unwrap().program(name),
            program: emitted.program.clone(),
            emitted,
            entries,
        }
    }

    /// What each of the three made of a frame: the kernel, the emitted code, the interpreter.
    fn ask(&mut self, name: &str, frame: &[u8]) -> [Vec<u8>; 3] {
        let kernel = self.kernel.run(frame).unwrap().packet;
        let emitted = self.emitted.run(frame).unwrap().packet;
        let mut machine = Machine::exact(&self.program);
        machine.ports(5);
        let at = self
            .program
            .objects
            .iter()
            .position(|o| o.name == ".routes");
        for (key, value) in &self.entries {
            assert!(machine.set(ObjectId(at.unwrap()), key, value));
        }
        machine.packet(frame, 0, 0);
        let is = |e: &&millrace_object::program::Entry| {
            self.program.functions[e.function.0].name == name
        };
        let entry = self.program.entries.iter().find(is).unwrap();
        let end = machine.run(entry.function, Role::Xdp, 100_000).unwrap();
        assert!(matches!(end, End::Verdict(1 | 2)), "{end:?}");
        [kernel, emitted, machine.packet_bytes().to_vec()]
    }
}

fn result(frame: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(frame[at..at + 8].try_into().unwrap())
}

/// In the namespace.
fn compare() {
    let made = Command::new("sh").args(["-c", NETWORK]).status().unwrap();
    assert!(made.success(), "the namespace cannot be furnished");
    let interfaces: Vec<String> = ["lo", "v2", "v3", "v4", "v5"].map(String::from).to_vec();
    let table = system::read(&interfaces).unwrap();
    assert_eq!(table.notes, Vec::<String>::new());
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path().join("cache");
    let mut draw = Random(0x9e37_79b9_7f4a_7c15);

    let mut three = Three::new(&cache, "lookup", &table);
    let mut results = BTreeMap::<i64, u32>::new();
    for round in 0..6000 {
        let (frame, shared) = question(&mut draw);
        let [kernel, emitted, interpreted] = three.ask("lookup", &frame);
        let what = || format!("question {round}: {frame:02x?}\nkernel {kernel:02x?}");
        assert_eq!(
            interpreted,
            emitted,
            "{}: interpreter and emitted code",
            what()
        );
        let found = result(&kernel, 24);
        if shared {
            // One hop's interface may be too small where the other's is not.
            let either = |r: i64| if r == 8 { 0 } else { r };
            assert_eq!(either(found), either(result(&emitted, 24)), "{}", what());
        } else {
            assert_eq!(kernel, emitted, "{}", what());
        }
        *results.entry(found).or_default() += 1;
    }
    println!("bpf_fib_lookup: 6000 questions agree, results {results:?}");
    // -EAFNOSUPPORT, -EINVAL, -ENODEV, and every BPF_FIB_LKUP_RET_ but UNSUPP_LWT. An IPv6 source can
    // always be derived here.
    for wanted in [-97, -22, -19, 0, 1, 2, 3, 4, 5, 7, 8] {
        assert!(
            results.contains_key(&wanted),
            "{wanted} was never the result"
        );
    }

    let mut three = Three::new(&cache, "fits", &table);
    let mut results = BTreeMap::<i64, u32>::new();
    for round in 0..2000 {
        let mut frame = vec![0; 16];
        frame.extend(
            draw.of(&[0_u32, 1, 2, 3, 4, 5, 6, 0xffff_ffff])
                .to_le_bytes(),
        );
        frame.extend(
            draw.of(&[0_u32, 1, 1399, 1400, 1401, 1500, 1501, 0xffff_fff0])
                .to_le_bytes(),
        );
        frame.extend(
            draw.of(&[0_i32, 1, -1, 100, 1400, i32::MIN, i32::MAX])
                .to_le_bytes(),
        );
        frame.extend([0; 4]);
        frame.extend(draw.of(&[0_u64, 0, 0, 0, 1, 1 << 40]).to_le_bytes());
        frame.extend([0; 8]);
        frame.resize(48 + draw.of(&[0, 1300, 1366, 1367, 1400, 1466, 1500]), 0);
        let [kernel, emitted, interpreted] = three.ask("fits", &frame);
        assert_eq!(
            interpreted, emitted,
            "{round}: interpreter and emitted code"
        );
        assert_eq!(kernel, emitted, "{round}: {:02x?}", &frame[..48]);
        *results.entry(result(&kernel, 40)).or_default() += 1;
    }
    println!("bpf_check_mtu: 2000 questions agree, results {results:?}");
    for wanted in [-22, -19, 0, 1] {
        assert!(
            results.contains_key(&wanted),
            "{wanted} was never the result"
        );
    }
}

#[test]
fn routing_answers_what_the_kernel_answers() {
    if std::env::var_os(INSIDE).is_some() {
        return compare();
    }
    if let Some(why) = unavailable() {
        println!("skipped: routing against the kernel, {why}");
        return;
    }
    let can = Command::new("unshare")
        .args(["-n", "ip", "link", "set", "lo", "up"])
        .output();
    if !can.is_ok_and(|o| o.status.success()) {
        println!("skipped: routing against the kernel, no network namespace can be made here");
        return;
    }
    let myself = std::env::current_exe().unwrap();
    let status = Command::new("unshare")
        .arg("-n")
        .arg(myself)
        .args([
            "--exact",
            "routing::routing_answers_what_the_kernel_answers",
            "--nocapture",
        ])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "see above");
}
