//! The driver: elements on workers, between captures or ports, to the account of what happened.
//!
//! `run` and `bench` go through here with all that runs, whether one worker reads a capture or several serve ports;
//! no other place knows how the data plane is called.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use millrace_dataplane::classes::Classes;
use millrace_dataplane::copies::Copies;
use millrace_dataplane::mailbox::Job as AtEnd;
use millrace_dataplane::module::ModuleError;
use millrace_dataplane::moved::Contents;
use millrace_dataplane::packet::Layout;
use millrace_dataplane::place::{self as processors, Stay};
use millrace_dataplane::port::{Arrivals, InputOptions};
use millrace_dataplane::replica::ROWS;
use millrace_dataplane::runner::{BURST, FateWriter, Progress, RecordWriter, Sink, Sinks, Sources};
use millrace_dataplane::worker::keep::Keep;
use millrace_dataplane::worker::{Code, Link, ModuleCode, Moves, Shared};
use millrace_dataplane::{self as dataplane, Account, Mailbox, Parallel, Run, Serve};
use millrace_place::Placement;
use millrace_steer::Steering;
use millrace_topology::Topology;

use crate::ports::Ports;
use crate::replicas::Stands;
use crate::served::{self, Opening, Served};
use crate::{Error, Function, place, replicas};

/// What runs, on how many workers, and until when.
pub struct Job {
    /// the elements, in the order of the topology; at least one
    pub chain: Vec<Link>,
    /// how they are connected; without it one has the ports, and several stand in a row
    pub topology: Option<Topology>,
    /// names of the chain's ports, at least one
    pub names: Vec<String>,
    /// workers, at least 1
    pub workers: usize,
    /// how the objects of the only function live on them, and who gets which packet; none: on one worker, or any packet
    /// goes to any of them
    pub placement: Option<Arc<Placement>>,
    /// packets come to the workers that have their classes; none: there are no classes
    pub classes: Option<Arc<Classes>>,
    /// what goes along where classes are buckets of the only function's indirection table
    pub contents: Option<Contents>,
    /// other machines that keep copies of these buckets, where there are some
    pub copies: Option<Arc<dyn Copies>>,
    /// packets that other machines send on, where these have classes too
    pub arrivals: Option<Box<dyn Arrivals>>,
    /// the processor that each worker is pinned to; empty: the first that are allowed
    pub cpus: Vec<usize>,
    /// packets a burst, 1 to [`millrace_dataplane::packet::MAX_BURST`]
    pub burst: usize,
    /// rows of the ring that replicas of a function read between live ports, at least 2
    pub rows: usize,
    /// how buffers of captures are laid out
    pub layout: Layout,
    /// rounds over a source that can begin again; none: without end
    pub loops: Option<u64>,
    /// stop after this many packets
    pub packets: Option<u64>,
    /// stop after this much time
    pub time: Option<Duration>,
    /// keep looking for packets when none come
    pub busy: bool,
    /// where requests from outside wait, one for each worker; none where nobody listens
    pub mailboxes: Vec<Arc<Mailbox>>,
    /// what is done with the state at the end
    pub at_end: Option<AtEnd>,
    /// the state that it takes up and leaves, if it does
    pub keep: Option<Arc<Keep>>,
    /// workers serve the ports also where all of them are captures; several elements and live ports they serve anyway
    pub serve: bool,
}

/// What an observer sees now and then.
pub struct Seen<'a> {
    /// packets read
    pub read: u64,
    /// how far the inputs are, 0 to 1; none when that cannot be known
    pub share: Option<f64>,
    /// the counts of workers that serve ports
    pub counts: Option<&'a Shared>,
}

/// A job whose ports are open.
pub struct Opened {
    /// where the records of ring buffers go, if anywhere
    pub records: Option<RecordWriter>,
    /// where the fate of each packet goes, if anywhere; for one function between captures
    pub fates: Option<FateWriter>,
    job: Job,
    ends: Ends,
}

/// What packets come from and go to.
enum Ends {
    /// captures, in the packets' own time
    Captures(Captures),
    /// ports that workers serve
    Ports(Served),
}

struct Captures {
    sources: Sources,
    sinks: Sinks,
    pass: Option<Sink>,
}

impl Job {
    /// One element between ports of these names: once over all that comes in, on one worker.
    #[must_use]
    pub fn new(chain: Vec<Link>, names: Vec<String>) -> Self {
        Self {
            chain,
            topology: None,
            names,
            workers: 1,
            placement: None,
            classes: None,
            contents: None,
            copies: None,
            arrivals: None,
            cpus: Vec::new(),
            burst: BURST,
            rows: ROWS,
            layout: Layout::Pooled,
            loops: Some(1),
            packets: None,
            time: None,
            busy: false,
            mailboxes: Vec::new(),
            at_end: None,
            keep: None,
            serve: false,
        }
    }

