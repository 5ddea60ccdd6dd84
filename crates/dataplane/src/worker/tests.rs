use std::sync::atomic::AtomicBool;

use millrace_traffic::capture::{Reader, Writer};

use super::*;
use crate::module::Config;
use crate::packet::Layout;
use crate::port::{self, CaptureIn, CaptureOut, Departure, Frame, InputOptions, PortError};
use crate::runner::{Entry, Sources};
use crate::testing;

static GO: AtomicBool = AtomicBool::new(false);

pub(super) fn link(name: &str) -> Link {
    Link {
        name: name.into(),
        code: Code::Module(ModuleCode {
            module: testing::fixture(),
            config: Config::default(),
            program: 0,
            prefetch: true,
            behaviour: Behaviour::default(),
            replicas: None,
            small: None,
        }),
        reasons: vec!["dropped".into(), "no_flow".into()],
        objects_bytes: 0,
        shares: Vec::new(),
        slow: None,
        linked: false,
    }
}

/// Serves a capture of packets that enter at port 0, with an output file a port.
pub(super) struct Case {
    dir: tempfile::TempDir,
    ports: usize,
    pub(super) chain: Vec<Link>,
}

impl Case {
    pub(super) fn new(ports: usize, functions: &[&str]) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            ports,
            chain: functions.iter().map(|f| link(f)).collect(),
        }
    }

    fn out(&self, port: usize) -> String {
        let path = self.dir.path().join(format!("out{port}.pcap"));
        path.to_str().unwrap().to_owned()
    }

    fn serve(&self, packets: &[(u64, &[u8])]) -> Serve {
        let path = self.dir.path().join("in.pcap");
        let mut writer = Writer::create(&path, &["a"]).unwrap();
        for (time, bytes) in packets {
            writer.write(*time, 0, bytes.len() as u32, bytes).unwrap();
        }
        writer.finish().unwrap();
        let options = InputOptions {
            loops: Some(1),
            stop: &GO,
        };
        let input = port::input(path.to_str().unwrap(), &options).unwrap();
        let sources = Sources::new(vec![(input, Entry::Port(0))]);
        let mut queues: Vec<Box<dyn Queue>> =
            vec![Box::new(CaptureIn::new(sources, 32, Layout::Pooled))];
        for port in 0..self.ports {
            let output = port::output(&self.out(port), &["0", "1", "2"]).unwrap();
            queues.push(Box::new(CaptureOut::new(output)));
        }
        Serve {
            chain: self.chain.clone(),
            topology: None,
            ports: (0..self.ports).map(|p| p.to_string()).collect(),
            owners: Vec::new(),
            words: (0..=self.ports).map(|q| format!("queue {q}")).collect(),
            workers: vec![queues],
            of_port: (1..=self.ports).map(Some).collect(),
            pass: None,
            cpus: Vec::new(),
            holds: Vec::new(),
            facts: Vec::new(),
            records: None,
            burst: 32,
            packets: None,
            mailboxes: Vec::new(),
            at_end: None,
            keep: None,
            moves: None,
            time: None,
            busy: false,
        }
    }

    pub(super) fn go(&self, packets: &[(u64, &[u8])]) -> Account {
        let account = serve(self.serve(packets), &GO, &mut |_| ()).unwrap();
        assert!(account.balances(), "{account:#?}");
        assert_eq!(account.errors, []);
        account
    }

    pub(super) fn written(&self, port: usize) -> Vec<(u64, Vec<u8>)> {
        let mut reader = Reader::open(self.out(port)).unwrap();
        let mut packets = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            packets.push((record.time_ns, record.data.to_vec()));
        }
        packets
    }
}

#[test]
fn every_fate_is_counted_once_and_delivered() {
    let case = Case::new(3, &["f"]);
    let account = case.go(&[
        (1, &[3, 0, 10]), // forward to 0
        (2, &[3, 2, 11]), // forward to 2
        (3, &[3, 3, 12]), // forward to a port that does not exist
        (4, &[1, 1]),     // drop: no_flow
        (5, &[1, 9]),     // drop: a reason nobody named
        (6, &[2, 0, 13]), // pass
        (7, &[4, 0, 14]), // flood to 1 and 2
        (8, &[5, 0]),     // consume
        (9, &[0, 0]),     // abort
        (10, &[6, 1, 9]), // grow at the front and forward to 1
        (11, &[9, 0]),    // bounds outside the buffer
    ]);
    assert_eq!((account.read, account.forwarded), (11, 4));
    assert_eq!((account.dropped, account.passed), (2, 1));
    assert_eq!((account.consumed, account.aborted), (1, 3));
    assert_eq!((account.created, account.written), (1, 5));
    let reasons: Vec<_> = account
        .reasons
        .iter()
        .map(|(n, c)| (n.as_str(), *c))
        .collect();
    assert_eq!(
        reasons,
        [
            ("aborted", 2),
            ("no_flow", 1),
            ("no_such_port", 1),
            ("undeclared_reason", 1)
        ]
    );
    assert_eq!(case.written(0), [(1, vec![3, 0, 10])]);
    let grown = vec![0xee, 0xee, 0xee, 0xee, 6, 1, 9];
    assert_eq!(case.written(1), [(7, vec![4, 0, 14]), (10, grown)]);
    assert_eq!(case.written(2), [(2, vec![3, 2, 11]), (7, vec![4, 0, 14])]);
}

