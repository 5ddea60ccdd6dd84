//! Ports, opened for workers.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use millrace_dataplane::port::{
    self, CaptureIn, InputOptions, LiveOptions, Queue, SendOnly, SharedOut,
};
use millrace_dataplane::replica::Sequencing;
use millrace_steer::Steering;

use crate::ports::Ports;
use crate::{Error, Job, replicas};

/// Bursts of packets that a worker may have lent to others.
pub const LENT: usize = 8;

/// What opens the ports of a job.
pub(crate) struct Opening<'a> {
    pub job: &'a Job,
    pub ports: &'a Ports,
    /// for each port of the function, who owns its packets; none: whoever gets them
    pub steering: Option<Vec<Steering>>,
    pub stop: &'static AtomicBool,
    /// numbers packets, where the state of the function is replicated
    pub sequencing: Option<Arc<Mutex<Sequencing>>>,
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
    /// which kinds of port plain names of interfaces stand for, and why
    pub choices: Vec<String>,
    /// numbers packets, where the state of the function is replicated
    pub sequencing: Option<Arc<Mutex<Sequencing>>>,
}

impl Served {
    pub(crate) fn add(&mut self, word: &str, queues: Vec<Box<dyn Queue>>) -> usize {
        for (worker, queue) in self.workers.iter_mut().zip(queues) {
            worker.push(queue);
        }
        self.words.push(word.to_owned());
        self.words.len() - 1
    }

