//! The rule [`Rule::PROGRAM`] against the headers that network functions include, compiled for this machine.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use millrace_wire::{Fragment, Layers, Rule, Stop, Version, icmpv4, icmpv6, protocol, walk, word};

use super::frames::{Chance, captured, error_about, kinds};

/// The kinds of include/millrace/transport.h.
const NONE: u32 = 0;
const OWN: u32 = 1;
const CARRIED: u32 = 2;
const FRAGMENT: u32 = 3;
const BAD: u32 = 4;

/// Bytes of an answer: kind, network header, flow.
const ANSWER: usize = 48;

fn compiled(folder: &Path) -> Option<std::path::PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("program");
    for clang in ["clang-19", "clang"] {
        let built = Command::new(clang)
            .args(["-O1", "-w", "-I"])
            .arg(here.join("../../include"))
            .arg(here.join("tests/it/program.c"))
            .arg("-o")
            .arg(&program)
            .output();
        if let Ok(built) = built {
            assert!(
                built.status.success(),
                "{}",
                String::from_utf8_lossy(&built.stderr)
            );
            return Some(program);
        }
    }
    None
}

/// Source and destination port, or what an echo has in their place; none of what has neither.
fn ports(frame: &[u8], layers: &Layers) -> Option<[u16; 2]> {
    let ip = layers.ip?;
    let upper = ip.upper?;
    let bytes = ip.upper_bytes(frame);
    let echo = match (upper.protocol, ip.version) {
        (protocol::TCP | protocol::UDP, _) => return Some([word(bytes, 0)?, word(bytes, 2)?]),
        (protocol::ICMP, Version::V4) => icmpv4::echo(bytes)?,
        (protocol::ICMPV6, Version::V6) => icmpv6::echo(bytes)?,
        _ => return None,
    };
    Some(if echo.request {
        [echo.identifier, 0]
    } else {
        [0, echo.identifier]
    })
}

fn kind_of(frame: &[u8], layers: &Layers) -> u32 {
    let version = layers.ip.map(|ip| ip.version);
    match layers.stop {
        Stop::Transport if ports(frame, layers).is_some() => OWN,
        Stop::Transport | Stop::Unknown => NONE,
        Stop::Error => CARRIED,
        // IPv4 names the protocol in each fragment, and those of others are no flow's.
        Stop::Fragment if version == Some(Version::V4) && !flows(layers) => NONE,
        Stop::Fragment => FRAGMENT,
        // A frame that ends in its tags has no network header.
        Stop::Short if layers.link.ethertype.is_none() => NONE,
        Stop::Short | Stop::Malformed => BAD,
    }
}

fn flows(layers: &Layers) -> bool {
    let upper = layers.ip.and_then(|ip| ip.upper);
    upper.is_some_and(|u| matches!(u.protocol, protocol::TCP | protocol::UDP | protocol::ICMP))
}

/// The answer of the walk.
fn answer(frame: &[u8]) -> Vec<u8> {
    let layers = walk(frame, Rule::PROGRAM);
    let mut kind = kind_of(frame, &layers);
    let inner = layers.inner(frame, Rule::PROGRAM);
    if let Some(inner) = &inner {
        kind = match kind_of(frame, inner) {
            OWN => CARRIED,
            // Inside, the offset is looked at before the protocol.
            NONE if inner.ip.is_some_and(|ip| ip.fragment == Fragment::Later) => FRAGMENT,
            other => other,
        };
    }
    let mut bytes = kind.to_ne_bytes().to_vec();
    let network = match layers.link.ethertype {
        Some(kind) => layers.link.at as u32 | u32::from(kind) << 16,
        None => 0,
    };
    bytes.extend(network.to_ne_bytes());
    let flow = inner.unwrap_or(layers);
    if let (OWN | CARRIED, Some(ip)) = (kind, flow.ip) {
        for address in [ip.source(frame), ip.destination(frame)] {
            if ip.version == Version::V4 {
                bytes.extend([0; 10]);
                bytes.extend([0xff, 0xff]);
            }
            bytes.extend(address);
        }
        for port in ports(frame, &flow).unwrap() {
            bytes.extend(port.to_be_bytes());
        }
        let version = if ip.version == Version::V4 { 4 } else { 6 };
        bytes.extend([ip.upper.unwrap().protocol, version]);
    }
    bytes.resize(ANSWER, 0);
    bytes
}

#[test]
fn the_walk_finds_what_programs_find() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path()) else {
        eprintln!("skipped: no clang");
        return;
    };
    let mut frames: Vec<Vec<u8>> = captured().into_iter().take(400).collect();
    let errors: Vec<Vec<u8>> = frames
        .iter()
        .take(100)
        .filter(|f| matches!(f[12..14], [8, 0] | [0x86, 0xdd]))
        .map(|f| error_about(f))
        .collect();
    frames.extend(errors);
    frames.extend(kinds());
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    for _ in 0..200_000 {
        let mut frame = frames[chance.below(400)].clone();
        if chance.below(2) == 0 {
            frame = frames[chance.below(frames.len())].clone();
        }
        chance.damage(&mut frame);
        // Most damage to a header shows in its sum first.
        if chance.below(4) != 0 {
            for at in [14, 18, 22] {
                if let Some(rest) = frame.get_mut(at..).filter(|r| r.first() == Some(&0x45))
                    && let Ok(mut view) = millrace_wire::ipv4::Header::new_checked(rest)
                {
                    view.fill_checksum();
                    break;
                }
            }
        }
        frames.push(frame);
        if frames.len() > 2_000 {
            compare(&program, &frames[400..]);
            frames.truncate(600);
        }
    }
    compare(&program, &frames);
}

/// Whether an error carries ICMP over the other version of IP. `carried_ports_at` of include/millrace takes such a message
/// for one of its own version, which `ports_at` of the packet around it does not; the walk does neither.
fn crossed(frame: &[u8]) -> bool {
    let layers = walk(frame, Rule::PROGRAM);
    let inner = layers.inner(frame, Rule::PROGRAM).and_then(|l| l.ip);
    inner.is_some_and(|ip| {
        let protocol = ip.upper.map(|u| u.protocol);
        let other = match ip.version {
            Version::V4 => protocol::ICMPV6,
            Version::V6 => protocol::ICMP,
        };
        protocol == Some(other)
    })
}

fn compare(program: &Path, frames: &[Vec<u8>]) {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = Vec::new();
    for frame in frames {
        input.extend((frame.len() as u32).to_ne_bytes());
        input.extend(frame);
    }
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let found: Vec<&[u8]> = output.stdout.chunks(ANSWER).collect();
    assert_eq!(found.len(), frames.len());
    let mut seen = [0; 5];
    for (frame, found) in frames.iter().zip(found) {
        if crossed(frame) {
            continue;
        }
        let walked = answer(frame);
        assert_eq!(
            walked,
            found,
            "{frame:02x?}\n{:?}",
            walk(frame, Rule::PROGRAM)
        );
        let kind = u32::from_ne_bytes(*found.first_chunk().unwrap());
        seen[kind as usize] += 1;
    }
    // Each kind occurs, so that each was compared.
    let all = [NONE, OWN, CARRIED, FRAGMENT, BAD];
    assert!(all.iter().all(|k| seen[*k as usize] > 0), "{seen:?}");
}
