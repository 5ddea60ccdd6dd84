//! A plan that shards, in the kernel: its steering sends each frame where the plan's does, byte by byte of whatever comes.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use millrace_emit::target::xdp::shard::{Shards, files};
use millrace_steer::{Rss, Steering, nic};

use super::packets;
use super::xdp::{compiled, driver};
use crate::support::{Bench, facts, nf};

const WORKERS: u32 = 5;

/// Steering by a key of chance, over all fields of each kind.
pub(super) fn steering(seed: &mut u64, inside: bool) -> Steering {
    let device = nic::named("software").unwrap();
    let key: Vec<u8> = (0..device.key_bytes).map(|_| draw(seed) as u8).collect();
    Steering {
        nic: Rss::new(&device, WORKERS).with_key(&device, &key).unwrap(),
        software: BTreeMap::new(),
        inside,
        echoes: false,
        odd: None,
    }
}

/// Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014).
fn draw(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Packets of the golden captures, errors of ICMP about them, and all of these with tags, extension headers, fragments, bytes of chance
/// and cut short.
fn frames(seed: &mut u64) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = packets().into_iter().map(|(_, bytes)| bytes).collect();
    // What is shorter than a header of IP is neither changed nor carried.
    let long = |packet: &&Vec<u8>| packet.len() > 34;
    let carried: Vec<Vec<u8>> = all.iter().filter(long).take(60).cloned().collect();
    for packet in carried {
        let six = packet.get(12..14) == Some(&[0x86, 0xdd]);
        let mut error = packet[..12].to_vec();
        let inner = &packet[14..packet.len().min(14 + 64)];
        if six {
            error.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 58, 64]);
            error.extend((0..32).map(|_| draw(seed) as u8));
            error.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        } else {
            error.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 1, 0, 0]);
            error.extend((0..8).map(|_| draw(seed) as u8));
            error.extend([3, 1, 0, 0, 0, 0, 0, 0]);
        }
        error.extend(inner);
        all.push(error);
    }
    let mut changed = Vec::new();
    for packet in all.iter().filter(long) {
        for way in 0..16 {
            let mut other = packet.clone();
            match way {
                0 => {
                    let tags = [[0x81, 0, 0, 1], [0x88, 0xa8, 0, 2], [0x91, 0, 0, 3]];
                    for tag in tags.iter().take(1 + draw(seed) as usize % 3) {
                        other.splice(12..12, *tag);
                    }
                }
                // Fragments, options and another protocol of IPv4; extension headers of IPv6.
                1 => other[20] = [0x20, 0x40, 0x3f][draw(seed) as usize % 3],
                2 => other[14] = 0x40 | (draw(seed) as u8 & 15),
                3 => other[23] = [1, 6, 17, 132, 58][draw(seed) as usize % 5],
                4 => other[20] = [0, 43, 44, 51, 60, 135, 6][draw(seed) as usize % 7],
                5 => other.truncate(14 + draw(seed) as usize % 60),
                _ => {
                    for _ in 0..1 + draw(seed) % 4 {
                        let most = other.len().min(90) as u64;
                        other[(draw(seed) % most) as usize] = draw(seed) as u8;
                    }
                }
            }
            changed.push(other);
        }
    }
    all.extend(changed);
    all
}

#[test]
fn the_kernel_steers_as_the_plan_does() {
    let bench = Bench::new();
    let program = nf::load(&bench, "heavyhitter");
    let mut seed = 11;
    for inside in [false, true] {
        let steering = [steering(&mut seed, inside)];
        let shards = Shards {
            program: &program,
            checked: &facts(&program),
            workers: WORKERS,
            steering: &steering,
        };
        let files = files(&shards).unwrap();
        let name = format!("steer-{inside}");
        let object = compiled(&bench, &name, &files[0].text);
        compiled(&bench, "worker", &files[1].text);
        let frames = frames(&mut seed);
        let mut input = (frames.len() as u32).to_le_bytes().to_vec();
        for frame in &frames {
            input.extend((frame.len() as u32).to_le_bytes());
            input.extend(frame);
        }
        let mut child = Command::new(driver(&bench, "steer"))
            .arg(&object)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&input).is_ok());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        if output.status.code() == Some(77) {
            eprintln!("skipped: no XDP program runs here");
            return;
        }
        assert!(output.status.success(), "{}", output.status);
        let found = output.stdout.chunks_exact(4);
        let found = found.map(|w| u32::from_le_bytes(w.try_into().unwrap()));
        let found: Vec<u32> = found.collect();
        assert_eq!(found.len(), frames.len());
        let mut met = BTreeMap::new();
        for (frame, worker) in frames.iter().zip(&found) {
            // The kernel runs no frame without a header of Ethernet.
            if *worker != u32::MAX {
                let expected = steering[0].queue(frame);
                assert_eq!(*worker, expected, "inside {inside}: {frame:02x?}");
                *met.entry(*worker).or_insert(0) += 1;
            }
        }
        assert_eq!(met.len(), WORKERS as usize, "{met:?}");
        assert!(met.values().sum::<usize>() > 1200, "{met:?}");
    }
}

/// What the kernel cannot be given is refused with the reason.
#[test]
fn handlers_are_refused() {
    let bench = Bench::new();
    let mut seed = 5;
    let steering = [steering(&mut seed, false)];
    let program = nf::load(&bench, "firewall");
    let shards = Shards {
        program: &program,
        checked: &facts(&program),
        workers: 2,
        steering: &steering,
    };
    let error = files(&shards).unwrap_err().to_string();
    assert!(error.contains("handlers' dialect"), "{error}");
}
