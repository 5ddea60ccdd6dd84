//! Programs of xdp-tools, xdp-tutorial and goebpf doing what they are for, on the bundled capture, with the
//! commands of docs/measurements/public-objects.md: what is to come out is worked out here, from the capture alone.
//!
//! The objects are those in the folder $MILLRACE_OBJECTS; none is part of this repository.

mod forwarding;

use std::path::{Path, PathBuf};

use millrace_tests::command::{json, millrace, root};
use millrace_tests::emitted::Emitted;
use millrace_tests::public::objects;
use millrace_traffic::capture::Reader;
use serde_json::Value;

/// The object whose file name ends so; says so when it is not there.
fn find(name: &str) -> Option<PathBuf> {
    let Some(files) = objects().unwrap() else {
        println!("skipped: {name}, MILLRACE_OBJECTS names no folder of objects");
        return None;
    };
    let found = files
        .into_iter()
        .find(|f| f.to_string_lossy().ends_with(name));
    if found.is_none() {
        println!("skipped: {name}, there is none in MILLRACE_OBJECTS");
    }
    found
}

fn talk() -> PathBuf {
    root().join("captures/talk.pcap")
}

fn frames(capture: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::open(capture).unwrap();
    let mut frames = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        frames.push(record.data.to_vec());
    }
    frames
}

/// Where the transport header begins, and its protocol, of the headers that are in the capture.
fn transport(frame: &[u8]) -> Option<(usize, u8)> {
    match frame[12..14] {
        [8, 0] => Some((14 + 4 * usize::from(frame[14] & 15), frame[23])),
        // A hop-by-hop header is as long as its second byte says, in words of 8 bytes.
        [0x86, 0xdd] if frame[20] == 0 => Some((54 + 8 * (1 + usize::from(frame[55])), frame[54])),
        [0x86, 0xdd] => Some((54, frame[20])),
        _ => None,
    }
}

