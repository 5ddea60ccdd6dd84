//! Targets of computed offsets in an IPv6 packet: behind how many extension headers they lead (RFC 8200, section 4), of
//! the packet itself or of the inner packet of an ICMPv6 error (RFC 4443).
//!
//! Compilers write the lengths of these headers in many ways, so an offset is recognised by what it is, not by
//! how it is computed: it is evaluated for made packets of each shape and held against where their headers
//! begin. A wrong guess would have to agree with all of them. Only words rest on that.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use millrace_model::expr::walk::cone;
use millrace_model::expr::{Arena, ExprId, Node, SymId};

use super::made::{HEADER, MOST, Made, Possible, Shape, make, shapes};

/// Packets of each shape.
const TRIALS: u64 = 2;
/// Expressions of more nodes are not tried.
const NODES: usize = 20_000;

/// How far along a chain of headers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reach {
    /// behind this many extension headers; another one may follow
    After(usize),
    /// behind all of them, of which there are this many at least and this many at most
    Last(usize, usize),
}

impl Reach {
    /// Among the places at which the headers of a chain begin, the last of which is no extension header.
    fn place(self, all: &[i64]) -> Option<i64> {
        match self {
            Reach::After(n) => all.get(n).copied(),
            Reach::Last(..) => all.last().copied(),
        }
    }

    /// How many extension headers packets have that tell this reach from others.
    fn counts(self) -> std::ops::RangeInclusive<usize> {
        match self {
            Reach::After(n) => n..=(n + 2).min(MOST),
            Reach::Last(least, most) => least..=most,
        }
    }

    /// Those that say the most first: behind the last of up to three looks like behind the third if there
    /// are as many.
    fn all() -> impl Iterator<Item = Reach> {
        let last = (1..=MOST)
            .rev()
            .flat_map(|most| (0..most).map(move |least| (least, most)));
        let last = last.map(|(least, most)| Reach::Last(least, most));
        last.chain((0..MOST).map(Reach::After))
    }
}

/// A place in the packet: along the chain of its own headers, or, behind an ICMPv6 error there, along that of the
/// packet that it carries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Landing {
    /// of the packet itself
    pub outer: Reach,
    /// of the carried one
    pub inner: Option<Reach>,
}

/// Meaning of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// an offset: this many bytes behind this place
    Offset(Landing, i64),
    /// the number of the header behind all extension headers; of the carried packet
    Protocol {
        /// of the carried packet
        inner: bool,
    },
}

/// Where the header begins, and conditions of which each holds or does not.
type Guard = (i64, Vec<(ExprId, bool)>);

/// Results of earlier work, for one arena.
#[derive(Default)]
pub struct Memory {
    made: RefCell<HashMap<(i64, Shape), Rc<Made>>>,
    meanings: RefCell<HashMap<(ExprId, i64), Option<Meaning>>>,
    possible: RefCell<HashMap<Guard, Rc<Vec<Possible>>>>,
    /// whether an expression speaks of the packet alone
    of_packet: RefCell<HashMap<ExprId, bool>>,
    /// the symbol of the packet's length, once looked for
    length: Cell<Option<Option<SymId>>>,
}

/// Looks for the meaning of one expression.
struct Search<'a> {
    arena: &'a Arena,
    memory: &'a Memory,
    network: i64,
    length: Option<SymId>,
    e: ExprId,
}

