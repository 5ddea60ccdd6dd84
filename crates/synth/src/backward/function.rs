//! Functions of other dialects: guards of their ways as diagrams, and what the ways write.
//!
//! Places are counted from the packet's first byte. A guard that asks for bytes asks first whether they are there; where they are not, the
//! function did not look at them either, so that it does not matter what is said then.

use std::collections::{HashMap, HashSet};

use millrace_click::function::{Base as From, Decided, End, Field, Guard, Way, Write as Written};
use millrace_click::language::Port;

use super::{Backward, Made, Shape, Stop};
use crate::action::{Sums, Value, Verdict, Write};
use crate::diagram::{Id, output};
use crate::field::{Base, Var, bit, ip};
use crate::sets::Part;

/// Leaves of conditions: false, true, and what nothing says; behind them the ways.
const NO: usize = 0;
const YES: usize = 1;
const UNKNOWN: usize = 2;
const WAYS: usize = 3;

/// Bytes of an IPv4 header without options.
const HEADER: u32 = 20;
/// The first bit of the transport header behind such a one, where that is behind an Ethernet header.
const USUAL: u32 = (14 + HEADER) * 8;
/// Where the length of the IP header is.
const LENGTH: std::ops::Range<u32> = 14 * 8 + 4..15 * 8;

/// A guard's diagrams, by the parts that guards share.
#[derive(Default)]
struct Memo {
    made: HashMap<usize, Id>,
    /// the function looks at the length of the IP header: bytes at fixed places behind one without options are those of the transport header
    plain: bool,
}

