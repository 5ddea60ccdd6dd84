//! Properties of an entry's expressions, computed once for all its paths: their guards are made of the same
//! conditions, and each is asked about the same kinds of packets. A condition is worked out anew only for bytes
//! that it speaks of.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use millrace_model::expr::given::{Facts, Given};
use millrace_model::expr::ids::IdMap;
use millrace_model::expr::sets::Place;
use millrace_model::expr::support::Support;
use millrace_model::expr::walk::each_of;
use millrace_model::expr::{Arena, Bin, ExprId, Node, Origin, Rel, SymId, mask};
use millrace_model::known::Memory;

use crate::offset::Offset;
use crate::packets::{conjuncts, last_byte};

/// Composition of an expression.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// bytes of the packet, sorted
    places: Vec<Place>,
    /// those among them from which a place is computed
    under: Vec<Place>,
    /// for each offset that differs from packet to packet the furthest byte that is read whatever happens
    pub sure: Vec<Offset>,
    /// last bytes that are there where it holds
    pub last: Vec<Offset>,
    /// there is a choice in it
    pub chooses: bool,
    /// a place in it is a choice between places
    pub chosen: bool,
    /// conditions in it, sorted
    conditions: Vec<ExprId>,
    /// those among them that a byte equals a constant
    pub compared: Vec<(ExprId, Offset)>,
    /// those among them that an IPv4 fragment's offset is 0: each with where the IPv4 header begins
    pub whole: Vec<(ExprId, Offset)>,
    /// a byte at a computed place is among them
    pub computed: bool,
    /// it speaks of more than the packet
    pub foreign: bool,
    /// what it speaks of beside bytes of the packet
    symbols: BTreeSet<SymId>,
    /// nothing but numbers and parameters is in it
    pub settled: bool,
}

impl Parts {
    fn of(arena: &Arena, root: ExprId) -> Self {
        let mut parts = Self {
            settled: true,
            ..Self::default()
        };
        let mut bases = Vec::new();
        each_of(
            arena,
            &[root],
            |_| false,
            |id| {
                let node = arena.node(id);
                match *node {
                    Node::Byte { base, at } => {
                        parts.places.push((base, at));
                        bases.extend(base);
                        parts.settled = false;
                    }
                    Node::Sym(s) => {
                        let origin = arena.symbol(s).origin;
                        parts.symbols.insert(s);
                        parts.foreign |= !matches!(origin, Origin::Length | Origin::Port);
                        parts.settled &= origin == Origin::Param;
                    }
                    Node::Ite(..) => parts.chooses = true,
                    Node::Cmp(Rel::Eq, x, c) => {
                        if let Some(c) = arena.constant(c) {
                            let place = byte(arena, x).map(|p| (id, Offset::of(arena, p)));
                            parts.compared.extend(place);
                            let headers = no_later_fragment(arena, x, c);
                            parts.whole.extend(headers.into_iter().map(|h| (id, h)));
                        }
                    }
                    _ => {}
                }
                if arena.width(id) == 1 && !matches!(node, Node::Const(_)) {
                    parts.conditions.push(id);
                }
            },
        );
        parts.conditions.sort_unstable();
        parts.computed = !bases.is_empty();
        each_of(
            arena,
            &bases,
            |_| false,
            |id| match *arena.node(id) {
                Node::Byte { base, at } => parts.under.push((base, at)),
                Node::Ite(..) => parts.chosen = true,
                _ => {}
            },
        );
        parts.places.sort_unstable();
        let open = |id: ExprId| match arena.node(id) {
            Node::Ite(..) => true,
            Node::Bin(Bin::Or, ..) => arena.width(id) == 1,
            _ => false,
        };
        each_of(arena, &[root], open, |id| {
            if let Node::Byte { base, at } = *arena.node(id) {
                furthest(&mut parts.sure, &Offset::of(arena, (base, at)));
            }
        });
        let conjuncts = conjuncts(arena, &[root]).into_iter();
        parts.last = conjuncts.filter_map(|e| last_byte(arena, e)).collect();
        parts
    }

    /// Whether places move with these bytes: any of them may come to matter then.
    fn moves(&self, bytes: &Bytes) -> bool {
        self.under.iter().any(|p| bytes.contains_key(p))
    }

    /// Whether these places have a say in it, in packets with these bytes.
    pub fn depends(&self, on: &[Place], bytes: &Bytes) -> bool {
        let here = |p: &Place| self.places.binary_search(p).is_ok() || self.under.contains(p);
        self.moves(bytes) || on.iter().any(here)
    }

