//! The slow path: a run over captures gives the bytes of the reference interpreter, packet by packet, whatever makes, copies or holds
//! packets; and what is on it is named and counted.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use millrace::click::compare::{BEGIN, Both, Given};
use millrace::{Function, Make, Ports};
use millrace_dataplane::account::{Account, SlowAccount};
use millrace_synth::{Options, Synthesis, reference};
use millrace_traffic::capture::{Reader, Writer};
use millrace_turns::its_turn;

use super::of_repository;

static NEVER: AtomicBool = AtomicBool::new(false);

/// A configuration and the function that it becomes.
fn made(path: &str) -> (Synthesis, Function) {
    made_with(path, Options::default(), "")
}

/// The same, by options and the words that ask for them.
fn made_with(path: &str, options: Options, words: &str) -> (Synthesis, Function) {
    let of = millrace::click::read(Path::new(path), false, options).unwrap();
    let function = millrace::find(&format!("{path}{words}")).unwrap();
    (of, function.load(&Make::default(), &mut |_| {}).unwrap())
}

fn everything() -> (Synthesis, Function) {
    made(&of_repository(
        "crates/millrace/tests/slow/everything.click",
    ))
}

/// An IPv4 frame with a right sum.
struct Ip {
    from: [u8; 4],
    to: [u8; 4],
    ttl: u8,
    protocol: u8,
    /// Don't Fragment and the like
    flags: u16,
    options: Vec<u8>,
    body: Vec<u8>,
}

fn udp(from: [u8; 4], to: [u8; 4], port: u16, bytes: usize) -> Ip {
    let mut body = vec![0; 8 + bytes];
    body[..2].copy_from_slice(&4000_u16.to_be_bytes());
    body[2..4].copy_from_slice(&port.to_be_bytes());
    body[4..6].copy_from_slice(&(8 + bytes as u16).to_be_bytes());
    for (at, byte) in body.iter_mut().enumerate().skip(8) {
        *byte = at as u8;
    }
    Ip {
        from,
        to,
        ttl: 64,
        protocol: 17,
        flags: 0,
        options: Vec::new(),
        body,
    }
}

impl Ip {
    fn frame(&self) -> Vec<u8> {
        let header = 20 + self.options.len();
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0];
        frame.push(0x40 | (header / 4) as u8);
        frame.push(0);
        frame.extend(((header + self.body.len()) as u16).to_be_bytes());
        frame.extend([0, 7]);
        frame.extend(self.flags.to_be_bytes());
        frame.extend([self.ttl, self.protocol, 0, 0]);
        frame.extend(self.from);
        frame.extend(self.to);
        frame.extend(&self.options);
        frame.extend(&self.body);
        let mut sum: u32 = { frame[14..14 + header].chunks(2) }
            .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        frame[24..26].copy_from_slice(&(!sum as u16).to_be_bytes());
        frame
    }
}

fn arp(kind: u8, from: ([u8; 4], u8), target: [u8; 4]) -> Vec<u8> {
    let mac = [2, 0, 0, 0, 7, from.1];
    let mut frame = vec![0xff; 6];
    frame.extend(mac);
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, kind]);
    frame.extend(mac);
    frame.extend(from.0);
    frame.extend([0; 6]);
    frame.extend(target);
    frame
}

const HOST: [u8; 4] = [10, 0, 0, 5];
const FAR: [u8; 4] = [198, 51, 100, 7];
const GATEWAY: [u8; 4] = [192, 0, 2, 1];

/// Packets of every class that goes to the slow path.
fn of_every_class() -> Vec<(u8, Vec<u8>)> {
    let udp = |bytes| udp(HOST, FAR, 53, bytes);
    let option = |options: &[u8]| Ip {
        options: options.to_vec(),
        ..udp(8)
    };
    let mut all = vec![
        // In the function.
        (0, self::udp(HOST, FAR, 9, 20).frame()),
        // Held until the answer comes, in their order; asked for once.
        (0, udp(1).frame()),
        (0, udp(2).frame()),
        (0, self::udp(HOST, FAR, 9, 21).frame()),
        (1, arp(2, (GATEWAY, 1), [192, 0, 2, 254])),
        (0, udp(3).frame()),
        // Somebody asks for the router.
        (0, arp(1, (HOST, 5), [10, 0, 0, 254])),
        (0, arp(1, (HOST, 5), [10, 0, 0, 77])),
        // Its neighbour is not known, and then is.
        (1, self::udp(FAR, HOST, 5000, 9).frame()),
        (0, arp(2, (HOST, 5), [10, 0, 0, 254])),
        (1, self::udp(FAR, HOST, 5000, 10).frame()),
        // The time to live ends.
        (0, Ip { ttl: 1, ..udp(30) }.frame()),
        (
            1,
            Ip {
                ttl: 1,
                ..self::udp(FAR, HOST, 5000, 9)
            }
            .frame(),
        ),
        // Cut, or not to be cut.
        (0, udp(1400).frame()),
        (
            0,
            Ip {
                flags: 0x4000,
                ..udp(1400)
            }
            .frame(),
        ),
        // A record of the route, a time stamp, options that are wrong.
        (0, option(&[7, 7, 4, 0, 0, 0, 0, 0]).frame()),
        (0, option(&[68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0]).frame()),
        (0, option(&[7, 1, 4, 0]).frame()),
        // Back by where it came: a redirect.
        (0, self::udp(HOST, [10, 0, 0, 6], 53, 4).frame()),
        // Echo of the router itself.
        (
            0,
            Ip {
                protocol: 1,
                body: vec![8, 0, 0xf7, 0xfd, 0, 1, 0, 1],
                ..self::udp(HOST, [10, 0, 0, 254], 0, 0)
            }
            .frame(),
        ),
        // In turns.
        (0, self::udp(HOST, FAR, 7, 1).frame()),
        (0, self::udp(HOST, FAR, 7, 2).frame()),
        (0, self::udp(HOST, FAR, 7, 3).frame()),
        (2, udp(4).frame()),
    ];
    // Too many for those that wait: the first ones go.
    for bytes in 0..40 {
        all.push((0, self::udp(HOST, [10, 0, 0, 200], 53, bytes).frame()));
    }
    all
}

