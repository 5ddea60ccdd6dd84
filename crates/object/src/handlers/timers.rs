//! `millrace/timers`: one record `{ __u64 period; void (*function)(struct packet *); }` a timer.

use crate::bytes::u64_at;
use crate::elf::Elf;
use crate::error::LoadError;
use crate::reloc::pointer;

/// The section's name.
pub(crate) const SECTION: &str = "millrace/timers";

const RECORD: usize = 16;
/// Most timers of a program.
const MAX_TIMERS: usize = 256;

/// A period in nanoseconds and where its function begins: section, offset.
pub(crate) struct Timer {
    pub period: u64,
    pub section: usize,
    pub offset: i64,
}

/// Reads every record.
pub(crate) fn read(elf: &Elf<'_>) -> Result<Vec<Timer>, LoadError> {
    let Some((_, section)) = elf.section_named(SECTION) else {
        return Ok(Vec::new());
    };
    let place = |e: LoadError| e.in_section(SECTION);
    let bytes = section.data;
    if bytes.len() % RECORD != 0 {
        return Err(place(LoadError::malformed("a timer's record is cut short")));
    }
    if bytes.len() / RECORD > MAX_TIMERS {
        return Err(place(LoadError::new(
            "too-many-timers",
            format!("{} timers", bytes.len() / RECORD),
            format!("a program has at most {MAX_TIMERS}"),
        )));
    }
    let mut timers = Vec::new();
    for at in (0..bytes.len()).step_by(RECORD) {
        let period = u64_at(bytes, at).unwrap_or(0);
        if period == 0 {
            return Err(place(LoadError::new(
                "timer-period",
                format!("timer {} has a period of 0 ns", at / RECORD),
                "give EVERY a period of at least 1 ns",
            )));
        }
        let target = pointer::resolve(elf, section, at as u64 + 8)?.ok_or_else(|| {
            place(LoadError::malformed(format!(
                "timer {} has no function",
                at / RECORD
            )))
        })?;
        timers.push(Timer {
            period,
            section: target.section,
            offset: target.offset,
        });
    }
    Ok(timers)
}
