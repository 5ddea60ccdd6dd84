//! Packets of a run, explained as they come: what `millrace ctl trace` asks for.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use millrace::Function;
use millrace_check::Options;
use millrace_control::profile::Profiler;
use millrace_control::trace::{Trace, Tracer};
use millrace_control::{Exposed, Trouble};
use millrace_dataplane::Module;
use millrace_dataplane::account::Account;
use millrace_dataplane::counters::Counts;
use millrace_dataplane::worker::watch::Observer;
use millrace_explain::live::{self, Event, Follower, Tracing, WAITING};
use millrace_explain::{Filter, WORDS, text};
use millrace_object::program::Program;
use millrace_place::Strategy;
use millrace_profile::{Measured, Sources, Spread, times};
use millrace_topology::Topology;
use serde_json::{Value, json};

/// Packets that one answer explains, at most.
const PAGE: usize = 16;

/// Stack of a thread that proves or explains, bytes: those of requests are small.
const STACK: usize = 32 << 20;

/// Does something with a large stack.
fn roomy<T: Send>(job: impl FnOnce() -> T + Send) -> Result<T, Trouble> {
    let failed = |what: String| Trouble::new("refused", format!("no thread for it: {what}"));
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("trace".into());
        let thread = builder.stack_size(STACK).spawn_scoped(scope, job);
        let thread = thread.map_err(|e| failed(e.to_string()))?;
        thread.join().map_err(|_| failed("it has panicked".into()))
    })
}

/// The functions of a run: packets of them are explained, and their counts.
#[derive(Clone)]
pub struct Traced {
    functions: Vec<Arc<Known>>,
    ports: Vec<String>,
    /// how they are connected where that does not change
    topology: Topology,
}

/// A function of it; `proved` once somebody has asked.
struct Known {
    id: u64,
    name: String,
    program: Program,
    exposed: Arc<Exposed>,
    module: Arc<Module>,
    seed: u64,
    entry: usize,
    ports: Vec<String>,
    folder: PathBuf,
    strategy: Strategy,
    workers: usize,
    proved: Mutex<Option<millrace_check::Checked>>,
}

impl Traced {
    /// Of a run with these ports; none of its functions yet.
    pub fn new(ports: &[String], topology: Option<&Topology>) -> Self {
        Self {
            functions: Vec::new(),
            ports: ports.to_vec(),
            topology: topology.map_or_else(|| Topology::alone(ports.len()), Clone::clone),
        }
    }

    /// Has a function, which is the chain's element of this number; a module alone has no lines.
    pub fn add(&mut self, id: u64, name: &str, function: &Function, seed: u64) {
        let Some(program) = &function.program else {
            return;
        };
        let strategy = function.placement.as_ref().map(|p| p.strategy());
        self.functions.push(Arc::new(Known {
            id,
            name: name.to_owned(),
            program: program.clone(),
            exposed: function.exposed.clone(),
            module: function.module.clone(),
            seed,
            entry: function.entry,
            ports: function.ports.clone(),
            folder: function.folder.clone(),
            strategy: strategy.unwrap_or(Strategy::Alone),
            workers: function.workers,
            proved: Mutex::new(None),
        }));
    }

    fn ids(&self) -> Vec<u64> {
        self.functions.iter().map(|f| f.id).collect()
    }

    /// Its functions as they are explained.
    pub fn all(&self) -> Result<Vec<live::Function>, Trouble> {
        let all = self.explained(&self.ids(), &self.topology)?;
        Ok(all.into_iter().flatten().collect())
    }

    /// The elements of these numbers as they are explained; none of one that has no lines.
    fn explained(
        &self,
        ids: &[u64],
        topology: &Topology,
    ) -> Result<Vec<Option<live::Function>>, Trouble> {
        let mut functions = Vec::new();
        for (index, id) in ids.iter().enumerate() {
            let known = self.functions.iter().find(|f| f.id == *id).map(|f| &**f);
            let ports = topology.ports(index).len();
            let named = known.map_or(&[][..], |f| &f.ports);
            let ports = match (topology.is_alone(), named) {
                (true, _) => self.ports.clone(),
                (_, []) => (0..ports.max(1)).map(|i| i.to_string()).collect(),
                (_, named) => named.to_vec(),
            };
            functions.push(known.map(|f| f.function(ports)).transpose()?);
        }
        Ok(functions)
    }

    /// Whether there is anything to tell of.
    pub fn any(&self) -> bool {
        !self.functions.is_empty()
    }
}

