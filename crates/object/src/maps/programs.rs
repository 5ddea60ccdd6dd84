//! Initial contents of program arrays: the functions named in `__array(values, int (void *))`.

use crate::elf::Elf;
use crate::error::{LoadError, printable};
use crate::functions::Functions;
use crate::layout::Layout;
use crate::program::StateObject;
use crate::reloc;

/// Bytes of a pointer in a declaration.
const POINTER: u64 = 8;

/// Fills `initial` of the program arrays; `entries` are the packet programs as indices into the spans.
pub(crate) fn fill(
    elf: &Elf<'_>,
    spans: &Functions<'_>,
    entries: &[usize],
    layout: &mut Layout,
) -> Result<(), LoadError> {
    let mut filled = Vec::new();
    for (section, record) in layout.records() {
        let (Ok(id), Some(values)) = (&record.object, record.values) else {
            continue;
        };
        let Some(object) = layout.objects.get(id.0).filter(|o| o.kind.holds_programs()) else {
            continue;
        };
        let place = |e: LoadError| {
            e.in_section(elf.section_name(section))
                .at_symbol(&object.name)
        };
        let initial =
            contents(elf, spans, entries, object, section, values..record.end).map_err(place)?;
        filled.push((*id, initial));
    }
    for (id, initial) in filled {
        if let Some(object) = layout.objects.get_mut(id.0) {
            object.initial = Some(initial);
        }
    }
    Ok(())
}

/// Functions that elements of program arrays name, as indices into the spans.
pub(crate) fn named(elf: &Elf<'_>, spans: &Functions<'_>, layout: &Layout) -> Vec<usize> {
    let mut found = Vec::new();
    for (section, record) in layout.records() {
        let (Some(values), Ok(header)) = (record.values, elf.section(section)) else {
            continue;
        };
        let elements = values..record.end;
        for relocation in &header.relocations {
            let target = || {
                let target = reloc::target(elf, *relocation, 0).ok()?;
                spans.at(elf, target.section, target.offset).ok()
            };
            if elements.contains(&relocation.offset) {
                found.extend(target());
            }
        }
    }
    found
}

fn contents(
    elf: &Elf<'_>,
    spans: &Functions<'_>,
    entries: &[usize],
    object: &StateObject,
    section: usize,
    values: std::ops::Range<u64>,
) -> Result<Vec<u8>, LoadError> {
    // The capacity has been found sane.
    let mut initial = vec![0; object.capacity as usize * 4];
    let relocations = elf.section(section)?.relocations.iter();
    for relocation in relocations.filter(|r| values.contains(&r.offset)) {
        let slot = (relocation.offset - values.start) / POINTER;
        let target = reloc::target(elf, *relocation, 0)?;
        let name = printable(target.symbol.name);
        let span = spans.at(elf, target.section, target.offset)?;
        let number = entries
            .iter()
            .position(|entry| *entry == span)
            .ok_or_else(|| {
                LoadError::new(
                    "tail-call-target",
                    format!("element {slot} is `{name}`, which is no program for packets"),
                    "give it a section of its own, such as `SEC(\"xdp\")`",
                )
            })?;
        let from = slot as usize * 4;
        let element = initial.get_mut(from..from + 4).ok_or_else(|| {
            LoadError::new(
                "tail-call-target",
                format!(
                    "element {slot} is `{name}`, and the array has {}",
                    object.capacity
                ),
                "raise max_entries",
            )
        })?;
        element.copy_from_slice(&(number as u32 + 1).to_le_bytes());
    }
    Ok(initial)
}
