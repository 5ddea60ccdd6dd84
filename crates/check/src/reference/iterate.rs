//! The kernel's iterator over numbers: the last number and the end, 32 bits each.

use millrace_object::helper::{Helper, loop_};

use super::{Call, Machine, Violation, violation};

const EINVAL: u64 = 22;
const E2BIG: u64 = 7;

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
        if at % 8 != 0 {
            return violation("an iterator that is not aligned");
        }
        let begun = self.iterators.iter().position(|i| *i == at);
        match (h.name, begun) {
            ("iter_num_new", None) => self.iterators.push(at),
            ("iter_num_new", Some(_)) => return violation("an iterator begins twice"),
            (_, None) => return violation("an iterator that has not begun"),
            ("iter_num_destroy", Some(index)) => {
                self.iterators.swap_remove(index);
            }
            _ => {}
        }
        c.regs[1..=5].fill(None);
        c.regs[0] = Some(match h.name {
            "iter_num_new" => {
                let (start, end) = (arguments[1] as i32, arguments[2] as i32);
                let count = i64::from(end) - i64::from(start);
                let (error, last, end) = if count < 0 {
                    (EINVAL, 0, 0)
                } else if count > i64::from(loop_::MOST) {
                    (E2BIG, 0, 0)
                } else {
                    (0, start.wrapping_sub(1), end)
                };
                self.write(at, 4, Some(u64::from(last as u32)))?;
                self.write(at + 4, 4, Some(u64::from(end as u32)))?;
                error.wrapping_neg()
            }
            "iter_num_next" => {
                let (Some(last), Some(end)) = (self.read(at, 4)?, self.read(at + 4, 4)?) else {
                    return violation("an iterator that has not begun");
                };
                let next = (last as i32).wrapping_add(1);
                if next >= end as i32 {
                    self.write(at, 8, Some(0))?;
                    0
                } else {
                    self.write(at, 4, Some(u64::from(next as u32)))?;
                    at
                }
            }
            _ => {
                self.write(at, 8, None)?;
                0
            }
        });
        Ok(())
    }
}
