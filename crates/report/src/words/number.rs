//! Numbers in words: arithmetic as C writes it, fields and members by name, bits of a field as a mask.

use millrace_model::expr::{Bin, ExprId, Node, Rel};

use super::bytes::{Order, Term, swapped};
use super::{Printer, What};
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
    let above = millrace_model::expr::mask(width) - c;
    if width >= 16 && above < 1024 {
        return format!("-{}", above + 1);
    }
    format!("{c:#x}")
}

impl Printer<'_> {
    pub(super) fn term(&self, e: ExprId) -> String {
        let a = self.arena;
        if let Some(along) = self.along(e) {
            return along.to_string();
        }
        if self.is_any(e) {
            return "any".to_owned();
        }
        if self.is_endless(e) {
            return self.elided(&[e]);
        }
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
            Node::Ite(c, x, y) => self.bounded(*c, *x, *y).unwrap_or_else(|| {
                let c = self.condition(*c, true);
                format!("({c} ? {} : {})", self.operand(*x), self.operand(*y))
            }),
        }
    }

    /// A choice that keeps a number from being more, or less, than a constant.
    fn bounded(&self, c: ExprId, x: ExprId, y: ExprId) -> Option<String> {
        let a = self.arena;
        let (c, x, y) = a.negated(c).map_or((c, x, y), |c| (c, y, x));
        let Node::Cmp(Rel::Less, p, q) = *a.node(c) else {
            return None;
        };
        // As C and its compiler write it, with the constant or its neighbour: of equal ones either will do.
        let near = |bound: ExprId, chosen: ExprId, by: u64| {
            let (b, k) = (a.constant(bound)?, a.constant(chosen)?);
            (k == b || k == b.wrapping_add(by)).then_some(k)
        };
        let (what, number, bound) = if y == q {
            ("min", y, near(p, x, 1)?)
        } else if x == p {
            ("min", x, near(q, y, u64::MAX)?)
        } else if x == q {
            ("max", x, near(p, y, 1)?)
        } else if y == p {
            ("max", y, near(q, x, u64::MAX)?)
        } else {
            return None;
        };
        let bound = literal(bound, a.width(number));
        Some(format!("{what}({}, {bound})", self.term(number)))
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
        let mask = millrace_model::expr::mask(width);
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
            && let Some((name, byte, _)) = self.field(base, at)
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
    pub(super) fn whole_of(&self, parts: &[ExprId]) -> Option<ExprId> {
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
            if let Some((name, from, all)) = self.field(base, at) {
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
        let (name, from, all) = self.field(base, at)?;
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
}
