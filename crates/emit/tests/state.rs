//! Programs with state: the emitted NFs against models written here, packet by packet, with and without
//! the prefetching passes, plain and under sanitizers.

use crate::support;

use std::collections::HashMap;

use support::random::Random;
use support::{Bench, Outcome, Packet, Way, facts, nf};

const DROP: u32 = 1;
const FORWARD: u32 = 3;

/// Makes every table count as larger than the cache, so that the prefetching passes run.
const ALWAYS_COLD: &str = "#define MR_CACHE_BYTES 0\n#define MR_FEW 0u\n";

/// Ethernet, IPv4, TCP to a port; nothing else in it.
fn tcp(source: u32, destination: u32, port: u16) -> Vec<u8> {
    support::traffic::frame((0, 0), source, destination, (0, port))
}

/// Runs the packets in every way there is; all must agree. Returns what they agree on.
fn run(name: &str, packets: &[Packet]) -> (Vec<Outcome>, Vec<u64>) {
    let bench = Bench::new();
    let program = nf::load(&bench, name);
    let text = millrace_emit::alone::emit(&program, &facts(&program), "module.c").unwrap();
    assert!(
        text.contains("static void burst0("),
        "{name} has a prefetch pass"
    );
    let mut agreed = None;
    for sanitize in [false, true] {
        for (prefix, plain, burst) in [
            ("", true, 32),
            (ALWAYS_COLD, false, 32),
            (ALWAYS_COLD, false, 7),
            (ALWAYS_COLD, false, 100),
        ] {
            let module = bench.compile(&format!("{prefix}{text}"), sanitize);
            let result = bench.run(
                &program,
                &module,
                Way {
                    sanitize,
                    plain,
                    burst,
                },
                packets,
            );
            let first = agreed.get_or_insert_with(|| result.clone());
            let way = format!("{name}, burst {burst}, plain {plain}, sanitized {sanitize}");
            for (n, (a, b)) in first.0.iter().zip(&result.0).enumerate() {
                assert_eq!(a, b, "packet {n} of {way}");
            }
            assert_eq!(first.1, result.1, "counts of {way}");
        }
    }
    agreed.unwrap()
}

#[test]
fn portknock_is_its_state_machine() {
    let mut random = Random(1);
    let mut packets = Vec::new();
    for n in 0..6000 {
        let port = 98 + random.below(6) as u16;
        let mut bytes = tcp(1 + random.below(40) as u32, 9, port);
        match random.below(20) {
            0 => bytes[23] = 17,
            1 => bytes.truncate(random.below(55) as usize),
            _ => {}
        }
        packets.push(Packet {
            program: 0,
            port: (n % 2) as u32,
            time: n,
            bytes,
        });
    }
    let (outcomes, counts) = run("portknock", &packets);
    let mut sources: HashMap<[u8; 4], u16> = HashMap::new();
    for (packet, outcome) in packets.iter().zip(&outcomes) {
        let bytes = &packet.bytes;
        let mut open = false;
        if bytes.len() >= 54 && bytes[23] == 6 {
            let source: [u8; 4] = bytes[26..30].try_into().unwrap();
            let port = u16::from_be_bytes([bytes[36], bytes[37]]);
            match sources.get_mut(&source) {
                Some(state) => {
                    if *state != 3 {
                        *state = if port == 100 + *state {
                            *state + 1
                        } else {
                            u16::from(port == 100)
                        };
                    }
                    open = *state == 3;
                }
                None if port == 100 => {
                    sources.insert(source, 1);
                }
                None => {}
            }
        }
        assert_eq!(
            (outcome.fate, outcome.out),
            if open {
                (FORWARD, packet.port)
            } else {
                (DROP, 0)
            }
        );
        assert_eq!(outcome.bytes, packet.bytes);
    }
    assert_eq!(counts, [sources.len() as u64]);
}

