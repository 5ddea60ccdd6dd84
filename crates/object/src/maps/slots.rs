//! iproute2's way to fill program arrays: a section `ID/INDEX` holds the program of that element of the
//! program array whose declaration (`struct bpf_elf_map`) has this id (iproute2, lib/bpf_legacy.c,
//! `bpf_fill_prog_arrays`).

use std::collections::HashMap;

use crate::error::{LoadError, printable};
use crate::functions::Functions;
use crate::layout::{Layout, Record};
use crate::program::ObjectId;

/// The index of a program whose element its loader chooses, as Cilium's templates have it: here it is in none.
const OPEN: u32 = u32::MAX;

/// Id and index if a section's name is of the form; both as C's `%i` reads them.
fn named(section: &str) -> Option<(u32, u32)> {
    let (id, index) = section.split_once('/')?;
    Some((number(id)?, number(index)?))
}

fn number(text: &str) -> Option<u32> {
    // `from_str_radix` takes a sign; names with one are not for this.
    if !text.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u32::from_str_radix(hex, 16).ok();
    }
    match text.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u32::from_str_radix(octal, 8).ok(),
        _ => text.parse().ok(),
    }
}

/// The program arrays with an id.
pub(crate) struct Slots(HashMap<u32, ObjectId>);

impl Slots {
    pub fn of(layout: &Layout) -> Slots {
        let array = |record: &Record| {
            let object = *record.object.as_ref().ok()?;
            let state = layout.objects.get(object.0)?;
            state.kind.holds_programs().then_some((record.id?, object))
        };
        let records = layout.records();
        Slots(records.filter_map(|(_, r)| array(r)).collect())
    }

    /// The array and the element that a section names.
    fn element(&self, section: &str) -> Option<(ObjectId, u32)> {
        let (id, index) = named(section)?;
        Some((*self.0.get(&id)?, index))
    }

    /// Whether a section is an element of a program array that the object declares.
    pub fn has(&self, section: &str) -> bool {
        self.element(section).is_some()
    }
}

/// Enters the programs into the arrays; `entries` are the packet programs as indices into the spans.
pub(crate) fn fill(
    spans: &Functions<'_>,
    entries: &[usize],
    slots: &Slots,
    layout: &mut Layout,
) -> Result<(), LoadError> {
    for (number, entry) in (1_u32..).zip(entries) {
        let Some(span) = spans.spans.get(*entry) else {
            continue;
        };
        let Some((id, index)) = slots.element(span.section_name) else {
            continue;
        };
        if index == OPEN {
            continue;
        }
        let Some(object) = layout.objects.get_mut(id.0) else {
            continue;
        };
        let refuse = |problem: String, remedy: &str| {
            LoadError::new("tail-call-target", problem, remedy)
                .in_section(span.section_name)
                .at_symbol(span.name)
        };
        // The capacity has been found sane.
        let bytes = object.capacity as usize * 4;
        let initial = object.initial.get_or_insert_with(|| vec![0; bytes]);
        let element = (index as usize)
            .checked_mul(4)
            .and_then(|from| initial.get_mut(from..from.checked_add(4)?));
        let Some(element) = element else {
            return Err(refuse(
                format!(
                    "the section names element {index} of `{}`, which has {}",
                    object.name, object.capacity
                ),
                "raise the array's max_elem",
            ));
        };
        if element != [0; 4] {
            return Err(refuse(
                format!(
                    "element {index} of `{}` is `{}` and another program",
                    object.name,
                    printable(span.name)
                ),
                "give each program an element of its own",
            ));
        }
        element.copy_from_slice(&number.to_le_bytes());
    }
    Ok(())
}
