//! Rows, trees and graphs of functions over captures: they give what their functions give one packet after the other.
//!
//! `MILLRACE_EXHAUSTIVE=1` compares all pairs of functions over all traces at all burst sizes; without it each pair is
//! compared over one of the traces at one of the sizes.

mod one_by_one;
mod traffic;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, mpsc};

use millrace::traffic::capture::Reader;
use millrace::{Function, Job, Make, Ports};
use millrace_dataplane::worker::foreign::{Epilogue, Foreign, Given, ON, OUT};
use millrace_dataplane::worker::{Code, Link};
use millrace_topology::{End, Topology};
use millrace_turns::of_today;

use super::of_repository;
use traffic::{Packet, Trace};

static STOP: AtomicBool = AtomicBool::new(false);
/// Of the first function; the next one's is one more.
const SEED: u64 = 7;

/// An element of a row or tree.
#[derive(Clone, Copy)]
enum Part<'a> {
    Function(&'a Function),
    /// every packet goes on
    Tap,
    /// every third packet is sent back
    Returns,
}

/// What comes of a trace.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    out: Vec<Packet>,
    /// forwarded, dropped, passed, consumed, aborted
    fates: [u64; 5],
    /// entries of each object of each function
    counts: Vec<Option<u64>>,
    /// entries of the first function's objects, by object
    state: Vec<Vec<(Vec<u8>, Vec<u8>)>>,
    /// what elements that are no functions have seen, in their order
    seen: Vec<Vec<Vec<u8>>>,
}

impl Outcome {
    fn assert(&self, expected: &Self, what: &str) {
        let differs = |(a, b): (&Packet, &Packet)| a != b;
        let first = self
            .out
            .iter()
            .zip(&expected.out)
            .position(|(a, b)| differs((a, b)));
        assert_eq!(
            (self.fates, self.out.len(), first),
            (expected.fates, expected.out.len(), None),
            "{what}: the fates, the packets that left, and the first that differs"
        );
        assert_eq!(self.counts, expected.counts, "{what}: entries");
        assert!(
            self.state == expected.state,
            "{what}: the first function's state"
        );
        assert!(self.seen == expected.seen, "{what}: what taps have seen");
    }
}

