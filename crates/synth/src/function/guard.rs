//! Conditions of a model as guards: tests of numbers that lie in intervals.
//!
//! An expression is looked at as bits ([`bits`]): of the packet at fixed places, of the packet behind an IPv4 header by its length, of the
//! packet's length, or constant. Comparisons with a constant are then tests of runs of bits, the most significant first. What is none of that
//! (arithmetic, masks with holes) is evaluated for all values, if it is of 16 bits at most. `14 + 4 * ihl + n <= length` asks for so many
//! bytes of the transport header.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use millrace_click::function::{Base, Field, Guard};
use millrace_model::expr::eval::{Course, LANES};
use millrace_model::expr::walk::{cone, each_child};
use millrace_model::expr::{Arena, Bin, ExprId, Node, Origin, Rel, mask};

use super::sum;

/// A condition that is no test of header fields, and why.
pub type Refused = String;
type Made = Result<Guard, Refused>;

/// Conditions looked at for one function, at most.
const MOST: usize = 20_000;
/// Intervals of one test, at most.
const MOST_RANGES: usize = 4096;
/// Conditions within each other, at most, and parts of a number within each other: whoever wrote the program may have nested them without end.
const DEEP: usize = 200;
/// Constants beyond which an offset is no place in a packet.
const FAR: u64 = 1 << 20;

/// A bit of an expression.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Bit {
    /// always this
    Const(bool),
    /// of the packet
    Of(Base, u32),
    /// of its length, the most significant first
    Length(u32),
}

/// Guards by conditions.
#[derive(Default)]
pub(super) struct Guards {
    made: HashMap<ExprId, Guard>,
    depth: usize,
}

impl Guards {
    /// All of some conditions.
    pub fn all(&mut self, arena: &mut Arena, conditions: &[ExprId]) -> Made {
        let all = conditions.iter().map(|c| self.one(arena, *c));
        Ok(Guard::All(all.collect::<Result<Vec<_>, _>>()?.into()))
    }

    /// A condition.
    pub fn one(&mut self, arena: &mut Arena, e: ExprId) -> Made {
        if let Some(done) = self.made.get(&e) {
            return Ok(done.clone());
        }
        if self.made.len() > MOST || self.depth > DEEP {
            return Err("its conditions are too many, or too deep within each other".into());
        }
        self.depth += 1;
        let made = self.made(arena, e);
        self.depth -= 1;
        let made = made?;
        self.made.insert(e, made.clone());
        Ok(made)
    }

    fn made(&mut self, arena: &mut Arena, e: ExprId) -> Made {
        let node = arena.node(e).clone();
        if let Node::Const(value) = node {
            return Ok(Guard::Constant(value == 1));
        }
        if let Some(guard) = sum::right(arena, e) {
            return Ok(guard);
        }
        match node {
            Node::Bin(Bin::And, a, b) => {
                let parts = [self.one(arena, a)?, self.one(arena, b)?];
                Ok(Guard::All(Arc::new(parts)))
            }
            Node::Bin(Bin::Or, a, b) => {
                let parts = [self.one(arena, a)?, self.one(arena, b)?];
                Ok(Guard::Any(Arc::new(parts)))
            }
            Node::Bin(Bin::Xor, a, b) => {
                let (a, b) = (self.one(arena, a)?, self.one(arena, b)?);
                Ok(Guard::choice(a, b.clone().opposite(), b))
            }
            Node::Ite(c, a, b) => {
                let condition = self.one(arena, c)?;
                Ok(Guard::choice(
                    condition,
                    self.one(arena, a)?,
                    self.one(arena, b)?,
                ))
            }
            Node::Cmp(Rel::Eq, a, b) if arena.width(a) == 1 => {
                let (a, b) = (self.one(arena, a)?, self.one(arena, b)?);
                Ok(Guard::choice(a, b.clone(), b.opposite()))
            }
            Node::Cmp(rel, a, b) => self.compared(arena, e, (rel, a, b)),
            _ => match bits(arena, e).as_deref() {
                Some([Bit::Of(base, at)]) => Ok(run(*base, *at, 1, &[(1, 1)])),
                _ => tried(arena, e),
            },
        }
    }