#[test]
fn policer_lets_the_burst_pass_and_then_the_rate() {
    let mut packets = Vec::new();
    // To one of three hosts every microsecond, 54 bytes each: 18 MB/s a host.
    for n in 0..9000u64 {
        packets.push(Packet {
            program: 0,
            port: 1,
            time: n * 1000,
            bytes: tcp(1, 2 + (n % 3) as u32, 80),
        });
    }
    let (outcomes, counts) = run("policer", &packets);
    // rate 1 MB/s, burst 100 kB, both the defaults; exact, in billionths of a byte.
    let (rate, full, cost) = (
        1_000_000u64,
        100_000 * 1_000_000_000u64,
        54 * 1_000_000_000u64,
    );
    let mut buckets: HashMap<u64, (u64, u64)> = HashMap::new();
    for (packet, outcome) in packets.iter().zip(&outcomes) {
        let bucket = buckets
            .entry(packet.time / 1000 % 3)
            .or_insert((full, packet.time));
        bucket.0 = full.min(bucket.0 + (packet.time - bucket.1) * rate);
        bucket.1 = packet.time;
        let passes = bucket.0 >= cost;
        if passes {
            bucket.0 -= cost;
        }
        assert_eq!(
            outcome.fate,
            if passes { FORWARD } else { DROP },
            "at {} ns",
            packet.time
        );
    }
    assert!(outcomes.iter().any(|o| o.fate == DROP));
    assert!(counts.contains(&3), "{counts:?}");
}

#[test]
fn firewall_answers_only_what_the_lan_opened() {
    const SECOND: u64 = 1_000_000_000;
    let mut random = Random(3);
    let mut packets = Vec::new();
    let mut time = 0;
    for n in 0..6000u64 {
        // Mostly close together; now and then long enough for flows to expire, once exactly.
        time += if n % 97 == 0 {
            random.below(40) * SECOND
        } else {
            random.below(SECOND)
        };
        let (lan, wan) = (
            0x0a00_0000 + random.below(30) as u32,
            0xc000_0200 + random.below(4) as u32,
        );
        let port = random.below(2) as u32;
        let mut bytes = if port == 0 {
            tcp(lan, wan, 80)
        } else {
            tcp(wan, lan, 5000)
        };
        let source = if port == 0 { 5000u16 } else { 80 };
        bytes[34..36].copy_from_slice(&source.to_be_bytes());
        match random.below(30) {
            0 => bytes[24] ^= 1,
            1 => bytes.truncate(random.below(54) as usize),
            2 => bytes[12..14].copy_from_slice(&[8, 6]),
            _ => {}
        }
        packets.push(Packet {
            program: 0,
            port,
            time,
            bytes,
        });
    }
    let (outcomes, counts) = run("firewall", &packets);
    let mut flows: HashMap<(Vec<u8>, Vec<u8>), u64> = HashMap::new();
    let (mut passed, mut stopped) = (0, 0);
    for (packet, outcome) in packets.iter().zip(&outcomes) {
        let bytes = &packet.bytes;
        let peer = (FORWARD, 1 - packet.port);
        let found = (outcome.fate, outcome.out);
        if bytes.len() < 14 || bytes[12..14] != [8, 0] {
            assert_eq!(found, peer, "not IP");
            continue;
        }
        let sum: u32 = bytes.get(14..34).map_or(0, |h| {
            h.chunks(2)
                .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
                .sum()
        });
        if bytes.len() < 54 || (sum & 0xffff) + (sum >> 16) != 0xffff {
            assert_eq!(outcome.fate, DROP, "broken header");
            continue;
        }
        let (a, b) = (bytes[26..30].to_vec(), bytes[30..34].to_vec());
        let key = if packet.port == 0 { (a, b) } else { (b, a) };
        let fresh = flows
            .get(&key)
            .is_some_and(|then| packet.time - then < 60 * SECOND);
        if fresh || packet.port == 0 {
            flows.insert(key, packet.time);
            assert_eq!(found, peer);
            passed += packet.port;
        } else {
            assert_eq!(outcome.fate, DROP);
            stopped += 1;
        }
    }
    assert!(
        passed > 500 && stopped > 50,
        "both happen: {passed}, {stopped}"
    );
    let end = packets.last().unwrap().time;
    assert_eq!(
        counts,
        [flows
            .values()
            .filter(|then| end - **then < 60 * SECOND)
            .count() as u64]
    );
}
