//! From the words of `--ports`, `--in` and `--out` to what workers serve.

use std::collections::HashMap;
use std::sync::Arc;

use millrace_dataplane::classes::Classes;
use millrace_dataplane::packet::Layout;
use millrace_dataplane::port::{
    self, CaptureIn, InputOptions, LiveOptions, Queue, SendOnly, SharedOut,
};
use millrace_dataplane::signal;
use millrace_steer::Steering;

use crate::failure::Failure;
use crate::wiring::{self, Words, port_failure};

/// Bursts of packets that a worker may have lent to others.
const LENT: usize = 8;

/// The request of a command line.
pub struct Asked<'a> {
    /// `--in`, `--out`, `--split` and `--pass`
    pub words: Words<'a>,
    /// `--ports`
    pub ports: &'a [String],
    /// `--cores`
    pub cores: usize,
    /// `--burst`
    pub burst: usize,
    /// `--loops`
    pub loops: Option<u64>,
    /// how buffers of captures are laid out
    pub layout: Layout,
    /// for each port of the function, who owns its packets; none: whoever gets them
    pub steering: Option<Vec<Steering>>,
    /// packets come to the workers that have their classes; none: there are no classes
    pub classes: Option<Arc<Classes>>,
}

impl Asked<'_> {
    /// Every word that names a port.
    pub fn ports_named(&self) -> impl Iterator<Item = &str> {
        let words = &self.words;
        let all = [self.ports, words.inputs, words.outputs];
        all.into_iter()
            .flatten()
            .map(String::as_str)
            .chain(words.pass)
    }
}

/// Ports, opened: the parts of a [`millrace_dataplane::Serve`] that depend on them.
#[derive(Default)]
pub struct Served {
    /// a worker each: its queues
    pub workers: Vec<Vec<Box<dyn Queue>>>,
    /// the word of each queue
    pub words: Vec<String>,
    /// for each port of the function, its queue
    pub of_port: Vec<Option<usize>>,
    /// the queue for the host's own stack
    pub pass: Option<usize>,
    /// what holds the ports open
    pub holds: Vec<Box<dyn Send>>,
    /// what the ports say of themselves
    pub facts: Vec<String>,
}

impl Served {
    fn add(&mut self, word: &str, queues: Vec<Box<dyn Queue>>) -> usize {
        for (worker, queue) in self.workers.iter_mut().zip(queues) {
            worker.push(queue);
        }
        self.words.push(word.to_owned());
        self.words.len() - 1
    }

    /// Opens a live port; one that is only sent to never has anything to receive.
    fn live(
        &mut self,
        asked: &Asked<'_>,
        word: &str,
        port: u32,
        send_only: bool,
    ) -> Result<usize, Failure> {
        let handed = asked.steering.is_some() || asked.classes.is_some();
        let options = LiveOptions {
            port,
            queues: asked.cores as u32,
            // Buffers that are with their owners are not there to receive into.
            burst: asked.burst * if handed { LENT } else { 1 },
            loops: asked.loops,
            stop: signal::flag(),
            steering: asked.steering.as_deref(),
            // Of a port that nobody receives from, nobody would look whether a class moves.
            classes: asked.classes.as_ref().filter(|_| !send_only),
        };
        let opened = port::live(word, &options).map_err(port_failure)?;
        self.holds.extend(opened.hold);
        self.facts.extend(opened.facts);
        let one_way = |queue: Box<dyn Queue>| -> Box<dyn Queue> {
            if send_only {
                Box::new(SendOnly::new(queue))
            } else {
                queue
            }
        };
        let queues = opened.queues.into_iter().map(one_way).collect();
        Ok(self.add(word, queues))
    }
}

/// Whether workers are needed: a live port, or several functions.
pub fn needed(asked: &Asked<'_>, functions: usize) -> bool {
    let words = asked.words.inputs.iter().chain(asked.words.outputs);
    let mut words = words.map(String::as_str).chain(asked.words.pass);
    !asked.ports.is_empty() || functions > 1 || words.any(port::is_live)
}

