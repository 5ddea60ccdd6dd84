//! The mappings of a slot: placement and cost.
//!
//! A guest maps memory by its own malloc and its own dynamic loader; here each mapping gets a place in the slot and
//! is counted against the guest's budget. What is unmapped goes back to having no access, so that nothing else of
//! the process ever lands in a slot.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::slot::PAGE;

/// Bytes at the bottom that stay without access: a null pointer of another guest's is none of ours, but small
/// negative offsets from the first mapping should fault.
const MARGIN: usize = 0x1_0000;
/// Where the heap of `brk` begins in a slot, and how much it may grow.
const HEAP: Range<usize> = 0x1_0000_0000..0x1_4000_0000;

/// The most areas: the kernel has a limit for the process (`vm.max_map_count`, 65530 unless changed), which one guest
/// must not use up.
pub(crate) const AREAS: usize = 8192;

/// A range with one protection.
#[derive(Clone, Debug)]
pub struct Area {
    /// its end
    pub end: usize,
    /// `PROT_*`
    pub protection: i32,
    /// the file it shows, and from where in it
    pub file: Option<(Arc<str>, u64)>,
}

/// The map of a slot.
#[derive(Debug)]
pub struct Space {
    range: Range<usize>,
    /// where a program lies that is linked to fixed addresses
    pub fixed: Option<Range<usize>>,
    areas: BTreeMap<usize, Area>,
    heap_end: usize,
    /// writable bytes that it may have
    budget: usize,
    writable: usize,
    /// memory may be both writable and executable
    pub jit: bool,
    /// where the part of the heap ends that was mapped before the program began; at least where the heap begins
    pub heap_ready: usize,
    /// the protection key of its memory; 0: none
    pub key: i32,
    /// the most writable bytes there have been
    pub peak: usize,
}

/// Rounds up to pages; none when that overflows.
#[must_use]
pub fn pages(length: usize) -> Option<usize> {
    Some(length.checked_add(PAGE - 1)? & !(PAGE - 1))
}

impl Space {
    /// An empty slot whose guest may have `budget` writable bytes.
    #[must_use]
    pub fn new(range: Range<usize>, budget: usize, jit: bool) -> Self {
        let heap_end = range.start + HEAP.start;
        Self {
            range,
            fixed: None,
            areas: BTreeMap::new(),
            heap_end,
            budget,
            jit,
            heap_ready: heap_end,
            key: 0,
            writable: 0,
            peak: 0,
        }
    }

    /// Whether the range lies in the slot.
    #[must_use]
    pub fn holds(&self, start: usize, length: usize) -> bool {
        let end = start.checked_add(length);
        let within =
            |range: &Range<usize>| start >= range.start && end.is_some_and(|end| end <= range.end);
        within(&self.range) || self.fixed.as_ref().is_some_and(within)
    }

    /// A free place for `length` bytes, a multiple of pages: the lowest.
    #[must_use]
    pub fn place(&self, length: usize) -> Option<usize> {
        let heap = self.range.start + HEAP.start..self.range.start + HEAP.end;
        let mut at = self.range.start + MARGIN;
        let heap_area = std::iter::once((heap.start, heap.end));
        let mut taken: Vec<_> = self
            .areas
            .iter()
            .map(|(s, a)| (*s, a.end))
            .chain(heap_area)
            .collect();
        taken.sort_unstable();
        for (start, end) in taken {
            if start.checked_sub(at).is_some_and(|room| room >= length) {
                return Some(at);
            }
            at = at.max(end);
        }
        (self.range.end.checked_sub(at)? >= length).then_some(at)
    }

    /// Whether there are as many areas as there may be.
    #[must_use]
    pub fn crowded(&self) -> bool {
        self.areas.len() >= AREAS
    }

    /// Whether this many more writable bytes are within the budget.
    #[must_use]
    pub fn affords(&self, length: usize) -> bool {
        self.writable.saturating_add(length) <= self.budget
    }

    /// Writable bytes of a range.
    #[must_use]
    pub fn writable_in(&self, start: usize, end: usize) -> usize {
        let before = self.areas.range(..start).next_back();
        let within = self.areas.range(start..end);
        let writable = before
            .into_iter()
            .chain(within)
            .filter(|(_, a)| a.protection & libc::PROT_WRITE != 0);
        writable
            .map(|(s, a)| a.end.min(end).saturating_sub(start.max(*s)))
            .sum()
    }

    /// Notes that a range has been mapped, whatever was there.
    pub fn add(
        &mut self,
        start: usize,
        length: usize,
        protection: i32,
        file: Option<(Arc<str>, u64)>,
    ) {
        let end = start + length;
        self.remove(start, length);
        if protection & libc::PROT_WRITE != 0 {
            self.writable += length;
            self.peak = self.peak.max(self.writable);
        }
        self.areas.insert(
            start,
            Area {
                end,
                protection,
                file,
            },
        );
    }

