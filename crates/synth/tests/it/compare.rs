//! A configuration's diagram and the interpreter on the same packets.

use std::cell::RefCell;
use std::rc::Rc;

use millrace_click::interpreter::Memory;
use millrace_click::language::{Graph, Limits, flatten, parse};
use millrace_click::meaning::Meaning;
use millrace_click::packet::Packet;
use millrace_synth::action::Verdict;
use millrace_synth::field::Var;
use millrace_synth::{Synthesis, classes, packet, synthesise_on, witness};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Reads a text.
pub fn graph(text: &str) -> Graph {
    let limits = Limits::default();
    let mut none = |_: &str, name: &str| Err(format!("{name}: no such file"));
    let file = parse(text, "test.click", &limits, &mut none).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
    flatten(&file, &limits).unwrap_or_else(|e| panic!("{text}\n{e:?}"))
}

/// Synthesises a text, or says why not.
pub fn synthesis(text: &str) -> Result<Synthesis, String> {
    let host = Rc::new(RefCell::new(Memory::default()));
    let done = synthesise_on("test", graph(text), host);
    done.map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        all.join("\n")
    })
}

/// Gives one packet to both, and says how they differ.
pub fn differ(of: &Synthesis, port: u8, frame: &[u8]) -> Option<String> {
    let name = &of.ports[usize::from(port)];
    let count = of.router.graph().elements.len();
    let from = (0..count).find(
        |id| matches!(of.router.meaning(*id), Some(Meaning::Enter(device)) if device == *name),
    )?;
    let before = of.router.counts();
    let outcomes = of.router.enter(from, 0, Packet::new(frame));
    let fate = packet::apply(of, frame, port).unwrap();
    let title = |id: usize| of.router.graph().elements[id].title();
    let theirs = match outcomes.as_slice() {
        [one] if one.left => format!("leaves by {} {:02x?}", title(one.element), one.packet.data()),
        [one] => format!("dropped by {}", title(one.element)),
        other => format!("{} packets", other.len()),
    };
    let ours = match fate.verdict {
        Verdict::Leave { element, .. } => format!("leaves by {} {:02x?}", title(element), fate.bytes),
        Verdict::Drop(id) => format!("dropped by {}", title(id)),
        // It has come to that element, whatever became of it there.
        Verdict::Hand(id) => {
            let sum = |counts: &[millrace_click::interpreter::Count]| -> u64 {
                counts[id].inputs.iter().sum()
            };
            if sum(&of.router.counts()) > sum(&before) {
                return None;
            }
            format!("handed over by {}", title(id))
        }
        Verdict::State(_) => return None,
    };
    (ours != theirs).then(|| format!("port {port}, {frame:02x?}\n  interpreter: {theirs}\n  synthesis:   {ours}"))
}

/// Values of fields that make a difference, with those beside them.
pub fn values(of: &Synthesis) -> Vec<(Var, Vec<u64>)> {
    let mut all: std::collections::BTreeMap<Var, Vec<u64>> = std::collections::BTreeMap::new();
    for id in of.store.reachable(of.root) {
        if let millrace_synth::diagram::Node::Branch { var, kids } = of.store.node(id) {
            let values = all.entry(*var).or_default();
            for (first, _) in kids {
                values.extend([first.saturating_sub(1), *first, (first + 1).min(var.most())]);
            }
            values.push(var.most());
        }
    }
    all.into_iter().collect()
}

/// Compares on a packet for each path, and on random ones; how many there were.
pub fn compare(of: &Synthesis, rng: &mut ChaCha8Rng, random: usize) -> Result<usize, String> {
    let ports = of.ports.len() as u64;
    let mut count = 0;
    let mut one = |values: &[(Var, u64)]| -> Result<(), String> {
        let (port, mut frame) = witness::frame(values);
        if u64::from(port) >= ports {
            return Ok(());
        }
        // Padding, and frames that were cut.
        frame.extend_from_slice(&[0xaa; 3][..count % 4 % 3]);
        count += 1;
        differ(of, port, &frame).map_or(Ok(()), Err)
    };
    let (paths, _) = classes::paths(of, of.root, 2000);
    for (path, _) in &paths {
        for end in [0, 1, 2] {
            let values: Vec<(Var, u64)> = path
                .iter()
                .map(|(var, low, high)| match end {
                    0 => (*var, *low),
                    1 => (*var, *high),
                    _ => (*var, rng.random_range(*low..=*high)),
                })
                .collect();
            one(&values)?;
        }
    }
    let interesting = values(of);
    for _ in 0..random {
        let mut values = vec![(Var::Port, rng.random_range(0..ports))];
        for (var, some) in &interesting {
            if *var != Var::Port && rng.random_range(0..3) > 0 {
                values.push((*var, some[rng.random_range(0..some.len())]));
            }
        }
        one(&values)?;
    }
    Ok(count)
}