    /// Opens something that packets only go to.
    fn out(
        &mut self,
        opening: &Opening<'_>,
        word: &str,
        port: u32,
        names: &[String],
    ) -> Result<usize, Error> {
        if port::is_live(word) {
            return self.live(opening, word, port, true);
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let output = port::output(word, &names)?;
        Ok(self.add(word, SharedOut::all(output, opening.job.workers)))
    }

    /// Opens the ports behind a core that numbers their packets, and the outputs beside them.
    fn behind_a_core(
        &mut self,
        opening: &Opening<'_>,
        sequencing: &Arc<Mutex<Sequencing>>,
    ) -> Result<(), Error> {
        let ports = opening.ports;
        let both = !ports.both.is_empty();
        if both && !(ports.inputs.is_empty() && ports.outputs.is_empty()) || ports.split.is_some() {
            return Err(
                Error::wrong("--ports is for ports of both directions").help(
                    "give either --ports, or --in and --out; several interfaces and no --split",
                ),
            );
        }
        let words = ports.receiving();
        let mut behind = Vec::new();
        for (index, word) in words.iter().enumerate() {
            if words.iter().take(index).any(|w| w == word) {
                return Err(twice(word));
            }
            let options = LiveOptions {
                port: index as u32,
                loops: opening.job.loops,
                ..LiveOptions::of_one_queue(opening.job.burst * LENT, opening.stop)
            };
            let (choice, live) = port::live(word, &options)?;
            let word = choice.as_ref().map_or(word, |c| &c.word).clone();
            self.choices.extend(choice.map(|c| c.why));
            behind.push(port::Behind {
                port: index as u32,
                word,
                live,
            });
        }
        let all: Vec<String> = behind.iter().map(|b| b.word.clone()).collect();
        let workers = (opening.job.workers, opening.job.burst);
        let opened = port::ahead(behind, workers, sequencing)?;
        self.holds.extend(opened.hold);
        self.facts.extend(opened.facts);
        let core = self.add(&all.join(", "), opened.queues);
        let names = &opening.job.names;
        if both {
            self.of_port.resize(words.len(), Some(core));
        } else {
            ports.one_or_each(names)?;
            for (index, word) in ports.outputs.iter().enumerate() {
                if words.get(index).is_some_and(|w| w != word) && words.contains(word) {
                    return Err(Error::wrong(format!(
                        "{word} is port {} where packets come in, and another one where they go out",
                        words.iter().position(|w| w == word).unwrap_or(0)
                    ))
                    .help("name the interfaces with --ports"));
                }
                let queue = match words.get(index) == Some(word) {
                    true => core,
                    false => self.out(opening, word, index as u32, names)?,
                };
                self.of_port.push(Some(queue));
            }
        }
        let first = self.of_port.first().copied().flatten();
        let others = first.filter(|_| ports.outputs.len() == 1);
        self.of_port.resize(names.len(), others);
        if let Some(word) = &ports.pass {
            self.pass = Some(self.out(opening, word, 0, &[])?);
        }
        Ok(())
    }

    /// Opens a live port; one that is only sent to never has anything to receive.
    fn live(
        &mut self,
        opening: &Opening<'_>,
        word: &str,
        port: u32,
        send_only: bool,
    ) -> Result<usize, Error> {
        let handed = opening.steering.is_some() || opening.job.classes.is_some();
        let options = LiveOptions {
            port,
            queues: opening.job.workers as u32,
            // Buffers that are with their owners are not there to receive into.
            burst: opening.job.burst * if handed { LENT } else { 1 },
            loops: opening.job.loops,
            stop: opening.stop,
            steering: opening.steering.as_deref(),
            // Of a port that nobody receives from, nobody would look whether a class moves.
            classes: opening.job.classes.as_ref().filter(|_| !send_only),
            sequencing: opening.sequencing.as_ref().filter(|_| !send_only),
        };
        let (choice, opened) = port::live(word, &options)?;
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
        let Some(choice) = choice else {
            return Ok(self.add(word, queues));
        };
        self.choices.push(choice.why);
        Ok(self.add(&choice.word, queues))
    }
}

/// Opens the ports.
pub(crate) fn open(opening: &Opening<'_>) -> Result<Served, Error> {
    let mut served = Served {
        workers: (0..opening.job.workers).map(|_| Vec::new()).collect(),
        sequencing: opening.sequencing.clone(),
        ..Served::default()
    };
    let ahead = match &opening.sequencing {
        Some(sequencing) => {
            replicas::ahead(opening.ports.receiving().iter())?.then_some(sequencing)
        }
        None => None,
    };
    if let Some(sequencing) = ahead {
        served.behind_a_core(opening, sequencing)?;
        return Ok(served);
    }
    if opening.ports.both.is_empty() {
        ways(opening, &mut served)?;
    } else {
        both_ways(opening, &mut served)?;
    }
    if let Some(word) = &opening.ports.pass {
        served.pass = Some(served.out(opening, word, 0, &[])?);
    }
    Ok(served)
}

/// Each word is a port of the function, in both directions.
fn both_ways(opening: &Opening<'_>, served: &mut Served) -> Result<(), Error> {
    let ports = opening.ports;
    if !ports.inputs.is_empty() || !ports.outputs.is_empty() || ports.split.is_some() {
        return Err(Error::wrong("--ports is for ports of both directions")
            .help("give either --ports, or --in and --out"));
    }
    for (index, word) in ports.both.iter().enumerate() {
        if ports.both.iter().take(index).any(|w| w == word) {
            return Err(twice(word));
        }
        let queue = served.live(opening, word, index as u32, false)?;
        served.of_port.push(Some(queue));
    }
    served.of_port.resize(opening.job.names.len(), None);
    Ok(())
}

/// Packets come in at some words and leave at others.
fn ways(opening: &Opening<'_>, served: &mut Served) -> Result<(), Error> {
    let ports = opening.ports;
    let mut open: HashMap<&str, usize> = HashMap::new();
    let live = ports.inputs.iter().filter(|w| port::is_live(w)).count();
    if live == 0 {
        if let Some(word) = ports.inputs.first() {
            one_core(opening, word)?;
        }
        let options = InputOptions {
            loops: opening.job.loops,
            stop: opening.stop,
        };
        let sources = ports.sources(&opening.job.names, &options)?;
        let queue = CaptureIn::new(sources, opening.job.burst, opening.job.layout);
        served.add(&ports.inputs.join(","), vec![Box::new(queue)]);
    } else if live < ports.inputs.len() || ports.split.is_some() {
        return Err(Error::wrong("captures and live ports cannot both come in")
            .help("play the capture into an interface by a run of its own, and name that here"));
    } else {
        for (index, word) in ports.inputs.iter().enumerate() {
            let queue = served.live(opening, word, index as u32, false)?;
            if open.insert(word, queue).is_some() {
                return Err(twice(word));
            }
        }
    }
    ports.one_or_each(&opening.job.names)?;
    for (index, word) in ports.outputs.iter().enumerate() {
        let queue = match open.get(word.as_str()) {
            Some(queue) => *queue,
            None => served.out(opening, word, index as u32, &opening.job.names)?,
        };
        open.insert(word, queue);
        served.of_port.push(Some(queue));
    }
    let first = served.of_port.first().copied().flatten();
    let others = first.filter(|_| ports.outputs.len() == 1);
    served.of_port.resize(opening.job.names.len(), others);
    Ok(())
}

fn twice(word: &str) -> Error {
    Error::wrong(format!("{word} is named twice"))
        .help("each port of the function has an interface of its own")
}

/// A capture that goes to live ports is one sequence of packets, which workers do not share.
fn one_core(opening: &Opening<'_>, word: &str) -> Result<(), Error> {
    if opening.job.workers == 1 {
        return Ok(());
    }
    Err(Error::wrong(format!(
        "--cores {}: {word} is one sequence of packets, which workers cannot share",
        opening.job.workers
    ))
    .help("use --cores 1, or live ports, which have a queue for each worker"))
}