/// An element that is no function.
struct Hosted {
    returns: bool,
    packets: usize,
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Foreign for Hosted {
    #[allow(unsafe_code, reason = "packets are named by address")]
    unsafe fn burst(&mut self, packets: &mut [Given]) {
        for packet in packets {
            // SAFETY: as the caller promises.
            let bytes = unsafe { std::slice::from_raw_parts(packet.data, packet.length as usize) };
            self.seen.lock().unwrap().push(bytes.to_vec());
            self.packets += 1;
            packet.fate = match self.returns && self.packets.is_multiple_of(3) {
                true => OUT + packet.port,
                false => ON,
            };
        }
    }

    fn decides(&self) -> bool {
        self.returns
    }

    fn idle(&mut self) {}

    fn finish(&mut self) -> Epilogue {
        Epilogue::default()
    }
}

/// Runs elements over a trace, `burst` packets at a time.
fn together(parts: &[Part<'_>], topology: &Topology, trace: &Trace, burst: usize) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pcapng").display().to_string();
    let mut seen = Vec::new();
    let chain = parts.iter().enumerate().map(|(index, part)| match part {
        Part::Function(function) => Link {
            name: format!("{index}"),
            ..function
                .link(SEED + index as u64, Vec::new(), true)
                .unwrap()
        },
        Part::Tap | Part::Returns => {
            let all = Arc::<Mutex<_>>::default();
            seen.push(all.clone());
            let hosted: Box<dyn Foreign> = Box::new(Hosted {
                returns: matches!(part, Part::Returns),
                packets: 0,
                seen: all,
            });
            Link {
                name: format!("{index}"),
                code: Code::Foreign(Arc::new(Mutex::new(vec![hosted]))),
                reasons: vec!["dropped".into()],
                objects_bytes: 0,
                shares: Vec::new(),
                slow: None,
                linked: false,
            }
        }
    });
    let chain: Vec<_> = chain.collect();
    let names = ["LAN", "WAN", "third", "fourth"];
    let names = names.iter().take(topology.entries().len());
    let (tell, told) = mpsc::channel();
    let job = Job {
        topology: Some(topology.clone()),
        burst,
        serve: true,
        at_end: Some(Box::new(move |desk| {
            let now = desk.now;
            let state = desk
                .instance
                .as_deref_mut()
                .map(|i| one_by_one::state(i, now));
            tell.send(state.unwrap_or_default()).unwrap();
        })),
        ..Job::new(chain, names.map(|n| (*n).to_owned()).collect())
    };
    let ports = Ports {
        inputs: vec![trace.path.display().to_string()],
        outputs: vec![path.clone()],
        split: Some(trace.split.clone()),
        ..Ports::default()
    };
    let account = job
        .open(&ports, &STOP)
        .unwrap()
        .run(&STOP, &mut |_| {})
        .unwrap();
    assert_eq!(account.errors, []);
    assert_eq!(account.read, trace.packets.len() as u64);
    let mut reader = Reader::open(path).unwrap();
    let mut out = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        out.push(Packet::of(record.interface, &record));
    }
    Outcome {
        out,
        fates: [
            account.forwarded,
            account.dropped,
            account.passed,
            account.consumed,
            account.aborted,
        ],
        counts: account.objects.iter().map(|o| o.entries).collect(),
        state: told.try_recv().unwrap_or_default(),
        seen: seen.iter().map(|all| all.lock().unwrap().clone()).collect(),
    }
}

/// The bundled functions, by name.
fn functions() -> Vec<Function> {
    let folders = std::fs::read_dir(of_repository("nfs")).unwrap();
    let mut folders: Vec<PathBuf> = folders.map(|f| f.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders
        .iter()
        .map(|path| function(path.to_str().unwrap()))
        .collect()
}

fn function(path: &str) -> Function {
    let found = millrace::find(path).unwrap();
    found.load(&Make::default(), &mut |_| {}).unwrap()
}

fn bundled(name: &str) -> Function {
    function(&of_repository(&format!("nfs/{name}")))
}

/// Compares elements at these burst sizes with the same one packet after the other.
fn compare(what: &str, parts: &[Part<'_>], topology: &Topology, trace: &Trace, bursts: &[usize]) {
    let expected = one_by_one::run(parts, topology, trace);
    for burst in bursts {
        let what = format!("{what} over {}, burst {burst}", trace.name);
        together(parts, topology, trace, *burst).assert(&expected, &what);
    }
}

#[test]
fn passive_elements_change_nothing() {
    let (firewall, nop) = (bundled("firewall"), bundled("nop"));
    let folder = tempfile::tempdir().unwrap();
    let trace = traffic::talk(folder.path(), "lan=10.0.0.0/24");
    let out = folder.path().join("alone.pcapng");
    let ports = Ports {
        inputs: vec![trace.path.display().to_string()],
        outputs: vec![out.display().to_string()],
        split: Some(trace.split.clone()),
        ..Ports::default()
    };
    let alone = millrace::run(&firewall, &ports, &STOP).unwrap();
    assert_eq!(alone.forwarded, 1526);
    let (firewall, nop) = (Part::Function(&firewall), Part::Function(&nop));
    for (what, row) in [
        ("firewall nop", vec![firewall, nop]),
        ("nop firewall", vec![nop, firewall]),
        ("firewall tap", vec![firewall, Part::Tap]),
        ("tap firewall nop", vec![Part::Tap, firewall, nop]),
    ] {
        let topology = Topology::line(row.len());
        for burst in [1, 7, 32] {
            let got = together(&row, &topology, &trace, burst);
            assert_eq!(got.fates[0], alone.forwarded, "{what}, burst {burst}");
            let mut reader = Reader::open(&out).unwrap();
            for packet in &got.out {
                let record = reader.next().unwrap().unwrap();
                assert!(*packet == Packet::of(record.interface, &record), "{what}");
            }
        }
        compare(what, &row, &topology, &trace, &[1, 7, 32]);
    }
}

#[test]
fn pairs_of_functions_are_run_one_packet_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let functions = functions();
    let traces = traffic::all(folder.path(), &bundled("nat"));
    let exhaustive = std::env::var_os("MILLRACE_EXHAUSTIVE").is_some();
    let topology = Topology::line(2);
    let (traced, sizes) = (traces.len(), [1, 7, 32]);
    let firsts = of_today("first functions of rows", functions.iter().enumerate(), 4);
    for (first, a) in firsts {
        for (second, b) in functions.iter().enumerate() {
            let what = format!("{} {}", a.name, b.name);
            let row = [Part::Function(a), Part::Function(b)];
            // Each function meets each trace and burst size, first and second in a row.
            let trace = (first + second) % traced;
            let size = (first / traced + second / traced + second) % sizes.len();
            for (index, own) in traces.iter().enumerate() {
                match exhaustive {
                    true => compare(&what, &row, &topology, own, &sizes),
                    false if index == trace => compare(&what, &row, &topology, own, &[sizes[size]]),
                    false => {}
                }
            }
        }
    }
}

#[test]
fn longer_rows_are_run_one_packet_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let functions = functions();
    let traces = traffic::all(folder.path(), &bundled("nat"));
    let mut draw = traffic::Draw(11);
    let today = of_today("longer rows", 0..24, 3);
    for number in 0..24 {
        let mut part = || match draw.below(functions.len() as u64 + 4) as usize {
            index if index < functions.len() => Part::Function(&functions[index]),
            index if index % 2 == 0 => Part::Tap,
            _ => Part::Returns,
        };
        let row: Vec<_> = (0..3 + number % 3).map(|_| part()).collect();
        // Each row is drawn, so that a number has the same one each day.
        if !today.contains(&number) {
            continue;
        }
        let names = row.iter().map(|part| match part {
            Part::Function(function) => function.name.as_str(),
            Part::Tap => "tap",
            Part::Returns => "returns",
        });
        let what = names.collect::<Vec<_>>().join(" ");
        let trace = &traces[number % traces.len()];
        let topology = Topology::line(row.len());
        compare(&what, &row, &topology, trace, &[32]);
    }
}

/// A bridge of three ports with something behind two of them.
#[test]
fn trees_are_run_one_packet_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let [bridge, firewall, policer, nop] = ["bridge", "firewall", "policer", "nop"].map(bundled);
    let at = |element, port| End::Element { element, port };
    let joins = [(at(0, 1), at(1, 0)), (at(0, 2), at(2, 0))];
    for (what, near, far) in [
        ("firewall and policer", &firewall, &policer),
        ("nop and firewall", &nop, &firewall),
    ] {
        for entries in [
            [at(0, 0), at(1, 1), at(2, 1)],
            [at(2, 1), at(1, 1), at(0, 0)],
        ] {
            let arranged = Topology::of(&[3, 2, 2], &joins, &entries).unwrap();
            let parts = [&bridge, near, far].map(Part::Function);
            let parts: Vec<_> = arranged.was.iter().map(|was| parts[was.unwrap()]).collect();
            for trace in traffic::all(folder.path(), &bundled("nat")) {
                compare(what, &parts, &arranged.topology, &trace, &[1, 7, 32]);
            }
        }
    }
}

