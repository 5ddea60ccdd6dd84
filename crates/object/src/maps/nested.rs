//! Initial contents of maps of maps: the maps named in `.values = { &inner, … }`, or by the index that
//! iproute2's declarations give.

use crate::elf::Elf;
use crate::error::{LoadError, printable};
use crate::layout::{Content, Layout, Record, record_at};
use crate::program::{Nesting, ObjectId};
use crate::reloc;

/// Bytes of a pointer in a declaration.
const POINTER: u64 = 8;

/// Fills the values of the maps of maps.
pub(crate) fn fill(elf: &Elf<'_>, layout: &mut Layout) -> Result<(), LoadError> {
    let mut filled = Vec::new();
    for (section, record) in layout.records() {
        let Ok(id) = record.object else { continue };
        let Some(holder) = layout.objects.get(id.0) else {
            continue;
        };
        let Some(Nesting::Holds { shape, .. }) = holder.nesting else {
            continue;
        };
        let place = |e: LoadError| {
            e.in_section(elf.section_name(section))
                .at_symbol(&holder.name)
        };
        let mut values = Vec::new();
        for (index, map) in written(elf, layout, section, record).map_err(place)? {
            let fits = layout
                .objects
                .get(map.0)
                .zip(layout.objects.get(shape.0))
                .is_some_and(|(map, shape)| map.fits(shape));
            if !fits {
                let name = layout.objects.get(map.0).map_or("?", |o| &o.name);
                return Err(place(LoadError::new(
                    "map-in-map",
                    format!(
                        "element {index} is `{name}`, which is not like the maps it is declared to hold"
                    ),
                    "give it the same type, sizes and flags, and arrays the same max_entries",
                )));
            }
            if u64::from(index) >= holder.capacity {
                return Err(place(LoadError::new(
                    "map-in-map",
                    format!(
                        "there is an element {index}, and room for {}",
                        holder.capacity
                    ),
                    "raise max_entries",
                )));
            }
            values.push((index, map));
        }
        filled.push((id, values));
    }
    for (id, new) in filled {
        if let Some(Nesting::Holds { values, .. }) = layout
            .objects
            .get_mut(id.0)
            .and_then(|o| o.nesting.as_mut())
        {
            *values = new;
        }
    }
    Ok(())
}

/// The maps that a declaration names, by index.
fn written(
    elf: &Elf<'_>,
    layout: &Layout,
    section: usize,
    record: &Record,
) -> Result<Vec<(u32, ObjectId)>, LoadError> {
    let mut values = Vec::new();
    if let Some((index, at)) = record.holds {
        values.push((index, map_at(layout, section, at as i64, index)?));
    }
    let Some(start) = record.values else {
        return Ok(values);
    };
    let place = elf.section(section)?;
    let relocations = place.relocations.iter();
    for relocation in relocations.filter(|r| (start..record.end).contains(&r.offset)) {
        let index = u32::try_from((relocation.offset - start) / POINTER).unwrap_or(u32::MAX);
        let Some(target) = reloc::pointer::resolve(elf, place, relocation.offset)? else {
            continue;
        };
        let map = map_at(layout, target.section, target.offset, index)
            .map_err(|e| e.at_symbol(&printable(target.symbol.name)))?;
        values.push((index, map));
    }
    Ok(values)
}

fn map_at(layout: &Layout, section: usize, offset: i64, index: u32) -> Result<ObjectId, LoadError> {
    let record = match layout.content(section) {
        Content::Objects(records) => record_at(records, offset),
        _ => None,
    };
    record.map_or_else(
        || {
            Err(LoadError::new(
                "map-in-map",
                format!("element {index} is no map"),
                "name maps of the same file",
            ))
        },
        |record| record.object.clone(),
    )
}
