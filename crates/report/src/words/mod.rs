//! Expressions in words: fields of headers in network order, members of keys and values, names of ports; `le(x)` is a
//! field read in the machine's byte order, `ntohs(x)` one that was swapped.

mod bytes;
pub mod checksum;
mod compare;
mod condition;
mod headers;
mod identity;
mod number;
mod ways;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use millrace_model::expr::ids::IdMap;
use millrace_model::expr::sets::{self, Place, Set};
use millrace_model::expr::walk::{children, cone, each_child};
use millrace_model::expr::{Arena, ExprId, Node, Origin};
use millrace_model::known;
use millrace_model::symbols::{self, What};

use crate::clean;
use crate::layout::fields::Name;
use crate::layout::{Along, Layout, Tags, landing};
use crate::names::{self, Names, member};

pub use bytes::Order;
pub(crate) use compare::field_value;
pub(crate) use identity::Ends;

/// Beyond this many nodes only what an expression depends on is shown.
const MOST: usize = 96;
/// Beyond this many nodes they are counted no further.
const WEIGHED: usize = 1024;
/// Beyond so many nodes, those that are shared counted each time, an expression's meaning is not looked for.
const ENDLESS: u32 = 1 << 10;
/// Keys longer than this are shown by a letter.
const SHORT: usize = 36;
/// Choices longer than this are shown by what they depend on.
const LONGEST: usize = 80;
/// How deep keys of keys are shown.
const DEEPEST: u32 = 4;

/// The keys of the entries that a path touches, by object and entry.
pub type Keys = BTreeMap<(usize, u32), Vec<ExprId>>;

/// Letters for long keys, by object; the same key has the same letter throughout a report.
#[derive(Default, Debug)]
pub struct Letters {
    known: RefCell<BTreeMap<usize, Vec<String>>>,
    /// keys are spelled out, however long
    spelled: bool,
}

impl Letters {
    /// None: keys are spelled out, however long.
    pub(crate) fn none() -> Self {
        Self {
            spelled: true,
            ..Self::default()
        }
    }

    /// The key itself, or its letter.
    fn short(&self, object: usize, key: &str) -> String {
        if self.spelled || key.chars().count() <= SHORT {
            return key.to_owned();
        }
        let mut all = self.known.borrow_mut();
        let of = all.entry(object).or_default();
        let at = of.iter().position(|k| k == key).unwrap_or_else(|| {
            of.push(key.to_owned());
            of.len() - 1
        });
        letter(at)
    }

    /// The letters of an object's keys.
    #[must_use]
    pub fn of(&self, object: usize) -> Vec<(String, String)> {
        let all = self.known.borrow();
        let keys = all.get(&object).into_iter().flatten().enumerate();
        keys.map(|(i, k)| (letter(i), k.clone())).collect()
    }
}

/// Whether members follow each other without gaps and fill this many bytes.
fn members_are(members: &[names::Member], bytes: usize) -> bool {
    let end = members.iter().try_fold(0, |at, m| {
        (m.from == at).then(|| at.saturating_add(m.bytes))
    });
    end.is_some_and(|e| e as usize == bytes)
}

/// A, B … Z, A1, B1 …
fn letter(at: usize) -> String {
    let name = char::from(b'A' + (at % 26) as u8);
    match at / 26 {
        0 => name.to_string(),
        n => format!("{name}{n}"),
    }
}

/// The arena, the bytes that a path writes, and the fields that they are.
type Update = (u64, Vec<ExprId>, Vec<String>);

/// The byte that a condition is about, and the values for which it holds; none if it is about more.
type OneByte = Option<(Place, Set)>;

/// The arena that a key is in, the key, and of how many conditions its path's guard is.
type Key = (u64, Vec<ExprId>, usize);

