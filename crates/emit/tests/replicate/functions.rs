//! The functions of this repository, on packets made for all of them.

use super::{Fault, compiled, run, text};
use crate::support::random::Random;
use crate::support::{Bench, Packet, Way, facts, nf};
use millrace_history::History;

const SECOND: u64 = 1_000_000_000;

/// Frames of all kinds between a few hosts: TCP with all flags, UDP, ICMP, ARP, IPv6, options, fragments, too short.
pub fn frames(seed: u64, count: u64) -> Vec<Packet> {
    let mut random = Random(seed);
    let mut time = 1000 * SECOND;
    let mut all = Vec::new();
    for _ in 0..count {
        let bytes = frame(&mut random);
        all.push(Packet {
            program: 0,
            port: random.below(2) as u32,
            time,
            bytes,
        });
        time += match random.below(40) {
            0 => random.below(30) * SECOND,
            _ => random.below(2_000_000),
        };
    }
    all
}

fn frame(random: &mut Random) -> Vec<u8> {
    let host = |random: &mut Random| 1 + random.below(6) as u8;
    let (from, to) = (host(random), host(random));
    let mut bytes = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from];
    let options = random.below(4) == 0;
    let tcp = random.below(3) > 0;
    let mut segment = Vec::new();
    // Knocks and other ports.
    segment.extend((1000 + random.below(3) as u16).to_be_bytes());
    segment.extend((99 + random.below(5) as u16).to_be_bytes());
    if tcp {
        segment.extend((random.below(3000) as u32).to_be_bytes());
        segment.extend((random.below(3000) as u32).to_be_bytes());
        segment.push(0x50);
        segment.push(random.of(&[0x02, 0x10, 0x12, 0x11, 0x14, 0x18, 0x04, 0x01]));
        segment.extend([0x20, 0, 0, 0, 0, 0]);
    } else {
        segment.extend([0, 16, 0, 0]);
    }
    segment.resize(segment.len() + random.below(30) as usize, 7);
    let header = if options { 24 } else { 20 };
    match random.below(12) {
        0 => {
            bytes.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1 + random.below(2) as u8]);
            bytes.extend([
                2, 0, 0, 0, 0, from, 10, 0, 0, from, 0, 0, 0, 0, 0, 0, 10, 0, 0, to,
            ]);
        }
        1 | 2 => {
            bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            bytes.extend((segment.len() as u16).to_be_bytes());
            bytes.extend([if tcp { 6 } else { 17 }, 64]);
            for host in [from, to] {
                bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
            }
            bytes.extend(&segment);
        }
        kind => {
            bytes.extend([8, 0, 0x40 | (header / 4), 0]);
            bytes.extend((u16::from(header) + segment.len() as u16).to_be_bytes());
            let fragment = if kind == 3 { random.below(3) as u8 } else { 0 };
            let protocol = match (kind, tcp) {
                (4, _) => 1,
                (_, true) => 6,
                (_, false) => 17,
            };
            bytes.extend([
                0, 1, 0, fragment, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to,
            ]);
            if options {
                bytes.extend([1, 1, 1, 0]);
            }
            let sum: u32 = bytes[14..]
                .chunks(2)
                .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
                .sum();
            let folded = (sum & 0xffff) + (sum >> 16);
            let sum = !((folded & 0xffff) + (folded >> 16)) as u16;
            bytes[24..26].copy_from_slice(&sum.to_be_bytes());
            bytes.extend(&segment);
        }
    }
    if random.below(10) == 0 {
        bytes.truncate(14 + random.below(60) as usize);
    }
    bytes.resize(bytes.len().max(14), 0);
    bytes
}

/// Functions that are replicated.
const SERVED: &[&str] = &[
    "bridge",
    "cl",
    "conntrack",
    "ddos",
    "firewall",
    "heavyhitter",
    "hhh",
    "lb",
    "policer",
    "portknock",
    "psd",
    "tokenbucket",
];
/// Functions that are refused, with what the refusal says.
const REFUSED: &[(&str, &str)] = &[
    ("nat", "several kinds of memory"),
    ("router", "borders are moved"),
    ("einat", "several kinds of memory"),
];