impl Backward<'_> {
    pub(super) fn function(&mut self, to: Port, shape: Shape, decided: &Decided) -> Made {
        let id = to.element;
        if shape.short || shape.head < 0 {
            return Ok(self.hand(id));
        }
        let ways = decided.inputs.get(to.port).map_or(&[][..], Vec::as_slice);
        let unknown = self.store.leaf(output(UNKNOWN));
        let mut memo = Memo {
            plain: looks_at_length(ways),
            ..Memo::default()
        };
        let mut chosen = unknown;
        for (number, way) in ways.iter().enumerate().rev() {
            let guard = self.guard(id, shape, &way.guard, &mut memo)?;
            let leaf = self.store.leaf(output(WAYS + number));
            // Each packet takes one way: where nothing says whether it is this one, the others may.
            chosen = self.store.compose(guard, &[chosen, leaf, chosen])?;
        }
        for (at, sum) in headers(ways) {
            chosen = self.checked(shape, chosen, at, sum)?;
        }
        let hand = self.hand(id);
        let mut behind = vec![hand; WAYS];
        for way in ways {
            behind.push(self.way(id, shape, way)?);
        }
        Ok(self.store.compose(chosen, &behind)?)
    }

    /// What a right header tells of its fields, so that they are not asked again.
    fn checked(&mut self, shape: Shape, node: Id, at: u16, sum: bool) -> Made {
        let Ok(at) = u16::try_from(shape.head + i32::from(at)) else {
            return Ok(node);
        };
        if shape.right.is_some_and(|right| right.0 == at) {
            let node = self.store.known(node, ip(at, bit::IHL), 5, 15)?;
            let node = self.store.known(node, ip(at, 0), 4, 4)?;
            return Ok(self.store.known(node, ip(at, bit::LENGTH), 20, 65_535)?);
        }
        let var = Var::Checked(at, sum);
        let mut nodes = self.store.reachable(node).into_iter();
        if !nodes.any(|id| self.store.top(id) == Some(var)) {
            return Ok(node);
        }
        let mut right = self.store.known(node, var, 1, 1)?;
        right = self.store.known(right, Var::Checked(at, false), 1, 1)?;
        right = self.store.known(right, ip(at, bit::IHL), 5, 15)?;
        right = self.store.known(right, ip(at, 0), 4, 4)?;
        right = self.store.known(right, ip(at, bit::LENGTH), 20, 65_535)?;
        let wrong = self.store.known(node, var, 0, 0)?;
        Ok(self.store.within(var, &[(1, 1)], right, wrong)?)
    }

    /// What follows on a way.
    fn way(&mut self, id: usize, shape: Shape, way: &Way) -> Made {
        let port = match &way.end {
            End::Drop(why) => {
                return Ok(match why {
                    Some(why) if !self.reasons => self.dropped_because(why),
                    _ => self.dropped(id),
                });
            }
            End::Output(port) => *port,
        };
        let place = |at: u16| u16::try_from(shape.head + i32::from(at)).ok();
        let lowered = way.writes.iter().find_map(|w| match w {
            Written::Ttl(at) => place(*at),
            Written::Link(..) => None,
        });
        let unchecked = lowered.is_some_and(|at| shape.right.is_none_or(|r| r.0 != at));
        let after = Shape {
            risky: shape.risky || unchecked,
            ..shape
        };
        let mut node = self.next(id, port, after)?;
        for write in &way.writes {
            node = match write {
                Written::Link(first, bytes, value) => {
                    let from = shape.head + *first as i32;
                    let value = value.to_be_bytes();
                    let value = value.get(8 - (*bytes as usize).min(8)..).unwrap_or(&[]);
                    self.overwrite(id, node, from, value, shape)?
                }
                Written::Ttl(at) => {
                    let Some(at) = place(*at) else {
                        return Ok(self.hand(id));
                    };
                    let var = ip(at, bit::TTL);
                    let write = Write {
                        value: Value::Field(var, -1),
                        sums: Sums {
                            header: Some(at),
                            upper: 0,
                        },
                        again: false,
                    };
                    let hand = self.hand(id);
                    let lowered = self.written(id, node, var, write)?;
                    self.present(id, shape, i32::from(at) + HEADER as i32, lowered, hand)?
                }
            };
        }
        Ok(node)
    }

    /// The diagram of a guard, whose leaves are [`NO`], [`YES`] and [`UNKNOWN`].
    fn guard(&mut self, id: usize, shape: Shape, guard: &Guard, memo: &mut Memo) -> Made {
        let (no, yes) = (self.store.leaf(output(NO)), self.store.leaf(output(YES)));
        let unknown = self.store.leaf(output(UNKNOWN));
        let place = match guard {
            Guard::If(parts) => parts.as_ptr() as usize,
            Guard::All(parts) | Guard::Any(parts) => parts.as_ptr() as usize,
            Guard::Constant(holds) => return Ok(if *holds { yes } else { no }),
            Guard::Unknown => return Ok(unknown),
            Guard::Within(field, ranges) => {
                return self.field(id, shape, (*field, memo.plain), ranges, (yes, no));
            }
            Guard::Room(at, bytes) => {
                return self.upper(id, shape, *at, u64::from(*bytes), yes, no);
            }
            Guard::Right(at, sum) => {
                let Ok(at) = u16::try_from(shape.head + i32::from(*at)) else {
                    return Ok(no);
                };
                if shape.cut.is_some_and(|cut| cut != at) {
                    return Ok(self.unsaid(id, "a header within the payload of another is checked"));
                }
                let right = shape.right.filter(|r| r.0 == at);
                if right.is_some_and(|r| r.1 || !sum) {
                    return Ok(yes);
                }
                let var = Var::Checked(at, *sum);
                self.origins.entry((var, 1)).or_insert(id);
                return Ok(self.store.within(var, &[(1, 1)], yes, no)?);
            }
        };
        if let Some(done) = memo.made.get(&place) {
            return Ok(*done);
        }
        let node = match guard {
            Guard::If(parts) => {
                let [condition, then, other] = &**parts;
                let condition = self.guard(id, shape, condition, memo)?;
                let then = self.guard(id, shape, then, memo)?;
                let other = self.guard(id, shape, other, memo)?;
                // What both say holds whatever the condition.
                let false_too = self.store.compose(other, &[no, unknown, unknown])?;
                let true_too = self.store.compose(other, &[unknown, yes, unknown])?;
                let both = self.store.compose(then, &[false_too, true_too, unknown])?;
                self.store.compose(condition, &[other, then, both])?
            }
            Guard::All(parts) => parts.iter().rev().try_fold(yes, |node, part| {
                let part = self.guard(id, shape, part, memo)?;
                let never = self.store.compose(node, &[no, unknown, unknown])?;
                Ok::<_, Stop>(self.store.compose(part, &[no, node, never])?)
            })?,
            Guard::Any(parts) => parts.iter().rev().try_fold(no, |node, part| {
                let part = self.guard(id, shape, part, memo)?;
                let always = self.store.compose(node, &[unknown, yes, unknown])?;
                Ok::<_, Stop>(self.store.compose(part, &[node, yes, always])?)
            })?,
            _ => unknown,
        };
        memo.made.insert(place, node);
        Ok(node)
    }

    /// `yes` where a number is in one of some intervals.
    fn field(
        &mut self,
        id: usize,
        shape: Shape,
        (field, plain): (Field, bool),
        ranges: &[(u64, u64)],
        (yes, no): (Id, Id),
    ) -> Made {
        let (base, first, width) = match field {
            Field::Length => {
                let mut node = no;
                for (low, high) in ranges {
                    let beyond = (*high < 65_535).then_some(*high as i32 + 1 + shape.head);
                    let within = match beyond {
                        Some(end) => self.present(id, shape, end, no, yes)?,
                        None => yes,
                    };
                    node = self.present(id, shape, *low as i32 + shape.head, within, node)?;
                }
                return Ok(node);
            }
            Field::Bits { base, first, width } => (base, first, width),
        };
        let head = shape.head.unsigned_abs();
        let (base, start) = match base {
            From::Front => (Base::Frame, first + head * 8),
            From::Upper(at) => match u16::try_from(head + u32::from(at)) {
                Ok(at) => (Base::Upper(at), first),
                Err(_) => return Ok(no),
            },
        };
        // The packet's own IP header is meant to be behind its Ethernet header.
        let layout = match u16::try_from(shape.head + 14) {
            Ok(at) => at,
            Err(_) => return Ok(no),
        };
        if let (true, Base::Frame, Some(behind)) = (plain, base, first.checked_sub(USUAL)) {
            let own = self.field(id, shape, (field, false), ranges, (yes, no))?;
            let field = Field::Bits {
                base: From::Upper(14),
                first: behind,
                width,
            };
            let same = self.field(id, shape, (field, false), ranges, (yes, no))?;
            return Ok(self
                .store
                .within(ip(layout, bit::IHL), &[(5, 5)], same, own)?);
        }
        let parts = pieces(base, layout, start, width);
        let mut node = no;
        for (low, high) in ranges {
            let below = self.ordered(id, &parts, *low, true, (yes, no))?;
            let above = self.ordered(id, &parts, *high, false, (yes, no))?;
            let within = self.store.compose(below, &[no, above])?;
            node = self.store.compose(within, &[node, yes])?;
        }
        let end = (first + width).div_ceil(8);
        match base {
            Base::Frame => self.present(id, shape, shape.head + end as i32, node, no),
            Base::Upper(at) => {
                let at = at - shape.head.unsigned_abs() as u16;
                self.upper(id, shape, at, u64::from(end), node, no)
            }
        }
    }

    /// `yes` where the number that pieces of fields make up is not less (or not more) than a value.
    fn ordered(
        &mut self,
        id: usize,
        pieces: &[(Var, u64)],
        value: u64,
        least: bool,
        (yes, no): (Id, Id),
    ) -> Made {
        let mut shift = 0;
        let mut parts = Vec::new();
        for (var, mask) in pieces.iter().rev() {
            let bits = mask.count_ones();
            let own = value >> shift & u64::MAX >> (64 - bits);
            parts.push(Part {
                var: *var,
                mask: *mask,
                value: own << mask.trailing_zeros(),
            });
            shift += bits;
        }
        parts.reverse();
        let how = match least {
            true => millrace_click::filter::Compare::AtLeast,
            false => millrace_click::filter::Compare::AtMost,
        };
        self.compare(id, &parts, how, yes, no)
    }

    /// `yes` where so many bytes of the transport header are there.
    fn upper(&mut self, id: usize, shape: Shape, at: u16, bytes: u64, yes: Id, no: Id) -> Made {
        let network = shape.head + i32::from(at);
        let shape = Shape {
            network: Some(network),
            ..shape
        };
        self.room(id, shape, bytes, yes, no)
    }

    /// A packet that is dropped for a reason of a function's own.
    fn dropped_because(&mut self, why: &str) -> Id {
        let number = self.drops.iter().position(|d| d == why);
        let number = number.unwrap_or_else(|| {
            self.drops.push(why.to_owned());
            self.drops.len() - 1
        });
        let first = self.router.graph().elements.len();
        let action = self.actions.plain(Verdict::Drop(first + number));
        self.store.leaf(action)
    }

    /// A packet that is given to the host, as it is.
    pub(super) fn passed(&mut self, id: usize, shape: Shape) -> Made {
        let verdict = Verdict::Pass(id);
        self.ended(id, verdict, shape)
    }
}

