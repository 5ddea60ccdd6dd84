//! Traffic classes, backwards: a diagram for each vertex of the graph, from what its elements do and the diagrams behind it.
//!
//! The paper's algorithm 1 lists the paths of the graph forward (Katsikas et al., SNF: synthesizing high performance NFV service
//! chains, PeerJ Computer Science 2:e98, 2016). Here a vertex has one diagram, whichever path leads to it: a filter selects among
//! those of its successors, and a write substitutes in that of its own. Negation, rules that are covered by others and conditions
//! on fields that were written before come out by themselves, and two chains do the same if their diagrams are one.
//!
//! A vertex is an input of an element and a [`Shape`]: where headers are, and what was checked before.

use std::collections::{BTreeMap, HashMap, HashSet};

use millrace_click::error::Error;
use millrace_click::filter::Compare;
use millrace_click::interpreter::Router;
use millrace_click::language::Port;
use millrace_click::meaning::Meaning;

use crate::action::{Actions, Sums, Value, Verdict, Write};
use crate::diagram::{Full, Id, Node, Store};
use crate::field::{Base, Var};
use crate::refusal;
use crate::sets::parts;

mod filter;
mod function;
mod headers;
mod link;
mod listed;
mod rewrite;
mod substitute;
mod vertex;
mod writes;

pub use rewrite::{WORDS, word_of};

/// What is known of a packet when it comes to an element: places are bytes of the frame as it came.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// where the packet begins
    head: i32,
    /// where it began when it was received last
    base: i32,
    /// the first byte of which is known what comes back when the front is put back there: nothing from before it was received last
    floor: i32,
    /// all bytes were stripped, and there were fewer than should be
    short: bool,
    /// the network header; the transport header is where its length says
    network: Option<i32>,
    /// the link header
    link: Option<i32>,
    /// the frame is cut to the length of the IP packet that begins here
    cut: Option<u16>,
    /// the IP header that begins here was checked: with its sum
    right: Option<(u16, bool)>,
    /// a header whose length nobody has checked was written: shorter than 20 bytes it would share bytes with the next one
    risky: bool,
}

impl Shape {
    const FRESH: Self = Self {
        head: 0,
        base: 0,
        floor: 0,
        short: false,
        network: None,
        link: Some(0),
        cut: None,
        right: None,
        risky: false,
    };

    /// Where the IP header is, if the packet still has it.
    fn ip(&self) -> Option<u16> {
        let at = self.network.filter(|at| *at >= self.head && !self.short)?;
        u16::try_from(at).ok()
    }

    /// Where fields of the frame are counted from: the IP header's place, or the usual one.
    fn layout(&self) -> u16 {
        self.network
            .or(Some(self.base + 14))
            .and_then(|at| u16::try_from(at).ok())
            .unwrap_or(14)
    }

    /// What is left of it when the packet is received again: its bytes, and what was checked of them.
    fn received(self) -> Self {
        Self {
            head: self.head,
            base: self.head,
            floor: self.head,
            link: Some(self.head),
            short: self.short,
            network: None,
            cut: self.cut,
            right: self.right,
            risky: self.risky,
        }
    }
}

/// Why it ends.
pub enum Stop {
    /// the budget is spent
    Full,
    /// an element does what cannot be said
    Refused(Box<Error>),
}

impl From<Full> for Stop {
    fn from(_: Full) -> Self {
        Self::Full
    }
}

type Made = Result<Id, Stop>;

/// Elements behind each other, at most: a tenth of what a thread's smallest usual stack (2 MiB) holds of the walk. Ten routers have
/// a hundred.
const MOST_DEPTH: usize = 1_000;
/// What a visit of an element takes of the budget of work. Each is visited once for each form of packets that come to it, but what depends
/// on the way through a loop is worked out anew for each way.
const VISIT: usize = 1_000;

