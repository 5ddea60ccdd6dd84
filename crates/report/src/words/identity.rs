//! Identity of expressions of different paths, and of different entries of a program: two are equal that are the same
//! function of the same fields of headers, whatever the offsets at which these paths have the headers.
//!
//! An identity is a hash of 64 bits; expressions that differ have different ones but for a collision.

use std::hash::{DefaultHasher, Hash, Hasher};

use millrace_model::expr::ids::IdMap;
use millrace_model::expr::walk::each_child;
use millrace_model::expr::{Bin, ExprId, Node, Rel};
use millrace_model::symbols::What;

use super::bytes::Term;
use super::{DEEPEST, Printer};

/// Whether source and destination change places in the identity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ends {
    /// as they are
    Kept,
    /// every field of the source stands for its counterpart of the destination, and the other way round
    Exchanged,
}

fn hash(of: impl Hash) -> u64 {
    let mut h = DefaultHasher::new();
    of.hash(&mut h);
    h.finish()
}

impl Printer<'_> {
    /// Identity of bytes one after another.
    pub(crate) fn identity(&self, bytes: &[ExprId], ends: Ends) -> u64 {
        let mut known = IdMap::default();
        hash(
            bytes
                .iter()
                .map(|e| self.identity_of(*e, ends, &mut known))
                .collect::<Vec<u64>>(),
        )
    }

    /// Operands before what they are operands of: depth is no matter.
    fn identity_of(&self, e: ExprId, ends: Ends, known: &mut IdMap<ExprId, u64>) -> u64 {
        let mut todo = vec![(e, false)];
        while let Some((e, operands)) = todo.pop() {
            if known.contains_key(&e) {
                continue;
            }
            if operands {
                known.insert(e, self.operation(e, known));
            } else if let Some(leaf) = self.leaf(e, ends) {
                known.insert(e, leaf);
            } else {
                todo.push((e, true));
                each_child(self.arena.node(e), |c| todo.push((c, false)));
            }
        }
        known.get(&e).copied().unwrap_or_default()
    }

    /// Identity of what stands for itself: constants, fields, state, and what is told apart by what it comes to.
    fn leaf(&self, e: ExprId, ends: Ends) -> Option<u64> {
        let a = self.arena;
        if let Some(along) = self.along(e) {
            return Some(hash(("along", along)));
        }
        if self.is_any(e) {
            return Some(hash("any"));
        }
        if a.width(e) == 8
            && let Some([Term::Of(of, byte)]) = self.terms(e).as_deref()
            && let Some((object, name)) = self.state(*of)
            && let What::Bytes { from } = name.what
        {
            let entry = self.entry_identity(object, name.entry);
            return Some(hash(("value", object, entry, from + byte)));
        }
        match *a.node(e) {
            Node::Const(c) => Some(hash(("constant", c))),
            Node::Byte { base, at } => {
                if let Some((name, byte, _)) = self.named(base, at) {
                    let name = match ends {
                        Ends::Kept => name,
                        Ends::Exchanged => name.exchanged(),
                    };
                    return Some(hash(("field", name, byte)));
                }
                if let Some(along) = self.layout.place(a, base, at, self.memory) {
                    return Some(hash(("byte", along)));
                }
                match (base, self.layout.network()) {
                    (None, Some((from, header))) if at >= from => {
                        Some(hash(("byte", header, at - from)))
                    }
                    (None, _) => Some(hash(("byte", at))),
                    (Some(_), _) => None,
                }
            }
            Node::Sym(s) => Some(match self.state(e) {
                Some((object, name)) if name.what != What::Number => {
                    let entry = self.entry_identity(object, name.entry);
                    hash(("state", object, entry, name.what, a.width(e)))
                }
                _ => hash(("symbol", &a.symbol(s).name)),
            }),
            _ => None,
        }
    }

    /// Identity of an entry that the path touches: its key.
    fn entry_identity(&self, object: usize, entry: u32) -> (u32, u64) {
        match self.keys.get(&(object, entry)) {
            Some(key) if entry != 0 && self.depth < DEEPEST => {
                let deeper = Printer {
                    depth: self.depth + 1,
                    ..*self
                };
                (0, deeper.identity(key, Ends::Kept))
            }
            _ => (entry, 0),
        }
    }

    /// Identity of an operation whose operands have theirs.
    fn operation(&self, e: ExprId, known: &IdMap<ExprId, u64>) -> u64 {
        let of = |e: &ExprId| known.get(e).copied().unwrap_or_default();
        let sorted = |x: &ExprId, y: &ExprId| {
            let (x, y) = (of(x), of(y));
            (x.min(y), x.max(y))
        };
        let width = self.arena.width(e);
        match self.arena.node(e) {
            Node::Byte { base, at } => hash(("byte", base.as_ref().map(of), at)),
            Node::Extract { of: whole, low } => hash(("extract", of(whole), low, width)),
            Node::SignExtend(x) => hash(("signed", of(x), width)),
            Node::Concat(parts) => hash(("concat", parts.iter().map(of).collect::<Vec<u64>>())),
            Node::Ite(c, x, y) => hash(("choice", of(c), of(x), of(y))),
            Node::Bin(op, x, y) => {
                let free = matches!(
                    op,
                    Bin::Add | Bin::Mul | Bin::MulHigh | Bin::And | Bin::Or | Bin::Xor
                );
                let operands = if free { sorted(x, y) } else { (of(x), of(y)) };
                hash(("operation", op, operands, width))
            }
            Node::Cmp(Rel::Eq, x, y) => hash(("equal", sorted(x, y))),
            Node::Cmp(rel, x, y) => hash(("relation", rel, of(x), of(y))),
            // These stand for themselves.
            Node::Const(_) | Node::Sym(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use millrace_model::expr::Arena;

    use super::*;
    use crate::layout::Layout;
    use crate::names::Names;
    use crate::words::{Keys, Letters, Memory};

    fn byte(a: &mut Arena, at: u64) -> ExprId {
        let at = a.number(at, 64);
        a.byte(at)
    }

    /// That bytes of the packet have these values.
    fn guard(a: &mut Arena, bytes: &[(u64, u64)]) -> Vec<ExprId> {
        let is = bytes.iter().map(|(at, value)| {
            let (byte, value) = (byte(a, *at), a.number(*value, 8));
            a.compare(Rel::Eq, byte, value)
        });
        is.collect()
    }

    fn identity(a: &Arena, guard: &[ExprId], of: &[ExprId], ends: Ends) -> u64 {
        let memory = Memory::default();
        let printer = Printer {
            arena: a,
            layout: &Layout::of(a, guard, &memory),
            names: &Names::default(),
            keys: &Keys::new(),
            letters: &Letters::default(),
            memory: &memory,
            depth: 0,
        };
        printer.identity(of, ends)
    }

    const IPV4: (u64, u64) = (12, 8);
    const IHL: (u64, u64) = (14, 0x45);
    const UDP: (u64, u64) = (23, 17);

    #[test]
    fn a_field_is_the_same_wherever_a_path_has_its_header() {
        let mut a = Arena::new();
        let fixed = guard(&mut a, &[IPV4, (13, 0), IHL, UDP]);
        let here = byte(&mut a, 34);
        // Behind a VLAN tag, and behind a header whose length no condition fixes.
        let tagged = guard(
            &mut a,
            &[(12, 0x81), (13, 0), (16, 8), (17, 0), (18, 0x45), (27, 17)],
        );
        let behind = byte(&mut a, 38);
        let open = guard(&mut a, &[IPV4, (13, 0), UDP]);
        let first = byte(&mut a, 14);
        let low = a.extract(first, 0, 4);
        let (high, zeros) = (a.number(0, 58), a.number(0, 2));
        let length = a.concat(&[high, low, zeros]);
        let at_network = a.number(14, 64);
        let offset = a.binary(Bin::Add, length, at_network);
        let computed = a.byte(offset);
        let expected = identity(&a, &fixed, &[here], Ends::Kept);
        assert_eq!(identity(&a, &tagged, &[behind], Ends::Kept), expected);
        assert_eq!(identity(&a, &open, &[computed], Ends::Kept), expected);
        // Other guards make other fields of the same bytes.
        assert_ne!(identity(&a, &tagged, &[here], Ends::Kept), expected);
        let tcp = guard(&mut a, &[IPV4, (13, 0), IHL, (23, 6)]);
        assert_ne!(identity(&a, &tcp, &[here], Ends::Kept), expected);
    }

    #[test]
    fn source_and_destination_change_places() {
        let mut a = Arena::new();
        let guard = guard(&mut a, &[IPV4, (13, 0), IHL, UDP]);
        let bytes = |a: &mut Arena, all: &[u64]| -> Vec<ExprId> {
            all.iter().map(|at| byte(a, *at)).collect()
        };
        let (sent, answer) = (bytes(&mut a, &[29, 35, 37]), bytes(&mut a, &[33, 37, 35]));
        let other = bytes(&mut a, &[33, 37, 36]);
        let of = |bytes: &[ExprId], ends| identity(&a, &guard, bytes, ends);
        assert_ne!(of(&sent, Ends::Kept), of(&answer, Ends::Kept));
        assert_eq!(of(&sent, Ends::Exchanged), of(&answer, Ends::Kept));
        assert_eq!(of(&answer, Ends::Exchanged), of(&sent, Ends::Kept));
        assert_ne!(of(&sent, Ends::Exchanged), of(&other, Ends::Kept));
    }

    #[test]
    fn functions_of_the_same_fields_differ() {
        let mut a = Arena::new();
        let guard = guard(&mut a, &[IPV4, (13, 0), IHL, UDP]);
        let (x, y) = (byte(&mut a, 29), byte(&mut a, 35));
        let all = [Bin::Add, Bin::Xor, Bin::Or, Bin::Shl, Bin::Rem].map(|op| a.binary(op, x, y));
        let turned = a.binary(Bin::Rem, y, x);
        let more = a.number(1, 8);
        let more = a.binary(Bin::Add, x, more);
        let each: std::collections::BTreeSet<u64> = all
            .iter()
            .chain(&[turned, more, x, y])
            .map(|e| identity(&a, &guard, &[*e], Ends::Kept))
            .collect();
        assert_eq!(each.len(), all.len() + 4);
    }
}