    fn compared(
        &mut self,
        arena: &mut Arena,
        e: ExprId,
        (rel, a, b): (Rel, ExprId, ExprId),
    ) -> Made {
        for (choice, other, first) in [(a, b, true), (b, a, false)] {
            if let Node::Ite(c, x, y) = *arena.node(choice) {
                let condition = self.one(arena, c)?;
                let mut side = |value: ExprId| {
                    let (a, b) = if first {
                        (value, other)
                    } else {
                        (other, value)
                    };
                    let one = arena.compare(rel, a, b);
                    self.one(arena, one)
                };
                let (yes, no) = (side(x)?, side(y)?);
                return Ok(Guard::choice(condition, yes, no));
            }
        }
        // Numbers without their sign bit compare alike.
        let rel = match rel {
            Rel::SignedLess if positive(arena, a) && positive(arena, b) => Rel::Less,
            rel => rel,
        };
        if rel == Rel::Less
            && let Some(room) = room(arena, a, b)
        {
            return Ok(room);
        }
        let (x, y) = (arena.constant(a), arena.constant(b));
        let number = match (x, y) {
            (Some(number), None) => bits(arena, b).map(|bits| (bits, number, true)),
            (None, Some(number)) => bits(arena, a).map(|bits| (bits, number, false)),
            _ => None,
        };
        match (rel, number) {
            (Rel::Eq, Some((bits, number, _))) => equal(&bits, number),
            (Rel::Less, Some((bits, number, false))) => Ok(less(&runs(&bits)?, number)),
            // More than the number is not less than the next one.
            (Rel::Less, Some((bits, number, true))) => match number == mask(arena.width(a)) {
                true => Ok(Guard::Constant(false)),
                false => Ok(less(&runs(&bits)?, number + 1).opposite()),
            },
            _ => match sizes(arena, rel, a, b).or_else(|| shifted(arena, rel, a, b)) {
                Some(guard) => Ok(guard),
                None => tried(arena, e),
            },
        }
    }
}

/// An expression as bits, the most significant first; none where it is more than that.
pub(super) fn bits(arena: &Arena, e: ExprId) -> Option<Vec<Bit>> {
    Looked::default().bits(arena, e)
}

/// Expressions that were looked at as bits: parts that are shared are looked at once.
#[derive(Default)]
struct Looked {
    known: HashMap<ExprId, Option<Vec<Bit>>>,
    depth: usize,
}

impl Looked {
    fn bits(&mut self, arena: &Arena, e: ExprId) -> Option<Vec<Bit>> {
        if let Some(known) = self.known.get(&e) {
            return known.clone();
        }
        if self.depth > DEEP {
            return None;
        }
        self.depth += 1;
        let made = self.made(arena, e);
        self.depth -= 1;
        self.known.insert(e, made.clone());
        made
    }

