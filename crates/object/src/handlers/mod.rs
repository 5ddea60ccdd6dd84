//! The handler dialect (docs/dialect.md): which sections hold what, and where execution begins.

pub(crate) mod entries;
pub(crate) mod expiry;
pub(crate) mod names;
pub(crate) mod state;
pub(crate) mod timers;

use crate::elf::Elf;

/// Whether an object is written in this dialect.
pub(crate) fn is_dialect(elf: &Elf<'_>) -> bool {
    let ours = |name: &str| {
        name.starts_with("millrace/on_") || name == timers::SECTION || name == state::SECTION
    };
    elf.sections.iter().any(|s| s.size > 0 && ours(s.name))
}