    /// Notes that a range has been unmapped.
    pub fn remove(&mut self, start: usize, length: usize) {
        let end = start + length;
        self.writable -= self.writable_in(start, end).min(self.writable);
        self.split(start);
        self.split(end);
        let gone: Vec<usize> = self.areas.range(start..end).map(|(s, _)| *s).collect();
        for start in gone {
            self.areas.remove(&start);
        }
    }

    /// Notes that a range has another protection.
    pub fn protect(&mut self, start: usize, length: usize, protection: i32) {
        let end = start + length;
        self.writable -= self.writable_in(start, end).min(self.writable);
        self.split(start);
        self.split(end);
        for (_, area) in self.areas.range_mut(start..end) {
            area.protection = protection;
        }
        self.writable += self.writable_in(start, end);
        self.peak = self.peak.max(self.writable);
    }

    /// Whether all of the range is mapped.
    #[must_use]
    pub fn mapped(&self, start: usize, length: usize) -> bool {
        let end = start.saturating_add(length);
        let mut at = start;
        while at < end {
            match self.find(at) {
                Some((_, area)) => at = area.end,
                None => return false,
            }
        }
        true
    }

    /// Whether any of the range, which lies in the slot, is mapped.
    #[must_use]
    pub fn touched(&self, start: usize, length: usize) -> bool {
        self.find(start).is_some() || self.areas.range(start..start + length).next().is_some()
    }

    /// All areas, in the order of addresses.
    pub fn areas(&self) -> impl Iterator<Item = (usize, &Area)> {
        self.areas.iter().map(|(start, area)| (*start, area))
    }

    /// The area at an address.
    #[must_use]
    pub fn find(&self, address: usize) -> Option<(usize, &Area)> {
        let (start, area) = self.areas.range(..=address).next_back()?;
        (address < area.end).then_some((*start, area))
    }

    /// The file at an address and the offset in it.
    #[must_use]
    pub fn file_at(&self, address: usize) -> Option<(Arc<str>, u64)> {
        let (start, area) = self.find(address)?;
        let (file, offset) = area.file.as_ref()?;
        Some((file.clone(), offset + (address - start) as u64))
    }

    /// The end of the heap.
    #[must_use]
    pub fn heap_end(&self) -> usize {
        self.heap_end
    }

    /// Whether the heap may end there.
    #[must_use]
    pub fn heap_may_end(&self, end: usize) -> bool {
        let from = self.range.start;
        (from + HEAP.start..=from + HEAP.end).contains(&end)
    }

    /// Sets the end of the heap.
    pub fn set_heap_end(&mut self, end: usize) {
        self.heap_end = end;
    }

    /// Makes `address` a boundary between areas.
    fn split(&mut self, address: usize) {
        let Some((start, area)) = self.find(address) else {
            return;
        };
        if start == address {
            return;
        }
        let mut upper = area.clone();
        if let Some((_, offset)) = &mut upper.file {
            *offset += (address - start) as u64;
        }
        if let Some(lower) = self.areas.get_mut(&start) {
            lower.end = address;
        }
        self.areas.insert(address, upper);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;

    #[test]
    fn places_fill_gaps_and_leave_the_heap_alone() {
        let mut space = Space::new(0..0x2_0000_0000, usize::MAX, false);
        let first = space.place(0x3000).unwrap();
        space.add(first, 0x3000, RW, None);
        let second = space.place(0x1000).unwrap();
        assert_eq!(second, first + 0x3000);
        space.remove(first + 0x1000, 0x1000);
        assert_eq!(space.place(0x1000), Some(first + 0x1000));
        assert_eq!(space.place(0x2000), Some(first + 0x3000));
        let large = space.place(0xff00_0000).unwrap();
        space.add(large, 0xff00_0000, libc::PROT_NONE, None);
        let next = space.place(0x1000_0000).unwrap();
        assert!(next >= HEAP.end, "{next:x}");
        assert_eq!(space.place(0x2_0000_0000), None);
    }

    #[test]
    fn writable_bytes_are_counted_through_every_change() {
        let mut space = Space::new(0..0x2_0000_0000, 0x8000, false);
        space.add(0x10000, 0x4000, RW, None);
        assert_eq!(space.writable, 0x4000);
        space.protect(0x11000, 0x1000, libc::PROT_READ);
        assert_eq!(space.writable, 0x3000);
        space.add(0x10000, 0x2000, libc::PROT_NONE, None);
        assert_eq!(space.writable, 0x2000);
        space.remove(0x12000, 0x1000);
        assert_eq!(space.writable, 0x1000);
        assert!(space.affords(0x7000) && !space.affords(0x7001));
        assert!(space.mapped(0x10000, 0x2000) && !space.mapped(0x10000, 0x3000));
        assert_eq!(space.peak, 0x4000);
    }

    #[test]
    fn a_split_file_keeps_its_offsets() {
        let mut space = Space::new(0..0x2_0000_0000, usize::MAX, false);
        space.add(0x10000, 0x4000, RW, Some(("f".into(), 0x2000)));
        space.protect(0x12000, 0x1000, libc::PROT_READ);
        assert_eq!(space.file_at(0x12010).unwrap().1, 0x4010);
        assert_eq!(space.file_at(0x13010).unwrap().1, 0x5010);
    }
}