    fn made(&mut self, arena: &Arena, e: ExprId) -> Option<Vec<Bit>> {
        let width = arena.width(e);
        Some(match arena.node(e) {
            Node::Const(value) => (0..width)
                .rev()
                .map(|n| Bit::Const(value >> n & 1 == 1))
                .collect(),
            Node::Sym(s) if arena.symbol(*s).origin == Origin::Length => {
                (0..width).map(Bit::Length).collect()
            }
            Node::Byte { base: None, at } => {
                let first = u32::try_from(*at).ok()? * 8;
                (first..first + 8)
                    .map(|bit| Bit::Of(Base::Front, bit))
                    .collect()
            }
            Node::Byte {
                base: Some(base),
                at,
            } => {
                let header = header_length(&self.bits(arena, *base)?)?;
                let first = u32::try_from(at - i64::from(header)).ok()? * 8;
                (first..first + 8)
                    .map(|bit| Bit::Of(Base::Upper(header), bit))
                    .collect()
            }
            Node::Concat(parts) => {
                let mut all = Vec::with_capacity(width as usize);
                for part in parts.iter() {
                    all.extend(self.bits(arena, *part)?);
                }
                all
            }
            Node::Extract { of, low } => {
                let all = self.bits(arena, *of)?;
                let end = all.len().checked_sub(*low as usize)?;
                all.get(end.checked_sub(width as usize)?..end)?.to_vec()
            }
            Node::SignExtend(of) => {
                let all = self.bits(arena, *of)?;
                let sign = all.first().filter(|b| matches!(b, Bit::Const(_)))?;
                let more = (width as usize).checked_sub(all.len())?;
                std::iter::repeat_n(*sign, more)
                    .chain(all.iter().copied())
                    .collect()
            }
            Node::Bin(op @ (Bin::And | Bin::Or | Bin::Xor), a, b) => {
                let (a, b) = (self.bits(arena, *a)?, self.bits(arena, *b)?);
                let each = a.into_iter().zip(b).map(|(a, b)| match (op, a, b) {
                    (Bin::And, Bit::Const(false), _) | (Bin::And, _, Bit::Const(false)) => {
                        Some(Bit::Const(false))
                    }
                    (Bin::Or, Bit::Const(true), _) | (Bin::Or, _, Bit::Const(true)) => {
                        Some(Bit::Const(true))
                    }
                    (Bin::And, Bit::Const(true), x) | (Bin::And, x, Bit::Const(true)) => Some(x),
                    (Bin::Or | Bin::Xor, Bit::Const(false), x)
                    | (Bin::Or | Bin::Xor, x, Bit::Const(false)) => Some(x),
                    _ => None,
                });
                each.collect::<Option<_>>()?
            }
            _ => return None,
        })
    }
}

/// The byte of the IPv4 header whose length in bytes these bits are.
pub(super) fn header_length(bits: &[Bit]) -> Option<u16> {
    let (rest, own) = bits.split_at_checked(bits.len().checked_sub(6)?)?;
    let zero = |b: &Bit| *b == Bit::Const(false);
    let [Bit::Of(Base::Front, first), .., low, last] = own else {
        return None;
    };
    let four = own.iter().take(4).zip(*first..);
    let in_order = { four }.all(|(bit, at)| *bit == Bit::Of(Base::Front, at));
    let fits = rest.iter().all(zero) && zero(low) && zero(last) && in_order && first % 8 == 4;
    u16::try_from(first / 8).ok().filter(|_| fits)
}

/// A test of a run of bits.
fn run(base: Base, first: u32, width: u32, ranges: &[(u64, u64)]) -> Guard {
    let field = Field::Bits { base, first, width };
    Guard::Within(field, ranges.into())
}

/// A run of bits of one number, or of constants with their value.
#[derive(Clone, Copy, Debug)]
enum Run {
    Const(u64, u32),
    Of(Base, u32, u32),
    Length,
}

impl Run {
    fn width(&self) -> u32 {
        match self {
            Self::Const(_, width) | Self::Of(_, _, width) => *width,
            Self::Length => 16,
        }
    }

    /// A test of it.
    fn within(&self, ranges: &[(u64, u64)]) -> Guard {
        match self {
            Self::Const(value, _) => {
                Guard::Constant(ranges.iter().any(|r| (r.0..=r.1).contains(value)))
            }
            Self::Of(base, first, width) => run(*base, *first, *width, ranges),
            Self::Length => Guard::Within(Field::Length, ranges.into()),
        }
    }
}

