//! `R_BPF_64_32`: the callee of a call within the object. Against a function's symbol the immediate
//! is -1; against a section's it counts slots from its start, less one.

use super::{R_BPF_64_32, Target, misplaced, target};
use crate::decode::SLOT;
use crate::elf::{Elf, Relocation};
use crate::error::LoadError;

/// The place that the call with this immediate goes to, in bytes of a section.
pub(crate) fn resolve<'a>(
    elf: &'a Elf<'a>,
    relocation: Relocation,
    imm: i32,
) -> Result<Target<'a>, LoadError> {
    if relocation.kind != R_BPF_64_32 {
        return Err(misplaced(relocation, "a call"));
    }
    let slots = i64::from(imm) + 1;
    target(elf, relocation, slots * SLOT as i64)
}