/// Opens the ports.
pub fn open(asked: &Asked<'_>, names: &[String]) -> Result<Served, Failure> {
    let mut served = Served {
        workers: (0..asked.cores).map(|_| Vec::new()).collect(),
        ..Served::default()
    };
    if asked.ports.is_empty() {
        ways(asked, names, &mut served)?;
    } else {
        both_ways(asked, names, &mut served)?;
    }
    if let Some(word) = asked.words.pass {
        let queue = if port::is_live(word) {
            served.live(asked, word, 0, true)?
        } else {
            let output = port::output(word, &[]).map_err(port_failure)?;
            served.add(word, SharedOut::all(output, asked.cores))
        };
        served.pass = Some(queue);
    }
    Ok(served)
}

/// `--ports`: each word is a port of the function, in both directions.
fn both_ways(asked: &Asked<'_>, names: &[String], served: &mut Served) -> Result<(), Failure> {
    let words = &asked.words;
    if !words.inputs.is_empty() || !words.outputs.is_empty() || words.split.is_some() {
        return Err(Failure::wrong("--ports is for ports of both directions")
            .help("give either --ports, or --in and --out"));
    }
    for (index, word) in asked.ports.iter().enumerate() {
        let before = asked.ports.iter().take(index);
        if before.clone().any(|w| w == word) {
            return Err(Failure::wrong(format!("{word} is named twice"))
                .help("each port of the function has an interface of its own"));
        }
        let queue = served.live(asked, word, index as u32, false)?;
        served.of_port.push(Some(queue));
    }
    served.of_port.resize(names.len(), None);
    Ok(())
}

/// `--in` and `--out`: packets come in at some words and leave at others.
fn ways(asked: &Asked<'_>, names: &[String], served: &mut Served) -> Result<(), Failure> {
    let words = &asked.words;
    let mut open: HashMap<&str, usize> = HashMap::new();
    let live = words.inputs.iter().filter(|w| port::is_live(w)).count();
    if live == 0 {
        if let Some(word) = words.inputs.first() {
            one_core(asked, word)?;
        }
        let options = InputOptions {
            loops: asked.loops,
            stop: signal::flag(),
        };
        let sources = wiring::sources(words, names, &options)?;
        let queue = CaptureIn::new(sources, asked.burst, asked.layout);
        served.add(&words.inputs.join(","), vec![Box::new(queue)]);
    } else if live < words.inputs.len() || words.split.is_some() {
        return Err(
            Failure::wrong("captures and live ports cannot both come in")
                .help("play the capture into an interface by a run of its own, and name that here"),
        );
    } else {
        for (index, word) in words.inputs.iter().enumerate() {
            let queue = served.live(asked, word, index as u32, false)?;
            if open.insert(word, queue).is_some() {
                return Err(Failure::wrong(format!("{word} is named twice"))
                    .help("each port of the function has an interface of its own"));
            }
        }
    }
    let count = words.outputs.len();
    if count > 1 && count != names.len() {
        let list = names.join(", ");
        return Err(
            Failure::wrong(format!("{count} outputs for {} ports", names.len())).help(format!(
                "give one --out for all ports, or one each, in this order: {list}"
            )),
        );
    }
    for (index, word) in words.outputs.iter().enumerate() {
        let queue = if let Some(queue) = open.get(word.as_str()) {
            *queue
        } else if port::is_live(word) {
            served.live(asked, word, index as u32, true)?
        } else {
            let all: Vec<&str> = names.iter().map(String::as_str).collect();
            let output = port::output(word, &all).map_err(port_failure)?;
            served.add(word, SharedOut::all(output, asked.cores))
        };
        open.insert(word, queue);
        served.of_port.push(Some(queue));
    }
    let first = served.of_port.first().copied().flatten();
    served
        .of_port
        .resize(names.len(), if count == 1 { first } else { None });
    Ok(())
}

/// A capture that goes to live ports is one sequence of packets, which workers do not share.
fn one_core(asked: &Asked<'_>, word: &str) -> Result<(), Failure> {
    if asked.cores == 1 {
        return Ok(());
    }
    Err(Failure::wrong(format!(
        "--cores {}: {word} is one sequence of packets, which workers cannot share",
        asked.cores
    ))
    .help("use --cores 1, or live ports, which have a queue for each worker"))
}