#[test]
fn timers_fire_between_the_packets_they_lie_between() {
    let case = Case::new(1, &["f"]);
    const SECOND: u64 = 1_000_000_000;
    let account = case.go(&[
        (100, &[3, 0]),
        (100 + SECOND - 1, &[3, 0]),
        (100 + SECOND, &[3, 0]),
        (100 + 5 * SECOND, &[3, 0]),
    ]);
    assert_eq!((account.read, account.timers_fired), (4, 2));
}

#[test]
fn a_chain_goes_through_its_functions_and_names_them() {
    let case = Case::new(2, &["a", "b", "c"]);
    let account = case.go(&[
        (1, &[3, 1, 1]), // forward to 1, three times
        (2, &[4, 0, 2]), // flood: to the other port, three times
        (3, &[3, 0, 3]), // back out of the first
        (4, &[1, 1]),    // dropped by the first
        (5, &[3, 2]),    // a port that the first has not
    ]);
    assert_eq!(
        (account.forwarded, account.dropped, account.aborted),
        (3, 1, 1)
    );
    assert_eq!(case.written(1), [(1, vec![3, 1, 1]), (2, vec![4, 0, 2])]);
    assert_eq!(case.written(0), [(3, vec![3, 0, 3])]);
    assert_eq!(account.reasons.get("a:no_flow"), Some(&1));
    let packets: Vec<_> = account.stages.iter().map(|s| s.packets).collect();
    assert_eq!(packets, [5, 2, 2]);
}

/// A queue whose ring has room for a number of packets, and which fails after as many calls.
struct Ring {
    room: usize,
    calls: usize,
}

// SAFETY: it lends no frames.
unsafe impl Queue for Ring {
    fn receive(&mut self, _: &mut Vec<Frame>, _: usize, _: u64) -> Result<usize, PortError> {
        Ok(0)
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        if self.calls == 0 {
            return Err(PortError::Live {
                word: "ring:x".into(),
                what: "the interface is gone".into(),
                help: "bring it back".into(),
            });
        }
        self.calls -= 1;
        let taken = packets.len().min(self.room);
        self.room -= taken;
        Ok(taken)
    }

    fn release(&mut self, _: &[Frame]) {}

    fn ended(&self) -> bool {
        true
    }
}

fn through(ring: Ring) -> Account {
    let case = Case::new(1, &["f"]);
    let packets: Vec<(u64, &[u8])> = (0..100).map(|t| (t, &[3_u8, 0][..])).collect();
    let mut what = case.serve(&packets);
    what.workers[0][1] = Box::new(ring);
    let account = serve(what, &GO, &mut |_| ()).unwrap();
    assert!(account.balances(), "{account:#?}");
    account
}

#[test]
fn what_a_full_ring_does_not_take_is_dropped_and_counted() {
    let account = through(Ring {
        room: 40,
        calls: usize::MAX,
    });
    assert_eq!((account.forwarded, account.dropped), (40, 60));
    assert_eq!(account.reasons.get("tx_full"), Some(&60));
    assert_eq!(account.ports[0].sent, 40);
}

#[test]
fn a_port_that_fails_ends_the_run_with_its_error_and_every_packet_accounted() {
    let account = through(Ring {
        room: 1000,
        calls: 1,
    });
    assert_eq!(account.reasons.get("port_failed"), Some(&32));
    assert_eq!(account.forwarded, 32);
    assert_eq!(account.errors.len(), 1);
    assert_eq!(account.errors[0].error, "ring:x: the interface is gone");
}

/// A queue that panics when it is asked for packets.
struct Broken;

// SAFETY: it lends no frames.
unsafe impl Queue for Broken {
    fn receive(&mut self, _: &mut Vec<Frame>, _: usize, _: u64) -> Result<usize, PortError> {
        panic!("a defect, made by the test")
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        Ok(packets.len())
    }

    fn release(&mut self, _: &[Frame]) {}
}

/// A queue that has nothing and never ends.
struct Silent;

// SAFETY: it lends no frames.
unsafe impl Queue for Silent {
    fn receive(&mut self, _: &mut Vec<Frame>, _: usize, _: u64) -> Result<usize, PortError> {
        Ok(0)
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        Ok(packets.len())
    }

    fn release(&mut self, _: &[Frame]) {}
}

#[test]
fn a_worker_that_dies_is_named_and_the_others_end() {
    let case = Case::new(0, &["f"]);
    let mut what = case.serve(&[]);
    what.workers = vec![vec![Box::new(Silent)], vec![Box::new(Broken)]];
    let account = serve(what, &GO, &mut |_| ()).unwrap();
    assert_eq!(account.errors.len(), 1);
    let error = &account.errors[0].error;
    assert!(error.contains("worker 1 died"), "{error}");
}

#[test]
fn a_limit_is_kept() {
    let case = Case::new(1, &["f"]);
    let packets: Vec<(u64, &[u8])> = (0..100).map(|t| (t, &[3_u8, 0][..])).collect();
    let mut what = case.serve(&packets);
    what.packets = Some(37);
    let account = serve(what, &GO, &mut |_| ()).unwrap();
    assert_eq!((account.read, account.forwarded), (37, 37));
}
