//! Bit-vector expressions, hash-consed and simplified as they are built.
//!
//! Widths are 1 to 64 bits; a truth value has width 1. The children of a node have smaller numbers than
//! the node, so that walks need no recursion. Loads of several bytes are concatenations of bytes, and
//! masks, shifts by constants and byte swaps are laid out as concatenations of extracts: that is what
//! makes a packet field appear as a field again after a compiler took it apart.

mod build;
mod bytes;
pub mod eval;
pub mod given;
pub mod ids;
pub mod import;
mod interned;
pub mod memo;
pub mod sets;
pub mod support;
pub mod walk;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use millrace_check::domain::tnum::Tnum;
use serde::{Deserialize, Serialize};

use interned::Interned;
use support::Support;

/// Index of an expression in its [`Arena`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ExprId(pub u32);

/// Index of a symbol in its [`Arena`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct SymId(pub u32);

/// Arithmetic on two operands of one width. Division follows BPF: by zero gives 0, a remainder by zero
/// the left operand; shifts are by less than the width.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Bin {
    /// sum
    Add,
    /// product
    Mul,
    /// unsigned quotient
    Div,
    /// unsigned remainder
    Rem,
    /// signed quotient
    SignedDiv,
    /// signed remainder
    SignedRem,
    /// and
    And,
    /// or
    Or,
    /// exclusive or
    Xor,
    /// left shift
    Shl,
    /// logical right shift
    Shr,
    /// arithmetic right shift
    Sar,
    /// upper half of the product of two 64-bit numbers
    MulHigh,
}

/// Comparisons; their result has width 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Rel {
    /// equal
    Eq,
    /// unsigned less
    Less,
    /// signed less
    SignedLess,
}

/// An expression.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Node {
    /// a number
    Const(u64),
    /// a symbol
    Sym(SymId),
    /// the byte of the packet, as it came in, at `base` (0 when none) plus `at`
    Byte {
        /// the part of the offset that is no constant, 64 bits
        base: Option<ExprId>,
        /// the constant part
        at: i64,
    },
    /// parts one after another, the highest bits first
    Concat(Box<[ExprId]>),
    /// as many bits as the expression is wide, from bit `low` on
    Extract {
        /// of what
        of: ExprId,
        /// lowest bit
        low: u32,
    },
    /// the operand with its sign bit repeated
    SignExtend(ExprId),
    /// arithmetic
    Bin(Bin, ExprId, ExprId),
    /// comparison
    Cmp(Rel, ExprId, ExprId),
    /// the second if the first is 1, else the third
    Ite(ExprId, ExprId, ExprId),
}

/// Where a symbol comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// the packet's length
    Length,
    /// the ingress port, its queue, how many ports there are
    Port,
    /// time
    Time,
    /// a random draw
    Random,
    /// a parameter
    Param,
    /// what a state object holds, whether a key is there, whether it is full
    State(usize),
    /// what a helper said that has no meaning of its own here
    Helper,
    /// what a loop leaves that is taken for any number of turns
    Turn,
}

/// A symbol.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Symbol {
    /// its name; others of another width or origin may have it, too
    pub name: String,
    /// bits
    pub width: u32,
    /// where it comes from
    pub origin: Origin,
}

#[derive(Clone, Debug)]
struct Entry {
    node: Node,
    width: u32,
    bits: Tnum,
    support: Support,
}

/// All expressions of one execution.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(into = "bytes::Written", try_from = "bytes::Written")]
pub struct Arena {
    entries: Vec<Entry>,
    known: Interned,
    symbols: Vec<Symbol>,
    names: HashMap<(String, u32, Origin), SymId>,
    effort: build::Effort,
    /// what extracts are, by what they are of, their lowest bit and their width: those that no bound cut short, and
    /// those that somebody outside asked for
    extracts: ids::IdMap<(ExprId, u32, u32), ExprId>,
    /// remainders by 2^16 - 1, and what they are of modulo that: by a fingerprint of the latter and their width
    remainders: HashMap<(u64, u32), Vec<(build::residue::Residue, ExprId)>>,
    /// sums that are congruent are told to have one remainder, which takes time
    congruent: bool,
    identity: Identity,
}

