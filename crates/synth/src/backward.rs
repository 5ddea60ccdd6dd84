//! Traffic classes, backwards: a diagram for each vertex of the graph, from what its elements do and the diagrams behind it.
//!
//! The paper's algorithm 1 lists the paths of the graph forward (Katsikas et al., SNF: synthesizing high performance NFV service
//! chains, PeerJ Computer Science 2:e98, 2016). Here a vertex has one diagram, whichever path leads to it: a filter selects among
//! those of its successors, and a write substitutes in that of its own. Negation, rules that are covered by others and conditions
//! on fields that were written before come out by themselves, and two chains do the same if their diagrams are one.
//!
//! A vertex is an input of an element and a [`Shape`]: where headers are, and what was checked before.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use millrace_click::error::Error;
use millrace_click::filter::{self, Compare, Condition, Test};
use millrace_click::interpreter::Router;
use millrace_click::language::Port;
use millrace_click::meaning::{Address, Clause, Meaning, Rewriting, Route};
use millrace_click::rewriter::Specification;

use crate::action::{Action, Actions, Stateful, Sums, Value, Verdict, Write};
use crate::diagram::{Full, Id, Node, Store};
use crate::field::{Base, Var, Word, bit, ip, of_frame};
use crate::refusal;
use crate::sets::{Part, compared, parts};

/// What is known of a packet when it comes to an element: places are bytes of the frame as it came.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// where the packet begins
    head: i32,
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
            .and_then(|at| u16::try_from(at).ok())
            .unwrap_or(14)
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
}