/// Bits as runs, the most significant first.
fn runs(bits: &[Bit]) -> Result<Vec<Run>, Refused> {
    let mut runs: Vec<Run> = Vec::new();
    let mut length = 0;
    for bit in bits {
        match (bit, runs.last_mut()) {
            (Bit::Const(one), Some(Run::Const(value, width))) => {
                *value = *value << 1 | u64::from(*one);
                *width += 1;
            }
            (Bit::Const(one), _) => runs.push(Run::Const(u64::from(*one), 1)),
            (Bit::Of(base, at), Some(Run::Of(own, first, width)))
                if base == own && *at == *first + *width =>
            {
                *width += 1;
            }
            (Bit::Of(base, at), _) => runs.push(Run::Of(*base, *at, 1)),
            (Bit::Length(0), _) => {
                length = 1;
                runs.push(Run::Length);
            }
            (Bit::Length(n), Some(Run::Length)) if *n == length => length += 1,
            (Bit::Length(_), _) => return Err("it tests a part of the packet's length".into()),
        }
    }
    let whole = length == 0 || length == 16;
    whole
        .then_some(runs)
        .ok_or_else(|| "it tests a part of the packet's length".into())
}

/// Whether bits are a number, in whatever order they are.
fn equal(bits: &[Bit], number: u64) -> Made {
    let value = |n: usize| number >> (bits.len() - 1 - n) & 1;
    let mut sorted: Vec<(Bit, u64)> = bits
        .iter()
        .copied()
        .enumerate()
        .map(|(n, b)| (b, value(n)))
        .collect();
    sorted.sort_by_key(|s| s.0);
    sorted.dedup();
    let plain: Vec<Bit> = sorted.iter().map(|s| s.0).collect();
    // One bit in two places.
    let twice = |w: &[Bit]| w.first() == w.last() && !matches!(w.first(), Some(Bit::Const(_)));
    if plain.windows(2).any(twice) {
        return Ok(Guard::Constant(false));
    }
    let mut left: &[(Bit, u64)] = &sorted;
    let mut all = Vec::new();
    for run in runs(&plain)? {
        let (own, rest) = left
            .split_at_checked(run.width() as usize)
            .unwrap_or((left, &[]));
        left = rest;
        let value = own.iter().fold(0, |n, s| n << 1 | s.1);
        all.push(run.within(&[(value, value)]));
    }
    Ok(Guard::All(all.into()))
}

/// Whether the number that runs make up is less than another.
fn less(runs: &[Run], number: u64) -> Guard {
    let Some((first, rest)) = runs.split_first() else {
        return Guard::Constant(false);
    };
    let below: u32 = rest.iter().map(Run::width).sum();
    let own = number.checked_shr(below).unwrap_or(0) & mask(first.width());
    let behind = less(rest, number & mask(below));
    let equal = first.within(&[(own, own)]);
    let both = match behind {
        Guard::Constant(false) => Guard::Constant(false),
        behind => Guard::All(Arc::new([equal, behind])),
    };
    match own.checked_sub(1) {
        None => both,
        Some(most) => Guard::Any(Arc::new([first.within(&[(0, most)]), both])),
    }
}

fn positive(arena: &Arena, e: ExprId) -> bool {
    arena.significant(e) < arena.width(e)
}

/// Whether the number that runs make up lies in an interval.
fn between(runs: &[Run], low: u64, high: u64, most: u64) -> Guard {
    let upper = match high < most {
        true => less(runs, high + 1),
        false => Guard::Constant(true),
    };
    match low {
        0 => upper,
        low => Guard::All(Arc::new([less(runs, low).opposite(), upper])),
    }
}

