//! Chains, and what their interpreter says.

use std::path::{Path, PathBuf};

use millrace_click::language::{Limits, flatten, parse};
use millrace_switch::run::{Fate, Switch};
use millrace_switch::switch::Switch as Kind;
use millrace_switch::{Assumptions, Request, Rules, Server, compile};
use millrace_synth::field::{Base, Var, bit, ip};
use millrace_synth::packet::value;
use millrace_synth::reference::{Became, Passed, Reference};
use millrace_synth::{Options, Synthesis, graph, rows, synthesise};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A chain of chains/.
pub fn chain(path: &str) -> Synthesis {
    let path = root().join("chains").join(path);
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let graph = graph(&path).unwrap();
    synthesise(&name, graph, path.parent().unwrap(), Options::default()).unwrap()
}

/// A chain of a text, if it can be synthesised.
pub fn text_of(text: &str) -> Option<Synthesis> {
    let limits = Limits::default();
    let mut none = |_: &str, name: &str| Err(format!("{name}: no such file"));
    let file = parse(text, "test.click", &limits, &mut none).ok()?;
    let graph = flatten(&file, &limits).ok()?;
    synthesise("test", graph, Path::new("."), Options::default()).ok()
}

/// A request for Open vSwitch: devices at 1, 2, …, one server at 11, 12, ….
pub fn request(of: &Synthesis) -> Request {
    let devices = of.ports.len() as u32;
    Request {
        switch: Kind::open_vswitch(),
        ports: (1..=devices).collect(),
        servers: vec![Server {
            weight: 1,
            ports: (11..11 + devices).collect(),
        }],
        assume: Assumptions::default(),
    }
}

/// All is known that may be.
pub fn assumed() -> Assumptions {
    Assumptions {
        headers: true,
        options: true,
        padding: true,
        mtu: true,
    }
}

/// Whether what a switch did with a packet is what the interpreter says: whether a server has it, or why not.
pub fn agrees(became: &Became, fate: &Fate, port: u8, assume: Assumptions) -> Result<bool, String> {
    match fate {
        Fate::Group(..) => Ok(true),
        Fate::Left(to, _) if *to > 10 => match u32::from(port) + 11 == *to {
            true => Ok(true),
            false => Err(format!(
                "it went to the server's port {to}, and came by {port}"
            )),
        },
        Fate::Dropped => match became {
            Became::Dropped(_) => Ok(false),
            other => Err(format!("the switch dropped it; interpreter: {other:?}")),
        },
        Fate::Left(to, bytes) => {
            let same = |right: &[u8]| match assume.padding {
                true => bytes.starts_with(right),
                false => bytes == right,
            };
            match became {
                Became::Left(device, right) if u32::from(*device) + 1 == *to && same(right) => {
                    Ok(false)
                }
                other => Err(format!(
                    "the switch sent {bytes:02x?} by {to}; interpreter: {other:02x?}"
                )),
            }
        }
    }
}

/// Whether a packet is one of those that are assumed.
pub fn expected(frame: &[u8], assume: Assumptions) -> bool {
    // Shorter frames are none of Ethernet's.
    if frame.len() < 14 {
        return false;
    }
    if value(frame, 0, Var::Bits(Base::Frame, 96, 16)) != 0x0800 {
        return true;
    }
    (!assume.headers || value(frame, 0, Var::Checked(14, true)) == 1)
        && (!assume.options || value(frame, 0, ip(14, bit::IHL)) == 5)
        && (!assume.mtu || frame.len() <= 1514)
}

