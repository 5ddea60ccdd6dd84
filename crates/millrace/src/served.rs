//! Ports, opened for workers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use millrace_dataplane::classes::Classes;
use millrace_dataplane::packet::Layout;
use millrace_dataplane::port::{
    self, CaptureIn, InputOptions, LiveOptions, Queue, SendOnly, SharedOut,
};
use millrace_steer::Steering;

use crate::Error;
use crate::ports::Ports;

/// Bursts of packets that a worker may have lent to others.
pub const LENT: usize = 8;

/// What opens ports beyond their words.
pub(crate) struct Asked<'a> {
    pub ports: &'a Ports,
    /// names of the function's ports
    pub names: &'a [String],
    pub workers: usize,
    pub burst: usize,
    pub loops: Option<u64>,
    pub layout: Layout,
    /// for each port of the function, who owns its packets; none: whoever gets them
    pub steering: Option<Vec<Steering>>,
    /// packets come to the workers that have their classes; none: there are no classes
    pub classes: Option<&'a Arc<Classes>>,
    pub stop: &'static AtomicBool,
}

/// Ports, opened: what workers serve.
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

    /// Opens something that packets only go to.
    fn out(
        &mut self,
        asked: &Asked<'_>,
        word: &str,
        port: u32,
        names: &[String],
    ) -> Result<usize, Error> {
        if port::is_live(word) {
            return self.live(asked, word, port, true);
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let output = port::output(word, &names)?;
        Ok(self.add(word, SharedOut::all(output, asked.workers)))
    }

    /// Opens a live port; one that is only sent to never has anything to receive.
    fn live(
        &mut self,
        asked: &Asked<'_>,
        word: &str,
        port: u32,
        send_only: bool,
    ) -> Result<usize, Error> {
        let handed = asked.steering.is_some() || asked.classes.is_some();
        let options = LiveOptions {
            port,
            queues: asked.workers as u32,
            // Buffers that are with their owners are not there to receive into.
            burst: asked.burst * if handed { LENT } else { 1 },
            loops: asked.loops,
            stop: asked.stop,
            steering: asked.steering.as_deref(),
            // Of a port that nobody receives from, nobody would look whether a class moves.
            classes: asked.classes.filter(|_| !send_only),
        };
        let opened = port::live(word, &options)?;
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

/// Opens the ports.
pub(crate) fn open(asked: &Asked<'_>) -> Result<Served, Error> {
    let mut served = Served {
        workers: (0..asked.workers).map(|_| Vec::new()).collect(),
        ..Served::default()
    };
    if asked.ports.both.is_empty() {
        ways(asked, &mut served)?;
    } else {
        both_ways(asked, &mut served)?;
    }
    if let Some(word) = &asked.ports.pass {
        served.pass = Some(served.out(asked, word, 0, &[])?);
    }
    Ok(served)
}

/// Each word is a port of the function, in both directions.
fn both_ways(asked: &Asked<'_>, served: &mut Served) -> Result<(), Error> {
    let ports = asked.ports;
    if !ports.inputs.is_empty() || !ports.outputs.is_empty() || ports.split.is_some() {
        return Err(Error::wrong("--ports is for ports of both directions")
            .help("give either --ports, or --in and --out"));
    }
    for (index, word) in ports.both.iter().enumerate() {
        if ports.both.iter().take(index).any(|w| w == word) {
            return Err(twice(word));
        }
        let queue = served.live(asked, word, index as u32, false)?;
        served.of_port.push(Some(queue));
    }
    served.of_port.resize(asked.names.len(), None);
    Ok(())
}

/// Packets come in at some words and leave at others.
fn ways(asked: &Asked<'_>, served: &mut Served) -> Result<(), Error> {
    let ports = asked.ports;
    let mut open: HashMap<&str, usize> = HashMap::new();
    let live = ports.inputs.iter().filter(|w| port::is_live(w)).count();
    if live == 0 {
        if let Some(word) = ports.inputs.first() {
            one_core(asked, word)?;
        }
        let options = InputOptions {
            loops: asked.loops,
            stop: asked.stop,
        };
        let sources = ports.sources(asked.names, &options)?;
        let queue = CaptureIn::new(sources, asked.burst, asked.layout);
        served.add(&ports.inputs.join(","), vec![Box::new(queue)]);
    } else if live < ports.inputs.len() || ports.split.is_some() {
        return Err(Error::wrong("captures and live ports cannot both come in")
            .help("play the capture into an interface by a run of its own, and name that here"));
    } else {
        for (index, word) in ports.inputs.iter().enumerate() {
            let queue = served.live(asked, word, index as u32, false)?;
            if open.insert(word, queue).is_some() {
                return Err(twice(word));
            }
        }
    }
    ports.one_or_each(asked.names)?;
    for (index, word) in ports.outputs.iter().enumerate() {
        let queue = match open.get(word.as_str()) {
            Some(queue) => *queue,
            None => served.out(asked, word, index as u32, asked.names)?,
        };
        open.insert(word, queue);
        served.of_port.push(Some(queue));
    }
    let first = served.of_port.first().copied().flatten();
    let others = first.filter(|_| ports.outputs.len() == 1);
    served.of_port.resize(asked.names.len(), others);
    Ok(())
}

fn twice(word: &str) -> Error {
    Error::wrong(format!("{word} is named twice"))
        .help("each port of the function has an interface of its own")
}

/// A capture that goes to live ports is one sequence of packets, which workers do not share.
fn one_core(asked: &Asked<'_>, word: &str) -> Result<(), Error> {
    if asked.workers == 1 {
        return Ok(());
    }
    Err(Error::wrong(format!(
        "--cores {}: {word} is one sequence of packets, which workers cannot share",
        asked.workers
    ))
    .help("use --cores 1, or live ports, which have a queue for each worker"))
}