/// The fields that some bits lie in, the most significant first, and which bits of each.
fn pieces(base: Base, layout: u16, start: u32, width: u32) -> Vec<(Var, u64)> {
    let mut pieces: Vec<(Var, u64)> = Vec::new();
    for place in start..start + width {
        let var = match base {
            Base::Frame => crate::field::of_frame(layout, place),
            Base::Upper(at) => crate::field::of_upper(at, place),
        };
        let Var::Bits(_, first, wide) = var else {
            continue;
        };
        let bit = 1 << (first + u32::from(wide) - 1 - place);
        match pieces.last_mut() {
            Some(last) if last.0 == var => last.1 |= bit,
            _ => pieces.push((var, bit)),
        }
    }
    pieces
}

/// Calls a function with each part of some ways' guards, each once.
fn each_part(ways: &[Way], of: &mut dyn FnMut(&Guard)) {
    let mut todo: Vec<&Guard> = ways.iter().map(|way| &way.guard).collect();
    let mut seen = HashSet::new();
    while let Some(guard) = todo.pop() {
        let parts = match guard {
            Guard::If(parts) => &parts[..],
            Guard::All(parts) | Guard::Any(parts) => parts,
            guard => {
                of(guard);
                continue;
            }
        };
        if seen.insert(parts.as_ptr()) {
            todo.extend(parts);
        }
    }
}

/// Whether the length of the IP header is tested by itself.
fn looks_at_length(ways: &[Way]) -> bool {
    let mut found = false;
    each_part(ways, &mut |guard| {
        if let Guard::Within(
            Field::Bits {
                base: From::Front,
                first,
                width,
            },
            _,
        ) = guard
        {
            found |= *first < LENGTH.end && first + width > LENGTH.start && *first >= 14 * 8;
        }
    });
    found
}

/// The headers that guards check, those with their sums first.
fn headers(ways: &[Way]) -> Vec<(u16, bool)> {
    let mut found = Vec::new();
    each_part(ways, &mut |guard| {
        if let Guard::Right(at, sum) = guard
            && !found.contains(&(*at, *sum))
        {
            found.push((*at, *sum));
        }
    });
    found.sort_by_key(|(at, sum)| (!sum, *at));
    found
}