/// Packets of every class, each path's, and random ones, a millisecond apart.
fn packets(of: &Synthesis, random: usize) -> Vec<Given> {
    let own = of_every_class().into_iter();
    let paths = reference::witnesses(of, 2_000).into_iter();
    let all = own
        .chain(paths)
        .chain(reference::random(of, 11).take(random));
    let again = of_every_class().into_iter();
    all.chain(again)
        .enumerate()
        .map(|(number, (port, bytes))| Given {
            port,
            time: number as u64 * 1_000_000,
            bytes,
        })
        .collect()
}

#[test]
fn the_function_and_its_slow_path_do_what_the_interpreter_does() {
    let (of, function) = everything();
    let mut both = Both::new(&function, &of).unwrap();
    both.all(packets(&of, 20_000).into_iter());
    assert_eq!(both.found.difference, None);
    let [forwarded, dropped, handed] = both.found.fates;
    println!(
        "{forwarded} forwarded, {dropped} dropped, {handed} handed over, {} made",
        both.found.made
    );
    assert!(forwarded > 10 && handed > 200 && both.found.made > 100);
}

/// What leaves by each port, in order: of a run over captures.
fn run(function: &Function, given: &[Given], ports: usize) -> (Account, Vec<Vec<Vec<u8>>>) {
    let folder = tempfile::tempdir().unwrap();
    let name =
        |kind: &str, port: usize| -> PathBuf { folder.path().join(format!("{kind}{port}.pcap")) };
    for port in 0..ports {
        let mut writer = Writer::create(name("in", port), &["a"]).unwrap();
        for one in given.iter().filter(|g| usize::from(g.port) == port) {
            let length = one.bytes.len() as u32;
            writer
                .write(BEGIN + one.time, 0, length, &one.bytes)
                .unwrap();
        }
        writer.finish().unwrap();
    }
    let words = |kind: &str| -> Vec<String> {
        (0..ports)
            .map(|p| name(kind, p).display().to_string())
            .collect()
    };
    let between = Ports {
        inputs: words("in"),
        outputs: words("out"),
        ..Ports::default()
    };
    let account = millrace::run(function, &between, &NEVER).unwrap();
    let read = |port: usize| {
        let mut reader = Reader::open(name("out", port)).unwrap();
        let mut all = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            all.push(record.data.to_vec());
        }
        all
    };
    (account, (0..ports).map(read).collect())
}

fn slow(account: &Account) -> &SlowAccount {
    account.stages[0].slow.as_ref().unwrap()
}

#[test]
fn a_run_over_captures_gives_the_bytes_of_the_interpreter() {
    let (of, function) = everything();
    let given = packets(&of, 3_000);
    let (account, left) = run(&function, &given, of.ports.len());
    // All packets through the interpreter, one after the other.
    let interpreter = function.slow.as_ref().unwrap().interpreter().unwrap();
    let mut expected = vec![Vec::new(); of.ports.len()];
    for one in &given {
        interpreter.enter(
            one.port,
            BEGIN + one.time,
            &one.bytes,
            &mut |port, bytes| {
                expected[usize::from(port)].push(bytes.to_vec());
            },
        );
    }
    for (port, (left, expected)) in left.iter().zip(&expected).enumerate() {
        let first = left.iter().zip(expected).position(|(a, b)| a != b);
        assert_eq!(first, None, "port {port}");
        assert_eq!(left.len(), expected.len(), "port {port}");
        assert!(!left.is_empty(), "port {port}");
    }
    assert!(account.balances(), "{account:?}");
    let slow = slow(&account);
    assert_eq!(slow.refused, 0);
    assert_eq!(account.consumed, slow.handed);
    assert_eq!(account.created, slow.left);
    assert_eq!(account.passed, 0);
    let sent = left.iter().map(|l| l.len() as u64).sum::<u64>();
    assert_eq!(account.forwarded + account.created, sent);
    // Every element that makes, copies or holds packets has had some.
    for class in [
        "ARPQuerier",
        "ARPResponder",
        "ICMPError",
        "IPFragmenter",
        "IPGWOptions",
        "PaintTee",
        "Tee",
        "ICMPPingResponder",
        "RoundRobinSwitch",
    ] {
        let of = |e: &&millrace_dataplane::account::SlowElement| {
            e.element.ends_with(&format!(":: {class}"))
        };
        let handed: u64 = slow.elements.iter().filter(of).map(|e| e.handed).sum();
        assert!(handed > 0, "{class}: {slow:?}");
    }
}