    /// A function on the workers that it was made for, with the state that it declares.
    ///
    /// # Errors
    /// It has not as many ports as there are words.
    pub fn of(function: &Function, ports: &Ports) -> Result<Self, Error> {
        let link = function.link(0, Vec::new(), true)?;
        Ok(Self {
            workers: function.workers,
            layout: function.layout,
            placement: function.placement.clone(),
            ..Self::new(vec![link], ports.names(&function.ports)?)
        })
    }

    /// Opens the ports. Those that wait look at `stop`, and end their packets when it is raised.
    ///
    /// # Errors
    /// One cannot be opened, or workers cannot share it.
    pub fn open(mut self, ports: &Ports, stop: &'static AtomicBool) -> Result<Opened, Error> {
        // A slow path is beside workers that serve ports; one sequence of packets on several cores has none.
        let slow = self.workers < 2 && self.chain.iter().any(|link| link.slow.is_some());
        let ends = if self.serve || slow || self.chain.len() > 1 || ports.live() {
            if self.cpus.is_empty() {
                // More workers than processors: the system shares them out.
                self.cpus = processors::processors(ports.words());
                if self.workers > self.cpus.len() {
                    self.cpus.clear();
                }
            }
            let steering = |placement: &Arc<Placement>| handing(placement, self.names.len());
            let stands = Stands {
                ports: self.names.len(),
                topology: self.topology.as_ref(),
                receives: ports.entered(self.names.len()),
            };
            let rows = (self.rows, self.placement.as_deref());
            let keep = self.keep.as_deref();
            let sequencing =
                replicas::sequencing(&mut self.chain, self.workers, &stands, rows, keep)?;
            let _there = Stay::near(self.cpus.first().copied());
            let mut served = served::open(&Opening {
                steering: self.placement.as_ref().and_then(steering),
                job: &self,
                ports,
                stop,
                sequencing,
            })?;
            if let Some((arrivals, classes)) = self.arrivals.take().zip(self.classes.as_ref()) {
                let of = (self.names.len(), self.workers, self.burst * served::LENT);
                let between = dataplane::port::peers(arrivals, classes, of)?;
                served.add("peers", between.queues);
            }
            Ends::Ports(served)
        } else {
            let options = InputOptions {
                loops: self.loops,
                stop,
            };
            let sources = ports.sources(&self.names, &options)?;
            let (sinks, pass) = ports.sinks(&self.names)?;
            Ends::Captures(Captures {
                sources,
                sinks,
                pass,
            })
        };
        Ok(Opened::new(self, ends))
    }

    /// The same between ports that are open already.
    #[must_use]
    pub fn on(self, served: Served) -> Opened {
        Opened::new(self, Ends::Ports(served))
    }
}

impl Opened {
    fn new(job: Job, ends: Ends) -> Self {
        Self {
            records: None,
            fates: None,
            job,
            ends,
        }
    }

    /// Words of the ports that workers serve; none between captures.
    #[must_use]
    pub fn words(&self) -> &[String] {
        match &self.ends {
            Ends::Captures(_) => &[],
            Ends::Ports(served) => &served.words,
        }
    }

    /// Which kinds of port plain names of interfaces stand for, and why.
    #[must_use]
    pub fn choices(&self) -> &[String] {
        match &self.ends {
            Ends::Captures(_) => &[],
            Ends::Ports(served) => &served.choices,
        }
    }

