//! `R_BPF_64_32`: the callee of a call within the object. Against a function's symbol the immediate
//! is -1; against a section's it counts slots from its start, less one.

use super::{R_BPF_64_32, Target, misplaced, target};
use crate::decode::SLOT;
use crate::elf::{Elf, Relocation};
use crate::error::LoadError;
use crate::helper::{ABSENT, kernel_functions};

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

/// The number of the kernel function that a call of an undefined symbol names; none if the symbol is
/// defined, or if it is not one of the kernel's, whose names begin with `bpf_`. A weak one that is not offered is
/// absent, as one that a kernel does not have: the program asks for its address before it calls it.
pub(crate) fn kernel_function(
    elf: &Elf<'_>,
    relocation: Relocation,
) -> Result<Option<u32>, LoadError> {
    let symbol = elf.symbol(relocation.symbol)?;
    if !symbol.undefined || !(symbol.weak || symbol.name.starts_with("bpf_")) {
        return Ok(None);
    }
    if let Some(helper) = kernel_functions::by_name(symbol.name) {
        return Ok(Some(helper.number));
    }
    if symbol.weak {
        return Ok(Some(ABSENT));
    }
    let why = match kernel_functions::refused(symbol.name) {
        Some(why) => format!(": {why}"),
        None => String::new(),
    };
    let name = crate::error::printable(symbol.name);
    Err(LoadError::new(
        "unknown-kfunc",
        format!("this instruction calls the kernel function `{name}`, which is not offered{why}"),
        "use a helper or a kernel function that docs/support.md lists, or leave this program out of the object",
    ))
}
