use std::path::{Path, PathBuf};

use millrace_traffic::capture::{Reader, Writer};

use super::*;
use crate::account::{NO_OTHER_PORT, OVERSIZE};
use crate::port::{self, InputOptions};
use crate::testing;

static GO: AtomicBool = AtomicBool::new(false);

const SECOND: u64 = 1_000_000_000;

/// A captured packet: stamp in ns, bytes.
type Packet = (u64, Vec<u8>);

fn capture(path: &Path, packets: &[Packet]) {
    let mut writer = Writer::create(path, &["a"]).unwrap();
    for (time, bytes) in packets {
        writer.write(*time, 0, bytes.len() as u32, bytes).unwrap();
    }
    writer.finish().unwrap();
}

fn read(path: &Path) -> Vec<Packet> {
    let mut reader = Reader::open(path).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        packets.push((record.time_ns, record.data.to_vec()));
    }
    packets
}

struct Bench {
    dir: tempfile::TempDir,
    inputs: Vec<PathBuf>,
}

impl Bench {
    fn new(inputs: &[&[Packet]]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = |(i, packets): (usize, &&[Packet])| {
            let path = dir.path().join(format!("in{i}.pcap"));
            capture(&path, packets);
            path
        };
        let inputs = inputs.iter().enumerate().map(file).collect();
        Self { dir, inputs }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A run of the fixture over the inputs, input i at port i, an output file for each of `ports`.
    fn run(&self, ports: usize) -> Run {
        let options = InputOptions {
            loops: Some(1),
            stop: &GO,
        };
        let open = |(i, path): (usize, &PathBuf)| {
            (
                port::input(path.to_str().unwrap(), &options).unwrap(),
                Entry::Port(i as u32),
            )
        };
        let create = |i: usize| {
            let path = self.path(&format!("out{i}.pcap"));
            let word = path.to_str().unwrap();
            Sink::new(word, port::output(word, &["0", "1", "2"]).unwrap())
        };
        Run {
            module: testing::fixture(),
            config: Config::default(),
            program: 0,
            prefetch: true,
            sources: Sources::new(self.inputs.iter().enumerate().map(open).collect()),
            ports: (0..ports).map(|i| i.to_string()).collect(),
            sinks: Sinks {
                sinks: (0..ports).map(create).collect(),
                of_port: (0..ports).map(Some).collect(),
            },
            pass: None,
            records: None,
            fates: None,
            reasons: vec!["dropped".into(), "no_flow".into()],
            burst: BURST,
            layout: Layout::Pooled,
            packets: None,
            time: None,
            mailbox: None,
            at_end: None,
            keep: None,
            small: None,
            objects_bytes: 0,
        }
    }

    fn go(&self, ports: usize, change: impl FnOnce(&mut Run)) -> Account {
        let mut what = self.run(ports);
        change(&mut what);
        let account = run(what, &GO, &mut |_| ()).unwrap();
        assert!(account.balances(), "{account:#?}");
        account
    }
}

fn packet(time: u64, bytes: &[u8]) -> Packet {
    (time, bytes.to_vec())
}

#[test]
fn every_fate_is_counted_once_and_delivered() {
    let bench = Bench::new(&[&[
        packet(1, &[3, 0, 10]),      // forward to 0
        packet(2, &[3, 2, 11]),      // forward to 2
        packet(3, &[3, 3, 12]),      // forward to a port that does not exist
        packet(4, &[1, 1]),          // drop: no_flow
        packet(5, &[1, 9]),          // drop: a reason nobody named
        packet(6, &[1, 0]),          // drop
        packet(7, &[2, 0, 13]),      // pass
        packet(8, &[4, 0, 14]),      // flood
        packet(9, &[5, 0]),          // consume
        packet(10, &[0, 0]),         // abort
        packet(11, &[200, 0]),       // a fate that does not exist
        packet(12, &[9, 0]),         // bounds outside the buffer
        packet(13, &[]),             // nothing
        packet(14, &[6, 1, 15]),     // grow at the front, forward to 1
        packet(15, &[7, 1, 16, 16]), // cut, forward to 1
        packet(16, &[8, 0, 17]),     // record
    ]]);
    let pass = bench.path("pass.pcap");
    let records = bench.path("records.jsonl");
    let account = bench.go(3, |run| {
        let word = pass.to_str().unwrap();
        run.pass = Some(Sink::new(word, port::output(word, &["0"]).unwrap()));
        let file = std::fs::File::create(&records).unwrap();
        run.records = Some(RecordWriter::new("records", Box::new(file)));
    });
    assert_eq!(account.read, 16);
    assert_eq!(account.forwarded, 5);
    assert_eq!(account.dropped, 4);
    assert_eq!(account.passed, 1);
    assert_eq!(account.consumed, 2);
    assert_eq!(account.aborted, 4);
    assert_eq!(account.written, 6);
    assert_eq!(account.created, 1);
    let reasons: Vec<_> = account
        .reasons
        .iter()
        .map(|(k, v)| (k.as_str(), *v))
        .collect();
    assert_eq!(
        reasons,
        [
            ("aborted", 3),
            ("dropped", 2),
            ("no_flow", 1),
            ("no_such_port", 1),
            ("reason_9", 1)
        ]
    );
    assert_eq!(account.errors, []);

    assert_eq!(read(&bench.path("out0.pcap")), [packet(1, &[3, 0, 10])]);
    assert_eq!(
        read(&bench.path("out1.pcap")),
        [
            packet(8, &[4, 0, 14]),
            packet(14, &[0xee, 0xee, 0xee, 0xee, 6, 1, 15]),
            packet(15, &[7, 1])
        ]
    );
    assert_eq!(
        read(&bench.path("out2.pcap")),
        [packet(2, &[3, 2, 11]), packet(8, &[4, 0, 14])]
    );
    assert_eq!(read(&pass), [packet(7, &[2, 0, 13])]);
    assert_eq!(
        std::fs::read_to_string(&records).unwrap(),
        "{\"object\":\"events\",\"time\":16,\"bytes\":\"080011\"}\n"
    );
    assert_eq!(account.records["events"], 1);
    assert_eq!(account.objects[0].entries, Some(4));
    assert_eq!(account.objects[1].entries, None);
}

#[test]
fn a_flood_without_another_port_is_a_drop() {
    let bench = Bench::new(&[&[packet(1, &[4, 0])]]);
    let account = bench.go(1, |_| ());
    assert_eq!(
        (
            account.dropped,
            account.reasons[NO_OTHER_PORT],
            account.written
        ),
        (1, 1, 0)
    );
}

#[test]
fn packets_longer_than_a_module_takes_are_dropped_and_the_others_keep_their_numbers() {
    let mut long = vec![3_u8; 65_536];
    long[1] = 0;
    let longest = long[..65_535].to_vec();
    let bench = Bench::new(&[&[(1, long), (2, longest.clone()), packet(3, &[3, 0])]]);
    for layout in [Layout::Pooled, Layout::Exact] {
        let account = bench.go(1, |run| run.layout = layout);
        assert_eq!(
            (account.read, account.dropped, account.forwarded),
            (3, 1, 2)
        );
        assert_eq!(account.reasons[OVERSIZE], 1);
        assert_eq!(
            read(&bench.path("out0.pcap")),
            [(2, longest.clone()), packet(3, &[3, 0])]
        );
    }
}

#[test]
fn inputs_are_merged_by_stamp_and_stamps_are_kept() {
    let bench = Bench::new(&[
        &[
            packet(10, &[3, 2, 1]),
            packet(30, &[3, 2, 2]),
            packet(20, &[3, 2, 3]),
        ],
        &[packet(10, &[3, 2, 4]), packet(25, &[3, 2, 5])],
    ]);
    let account = bench.go(3, |_| ());
    let order: Vec<_> = read(&bench.path("out2.pcap"))
        .iter()
        .map(|p| (p.0, p.1[2]))
        .collect();
    assert_eq!(order, [(10, 1), (10, 4), (25, 5), (30, 2), (20, 3)]);
    assert_eq!(account.out_of_order, 1);
    assert_eq!(
        (
            account.ports[0].read,
            account.ports[1].read,
            account.ports[2].sent
        ),
        (3, 2, 5)
    );
}

#[test]
fn a_split_sends_by_who_sent() {
    let frame = |source: [u8; 4]| {
        // The fixture reads the destination MAC address: forward to port 0.
        let mut f = vec![
            3, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0,
        ];
        f.extend_from_slice(&source);
        f.extend_from_slice(&[9, 9, 9, 9]);
        f
    };
    let bench = Bench::new(&[&[
        (1, frame([10, 0, 0, 1])),
        (2, frame([8, 8, 8, 8])),
        packet(3, &[3, 0]),
    ]]);
    let account = bench.go(2, |run| {
        let options = InputOptions {
            loops: Some(1),
            stop: &GO,
        };
        let input = port::input(bench.inputs[0].to_str().unwrap(), &options).unwrap();
        let split = "lan=10.0.0.0/8".parse().unwrap();
        run.sources = Sources::new(vec![(
            input,
            Entry::Split {
                split,
                named: 0,
                other: 1,
            },
        )]);
    });
    assert_eq!((account.ports[0].read, account.ports[1].read), (1, 2));
}

/// What the fixture's timer recorded: (moment, packets before it).
fn timer_records(path: &Path) -> Vec<(u64, u64)> {
    let text = std::fs::read_to_string(path).unwrap();
    let number = |hex: &str| u64::from_str_radix(hex, 16).unwrap().swap_bytes();
    let lines = text.lines().map(|line| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let hex = value["bytes"].as_str().unwrap().to_owned();
        (number(&hex[..16]), number(&hex[16..]))
    });
    lines.collect()
}