impl Search<'_> {
    fn made(&self, shape: Shape) -> Rc<Made> {
        self.memory.made(self.network, shape, self.length)
    }

    /// How far behind a place the expression leads in each packet of these shapes, if it is equally far.
    fn behind(
        &self,
        shapes: impl Iterator<Item = Shape>,
        place: impl Fn(&Made) -> Option<i64>,
    ) -> Option<i64> {
        let mut by = None;
        for shape in shapes {
            let made = self.made(shape);
            let value = made.values.value(self.arena, self.e) as i64;
            let d = value.checked_sub(place(&made)?)?;
            if *by.get_or_insert(d) != d {
                return None;
            }
        }
        by
    }

    fn offset(&self, deep: bool) -> Option<Meaning> {
        for outer in Reach::all() {
            let shapes = outer
                .counts()
                .flat_map(|n| (0..TRIALS).map(move |t| (n, None, t)));
            if let Some(by) = self.behind(shapes, |m| outer.place(&m.outer)) {
                return Some(Meaning::Offset(Landing { outer, inner: None }, by));
            }
        }
        if !deep {
            return None;
        }
        for outer in Reach::all() {
            for inner in Reach::all() {
                // The error stands behind the last of the outer headers.
                let own = match outer {
                    Reach::After(n) => n..=n,
                    Reach::Last(least, most) => least..=most,
                };
                let shapes = own.flat_map(|n| {
                    let counts = inner.counts();
                    counts.flat_map(move |i| (0..TRIALS).map(move |t| (n, Some(i), t)))
                });
                if let Some(by) = self.behind(shapes, |m| inner.place(&m.inner)) {
                    let inner = Some(inner);
                    return Some(Meaning::Offset(Landing { outer, inner }, by));
                }
            }
        }
        None
    }

    fn protocol(&self) -> Option<Meaning> {
        let is = |shape: Shape, of: &dyn Fn(&Made) -> u8| {
            let made = self.made(shape);
            made.values.value(self.arena, self.e) == u64::from(of(&made))
        };
        let trials = |n: usize, i: Option<usize>| (0..TRIALS).map(move |t| (n, i, t));
        let behind = |(least, most): (usize, usize)| {
            let mut shapes = (least..=most).flat_map(|n| trials(n, None));
            shapes.all(|s| is(s, &|m| m.protocol))
        };
        let carried = |(least, most): (usize, usize)| {
            (0..MOST).any(|from| {
                let mut shapes = (least..=most)
                    .flat_map(|n| (from..=MOST).flat_map(move |i| trials(n, Some(i))));
                shapes.all(|s| is(s, &|m| m.carried))
            })
        };
        // One count alone is told by that header's own field.
        let several = || {
            (1..=MOST)
                .rev()
                .flat_map(|most| (0..most).map(move |l| (l, most)))
        };
        if several().any(behind) {
            return Some(Meaning::Protocol { inner: false });
        }
        let mut any = (0..=MOST).map(|n| (n, n)).chain(several());
        any.any(carried)
            .then_some(Meaning::Protocol { inner: true })
    }
}

impl Memory {
    /// Meaning of an expression in a packet whose IPv6 header begins at `network`. None for what depends on no
    /// length of an extension header: that needs no other words.
    pub fn meaning(&self, arena: &Arena, e: ExprId, network: i64) -> Option<Meaning> {
        let wide = matches!(arena.width(e), 32 | 64);
        if !wide && arena.width(e) != 8
            || matches!(
                arena.node(e),
                Node::Byte { .. } | Node::Const(_) | Node::Sym(_)
            )
        {
            return None;
        }
        if let Some(known) = self.meanings.borrow().get(&(e, network)) {
            return *known;
        }
        let found = self.search(arena, e, network);
        self.meanings.borrow_mut().insert((e, network), found);
        found
    }

    fn search(&self, arena: &Arena, e: ExprId, network: i64) -> Option<Meaning> {
        let cone = cone(arena, &[e], |_| false);
        if cone.len() > NODES {
            return None;
        }
        // The first extension header's length or number is in all that is behind it.
        let first = network + HEADER;
        let (mut along, mut deep) = (false, false);
        for id in &cone {
            match *arena.node(*id) {
                Node::Byte { base: Some(_), .. } => (along, deep) = (true, true),
                Node::Byte { base: None, at } => {
                    along |= (first..first + 2).contains(&at);
                    // Where the headers of a carried packet begin, if there is none before it.
                    let carried = first + 8 + HEADER;
                    deep |= (carried..carried + 2).contains(&at);
                }
                _ => {}
            }
        }
        if !along && !deep {
            return None;
        }
        let search = Search {
            arena,
            memory: self,
            network,
            length: self.length(arena),
            e,
        };
        if arena.width(e) == 8 {
            return search.protocol();
        }
        search.offset(deep)
    }

    /// The symbol of the packet's length, which all made packets need the value of.
    fn length(&self, arena: &Arena) -> Option<SymId> {
        if let Some(known) = self.length.get() {
            return known;
        }
        let found = (0..arena.len() as u32).find_map(|i| match *arena.node(ExprId(i)) {
            Node::Sym(s) if arena.symbol(s).name == "length" => Some(s),
            _ => None,
        });
        self.length.set(Some(found));
        found
    }