/// The work on one configuration.
pub struct Backward<'a> {
    router: &'a Router,
    /// all diagrams
    pub store: Store,
    /// all actions
    pub actions: Actions,
    /// names of devices, by port
    pub ports: Vec<String>,
    /// rewriters by their numbers
    pub rewriters: Vec<usize>,
    /// the element by which a value of a field becomes of interest
    pub origins: HashMap<(Var, u64), usize>,
    vertices: HashMap<(Port, Shape), Id>,
    open: HashSet<(Port, Shape)>,
    errors: Vec<Error>,
    refused: HashSet<usize>,
    depth: usize,
    /// whether drops by different elements are different actions
    reasons: bool,
    /// elements all of whose packets are handed over, and why
    outside: &'a BTreeMap<usize, String>,
    /// elements that cannot be synthesised, and why, which are not outside yet
    pub unsaid: BTreeMap<usize, String>,
    /// all long filters are asked as lists, not only those whose own diagram passes the budget
    pub lists: bool,
    /// whether there are long filters
    pub long: bool,
    /// reasons of functions for which packets are dropped
    pub drops: Vec<String>,
}

impl<'a> Backward<'a> {
    /// Nothing is known yet. All packets of the elements that are `outside` are handed over.
    #[must_use]
    pub fn new(
        router: &'a Router,
        ports: Vec<String>,
        reasons: bool,
        outside: &'a BTreeMap<usize, String>,
    ) -> Self {
        Self {
            lists: false,
            long: false,
            drops: Vec::new(),
            outside,
            unsaid: BTreeMap::new(),
            router,
            store: Store::default(),
            actions: Actions::default(),
            ports,
            rewriters: Vec::new(),
            origins: HashMap::new(),
            vertices: HashMap::new(),
            open: HashSet::new(),
            errors: Vec::new(),
            refused: HashSet::new(),
            depth: 0,
            reasons,
        }
    }

    /// The diagram of all packets that enter; none where the budget is spent.
    ///
    /// # Errors
    /// Elements that cannot be synthesised.
    pub fn all(&mut self) -> Result<Option<Id>, Vec<Error>> {
        let root = self.entries();
        if let Ok(root) = &root {
            for id in self.loops(*root) {
                self.refuse(id, "packets may come to it for ever, in a loop");
            }
        }
        if !self.errors.is_empty() {
            return Err(std::mem::take(&mut self.errors));
        }
        match root {
            Ok(root) => Ok(Some(root)),
            Err(Stop::Refused(error)) => Err(vec![*error]),
            Err(Stop::Full) => Ok(None),
        }
    }

    fn entries(&mut self) -> Made {
        let elements = &self.router.graph().elements;
        let nowhere = self.actions.plain(Verdict::Drop(usize::MAX));
        let nowhere = self.store.leaf(nowhere);
        let mut kids = vec![(0, nowhere)];
        let mut by_port = BTreeMap::new();
        for id in 0..elements.len() {
            if let Some(Meaning::Enter(name)) = self.router.meaning(id) {
                let port = self.ports.iter().position(|p| *p == name).unwrap_or(0);
                if by_port.insert(port as u64, id).is_some() {
                    self.refuse(id, "another element receives from the same device");
                }
            }
        }
        for (port, id) in by_port {
            let inner = self.next(id, 0, Shape::FRESH)?;
            let inner = self.received(id, inner, Shape::FRESH)?;
            match kids.last_mut() {
                Some(last) if last.0 == port => last.1 = inner,
                _ => kids.push((port, inner)),
            }
            kids.push((port + 1, nowhere));
        }
        let root = self.store.select(Var::Port, kids)?;
        // There are no more ports than devices.
        let last = self.ports.len() as u64 - 1;
        Ok(self.store.known(root, Var::Port, 0, last)?)
    }