/// Results computed once an expression, by the arena that it is in.
#[derive(Default)]
pub struct Memory {
    /// what conditions fix
    pub(crate) known: known::Memory,
    /// what they say of VLAN tags
    pub(crate) tags: Tags,
    /// what offsets behind IPv6 are
    pub(crate) landings: landing::Memory,
    /// the arena that `landings` is about
    arena: Cell<u64>,
    /// nodes of each expression of an arena, those that are shared counted each time
    sizes: RefCell<(u64, Vec<u32>)>,
    sets: RefCell<HashMap<(u64, ExprId), OneByte>>,
    /// whether it says that the header's checksum holds, or that it does not, by the header's offset
    checksums: RefCell<HashMap<(u64, ExprId, i64), Option<bool>>>,
    /// whether the second is the lowest bits of the first
    lows: RefCell<HashMap<(u64, ExprId, ExprId), bool>>,
    /// what a checksum that is written follows, by the bytes of it and of the other updates, and their fields
    adjusted: RefCell<HashMap<Update, Option<checksum::Adjusted>>>,
    /// keys by the headers that their fields are in
    headers: RefCell<HashMap<Key, Option<Vec<String>>>>,
}

impl Memory {
    /// Forgets what offsets are in another arena, whose expressions have the same numbers.
    pub(crate) fn settle(&self, arena: &Arena) {
        if self.arena.replace(arena.identity()) != arena.identity() {
            self.landings.forget();
        }
    }

    /// As [`sets::of`].
    pub(crate) fn set(&self, arena: &Arena, e: ExprId) -> Option<(Place, Set)> {
        let mut sets = self.sets.borrow_mut();
        let key = (arena.identity(), e);
        sets.entry(key)
            .or_insert_with(|| sets::of(arena, e))
            .clone()
    }
}

/// Printer of a path's words.
pub struct Printer<'a> {
    /// the expressions
    pub arena: &'a Arena,
    /// what the packet's bytes are
    pub layout: &'a Layout,
    /// what the author calls things
    pub names: &'a Names,
    /// the keys of the entries that the path touches
    pub keys: &'a Keys,
    /// letters of long keys
    pub letters: &'a Letters,
    /// what was worked out before
    pub memory: &'a Memory,
    /// how deep in keys of keys this is
    pub depth: u32,
}