impl Known {
    /// As it is explained, with so many ports.
    fn function(&self, ports: Vec<String>) -> Result<live::Function, Trouble> {
        let mut proved = self.proved.lock().unwrap_or_else(PoisonError::into_inner);
        let checked = match &*proved {
            Some(checked) => checked.clone(),
            None => {
                let check = || millrace_check::check(&self.program, &Options::default());
                let checked = roomy(check)?;
                let checked = checked.map_err(|_| {
                    let what = format!("{}: it cannot be proved again", self.name);
                    Trouble::new("refused", what).help("`millrace check` says why")
                })?;
                *proved = Some(checked.clone());
                checked
            }
        };
        Ok(live::Function {
            id: self.id,
            name: self.name.clone(),
            program: self.program.clone(),
            checked,
            exposed: self.exposed.clone(),
            types: self.exposed.types.clone(),
            module: self.module.clone(),
            seed: self.seed,
            entry: self.entry,
            ports,
        })
    }
}

impl Profiler for Traced {
    fn profile(
        &self,
        element: u64,
        counted: &Account,
        ns_per_tick: f64,
        places: &[usize],
        counters: &Result<Counts, String>,
    ) -> Option<Value> {
        let known = self.functions.iter().find(|f| f.id == element)?;
        let conflicts = counted.conflicts.iter();
        let lines: Vec<&str> = conflicts.map(|(_, c)| c.mine.line.as_str()).collect();
        let own = format!("{}.c", known.program.name);
        let sources = Sources::read(&known.folder, &own, lines.into_iter());
        let report = millrace_profile::report(&Measured {
            name: &known.name,
            program: &known.program,
            sources: &sources,
            strategy: known.strategy,
            cores: known.workers.max(1),
            account: counted,
            ns_per_tick,
            spread: &Spread::default(),
            others: &[],
            solo: None,
            now: None,
            infeasible: &[],
            times: &times(&known.module, &known.program, places),
            counters,
        });
        Some(json!({ "report": report, "text": millrace_profile::text(&report) }))
    }
}

impl Tracer for Traced {
    fn begin(
        &self,
        filter: &str,
        count: u64,
        chain: Option<(Vec<u64>, Topology)>,
    ) -> Result<Box<dyn Trace>, Trouble> {
        let filter = Filter::parse(filter).map_err(|e| {
            Trouble::new("malformed", format!("{filter}: {e}")).help(format!("words are {WORDS}"))
        })?;
        let (ids, topology) = chain.unwrap_or_else(|| (self.ids(), self.topology.clone()));
        let functions = self.explained(&ids, &topology)?;
        if functions.iter().all(Option::is_none) {
            return Err(
                Trouble::new("refused", "the chain has no function with lines")
                    .help("functions that came into it while it ran are traced after a restart"),
            );
        }
        let tracing = Arc::new(Tracing::new(
            functions,
            topology,
            self.ports.clone(),
            filter,
            count,
        ));
        let (sender, events) = sync_channel(WAITING);
        Ok(Box::new(Goes {
            tracing,
            sender: Some(sender),
            events,
            changed: false,
            unlike: 0,
        }))
    }
}

/// A trace that goes on.
struct Goes {
    tracing: Arc<Tracing>,
    /// the observers have copies
    sender: Option<SyncSender<Event>>,
    events: Receiver<Event>,
    changed: bool,
    /// packets that another worker changed the state for
    unlike: u64,
}

impl Trace for Goes {
    fn observers(&mut self, workers: usize) -> Vec<Box<dyn Observer>> {
        let Some(sender) = self.sender.take() else {
            return Vec::new();
        };
        let follower = |worker| -> Box<dyn Observer> {
            Box::new(Follower::new(&self.tracing, worker, sender.clone()))
        };
        (0..workers).map(follower).collect()
    }

    fn next(&mut self, wait: Duration) -> Value {
        let mut packets = Vec::new();
        let mut failures = Vec::new();
        let mut ended = None;
        let mut patience = wait;
        while packets.len() < PAGE && ended.is_none() {
            match self.events.recv_timeout(patience) {
                Ok(Event::Caught(caught)) => match roomy(|| self.tracing.explain(&caught)) {
                    Ok(Ok(Some(told))) => packets.push(json!({
                        "explanation": told,
                        "text": text(&told, false),
                    })),
                    Ok(Ok(None)) => {
                        self.unlike += 1;
                        self.tracing.left.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(Err(error)) => failures.push(error.to_string()),
                    Err(trouble) => failures.push(trouble.what),
                },
                Ok(Event::Changed) => self.changed = true,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    ended = Some(match self.changed {
                        true => "the chain has changed",
                        false => "the run has ended",
                    });
                }
            }
            patience = Duration::ZERO;
        }
        json!({
            "packets": packets,
            "failures": failures,
            "looked": self.tracing.looked.load(Ordering::Relaxed),
            "passed": self.tracing.passed.load(Ordering::Relaxed),
            "unlike": self.unlike,
            "ended": ended,
        })
    }
}