/// UDP by one port, all else by another; what comes back goes back.
const BY_PROTOCOL: &str = "FromDevice(in) -> c :: Classifier(12/0800 23/11, -);
c[0] -> ToDevice(udp); c[1] -> ToDevice(rest);
FromDevice(udp) -> ToDevice(in); FromDevice(rest) -> ToDevice(in);
";
/// Two ports lead to a third, and UDP back by the first.
const JOINS: &str = "FromDevice(udp) -> ToDevice(out); FromDevice(rest) -> ToDevice(out);
FromDevice(out) -> c :: Classifier(12/0800 23/11, -);
c[0] -> ToDevice(udp); c[1] -> ToDevice(rest);
";

/// A function in front that parts packets, two behind it, and one behind these: their paths join at one port of it, or at two of an element
/// before it.
#[test]
fn paths_that_join_are_run_one_packet_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        function(path.to_str().unwrap())
    };
    let front = made("front.click", BY_PROTOCOL);
    let joins = made("joins.click", JOINS);
    let [firewall, policer, nat, conntrack] =
        ["firewall", "policer", "nat", "conntrack"].map(bundled);
    let at = |element, port| End::Element { element, port };
    let parted = [(at(0, 1), at(1, 0)), (at(0, 2), at(2, 0))];
    let traces = traffic::all(folder.path(), &nat);
    for (what, near, far) in [
        ("firewall and policer", &firewall, &policer),
        ("policer and conntrack", &policer, &conntrack),
    ] {
        let joint = [(at(1, 1), at(3, 0)), (at(2, 1), at(3, 0))];
        let two = [
            (at(1, 1), at(3, 0)),
            (at(2, 1), at(3, 1)),
            (at(3, 2), at(4, 0)),
        ];
        let one = (
            vec![&front, near, far, &nat],
            [&parted[..], &joint].concat(),
            [at(0, 0), at(3, 1)],
        );
        let two = (
            vec![&front, near, far, &joins, &nat],
            [&parted[..], &two].concat(),
            [at(0, 0), at(4, 1)],
        );
        for (functions, joins, entries) in [one, two] {
            let ports = [3, 2, 2, if functions.len() > 4 { 3 } else { 2 }, 2];
            let ports = &ports[..functions.len()];
            let arranged = Topology::of(ports, &joins, &entries).unwrap();
            let parts = arranged.was.iter();
            let parts: Vec<_> =
                { parts.map(|was| Part::Function(functions[was.unwrap()])) }.collect();
            for trace in &traces {
                let what = format!("{what}, {} elements", parts.len());
                let outcome = one_by_one::run(&parts, &arranged.topology, trace);
                assert!(outcome.fates[0] > 100, "{what}: {:?}", outcome.fates);
                compare(&what, &parts, &arranged.topology, trace, &[1, 7, 32]);
            }
        }
    }
}
