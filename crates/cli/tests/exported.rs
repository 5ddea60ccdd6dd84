//! `run --sample --export`: a collector in the test has what the account says, read by a library that is not ours.

use crate::common;
use crate::common::live::Live;

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use common::{SPLIT, json, millrace, output};
use millrace_turns::its_turn;
use netflow_parser::variable_versions::ipfix::FlowSetBody;
use netflow_parser::{NetflowPacket, NetflowParser};
use serde_json::Value;

/// A collector that reads while the run lasts, and its word.
struct Collector {
    socket: UdpSocket,
    over: Arc<AtomicBool>,
    reader: JoinHandle<Vec<Vec<u8>>>,
}

impl Collector {
    fn new() -> (Self, String) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let word = format!("ipfix:{}", socket.local_addr().unwrap());
        let wait = Some(Duration::from_millis(100));
        socket.set_read_timeout(wait).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let (taken, end) = (socket.try_clone().unwrap(), over.clone());
        let reader = std::thread::spawn(move || {
            let (mut messages, mut buffer) = (Vec::new(), [0; 2048]);
            loop {
                // Before the look at the socket: what was sent before the end is still there.
                let last = end.load(Ordering::Acquire);
                match taken.recv(&mut buffer) {
                    Ok(length) => messages.push(buffer.get(..length).unwrap().to_vec()),
                    Err(_) if last => return messages,
                    Err(_) => {}
                }
            }
        });
        let collector = Self {
            socket,
            over,
            reader,
        };
        (collector, word)
    }

    /// The records that have come.
    fn records(self) -> Vec<Record> {
        self.over.store(true, Ordering::Release);
        drop(self.socket);
        read(&self.reader.join().unwrap())
    }
}

/// A record of flows: its fields by name.
type Record = BTreeMap<String, Value>;

/// The records of messages.
fn read(messages: &[Vec<u8>]) -> Vec<Record> {
    let mut parser = NetflowParser::default();
    let mut out = Vec::new();
    for message in messages {
        let read = parser.parse_bytes(message);
        assert!(read.error.is_none(), "{:?}", read.error);
        for packet in read.packets {
            let NetflowPacket::IPFix(packet) = packet else {
                panic!("{packet:?}");
            };
            for set in packet.flowsets {
                match set.body {
                    FlowSetBody::Data(data) => out.extend(data.fields.iter().map(|record| {
                        let each = record.iter();
                        each.map(|(f, v)| (format!("{f:?}"), serde_json::to_value(v).unwrap()))
                            .collect::<Record>()
                    })),
                    FlowSetBody::NoTemplate(_) => panic!("no template for {:?}", set.header),
                    _ => {}
                }
            }
        }
    }
    out
}

fn packets(record: &Record) -> u64 {
    record["IANA(PacketDeltaCount)"]["DataNumber"]["U64"]
        .as_u64()
        .unwrap()
}

/// The text of an element of ours; none where the record has none.
fn own(record: &Record, number: u16) -> Option<String> {
    let name = format!("Enterprise {{ enterprise_number: 32473, field_number: {number} }}");
    let bytes = record.get(&name)?["Vec"].as_array()?;
    let bytes = bytes.iter().map(|b| b.as_u64().unwrap() as u8).collect();
    String::from_utf8(bytes).ok()
}

fn status(record: &Record) -> String {
    let of = record["IANA(ForwardingStatus)"]["ForwardingStatus"].as_object();
    of.unwrap().keys().next().unwrap().clone()
}

/// Packets of records by what `of` says of each.
fn sums<K: Ord>(records: &[Record], of: impl Fn(&Record) -> Option<K>) -> BTreeMap<K, u64> {
    let mut sums = BTreeMap::new();
    for record in records {
        if let Some(key) = of(record) {
            *sums.entry(key).or_default() += packets(record);
        }
    }
    sums
}

