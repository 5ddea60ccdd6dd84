//! Every NF over every capture: one fate for every packet, nothing outside its memory, and the same
//! bytes twice.

use std::fs::File;
use std::path::Path;

use millrace_tests::command::{captures, json, millrace, nfs};
use millrace_traffic::capture::{Format, Reader, Writer};
use millrace_turns::of_today;
use serde_json::Value;

/// Runs an NF over a capture; a two-port function sees private sources at its LAN, one with another port inside at that.
fn run(nf: &str, capture: &Path, out: &Path, more: &[&str]) -> Value {
    let mut command = millrace();
    let inside = if nf == "webfront" { "clients" } else { "lan" };
    let split = format!("{inside}=10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fe80::/10");
    command
        .args(["run", nf, "--json", "--in"])
        .arg(capture)
        .args(["--split", &split, "--out"])
        .arg(out)
        .args(more);
    let (account, code) = json(&mut command);
    assert_eq!(code, 0, "{nf} over {}: {account}", capture.display());
    account
}

fn number(account: &Value, field: &str) -> u64 {
    account[field]
        .as_u64()
        .unwrap_or_else(|| panic!("no field {field} in {account}"))
}

fn assert_accounted(nf: &str, capture: &Path, account: &Value) {
    let fates = ["forwarded", "dropped", "passed", "consumed", "aborted"];
    let sum: u64 = fates.iter().map(|f| number(account, f)).sum();
    assert_eq!(
        number(account, "read"),
        sum,
        "{nf} over {}: {account}",
        capture.display()
    );
    let expected = packets_in(capture);
    assert_eq!(
        number(account, "read"),
        expected,
        "{nf} over {}",
        capture.display()
    );
}

/// Packets in a capture, counted by walking record or block headers here, so that a reader that loses
/// some cannot agree with itself.
fn packets_in(capture: &Path) -> u64 {
    let bytes = std::fs::read(capture).unwrap();
    let big = matches!(
        bytes[..4],
        [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d]
    );
    let word = |at: usize| {
        let word: [u8; 4] = bytes[at..at + 4].try_into().unwrap();
        if big {
            u32::from_be_bytes(word)
        } else {
            u32::from_le_bytes(word)
        }
    };
    let mut count = 0;
    if bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
        // pcapng: type and length begin a block; 6 is an enhanced packet, 3 a simple one.
        let mut at = 0;
        while at + 12 <= bytes.len() {
            count += u64::from(matches!(word(at), 3 | 6));
            at += word(at + 4) as usize;
        }
    } else {
        let mut at = 24;
        while at + 16 <= bytes.len() {
            at += 16 + word(at + 8) as usize;
            count += 1;
        }
    }
    count
}

/// Captures as they are through one function, and all of them, one behind the other, through each: starting the command takes
/// longer than most of them.
#[test]
fn every_packet_of_every_capture_has_one_fate_and_two_runs_write_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let all = folder.path().join("all.pcapng");
    behind(&all, usize::MAX);
    let outputs = [
        folder.path().join("1.pcapng"),
        folder.path().join("2.pcapng"),
    ];
    let twice = |nf: &str, capture: &Path| {
        let [first, second] = &outputs;
        assert_accounted(nf, capture, &run(nf, capture, first, &[]));
        let seven = run(nf, capture, second, &["--burst", "7"]);
        assert_accounted(nf, capture, &seven);
        assert!(
            std::fs::read(first).unwrap() == std::fs::read(second).unwrap(),
            "{nf} over {}: two runs, at bursts of 32 and of 7, differ",
            capture.display()
        );
    };
    for capture in captures() {
        twice("firewall", &capture);
    }
    for nf in nfs() {
        twice(&nf, &all);
    }
}

/// Packets of each capture that go through code for the sanitizers, which is not optimised; the command with their runtime
/// takes ten times as long to start.
const SANITIZED: usize = 1_500;

/// The first packets of all captures, one behind the other in the order of their times, as one file.
fn behind(to: &Path, most: usize) {
    let file = File::create(to).unwrap();
    let mut writer = Writer::new("behind", file, Format::Pcapng, &["0"]);
    let mut all: Vec<Vec<(u64, Vec<u8>)>> = (captures().iter())
        .map(|capture| beginning(capture, most))
        .collect();
    all.sort_by_key(|packets| packets.first().map(|(time, _)| *time));
    for (time, data) in all.iter().flatten() {
        writer.write(*time, 0, 0, data).unwrap();
    }
    writer.finish().unwrap();
}

fn beginning(capture: &Path, most: usize) -> Vec<(u64, Vec<u8>)> {
    let mut reader = Reader::open(capture.to_str().unwrap()).unwrap();
    let mut packets = Vec::new();
    while packets.len() < most {
        let Some(record) = reader.next().unwrap() else {
            break;
        };
        packets.push((record.time_ns, record.data.to_vec()));
    }
    packets
}

#[test]
fn no_nf_leaves_its_memory_on_any_capture() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("beginnings.pcapng");
    behind(&capture, SANITIZED);
    for nf in of_today("functions over captures under the sanitizers", nfs(), 4) {
        let out = folder.path().join("out.pcap");
        assert_accounted(&nf, &capture, &run(&nf, &capture, &out, &["--sanitize"]));
    }
}