    /// For a condition that speaks of no byte of the packet, but of more than the packet: of what. Only expressions that
    /// speak of all that as well can ever have it in them, whatever is put into them.
    pub fn silent(&self) -> Option<&BTreeSet<SymId>> {
        (self.foreign && self.places.is_empty()).then_some(&self.symbols)
    }

    /// Whether it speaks of any of these.
    pub fn speaks_of_any(&self, of: impl Fn(&SymId) -> bool) -> bool {
        self.symbols.iter().any(of)
    }

    /// Whether all of these are spoken of.
    pub fn speaks_of(&self, symbols: &BTreeSet<SymId>) -> bool {
        symbols.is_subset(&self.symbols)
    }

    /// Whether it has no part in how packets lie in memory: no byte is read for it, and nothing is chosen.
    pub fn reads_nothing(&self) -> bool {
        self.places.is_empty() && !self.chooses
    }

    /// Whether it looks at a byte at or behind this constant offset.
    pub fn looks_behind(&self, from: i64) -> bool {
        self.computed || self.places.iter().any(|(_, at)| *at >= from)
    }
}

/// Takes an offset over, if it is further than those of the same form.
pub(crate) fn furthest(all: &mut Vec<Offset>, one: &Offset) {
    match all.iter_mut().find(|o| o.terms == one.terms) {
        Some(other) => other.at = other.at.max(one.at),
        None => all.push(one.clone()),
    }
}

/// An expression without the zeros that it is extended with.
pub(crate) fn unextended(arena: &Arena, mut e: ExprId) -> ExprId {
    while let Node::Concat(parts) = arena.node(e)
        && let [high, low] = parts.as_ref()
        && arena.constant(*high) == Some(0)
    {
        e = *low;
    }
    e
}

/// The byte that an expression is, whatever its width.
fn byte(arena: &Arena, e: ExprId) -> Option<Place> {
    match *arena.node(unextended(arena, e)) {
        Node::Byte { base, at } => Some((base, at)),
        _ => None,
    }
}

/// Where IPv4 headers begin, if "x is c" says of them that their fragment's offset, the last 13 bits of bytes 6
/// and 7 (RFC 791), is 0.
fn no_later_fragment(arena: &Arena, x: ExprId, mut c: u64) -> Vec<Offset> {
    let parts = match arena.node(x) {
        Node::Concat(parts) => parts.as_ref(),
        _ => return Vec::new(),
    };
    // The bits of each byte that are said to be 0.
    let mut zeros: BTreeMap<Offset, u64> = BTreeMap::new();
    for p in parts.iter().rev() {
        let width = arena.width(*p);
        let (of, low) = match arena.node(*p) {
            Node::Extract { of, low } => (*of, *low),
            _ => (*p, 0),
        };
        if let Node::Byte { base, at } = *arena.node(of) {
            let bits = (!c & mask(width)) << low;
            *zeros.entry(Offset::of(arena, (base, at))).or_default() |= bits;
        }
        c = c.checked_shr(width).unwrap_or(0);
    }
    let whole = |(high, bits): (&Offset, &u64)| {
        let low = zeros.get(&high.plus(1)).copied().unwrap_or(0);
        (bits & 0x1f == 0x1f && low & 0xff == 0xff).then(|| high.plus(-6))
    };
    zeros.iter().filter_map(whole).collect()
}

/// Bytes that packets have.
pub(crate) type Bytes = BTreeMap<Place, u8>;

/// Conditions, the places of a byte, the other bytes that have a say in them, and values of that byte.
pub(crate) type Leaves = (Vec<ExprId>, Vec<Place>, Bytes, Vec<u8>);

/// The memory of one entry.
#[derive(Default)]
pub(crate) struct Memo {
    pub known: Memory,
    /// by expression
    parts: RefCell<Vec<Option<Rc<Parts>>>>,
    /// by bytes: what expressions are then
    results: RefCell<IdMap<Bytes, IdMap<ExprId, ExprId>>>,
    /// by the facts that matter
    given: RefCell<IdMap<Facts, Given>>,
    index: RefCell<Index>,
    /// whether conditions leave any of the values of a byte, which is at these places, for packets with these bytes
    pub leaves: RefCell<IdMap<Leaves, bool>>,
}

/// Where the expressions look.
#[derive(Default)]
struct Index {
    /// the expressions before this one are in it
    upto: usize,
    places: IdMap<Offset, Vec<Place>>,
}

impl Memo {
    /// The composition of an expression.
    pub fn parts(&self, arena: &Arena, e: ExprId) -> Rc<Parts> {
        let at = e.0 as usize;
        if let Some(Some(known)) = self.parts.borrow().get(at) {
            return known.clone();
        }
        let parts = Rc::new(Parts::of(arena, e));
        let mut all = self.parts.borrow_mut();
        if all.len() <= at {
            all.resize(arena.len().next_power_of_two(), None);
        }
        if let Some(slot) = all.get_mut(at) {
            *slot = Some(parts.clone());
        }
        parts
    }