    /// A diagram for packets as they are received in some shape: the kind by the Ethernet destination, annotations zero.
    pub(super) fn received(&mut self, id: usize, inner: Id, shape: Shape) -> Made {
        let zero = plain(Value::Constant(0));
        let mut new = vec![(Var::Destination, zero)];
        new.extend((4..millrace_click::packet::ANNOTATIONS as u8).map(|at| (Var::Anno(at), zero)));
        let inner = self.substitute(id, inner, &mut HashMap::new(), &new)?;
        let mut kinds = Vec::new();
        for kind in 0..3 {
            let write = plain(Value::Constant(kind));
            kinds.push(self.written(id, inner, Var::Kind, write)?);
        }
        let &[host, all, group] = kinds.as_slice() else {
            return Ok(inner);
        };
        if host == all && host == group {
            return Ok(host);
        }
        let Ok(first) = u32::try_from(shape.head) else {
            return Ok(self.unsaid(id, "it is received in front of the frame"));
        };
        let mut choice = |mask: &[u8], yes: Id, no: Id| {
            let parts = parts(Base::Frame, shape.layout(), first, mask, mask);
            self.compare(id, &parts, Compare::Equal, yes, no)
        };
        let grouped = choice(&[1], group, host)?;
        let node = choice(&[0xff; 6], all, grouped)?;
        // Fewer than six bytes are nobody's address.
        self.present(id, shape, shape.head + 6, node, host)
    }

    fn refuse(&mut self, id: usize, why: &str) {
        if self.refused.insert(id)
            && let Some(element) = self.router.graph().elements.get(id)
        {
            self.errors.push(refusal::at(element, why));
        }
    }

    /// Refuses an element and goes on, so that all refusals are found.
    fn without(&mut self, id: usize, why: &str) -> Id {
        self.refuse(id, why);
        self.hand(id)
    }

    /// Notes that what an element does cannot be said as a diagram: all its packets have to be handed over.
    fn unsaid(&mut self, id: usize, why: &str) -> Id {
        self.unsaid.entry(id).or_insert_with(|| why.to_owned());
        self.hand(id)
    }

    fn dropped(&mut self, id: usize) -> Id {
        let by = if self.reasons { id } else { usize::MAX };
        let action = self.actions.plain(Verdict::Drop(by));
        self.store.leaf(action)
    }

    /// A packet that comes to an element again, which is on its way already. Where conditions exclude that, nothing is left of
    /// it in the whole diagram.
    fn again(&mut self, id: usize) -> Id {
        let action = self.actions.plain(Verdict::Again(id));
        self.store.leaf(action)
    }

    /// Elements that packets come to again by a diagram.
    fn loops(&self, id: Id) -> Vec<usize> {
        let leaves = self.store.reachable(id).into_iter();
        let action = |id: Id| match self.store.node(id) {
            Node::Leaf(number) => self.actions.get(*number),
            Node::Branch { .. } => None,
        };
        let mut found = Vec::new();
        for action in leaves.filter_map(action) {
            match action.verdict {
                Verdict::Again(id) => found.push(id),
                Verdict::State(asked) => {
                    let then = self.actions.asked(asked).map_or(&[][..], |s| &s.then);
                    then.iter().for_each(|t| found.extend(self.loops(t.1)));
                }
                _ => {}
            }
        }
        found
    }

    fn hand(&mut self, id: usize) -> Id {
        let action = self.actions.plain(Verdict::Hand(id));
        self.store.leaf(action)
    }

    /// The diagram behind an output; packets of one that is not connected are dropped.
    fn next(&mut self, element: usize, port: usize, shape: Shape) -> Made {
        let Some(to) = self.router.target(Port { element, port }) else {
            return Ok(self.dropped(element));
        };
        if let Some(done) = self.vertices.get(&(to, shape)) {
            return Ok(*done);
        }
        if !self.open.insert((to, shape)) {
            return Ok(self.again(to.element));
        }
        self.store.spend(VISIT)?;
        self.depth += 1;
        let made = match self.depth > MOST_DEPTH {
            true => Ok(self.without(to.element, "too many elements are behind each other")),
            false => self.vertex(to, shape),
        };
        self.depth -= 1;
        self.open.remove(&(to, shape));
        let made = made?;
        // What depends on the way here holds for this way alone.
        if self.open.is_empty() || self.loops(made).is_empty() {
            self.vertices.insert((to, shape), made);
        }
        Ok(made)
    }
}

/// A write that no sum follows.
fn plain(value: Value) -> Write {
    Write {
        value,
        sums: Sums {
            header: None,
            upper: 0,
        },
        again: false,
    }
}
