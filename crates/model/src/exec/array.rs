//! Accesses to arrays of more elements than `offset` follows one by one, within a value, a variable or the stack: one
//! path, on which the offset chooses the element.
//!
//! A load is the element whose offset it is, of all that the pointer can lead to. A store leaves in each element what is
//! stored if it is the one, and else what was there. What adds to the element adds to each of them what is added or 0,
//! so that it is seen to be a sum (sums.rs): `counts[i] += n` is, for each k, `counts[k] += (i == k ? n : 0)`.
//!
//! Which elements there are the proof of safety says, by the bytes that the instruction touches over all executions, and
//! the offset itself, by the factors that it is a sum of.

use millrace_object::program::Line;

use super::state::{Region, State};
use super::{Engine, Gap};
use crate::expr::walk::cone;
use crate::expr::{ExprId, Node, Rel};
use crate::model::Effect;

/// Most bytes that all elements of an array have, and most elements. A state of a path holds an expression for each byte.
const BYTES: usize = 2048;
const ELEMENTS: usize = 1024;

/// Deepest frame of the stack, in bytes.
const FRAME: i64 = 512;

/// The elements that an access may be to.
pub(super) struct Array {
    region: Region,
    offset: ExprId,
    /// bytes of an element that are accessed
    bytes: u32,
    /// where these begin, ascending
    at: Vec<i64>,
    /// there are others on the stack, that hold nothing yet
    open: bool,
}

/// The offset that chooses an element, and the elements by their offsets.
pub(super) type Selected = (ExprId, Vec<(i64, ExprId)>);

