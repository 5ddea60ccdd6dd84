//! `.data`, `.bss` and `.rodata`: each such section is one state object of kind `global` that holds
//! one value, the section's bytes.

use crate::configuration;
use crate::elf::Section;
use crate::error::LoadError;
use crate::layout::blank;
use crate::program::StateObject;
use crate::state::global;

/// The section of `PARAM`s.
pub(crate) const PARAMS: &str = ".rodata.params";

/// Most bytes of all sections of an object together.
pub(crate) const MAX_BYTES: u64 = 64 << 20;

/// Whether variables stand in sections of this name.
pub(crate) fn is_section(name: &str) -> bool {
    let family = |f: &str| {
        name.strip_prefix(f)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    family(".data") || family(".bss") || family(".rodata") || name == configuration::SECTION
}

/// The object that a section is; `left` bytes may still be taken.
pub(crate) fn read(section: &Section<'_>, left: &mut u64) -> Result<StateObject, LoadError> {
    let too_large = || {
        LoadError::new(
            "absurd-size",
            format!("variables of {} bytes", section.size),
            format!("the variables of a program may take {MAX_BYTES} bytes together; use a map"),
        )
        .in_section(section.name)
    };
    *left = left.checked_sub(section.size).ok_or_else(too_large)?;
    // Bounded by the line above; `.bss` has fewer bytes in the file than in memory.
    let mut initial = section.data.to_vec();
    initial.resize(section.size as usize, 0);
    let mut object = blank(section.name, &global::KIND);
    object.value_bytes = u32::try_from(section.size).map_err(|_| too_large())?;
    object.capacity = 1;
    object.initial = Some(initial);
    object.read_only =
        section.name.starts_with(".rodata") || section.name == configuration::SECTION;
    object.settable = section.name == PARAMS;
    Ok(object)
}
