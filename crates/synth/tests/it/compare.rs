//! A configuration's diagram and the interpreter on the same packets.

use std::cell::RefCell;
use std::rc::Rc;

use millrace_click::interpreter::Memory;
use millrace_click::language::{Graph, Limits, flatten, parse};
use millrace_synth::action::Verdict;
use millrace_synth::field::Var;
use millrace_synth::reference::{Became, Passed, Reference, random};
use millrace_synth::{Options, Synthesis, classes, packet, synthesise_on, witness};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Reads a text.
pub fn graph(text: &str) -> Graph {
    let limits = Limits::default();
    let mut none = |_: &str, name: &str| Err(format!("{name}: no such file"));
    let file =
        parse(text, "test.click", &limits, &mut none).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
    flatten(&file, &limits).unwrap_or_else(|e| panic!("{text}\n{e:?}"))
}

/// Synthesises a text, or says why not.
pub fn synthesis(text: &str, reasons: bool) -> Result<Synthesis, String> {
    let options = Options {
        reasons,
        ..Options::default()
    };
    synthesis_of(text, options)
}

/// The same, as is asked.
pub fn synthesis_of(text: &str, options: Options) -> Result<Synthesis, String> {
    let host = Rc::new(RefCell::new(Memory::default()));
    let done = synthesise_on("test", graph(text), host, options);
    done.map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        all.join("\n")
    })
}

/// Gives one packet to both, and says how they differ.
pub fn differ(reference: &Reference, of: &Synthesis, port: u8, frame: &[u8]) -> Option<String> {
    let Passed {
        became: theirs,
        outside,
        ..
    } = reference.pass(port, 0, frame)?;
    let fate = packet::apply(of, frame, port).unwrap();
    let ours = match fate.verdict {
        Verdict::Leave { port, .. } => Became::Left(port, fate.bytes),
        Verdict::Pass(_) => Became::Given(fate.bytes),
        Verdict::Drop(id) | Verdict::Again(id) => Became::Dropped(id),
        Verdict::Hand(_) if outside => return None,
        Verdict::Hand(_) => Became::Outside,
        Verdict::State(_) => return None,
    };
    let (ours, theirs) = (reference.words(&ours), reference.words(&theirs));
    (ours != theirs).then(|| {
        format!("port {port}, {frame:02x?}\n  interpreter: {theirs}\n  synthesis:   {ours}")
    })
}

/// Compares on a packet for each path, and on random ones; how many there were.
pub fn compare(of: &Synthesis, rng: &mut ChaCha8Rng, extra: usize) -> Result<usize, String> {
    let ports = of.ports.len() as u64;
    let reference = Reference::new(of);
    let mut count = 0_usize;
    let mut one = |values: &[(Var, u64)]| -> Result<(), String> {
        let (port, mut frame) = witness::frame(values);
        if u64::from(port) >= ports {
            return Ok(());
        }
        // Padding, and frames that were cut.
        frame.extend_from_slice(&[0xaa; 3][..count % 4 % 3]);
        count += 1;
        differ(&reference, of, port, &frame).map_or(Ok(()), Err)
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
    for (port, frame) in random(of, rng.random()).take(extra) {
        count += 1;
        if let Some(why) = differ(&reference, of, port, &frame) {
            return Err(why);
        }
    }
    Ok(count)
}