fn gap<T>(what: impl Into<String>) -> Result<T, Gap> {
    Err(Gap(what.into()))
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

impl Engine<'_> {
    /// The array that an access is to; none where the offset is a number, where it is one only because paths were cut,
    /// or where there are too many elements.
    pub(super) fn array(
        &self,
        s: &State,
        region: Region,
        offset: ExprId,
        bytes: u32,
    ) -> Option<Array> {
        if self.guide.is_some()
            || self.arena.constant(offset).is_some()
            || self.stands_for_several(offset)
        {
            return None;
        }
        let (from, to) = self.extent(s, region)?;
        let (first, stride, most) = self.progression(offset)?;
        // Elements do not overlap: else what is stored in one would be a part of another.
        let stride = i64::try_from(stride).ok()?.max(1);
        if stride < i64::from(bytes) {
            return None;
        }
        let end = most
            .and_then(|m| first.checked_add(m))
            .map_or(to, |m| to.min(m.saturating_add(i64::from(bytes))));
        let from = if most.is_some() {
            from.max(first)
        } else {
            from
        };
        let begin = from.checked_add(first.checked_sub(from)?.rem_euclid(stride))?;
        let last = end.checked_sub(i64::from(bytes))?;
        let span = usize::try_from(last.checked_sub(begin)?).ok()?;
        let count = span / stride as usize + 1;
        if count > ELEMENTS || count * bytes as usize > BYTES || span > BYTES {
            return None;
        }
        let all = (0..count as i64).map(|i| begin + i * stride);
        let at: Vec<i64> = match region {
            // The proof admits no read of what is not written.
            Region::Stack(frame) => all
                .filter(|at| s.stack.contains_key(&(frame, *at)))
                .collect(),
            _ => all.collect(),
        };
        Some(Array {
            region,
            offset,
            bytes,
            open: at.len() < count,
            at,
        })
    }

    /// Whether an offset is any number only behind a cut: it stays what it is when all is followed once more.
    fn stands_for_several(&self, offset: ExprId) -> bool {
        let nodes = cone(&self.arena, &[offset], |_| false);
        let mut symbols = nodes.iter().filter_map(|e| match self.arena.node(*e) {
            Node::Sym(symbol) => Some(symbol),
            _ => None,
        });
        symbols.any(|symbol| self.stood.contains_key(symbol))
    }

    /// The bytes of a region that the instruction touches over all executions.
    fn extent(&self, s: &State, region: Region) -> Option<(i64, i64)> {
        match region {
            Region::Stack(_) => Some((-FRAME, 0)),
            Region::Place(place) => {
                let object = s.places.get(place)?.object;
                let step = self.flow.steps.get(s.at)?;
                let known = step.extents.iter().find(|e| e.object == object);
                known.map(|e| (i64::from(e.from), i64::from(e.to)))
            }
            _ => None,
        }
    }

    /// All that an offset can be: a number, and so many times a stride more, up to a greatest where that is known.
    fn progression(&self, offset: ExprId) -> Option<(i64, u64, Option<i64>)> {
        let (terms, first) = self.arena.linear(offset);
        let (mut stride, mut most, mut power) = (0_u64, 0_u128, 63);
        for (e, factor) in terms {
            let bits = self.arena.bits(e);
            let greatest = bits.value | bits.mask;
            let low = greatest.trailing_zeros().min(63);
            most = most.saturating_add(u128::from(factor) * u128::from(greatest));
            // A term that is a multiple of a power of two is one after any wrap, too.
            power = power.min((low + factor.trailing_zeros()).min(63));
            stride = divisor(stride, factor.checked_mul(1 << low).unwrap_or(1 << power));
        }
        match i64::try_from(most) {
            Ok(most) => Some((first as i64, stride, Some(most))),
            Err(_) => Some((first as i64, 1 << power, None)),
        }
    }

    /// An element as it is now.
    fn element(&mut self, s: &mut State, array: &Array, at: i64) -> Result<ExprId, Gap> {
        let at = self.arena.number(at as u64, 64);
        let mut parts = self.read(s, array.region, at, array.bytes)?;
        parts.reverse();
        Ok(self.arena.concat(&parts))
    }

    /// The element that is accessed, as it is now.
    pub(super) fn chosen(&mut self, s: &mut State, array: &Array) -> Result<ExprId, Gap> {
        let mut elements = Vec::new();
        for at in &array.at {
            elements.push((*at, self.element(s, array, *at)?));
        }
        if elements.is_empty() {
            return gap("an array without elements is read");
        }
        let whole = self.select(array.offset, &elements);
        self.selected.insert(whole, (array.offset, elements));
        Ok(whole)
    }

    /// By halves, so that no choice is as deep as the array is long.
    fn select(&mut self, offset: ExprId, elements: &[(i64, ExprId)]) -> ExprId {
        let (low, high) = elements.split_at(elements.len() / 2);
        match (low, high) {
            ([], [(_, only)]) => *only,
            (_, [(first, _), ..]) => {
                let first = self.arena.number(*first as u64, 64);
                let below = self.arena.compare(Rel::SignedLess, offset, first);
                let (low, high) = (self.select(offset, low), self.select(offset, high));
                self.arena.ite(below, low, high)
            }
            _ => self.arena.number(0, 64),
        }
    }

    /// Stores a number of an element's width in the element that is accessed.
    pub(super) fn choose(
        &mut self,
        s: &mut State,
        array: &Array,
        value: ExprId,
    ) -> Result<(), Gap> {
        if array.open {
            return gap("one of several bytes of stack is written that hold nothing yet");
        }
        // What it is more than the element, where it is made of that by addition.
        let (terms, _) = self.arena.linear(value);
        let base = terms.into_iter().find_map(|(e, factor)| {
            let (offset, elements) = self.selected.get(&e)?;
            (factor == 1 && *offset == array.offset).then(|| (e, elements.clone()))
        });
        let more = base.map(|(e, elements)| (self.arena.minus(value, e), elements));
        let zero = self.arena.number(0, 8 * array.bytes);
        for at in &array.at {
            let old = self.element(s, array, *at)?;
            let here = self.arena.number(*at as u64, 64);
            let here = self.arena.compare(Rel::Eq, array.offset, here);
            let added = more.as_ref().and_then(|(more, elements)| {
                let same = elements.contains(&(*at, old));
                same.then_some(*more)
            });
            let new = match added {
                Some(more) => {
                    let more = self.arena.ite(here, more, zero);
                    self.arena.binary(crate::expr::Bin::Add, old, more)
                }
                None => self.arena.ite(here, value, old),
            };
            let parts: Vec<ExprId> = (0..array.bytes)
                .map(|i| self.arena.extract(new, 8 * i, 8))
                .collect();
            let at = self.arena.number(*at as u64, 64);
            self.write(s, array.region, at, &parts)?;
        }
        Ok(())
    }

    /// Records an access to one of an array's elements.
    pub(super) fn note_chosen(
        &mut self,
        s: &mut State,
        array: &Array,
        effect: Effect,
        operation: &'static str,
        line: Option<&Line>,
    ) -> Result<(), Gap> {
        let Region::Place(place) = array.region else {
            return Ok(());
        };
        let (Some(first), Some(last)) = (array.at.first(), array.at.last()) else {
            return gap("an array without elements");
        };
        let bytes = (last - first) as u32 + array.bytes;
        let first = *first;
        let value = match effect {
            Effect::Read | Effect::Refresh => Vec::new(),
            Effect::Add | Effect::Write => {
                let at = self.arena.number(first as u64, 64);
                self.read(s, array.region, at, bytes)?
            }
        };
        let chosen = Some((array.offset, array.bytes));
        let what = (effect, operation, value);
        self.noted(s, place, (first, bytes, chosen), what, line);
        Ok(())
    }
}