impl<'a> Backward<'a> {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(router: &'a Router, ports: Vec<String>, reasons: bool) -> Self {
        Self {
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

    /// The diagram of all packets that enter.
    ///
    /// # Errors
    /// Elements that cannot be synthesised, or the budget is spent.
    pub fn all(&mut self) -> Result<Id, Vec<Error>> {
        let root = self.entries();
        if let Ok(root) = &root {
            for id in self.loops(*root) {
                self.refuse(id, "packets may come to it for ever, in a loop");
            }
        }
        if !self.errors.is_empty() {
            return Err(std::mem::take(&mut self.errors));
        }
        root.map_err(|stop| match stop {
            Stop::Refused(error) => vec![*error],
            Stop::Full => vec![refusal::full()],
        })
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
            let inner = self.received(id, inner)?;
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

    /// A diagram for packets as they are received: the kind by the Ethernet destination, annotations zero.
    fn received(&mut self, id: usize, inner: Id) -> Made {
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
        let grouped = self.store.within(of_frame(14, 7), &[(1, 1)], group, host)?;
        let ones = [
            (of_frame(14, 0), 0x7f),
            (of_frame(14, 7), 1),
            (of_frame(14, 8), (1 << 40) - 1),
        ];
        let mut node = all;
        for (var, value) in ones {
            node = self.store.within(var, &[(value, value)], node, grouped)?;
        }
        // Fewer than six bytes are nobody's address.
        Ok(self.store.within(Var::Length, &[(6, 65_535)], node, host)?)
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

    fn vertex(&mut self, to: Port, shape: Shape) -> Made {
        let id = to.element;
        let Some(meaning) = self.router.meaning(id) else {
            return Ok(self.without(id, "nothing says what it does to a packet"));
        };
        match meaning {
            Meaning::Pass => self.next(id, 0, shape),
            Meaning::Switch(None) => Ok(self.dropped(id)),
            Meaning::Switch(Some(output)) => self.next(id, output, shape),
            Meaning::Enter(_) | Meaning::Silent | Meaning::Mapper(_) => {
                Ok(self.without(id, "packets come to it from inside"))
            }
            Meaning::Leave(name) => self.leave(id, &name, shape),
            Meaning::Drop => Ok(self.dropped(id)),
            Meaning::Outside(_) => Ok(self.hand(id)),
            Meaning::Strip(bytes) => {
                let gone = shape.head + bytes as i32;
                if shape.short {
                    return self.next(id, 0, shape);
                }
                let whole = self.next(
                    id,
                    0,
                    Shape {
                        head: gone,
                        ..shape
                    },
                )?;
                let nothing = self.next(
                    id,
                    0,
                    Shape {
                        short: true,
                        ..shape
                    },
                )?;
                self.present(id, shape, gone, whole, nothing)
            }
            Meaning::Unstrip(_) if shape.short => Ok(self.hand(id)),
            Meaning::Unstrip(bytes) => {
                let head = shape.head - bytes as i32;
                match head < 0 {
                    true => Ok(self.without(id, "it goes back beyond the frame's first byte")),
                    false => self.next(id, 0, Shape { head, ..shape }),
                }
            }
            Meaning::StripToNetwork => match shape.network {
                Some(at) if !shape.short => self.next(id, 0, Shape { head: at, ..shape }),
                Some(_) => Ok(self.hand(id)),
                None => self.next(id, 0, shape),
            },
            Meaning::Mark(offset) => {
                let network = Some(shape.head + offset as i32);
                self.next(id, 0, Shape { network, ..shape })
            }
            Meaning::MarkLink(offset) => {
                let link = Some(shape.head + offset as i32);
                self.next(id, 0, Shape { link, ..shape })
            }
            Meaning::Check {
                offset,
                bad,
                checksum,
            } => self.check(id, shape, offset, &bad, checksum),
            Meaning::Ttl { multicast } => self.ttl(id, shape, multicast),
            Meaning::Filter(rules) => self.rules(id, shape, &rules),
            Meaning::Bytes(patterns) => self.patterns(id, shape, &patterns),
            Meaning::Lookup(routes) => self.lookup(id, shape, &routes),
            Meaning::Prepend(bytes) => {
                if shape.short {
                    return Ok(self.hand(id));
                }
                let head = shape.head - bytes.len() as i32;
                if head < 0 {
                    return Ok(self.without(id, "the frame becomes longer than it came"));
                }
                let link = Some(head);
                let inner = self.next(
                    id,
                    0,
                    Shape {
                        head,
                        link,
                        ..shape
                    },
                )?;
                self.overwrite(id, inner, head, &bytes, shape)
            }
            Meaning::Overwrite(offset, bytes) => {
                let at = shape.head + offset as i32;
                let rest = self.next(id, 0, shape)?;
                let inner = self.overwrite(id, rest, at, &bytes, shape)?;
                self.present(id, shape, at + bytes.len() as i32, inner, rest)
            }
            Meaning::Broadcasts => {
                let dropped = self.dropped(id);
                let inner = self.next(id, 0, shape)?;
                Ok(self.store.within(Var::Kind, &[(1, 2)], dropped, inner)?)
            }
            Meaning::GetDestination(place) => self.get_destination(id, shape, place),
            Meaning::SetDestination(address) => {
                let inner = self.next(id, 0, shape)?;
                let address = u64::from(u32::from_be_bytes(address));
                self.written(id, inner, Var::Destination, plain(Value::Constant(address)))
            }
            Meaning::StoreAddress(at, address) => self.store_address(id, shape, at, address),
            Meaning::Service { mask, value } => self.service(id, shape, mask, value),
            Meaning::Paint(at, colour) => {
                let inner = self.next(id, 0, shape)?;
                let Some(var) = self.annotation(id, at) else {
                    return Ok(inner);
                };
                self.written(id, inner, var, plain(Value::Constant(u64::from(colour))))
            }
            Meaning::CheckPaint(at, colour) => {
                let Some(var) = self.annotation(id, at) else {
                    return Ok(self.hand(id));
                };
                let same = self.next(id, 0, shape)?;
                let other = self.next(id, 1, shape)?;
                let colour = u64::from(colour);
                Ok(self.store.within(var, &[(colour, colour)], same, other)?)
            }
            Meaning::PaintTee(at, colour) => {
                let Some(var) = self.annotation(id, at) else {
                    return Ok(self.hand(id));
                };
                let copied = self.hand(id);
                let other = self.next(id, 0, shape)?;
                let colour = u64::from(colour);
                Ok(self.store.within(var, &[(colour, colour)], copied, other)?)
            }
            Meaning::PaintSwitch(at) => {
                let Some(var) = self.annotation(id, at) else {
                    return Ok(self.hand(id));
                };
                let mut kids = Vec::new();
                for colour in 0..256 {
                    kids.push((colour as u64, self.next(id, colour, shape)?));
                }
                Ok(self.store.select(var, kids)?)
            }
            Meaning::Fragment { mtu, honor } => self.fragment(id, shape, mtu, honor),
            Meaning::Options => {
                let inner = self.next(id, 0, shape)?;
                let Some(at) = shape.ip() else {
                    return Ok(inner);
                };
                let hand = self.hand(id);
                let long = self
                    .store
                    .within(ip(at, bit::IHL), &[(6, 15)], hand, inner)?;
                self.present(id, shape, i32::from(at) + 20, long, inner)
            }
            Meaning::FixSource => {
                let inner = self.next(id, 0, shape)?;
                let hand = self.hand(id);
                let var = Var::Anno(millrace_click::packet::FIX_SOURCE as u8);
                Ok(self.store.within(var, &[(1, 255)], hand, inner)?)
            }
            Meaning::Rewrite(rewriting) => self.rewrite(to, shape, &rewriting),
        }
    }

    fn annotation(&mut self, id: usize, at: usize) -> Option<Var> {
        match u8::try_from(at) {
            Ok(at) if at >= 4 => Some(Var::Anno(at)),
            _ => {
                self.refuse(id, "it uses bytes of the destination annotation");
                None
            }
        }
    }

    fn leave(&mut self, id: usize, name: &str, shape: Shape) -> Made {
        if shape.short {
            return Ok(self.hand(id));
        }
        let port = self.ports.iter().position(|p| p == name).unwrap_or(0);
        let action = self.actions.number(Action {
            verdict: Verdict::Leave {
                element: id,
                port: port as u8,
            },
            writes: BTreeMap::new(),
            head: shape.head,
            cut: shape.cut,
            hops: 0,
        });
        Ok(self.store.leaf(action))
    }

    /// `yes` where the packet has all bytes of the frame before one.
    fn present(&mut self, id: usize, shape: Shape, end: i32, yes: Id, no: Id) -> Made {
        if shape.short || end < 0 {
            return Ok(no);
        }
        let end = end as u64;
        if end == 0 {
            return Ok(yes);
        }
        if let Some((at, _)) = shape.right
            && end <= u64::from(at) + 20
        {
            return Ok(yes);
        }
        let (var, least) = match shape.cut {
            None => (Var::Length, end),
            Some(at) => (ip(at, bit::LENGTH), end.saturating_sub(u64::from(at))),
        };
        if least > var.most() {
            return Ok(no);
        }
        self.origins.entry((var, least)).or_insert(id);
        Ok(self.store.within(var, &[(least, var.most())], yes, no)?)
    }

    /// `yes` where the packet has so many bytes of its transport header.
    fn room(&mut self, id: usize, shape: Shape, bytes: u64, yes: Id, no: Id) -> Made {
        let Some(at) = shape.ip() else {
            return Ok(no);
        };
        if shape.cut.is_some_and(|cut| cut != at) {
            return Ok(self.without(id, "a header within the payload of another is read"));
        }
        let var = Var::Room(at, shape.cut.is_some());
        self.origins.entry((var, bytes)).or_insert(id);
        let yes = match shape.risky {
            true => {
                let hand = self.hand(id);
                self.store.within(ip(at, bit::IHL), &[(0, 4)], hand, yes)?
            }
            false => yes,
        };
        let node = self.store.within(var, &[(bytes, 65_535)], yes, no)?;
        // Without a byte there is no header behind it, either.
        self.present(id, shape, i32::from(at) + 1, node, no)
    }

    fn check(
        &mut self,
        id: usize,
        shape: Shape,
        offset: usize,
        bad: &[[u8; 4]],
        checksum: bool,
    ) -> Made {
        let wrong = self.next(id, 1, shape)?;
        let Ok(at) = u16::try_from(shape.head + offset as i32) else {
            return Ok(wrong);
        };
        if shape.short {
            return Ok(wrong);
        }
        if shape.cut.is_some_and(|cut| cut != at) {
            return Ok(self.without(id, "a header within the payload of another is checked"));
        }
        let known = shape.right.filter(|r| r.0 == at);
        let after = Shape {
            network: Some(i32::from(at)),
            cut: Some(at),
            right: Some((at, checksum || known.is_some_and(|k| k.1))),
            risky: false,
            ..shape
        };
        let inner = self.next(id, 0, after)?;
        let mut node = self.written(
            id,
            inner,
            Var::Destination,
            plain(Value::Field(ip(at, bit::DESTINATION), 0)),
        )?;
        for address in bad {
            let source = ip(at, bit::SOURCE);
            let number = u64::from(u32::from_be_bytes(*address));
            self.origins.entry((source, number)).or_insert(id);
            node = self
                .store
                .within(source, &[(number, number)], wrong, node)?;
        }
        if known.is_some_and(|k| k.1 || !checksum) {
            return Ok(node);
        }
        // What the check tells of fields.
        node = self.store.known(node, ip(at, bit::IHL), 5, 15)?;
        node = self.store.known(node, ip(at, 0), 4, 4)?;
        node = self.store.known(node, ip(at, bit::LENGTH), 20, 65_535)?;
        let var = Var::Checked(at, checksum);
        self.origins.entry((var, 1)).or_insert(id);
        Ok(self.store.within(var, &[(1, 1)], node, wrong)?)
    }

    fn ttl(&mut self, id: usize, shape: Shape, multicast: bool) -> Made {
        let Some(at) = shape.ip() else {
            return self.next(id, 1, shape);
        };
        let expired = self.next(id, 1, shape)?;
        let unchecked = shape.right.is_none_or(|r| r.0 != at);
        let inner = self.next(
            id,
            0,
            Shape {
                risky: shape.risky || unchecked,
                ..shape
            },
        )?;
        let var = ip(at, bit::TTL);
        let write = Write {
            value: Value::Field(var, -1),
            sums: Sums {
                header: Some(at),
                upper: 0,
            },
            again: false,
        };
        let lowered = self.written(id, inner, var, write)?;
        self.origins.entry((var, 2)).or_insert(id);
        let node = self.store.within(var, &[(2, 255)], lowered, expired)?;
        let node = self.present(id, shape, i32::from(at) + 20, node, expired)?;
        if multicast {
            return Ok(node);
        }
        let spared = self.next(id, 0, shape)?;
        let groups = (0xe000_0000, 0xefff_ffff);
        self.origins
            .entry((Var::Destination, groups.0))
            .or_insert(id);
        Ok(self
            .store
            .within(Var::Destination, &[groups], spared, node)?)
    }

    fn rules(&mut self, id: usize, shape: Shape, rules: &[(Option<usize>, Condition)]) -> Made {
        let mut node = self.dropped(id);
        for (output, condition) in rules.iter().rev() {
            let to = match output {
                Some(port) => self.next(id, *port, shape)?,
                None => self.dropped(id),
            };
            node = self.condition(id, shape, condition, to, node)?;
        }
        Ok(node)
    }

    fn condition(
        &mut self,
        id: usize,
        shape: Shape,
        condition: &Condition,
        yes: Id,
        no: Id,
    ) -> Made {
        if yes == no {
            return Ok(yes);
        }
        match condition {
            Condition::Constant(answer) => Ok(if *answer { yes } else { no }),
            Condition::Not(inner) => self.condition(id, shape, inner, no, yes),
            Condition::All(all) => all.iter().rev().try_fold(yes, |node, condition| {
                self.condition(id, shape, condition, node, no)
            }),
            Condition::Any(any) => any.iter().rev().try_fold(no, |node, condition| {
                self.condition(id, shape, condition, yes, node)
            }),
            Condition::If(three) => {
                let [condition, then, other] = &**three;
                let then = self.condition(id, shape, then, yes, no)?;
                let other = self.condition(id, shape, other, yes, no)?;
                self.condition(id, shape, condition, then, other)
            }
            Condition::Test(test) => self.test(id, shape, test, yes, no),
        }
    }

    fn test(&mut self, id: usize, shape: Shape, test: &Test, yes: Id, no: Id) -> Made {
        let from = match test.base {
            filter::Base::Network => match shape.ip() {
                Some(at) => i32::from(at),
                None => return Ok(no),
            },
            filter::Base::Transport => 0,
            filter::Base::Link => match shape.link {
                Some(at) if at >= shape.head => at,
                Some(_) => return Ok(no),
                None => match shape.network {
                    Some(at) if at - 14 >= shape.head => at - 14,
                    _ => shape.head,
                },
            },
        };
        let bytes = test.bytes.min(8);
        let cut = |number: u64| -> Vec<u8> {
            number
                .to_be_bytes()
                .get(8 - bytes..)
                .unwrap_or(&[])
                .to_vec()
        };
        let width = u64::MAX >> (64 - 8 * bytes as u32);
        let beyond = test.value > width;
        let (mask, value) = (cut(test.mask), cut(test.value));
        let first = from + test.offset as i32;
        let (base, first) = match test.base {
            filter::Base::Transport => match shape.ip() {
                Some(at) => (Base::Upper(at), test.offset as u32),
                None => return Ok(no),
            },
            _ if first < 0 => return Ok(no),
            _ => (Base::Frame, first as u32),
        };
        let node = match beyond {
            true => match test.compare {
                Compare::Unequal | Compare::Less | Compare::AtMost => yes,
                _ => no,
            },
            false => {
                let parts = parts(base, shape.layout(), first, &mask, &value);
                self.compare(id, &parts, test.compare, yes, no)?
            }
        };
        match base {
            Base::Frame => {
                let end = first as i32 + bytes as i32;
                self.present(id, shape, end, node, no)
            }
            Base::Upper(_) => {
                let end = u64::from(first) + bytes as u64;
                self.room(id, shape, end, node, no)
            }
        }
    }

    /// `yes` where some fields, the most significant first, compare with their values as is asked.
    fn compare(&mut self, id: usize, parts: &[Part], how: Compare, yes: Id, no: Id) -> Made {
        let (less, equal, greater) = match how {
            Compare::Equal => (no, yes, no),
            Compare::Unequal => (yes, no, yes),
            Compare::Less => (yes, no, no),
            Compare::AtMost => (yes, yes, no),
            Compare::Greater => (no, no, yes),
            Compare::AtLeast => (no, yes, yes),
        };
        let mut node = equal;
        for part in parts.iter().rev() {
            let Some(intervals) = compared(*part) else {
                return Ok(self.without(id, "a mask has too many holes"));
            };
            let scattered = part.mask.trailing_zeros() + 16 < 64 - part.var.most().leading_zeros()
                && part.mask
                    != part.var.most() >> part.mask.trailing_zeros() << part.mask.trailing_zeros();
            if scattered && less != greater {
                return Ok(self.without(id, "a mask with holes is compared by size"));
            }
            let kids: Vec<_> = intervals
                .iter()
                .map(|(first, order)| {
                    let kid = match order {
                        Ordering::Less => less,
                        Ordering::Equal => node,
                        Ordering::Greater => greater,
                    };
                    (*first, kid)
                })
                .collect();
            for (first, _) in &kids {
                self.origins.entry((part.var, *first)).or_insert(id);
            }
            node = self.store.select(part.var, kids)?;
        }
        Ok(node)
    }

    fn patterns(&mut self, id: usize, shape: Shape, patterns: &[Vec<Clause>]) -> Made {
        let mut node = self.dropped(id);
        for (port, clauses) in patterns.iter().enumerate().rev() {
            let mut fits = self.next(id, port, shape)?;
            for clause in clauses.iter().rev() {
                fits = match clause.negated {
                    false => self.bytes(id, shape, clause, fits, node)?,
                    true => self.bytes(id, shape, clause, node, fits)?,
                };
            }
            node = fits;
        }
        Ok(node)
    }

    fn bytes(&mut self, id: usize, shape: Shape, clause: &Clause, yes: Id, no: Id) -> Made {
        let Ok(first) = u32::try_from(shape.head + clause.offset as i32) else {
            return Ok(no);
        };
        let parts = parts(
            Base::Frame,
            shape.layout(),
            first,
            &clause.mask,
            &clause.value,
        );
        let node = self.compare(id, &parts, Compare::Equal, yes, no)?;
        let end = first as i32 + clause.mask.len() as i32;
        self.present(id, shape, end, node, no)
    }

    fn lookup(&mut self, id: usize, shape: Shape, routes: &[Route]) -> Made {
        // The longest mask first: laid over the shorter ones, from the last to the first.
        let mut sorted: Vec<&Route> = routes.iter().collect();
        sorted.sort_by_key(|r| r.mask);
        let mut node = self.dropped(id);
        for route in sorted {
            let size = u64::from(!route.mask);
            if (size + 1).count_ones() != 1 {
                return Ok(self.without(id, "a route's mask has holes"));
            }
            let inner = self.next(id, route.output, shape)?;
            let inner = match route.gateway {
                Some(gateway) => {
                    let gateway = u64::from(u32::from_be_bytes(gateway));
                    self.written(id, inner, Var::Destination, plain(Value::Constant(gateway)))?
                }
                None => inner,
            };
            let low = u64::from(route.address);
            self.origins.entry((Var::Destination, low)).or_insert(id);
            // The gateway replaces the annotation behind the choice: what was written is no longer a test of it.
            let range = [(low, low + size)];
            node = self.store.within(Var::Destination, &range, inner, node)?;
        }
        Ok(node)
    }

    fn overwrite(&mut self, id: usize, inner: Id, at: i32, bytes: &[u8], shape: Shape) -> Made {
        let Ok(first) = u32::try_from(at) else {
            return Ok(self.without(id, "it writes in front of the frame"));
        };
        let end = first + bytes.len() as u32;
        if shape.ip().is_some_and(|at| end > u32::from(at)) || end > 14 {
            return Ok(self.without(id, "it writes bytes of the IP header without its sum"));
        }
        let ones = vec![0xff; bytes.len()];
        let mut node = inner;
        for part in parts(Base::Frame, shape.layout(), first, &ones, bytes) {
            if part.mask != part.var.most() {
                return Ok(self.without(id, "it writes a part of a field"));
            }
            let write = plain(Value::Constant(part.value));
            node = self.written(id, node, part.var, write)?;
        }
        Ok(node)
    }

    fn get_destination(&mut self, id: usize, shape: Shape, place: Address) -> Made {
        let inner = self.next(id, 0, shape)?;
        let at = match place {
            Address::Front(at) => shape.head + at as i32,
            Address::Network(offset) => match shape.ip() {
                Some(at) => i32::from(at) + offset as i32,
                None => return Ok(inner),
            },
        };
        if shape.short {
            return Ok(inner);
        }
        let Ok(first) = u32::try_from(at) else {
            return Ok(self.without(id, "it reads in front of the frame"));
        };
        // Not marked yet: its place says where the IP header is meant to be.
        let layout = match shape.network {
            Some(_) => shape.layout(),
            None => first.saturating_sub(16) as u16,
        };
        let var = of_frame(layout, first * 8);
        if !matches!(var, Var::Bits(_, start, 32) if start == first * 8) {
            return Ok(self.without(
                id,
                "the bytes that it reads are no address of the IP header",
            ));
        }
        let got = self.written(id, inner, Var::Destination, plain(Value::Field(var, 0)))?;
        self.present(id, shape, at + 4, got, inner)
    }

    /// `yes` for packets whose IP header can be written with its sums.
    fn writable(&mut self, id: usize, shape: Shape, at: u16, yes: Id, no: Id) -> Made {
        let yes = match shape.right {
            Some((right, _)) if right == at => yes,
            _ => self.store.within(ip(at, bit::IHL), &[(5, 15)], yes, no)?,
        };
        self.present(id, shape, i32::from(at) + 20, yes, no)
    }

    fn store_address(
        &mut self,
        id: usize,
        shape: Shape,
        offset: usize,
        address: Option<[u8; 4]>,
    ) -> Made {
        let inner = self.next(id, 0, shape)?;
        let Some(at) = shape.ip() else {
            return Ok(inner);
        };
        let value = match address {
            Some(address) => Value::Constant(u64::from(u32::from_be_bytes(address))),
            None => Value::Field(Var::Destination, 0),
        };
        let node = self.by_transport(id, shape, at, &mut |work, upper| {
            let write = Write {
                value,
                sums: Sums {
                    header: Some(at),
                    upper,
                },
                again: false,
            };
            work.written(id, inner, ip(at, offset as u32 * 8), write)
        })?;
        self.writable(id, shape, at, node, inner)
    }

    /// Different diagrams by the sum that covers addresses: TCP's, UDP's, or none, which are the packets that have no such
    /// header, or not all of it.
    fn by_transport(
        &mut self,
        id: usize,
        shape: Shape,
        at: u16,
        make: &mut dyn FnMut(&mut Self, u8) -> Made,
    ) -> Made {
        let none = make(self, 0)?;
        let mut node = none;
        for (protocol, bytes) in [(6, 18), (17, 8)] {
            let covered = make(self, protocol)?;
            let covered = self.room(id, shape, bytes, covered, none)?;
            let protocol = u64::from(protocol);
            let range = [(protocol, protocol)];
            node = self
                .store
                .within(ip(at, bit::PROTOCOL), &range, covered, node)?;
        }
        Ok(self
            .store
            .within(ip(at, bit::OFFSET), &[(0, 0)], node, none)?)
    }

    fn service(&mut self, id: usize, shape: Shape, mask: u8, value: u8) -> Made {
        let unchecked = |at: u16| shape.right.is_none_or(|r| r.0 != at);
        let Some(at) = shape.ip() else {
            return self.next(id, 0, shape);
        };
        let inner = self.next(
            id,
            0,
            Shape {
                risky: shape.risky || unchecked(at),
                ..shape
            },
        )?;
        if mask != 0xfc {
            return Ok(self.without(id, "it writes a part of a field"));
        }
        let write = Write {
            value: Value::Constant(u64::from(value >> 2)),
            sums: Sums {
                header: Some(at),
                upper: 0,
            },
            again: false,
        };
        let node = self.written(id, inner, ip(at, 8), write)?;
        // Two bytes are enough for the interpreter; with fewer than the header there is no sum to follow.
        let rest = self.next(id, 0, shape)?;
        let partial = self.hand(id);
        let node = self.present(id, shape, i32::from(at) + 20, node, partial)?;
        self.present(id, shape, i32::from(at) + 2, node, rest)
    }

    fn fragment(&mut self, id: usize, shape: Shape, mtu: usize, honor: bool) -> Made {
        let fits = self.next(id, 0, shape)?;
        let Some(at) = shape.ip() else {
            return Ok(fits);
        };
        let hand = self.hand(id);
        let refused = self.next(id, 1, shape)?;
        let long = match honor {
            true => self
                .store
                .within(ip(at, bit::DF), &[(1, 1)], refused, hand)?,
            false => hand,
        };
        let long = match shape.right {
            Some((right, _)) if right == at => long,
            // A header that nobody checked decides more than this.
            _ => hand,
        };
        self.present(id, shape, i32::from(at) + mtu as i32 + 1, long, fits)
    }

    fn rewrite(&mut self, to: Port, shape: Shape, rewriting: &Rewriting) -> Made {
        let id = to.element;
        if let Some(why) = rewriting.unusual {
            return Ok(self.without(id, why));
        }
        let Some(at) = shape.ip() else {
            return Ok(self.dropped(id));
        };
        let hop = match self.rewriters.iter().position(|r| *r == id) {
            Some(hop) => hop,
            None => {
                self.rewriters.push(id);
                self.rewriters.len() - 1
            }
        };
        let Ok(hop) = u8::try_from(hop) else {
            return Ok(self.without(id, "there are more than 255 rewriters"));
        };
        let asked = self.by_transport(id, shape, at, &mut |work, upper| {
            if upper == 0 {
                // A TCP header that ends before its sum: the sum could not follow.
                return Ok(work.hand(id));
            }
            let then = work.behind(to, shape, at, hop, upper, rewriting)?;
            let key = WORDS.map(|word| Value::Field(word_of(at, word), 0));
            let state = work.actions.state(Stateful {
                at: to,
                hop,
                header: at,
                upper,
                key,
                then,
            });
            let asked = work.actions.plain(Verdict::State(state));
            Ok(work.store.leaf(asked))
        })?;
        let other = match rewriting.inputs.get(to.port) {
            Some(Specification::Pass(output)) => self.next(id, *output, shape)?,
            _ => self.dropped(id),
        };
        // TCP and UDP, first fragments, eight bytes of the transport header.
        let node = self.room(id, shape, 8, asked, other)?;
        let tcp_or_udp = [(6, 6), (17, 17)];
        let node = self
            .store
            .within(ip(at, bit::PROTOCOL), &tcp_or_udp, node, other)?;
        let node = self
            .store
            .within(ip(at, bit::OFFSET), &[(0, 0)], node, other)?;
        self.writable(id, shape, at, node, other)
    }

    /// What follows by a rewriter's outputs for packets with a mapping: words of the flow are those of the entry.
    fn behind(
        &mut self,
        to: Port,
        shape: Shape,
        at: u16,
        hop: u8,
        upper: u8,
        rewriting: &Rewriting,
    ) -> Result<Vec<(usize, Id)>, Stop> {
        let id = to.element;
        let mut then = Vec::new();
        for output in outputs(self.router, rewriting, to.port) {
            let mut node = self.next(id, output, shape)?;
            if rewriting.destination {
                let address = Value::Field(ip(at, bit::DESTINATION), 0);
                node = self.written(id, node, Var::Destination, plain(address))?;
            }
            for word in WORDS {
                let port = matches!(word, Word::Sport | Word::Dport);
                let write = Write {
                    value: Value::Field(Var::Entry(hop, word), 0),
                    sums: Sums {
                        header: (!port).then_some(at),
                        upper,
                    },
                    again: false,
                };
                node = self.written(id, node, word_of(at, word), write)?;
            }
            then.push((output, node));
        }
        Ok(then)
    }

    /// A diagram for packets before an element writes a field.
    fn written(&mut self, id: usize, inner: Id, var: Var, write: Write) -> Made {
        self.substitute(id, inner, &mut HashMap::new(), &[(var, write)])
    }

    /// A diagram for packets before an element writes fields.
    fn substitute(
        &mut self,
        element: usize,
        id: Id,
        memo: &mut HashMap<Id, Id>,
        new: &[(Var, Write)],
    ) -> Made {
        if let Some(done) = memo.get(&id) {
            return Ok(*done);
        }
        let made = match self.store.node(id).clone() {
            Node::Leaf(action) => self.substitute_leaf(element, action, memo, new)?,
            Node::Branch { var, kids } => match value_of(new, var) {
                Some(Value::Constant(value)) => {
                    let kid = self.store.at(id, var, value);
                    self.substitute(element, kid, memo, new)?
                }
                value => {
                    if let Some((written, _)) = new.iter().find(|w| clashes(w, var)) {
                        let why = format!("{var} is tested behind it, and it writes {written}");
                        self.refuse(element, &why);
                    }
                    let mut changed = Vec::with_capacity(kids.len());
                    for (first, kid) in &kids {
                        changed.push((*first, self.substitute(element, *kid, memo, new)?));
                    }
                    match value {
                        Some(Value::Field(from, more)) => {
                            for (first, _) in &kids {
                                if let Some(id) = self.origins.get(&(var, *first)).copied() {
                                    let moved = first.wrapping_add_signed(-more) & var.most();
                                    self.origins.entry((from, moved)).or_insert(id);
                                }
                            }
                            let kids = shifted(&changed, more, var.most());
                            self.store.select(from, kids)?
                        }
                        _ => self.store.select(var, changed)?,
                    }
                }
            },
        };
        memo.insert(id, made);
        Ok(made)
    }

    fn substitute_leaf(
        &mut self,
        element: usize,
        number: u32,
        memo: &mut HashMap<Id, Id>,
        new: &[(Var, Write)],
    ) -> Made {
        let Some(mut action) = self.actions.get(number).cloned() else {
            return Ok(self.store.leaf(number));
        };
        match action.verdict {
            Verdict::State(asked) => {
                if let Some(mut state) = self.actions.asked(asked).cloned() {
                    for (_, then) in &mut state.then {
                        *then = self.substitute(element, *then, memo, new)?;
                    }
                    for (var, write) in new {
                        for value in &mut state.key {
                            *value = value.before(*var, write.value);
                        }
                    }
                    action.verdict = Verdict::State(self.actions.state(state));
                }
            }
            _ => {
                for (var, write) in new {
                    action = action.before(*var, *write);
                }
            }
        }
        let number = self.actions.number(action);
        Ok(self.store.leaf(number))
    }
}

/// What a field becomes.
fn value_of(new: &[(Var, Write)], var: Var) -> Option<Value> {
    new.iter().find(|w| w.0 == var).map(|w| w.1.value)
}

/// Whether a test of a field behind a write can be resolved by nobody: it shares bits with what is written, or is a sum that
/// follows the write.
fn clashes((written, write): &(Var, Write), tested: Var) -> bool {
    let sum = match tested {
        Var::Bits(Base::Frame, ..) => write
            .sums
            .header
            .is_some_and(|at| ip(at, bit::SUM).overlaps(tested)),
        Var::Bits(Base::Upper(_), first, _) => write.sums.upper != 0 && matches!(first, 48 | 128),
        // A right header stays right under a difference; one whose bytes are overwritten does not.
        Var::Checked(at, _) => {
            write.sums.header.is_none()
                && matches!(written, Var::Bits(Base::Frame, first, _) if *first >= u32::from(at) * 8)
        }
        _ => false,
    };
    sum || *written != tested && written.overlaps(tested)
}

/// The words of a flow.
pub const WORDS: [Word; 4] = [Word::Source, Word::Destination, Word::Sport, Word::Dport];

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

/// The field of the packet that a word of its flow is.
#[must_use]
pub fn word_of(at: u16, word: Word) -> Var {
    match word {
        Word::Source => ip(at, bit::SOURCE),
        Word::Destination => ip(at, bit::DESTINATION),
        Word::Sport => Var::Bits(Base::Upper(at), 0, 16),
        Word::Dport => Var::Bits(Base::Upper(at), 16, 16),
    }
}

/// Intervals of a field from those of the field with a number added to it.
fn shifted(kids: &[(u64, Id)], more: i64, max: u64) -> Vec<(u64, Id)> {
    let mut moved: Vec<(u64, Id)> = kids
        .iter()
        .map(|(first, id)| (first.wrapping_add_signed(-more) & max, *id))
        .collect();
    moved.sort_by_key(|k| k.0);
    if let (Some(first), Some(last)) = (moved.first().copied(), moved.last().copied())
        && first.0 != 0
    {
        // The last interval goes on at the other end.
        moved.insert(0, (0, last.1));
    }
    moved
}

/// Outputs of a rewriter that packets of flows may leave by: those of the pattern of an input that opens flows, or those for
/// answers, by an input that does not.
fn outputs(router: &Router, rewriting: &Rewriting, input: usize) -> Vec<usize> {
    let mut pairs = Vec::new();
    for (number, one) in rewriting.inputs.iter().enumerate() {
        let patterns = match one {
            Specification::Mapper(id) => match router.meaning(*id) {
                Some(Meaning::Mapper(patterns)) => patterns,
                _ => Vec::new(),
            },
            one => vec![one.clone()],
        };
        for pattern in patterns {
            if let Specification::Keep(a, b) | Specification::Pattern(_, a, b) = pattern {
                pairs.push((number, a, b));
            }
        }
    }
    let opens = pairs.iter().any(|p| p.0 == input);
    let mut found: Vec<usize> = match opens {
        true => pairs.iter().filter(|p| p.0 == input).map(|p| p.1).collect(),
        false => pairs.iter().map(|p| p.2).collect(),
    };
    found.sort_unstable();
    found.dedup();
    found
}
