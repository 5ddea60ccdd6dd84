//! Bytes one after another, as fields and members.

use millrace_model::expr::{ExprId, Node};
use millrace_model::symbols::What;

use super::Printer;
use crate::layout::fields::Name;
use crate::names::member;

/// Most choices within each other of which a byte is shown as one.
const CHOICES: usize = 64;

/// One byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Term {
    /// of the packet as it came in
    Packet(Option<ExprId>, i64),
    /// a number
    Const(u8),
    /// this byte of an expression, from the lowest
    Of(ExprId, u32),
}

/// How bytes are to be named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// as they lie in memory that the machine reads: a number is itself
    Memory,
    /// as they lie in a header: a number in network order is itself
    Wire,
}

impl Printer<'_> {
    /// The bytes of an expression, the lowest first; none where its parts are no bytes.
    pub(super) fn terms(&self, e: ExprId) -> Option<Vec<Term>> {
        let a = self.arena;
        let width = a.width(e);
        if !width.is_multiple_of(8) {
            return None;
        }
        let n = width / 8;
        Some(match a.node(e) {
            Node::Const(c) => (0..n).map(|i| Term::Const((c >> (8 * i)) as u8)).collect(),
            Node::Byte { base, at } => vec![Term::Packet(*base, *at)],
            Node::Extract { of, low } if low % 8 == 0 && a.width(*of).is_multiple_of(8) => {
                (0..n).map(|i| Term::Of(*of, low / 8 + i)).collect()
            }
            // Bits of several bytes: printing them must not come back here.
            Node::Extract { .. } => return None,
            Node::Concat(parts) => {
                let mut out = Vec::new();
                for p in parts.iter().rev() {
                    out.extend(self.terms(*p)?);
                }
                out
            }
            _ => (0..n).map(|i| Term::Of(e, i)).collect(),
        })
    }

    /// Bytes in memory order, as the parts that they are of.
    #[must_use]
    pub fn bytes(&self, bytes: &[ExprId], order: Order) -> Vec<String> {
        if !bytes.is_empty() && bytes.iter().all(|e| self.is_any(*e)) {
            return vec!["any".to_owned()];
        }
        let mut terms = Vec::new();
        for e in bytes {
            match self.terms(*e) {
                Some(t) => terms.extend(t),
                None => terms.push(Term::Of(*e, 0)),
            }
        }
        self.runs(&terms, order)
    }

    /// The number of which these are all the bytes, the lowest first. The lowest byte of a sum is kept as a
    /// sum of lowest bytes; that it is the same is tried, not proved.
    fn joined(&self, bytes: &[ExprId]) -> Option<ExprId> {
        let a = self.arena;
        let (first, second) = (*bytes.first()?, *bytes.get(1)?);
        let Node::Extract { of, low: 8 } = *a.node(second) else {
            return None;
        };
        let follows = |(i, e): (u32, &ExprId)| {
            a.width(*e) == 8 && *a.node(*e) == Node::Extract { of, low: 8 * i }
        };
        let all = a.width(of) as usize == 8 * bytes.len()
            && a.width(first) == 8
            && (1..).zip(bytes.get(1..)?).all(follows);
        (all && self.is_low(of, first)).then_some(of)
    }

    /// Whether a byte is one of more than can be shown.
    fn many(&self, byte: ExprId) -> bool {
        let mut todo = vec![byte];
        let mut choices = 0;
        while let Some(e) = todo.pop() {
            if let Node::Ite(_, x, y) = *self.arena.node(e) {
                choices += 1;
                if choices > CHOICES {
                    return true;
                }
                todo.extend([x, y]);
            }
        }
        false
    }

    /// Bytes of which each is one or another by the same condition.
    pub(super) fn choice(&self, bytes: &[ExprId]) -> Option<(ExprId, Vec<ExprId>, Vec<ExprId>)> {
        let way = |e: &ExprId| match *self.arena.node(*e) {
            Node::Ite(c, ..) => Some(c),
            _ => None,
        };
        let c = bytes.iter().find_map(way)?;
        // Of choices of choices of choices only what they depend on is shown.
        if bytes.iter().any(|b| self.many(*b)) {
            return None;
        }
        let ways = bytes.iter().map(|e| match *self.arena.node(*e) {
            Node::Ite(d, x, y) if d == c => Some((x, y)),
            Node::Const(_) => Some((*e, *e)),
            _ => None,
        });
        let ways: Vec<_> = ways.collect::<Option<_>>()?;
        (ways.len() > 1).then(|| {
            let (yes, no) = ways.into_iter().unzip();
            (c, yes, no)
        })
    }

    /// Bytes in memory order that are one number of the machine's.
    #[must_use]
    pub fn whole(&self, bytes: &[ExprId]) -> String {
        let zero = |e: &ExprId| self.arena.constant(*e) == Some(0);
        let any = |e: &ExprId| self.is_any(*e);
        if bytes.iter().any(any) && bytes.iter().all(|e| any(e) || zero(e)) {
            return "any".to_owned();
        }
        if let Some(e) = self.joined(bytes) {
            return self.text(e);
        }
        if let Some((c, yes, no)) = self.choice(bytes) {
            let (yes, no) = (self.whole(&yes), self.whole(&no));
            return format!("({} ? {yes} : {no})", self.condition(c, true));
        }
        let mut terms = Vec::new();
        for e in bytes {
            match self.terms(*e) {
                Some(t) => terms.extend(t),
                None => return self.bytes(bytes, Order::Memory).join(" ++ "),
            }
        }
        let text = self.number(&terms);
        if text.contains("f(") && text.contains(" ++ ") {
            return self.elided(bytes);
        }
        text
    }

    /// The object, the entry and the byte of its value that a byte is.
    fn place(&self, t: &Term) -> Option<(usize, u32, u32)> {
        let Term::Of(e, i) = *t else { return None };
        let (object, name) = self.state(e)?;
        match name.what {
            What::Bytes { from } => Some((object, name.entry, from + i)),
            _ => None,
        }
    }

    /// In words, if bytes are all of an entry's value.
    pub(super) fn all_of_value(&self, bytes: &[ExprId]) -> Option<String> {
        let mut terms = Vec::new();
        for e in bytes {
            terms.extend(self.terms(*e)?);
        }
        let (object, entry, 0) = self.place(terms.first()?)? else {
            return None;
        };
        let all = self.names.objects.get(object)?.value_bytes as usize == terms.len();
        let run = (0..)
            .zip(&terms)
            .all(|(at, t)| self.place(t) == Some((object, entry, at)));
        (all && run && terms.len() > 8).then(|| format!("{}.*", self.entry(object, entry)))
    }

    /// Runs of bytes that belong together, in memory order.
    pub(super) fn runs(&self, terms: &[Term], order: Order) -> Vec<String> {
        let mut out = Vec::new();
        let mut rest = terms;
        while let Some(first) = rest.first() {
            let (n, text) = match *first {
                Term::Const(_) => constant(rest, order),
                Term::Packet(base, at) => self.packet_run(rest, base, at),
                Term::Of(e, i) => self.run_of(rest, e, i, order),
            };
            out.push(text);
            rest = rest.get(n.max(1)..).unwrap_or(&[]);
        }
        out
    }

    fn packet_run(&self, rest: &[Term], base: Option<ExprId>, at: i64) -> (usize, String) {
        let field = self.field(base, at);
        let is = |i: usize, at: i64| rest.get(i) == Some(&Term::Packet(base, at));
        // A whole field, its last byte first.
        if let Some((name, from, all)) = &field
            && from + 1 == *all
            && *all > 1
            && (0..*all).all(|i| is(i as usize, at - i))
        {
            return (*all as usize, swapped(name, *all as usize));
        }
        let most = field.as_ref().map_or(i64::MAX, |f| f.2 - f.1);
        let mut n = 1;
        while n < most && is(n as usize, at + n) {
            // Where a field begins, another run begins.
            if field.is_none() && self.field(base, at + n).is_some() {
                break;
            }
            n += 1;
        }
        // The network that an address is in: its first bytes, and nothing.
        if let Some((name, 0, all)) = &field
            && n < *all
            && name
                .rsplit('.')
                .next()
                .is_some_and(|f| matches!(f, "src" | "dst"))
            && (n..*all).all(|i| rest.get(i as usize) == Some(&Term::Const(0)))
        {
            return (*all as usize, format!("{name}/{}", 8 * n));
        }
        let text = match field {
            Some((name, 0, all)) if n == all => name,
            Some((name, from, _)) if n == 1 => format!("{name}[{from}]"),
            Some((name, from, _)) => format!("{name}[{from}..{}]", from + n),
            None => {
                let start = match base {
                    None => self.offset(at),
                    Some(b) => self.behind(b, at),
                };
                if n == 1 {
                    format!("pkt[{start}]")
                } else {
                    format!("pkt[{start}; {n}]")
                }
            }
        };
        (n as usize, text)
    }

    fn run_of(&self, rest: &[Term], e: ExprId, i: u32, order: Order) -> (usize, String) {
        let is = |k: usize, e: ExprId, i: u32| rest.get(k) == Some(&Term::Of(e, i));
        let width = self.arena.width(e) / 8;
        if let Some((object, name)) = self.state(e)
            && let What::Bytes { from } = name.what
        {
            let members = self.names.objects.get(object).map_or(&[][..], |p| &p.value);
            let first = from + i;
            // What follows may be the next symbol's.
            let at = |k: usize| {
                let (o, entry, byte) = self.place(rest.get(k)?)?;
                (o == object && entry == name.entry).then_some(byte)
            };
            if let Some(m) = member(members, first)
                && m.bytes > 1
                && first + 1 == m.from + m.bytes
                && (0..m.bytes).all(|k| at(k as usize) == first.checked_sub(k))
            {
                let text = self.value(object, name.entry, m.from, m.bytes);
                // What the machine reads as a number, in network order.
                if order == Order::Wire && !m.network {
                    return (m.bytes as usize, text);
                }
                return (m.bytes as usize, swapped(&text, m.bytes as usize));
            }
            if let Some(m) = member(members, first)
                && !m.network
                && matches!(first - m.from, 1 | 3)
                && (0..=first - m.from).all(|k| at(k as usize) == first.checked_sub(k))
            {
                let text = self.value(object, name.entry, m.from, m.bytes);
                let n = first - m.from + 1;
                return (n as usize, self.low(&text, n, order));
            }
            let mut n = 1;
            while at(n) == Some(first + n as u32)
                && member(members, first).map(|m| &m.name)
                    == member(members, first + n as u32).map(|m| &m.name)
            {
                n += 1;
            }
            return (n, self.value(object, name.entry, first, n as u32));
        }
        // All of it, the last byte first.
        if width > 1 && i + 1 == width && (0..width).all(|k| is(k as usize, e, i - k)) {
            let text = self.operand(e);
            return match order {
                Order::Wire => (width as usize, text),
                Order::Memory => (width as usize, swapped(&text, width as usize)),
            };
        }
        // The lowest bytes of it, the last first.
        if (i == 1 || i == 3) && i + 1 < width && (0..=i).all(|k| is(k as usize, e, i - k)) {
            return (i as usize + 1, self.low(&self.text(e), i + 1, order));
        }
        let mut n = 1;
        while is(n, e, i + n as u32) {
            n += 1;
        }
        let text = self.text(e);
        let text = match (i, n as u32) {
            (0, n) if n == width && (order == Order::Memory || n == 1) => text,
            (0, n) if n == width => format!("le({text})"),
            (0, n) if width > 0 => format!("u{}({text})", 8 * n),
            (0, _) => text,
            (i, n) => format!("{}[{}:{}]", self.operand(e), 8 * (i + n) - 1, 8 * i),
        };
        (n, text)
    }
}

