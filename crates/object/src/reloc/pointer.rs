//! `R_BPF_64_ABS64`: an address in 8 bytes of data, e.g. the function of a timer's record.

use super::{R_BPF_64_ABS64, Target, misplaced, target};
use crate::bytes::u64_at;
use crate::elf::{Elf, Section};
use crate::error::LoadError;

/// Target of the pointer at `offset` of a section; `None` if nothing was relocated there.
pub(crate) fn resolve<'a>(
    elf: &'a Elf<'a>,
    section: &Section<'a>,
    offset: u64,
) -> Result<Option<Target<'a>>, LoadError> {
    let Some(relocation) = section.relocation_at(offset) else {
        return Ok(None);
    };
    if relocation.kind != R_BPF_64_ABS64 {
        return Err(misplaced(relocation, "a pointer in data").in_section(section.name));
    }
    let addend = u64_at(section.data, offset as usize).ok_or_else(|| {
        LoadError::malformed("a relocation beyond the end of its section").in_section(section.name)
    })?;
    target(elf, relocation, addend as i64).map(Some)
}