impl Printer<'_> {
    /// The name of the field that a byte of the packet is of, where in it the byte is, and how long it is.
    #[must_use]
    pub fn field(&self, base: Option<ExprId>, at: i64) -> Option<(String, i64, i64)> {
        let (name, byte, bytes) = self.named(base, at)?;
        Some((name.to_string(), byte, bytes))
    }

    /// As [`Printer::field`], apart from words.
    #[must_use]
    pub fn named(&self, base: Option<ExprId>, at: i64) -> Option<(Name, i64, i64)> {
        self.layout.field(self.arena, base, at, self.memory)
    }

    /// Meaning of an expression for the headers behind IPv6: an offset along them, or the number of the last one.
    pub(super) fn along(&self, e: ExprId) -> Option<Along> {
        self.layout.along(self.arena, e, self.memory)
    }

    /// An expression as a number.
    #[must_use]
    pub fn text(&self, e: ExprId) -> String {
        if self.weight(e) > MOST {
            return self.elided(&[e]);
        }
        self.term(e)
    }

    /// How many nodes there are to print: those that are shared count each time. At most [`WEIGHED`], which is
    /// more than is ever printed.
    pub(crate) fn weight(&self, e: ExprId) -> usize {
        let mut todo = vec![e];
        let mut all = 0;
        while let Some(e) = todo.pop()
            && all < WEIGHED
        {
            all += 1;
            // What has a name counts as one.
            if self.along(e).is_none() {
                each_child(self.arena.node(e), |c| todo.push(c));
            }
        }
        all
    }

    /// Whether nothing is known of a number but that a loop left it.
    pub(super) fn is_any(&self, e: ExprId) -> bool {
        let a = self.arena;
        let any = |e: ExprId| {
            let mut e = e;
            while let Node::Extract { of, .. } = a.node(e) {
                e = *of;
            }
            matches!(a.node(e), Node::Sym(s) if a.symbol(*s).origin == Origin::Turn)
        };
        match a.node(e) {
            Node::Concat(parts) => {
                let zero = |p: &ExprId| a.constant(*p) == Some(0);
                parts.iter().any(|p| any(*p)) && parts.iter().all(|p| any(*p) || zero(p))
            }
            _ => any(e),
        }
    }

    /// Whether an expression mixes what it is made of so often that its text has no end, as hashes do.
    pub(super) fn is_endless(&self, e: ExprId) -> bool {
        let arena = self.arena.identity();
        let mut sizes = self.memory.sizes.borrow_mut();
        if sizes.0 != arena {
            *sizes = (arena, Vec::new());
        }
        // Operands have smaller numbers.
        for id in sizes.1.len()..self.arena.len() {
            let mut size = 1_u32;
            each_child(self.arena.node(ExprId(id as u32)), |c| {
                size = size.saturating_add(sizes.1.get(c.0 as usize).copied().unwrap_or(1));
            });
            sizes.1.push(size);
        }
        sizes
            .1
            .get(e.0 as usize)
            .is_some_and(|size| *size > ENDLESS)
    }

    /// Only what it depends on; bytes of the packet that follow one another as one range.
    pub(crate) fn elided(&self, e: &[ExprId]) -> String {
        let of = in_ranges(&self.sources(e));
        match of.as_slice() {
            [a, b, c, d, f, g, more @ ..] if more.len() > 2 => {
                format!("f({a}, {b}, {c}, {d}, {f}, {g}, … {} more)", more.len())
            }
            _ => format!("f({})", of.join(", ")),
        }
    }

    /// A number that is equal where two expressions, shown as what they depend on only, are the same
    /// function of the same fields; 0 for those that are shown whole.
    #[must_use]
    pub fn salt(&self, text: &str, e: ExprId) -> u64 {
        if !text.contains("f(") && !text.contains("one of {") {
            return 0;
        }
        let mut all: IdMap<ExprId, u64> = IdMap::default();
        let mut last = 0;
        for id in cone(self.arena, &[e], |_| false) {
            let mut h = DefaultHasher::new();
            let node = self.arena.node(id);
            match node {
                Node::Byte { base, at } => match self.field(*base, *at) {
                    Some((name, byte, _)) => (name, byte).hash(&mut h),
                    None => self.offset(*at).hash(&mut h),
                },
                Node::Const(c) => c.hash(&mut h),
                Node::Sym(_) => self.symbol(id).hash(&mut h),
                Node::Extract { low, .. } => low.hash(&mut h),
                Node::Bin(op, ..) => op.hash(&mut h),
                Node::Cmp(rel, ..) => rel.hash(&mut h),
                Node::Concat(_) | Node::SignExtend(_) | Node::Ite(..) => {}
            }
            std::mem::discriminant(node).hash(&mut h);
            for c in children(node) {
                all.get(&c).hash(&mut h);
            }
            last = h.finish();
            all.insert(id, last);
        }
        last
    }

    /// The fields, ports, state and other inputs that expressions are made of, by name.
    #[must_use]
    pub fn sources(&self, of: &[ExprId]) -> Vec<String> {
        let mut names = Vec::new();
        for id in cone(self.arena, of, |_| false) {
            match self.arena.node(id) {
                Node::Byte { base, at } => {
                    names.push(match (self.field(*base, *at), base) {
                        (Some((name, ..)), _) => name,
                        (None, None) => format!("pkt[{}]", self.offset(*at)),
                        (None, Some(_)) => "pkt[…]".to_owned(),
                    });
                }
                Node::Sym(s) if self.arena.symbol(*s).origin == Origin::Turn => {
                    names.push("any".to_owned());
                }
                Node::Sym(_) => names.push(self.symbol(id)),
                _ => {}
            }
        }
        names.sort();
        names.dedup();
        names
    }

    /// The object and the part of it that a symbol of state stands for.
    pub(crate) fn state(&self, e: ExprId) -> Option<(usize, symbols::StateName<'_>)> {
        let Node::Sym(s) = self.arena.node(e) else {
            return None;
        };
        let symbol = self.arena.symbol(*s);
        let Origin::State(object) = symbol.origin else {
            return None;
        };
        let name = &self.names.objects.get(object)?.object;
        Some((object, symbols::state(name, &symbol.name)?))
    }

    /// A symbol's name.
    pub(crate) fn symbol(&self, e: ExprId) -> String {
        let Node::Sym(s) = self.arena.node(e) else {
            return String::new();
        };
        let symbol = self.arena.symbol(*s);
        let Some((object, name)) = self.state(e) else {
            return clean(&symbol.name);
        };
        match name.what {
            What::Present => format!("{} there", self.entry(object, name.entry)),
            What::Full => format!("{} full", self.object(object)),
            What::Bytes { from } => self.value(object, name.entry, from, self.arena.width(e) / 8),
            What::Number => clean(&symbol.name),
        }
    }

    pub(crate) fn object(&self, object: usize) -> String {
        let parts = self.names.objects.get(object);
        parts.map_or_else(String::new, |p| clean(&p.object))
    }

    /// An entry by its key.
    #[must_use]
    pub fn entry(&self, object: usize, entry: u32) -> String {
        let name = self.object(object);
        match self.keys.get(&(object, entry)) {
            _ if entry == 0 => name,
            Some(key) if self.depth < DEEPEST => {
                format!("{name}[{}]", self.short_key(object, key))
            }
            _ if entry == 1 => format!("{name}[…]"),
            _ => format!("{name}[…{entry}]"),
        }
    }

    /// A key, or the letter of a long one.
    #[must_use]
    pub fn short_key(&self, object: usize, key: &[ExprId]) -> String {
        let text = self.key_parts(object, key).join(" ++ ");
        self.letters.short(object, &text)
    }

    /// A key's parts in memory order.
    #[must_use]
    pub fn key_parts(&self, object: usize, key: &[ExprId]) -> Vec<String> {
        let deeper = Printer {
            depth: self.depth + 1,
            ..*self
        };
        let Some(parts) = self.names.objects.get(object) else {
            return deeper.bytes(key, Order::Memory);
        };
        if let Some(text) = deeper.all_of_value(key) {
            return vec![text];
        }
        if parts.numbered {
            let text = deeper.whole(key);
            let by_headers = || deeper.key_by_headers(key, &names::Member::whole(key.len()));
            let said = text.contains("f(").then(by_headers).flatten();
            return said.unwrap_or_else(|| vec![text]);
        }
        if parts.key.is_empty() || !members_are(&parts.key, key.len()) {
            return deeper.bytes(key, Order::Memory);
        }
        // Member by member, so that constants of two are told apart.
        let members = parts.key.iter().filter_map(|m| {
            let bytes = key.get(m.from as usize..(m.from + m.bytes) as usize)?;
            Some(deeper.member(m, bytes))
        });
        let members: Vec<String> = members.collect();
        if members.iter().any(|t| t.contains("f(")) {
            let by_ways = deeper.key_by_ways(key, &parts.key);
            let by_headers = || deeper.key_by_headers(key, &parts.key);
            return by_ways.or_else(by_headers).unwrap_or(members);
        }
        members
    }

    /// Value that a member of a key or value is set to.
    #[must_use]
    pub fn member(&self, m: &names::Member, bytes: &[ExprId]) -> String {
        if bytes.iter().all(|b| self.arena.constant(*b) == Some(0)) {
            return "0".to_owned();
        }
        if let Some((c, yes, no)) = self.choice(bytes) {
            let (yes, no) = (self.member(m, &yes), self.member(m, &no));
            let text = format!("({} ? {yes} : {no})", self.condition(c, true));
            return if text.chars().count() > LONGEST {
                self.elided(bytes)
            } else {
                text
            };
        }
        let network = m.network && m.bytes > 1;
        let parts = match (network, m.bytes) {
            (true, _) => self.bytes(bytes, Order::Wire),
            (false, 1 | 2 | 4 | 8) => return self.whole(bytes),
            (false, _) => self.bytes(bytes, Order::Memory),
        };
        match parts.as_slice() {
            // An IPv4 address as IPv6 writes it.
            [prefix, rest] if prefix == "::ffff" => format!("::ffff:{rest}"),
            [_, _, ..] if parts.iter().any(|p| p.starts_with("f(")) => self.elided(bytes),
            all => all.join(" ++ "),
        }
    }

    /// Bytes of a value, by the names of its members.
    pub(crate) fn value(&self, object: usize, entry: u32, from: u32, bytes: u32) -> String {
        let of = self.entry(object, entry);
        let parts = self.names.objects.get(object);
        let members = parts.map_or(&[][..], |p| &p.value);
        let named = match parts {
            Some(p) if p.global => String::new(),
            _ => format!("{of}."),
        };
        let mut out = String::new();
        let mut at = from;
        let to = from.saturating_add(bytes);
        while at < to {
            if !out.is_empty() {
                out.push_str(" ++ ");
            }
            let Some(m) = member(members, at) else {
                // A value that is one number needs no name.
                let whole = self.whole_value(object) == Some((from, bytes));
                let _ = if whole && members.is_empty() {
                    write!(out, "{of}.value")
                } else {
                    write!(out, "{of}[{at}..{to}]")
                };
                break;
            };
            let end = (m.from + m.bytes).min(to);
            let _ = if m.from == at && end == m.from + m.bytes {
                write!(out, "{named}{}", m.name)
            } else {
                write!(out, "{named}{}[{}..{}]", m.name, at - m.from, end - m.from)
            };
            at = end;
        }
        out
    }

    fn whole_value(&self, object: usize) -> Option<(u32, u32)> {
        let parts = self.names.objects.get(object)?;
        Some((0, parts.value_bytes))
    }

    /// An offset in the packet, a constant behind a computed one.
    pub(crate) fn behind(&self, base: ExprId, at: i64) -> String {
        let there = self.layout.place(self.arena, Some(base), at, self.memory);
        match there {
            Some(there) => there.to_string(),
            None if at == 0 => self.text(base),
            None => format!("{} + {at}", self.text(base)),
        }
    }

    /// An offset in the packet, from the network header's where that is known.
    pub(crate) fn offset(&self, at: i64) -> String {
        match self.layout.network() {
            Some((from, name)) if at > from => format!("at({name}) + {}", at - from),
            Some((from, name)) if at == from => format!("at({name})"),
            _ => at.to_string(),
        }
    }
}

