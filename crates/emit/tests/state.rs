//! Programs with state: the emitted NFs against models written here, packet by packet, with and without
//! the prefetching passes, plain and under sanitizers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::HashMap;

use support::{Bench, Outcome, Packet, Way, facts, nf};

const DROP: u32 = 1;
const FORWARD: u32 = 3;

/// Makes every table count as larger than the cache, so that the prefetching passes run.
const ALWAYS_COLD: &str = "#define MR_CACHE_BYTES 0\n";

struct Random(u64);

impl Random {
    /// A linear congruential generator with Knuth's MMIX constants; the upper bits.
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// Ethernet, IPv4, TCP; nothing else in it.
fn tcp(source: u32, destination: u32, port: u16) -> Vec<u8> {
    let mut bytes = vec![0; 54];
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[14] = 0x45;
    bytes[16..18].copy_from_slice(&40u16.to_be_bytes());
    bytes[22] = 64;
    bytes[23] = 6;
    bytes[26..30].copy_from_slice(&source.to_be_bytes());
    bytes[30..34].copy_from_slice(&destination.to_be_bytes());
    bytes[36..38].copy_from_slice(&port.to_be_bytes());
    bytes[46] = 0x50;
    let sum: u32 = bytes[14..34]
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    bytes[24..26].copy_from_slice(&(!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes());
    bytes
}

/// Runs the packets in every way there is; all must agree. Returns what they agree on.
fn run(name: &str, packets: &[Packet]) -> (Vec<Outcome>, Vec<u64>) {
    let bench = Bench::new();
    let program = nf::load(&bench, name);
    let text = millrace_emit::alone::emit(&program, &facts(&program), "module.c").unwrap();
    assert!(text.contains("static void burst0("), "{name} has a scout");
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
    assert_eq!(*counts.last().unwrap(), 3);
}
