//! Comparisons in words: of a field with its possible values, and of offsets with the packet's length.

use millrace_model::expr::{ExprId, Node, Rel};

use super::bytes::{Order, Term};
use super::number::literal;
use super::{Printer, What};
use crate::names::member;

impl Printer<'_> {
    /// A comparison as it stands, or its contrary.
    pub(super) fn comparison(&self, rel: Rel, x: ExprId, y: ExprId, holds: bool) -> String {
        let a = self.arena;
        if rel == Rel::Eq {
            return self.equality(x, y, holds);
        }
        let kind = if rel == Rel::SignedLess {
            "signed "
        } else {
            ""
        };
        // The constant on the right.
        let (left, sign, right) = match (a.constant(x).is_some(), holds) {
            (false, true) => (x, "<", y),
            (false, false) => (x, ">=", y),
            (true, true) => (y, ">", x),
            (true, false) => (y, "<=", x),
        };
        let end = |e: ExprId| self.end(e).is_some();
        let lengths = self.is_length(left) || self.is_length(right) || end(left) || end(right);
        let side = |e: ExprId| {
            if let Some(end) = self.end(e) {
                end
            } else if lengths {
                self.position(e)
            } else {
                self.operand(e)
            }
        };
        format!("{} {kind}{sign} {}", side(left), side(right))
    }

    fn equality(&self, x: ExprId, y: ExprId, holds: bool) -> String {
        let a = self.arena;
        let (x, y) = if a.constant(x).is_some() {
            (y, x)
        } else {
            (x, y)
        };
        let sign = if holds { "==" } else { "!=" };
        if let Some(c) = a.constant(y) {
            if let Node::Sym(s) = a.node(x)
                && a.symbol(*s).name == "port"
                && let Some(name) = self.names.ports.get(c as usize)
            {
                // Of two ports, the one that is not the other.
                return match (self.names.ports.as_slice(), holds) {
                    ([a, b], false) => format!("port == {}", if c == 0 { b } else { a }),
                    _ => format!("port {sign} {name}"),
                };
            }
            if let Some((name, mask, _)) = self.masked(x)
                && c == 0
            {
                let all = self
                    .terms(x)
                    .is_some_and(|t| mask == millrace_model::expr::mask(8 * bytes_in(&t)));
                return if all {
                    format!("{name} {sign} 0")
                } else {
                    format!("{name} & {mask:#x} {sign} 0")
                };
            }
            if let Node::Concat(parts) = a.node(x)
                && let Some(whole) = self.whole_of(parts)
            {
                return format!("{} {sign} {}", self.operand(whole), literal(c, a.width(x)));
            }
            if let Some(terms) = self.terms(x) {
                return self.against(x, &terms, c, sign);
            }
            return format!("{} {sign} {}", self.operand(x), literal(c, a.width(x)));
        }
        // Fields are compared as they lie in the header.
        let wire = |e: ExprId| {
            let terms = self.terms(e)?;
            let significant = terms.iter().rposition(|t| *t != Term::Const(0))?;
            Some((terms.clone(), terms.get(..=significant)?.to_vec()))
        };
        if let (Some((all, p)), Some((other, q))) = (wire(x), wire(y))
            && all.len() == other.len()
            && p.len().max(q.len()) > 1
        {
            let field = |t: &[Term]| matches!(t, [Term::Packet(b, p), Term::Packet(c, q), ..] if b == c && *q == p + 1);
            if field(&p) || field(&q) {
                let n = p.len().max(q.len());
                let side = |t: &[Term]| {
                    let runs = self.runs(t.get(..n).unwrap_or(t), Order::Wire);
                    runs.join(" ++ ")
                };
                let (l, r) = if field(&p) {
                    (&all, &other)
                } else {
                    (&other, &all)
                };
                return format!("{} {sign} {}", side(l), side(r));
            }
        }
        let (x, y) = if matches!(a.node(y), Node::Byte { .. }) {
            (y, x)
        } else {
            (x, y)
        };
        format!("{} {sign} {}", self.operand(x), self.operand(y))
    }

    /// Bytes against a constant.
    fn against(&self, x: ExprId, terms: &[Term], c: u64, sign: &str) -> String {
        let width = self.arena.width(x);
        let ascending =
            matches!(terms, [Term::Packet(b, p), Term::Packet(d, q), ..] if b == d && *q == p + 1);
        let text = self.runs(terms, Order::Wire).join(" ++ ");
        let kept = match terms.first() {
            Some(Term::Of(e, i)) => self.state(*e).is_some_and(|(o, s)| match s.what {
                What::Bytes { from } => self
                    .names
                    .objects
                    .get(o)
                    .and_then(|p| member(&p.value, from + i))
                    .is_some_and(|m| m.network && m.bytes > 1),
                _ => false,
            }),
            _ => false,
        };
        if (ascending || kept) && !text.contains(" ++ ") && !text.contains('(') {
            let value = c.swap_bytes() >> (64 - width);
            return format!("{text} {sign} {}", field_value(&text, value));
        }
        let text = self.number(terms);
        format!("{text} {sign} {}", field_value(&text, c))
    }

    fn is_length(&self, e: ExprId) -> bool {
        let of = match self.arena.node(e) {
            Node::Concat(parts) => match parts.last() {
                Some(last) => *last,
                None => e,
            },
            _ => e,
        };
        matches!(self.arena.node(of), Node::Sym(s) if self.arena.symbol(*s).name == "length")
    }

    /// In words, if a number is where the packet ends by the IP header's length.
    fn end(&self, e: ExprId) -> Option<String> {
        let (from, name) = self.layout.network()?;
        let text = self.operand(e);
        let text = text
            .strip_prefix('(')
            .map_or(text.as_str(), |t| t.trim_end_matches(')'));
        let (field, counted) = match name {
            "ip" => ("ip.length", from),
            _ => ("ip6.length", from + 40),
        };
        let by = text.strip_prefix(field)?.strip_prefix(" + ")?;
        (by == counted.to_string()).then(|| format!("end({name})"))
    }

    /// A number that is compared with the packet's length: an offset in it.
    fn position(&self, e: ExprId) -> String {
        let a = self.arena;
        if let Some(along) = self.along(e) {
            return along.to_string();
        }
        let (terms, constant) = a.linear(e);
        let Some((from, name)) = self.layout.network() else {
            return self.operand(e);
        };
        let from = from as u64;
        if constant < from || constant > from + 4096 || self.is_length(e) {
            return self.operand(e);
        }
        let mut out = format!("at({name})");
        for (term, factor) in terms {
            out.push_str(" + ");
            if factor != 1 {
                out.push_str(&format!("{factor} * "));
            }
            out.push_str(&self.operand(term));
        }
        if constant > from {
            out.push_str(&format!(" + {}", constant - from));
        }
        out
    }
}

/// How many of these are bytes of the packet.
fn bytes_in(terms: &[Term]) -> u32 {
    let packet = terms.iter().filter(|t| matches!(t, Term::Packet(..)));
    packet.count() as u32
}

/// A field's value as its readers write it.
pub(crate) fn field_value(field: &str, value: u64) -> String {
    if field.ends_with(".type") && !field.ends_with("icmp.type") && !field.ends_with("icmp6.type") {
        return format!("{value:#06x}");
    }
    let address = ["ip.src", "ip.dst"];
    if address.iter().any(|a| field.ends_with(a)) && value >> 32 == 0 {
        return std::net::Ipv4Addr::from(value as u32).to_string();
    }
    literal(value, 64)
}