fn port(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// One run over the bundled capture: the account, and what was passed to the host or sent.
struct Run {
    account: Value,
    passed: Vec<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    records: Vec<(String, String)>,
}

/// Runs it; `maps` are names and contents of files.
fn run(object: &Path, maps: &[(&str, &str)], more: &[&str]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut command = millrace();
    command.arg("run").arg(object).args(more).arg("--json");
    command.arg("--in").arg(talk());
    command.arg("--pass").arg(at("passed.pcap"));
    command.arg("--out").arg(at("sent.pcap"));
    command.arg("--records").arg(at("records"));
    for (name, text) in maps {
        std::fs::write(at(name), text).unwrap();
        let word = format!("{name}={}", at(name).display());
        command.args(["--map", &word]);
    }
    let (account, code) = json(&mut command);
    assert_eq!(code, 0, "{}: {account}", object.display());
    let records = std::fs::read_to_string(at("records")).unwrap();
    let records = records.lines().map(|line| {
        let record: Value = serde_json::from_str(line).unwrap();
        let text = |field: &str| record[field].as_str().unwrap().to_owned();
        (text("object"), text("bytes"))
    });
    Run {
        account,
        passed: frames(&at("passed.pcap")),
        sent: frames(&at("sent.pcap")),
        records: records.collect(),
    }
}

/// Runs a filter: what it passes is exactly what is expected to be.
fn assert_filters(name: &str, map: (&str, &str), passes: impl Fn(&[u8]) -> bool) {
    let Some(object) = find(name) else { return };
    let run = run(&object, &[map], &[]);
    let all = frames(&talk());
    let (expected, dropped): (Vec<_>, Vec<_>) = all.into_iter().partition(|f| passes(f));
    assert!(
        !expected.is_empty() && !dropped.is_empty(),
        "{name}: shows nothing"
    );
    assert_eq!(run.account["dropped"], dropped.len(), "{name}");
    assert!(run.passed == expected, "{name}: other packets are passed");
    println!(
        "{name}: {} passed, {} dropped",
        expected.len(),
        dropped.len()
    );
}

#[test]
fn xdp_filter_drops_a_port() {
    // 2 is the destination, 8 is UDP.
    let map = ("filter_ports", "be16:53 zeros:2,10\n");
    assert_filters("xdpfilt_alw_udp.o", map, |frame| {
        !transport(frame).is_some_and(|(at, p)| p == UDP && port(frame, at + 2) == 53)
    });
}

#[test]
fn xdp_filter_lets_nothing_but_a_port_through() {
    // Source and destination, TCP.
    let map = ("filter_ports", "be16:80 zeros:2,7\n");
    assert_filters("xdpfilt_dny_tcp.o", map, |frame| {
        transport(frame)
            .is_some_and(|(at, p)| p == TCP && (port(frame, at) == 80 || port(frame, at + 2) == 80))
    });
}

#[test]
fn xdp_filter_drops_a_host() {
    let map = ("filter_ipv4", "10.0.0.3,3\n");
    let host = [10, 0, 0, 3];
    assert_filters("xdpfilt_alw_ip.o", map, |frame| {
        let ip = frame[12..14] == [8, 0] && (frame[26..30] == host || frame[30..34] == host);
        let arp = frame[12..14] == [8, 6] && (frame[28..32] == host || frame[38..42] == host);
        !(ip || arp)
    });
}

#[test]
fn xdp_filter_drops_a_station() {
    let map = ("filter_ethernet", "02:00:00:00:02:02,1\n");
    assert_filters("xdpfilt_alw_eth.o", map, |frame| {
        frame[6..12] != [2, 0, 0, 0, 2, 2]
    });
}

#[test]
fn goebpf_firewall_drops_a_prefix() {
    // The value is the index of the counter.
    let map = ("blacklist", "u32:25 192.0.2.128,1\n");
    assert_filters("basic_firewall-ebpf_prog-xdp_fw.o", map, |frame| {
        !(frame[12..14] == [8, 0] && frame[26..29] == [192, 0, 2] && frame[29] >= 128)
    });
}

#[test]
fn xdp_tutorial_rewrites_ports() {
    let Some(object) = find("packet-solutions-xdp_prog_kern_02.o") else {
        return;
    };
    let run = run(&object, &[], &["--program", "xdp_patch_ports_func"]);
    let mut rewritten = 0;
    for (before, after) in frames(&talk()).iter().zip(&run.passed) {
        let mut expected = before.clone();
        if let Some((at, protocol @ (TCP | UDP))) = transport(before) {
            let lower = port(before, at + 2).wrapping_sub(1);
            expected[at + 2..at + 4].copy_from_slice(&lower.to_be_bytes());
            // It mends the checksum by adding 1, in the machine's order, so that a carry is lost.
            let sum = at + if protocol == TCP { 16 } else { 6 };
            let mut mended = u16::from_le_bytes([before[sum], before[sum + 1]]).wrapping_add(0x100);
            if mended == 0 {
                mended = 0x100;
            }
            expected[sum..sum + 2].copy_from_slice(&mended.to_le_bytes());
            rewritten += 1;
        }
        assert_eq!(*after, expected);
    }
    assert!(rewritten > 1000 && run.passed.len() == 1619, "{rewritten}");
    println!("xdp_patch_ports_func: {rewritten} packets rewritten");
}

#[test]
fn xdp_tutorial_tags_a_vlan() {
    let Some(object) = find("packet-solutions-xdp_prog_kern_02.o") else {
        return;
    };
    let run = run(&object, &[], &["--program", "xdp_vlan_swap_func"]);
    let tagged = |frame: &Vec<u8>| [&frame[..12], &[0x81, 0, 0, 1], &frame[12..]].concat();
    let expected: Vec<_> = frames(&talk()).iter().map(tagged).collect();
    assert!(run.passed == expected);
    println!("xdp_vlan_swap_func: {} packets tagged", expected.len());
}

#[test]
fn xdp_tutorial_answers_echoes() {
    let Some(object) = find("packet-solutions-xdp_prog_kern_03.o") else {
        return;
    };
    let run = run(&object, &[], &["--program", "xdp_icmp_echo_func"]);
    let asks = |f: &&Vec<u8>| match transport(f) {
        Some((at, 1)) => f[at] == 8,
        Some((at, 58)) => f[at] == 128,
        _ => false,
    };
    let all = frames(&talk());
    let questions: Vec<_> = all.iter().filter(asks).collect();
    assert!(!questions.is_empty());
    assert_eq!(run.sent.len(), questions.len());
    for (question, answer) in questions.iter().zip(&run.sent) {
        let (at, protocol) = transport(question).unwrap();
        assert_eq!(answer[..6], question[6..12]);
        assert_eq!(answer[6..12], question[..6]);
        assert_eq!(answer[at], if protocol == 1 { 0 } else { 129 });
        let (source, target) = match protocol {
            1 => (26..30, 30..34),
            _ => (22..38, 38..54),
        };
        assert_eq!(answer[source.clone()], question[target.clone()]);
        assert_eq!(answer[target], question[source]);
    }
    println!("xdp_icmp_echo_func: {} echoes answered", questions.len());
}

#[test]
fn xdp_tutorial_redirects_a_station() {
    let Some(object) = find("packet-solutions-xdp_prog_kern_03.o") else {
        return;
    };
    let maps = [
        ("tx_port", "0,2\n"),
        ("redirect_params", "02:00:00:00:02:01,02:00:00:00:00:99\n"),
    ];
    let run = run(&object, &maps, &["--program", "xdp_redirect_map_func"]);
    let mut expected: Vec<_> = frames(&talk());
    expected.retain(|f| f[6..12] == [2, 0, 0, 0, 2, 1]);
    for frame in &mut expected {
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0x99]);
    }
    assert!(!expected.is_empty() && run.sent == expected);
    println!(
        "xdp_redirect_map_func: {} packets redirected",
        expected.len()
    );
}