/// Packets that rules of the chain's filters and its routes take: random ones, and those at their ends and just beyond.
fn by_rules(of: &Synthesis, rng: &mut ChaCha8Rng, count: usize) -> Vec<(u8, Vec<u8>)> {
    let hints = rows::hints(of);
    if hints.is_empty() {
        return Vec::new();
    }
    let draw = |rng: &mut ChaCha8Rng| {
        let cube = hints[rng.random_range(0..hints.len())].cube;
        let mut values = vec![(Var::Port, rng.random_range(0..of.ports.len()) as u64)];
        for word in 0..rows::WORDS {
            let (low, high) = cube.get(word);
            let most = rows::var(word).most();
            let any = rng.random_range(low..=high);
            let value = match (word == rows::PROTOCOL, rng.random_range(0..20)) {
                (true, 0..18) if cube.whole(word) => [6, 17][rng.random_range(0..2_usize)],
                (true, _) => any,
                (false, 0) => low.saturating_sub(1),
                (false, 1) => (high + 1).min(most),
                (false, 2) => low,
                (false, 3) => high,
                (false, _) => any,
            };
            values.push((rows::var(word), value));
        }
        // Ports of a TCP header that is whole.
        values.push((Var::Bits(Base::Upper(14), 96, 4), 5));
        let (port, mut frame) = millrace_synth::witness::frame(&values);
        frame.resize(frame.len().max(64), 0);
        let length = (frame.len() - 14) as u64;
        values.push((ip(14, bit::LENGTH), length));
        values.push((Var::Length, frame.len() as u64));
        (port, millrace_synth::witness::frame(&values).1)
    };
    (0..count).map(|_| draw(rng)).collect()
}

/// Packets of a chain: half of them of its rules, the others of its classes and random ones.
pub fn packets(of: &Synthesis, seed: u64, count: usize) -> Vec<(u8, Vec<u8>)> {
    let mut all = millrace_synth::reference::witnesses(of, count / 8);
    all.truncate(count / 4);
    let random = millrace_synth::reference::random(of, seed);
    all.extend(random.take(count / 4));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let left = count - all.len();
    let mut more = by_rules(of, &mut rng, left);
    for (n, (_, frame)) in more.iter_mut().enumerate() {
        match n % 32 {
            // A VLAN tag, two of them, a tag of a provider's, a length in place of the type.
            0 => drop(frame.splice(12..12, [0x81, 0, 0, 5])),
            1 => drop(frame.splice(12..12, [0x88, 0xa8, 0, 5, 0x81, 0, 0, 6])),
            2 => drop(frame.splice(12..12, [0x88, 0xa8, 0x20, 5])),
            3 => frame[12..14].copy_from_slice(&[0, 50]),
            _ => {}
        }
    }
    all.extend(more);
    all
}

/// Compares the software switch with the interpreter on the packets that are assumed; how many there were, how many of them servers had,
/// and how many the interpreter let leave.
pub fn compared(
    of: &Synthesis,
    rules: &Rules,
    assume: Assumptions,
    packets: &[(u8, Vec<u8>)],
) -> [usize; 3] {
    let reference = Reference::new(of);
    let switch = Switch::new(rules);
    let [mut all, mut servers, mut left] = [0; 3];
    for (n, (port, frame)) in packets.iter().enumerate() {
        let known = reference.pass(*port, n as u64 * 1_000_000, frame);
        let Some(Passed { became, .. }) = known.filter(|_| expected(frame, assume)) else {
            continue;
        };
        let fate = switch.pass(frame, u32::from(*port) + 1);
        all += 1;
        left += usize::from(matches!(became, Became::Left(..)));
        match agrees(&became, &fate, *port, assume) {
            Ok(server) => servers += usize::from(server),
            Err(why) => panic!("{}, packet {n} by {port}: {why}\n{frame:02x?}", of.name),
        }
    }
    [all, servers, left]
}

/// The first packet on which a switch and the interpreter differ, and how.
pub fn differs(of: &Synthesis, switch: &Switch<'_>, packets: &[(u8, Vec<u8>)]) -> Option<String> {
    // A chain of its own: packets open flows.
    let reference = Reference::new(of);
    packets.iter().enumerate().find_map(|(n, (port, frame))| {
        let Passed { became, .. } = reference.pass(*port, n as u64 * 1_000_000, frame)?;
        let fate = switch.pass(frame, u32::from(*port) + 1);
        agrees(&became, &fate, *port, Assumptions::default()).err()
    })
}

/// The rules of a chain.
pub fn rules(of: &Synthesis, assume: Assumptions) -> Rules {
    let request = Request {
        assume,
        ..request(of)
    };
    compile(of, &request).unwrap()
}