/// Names with the bytes `pkt[N]` that follow one another as `pkt[FROM..BEHIND]`, behind all others.
fn in_ranges(names: &[String]) -> Vec<String> {
    let number = |name: &String| -> Option<u64> {
        let inner = name.strip_prefix("pkt[")?.strip_suffix(']')?;
        inner.parse().ok()
    };
    let mut bytes: Vec<u64> = names.iter().filter_map(number).collect();
    bytes.sort_unstable();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for at in bytes {
        match ranges.last_mut() {
            Some((_, behind)) if *behind == at => *behind = at + 1,
            _ => ranges.push((at, at + 1)),
        }
    }
    let ranges = ranges
        .into_iter()
        .map(|(from, behind)| match behind - from {
            1 => format!("pkt[{from}]"),
            _ => format!("pkt[{from}..{behind}]"),
        });
    let others = names.iter().filter(|name| number(name).is_none()).cloned();
    others.chain(ranges).collect()
}

#[cfg(test)]
mod tests {
    use super::in_ranges;

    #[test]
    fn bytes_that_follow_one_another_are_a_range() {
        let names = [
            "eth.type", "pkt[102]", "pkt[14]", "pkt[15]", "pkt[16]", "pkt[…]",
        ];
        let ranges = in_ranges(&names.map(str::to_owned));
        assert_eq!(ranges, ["eth.type", "pkt[…]", "pkt[14..17]", "pkt[102]"]);
    }
}