impl Printer<'_> {
    /// The lowest bytes of a number in network order.
    fn low(&self, text: &str, bytes: u32, order: Order) -> String {
        let low = format!("u{}({text})", 8 * bytes);
        match order {
            Order::Wire => low,
            Order::Memory => swapped(&low, bytes as usize),
        }
    }
}

/// The number in the other byte order, as C says it.
pub(super) fn swapped(text: &str, bytes: usize) -> String {
    match bytes {
        2 => format!("ntohs({text})"),
        4 => format!("ntohl({text})"),
        _ => format!("swap({text})"),
    }
}

fn constant(rest: &[Term], order: Order) -> (usize, String) {
    let all: Vec<u8> = rest
        .iter()
        .map_while(|t| match t {
            Term::Const(c) => Some(*c),
            _ => None,
        })
        .collect();
    // The prefix of an IPv4 address as IPv6 says it (RFC 4291, 2.5.5.2).
    const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    if all.starts_with(&MAPPED) {
        return (12, "::ffff".to_owned());
    }
    let zeros = all.iter().take_while(|c| **c == 0).count();
    if zeros > 0 {
        // A prefix that begins later is not hidden in these.
        let mapped = all.windows(12).position(|w| w == MAPPED);
        let n = mapped.filter(|m| *m > 0).map_or(zeros, |m| m.min(zeros));
        return (n, format!("zeros:{n}"));
    }
    let n = all.iter().take_while(|c| **c != 0).count();
    let text = match (all.as_slice(), order) {
        ([one, ..], _) if n == 1 => one.to_string(),
        _ => {
            let hex: String = all.iter().take(n).map(|v| format!("{v:02x}")).collect();
            format!("0x{hex}")
        }
    };
    (n, text)
}