    /// Runs until the inputs end, a limit is reached, a port fails, or `stop` is raised; then drains and accounts. Errors
    /// of ports after the start stand in the account.
    ///
    /// # Errors
    /// The state cannot be made.
    pub fn run(
        self,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(&Seen<'_>),
    ) -> Result<Account, Error> {
        let account = match self.ends {
            Ends::Captures(captures) => {
                let written = (self.records, self.fates);
                self.job.between(captures, written, stop, observe)?
            }
            Ends::Ports(served) => self.job.serve(served, self.records, stop, observe),
        };
        account.map_err(|e| {
            let help = match &e {
                ModuleError::Control {
                    operation: "load", ..
                } => "move the saved state away, or begin without it (--anew)",
                _ => "declare a smaller capacity, or free memory on this machine",
            };
            Error::wrong(e).help(help)
        })
    }
}

impl Job {
    /// From captures to captures.
    fn between(
        mut self,
        captures: Captures,
        (records, fates): (Option<RecordWriter>, Option<FateWriter>),
        stop: &AtomicBool,
        observe: &mut dyn FnMut(&Seen<'_>),
    ) -> Result<Result<Account, ModuleError>, Error> {
        let Some(Link {
            code: Code::Module(code),
            reasons,
            objects_bytes,
            shares,
            ..
        }) = self.chain.pop()
        else {
            return Err(Error::wrong("no function is named"));
        };
        let ModuleCode {
            module,
            config,
            program,
            prefetch,
            behaviour: _,
            replicas: _,
            small,
        } = code;
        let run = Run {
            module,
            config,
            program,
            prefetch,
            sources: captures.sources,
            ports: self.names,
            sinks: captures.sinks,
            pass: captures.pass,
            records,
            fates,
            reasons,
            burst: self.burst,
            layout: self.layout,
            packets: self.packets,
            time: self.time,
            objects_bytes,
            mailbox: self.mailboxes.first().cloned(),
            at_end: self.at_end,
            keep: self.keep,
            small,
        };
        let mut show = |progress: Progress| {
            observe(&Seen {
                read: progress.read,
                share: progress.share,
                counts: None,
            });
        };
        let Some(placement) = self.placement else {
            return Ok(dataplane::run(run, stop, &mut show));
        };
        let parallel = Parallel {
            owners: place::owners(&placement, run.ports.len(), self.workers)?,
            shares,
            apart: placement.apart,
            workers: self.workers,
            cpus: self.cpus,
            mailboxes: self.mailboxes,
            run,
        };
        Ok(dataplane::run_parallel(parallel, stop, &mut show))
    }

    /// Between ports that workers serve.
    fn serve(
        self,
        served: Served,
        records: Option<RecordWriter>,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(&Seen<'_>),
    ) -> Result<Account, ModuleError> {
        let steering = |placement: Arc<Placement>| handing(&placement, self.names.len());
        let steering = self.placement.and_then(steering);
        let module = self.chain.first().and_then(|link| match &link.code {
            Code::Module(code) => Some(code.module.clone()),
            Code::Foreign(_) | Code::Classed(_) => None,
        });
        let moves = self.classes.zip(self.contents).zip(module);
        let moves = moves.map(|((classes, contents), module)| Moves {
            classes,
            contents,
            module,
            copies: self.copies,
        });
        let serve = Serve {
            chain: self.chain,
            topology: self.topology,
            owners: steering.iter().flatten().map(Steering::owners).collect(),
            ports: self.names,
            workers: served.workers,
            words: served.words,
            of_port: served.of_port,
            pass: served.pass,
            cpus: self.cpus,
            holds: served.holds,
            facts: served.choices.into_iter().chain(served.facts).collect(),
            records,
            burst: self.burst,
            packets: self.packets,
            time: self.time,
            busy: self.busy,
            mailboxes: self.mailboxes,
            at_end: self.at_end,
            keep: self.keep,
            moves,
        };
        let sequencing = served.sequencing;
        let directed = (sequencing.as_ref()).is_some_and(|s| replicas::directed(s));
        let account = dataplane::serve(serve, stop, &mut |shared| {
            observe(&Seen {
                read: shared.read(),
                share: None,
                counts: Some(shared),
            });
        });
        let Some(sequencing) = sequencing else {
            return account;
        };
        replicas::close(&sequencing);
        account.map(|mut account| {
            account.memory.takes(replicas::bytes(&sequencing));
            account.elephants = replicas::elephants(&sequencing);
            // Sprayed packets leave by the queues of all workers; those of sharded keys by their owner's alone.
            let sprayed = match &account.elephants {
                None if directed => 0,
                None => account.forwarded,
                Some(heavy) => heavy.iter().map(|e| e.packets).sum(),
            };
            if sprayed > 0 {
                account.relaxations.insert("order".to_owned(), sprayed);
            }
            account
        })
    }
}

/// The steering by which a NIC deals packets out and workers hand over what it cannot; none where any worker may have any packet,
/// and where a sequencer deals them out.
fn handing(placement: &Placement, ports: usize) -> Option<Vec<Steering>> {
    let sequenced = placement.elephants.is_some() || placement.replicates();
    placement.steering(ports).filter(|_| !sequenced)
}

/// Runs a function once over all that comes in, on the workers that it was made for.
///
/// # Errors
/// A port cannot be opened, or the state cannot be made. Errors of ports after the start stand in the account.
pub fn run(
    function: &Function,
    ports: &Ports,
    stop: &'static AtomicBool,
) -> Result<Account, Error> {
    Job::of(function, ports)?
        .open(ports, stop)?
        .run(stop, &mut |_| {})
}