/// One function: the program's fates with rows are those without, and both replicas have the same state.
fn compare(bench: &Bench, name: &str, sanitize: bool, packets: &[Packet]) {
    let program = nf::load(bench, name);
    let alone = millrace_emit::alone::emit(&program, &facts(&program), "module.c").unwrap();
    let alone = compiled(bench, &alone, sanitize);
    let way = Way {
        sanitize,
        plain: true,
        burst: 1,
    };
    let (expected, _) = bench.run(&program, &alone, way, packets);
    let module = compiled(bench, &text(&program).unwrap(), sanitize);
    let found = run(
        bench,
        &program,
        &module,
        (sanitize, Fault::default()),
        packets,
    );
    assert_eq!(found.differs, None, "{name}");
    assert!(found.rows > 0, "{name}: no rows");
    for (n, (a, b)) in expected.iter().zip(&found.outcomes).enumerate() {
        assert_eq!(a, b, "packet {n} of {name}");
    }
}

#[test]
fn replicas_of_every_function_are_alike() {
    let packets = frames(1, 3000);
    let bench = Bench::new();
    for name in SERVED {
        compare(&bench, name, false, &packets);
    }
}

#[test]
fn and_under_sanitizers() {
    let packets = frames(2, 600);
    let bench = Bench::new();
    for name in ["conntrack", "firewall"] {
        compare(&bench, name, true, &packets);
    }
}

#[test]
fn what_cannot_be_replicated_is_refused_by_name() {
    let bench = Bench::new();
    for (name, what) in REFUSED {
        let program = nf::load(&bench, name);
        let error = text(&program).unwrap_err().to_string();
        assert!(
            error.contains(what) && error.contains(".c:") || error.contains(".h:"),
            "{name}: {error}"
        );
    }
}

/// The test above can fail: without any one field the other replica goes another way.
#[test]
fn no_field_of_a_row_can_be_left_out() {
    let packets = frames(3, 3000);
    let bench = Bench::new();
    for name in ["portknock", "heavyhitter", "tokenbucket"] {
        let program = nf::load(&bench, name);
        let history = History::of(&program, &facts(&program));
        let module = compiled(&bench, &text(&program).unwrap(), false);
        let whole = run(
            &bench,
            &program,
            &module,
            (false, Fault::default()),
            &packets,
        );
        assert_eq!(whole.differs, None, "{name}");
        let time = (history.time_bits > 0).then_some((0, history.time_bits));
        for cleared in history.fields.iter().map(|f| (f.at, f.bits)).chain(time) {
            let fault = Fault {
                cleared,
                ..Fault::default()
            };
            let found = run(&bench, &program, &module, (false, fault), &packets);
            assert!(
                found.differs.is_some(),
                "{name}: bits {cleared:?} are not needed"
            );
        }
    }
}

/// A packet that changes once its row is made is aborted, and state goes the row's way.
#[test]
fn a_packet_that_is_not_its_rows_is_aborted() {
    let packets = frames(4, 1000);
    let bench = Bench::new();
    let program = nf::load(&bench, "ddos");
    let module = compiled(&bench, &text(&program).unwrap(), true);
    // Byte 27 is of the source address; these are IPv4.
    let ipv4 = |p: &Packet| p.bytes.len() >= 34 && p.bytes[12..15] == [8, 0, 0x45];
    let changed: Vec<usize> = (0..packets.len())
        .filter(|&n| n % 9 == 0 && ipv4(&packets[n]))
        .collect();
    let fault = Fault {
        changed: &changed,
        ..Fault::default()
    };
    let found = run(&bench, &program, &module, (true, fault), &packets);
    assert_eq!(found.differs, None);
    assert!(changed.len() > 20);
    for n in changed {
        assert_eq!(found.outcomes[n].fate, 0, "packet {n}");
    }
}
