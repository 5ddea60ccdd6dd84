//! `R_BPF_64_64`: the address in a 64-bit immediate load. What an address becomes depends on the
//! section it points into.

use super::Target;
use crate::elf::{Elf, Relocation};
use crate::error::{LoadError, printable};
use crate::helper::kernel_functions;
use crate::insn::Imm64;
use crate::layout::{Content, Layout, record_at};
use crate::program::FunctionId;

/// The address of a weak symbol that is defined nowhere: 0, but for a kernel function that is offered. It is compared with
/// 0 alone (`bpf_ksym_exists`).
pub(crate) fn absent(elf: &Elf<'_>, relocation: Relocation) -> Result<Option<Imm64>, LoadError> {
    let symbol = elf.symbol(relocation.symbol)?;
    if !symbol.undefined || !symbol.weak || super::is_configuration(symbol.name) {
        return Ok(None);
    }
    let offered = kernel_functions::by_name(symbol.name).is_some();
    Ok(Some(Imm64::Number(u64::from(offered))))
}

/// Resolves an address; `function` numbers the function that begins at a byte of a section.
pub(crate) fn resolve(
    target: &Target<'_>,
    layout: &Layout,
    mut function: impl FnMut(usize, i64) -> Result<FunctionId, LoadError>,
) -> Result<Imm64, LoadError> {
    let name = printable(target.symbol.name);
    match layout.content(target.section) {
        Content::Code => function(target.section, target.offset).map(Imm64::Function),
        Content::Global {
            object,
            bytes,
            holds_pointers,
        } => {
            if *holds_pointers {
                return Err(LoadError::new(
                    "pointer-in-data",
                    format!("`{name}` is in a section whose initial values contain addresses"),
                    "use an array of numbers or a switch instead of a table of pointers",
                ));
            }
            // One past the end is where a loop over an array stops.
            let offset = u32::try_from(target.offset).ok().filter(|o| o <= bytes);
            let offset = offset.ok_or_else(|| {
                LoadError::new(
                    "address-out-of-range",
                    format!(
                        "the address {} bytes from the start of a section of {bytes} (at `{name}`)",
                        target.offset
                    ),
                    "give an index that the array has",
                )
            })?;
            Ok(Imm64::ObjectValue {
                object: *object,
                offset,
            })
        }
        Content::Objects(records) => {
            let record = record_at(records, target.offset).ok_or_else(|| {
                LoadError::new(
                    "record-out-of-range",
                    format!(
                        "no state object is declared at offset {} (`{name}`)",
                        target.offset
                    ),
                    "declare it with MAP, VECTOR and their kin, or in `SEC(\".maps\")`",
                )
            })?;
            record.object.clone().map(Imm64::Object)
        }
        Content::Reasons(starts) => {
            let index = u64::try_from(target.offset)
                .ok()
                .and_then(|o| starts.get(&o));
            index.map(|&i| Imm64::Number(u64::from(i))).ok_or_else(|| {
                LoadError::new(
                    "record-out-of-range",
                    format!("no reason's name begins at offset {}", target.offset),
                    "use DROP_BECAUSE(name)",
                )
            })
        }
        Content::Other => Err(LoadError::new(
            "unknown-section",
            format!("`{name}` is in a section that programs cannot address"),
            "leave out the section attribute, or use `.maps`, `.data`, `.rodata` or `.bss`",
        )),
    }
}
