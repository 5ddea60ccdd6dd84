//! The code of the fuzz targets on damaged inputs from a fixed seed: the same on every machine, with the
//! stable compiler.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../fuzz/src/packet_language.rs"]
mod packet_language;
#[path = "../../../fuzz/src/pcap.rs"]
mod pcap;

use crate::common;

use std::time::{Duration, Instant};

use common::Sink;
use millrace_traffic::capture::{Format, Writer};
use millrace_traffic::generate::{Generator, Spec};
use rand::SeedableRng;
use rand::rand_core::Rng;
use rand_chacha::ChaCha8Rng;

/// A slow machine does fewer rounds rather than take longer.
const BUDGET: Duration = Duration::from_millis(1200);

/// Damages bytes as files are damaged: single bytes, numbers, cuts, repeats.
fn damage(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    for _ in 0..1 + random.next_u32() % 4 {
        let draw = random.next_u64();
        let at = (draw >> 8) as usize % bytes.len().max(1);
        match draw % 7 {
            0 => bytes.truncate(at),
            1 => {
                let end = (at + (draw >> 40) as usize % 64).min(bytes.len());
                let part = bytes[at.min(end)..end].to_vec();
                bytes.splice(at.min(end)..at.min(end), part);
            }
            2 => {
                let end = (at + (draw >> 40) as usize % 8).min(bytes.len());
                bytes.drain(at.min(end)..end);
            }
            3 => {
                // Lengths at their limits are what readers trip over.
                let extreme = [
                    0_u32,
                    1,
                    11,
                    12,
                    16,
                    28,
                    0xffff,
                    0x7fff_ffff,
                    0xffff_ffff,
                    0xffff_fffc,
                ];
                let number = extreme[(draw >> 40) as usize % extreme.len()];
                let number = if draw >> 63 == 0 {
                    number.to_le_bytes()
                } else {
                    number.to_be_bytes()
                };
                for (to, from) in bytes.iter_mut().skip(at & !3).zip(number) {
                    *to = from;
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = (draw >> 40) as u8;
                }
            }
        }
    }
}

fn rounds(seed: u64, starts: &[Vec<u8>], run: impl Fn(&[u8])) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let begun = Instant::now();
    let mut done = 0_u32;
    for start in starts {
        run(start);
    }
    while begun.elapsed() < BUDGET && done < 20_000 {
        let mut bytes = starts[random.next_u32() as usize % starts.len()].clone();
        damage(&mut bytes, &mut random);
        run(&bytes);
        done += 1;
    }
    println!("{done} damaged inputs");
    assert!(done > 100, "only {done} rounds in {BUDGET:?}");
}

#[test]
fn damaged_captures() {
    let spec = Spec {
        packets: 12,
        flows: 3,
        ipv6: 0.5,
        ..Spec::default()
    };
    let starts = [Format::Pcap, Format::Pcapng].map(|format| {
        let sink = Sink::new(usize::MAX);
        let mut writer = Writer::new("sink", sink.clone(), format, &["lan", "wan"]);
        let mut generator = Generator::new(spec.clone()).unwrap();
        while let Some(record) = generator.next() {
            writer
                .write(record.time_ns, record.interface, 0, record.data)
                .unwrap();
        }
        writer.finish().unwrap();
        std::mem::take(&mut *sink.bytes.lock().unwrap())
    });
    rounds(1, &starts, pcap::run);
}

#[test]
fn damaged_texts_and_packets() {
    let case = "# Title\nset timeout=60\nrepeat 3\nLAN: eth / vlan 7 / ip 10.0.0.$i > 192.0.2.1 ttl 3 \
                frag 8 more options 0101 / tcp $(i+1) > 80 syn ack options 020405b4 / payload \"hi\"\n\
                -> WAN: eth / ip6 ::1 > ::2 / hopopts 0102 / icmp6 toobig 1280 / ip6 ::1 > ::2\n\
                after 1.5ms\nend\nstate flows = 3\nrecords events = 0x2\nat 9\n1: raw 00 / cut 0\n\
                -> drop over_rate\n";
    let packets = [
        "eth / vlan 3 / ip 10.0.0.1 > 10.0.0.2 / icmp unreachable 1 / ip 1.1.1.1 > 2.2.2.2 / udp 5 > 6",
        "eth / ip6 ::1 > ::2 / hopopts 0104 / frag6 more id 7 / tcp 1 > 2 syn / payload 0102 / trailer 00",
        "eth / arp who-has 10.0.0.1 tell 10.0.0.2",
    ];
    let mut starts = vec![case.as_bytes().to_vec()];
    for text in packets {
        starts.push(text.as_bytes().to_vec());
        starts.push(millrace_traffic::language::packet(text).unwrap());
    }
    rounds(2, &starts, packet_language::run);
}