    fn made(&self, network: i64, shape: Shape, length: Option<SymId>) -> Rc<Made> {
        let mut all = self.made.borrow_mut();
        let made = all
            .entry((network, shape))
            .or_insert_with(|| Rc::new(make(network, shape, length)));
        made.clone()
    }

    /// Of the shapes that packets can have those that a guard does not exclude, as far as it speaks of the
    /// packet alone.
    pub fn possible(
        &self,
        arena: &Arena,
        guard: &[(ExprId, bool)],
        network: i64,
    ) -> Rc<Vec<Possible>> {
        let key = (network, guard.to_vec());
        if let Some(known) = self.possible.borrow().get(&key) {
            return known.clone();
        }
        // Guards begin alike, so what is left by the conditions before the last is mostly known.
        let mut from = guard.len();
        let mut left = loop {
            let Some(before) = from.checked_sub(1) else {
                break Rc::new(shapes().collect::<Vec<_>>());
            };
            from = before;
            let key = (network, guard.get(..before).unwrap_or(&[]).to_vec());
            if let Some(known) = self.possible.borrow().get(&key) {
                break known.clone();
            }
        };
        for (i, (e, holds)) in guard.iter().enumerate().skip(from) {
            if self.of_packet(arena, *e) {
                let length = self.length(arena);
                let holds = |p: &&Possible| {
                    let made = self.made(network, p.shape, length);
                    (made.values.value(arena, *e) == 1) == *holds
                };
                left = Rc::new(left.iter().filter(holds).copied().collect());
            }
            let key = (network, guard.get(..=i).unwrap_or(guard).to_vec());
            self.possible.borrow_mut().insert(key, left.clone());
        }
        left
    }

    /// Whether an expression speaks of the packet alone.
    fn of_packet(&self, arena: &Arena, e: ExprId) -> bool {
        if let Some(known) = self.of_packet.borrow().get(&e) {
            return *known;
        }
        let cone = cone(arena, &[e], |_| false);
        let is = cone.len() <= NODES
            && cone.iter().all(|id| match *arena.node(*id) {
                Node::Sym(s) => arena.symbol(s).name == "length",
                _ => true,
            });
        self.of_packet.borrow_mut().insert(e, is);
        is
    }

    /// Forgets everything: another arena's expressions have the same numbers.
    pub fn forget(&self) {
        self.made.borrow_mut().clear();
        self.meanings.borrow_mut().clear();
        self.possible.borrow_mut().clear();
        self.of_packet.borrow_mut().clear();
        self.length.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_model::expr::{Bin, Rel};

    /// The length of the header at offset 54, whose number is at 20: authentication counts by `by` bytes.
    fn length(a: &mut Arena, by: u64) -> ExprId {
        let byte = |a: &mut Arena, at: u64| {
            let at = a.number(at, 64);
            a.byte(at)
        };
        let (number, units) = (byte(a, 20), byte(a, 55));
        let zeros = a.number(0, 56);
        let units = a.concat(&[zeros, units]);
        let is = |a: &mut Arena, n: u64| {
            let n = a.number(n, 8);
            a.compare(Rel::Eq, number, n)
        };
        let (fragment, authentication) = (is(a, 44), is(a, 51));
        let times = |a: &mut Arena, more: u64, by: u64| {
            let (more, by) = (a.number(more, 64), a.number(by, 64));
            let sum = a.binary(Bin::Add, units, more);
            a.binary(Bin::Mul, sum, by)
        };
        let (eights, fours) = (times(a, 1, 8), times(a, 2, by));
        let eight = a.number(8, 64);
        let other = a.ite(authentication, fours, eights);
        a.ite(fragment, eight, other)
    }

    #[test]
    fn an_offset_is_what_it_comes_to() {
        let mut a = Arena::new();
        let right = length(&mut a, 4);
        let memory = Memory::default();
        let landing = Landing {
            outer: Reach::After(1),
            inner: None,
        };
        // Without the 54 bytes before the first extension header.
        let found = memory.meaning(&a, right, 14);
        assert_eq!(found, Some(Meaning::Offset(landing, -54)));
        // Behind a VLAN tag the bytes are others.
        assert_eq!(memory.meaning(&a, right, 18), None);
    }

    #[test]
    fn what_is_wrong_for_one_header_is_no_offset() {
        let mut a = Arena::new();
        let wrong = length(&mut a, 8);
        assert_eq!(Memory::default().meaning(&a, wrong, 14), None);
    }
}