    /// The places, named by expressions, by which they read this offset.
    pub fn at<T>(&self, arena: &Arena, offset: &Offset, f: impl FnOnce(&[Place]) -> T) -> T {
        let mut index = self.index.borrow_mut();
        for at in index.upto..arena.len() {
            if let Node::Byte { base, at } = *arena.node(ExprId(at as u32)) {
                let offset = Offset::of(arena, (base, at));
                index.places.entry(offset).or_default().push((base, at));
            }
        }
        index.upto = arena.len();
        f(index.places.get(offset).map_or(&[], Vec::as_slice))
    }

    /// The expressions as they are of packets with these bytes.
    pub fn given(&self, arena: &mut Arena, roots: &[ExprId], bytes: &Bytes) -> Vec<ExprId> {
        let mut out = Vec::with_capacity(roots.len());
        self.each(arena, roots, bytes, |_, made| {
            out.push(made);
            true
        });
        out
    }

    /// Whether none of these conditions fails for all packets with these bytes.
    pub fn possible(&self, arena: &mut Arena, guard: &[ExprId], bytes: &Bytes) -> bool {
        self.each(arena, guard, bytes, |arena, made| {
            arena.constant(made) != Some(0)
        })
    }

    /// Whether each expression, as it is then, passes; the first that does not is the last that is looked at.
    fn each(
        &self,
        arena: &mut Arena,
        roots: &[ExprId],
        bytes: &Bytes,
        mut pass: impl FnMut(&Arena, ExprId) -> bool,
    ) -> bool {
        let told = Support::bytes(bytes.keys());
        let mut results = self.results.borrow_mut();
        // What the bytes have no part in stays.
        let concerned = |arena: &Arena, e: &ExprId| arena.support(*e).meets(told);
        let mut known = match roots.iter().any(|e| concerned(arena, e)) {
            true if !results.contains_key(bytes) => Some(results.entry(bytes.clone()).or_default()),
            true => results.get_mut(bytes),
            false => None,
        };
        for e in roots {
            let made = match &mut known {
                Some(known) if concerned(arena, e) => *known
                    .entry(*e)
                    .or_insert_with(|| self.with_bytes(arena, *e, bytes)),
                _ => *e,
            };
            if !pass(arena, made) {
                return false;
            }
        }
        true
    }

    /// Of these bytes those that have a say in the expressions.
    pub fn matter(&self, arena: &Arena, roots: &[ExprId], bytes: &Bytes) -> Bytes {
        let mut matter = Bytes::new();
        for e in roots {
            let parts = self.parts(arena, *e);
            if parts.moves(bytes) {
                return bytes.clone();
            }
            let here = |p: &Place| Some((*p, *bytes.get(p)?));
            matter.extend(parts.places.iter().filter_map(here));
        }
        matter
    }

    fn with_bytes(&self, arena: &mut Arena, e: ExprId, bytes: &Bytes) -> ExprId {
        let matter = self.matter(arena, &[e], bytes);
        if matter.is_empty() {
            return e;
        }
        let facts = Facts {
            bytes: matter,
            ..Facts::default()
        };
        self.put(arena, &[e], &facts).first().copied().unwrap_or(e)
    }

    /// The expressions as they are where these conditions hold, or do not.
    pub fn decided(
        &self,
        arena: &mut Arena,
        roots: &[ExprId],
        conditions: &BTreeMap<ExprId, bool>,
    ) -> Vec<ExprId> {
        let told = |e: &ExprId| {
            let parts = self.parts(arena, *e);
            parts.conditions.iter().any(|c| conditions.contains_key(c))
        };
        let told: Vec<bool> = roots.iter().map(told).collect();
        if !told.contains(&true) {
            return roots.to_vec();
        }
        let facts = Facts {
            conditions: conditions.clone(),
            ..Facts::default()
        };
        let made = self.put(arena, roots, &facts);
        let either = roots.iter().zip(made).zip(told);
        either
            .map(|((e, made), told)| if told { made } else { *e })
            .collect()
    }

    /// The expressions with what is known put into them.
    pub fn put(&self, arena: &mut Arena, roots: &[ExprId], facts: &Facts) -> Vec<ExprId> {
        let mut all = self.given.borrow_mut();
        if let Some(given) = all.get_mut(facts) {
            return given.of(arena, roots);
        }
        let given = all
            .entry(facts.clone())
            .or_insert_with_key(|facts| Given::new(facts.clone()));
        given.of(arena, roots)
    }
}