/// Identity of an arena: the numbers of their expressions mean nothing in others.
#[derive(Debug)]
struct Identity(u64);

impl Default for Identity {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// All ones in the low bits; 64 at most.
#[must_use]
pub fn mask(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}

impl Arena {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty one; `congruent`: in which sums that are congruent modulo 2^16 - 1 have one remainder (build/residue.rs). That is for
    /// functions that look at headers which others have changed, and costs others time for nothing.
    #[must_use]
    pub fn telling_congruent_sums(congruent: bool) -> Self {
        Self {
            congruent,
            ..Self::default()
        }
    }

    /// A number that no other arena of this process has, nor a clone of this one.
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.identity.0
    }

    fn entry(&self, e: ExprId) -> &Entry {
        // Numbers come from this arena alone, which never forgets.
        #[allow(clippy::indexing_slicing)]
        &self.entries[e.0 as usize]
    }

    /// The node of an expression.
    #[must_use]
    pub fn node(&self, e: ExprId) -> &Node {
        &self.entry(e).node
    }

    /// Its width in bits.
    #[must_use]
    pub fn width(&self, e: ExprId) -> u32 {
        self.entry(e).width
    }

    /// Its known bits.
    #[must_use]
    pub fn bits(&self, e: ExprId) -> Tnum {
        self.entry(e).bits
    }

    /// How many symbols there are: they are numbered from 0.
    #[must_use]
    pub fn symbol_count(&self) -> usize {
        self.symbols.len()
    }

    /// Whether there are symbols of this origin.
    #[must_use]
    pub fn has_symbols_of(&self, origin: Origin) -> bool {
        self.symbols.iter().any(|s| s.origin == origin)
    }

    /// The symbol of this name, width and origin, if there is one.
    #[must_use]
    pub fn find_symbol(&self, name: &str, width: u32, origin: Origin) -> Option<SymId> {
        self.names.get(&(name.to_owned(), width, origin)).copied()
    }

    /// How many of its lowest bits may be set; those above are 0.
    #[must_use]
    pub fn significant(&self, e: ExprId) -> u32 {
        let bits = self.bits(e);
        64 - (bits.value | bits.mask).leading_zeros()
    }

    /// Its least and greatest unsigned value, as far as known bits and a remainder's divisor say.
    #[must_use]
    pub fn bounds(&self, e: ExprId) -> (u64, u64) {
        self.bounds_within(e, 8)
    }

    fn bounds_within(&self, e: ExprId, depth: u32) -> (u64, u64) {
        let bits = self.bits(e);
        let (min, max) = (bits.value, bits.value | bits.mask);
        let known = match self.node(e) {
            _ if depth == 0 => None,
            Node::Bin(Bin::Rem, _, y) => self.constant(*y).filter(|c| *c > 0).map(|c| (0, c - 1)),
            Node::Ite(_, x, y) => {
                let (x, y) = (
                    self.bounds_within(*x, depth - 1),
                    self.bounds_within(*y, depth - 1),
                );
                Some((x.0.min(y.0), x.1.max(y.1)))
            }
            Node::Concat(parts) => match parts.as_ref() {
                [high, low] if self.constant(*high) == Some(0) => {
                    Some(self.bounds_within(*low, depth - 1))
                }
                _ => None,
            },
            Node::Extract { of, low: 0 } => {
                Some(self.bounds_within(*of, depth - 1)).filter(|b| b.1 <= mask(self.width(e)))
            }
            _ => None,
        };
        known.map_or((min, max), |(low, high)| (min.max(low), max.min(high)))
    }