#[test]
fn timers_fire_between_the_packets_they_lie_between_whatever_the_burst() {
    let start = 100 * SECOND;
    let at = |ns: u64| packet(start + ns, &[3, 0]);
    let bench = Bench::new(&[&[
        at(0),
        at(SECOND - 1),
        at(SECOND),
        at(SECOND + 1),
        at(7 * SECOND + 5),
        at(7 * SECOND + 6),
    ]]);
    for burst in [1, 2, 3, 32, 1024] {
        let path = bench.path("records.jsonl");
        let account = bench.go(1, |run| {
            let file = std::fs::File::create(&path).unwrap();
            run.records = Some(RecordWriter::new("records", Box::new(file)));
            run.burst = burst;
        });
        assert_eq!(
            timer_records(&path),
            [(start + SECOND, 2), (start + 7 * SECOND, 4)]
        );
        assert_eq!(account.timers_fired, 2);
        assert_eq!(account.forwarded, 6);
    }
}

#[test]
fn limits_end_a_run_that_would_not_end() {
    let bench = Bench::new(&[&[packet(1, &[3, 0]), packet(2, &[1, 1])]]);
    let endless = |run: &mut Run| {
        let options = InputOptions {
            loops: None,
            stop: &GO,
        };
        let word = format!("mem:{}", bench.inputs[0].display());
        let input = port::input(&word, &options).unwrap();
        run.sources = Sources::new(vec![(input, Entry::Port(0))]);
    };
    let account = bench.go(1, |run| {
        endless(run);
        run.packets = Some(1001);
    });
    assert_eq!(
        (account.read, account.forwarded, account.dropped),
        (1001, 501, 500)
    );
    assert!(account.function.ns_per_packet > 0.0 && account.function.mpps > 0.0);

    let account = bench.go(1, |run| {
        endless(run);
        run.sinks = Sinks::default();
        run.time = Some(Duration::from_millis(30));
    });
    assert!(
        account.seconds >= 0.03 && account.read > 1000,
        "{account:?}"
    );
}

