//! An assignment found by walking: while a conjunct does not hold, what it should be is passed down through its
//! operations to a symbol or a byte, which is set so (propagation-based local search: Niemetz, Preiner,
//! Biere, CAV 2016). It never says that something cannot hold. Most questions of an execution can, and differ
//! little from one that did: the walk begins there and takes a few steps, where a solver begins anew.
//!
//! The draws are made from a fixed seed, so that the same questions get the same answers.

use crate::expr::eval::{Assignment, apply, apply_node};
use crate::expr::walk::cone;
use crate::expr::{Arena, Bin, ExprId, Node, Rel, mask};

/// Most steps of one walk.
const STEPS: usize = 1600;
/// After this many it begins again where it began, and draws otherwise.
const AGAIN: usize = 200;
/// Most expressions that one step passes a wish through.
const DEPTH: usize = 4000;

/// How often an assignment is proposed with nothing but heavy conjuncts open.
const TRIES: usize = 16;

/// Target of an expression, in the bits that matter.
#[derive(Clone, Copy)]
struct Wish {
    of: ExprId,
    value: u64,
    care: u64,
}

impl Wish {
    fn new(of: ExprId, value: u64, care: u64) -> Self {
        Self { of, value, care }
    }
}

struct Walk<'a> {
    arena: &'a Arena,
    order: Vec<ExprId>,
    values: Vec<u64>,
    at: Assignment,
    draw: u64,
}

/// An assignment under which all hold, begun at another, found within the evaluation of `work` expressions;
/// `accept` has the last word.
pub(super) fn search(
    arena: &Arena,
    all: &[ExprId],
    (from, work): (&Assignment, usize),
    heavy: &dyn Fn(ExprId) -> bool,
    accept: &dyn Fn(&Assignment) -> Option<Assignment>,
) -> Option<Assignment> {
    let order = cone(arena, all, |_| false);
    let steps = STEPS.min(work / order.len().max(1));
    let mut walk = Walk {
        arena,
        order,
        values: vec![0; arena.len()],
        at: Assignment::new(from.symbols.clone(), from.packet.clone()),
        draw: 0x9e37_79b9_7f4a_7c15,
    };
    let mut tried = 0;
    for step in 0..steps {
        if step % AGAIN == 0 {
            walk.at = Assignment::new(from.symbols.clone(), from.packet.clone());
        }
        walk.evaluate();
        let open: Vec<ExprId> = all
            .iter()
            .copied()
            .filter(|e| walk.value(*e) != 1)
            .collect();
        let light: Vec<ExprId> = open.iter().copied().filter(|e| !heavy(*e)).collect();
        // What is heavy are checksums mostly, which `accept` can put right.
        if open.is_empty() || (light.is_empty() && tried < TRIES) {
            tried += 1;
            let now = Assignment::new(walk.at.symbols.clone(), walk.at.packet.clone());
            if let Some(m) = accept(&now) {
                return Some(m);
            }
            if open.is_empty() {
                return None;
            }
        }
        let open = if light.is_empty() { open } else { light };
        let pick = walk.below(open.len() as u64) as usize;
        let of = *open.get(pick)?;
        // A wish that meets a constant is dropped; others may be drawn the next time.
        let _ = walk.grant(Wish::new(of, 1, 1));
    }
    None
}

