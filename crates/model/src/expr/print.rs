//! Expressions as a person reads them.

use super::walk::cone;
use super::{Arena, Bin, ExprId, Node, Rel};
use crate::layout::Layout;

/// Beyond so many nodes only what an expression depends on is shown.
const MOST: usize = 48;

/// Names for a path.
pub struct Printer<'a> {
    /// the expressions
    pub arena: &'a Arena,
    /// what the packet's bytes are
    pub layout: &'a Layout,
}

impl Printer<'_> {
    /// An expression.
    #[must_use]
    pub fn text(&self, e: ExprId) -> String {
        if cone(self.arena, &[e], |_| false).len() > MOST {
            let of = self.layout.sources(self.arena, e);
            return match of.len() {
                0..=8 => format!("f({})", of.join(", ")),
                n => format!("f({}, … {} more)", of[..6].join(", "), n - 6),
            };
        }
        self.term(e)
    }

    fn term(&self, e: ExprId) -> String {
        let a = self.arena;
        match a.node(e) {
            Node::Const(c) if *c < 10 => c.to_string(),
            Node::Const(c) => format!("{c:#x}"),
            Node::Sym(s) => a.symbol(*s).name.clone(),
            Node::Byte { .. } => self.bytes(&[e]).join(" ++ "),
            Node::Concat(parts) => self.parts(parts),
            Node::Extract { of, low } => {
                let high = low + a.width(e) - 1;
                format!("{}[{high}:{low}]", self.operand(*of))
            }
            Node::SignExtend(x) => format!("sext({})", self.term(*x)),
            Node::Bin(Bin::Xor, x, y) if a.width(e) == 1 => self.negation(*x, *y),
            Node::Bin(op, x, y) => {
                let sign = match op {
                    Bin::Add => "+",
                    Bin::Mul => "*",
                    Bin::Div => "/",
                    Bin::Rem => "%",
                    Bin::SignedDiv => "/s",
                    Bin::SignedRem => "%s",
                    Bin::And if a.width(e) == 1 => "and",
                    Bin::Or if a.width(e) == 1 => "or",
                    Bin::And => "&",
                    Bin::Or => "|",
                    Bin::Xor => "^",
                    Bin::Shl => "<<",
                    Bin::Shr => ">>",
                    Bin::Sar => ">>s",
                    Bin::MulHigh => "*high",
                };
                format!("{} {sign} {}", self.operand(*x), self.operand(*y))
            }
            Node::Cmp(rel, x, y) => self.comparison(*rel, *x, *y, false),
            Node::Ite(c, x, y) => format!(
                "if {} then {} else {}",
                self.operand(*c),
                self.operand(*x),
                self.operand(*y)
            ),
        }
    }

    fn operand(&self, e: ExprId) -> String {
        let text = self.term(e);
        if text.contains(' ') && !text.ends_with(')') {
            format!("({text})")
        } else {
            text
        }
    }

    fn negation(&self, x: ExprId, y: ExprId) -> String {
        let one = |e: ExprId| self.arena.constant(e) == Some(1);
        let inner = if one(x) {
            y
        } else if one(y) {
            x
        } else {
            return format!("{} ^ {}", self.operand(x), self.operand(y));
        };
        match *self.arena.node(inner) {
            Node::Cmp(rel, a, b) => self.comparison(rel, a, b, true),
            _ => format!("not {}", self.operand(inner)),
        }
    }

    fn comparison(&self, rel: Rel, x: ExprId, y: ExprId, negated: bool) -> String {
        let sign = match (rel, negated) {
            (Rel::Eq, false) => "==",
            (Rel::Eq, true) => "!=",
            (Rel::Less, false) => "<",
            (Rel::Less, true) => ">=",
            (Rel::SignedLess, false) => "<s",
            (Rel::SignedLess, true) => ">=s",
        };
        // A field in network byte order, loaded as the machine's, against a constant.
        if let (Rel::Eq, Some(bytes), Some(c)) = (rel, self.memory(x), self.arena.constant(y))
            && let [field] = self.bytes(&bytes).as_slice()
        {
            let value = c.swap_bytes() >> (64 - self.arena.width(x));
            return format!("{field} {sign} {value:#x}");
        }
        format!("{} {sign} {}", self.operand(x), self.operand(y))
    }

    /// The bytes of a little-endian load in memory order, if it is one of two packet bytes or more.
    fn memory(&self, e: ExprId) -> Option<Vec<ExprId>> {
        let Node::Concat(parts) = self.arena.node(e) else {
            return None;
        };
        let is_byte = |p: &ExprId| matches!(self.arena.node(*p), Node::Byte { .. });
        let descending = parts.windows(2).all(|w| {
            matches!(
                (self.arena.node(w[0]), self.arena.node(w[1])),
                (Node::Byte { base: x, at: p }, Node::Byte { base: y, at: q }) if x == y && *p == q + 1
            )
        });
        (parts.iter().all(is_byte) && descending).then(|| parts.iter().rev().copied().collect())
    }

    fn parts(&self, parts: &[ExprId]) -> String {
        let zero = |p: &&ExprId| self.arena.constant(**p) == Some(0);
        let rest: Vec<ExprId> = parts.iter().skip_while(zero).copied().collect();
        let descending = rest.windows(2).next().is_some_and(|w| {
            matches!(
                (self.arena.node(w[0]), self.arena.node(w[1])),
                (Node::Byte { base: x, at: p }, Node::Byte { base: y, at: q }) if x == y && *p == q + 1
            )
        });
        if descending && rest.iter().all(|p| self.arena.width(*p) == 8) {
            let memory: Vec<ExprId> = rest.iter().rev().copied().collect();
            return format!("le({})", self.bytes(&memory).join(" ++ "));
        }
        // Shifted left: a product.
        if let [e, zeros] = rest.as_slice()
            && self.arena.constant(*zeros) == Some(0)
        {
            let by = 1_u128 << self.arena.width(*zeros);
            return format!("{} * {by}", self.operand(*e));
        }
        self.bytes(&rest).join(" ++ ")
    }

    /// Bytes in the order in which they lie in memory, as fields.
    #[must_use]
    pub fn bytes(&self, bytes: &[ExprId]) -> Vec<String> {
        let a = self.arena;
        let mut out = Vec::new();
        let mut i = 0;
        while let Some(e) = bytes.get(i) {
            let mut n = 1;
            match a.node(*e) {
                Node::Byte { base, at } => {
                    let field = self.layout.field(a, *base, *at);
                    let most = field.as_ref().map_or(i64::MAX, |f| f.2 - f.1);
                    while n < most
                        && bytes.get(i + n as usize).is_some_and(|next| {
                            let follows = matches!(a.node(*next), Node::Byte { base: b, at: t } if b == base && *t == at + n);
                            // Where a field begins, another run begins.
                            let begins = field.is_none() && self.layout.field(a, *base, at + n).is_some();
                            follows && !begins
                        })
                    {
                        n += 1;
                    }
                    out.push(match field {
                        Some((name, 0, all)) if n == all => name,
                        Some((name, from, _)) if n == 1 => format!("{name}[{from}]"),
                        Some((name, from, _)) => format!("{name}[{from}..{}]", from + n),
                        None => {
                            let from =
                                base.map_or(String::new(), |b| format!("{} + ", self.text(b)));
                            if n == 1 {
                                format!("pkt[{from}{at}]")
                            } else {
                                format!("pkt[{from}{at}..{}]", at + n)
                            }
                        }
                    });
                }
                Node::Const(_) => {
                    let value = |k: i64| bytes.get(i + k as usize).and_then(|b| a.constant(*b));
                    while value(n).is_some() {
                        n += 1;
                    }
                    let all: Vec<u64> = (0..n).filter_map(value).collect();
                    if all.iter().all(|v| *v == 0) && a.width(*e) == 8 {
                        out.push(format!("zeros:{n}"));
                    } else {
                        let hex: String = all.iter().map(|v| format!("{v:02x}")).collect();
                        out.push(format!("0x{hex}"));
                    }
                }
                Node::Extract { of, low } if a.width(*e) == 8 => {
                    while bytes.get(i + n as usize).is_some_and(|next| {
                        a.width(*next) == 8
                            && matches!(a.node(*next), Node::Extract { of: o, low: l } if o == of && i64::from(*l) == i64::from(*low) + 8 * n)
                    }) {
                        n += 1;
                    }
                    out.push(if *low == 0 && 8 * n == i64::from(a.width(*of)) {
                        self.text(*of)
                    } else if *low == 0 {
                        format!("u{}({})", 8 * n, self.text(*of))
                    } else {
                        format!("{}[{}:{low}]", self.text(*of), i64::from(*low) + 8 * n - 1)
                    });
                }
                _ => out.push(self.text(*e)),
            }
            i += n as usize;
        }
        out
    }
}