#[test]
fn a_raised_flag_drains_and_reports() {
    let bench = Bench::new(&[&[packet(1, &[3, 0])]]);
    let mut what = bench.run(1);
    let options = InputOptions {
        loops: None,
        stop: &GO,
    };
    let word = format!("mem:{}", bench.inputs[0].display());
    let input = port::input(&word, &options).unwrap();
    what.sources = Sources::new(vec![(input, Entry::Port(0))]);
    let stop = AtomicBool::new(false);
    let mut seen = 0;
    let account = run(what, &stop, &mut |progress| {
        seen = progress.read;
        stop.store(true, Ordering::Relaxed);
    })
    .unwrap();
    assert!(account.interrupted && account.balances());
    assert_eq!(account.read, seen);
    assert_eq!(read(&bench.path("out0.pcap")).len() as u64, account.written);
}

#[test]
fn a_truncated_input_is_accounted_up_to_there() {
    let bench = Bench::new(&[&[packet(1, &[3, 0]), packet(2, &[3, 0]), packet(3, &[3, 0])]]);
    let whole = std::fs::read(&bench.inputs[0]).unwrap();
    std::fs::write(&bench.inputs[0], &whole[..whole.len() - 1]).unwrap();
    let account = bench.go(1, |_| ());
    assert_eq!(
        (account.read, account.written, account.errors.len()),
        (2, 2, 1)
    );
    assert!(
        account.errors[0].error.contains("truncated"),
        "{:?}",
        account.errors
    );
}

#[test]
fn a_full_disk_ends_the_run_with_what_was_written_intact() {
    let packets: Vec<_> = (0..2000)
        .map(|i| (i, [&[3, 0][..], &[0; 1400]].concat()))
        .collect();
    let bench = Bench::new(&[&packets]);
    let account = bench.go(1, |run| {
        let full = port::output("/dev/full", &["0"]).unwrap();
        run.sinks.sinks = vec![Sink::new("/dev/full", full)];
    });
    assert!(
        account.read < 2000 && account.read == account.forwarded,
        "{account:?}"
    );
    assert_eq!(account.written, 0);
    assert_eq!(account.errors.len(), 1);
    assert!(
        account.errors[0].error.contains("No space left"),
        "{:?}",
        account.errors
    );
}

#[test]
fn no_packets_at_all_still_start_and_stop() {
    let bench = Bench::new(&[&[]]);
    let account = bench.go(1, |_| ());
    assert_eq!(
        (account.read, account.written, account.errors.len()),
        (0, 0, 0)
    );
}

#[test]
fn two_runs_write_the_same_bytes() {
    let packets: Vec<_> = (0..500)
        .map(|i| packet(i * 7, &[3, (i % 3) as u8, i as u8]))
        .collect();
    let bench = Bench::new(&[&packets]);
    let mut files = Vec::new();
    for burst in [32, 32, 7] {
        bench.go(3, |run| run.burst = burst);
        let read = |i| std::fs::read(bench.path(&format!("out{i}.pcap"))).unwrap();
        files.push([read(0), read(1), read(2)]);
    }
    assert!(files[0] == files[1] && files[1] == files[2]);
}
