//! The kernel's iterator over numbers: the last number and the end, 32 bits each.
//!
//! They are kept beside the memory that the program has: its eight bytes of the stack are the iterator's alone from
//! `new` to `destroy`. The number that `next` gives the address of is memory of its own, which only reads.

use millrace_object::helper::{Helper, MOST_ROUNDS};

use super::{APART, Call, Machine, Violation, violation};

const EINVAL: u64 = 22;
const E2BIG: u64 = 7;
/// Bytes of an iterator.
const BYTES: u64 = 8;

/// An iterator that has begun.
pub(super) struct Iterator {
    /// where it is
    at: u64,
    /// where its number is read
    number: u64,
    last: i32,
    end: i32,
}

impl Iterator {
    /// Whether it lies in this region.
    pub(super) fn is_in(&self, region: u64) -> bool {
        self.at / APART == region / APART
    }

    /// The byte of its own that stands for one of its number.
    pub(super) fn shown(&self, at: u64) -> Option<u64> {
        let same = at / APART == self.number / APART;
        same.then(|| self.at.wrapping_add(at.wrapping_sub(self.number)))
    }

    /// Value of these own bytes in the proof (check's driver/iter_num.rs): the last number, and how many are left; none
    /// for bytes beyond them.
    pub(super) fn stands(&self, at: u64, bytes: u8) -> Option<Vec<u8>> {
        let left = (i64::from(self.end) - i64::from(self.last) - 1).max(0) as u32;
        let own = [self.last.to_le_bytes(), left.to_le_bytes()].concat();
        let from = usize::try_from(at.checked_sub(self.at)?).ok()?;
        let own = own.get(from..from.checked_add(usize::from(bytes))?)?;
        Some(own.to_vec())
    }

    /// Whether these bytes are some of its own.
    pub(super) fn has(&self, at: u64, len: usize) -> bool {
        len > 0 && at < self.at + BYTES && self.at < at.saturating_add(len as u64)
    }
}

impl Machine<'_> {
    pub(super) fn iterate(&mut self, c: &mut Call, h: &Helper) -> Result<(), Violation> {
        let mut arguments = [0; 3];
        for (i, a) in arguments.iter_mut().enumerate().take(h.args.len()) {
            match c.regs.get(i + 1).copied().flatten() {
                Some(v) => *a = v,
                None => return violation(format!("argument {} of {} is unset", i + 1, h.name)),
            }
        }
        let at = arguments[0];
        if at % BYTES != 0 {
            return violation("an iterator that is not aligned");
        }
        c.regs[1..=5].fill(None);
        let begun = self.iterators.iter().position(|i| i.at == at);
        let result = match (h.name, begun) {
            ("iter_num_new", None) => {
                let (error, last, end) = range(arguments[1] as i32, arguments[2] as i32);
                self.write(at, BYTES as usize, Some(0))?;
                let number = self.map(vec![0; 4], false, false);
                self.iterators.push(Iterator {
                    at,
                    number,
                    last,
                    end,
                });
                error.wrapping_neg()
            }
            ("iter_num_new", Some(_)) => return violation("an iterator begins twice"),
            (_, None) => return violation("an iterator that has not begun"),
            ("iter_num_next", Some(index)) => self.next_number(index),
            (_, Some(index)) => {
                let over = self.iterators.swap_remove(index);
                self.memory.remove(&(over.number / APART));
                self.write(at, BYTES as usize, None)?;
                0
            }
        };
        c.regs[0] = Some(result);
        Ok(())
    }

    /// Steps to the next number and gives its address; null where there is none.
    fn next_number(&mut self, index: usize) -> u64 {
        let Some(i) = self.iterators.get_mut(index) else {
            return 0;
        };
        let next = i.last.wrapping_add(1);
        let (number, over) = (i.number, next >= i.end);
        (i.last, i.end) = if over { (0, 0) } else { (next, i.end) };
        let shown = i.last;
        if let Some(memory) = self.memory.get_mut(&(number / APART)) {
            memory.bytes.copy_from_slice(&shown.to_le_bytes());
            memory.written.fill(true);
        }
        if over { 0 } else { number }
    }
}

/// Result of `new` for a start and an end: the error, the number before the first, and the end.
fn range(start: i32, end: i32) -> (u64, i32, i32) {
    let count = i64::from(end) - i64::from(start);
    if count < 0 {
        (EINVAL, 0, 0)
    } else if count > i64::from(MOST_ROUNDS) {
        (E2BIG, 0, 0)
    } else {
        (0, start.wrapping_sub(1), end)
    }
}