#[test]
fn a_collector_has_what_the_account_says_with_the_lines_of_drops() {
    let dir = tempfile::tempdir().unwrap();
    let (collector, word) = Collector::new();
    let run = |name: &str, more: &[&str]| {
        let out = dir.path().join(name);
        let mut command = millrace();
        command.args(["run", "firewall", "--in", "captures/talk.pcap"]);
        command
            .args(["--split", SPLIT, "--out"])
            .arg(&out)
            .args(more);
        (json(&mut command).0, std::fs::read(out).unwrap())
    };
    let (account, bytes) = run("with.pcap", &["--sample", "1/1", "--export", &word]);
    let records = collector.records();
    let (_, without) = run("without.pcap", &[]);
    assert!(
        bytes == without,
        "a packet that is sampled leaves otherwise"
    );

    let export = &account["export"];
    assert_eq!(export["sampled"], account["read"]);
    assert_eq!(
        (&export["missed"], &export["untold"], &export["lost"]),
        (&0.into(), &0.into(), &0.into()),
        "{export}"
    );
    assert_eq!(export["records"], records.len());
    let by = sums(&records, |r| Some(status(r)));
    assert_eq!(account["forwarded"], by["Forwarded"]);
    assert_eq!(account["dropped"], by["Dropped"]);
    let reasons = sums(&records, |r| own(r, 2));
    assert_eq!(account["reasons"], serde_json::to_value(&reasons).unwrap());
    assert!(
        records
            .iter()
            .all(|r| own(r, 1).as_deref() == Some("firewall"))
    );

    // The line is the one that `explain` has for such a packet.
    let lines = sums(&records, |r| Some((own(r, 2)?, own(r, 3)?)));
    for reason in reasons.keys() {
        let mut explain = millrace();
        explain.args(["explain", "firewall", "--in", "captures/talk.pcap"]);
        explain.args(["--split", SPLIT, "--where"]);
        let told = json(explain.arg(format!("drop {reason}"))).0;
        let line = told["elements"][0]["line"].as_str().unwrap().to_owned();
        assert!(lines.contains_key(&(reason.clone(), line)), "{lines:?}");
    }
}

#[test]
fn samples_of_several_workers_that_share_state_are_all_there() {
    if !its_turn("samples of workers that share state", 2, 3) {
        return;
    }
    let (collector, word) = Collector::new();
    let mut command = common::optimised();
    command.args(["run", "firewall", "--in", "mem:captures/talk.pcap"]);
    command.args(["--split", SPLIT, "--cores", "2", "--strategy", "transact"]);
    command.args(["--loops", "40", "--sample", "1/10", "--export", &word]);
    let account = json(&mut command).0;
    let records = collector.records();
    let export = &account["export"];
    let all: u64 = records.iter().map(packets).sum();
    assert_eq!(
        export["sampled"].as_u64().unwrap() - export["missed"].as_u64().unwrap(),
        all
    );
    // Each worker counts for itself.
    let workers = account["workers"].as_array().unwrap();
    let expected = workers.iter().map(|w| w["packets"].as_u64().unwrap() / 10);
    assert_eq!(export["sampled"], expected.sum::<u64>(), "{export}");
}

/// A run is traced and sampled at a time; its collector is away, which it counts and does not wait for.
#[test]
fn a_live_run_goes_on_without_a_collector_and_is_traced_beside() {
    let dir = tempfile::tempdir().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let word = format!("ipfix:{}", socket.local_addr().unwrap());
    drop(socket);
    let words = ["--in", "mem:captures/talk.pcap", "--split", SPLIT];
    let more = ["--out", "null:", "--seconds", "60", "--sample", "1/100"];
    let export = ["--export", &word];
    let live = Live::of(
        dir.path(),
        &["firewall"],
        &[&words[..], &more, &export].concat(),
    );
    live.until(|stats| stats["read"].as_u64() > Some(0));
    let told = live.ask(&["ctl", "trace", "--match", "drop no_flow"]);
    assert_eq!(told["packets"][0]["reason"], "no_flow", "{told}");
    live.ask(&["ctl", "stop"]);
}

#[test]
fn what_cannot_be_exported_is_refused() {
    let run = |words: &[&str]| {
        let mut command = millrace();
        command.args(["run", "nop", "--in", "captures/talk.pcap", "--split", SPLIT]);
        let (done, said) = output(command.args(words));
        assert!(!done.status.success() && said.contains("error: "), "{said}");
        said
    };
    let said = run(&["--sample", "1/0", "--export", "ipfix:127.0.0.1:4739"]);
    assert!(said.contains("1/1000"), "{said}");
    let said = run(&["--sample", "1/2", "--export", "netflow:127.0.0.1:4739"]);
    assert!(said.contains("ipfix:"), "{said}");
    let said = run(&["--sample", "1/2"]);
    assert!(said.contains("--export"), "{said}");
    let said = run(&common::words(
        "--sample 1/2 --export ipfix:no.such.host.invalid:4739",
    ));
    assert!(said.contains("collector"), "{said}");
}