impl Printer<'_> {
    /// The field whose bytes, as they lie in the packet, an expression is.
    #[must_use]
    pub fn memory_field(&self, e: ExprId) -> Option<Name> {
        let terms = self.trimmed(e)?;
        let Some(Term::Packet(base, at)) = terms.first().copied() else {
            return None;
        };
        let (name, from, all) = self.named(base, at)?;
        let run = (at..)
            .zip(&terms)
            .all(|(at, t)| *t == Term::Packet(base, at));
        (run && from == 0 && all == terms.len() as i64).then_some(name)
    }

    /// The object, the entry and the bytes of its value that an expression is, as they lie in it.
    #[must_use]
    pub fn memory_value(&self, e: ExprId) -> Option<(usize, u32, std::ops::Range<u32>)> {
        let terms = self.trimmed(e)?;
        let (object, entry, from) = self.place(terms.first()?)?;
        let run = (from..)
            .zip(&terms)
            .all(|(at, t)| self.place(t) == Some((object, entry, at)));
        run.then(|| (object, entry, from..from + terms.len() as u32))
    }

    /// The bytes of a number without the upper ones that are 0.
    fn trimmed(&self, e: ExprId) -> Option<Vec<Term>> {
        let mut terms = self.terms(e)?;
        let n = terms.iter().rposition(|t| *t != Term::Const(0))? + 1;
        terms.truncate(n);
        Some(terms)
    }
}
