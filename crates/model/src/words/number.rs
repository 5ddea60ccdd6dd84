//! Numbers: arithmetic as it is written, fields and members by name, bits of a field as a mask.

use super::bytes::{Order, Term, swapped};
use super::{Printer, What};
use crate::expr::{Bin, ExprId, Node, Rel};
use crate::layout::fields;
use crate::names::member;

/// How bits of a field stand in a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kept {
    /// where they stand in the header's number
    Same,
    /// elsewhere, or in the machine's order: only whether they are all 0 means the same
    Moved,
}

/// A number for people: decimal where it is short or round, or stands for less than zero.
pub(super) fn literal(c: u64, width: u32) -> String {
    let round = c.is_multiple_of(1000) || c.is_multiple_of(10_000_000);
    if c < 100_000 || round {
        return c.to_string();
    }
    let above = crate::expr::mask(width) - c;
    if width >= 16 && above < 1024 {
        return format!("-{}", above + 1);
    }
    format!("{c:#x}")
}

impl Printer<'_> {
    pub(super) fn term(&self, e: ExprId) -> String {
        let a = self.arena;
        match a.node(e) {
            Node::Const(c) => literal(*c, a.width(e)),
            Node::Sym(_) => self.symbol(e),
            Node::Byte { .. } => self.bytes(&[e], Order::Memory).join(" ++ "),
            Node::Concat(parts) => self.concat(e, parts),
            Node::Extract { of, low } => self.extract(e, *of, *low),
            Node::SignExtend(x) => format!("signed({})", self.term(*x)),
            Node::Bin(..) | Node::Cmp(..) if a.width(e) == 1 => self.condition(e, true),
            Node::Bin(Bin::Add, ..) => self.sum(e),
            Node::Bin(op, x, y) => self.binary(*op, *x, *y),
            Node::Cmp(..) => self.condition(e, true),
            Node::Ite(c, x, y) => format!(
                "({} ? {} : {})",
                self.condition(*c, true),
                self.operand(*x),
                self.operand(*y)
            ),
        }
    }

    /// Arithmetic as C writes it; a mask is read as such in hexadecimal.
    pub(super) fn binary(&self, op: Bin, x: ExprId, y: ExprId) -> String {
        let sign = match op {
            Bin::Add => "+",
            Bin::Mul => "*",
            Bin::Div => "/",
            Bin::Rem => "%",
            Bin::SignedDiv => "/signed",
            Bin::SignedRem => "%signed",
            Bin::And => "&",
            Bin::Or => "|",
            Bin::Xor => "^",
            Bin::Shl => "<<",
            Bin::Shr => ">>",
            Bin::Sar => ">>signed",
            Bin::MulHigh => "*high",
        };
        let bits = matches!(op, Bin::And | Bin::Or | Bin::Xor);
        let side = |e: ExprId| match self.arena.constant(e) {
            Some(c) if bits => format!("{c:#x}"),
            _ => self.operand(e),
        };
        // The constant on the right, where the order is free.
        let free = bits || matches!(op, Bin::Add | Bin::Mul | Bin::MulHigh);
        let (x, y) = if free && self.arena.constant(x).is_some() {
            (y, x)
        } else {
            (x, y)
        };
        format!("{} {sign} {}", side(x), side(y))
    }

    pub(super) fn operand(&self, e: ExprId) -> String {
        let text = self.term(e);
        let bare = |t: &str| {
            let mut depth = 0_i32;
            // A space outside all brackets: more than one word.
            t.chars().any(|c| {
                depth += match c {
                    '(' | '[' | '{' => 1,
                    ')' | ']' | '}' => -1,
                    _ => 0,
                };
                c == ' ' && depth == 0
            })
        };
        if bare(&text) {
            format!("({text})")
        } else {
            text
        }
    }

    /// A sum, what is added negative as a difference.
    fn sum(&self, e: ExprId) -> String {
        let a = self.arena;
        let width = a.width(e);
        let (terms, constant) = a.linear(e);
        let half = 1_u64 << (width - 1);
        let mut out = String::new();
        let mut push = |positive: bool, text: &str| {
            match (out.is_empty(), positive) {
                (true, true) => {}
                (true, false) => out.push('-'),
                (false, true) => out.push_str(" + "),
                (false, false) => out.push_str(" - "),
            }
            out.push_str(text);
        };
        let mask = crate::expr::mask(width);
        let signed = |f: u64| {
            let f = f & mask;
            if f >= half && width >= 8 {
                (false, f.wrapping_neg() & mask)
            } else {
                (true, f)
            }
        };
        let (first, last): (Vec<_>, Vec<_>) = terms.iter().partition(|t| signed(t.1).0);
        for (term, factor) in first.into_iter().chain(last) {
            let (positive, factor) = signed(factor);
            let text = self.operand(term);
            match factor {
                1 => push(positive, &text),
                n => push(positive, &format!("{n} * {text}")),
            }
        }
        let (positive, c) = signed(constant);
        if c != 0 || terms.is_empty() {
            push(positive, &literal(c, width));
        }
        out
    }

    fn extract(&self, e: ExprId, of: ExprId, low: u32) -> String {
        let a = self.arena;
        let width = a.width(e);
        if let Node::Byte { base, at } = *a.node(of)
            && let Some((name, byte, _)) = self.layout.field(a, base, at)
            && let Some(part) = fields::part(&name, byte, low, width)
        {
            return part;
        }
        if let Some(terms) = self.terms(e) {
            return self.number(&terms);
        }
        let text = self.operand(of);
        match width {
            1 => format!("bit {low} of {text}"),
            _ => format!("{text}[{}:{low}]", low + width - 1),
        }
    }

    fn concat(&self, e: ExprId, parts: &[ExprId]) -> String {
        let a = self.arena;
        if let Some(whole) = self.whole_of(parts) {
            return self.term(whole);
        }
        if let Some(terms) = self.terms(e) {
            return self.number(&terms);
        }
        if let Some((text, mask, Kept::Same)) = self.masked(e) {
            return format!("{text} & {mask:#x}");
        }
        let zero = |p: &&ExprId| a.constant(**p) == Some(0);
        let rest: Vec<ExprId> = parts.iter().skip_while(zero).copied().collect();
        match rest.as_slice() {
            [one] => self.term(*one),
            // Shifted left: a product.
            [e, zeros] if a.constant(*zeros) == Some(0) => {
                format!("{} * {}", self.operand(*e), 1_u128 << a.width(*zeros))
            }
            // Bits that were kept in their place.
            rest => {
                let pieces: Vec<String> = rest.iter().map(|p| self.operand(*p)).collect();
                pieces.join(" ++ ")
            }
        }
    }

    /// The sum whose upper bits and lowest bits, which are kept as a sum of lowest bits, these are. That
    /// they are the same is tried, not proved.
    fn whole_of(&self, parts: &[ExprId]) -> Option<ExprId> {
        let a = self.arena;
        let mut rest = parts.iter().skip_while(|p| a.constant(**p) == Some(0));
        let (upper, low) = (*rest.next()?, *rest.next()?);
        let Node::Extract { of, low: from } = *a.node(upper) else {
            return None;
        };
        let top = from + a.width(upper);
        let complete = top == a.width(of) || (top < 64 && a.bounds(of).1 >> top == 0);
        let plausible = rest.next().is_none() && complete && a.width(low) == from;
        (plausible && self.is_low(of, low)).then_some(of)
    }

    /// Bytes of a number, the lowest first.
    pub(super) fn number(&self, terms: &[Term]) -> String {
        let a = self.arena;
        let significant = terms.iter().rposition(|t| *t != Term::Const(0));
        let Some(last) = significant else {
            return "0".to_owned();
        };
        let terms = terms.get(..=last).unwrap_or(terms);
        let constants: Option<Vec<u8>> = terms
            .iter()
            .map(|t| match t {
                Term::Const(c) => Some(*c),
                _ => None,
            })
            .collect();
        if let Some(bytes) = constants.filter(|b| b.len() <= 8) {
            let c = bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
            return literal(c, 64);
        }
        let zeros = terms.iter().take_while(|t| **t == Term::Const(0)).count();
        if zeros > 0 && zeros < 8 {
            let text = self.number(terms.get(zeros..).unwrap_or(&[]));
            return format!("({text}) * {}", 1_u64 << (8 * zeros));
        }
        // A field whose last byte is the lowest is the number that the header says.
        if let Some(Term::Packet(base, at)) = terms.first().copied()
            && terms.len() > 1
        {
            let run = |step: i64| {
                (0..)
                    .zip(terms)
                    .all(|(i, t)| *t == Term::Packet(base, at + step * i))
            };
            if let Some((name, from, all)) = self.layout.field(a, base, at) {
                let n = terms.len() as i64;
                if run(-1) && from + 1 == all && n == all {
                    return name;
                }
                if run(-1) && n <= from + 1 {
                    return format!("{name}[{}..{}]", from + 1 - n, from + 1);
                }
                if run(1) && from == 0 && n == all {
                    return format!("le({name})");
                }
            }
        }
        // The machine's order of what is kept in network order.
        if let Some(Term::Of(e, i)) = terms.first().copied()
            && let Some((object, name)) = self.state(e)
            && let What::Bytes { from } = name.what
            && let Some(parts) = self.names.objects.get(object)
            && let Some(m) = member(&parts.value, from + i)
            && m.network
            && m.bytes as usize == terms.len()
            && m.bytes > 1
        {
            let text = self.value(object, name.entry, m.from, m.bytes);
            let runs = self.runs(terms, Order::Memory);
            if runs.as_slice() == [swapped(&text, terms.len())] {
                return text;
            }
            if runs.as_slice() == [text.clone()] {
                return format!("le({text})");
            }
        }
        let runs = self.runs(terms, Order::Memory);
        match runs.as_slice() {
            [one] => one.clone(),
            // The highest first, as numbers are written.
            many => {
                let all: Vec<&str> = many.iter().rev().map(String::as_str).collect();
                all.join(" ++ ")
            }
        }
    }

    /// Some bits of a field: its name and the mask, as the header's number.
    pub(super) fn masked(&self, e: ExprId) -> Option<(String, u64, Kept)> {
        let a = self.arena;
        let Node::Concat(parts) = a.node(e) else {
            return None;
        };
        // For each byte of the packet the bits of it that are there, by their place in the number.
        let mut bits: Vec<(u32, Option<ExprId>, i64, u32)> = Vec::new();
        let mut place = 0;
        for p in parts.iter().rev() {
            let width = a.width(*p);
            let (of, low) = match *a.node(*p) {
                Node::Const(0) => {
                    place += width;
                    continue;
                }
                Node::Extract { of, low } => (of, low),
                _ => (*p, 0),
            };
            let Node::Byte { base, at } = *a.node(of) else {
                return None;
            };
            bits.extend((0..width).map(|i| (place + i, base, at, low + i)));
            place += width;
        }
        let &(_, base, at, _) = bits.first()?;
        let (name, from, all) = self.layout.field(a, base, at)?;
        let start = at - from;
        if all > 8 {
            return None;
        }
        let mut mask = 0;
        let (mut little, mut big): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
        for (place, b, at, bit) in bits {
            let byte = at - start;
            if b != base || !(0..all).contains(&byte) {
                return None;
            }
            let bit = i64::from(bit);
            little.push(i64::from(place) - 8 * byte - bit);
            big.push(i64::from(place) - 8 * (all - 1 - byte) - bit);
            mask |= 1_u64 << (8 * (all - 1 - byte) + bit);
        }
        let moved = |by: &[i64]| by.iter().all(|b| Some(b) == by.first());
        let kept = if big.iter().all(|by| *by == 0) {
            Kept::Same
        } else if moved(&little) || moved(&big) {
            Kept::Moved
        } else {
            return None;
        };
        Some((name, mask, kept))
    }

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
        let lengths = self.is_length(left) || self.is_length(right);
        let side = |e: ExprId| {
            if lengths {
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
                    .is_some_and(|t| mask == crate::expr::mask(8 * bytes_in(&t)));
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

    /// A number that is compared with the packet's length: an offset in it.
    fn position(&self, e: ExprId) -> String {
        let a = self.arena;
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
    if field.ends_with(".type") && !field.ends_with("icmp.type") {
        return format!("{value:#06x}");
    }
    let address = ["ip.src", "ip.dst"];
    if address.iter().any(|a| field.ends_with(a)) && value >> 32 == 0 {
        return std::net::Ipv4Addr::from(value as u32).to_string();
    }
    literal(value, 64)
}