/// The time to live ends at each of ten routers, which says so by the address of its own link.
#[test]
fn each_of_ten_routers_answers() {
    let (of, function) = made(&of_repository("chains/routers/hops-10.click"));
    let given: Vec<Given> = (1..=11)
        .map(|ttl| Given {
            port: 0,
            time: u64::from(ttl) * 1_000,
            bytes: Ip {
                ttl,
                ..udp(HOST, FAR, 33_434, 12)
            }
            .frame(),
        })
        .collect();
    let (account, left) = run(&function, &given, of.ports.len());
    let sources: Vec<String> = left[0]
        .iter()
        .map(|f| format!("{}.{}.{}.{} {}", f[26], f[27], f[28], f[29], f[34]))
        .collect();
    let mut expected = vec!["10.0.0.254 11".to_owned()];
    expected.extend((1..10).map(|hop| format!("10.255.{hop}.2 11")));
    assert_eq!(sources, expected);
    assert_eq!(left[1].len(), 1, "the eleventh goes through");
    assert_eq!(
        (account.consumed, account.created, account.forwarded),
        (10, 10, 1)
    );
}

/// Rewriters whose flows would be in two places are on the slow path, with the reason, and nothing else is different.
#[test]
fn a_rewriter_has_its_flows_in_one_place() {
    if !its_turn("the flows of a rewriter", 1, 2) {
        return;
    }
    let text = |behind: &str| {
        format!(
            "rw :: IPRewriter(pattern 192.0.2.1 1024-65535 - - 0 1, drop);
             FromDevice(lan) -> Strip(14) -> a :: CheckIPHeader -> [0] rw;
             FromDevice(wan) -> Strip(14) -> CheckIPHeader -> [1] rw;
             rw[1] -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(lan);
             {behind}"
        )
    };
    let out = "EtherEncap(0x0800, 2:0:0:0:1:1, 2:0:0:0:1:2) -> ToDevice(wan);";
    let folder = tempfile::tempdir().unwrap();
    for (name, behind, wanted) in [
        ("plain", format!("rw[0] -> {out}"), None),
        (
            "behind",
            format!(
                "rw[0] -> t :: DecIPTTL -> {out} t[1] -> ICMPError(10.0.0.1, timeexceeded) -> Discard;"
            ),
            Some("packets behind it are handed over by ICMPError"),
        ),
        (
            "before",
            format!("rw[0] -> {out} a[1] -> e :: ICMPError(10.0.0.1, parameterproblem) -> [0] rw;"),
            None,
        ),
        (
            "copies",
            format!("rw[0] -> {out} a[1] -> t :: Tee -> Discard; t[1] -> [1] rw;"),
            Some("packets that t :: Tee gives out may come to it"),
        ),
    ] {
        let path = folder.path().join(format!("{name}.click"));
        std::fs::write(&path, text(&behind)).unwrap();
        let path = path.display().to_string();
        let whole = Options {
            whole: true,
            ..Options::default()
        };
        for (options, words) in [(Options::default(), ""), (whole, ":whole")] {
            let (of, function) = made_with(&path, options, words);
            let of_rw = |s: &&millrace_synth::slow::Slow| {
                of.router.graph().elements[s.element].name == "rw"
            };
            let why = of.slow.iter().find(|s| s.run && of_rw(s));
            let passed = of.slow.iter().any(|s| !s.run && !of_rw(&s));
            match wanted.filter(|_| options.whole) {
                Some(wanted) => {
                    assert!(why.unwrap().why.contains(wanted), "{name}: {why:?}");
                    assert!(of.rewriters.is_empty() && !passed, "{name}");
                }
                // Flows are the function's, and packets that would need them elsewhere are passed.
                None => {
                    assert!(why.is_none() && of.flows.any(), "{name}: {why:?}");
                    assert_eq!(passed, wanted.is_some(), "{name}: {:?}", of.slow);
                }
            }
            let mut both = Both::new(&function, &of).unwrap();
            match of.flows.any() {
                true => both.sessions(3, 3_000),
                false => both.all(packets(&of, 3_000).into_iter().filter(|g| g.port < 2)),
            }
            assert_eq!(both.found.difference, None, "{name}");
        }
    }
}