    /// The number, if it is one.
    #[must_use]
    pub fn constant(&self, e: ExprId) -> Option<u64> {
        match self.entry(e).node {
            Node::Const(c) => Some(c),
            _ => None,
        }
    }

    /// The expression of a number, if it was made.
    #[must_use]
    pub fn find_constant(&self, value: u64, width: u32) -> Option<ExprId> {
        self.found(&Node::Const(value), width).1
    }

    /// How many expressions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A symbol.
    #[must_use]
    pub fn symbol(&self, s: SymId) -> &Symbol {
        #[allow(clippy::indexing_slicing)]
        &self.symbols[s.0 as usize]
    }

    /// The symbol of this name, width and origin as an expression; made if there is none.
    pub fn sym(&mut self, name: &str, width: u32, origin: Origin) -> ExprId {
        let key = (name.to_owned(), width, origin);
        let id = if let Some(id) = self.names.get(&key) {
            *id
        } else {
            let id = SymId(self.symbols.len() as u32);
            self.symbols.push(Symbol {
                name: name.to_owned(),
                width,
                origin,
            });
            self.names.insert(key, id);
            id
        };
        let width = self.symbol(id).width;
        self.add(Node::Sym(id), width)
    }

    /// Its hash, and itself if it was made.
    fn found(&self, node: &Node, width: u32) -> (u32, Option<ExprId>) {
        let hash = self.known.hash(node, width);
        let same = |id: ExprId| {
            let entry = self.entry(id);
            entry.width == width && entry.node == *node
        };
        (hash, self.known.find(hash, same))
    }

    fn add(&mut self, node: Node, width: u32) -> ExprId {
        let hash = match self.found(&node, width) {
            (_, Some(id)) => return id,
            (hash, None) => hash,
        };
        let bits = self.known_bits(&node, width).low(width);
        if bits.is_constant() && !matches!(node, Node::Const(_)) {
            return self.add(Node::Const(bits.value), width);
        }
        let mut support = Support::own(&node);
        walk::each_child(&node, |c| support = support.or(self.entry(c).support));
        let id = ExprId(self.entries.len() as u32);
        self.entries.push(Entry {
            node,
            width,
            bits,
            support,
        });
        self.known.insert(hash, id);
        id
    }

    /// Symbols that it can depend on.
    #[must_use]
    pub fn support(&self, e: ExprId) -> Support {
        self.entry(e).support
    }

    fn known_bits(&self, node: &Node, width: u32) -> Tnum {
        let b = |e: &ExprId| self.bits(*e);
        match node {
            Node::Const(c) => Tnum::constant(*c),
            Node::Sym(_) | Node::Byte { .. } => Tnum::UNKNOWN,
            Node::Concat(parts) => parts.iter().fold(Tnum::constant(0), |t, p| {
                let shifted = if self.width(*p) >= 64 {
                    Tnum::constant(0)
                } else {
                    t.lsh(self.width(*p))
                };
                shifted.or(b(p))
            }),
            Node::Extract { of, low } => b(of).rsh(*low),
            Node::SignExtend(e) => b(e).sign_extend(self.width(*e)),
            Node::Cmp(..) => Tnum::UNKNOWN.low(1),
            Node::Ite(_, x, y) => b(x).join(b(y)),
            Node::Bin(op, x, y) => match op {
                Bin::Add => b(x).plus(b(y)),
                Bin::Mul => b(x).times(b(y)),
                Bin::And => b(x).and(b(y)),
                Bin::Or => b(x).or(b(y)),
                Bin::Xor => b(x).xor(b(y)),
                // A remainder is at most what is divided; a quotient, too.
                Bin::Div | Bin::Shr => Tnum::range(0, b(x).value | b(x).mask),
                Bin::Rem => match self.constant(*y) {
                    Some(c) if c > 0 => Tnum::range(0, c - 1),
                    _ => Tnum::range(0, b(x).value | b(x).mask),
                },
                _ => Tnum::UNKNOWN.low(width),
            },
        }
    }
}