#[test]
fn xdp_bench_redirects_to_a_port() {
    let Some(object) = find("xdp-bench-xdp_redirect_devmap.o") else {
        return;
    };
    let maps = [("tx_port_native", "0,u32:2 u32:0\n")];
    let more = ["--capacity", "*=2", "--program", "redir_devmap_native"];
    let run = run(&object, &maps, &more);
    assert_eq!(run.account["forwarded"], 1619, "{}", run.account);
    // It swaps the stations' addresses.
    let swapped = |f: &Vec<u8>| [&f[6..12], &f[..6], &f[12..]].concat();
    let expected: Vec<_> = frames(&talk()).iter().map(swapped).collect();
    assert!(run.sent == expected, "other packets are sent");
    println!("redir_devmap_native: {} packets redirected", expected.len());
}

#[test]
fn xdp_tutorial_dumps_packets() {
    let Some(object) = find("tracing04-xdp-tcpdump-xdp_sample_pkts_kern.o") else {
        return;
    };
    let run = run(&object, &[], &[]);
    let expected: Vec<_> = (frames(&talk()).iter())
        .map(|frame| {
            // A cookie, the length but at most 1024, and the whole packet.
            let length = frame.len().min(1024) as u16;
            let head = [0xdead_u16.to_le_bytes(), length.to_le_bytes()].concat();
            let record = [&head, frame.as_slice()].concat();
            let hex: String = record.iter().map(|b| format!("{b:02x}")).collect();
            ("my_map".to_owned(), hex)
        })
        .collect();
    assert!(run.records == expected, "other records are written");
    println!("xdp_sample_pkts: {} records", expected.len());
}

#[test]
fn xdp_tutorial_counts_packets_and_bytes() {
    let Some(object) = find("basic04-pinning-maps-xdp_prog_kern.o") else {
        return;
    };
    let cache = tempfile::tempdir().unwrap();
    let mut ours = Emitted::of(&cache.path().join("cache"), &object, 2, &[]).unwrap();
    ours.select("xdp_drop_func").unwrap();
    let (mut packets, mut bytes) = (0_u64, 0_u64);
    for frame in frames(&talk()) {
        ours.run(&frame).unwrap();
        packets += 1;
        bytes += frame.len() as u64;
    }
    // By verdict; XDP_DROP is 1.
    let entries = ours.entries("xdp_stats_map").unwrap();
    let counted = &entries[&1_u32.to_le_bytes().to_vec()];
    assert_eq!(
        *counted,
        [packets.to_le_bytes(), bytes.to_le_bytes()].concat()
    );
    println!("xdp_drop_func: {packets} packets, {bytes} bytes counted");
}
