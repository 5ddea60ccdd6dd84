//! The reference interpreter: runs a flat graph packet by packet.
//!
//! Everything that is built from a Click configuration is compared with this. Time is simulated: it begins at 10^9 seconds,
//! goes on by a microsecond a round of the scheduler, and jumps to the next timer when no element has anything to do, so
//! that two runs give the same bytes. A pushed packet is delivered depth first, after the element that pushed it has
//! returned; so a loop of the graph needs no stack, and an element never runs within itself.
//!
//! # Budgets
//! [`Bounds`] limits deliveries and calls of handlers; a run that passes them ends with an error.

mod build;
mod context;
mod host;
mod processing;
mod run;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use crate::element::Element;
use crate::language::{Graph, Port};
use crate::names::Names;
use crate::packet::Packet;

pub use context::Context;
pub use host::{Folder, Host, Memory, Reading, whole};
pub use run::Ended;

/// Bounds of a run.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// deliveries of packets, tasks and timers
    pub steps: u64,
    /// calls of handlers within each other, and pulls
    pub depth: usize,
    /// packets that are under way at a time
    pub packets: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            steps: 50_000_000,
            depth: 100,
            packets: 100_000,
        }
    }
}

/// What went through an element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// packets by input
    pub inputs: Vec<u64>,
    /// packets by output
    pub outputs: Vec<u64>,
    /// packets that ended here
    pub dropped: u64,
}

/// The end of a packet.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// number of the element where it ended
    pub element: usize,
    /// whether it left the configuration there, rather than being dropped
    pub left: bool,
    /// the packet
    pub packet: Packet,
}

/// A host that the caller keeps, to look at what was written.
pub type Shared = std::rc::Rc<RefCell<dyn Host>>;

/// What an element may ask while it is made.
pub struct Setup<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) id: usize,
    /// inputs and outputs that are connected
    pub ports: (usize, usize),
    pub(crate) host: &'a Shared,
    pub(crate) pulls: bool,
}

impl Setup<'_> {
    /// The number of the element that a name means here: in the innermost compound element that has it.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        find(self.graph, self.id, name)
    }

    /// The element's own name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.graph.elements.get(self.id).map_or("", |e| &e.name)
    }

    /// The class of another element.
    #[must_use]
    pub fn class(&self, id: usize) -> &str {
        self.graph.elements.get(id).map_or("", |e| &e.class)
    }

    /// Whether the element pulls from input 0, rather than being pushed into; one without inputs, whether it is pulled from.
    #[must_use]
    pub fn pulls(&self) -> bool {
        self.pulls
    }

    /// An element that the host has under a name.
    pub fn element(&mut self, name: &str) -> Option<Box<dyn Element>> {
        self.host.borrow_mut().element(name)
    }

    /// A file's content.
    ///
    /// # Errors
    /// Why not.
    pub fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        self.host.borrow_mut().read(path)
    }
}

fn find(graph: &Graph, id: usize, name: &str) -> Option<usize> {
    let own = graph.elements.get(id).map_or("", |e| &e.name);
    let mut prefix = own;
    while let Some((outer, _)) = prefix.rsplit_once('/') {
        if let Some(found) = graph.find(&format!("{outer}/{name}")) {
            return Some(found);
        }
        prefix = outer;
    }
    graph.find(name)
}

/// A configuration that runs.
pub struct Router {
    world: World,
    tasks: Vec<usize>,
    /// of these, the elements that have a task, once they were asked where time stands still
    polled: Cell<Option<Vec<usize>>>,
}

/// Times with their elements, and the time of each element.
#[derive(Default)]
struct Timers {
    due: BTreeSet<(i64, usize)>,
    of: Vec<Option<i64>>,
}

struct World {
    graph: Graph,
    elements: Vec<RefCell<Box<dyn Element>>>,
    /// where each output leads, by element and port
    targets: Vec<Vec<Option<Port>>>,
    /// where each input comes from
    sources: Vec<Vec<Option<Port>>>,
    counts: RefCell<Vec<Count>>,
    pending: RefCell<Vec<(Port, Packet)>>,
    outcomes: RefCell<Option<Vec<Outcome>>>,
    now: Cell<i64>,
    timers: RefCell<Timers>,
    stop: Cell<bool>,
    over: Cell<bool>,
    steps: Cell<u64>,
    depth: Cell<usize>,
    random: Cell<u64>,
    bounds: Bounds,
    failed: RefCell<Option<String>>,
    host: Shared,
    names: Names,
    /// queues that a source fills, by element
    fills: Vec<Vec<usize>>,
}

/// When a run begins, nanoseconds.
pub const BEGIN: i64 = 1_000_000_000 * crate::arguments::SECOND;

impl Router {
    /// The flat graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.world.graph
    }

    /// What went through each element.
    #[must_use]
    pub fn counts(&self) -> Vec<Count> {
        self.world.counts.borrow().clone()
    }

    /// What an element does, for synthesis; none if that cannot be said.
    #[must_use]
    pub fn meaning(&self, element: usize) -> Option<crate::meaning::Meaning> {
        let element = self.world.elements.get(element)?;
        element.borrow().meaning()
    }

    /// Does something to the table of each rewriter among these elements.
    pub fn tables(&self, elements: &[usize], mut each: impl FnMut(&mut crate::rewriter::Rewriter)) {
        for element in elements {
            if let Some(cell) = self.world.elements.get(*element)
                && let Some(table) = cell.borrow_mut().rewriter()
            {
                each(table);
            }
        }
    }

    /// The input that an output leads to, pushed or pulled.
    #[must_use]
    pub fn target(&self, from: Port) -> Option<Port> {
        self.world.target(from)
    }

    /// Bytes and names of the configuration.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.world.names
    }

    /// Lets time pass, up to then; timers whose time comes run.
    pub fn advance(&self, to: i64) {
        self.world.now.set(self.world.now.get().max(to));
        self.due();
    }

    /// The time, nanoseconds.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.world.now.get()
    }

    /// When the next timer is due, nanoseconds; none where no element waits for one.
    #[must_use]
    pub fn next_timer(&self) -> Option<i64> {
        self.world.timers.borrow().due.first().map(|due| due.0)
    }

    /// Begins a new budget of steps. Why the bounds were passed since the last time, if they were: the packets that were under way then
    /// are gone, and the configuration goes on without them.
    pub fn renew(&self) -> Option<String> {
        self.world.steps.set(0);
        let failed = self.world.failed.borrow_mut().take();
        if failed.is_some() {
            self.world.pending.borrow_mut().clear();
            self.world.stop.set(false);
            self.world.over.set(false);
        }
        failed
    }

    /// A read handler: `ELEMENT.HANDLER`, or that of the whole configuration.
    ///
    /// # Errors
    /// There is no such handler, or what it says.
    pub fn read(&self, name: &str, argument: &str) -> Result<String, String> {
        let cx = Context {
            world: &self.world,
            id: usize::MAX,
        };
        cx.read(name, argument)
    }

    /// A write handler.
    ///
    /// # Errors
    /// As [`Router::read`].
    pub fn write(&self, name: &str, value: &str) -> Result<(), String> {
        let cx = Context {
            world: &self.world,
            id: usize::MAX,
        };
        let done = cx.write(name, value);
        self.world.drain();
        done
    }
}