/// A number with another added, in arithmetic of its width, compared with a third: how compilers test an interval.
fn shifted(arena: &Arena, rel: Rel, a: ExprId, b: ExprId) -> Option<Guard> {
    let most = mask(arena.width(a));
    let (of, low, high) = match (rel, arena.constant(a), arena.constant(b)) {
        (Rel::Eq, Some(number), None) => (b, number, number),
        (Rel::Eq, None, Some(number)) => (a, number, number),
        (Rel::Less, None, Some(number)) => (a, 0, number.checked_sub(1)?),
        (Rel::Less, Some(number), None) if number < most => (b, number + 1, most),
        _ => return None,
    };
    let (terms, more) = arena.linear(of);
    let [(term, 1)] = terms.as_slice() else {
        return None;
    };
    let bits = bits(arena, *term)?;
    let significant = { bits.iter() }
        .skip_while(|b| **b == Bit::Const(false))
        .count();
    let top = mask(significant as u32);
    let runs = runs(&bits).ok()?;
    let (low, high) = (
        low.wrapping_sub(more) & most,
        high.wrapping_sub(more) & most,
    );
    // Beyond the highest number it goes on at 0.
    let parts = match low <= high {
        true => vec![(low, high)],
        false => vec![(0, high), (low, most)],
    };
    let parts = parts.into_iter().filter(|part| part.0 <= top);
    let each = parts.map(|(low, high)| between(&runs, low, high.min(top), most));
    Some(Guard::Any(each.collect()))
}

/// A length and a header's, with what is added to them.
fn lengths(arena: &Arena, e: ExprId) -> Option<(Option<u16>, bool, u64)> {
    let (terms, constant) = arena.linear(e);
    if constant > FAR {
        return None;
    }
    let (mut header, mut length) = (None, false);
    for (term, factor) in terms {
        let mut bits = bits(arena, term)?;
        let whole = |bits: &[Bit]| {
            let plain = bits.iter().skip_while(|b| **b == Bit::Const(false));
            plain.copied().eq((0..16).map(Bit::Length))
        };
        match factor {
            1 if whole(&bits) && !length => length = true,
            1 | 4 if header.is_none() => {
                if factor == 4 {
                    bits.extend([Bit::Const(false); 2]);
                }
                header = Some(header_length(&bits)?);
            }
            _ => return None,
        }
    }
    Some((header, length, constant))
}

/// `a < b` where one is the packet's length and the other the place of a byte behind a header, each with a number added.
fn room(arena: &Arena, a: ExprId, b: ExprId) -> Option<Guard> {
    if arena.width(a) < 32 {
        return None;
    }
    let (x, y) = (lengths(arena, a)?, lengths(arena, b)?);
    match (x, y) {
        // length + c < header + d: not so many bytes are there.
        ((None, true, c), (Some(at), false, d)) => Some(bytes(at, d as i64 - c as i64).opposite()),
        // header + c < length + d: one byte more is there.
        ((Some(at), false, c), (None, true, d)) => Some(bytes(at, c as i64 - d as i64 + 1)),
        _ => None,
    }
}

/// `at` bytes from the front and a header's length less than `least` bytes are there: `length >= 4 * ihl + least`.
fn bytes(at: u16, least: i64) -> Guard {
    let beyond = least - i64::from(at);
    if let Ok(bytes @ 1..=9000) = u16::try_from(beyond) {
        return Guard::Room(at, bytes);
    }
    let ihl = |words: i64| {
        run(
            Base::Front,
            u32::from(at) * 8 + 4,
            4,
            &[(words as u64, words as u64)],
        )
    };
    let each = (0..16).map(|words| {
        let least = (4 * words + least).clamp(0, 65_536) as u64;
        let long = match least {
            65_536 => Guard::Constant(false),
            least => Guard::Within(Field::Length, [(least, 65_535)].into()),
        };
        Guard::All(Arc::new([ihl(words), long]))
    });
    Guard::Any(each.collect())
}

