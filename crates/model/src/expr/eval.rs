//! Values of expressions under an assignment.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::ids::IdMap;
use super::memo::Memo;
use super::walk::{cone, each_child};
use super::{Arena, Bin, ExprId, Node, Rel, SymId, mask};

/// Numbers for the symbols and bytes for the packet; what is not named is 0.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Assignment {
    /// by symbol
    pub symbols: IdMap<SymId, u64>,
    /// by offset
    pub packet: BTreeMap<u64, u8>,
    /// what has been evaluated
    #[serde(skip)]
    known: RefCell<Memo>,
}

impl Assignment {
    /// From its parts.
    #[must_use]
    pub fn new(symbols: IdMap<SymId, u64>, packet: BTreeMap<u64, u8>) -> Self {
        Self {
            symbols,
            packet,
            known: RefCell::default(),
        }
    }

    /// The value of an expression.
    #[must_use]
    pub fn value(&self, arena: &Arena, e: ExprId) -> u64 {
        if let Some(v) = self.known.borrow().get(e) {
            return v;
        }
        let mut known = self.known.borrow_mut();
        let mut todo = vec![e];
        while let Some(id) = todo.last().copied() {
            if known.get(id).is_some() {
                todo.pop();
                continue;
            }
            let node = arena.node(id);
            let waiting = todo.len();
            // Of a choice only what is chosen is looked at.
            match node {
                Node::Ite(c, a, b) => match known.get(*c) {
                    None => todo.push(*c),
                    Some(c) => {
                        let chosen = if c == 1 { *a } else { *b };
                        if known.get(chosen).is_none() {
                            todo.push(chosen);
                        }
                    }
                },
                _ => each_child(node, |c| {
                    if known.get(c).is_none() {
                        todo.push(c);
                    }
                }),
            }
            if todo.len() > waiting {
                continue;
            }
            let get = |id: ExprId| known.get(id).unwrap_or(0);
            let width = arena.width(id);
            let value = match node {
                Node::Sym(s) => self.symbols.get(s).copied().unwrap_or(0),
                Node::Byte { base, at } => {
                    let offset = base.map_or(0, get).wrapping_add(*at as u64);
                    u64::from(self.packet.get(&(offset & 0xffff)).copied().unwrap_or(0))
                }
                node => apply_node(arena, node, width, get),
            };
            known.set(id, value & mask(width));
        }
        known.get(e).unwrap_or(0)
    }
}

/// Packets that a [`Course`] takes at once: what it looks up of an expression serves all of them.
pub const LANES: usize = 8;

/// Expressions whose values for many packets are asked for: what they are made of is evaluated in order, each once, where an
/// [`Assignment`] looks for what it does not know yet and at what is chosen alone. Symbols are 0.
#[derive(Clone, Debug)]
pub struct Course {
    order: Vec<ExprId>,
    /// by expression
    values: Vec<[u64; LANES]>,
}

impl Course {
    /// Of these expressions.
    #[must_use]
    pub fn of(arena: &Arena, roots: &[ExprId]) -> Self {
        let order = cone(arena, roots, |_| false);
        let behind = order.last().map_or(0, |e| e.0 as usize + 1);
        Self {
            order,
            values: vec![[0; LANES]; behind],
        }
    }

    /// How many expressions it evaluates.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether it evaluates none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Evaluates them; `byte` gives a byte of each packet by its offset.
    pub fn run(&mut self, arena: &Arena, byte: impl Fn(usize, u64) -> u8) {
        for id in &self.order {
            let (node, width) = (arena.node(*id), arena.width(*id));
            let mut all = [0; LANES];
            for (lane, value) in all.iter_mut().enumerate() {
                let get = |e: ExprId| self.value(lane, e);
                let found = match node {
                    Node::Byte { base, at } => {
                        let offset = base.map_or(0, get).wrapping_add(*at as u64);
                        u64::from(byte(lane, offset & 0xffff))
                    }
                    node => apply_node(arena, node, width, get),
                };
                *value = found & mask(width);
            }
            if let Some(place) = self.values.get_mut(id.0 as usize) {
                *place = all;
            }
        }
    }

    /// The value that one of them, or of what they are made of, had in the last run.
    #[must_use]
    pub fn value(&self, lane: usize, e: ExprId) -> u64 {
        let all = self.values.get(e.0 as usize);
        all.and_then(|all| all.get(lane)).copied().unwrap_or(0)
    }
}

/// The value of a node whose operands have these values; 0 for symbols and bytes, which have none.
pub fn apply_node(arena: &Arena, node: &Node, width: u32, get: impl Fn(ExprId) -> u64) -> u64 {
    match node {
        Node::Const(c) => *c,
        Node::Sym(_) | Node::Byte { .. } => 0,
        Node::Concat(parts) => parts.iter().fold(0_u64, |n, p| {
            n.checked_shl(arena.width(*p)).unwrap_or(0) | get(*p)
        }),
        Node::Extract { of, low } => get(*of) >> low,
        Node::SignExtend(x) => {
            let up = 64 - arena.width(*x);
            ((get(*x) << up) as i64 >> up) as u64
        }
        Node::Bin(op, a, b) => apply(*op, width, get(*a), get(*b)),
        Node::Cmp(rel, a, b) => u64::from(relation(*rel, arena.width(*a), get(*a), get(*b))),
        Node::Ite(c, a, b) => get(if get(*c) == 1 { *a } else { *b }),
    }
}

fn signed(x: u64, width: u32) -> i64 {
    let up = 64 - width;
    (x << up) as i64 >> up
}

/// `a op b`, both of this width.
#[must_use]
pub fn apply(op: Bin, width: u32, a: u64, b: u64) -> u64 {
    let (sa, sb) = (signed(a, width), signed(b, width));
    let value = match op {
        Bin::Add => a.wrapping_add(b),
        Bin::Mul => a.wrapping_mul(b),
        Bin::Div => a.checked_div(b).unwrap_or(0),
        Bin::Rem => a.checked_rem(b).unwrap_or(a),
        Bin::SignedDiv if b == 0 => 0,
        Bin::SignedRem if b == 0 => a,
        Bin::SignedDiv => sa.wrapping_div(sb) as u64,
        Bin::SignedRem => sa.wrapping_rem(sb) as u64,
        Bin::And => a & b,
        Bin::Or => a | b,
        Bin::Xor => a ^ b,
        Bin::Shl => a.checked_shl(b as u32).unwrap_or(0),
        Bin::Shr => a.checked_shr(b as u32).unwrap_or(0),
        Bin::Sar => (sa >> b.min(63)) as u64,
        Bin::MulHigh => ((u128::from(a) * u128::from(b)) >> 64) as u64,
    };
    value & mask(width)
}

/// Whether `a rel b`, both of this width.
#[must_use]
pub fn relation(rel: Rel, width: u32, a: u64, b: u64) -> bool {
    match rel {
        Rel::Eq => a == b,
        Rel::Less => a < b,
        Rel::SignedLess => signed(a, width) < signed(b, width),
    }
}