impl Walk<'_> {
    fn random(&mut self) -> u64 {
        // xorshift64
        self.draw ^= self.draw << 13;
        self.draw ^= self.draw >> 7;
        self.draw ^= self.draw << 17;
        self.draw
    }

    fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.random() % n }
    }

    fn value(&self, e: ExprId) -> u64 {
        self.values.get(e.0 as usize).copied().unwrap_or(0)
    }

    fn evaluate(&mut self) {
        for i in 0..self.order.len() {
            let Some(&id) = self.order.get(i) else { break };
            let width = self.arena.width(id);
            let value = match self.arena.node(id) {
                Node::Sym(s) => self.at.symbols.get(s).copied().unwrap_or(0),
                Node::Byte { .. } => {
                    let at = self.offset(id);
                    u64::from(self.at.packet.get(&at).copied().unwrap_or(0))
                }
                node => apply_node(self.arena, node, width, |x| self.value(x)),
            };
            if let Some(slot) = self.values.get_mut(id.0 as usize) {
                *slot = value & mask(width);
            }
        }
    }

    fn offset(&self, byte: ExprId) -> u64 {
        match self.arena.node(byte) {
            Node::Byte { base, at } => {
                base.map_or(0, |b| self.value(b)).wrapping_add(*at as u64) & 0xffff
            }
            _ => 0,
        }
    }

    /// Passes a wish down to where it can be granted.
    fn grant(&mut self, first: Wish) -> Option<()> {
        let mut wishes = vec![first];
        let mut settings: Vec<(ExprId, u64)> = Vec::new();
        let mut depth = 0;
        while let Some(w) = wishes.pop() {
            depth += 1;
            if depth > DEPTH {
                return None;
            }
            let now = self.value(w.of);
            if (now ^ w.value) & w.care == 0 {
                continue;
            }
            let bits = self.arena.bits(w.of);
            if (w.value ^ bits.value) & !bits.mask & w.care != 0 {
                return None;
            }
            let whole = now & !w.care | w.value & w.care;
            match *self.arena.node(w.of) {
                Node::Sym(_) | Node::Byte { .. } => settings.push((w.of, whole)),
                Node::Const(_) => return None,
                Node::Concat(ref parts) => {
                    let mut low = 0;
                    for p in parts.iter().rev() {
                        let width = self.arena.width(*p);
                        let of = |n: u64| n.checked_shr(low).unwrap_or(0) & mask(width);
                        wishes.push(Wish::new(*p, of(w.value), of(w.care)));
                        low += width;
                    }
                }
                Node::Extract { of, low } => {
                    wishes.push(Wish::new(of, w.value << low, w.care << low));
                }
                Node::SignExtend(x) => {
                    let width = self.arena.width(x);
                    let sign = 1 << (width - 1);
                    let above = w.care & !mask(width) != 0;
                    wishes.push(Wish {
                        of: x,
                        value: if above {
                            let top = 1_u64 << (63 - (w.care & !mask(width)).leading_zeros());
                            let negative = w.value & top != 0;
                            w.value & mask(width) & !sign | if negative { sign } else { 0 }
                        } else {
                            w.value
                        },
                        care: w.care & mask(width) | if above { sign } else { 0 },
                    });
                }
                Node::Ite(c, x, y) => {
                    let (taken, other) = if self.value(c) == 1 { (x, y) } else { (y, x) };
                    let fits = (self.value(other) ^ w.value) & w.care == 0;
                    let fixed = self.arena.constant(taken).is_some();
                    let flip = fixed || self.below(100) < if fits { 80 } else { 40 };
                    if flip {
                        wishes.push(Wish::new(c, self.value(c) ^ 1, 1));
                        wishes.push(Wish { of: other, ..w });
                    } else {
                        wishes.push(Wish { of: taken, ..w });
                    }
                }
                Node::Cmp(rel, a, b) => {
                    let wish = self.compared(rel, a, b, w.value & 1 == 1)?;
                    wishes.push(wish);
                }
                Node::Bin(op, a, b) => self.binary(op, (a, b), w, whole, &mut wishes)?,
            }
        }
        for (leaf, value) in settings {
            match self.arena.node(leaf) {
                Node::Sym(s) => {
                    self.at.symbols.insert(*s, value);
                }
                _ => {
                    let at = self.offset(leaf);
                    self.at.packet.insert(at, value as u8);
                }
            }
        }
        Some(())
    }

    fn all_of(&self, of: ExprId, value: u64) -> Wish {
        let care = mask(self.arena.width(of));
        Wish::new(of, value & care, care)
    }

    /// The operand to change: one that is no constant.
    fn chosen(&mut self, a: ExprId, b: ExprId) -> Option<bool> {
        match (self.arena.constant(a), self.arena.constant(b)) {
            (Some(_), Some(_)) => None,
            (Some(_), None) => Some(false),
            (None, Some(_)) => Some(true),
            (None, None) => Some(self.below(2) == 0),
        }
    }

    fn binary(
        &mut self,
        op: Bin,
        (a, b): (ExprId, ExprId),
        w: Wish,
        whole: u64,
        wishes: &mut Vec<Wish>,
    ) -> Option<()> {
        let width = self.arena.width(w.of);
        let first = self.chosen(a, b)?;
        let (x, o) = if first { (a, b) } else { (b, a) };
        let other = self.value(o);
        let wish = match op {
            Bin::Add => {
                // Carries go upwards: what is above the highest bit that matters does not.
                let most = 64 - w.care.leading_zeros();
                Wish::new(x, whole.wrapping_sub(other) & mask(width), mask(most))
            }
            Bin::Xor => Wish::new(x, w.value ^ other, w.care),
            Bin::And => {
                let ones = w.value & w.care;
                if ones & !other != 0 {
                    wishes.push(Wish::new(o, ones, ones));
                }
                Wish::new(x, w.value, w.care & (other | ones))
            }
            Bin::Or => {
                let zeros = !w.value & w.care;
                if zeros & other != 0 {
                    wishes.push(Wish::new(o, 0, zeros));
                }
                Wish::new(x, w.value, w.care & (!other | zeros))
            }
            Bin::Mul => {
                let by = other.trailing_zeros();
                if other == 0 || whole & mask(by) != 0 {
                    let v = self.random();
                    self.all_of(o, v | 1)
                } else {
                    let odd = other >> by;
                    // Newton: each round doubles the bits that are right.
                    let inverse = (0..6).fold(odd, |i, _| {
                        i.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(i)))
                    });
                    let care = mask(width - by.min(width - 1));
                    Wish::new(x, (whole >> by).wrapping_mul(inverse) & care, care)
                }
            }
            Bin::Div | Bin::Rem if first => {
                if other == 0 {
                    return None;
                }
                let value = if op == Bin::Div {
                    let rest = self.below(other);
                    whole.checked_mul(other)?.checked_add(rest)?
                } else {
                    self.value(x) / other * other + whole
                };
                self.all_of(x, value)
            }
            Bin::Shl | Bin::Shr | Bin::Sar => {
                let fits =
                    |n: &u64, e: &Self| (apply(op, width, e.value(a), *n) ^ w.value) & w.care == 0;
                let amounts: Vec<u64> = (0..u64::from(width)).filter(|n| fits(n, self)).collect();
                let variable = self.arena.constant(b).is_none();
                if variable && !amounts.is_empty() && (!first || self.below(2) == 0) {
                    let i = self.below(amounts.len() as u64) as usize;
                    self.all_of(b, *amounts.get(i)?)
                } else if self.arena.constant(a).is_some() {
                    return None;
                } else {
                    let by = self.value(b);
                    let (value, care) = match op {
                        Bin::Shl => (
                            w.value.checked_shr(by as u32)?,
                            w.care.checked_shr(by as u32)?,
                        ),
                        _ => (
                            w.value.checked_shl(by as u32)?,
                            w.care.checked_shl(by as u32)?,
                        ),
                    };
                    Wish::new(a, value & mask(width), care & mask(width))
                }
            }
            _ => {
                let v = self.random();
                self.all_of(x, v)
            }
        };
        wishes.push(wish);
        Some(())
    }

    /// A value of one side for which the comparison is what it should be.
    fn compared(&mut self, rel: Rel, a: ExprId, b: ExprId, holds: bool) -> Option<Wish> {
        let left = self.chosen(a, b)?;
        let (x, o) = if left { (a, b) } else { (b, a) };
        let other = self.value(o);
        if rel == Rel::Eq {
            if holds {
                return Some(self.all_of(x, other));
            }
            let open = self.arena.bits(x).mask & mask(self.arena.width(x));
            let flip = self.random() & open;
            let flip = if flip == 0 { open } else { flip };
            return Some(self.all_of(x, self.value(x) ^ flip));
        }
        let width = self.arena.width(a);
        // Signed order is unsigned order with the sign turned.
        let sign = if rel == Rel::SignedLess {
            1 << (width - 1)
        } else {
            0
        };
        let (min, max) = if sign == 0 {
            self.arena.bounds(x)
        } else {
            (0, mask(width))
        };
        let other = other ^ sign;
        // a < b, or b <= a
        let (low, high) = match (left, holds) {
            (true, true) => (min, other.checked_sub(1)?),
            (true, false) => (other, max),
            (false, true) => (other.checked_add(1)?, max),
            (false, false) => (min, other),
        };
        let (low, high) = (low.max(min), high.min(max));
        if low > high {
            return None;
        }
        let near = if (left && holds) || (!left && !holds) {
            high
        } else {
            low
        };
        let span = high - low;
        let value = match self.below(4) {
            0 | 1 => near,
            2 => {
                let by = self.below(span.min(64) + 1);
                if near == high { high - by } else { low + by }
            }
            _ => low + self.below(span.saturating_add(1).max(1)),
        };
        // Lengths and offsets come in units: what is now, and whole units from it, can be reached.
        let unit = 16;
        let rest = (self.value(x) ^ sign).wrapping_sub(value) % unit;
        let up = value.checked_add(rest).filter(|v| *v <= high);
        let down = value
            .checked_sub((unit - rest) % unit)
            .filter(|v| *v >= low);
        let value = match (self.below(2), up.or(down)) {
            (0, Some(whole)) => whole,
            _ => value,
        };
        Some(self.all_of(x, value ^ sign))
    }
}
