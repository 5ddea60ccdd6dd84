use std::path::{Path, PathBuf};
use std::sync::Mutex;

use millrace_steer::{Rss, Steering, nic};
use millrace_traffic::capture::Writer;

use super::*;
use crate::module::Config;
use crate::packet::Layout;
use crate::port::{self, InputOptions};
use crate::testing;

static GO: AtomicBool = AtomicBool::new(false);
const SECOND: u64 = 1_000_000_000;

/// Packets of many addresses: the fixture reads its fate and argument in the first two bytes of the
/// Ethernet header. Times go backwards now and then, and a timer is due in between.
fn packets(count: u64) -> Vec<(u64, Vec<u8>)> {
    let packet = |n: u64| {
        let mut frame = vec![0_u8; 40];
        let fates = [[3, 0], [3, 1], [1, 1], [4, 0], [6, 1], [8, 0], [3, 7]];
        frame[..2].copy_from_slice(&fates[(n % 7) as usize]);
        frame[12] = 8;
        frame[14] = 0x45;
        frame[26..30].copy_from_slice(&[10, 0, (n % 251) as u8, 7]);
        frame[30..34].copy_from_slice(&[192, 0, 2, 1]);
        frame[34..38].copy_from_slice(&(n as u32).to_be_bytes());
        let back = if n % 100 == 99 { 10 } else { 0 };
        (10 * SECOND + n * SECOND / 500 - back, frame)
    };
    (0..count).map(packet).collect()
}

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new(packets: &[(u64, Vec<u8>)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(dir.path().join("in.pcap"), &["a"]).unwrap();
        for (time, bytes) in packets {
            writer.write(*time, 0, bytes.len() as u32, bytes).unwrap();
        }
        writer.finish().unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self, name: &str) -> Run {
        let options = InputOptions {
            loops: Some(1),
            stop: &GO,
        };
        let input = port::input(self.path("in.pcap").to_str().unwrap(), &options).unwrap();
        let sink = |port: usize| {
            let path = self.path(&format!("{name}{port}.pcap"));
            let word = path.to_str().unwrap();
            Sink::new(word, port::output(word, &["0", "1"]).unwrap())
        };
        let records = std::fs::File::create(self.path(&format!("{name}.jsonl"))).unwrap();
        Run {
            module: testing::fixture(),
            config: Config::default(),
            program: 0,
            prefetch: true,
            sources: Sources::new(vec![(input, Entry::Port(0))]),
            ports: vec!["0".into(), "1".into()],
            sinks: Sinks {
                sinks: (0..2).map(sink).collect(),
                of_port: vec![Some(0), Some(1)],
            },
            pass: None,
            records: Some(RecordWriter::new("records", Box::new(records))),
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

    fn parallel(&self, name: &str, workers: usize) -> Parallel {
        let steering = Steering {
            nic: Rss::new(&nic::named("generic").unwrap(), workers as u32),
            software: std::collections::BTreeMap::new(),
            inside: false,
            echoes: false,
            odd: None,
        };
        Parallel {
            run: self.run(name),
            owners: vec![steering.owners()],
            shares: vec![Share::new(millrace_place::Held::Divided, 4)],
            apart: None,
            workers,
            cpus: Vec::new(),
            mailboxes: Vec::new(),
        }
    }

    fn bytes(&self, name: &str) -> Vec<Vec<u8>> {
        let read = |port: usize| std::fs::read(self.path(&format!("{name}{port}.pcap"))).unwrap();
        (0..2).map(read).collect()
    }
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_output_is_that_of_one_core_and_every_packet_has_one_fate() {
    let bench = Bench::new(&packets(5000));
    let one = run(bench.run("one"), &GO, &mut |_| ()).unwrap();
    for workers in [1, 2, 3, 8] {
        let name = format!("w{workers}-");
        let account = run_parallel(bench.parallel(&name, workers), &GO, &mut |_| ()).unwrap();
        assert!(account.balances(), "{account:#?}");
        assert_eq!(bench.bytes(&name), bench.bytes("one"), "{workers}");
        assert_eq!(account.read, 5000);
        assert_eq!(account.ports, one.ports);
        assert_eq!(account.reasons, one.reasons);
        assert_eq!(account.out_of_order, one.out_of_order);
        assert_eq!(account.written, one.written);
        assert_eq!(account.workers.len(), workers);
        assert!(account.workers.iter().all(|w| w.packets > 0));
        assert_eq!(account.workers.iter().map(|w| w.packets).sum::<u64>(), 5000);
        // Each worker's timers fire at the moments of one core's.
        assert_eq!(account.timers_fired, one.timers_fired * workers as u64);
        // Every worker has all elements of an array.
        assert_eq!(account.objects[0].entries, one.objects[0].entries);
        assert!(account.objects[0].by_worker.is_empty());
        // Packets' records come out in their order; those of the timers from each worker.
        let of_packets = |name: &str| {
            let lines = lines(&bench.path(&format!("{name}.jsonl")));
            let bytes = |line: &String| {
                let value: serde_json::Value = serde_json::from_str(line).unwrap();
                value["bytes"].as_str().unwrap().to_owned()
            };
            let mut all: Vec<_> = lines
                .iter()
                .map(bytes)
                .filter(|b| b.starts_with("08"))
                .collect();
            all.sort();
            all
        };
        assert_eq!(of_packets(&name), of_packets("one"));
        assert_eq!(account.errors, []);
    }
}

#[test]
fn two_runs_are_alike_also_in_their_records() {
    let bench = Bench::new(&packets(3000));
    for name in ["a", "b"] {
        run_parallel(bench.parallel(name, 4), &GO, &mut |_| ()).unwrap();
    }
    assert_eq!(bench.bytes("a"), bench.bytes("b"));
    assert_eq!(lines(&bench.path("a.jsonl")), lines(&bench.path("b.jsonl")));
}

#[test]
fn a_limit_ends_a_run_at_its_packet() {
    let bench = Bench::new(&packets(3000));
    let mut parallel = bench.parallel("limited", 3);
    parallel.run.packets = Some(1234);
    let account = run_parallel(parallel, &GO, &mut |_| ()).unwrap();
    assert_eq!(account.read, 1234);
    assert!(account.balances());
}

#[test]
fn no_packets_at_all_still_start_and_stop_and_the_states_of_all_are_seen_at_the_end() {
    let bench = Bench::new(&[]);
    let mut parallel = bench.parallel("none", 3);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = seen.clone();
    parallel.run.at_end = Some(Box::new(move |desk| {
        let now = desk.now;
        let first = desk.instance.as_deref_mut().into_iter();
        for instance in first.chain(desk.others.iter_mut().map(|i| &mut **i)) {
            // The fixture counts starts at index 2.
            let starts = instance.get(0, &2_u32.to_ne_bytes(), now).unwrap();
            into.lock().unwrap().push(starts);
        }
    }));
    let account = run_parallel(parallel, &GO, &mut |_| ()).unwrap();
    assert_eq!(account.read, 0);
    let one = Some(1_u64.to_ne_bytes().to_vec());
    assert_eq!(*seen.lock().unwrap(), [one.clone(), one.clone(), one]);
}

#[test]
fn a_failing_output_ends_the_run_and_every_packet_is_accounted() {
    let bench = Bench::new(&packets(3000));
    let mut parallel = bench.parallel("full", 2);
    let output = port::output("/dev/full", &["0"]).unwrap();
    parallel.run.sinks.sinks = vec![Sink::new("/dev/full", output)];
    parallel.run.sinks.of_port = vec![Some(0), Some(0)];
    let account = run_parallel(parallel, &GO, &mut |_| ()).unwrap();
    assert!(account.balances());
    assert!(!account.errors.is_empty());
}
