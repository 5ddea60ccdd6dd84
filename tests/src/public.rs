//! Objects that others wrote, and packets and state to run them with.

use std::path::PathBuf;

use millrace_object::contract::Holds;
use millrace_object::helper;
use millrace_object::program::{ObjectId, Role};
use millrace_object::state::Addressing;
use millrace_object::{Insn, Program};
use millrace_traffic::capture::Reader;

use crate::command::captures;
use crate::random::Random;

/// The kernel runs a program on frames of at least an Ethernet header, in a buffer of a page.
const LENGTHS: std::ops::RangeInclusive<usize> = 14..=3000;

/// Frames of each capture.
const FRAMES: usize = 400;

/// Frames of random bytes.
const NOISE: usize = 400;

/// Entries of maps whose authors left that open.
pub const CAPACITY: u32 = 64;

/// Maps of more entries are not compared entry by entry: load balancers declare arrays of 33 million.
pub const LISTED: u64 = 1 << 20;

/// The objects in the folder $MILLRACE_OBJECTS, or none when that is not set.
///
/// # Errors
/// The folder cannot be read.
pub fn objects() -> Result<Option<Vec<PathBuf>>, String> {
    let Some(folder) = std::env::var_os("MILLRACE_OBJECTS") else {
        return Ok(None);
    };
    let entries = std::fs::read_dir(&folder)
        .map_err(|e| format!("MILLRACE_OBJECTS={}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "o"))
        .collect();
    files.sort();
    Ok(Some(files))
}

/// Frames of the captures, mutants of them, and noise with an Ethernet type that programs look at.
///
/// # Errors
/// A capture cannot be read.
pub fn packets() -> Result<Vec<Vec<u8>>, String> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut packets = Vec::new();
    for capture in captures() {
        let wrong = |e: &dyn std::fmt::Display| format!("{}: {e}", capture.display());
        let mut reader = Reader::open(&capture).map_err(|e| wrong(&e))?;
        for _ in 0..FRAMES {
            let Some(record) = reader.next().map_err(|e| wrong(&e))? else {
                break;
            };
            let frame = record.data.to_vec();
            let mut mutant = frame.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(mutant.len().clamp(1, 60));
                let byte = random.below(256) as u8;
                if let Some(place) = mutant.get_mut(at) {
                    *place = byte;
                }
            }
            mutant.truncate(14 + random.below(mutant.len().max(1)));
            packets.extend([frame, mutant]);
        }
    }
    for _ in 0..NOISE {
        let length = 14 + random.below(120);
        let mut frame = random.bytes(length);
        // IPv4, IPv6, ARP, VLAN.
        let types = [[8, 0], [0x86, 0xdd], [8, 6], [0x81, 0]];
        frame.splice(12..14, types[random.below(types.len())]);
        // IPv4 without options, UDP or TCP.
        let parts = [(14, 0x45), (23, [6, 17][random.below(2)]), (20, 6)];
        for (at, byte) in parts {
            if random.below(2) == 0 && at < length {
                frame[at] = byte;
            }
        }
        packets.push(frame);
    }
    packets.retain(|p| LENGTHS.contains(&p.len()));
    Ok(packets)
}

/// Entries that a user-space half might have set, a fixed choice: in keyed maps parts of the packets, in
/// maps of targets the first interfaces, in program arrays the programs.
#[must_use]
pub fn entries(program: &Program, packets: &[Vec<u8>]) -> Vec<(ObjectId, Vec<u8>, Vec<u8>)> {
    const FIELDS: [usize; 9] = [0, 6, 22, 26, 30, 34, 36, 38, 54];
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut found = Vec::new();
    let programs = (program.entries.iter())
        .filter(|e| e.role == Role::Xdp)
        .count();
    for (i, object) in program.objects.iter().enumerate() {
        // A map that is found in another one has its entries there.
        if object.is_shape() {
            continue;
        }
        let (keys, values) = (object.key_bytes as usize, object.value_bytes as usize);
        let few = object.capacity.min(6) as u32;
        match (object.kind.holds, object.kind.addressing) {
            (Holds::Values, Addressing::Key | Addressing::Prefix) => {
                for _ in 0..(object.capacity / 2).min(24) {
                    let packet = &packets[random.below(packets.len())];
                    let from = FIELDS[random.below(FIELDS.len())];
                    let mut key = packet.get(from..).unwrap_or(&[]).to_vec();
                    key.resize(keys, 0);
                    if object.kind.addressing == Addressing::Prefix {
                        let bits = random.below(8 * (keys - 4) + 1) as u32;
                        key.splice(..keys - 4, key[4..].to_vec());
                        key.splice(..4, bits.to_le_bytes());
                        key.truncate(keys);
                    }
                    let mut value = vec![0; values];
                    for _ in 0..random.below(3) {
                        value[random.below(values)] = random.below(8) as u8;
                    }
                    found.push((ObjectId(i), key, value));
                }
            }
            (Holds::Targets(_), _) => {
                for index in 0..few {
                    let mut value = (1 + random.below(3) as u32).to_le_bytes().to_vec();
                    value.resize(values, 0);
                    found.push((ObjectId(i), index.to_le_bytes().to_vec(), value));
                }
            }
            (Holds::Programs, _) if object.initial.is_none() => {
                for index in 0..few {
                    let number = 1 + index % programs.max(1) as u32;
                    let bytes = |n: u32| n.to_le_bytes().to_vec();
                    found.push((ObjectId(i), bytes(index), bytes(number)));
                }
            }
            _ => {}
        }
    }
    found
}

/// The helpers that a program calls.
pub fn helpers(program: &Program) -> impl Iterator<Item = &'static helper::Helper> {
    let insns = program.functions.iter().flat_map(|f| &f.insns);
    insns.filter_map(|insn| match insn {
        Insn::Call { helper } => helper::by_number(*helper),
        _ => None,
    })
}

/// Names of the programs for packets, in their order.
#[must_use]
pub fn programs(program: &Program) -> Vec<String> {
    (program.entries.iter())
        .filter(|e| e.role == Role::Xdp)
        .filter_map(|e| program.functions.get(e.function.0))
        .map(|f| f.name.clone())
        .collect()
}