/// Comparisons of a header's length with a number of 16 bits: a case for each length.
fn sizes(arena: &mut Arena, rel: Rel, a: ExprId, b: ExprId) -> Option<Guard> {
    let (x, y) = (bits(arena, a)?, bits(arena, b)?);
    let (at, number, first) = match (header_length(&x), header_length(&y)) {
        (Some(at), None) => (at, y, true),
        (None, Some(at)) => (at, x, false),
        _ => return None,
    };
    let ihl = |words: u64| run(Base::Front, u32::from(at) * 8 + 4, 4, &[(words, words)]);
    let each = (0..16).map(|words| {
        let header = 4 * words;
        let test = match (rel, first) {
            (Rel::Eq, _) => equal(&number, header),
            (Rel::Less, false) => runs(&number).map(|runs| less(&runs, header)),
            (Rel::Less, true) => runs(&number).map(|runs| less(&runs, header + 1).opposite()),
            (Rel::SignedLess, _) => return None,
        };
        Some(Guard::All(Arc::new([ihl(words), test.ok()?])))
    });
    Some(Guard::Any(each.collect::<Option<Arc<_>>>()?))
}

/// What a condition of 16 bits at most says of each value of them.
fn tried(arena: &Arena, e: ExprId) -> Made {
    let why = || "a condition of it is no test of a header field".to_owned();
    let mut places: Vec<(Base, u32)> = Vec::new();
    let (mut todo, mut seen) = (vec![e], HashSet::new());
    while let Some(id) = todo.pop() {
        if !seen.insert(id) {
            continue;
        }
        match arena.node(id) {
            Node::Sym(_) => return Err(format!("{}, but of {}", why(), symbols(arena, e))),
            // What a place is computed from is no value of the condition.
            Node::Byte { .. } => match bits(arena, id).as_deref() {
                Some([Bit::Of(base, first), ..]) => places.push((*base, first / 8)),
                _ => {
                    return Err(
                        "it reads a byte at a place that is computed from the packet".into(),
                    );
                }
            },
            node => each_child(node, |c| todo.push(c)),
        }
    }
    places.sort_unstable();
    places.dedup();
    let (Some(first), Some(last)) = (places.first().copied(), places.last().copied()) else {
        return Err(why());
    };
    if first.0 != last.0 || last.1 - first.1 > 1 {
        return Err(format!("{}: it compares several", why()));
    }
    let bytes = last.1 - first.1 + 1;
    let width = 8 * bytes;
    let start = match first.0 {
        Base::Front => u64::from(first.1),
        Base::Upper(at) => u64::from(at) + 20 + u64::from(first.1),
    };
    // Where the bytes are, the header's length says.
    let ihl = match first.0 {
        Base::Upper(at) => Some(u64::from(at)),
        Base::Front => None,
    };
    let mut course = Course::of(arena, &[e]);
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for begin in (0..1_u64 << width).step_by(LANES) {
        course.run(arena, |lane, offset| {
            let value = begin + lane as u64;
            match offset.checked_sub(start) {
                Some(n) if n < u64::from(bytes) => {
                    (value >> (8 * (u64::from(bytes) - 1 - n))) as u8
                }
                _ if ihl == Some(offset) => 5,
                _ => 0,
            }
        });
        for lane in 0..LANES {
            let value = begin + lane as u64;
            if course.value(lane, e) != 1 {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if last.1 + 1 == value => last.1 = value,
                _ => ranges.push((value, value)),
            }
        }
        if ranges.len() > MOST_RANGES {
            return Err(format!("{}: it has too many intervals", why()));
        }
    }
    Ok(match ranges.as_slice() {
        [] => Guard::Constant(false),
        [(0, last)] if *last == mask(width) => Guard::Constant(true),
        ranges => run(first.0, first.1 * 8, width, ranges),
    })
}

/// What symbols a condition depends on, in words.
fn symbols(arena: &Arena, e: ExprId) -> String {
    let all = cone(arena, &[e], |_| false);
    let mut names: Vec<String> = { all.iter() }
        .filter_map(|id| match arena.node(*id) {
            Node::Sym(s) => Some(arena.symbol(*s).name.clone()),
            _ => None,
        })
        .collect();
    names.sort();
    names.dedup();
    names.join(", ")
}
