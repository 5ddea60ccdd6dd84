//! Maps declared in `.maps`: the type of each variable there spells its definition
//! (`__uint` is a pointer to an array of so many, `__type` a pointer to the type).

use std::collections::HashMap;

use crate::btf::{Btf, Kind, Member, Variable};
use crate::elf::{Elf, SymbolKind};
use crate::error::{LoadError, printable};
use crate::layout::{Declaration, Inner, admits, too_many};
use crate::maps::{flagged, kind, map, timer};
use crate::program::StateObject;
use crate::state::{Addressing, StateKind, bloom_filter};

/// The section's name.
pub(crate) const SECTION: &str = ".maps";

/// More members than there are names for.
const MAX_MEMBERS: usize = 16;

/// Reads every declaration of the section.
pub(crate) fn read(
    elf: &Elf<'_>,
    index: usize,
    btf: Option<&Btf>,
) -> Result<Vec<Declaration>, LoadError> {
    let no_types = || {
        LoadError::new(
            "no-btf",
            "maps are declared by their types, and the object has no type information",
            "compile with `-g`, and do not strip the section .BTF",
        )
        .in_section(SECTION)
    };
    let btf = btf.ok_or_else(no_types)?;
    // The offsets of variables in the type information are wrong in unlinked objects of some
    // compilers, so the symbol has precedence.
    let symbols: HashMap<&str, (u64, u64)> = elf
        .symbols
        .iter()
        .filter(|s| s.section == Some(index) && s.kind == SymbolKind::Object)
        .map(|s| (s.name, (s.value, s.size)))
        .collect();
    let section = elf.section(index)?;
    let variables = btf.variables(SECTION);
    if !admits(variables.len()) {
        return Err(too_many().in_section(SECTION));
    }
    let mut declarations = Vec::new();
    for variable in variables {
        let place = |e: LoadError| e.in_section(SECTION).at_symbol(variable.name);
        let (start, extent) = symbols
            .get(variable.name)
            .copied()
            .unwrap_or((u64::from(variable.offset), 0));
        let bytes = btf
            .bytes(variable.ty)
            .filter(|b| *b > 0)
            .ok_or_else(|| place(LoadError::malformed("a map whose declaration has no size")))?;
        // The values that follow a declaration are a flexible array, which has no size of its own.
        let end = start
            .checked_add(bytes.max(extent))
            .filter(|e| *e <= section.size)
            .ok_or_else(|| {
                place(LoadError::malformed(
                    "a map declared beyond the end of its section",
                ))
            })?;
        let (object, values, inner) = match declaration(btf, &variable) {
            Ok(Read {
                object,
                values,
                inner,
            }) => (Ok(object), values, inner),
            Err(e) => (Err(place(e)), None, None),
        };
        declarations.push(Declaration {
            start,
            end,
            values: values.and_then(|v| start.checked_add(u64::from(v))),
            id: None,
            inner: inner.map(|shape| Inner { shape, holds: None }),
            object,
        });
    }
    if declarations.is_empty() {
        return Err(no_types());
    }
    Ok(declarations)
}

/// A declaration; everything is optional until the kind is known.
#[derive(Default)]
struct Spelled {
    kind: Option<u32>,
    key_bytes: Option<u32>,
    value_bytes: Option<u32>,
    capacity: u32,
    flags: u32,
    extra: u32,
    /// where in a value its timer is
    timer: Option<u32>,
    /// of a program array or a map of maps: where its values stand, in bytes of the structure
    values: Option<u32>,
    /// of a map of maps: the type of the structure that declares these
    inner: Option<u32>,
}

/// A declaration as it was read.
struct Read {
    object: StateObject,
    /// where its values stand, in bytes of the structure
    values: Option<u32>,
    /// what its values are like, if they are maps
    inner: Option<StateObject>,
}

fn declaration(btf: &Btf, variable: &Variable<'_>) -> Result<Read, LoadError> {
    let (mut object, spelled) = structure(btf, variable.ty, variable.name)?;
    let inner = match spelled.inner {
        None => None,
        Some(_) if !object.kind.holds_maps() => {
            return Err(unreadable(
                "values",
                "an array of maps",
                "declare the map as an ARRAY_OF_MAPS or a HASH_OF_MAPS",
            ));
        }
        // What it is called, the map that holds it says.
        Some(ty) => match structure(btf, ty, "")? {
            (
                _,
                Spelled {
                    values: Some(_), ..
                },
            ) => {
                return Err(unreadable(
                    "values",
                    "an array of maps that hold maps or programs",
                    "hold maps of plain values, as in the kernel",
                ));
            }
            (shape, _) => Some(shape),
        },
    };
    if spelled.values.is_some() {
        // Key and value have one size, which such a declaration may leave out.
        object.value_bytes = spelled.value_bytes.unwrap_or(4);
        if object.kind.addressing == Addressing::Index {
            object.key_bytes = spelled.key_bytes.unwrap_or(4);
        }
    }
    Ok(Read {
        object,
        values: spelled.values,
        inner,
    })
}

/// Content of a structure's declaration.
fn structure(btf: &Btf, ty: u32, name: &str) -> Result<(StateObject, Spelled), LoadError> {
    let Some(Kind::Struct {
        members,
        union: false,
        ..
    }) = btf.stripped(ty)
    else {
        return Err(LoadError::new(
            "map-declaration",
            format!("`{}` is not a structure", printable(name)),
            "declare it as `struct { __uint(type, …); … } name SEC(\".maps\")`",
        ));
    };
    if members.len() > MAX_MEMBERS {
        return Err(LoadError::new(
            "map-declaration",
            format!("a declaration of {} members", members.len()),
            format!("at most {MAX_MEMBERS} have a meaning"),
        ));
    }
    let mut spelled = Spelled::default();
    for member in members {
        read_member(btf, member, &mut spelled)?;
    }
    let kind = kind(spelled.kind)?;
    let mut object = map(name, kind);
    object.key_bytes = spelled.key_bytes.unwrap_or(0);
    object.value_bytes = spelled.value_bytes.unwrap_or(0);
    object.capacity = u64::from(spelled.capacity);
    flagged(&mut object, spelled.flags);
    object.rows = hashes(kind, spelled.extra)?;
    object.timer = spelled.timer;
    timer::allow(&object)?;
    Ok((object, spelled))
}

/// Meaning of `map_extra`: the hash functions of a Bloom filter, and nothing for all others.
fn hashes(kind: &StateKind, extra: u32) -> Result<u32, LoadError> {
    match (kind.membership(), extra) {
        (true, 0) => Ok(bloom_filter::HASHES),
        (true, n) => Ok(n),
        (false, 0) => Ok(0),
        (false, n) => Err(unreadable("map_extra", &format!("{n}"), "leave it out")),
    }
}

fn read_member(btf: &Btf, member: &Member, spelled: &mut Spelled) -> Result<(), LoadError> {
    let name = btf.string(member.name);
    match name {
        "type" => spelled.kind = Some(number(btf, member)?),
        "max_entries" => spelled.capacity = number(btf, member)?,
        "map_flags" => spelled.flags = number(btf, member)?,
        "key_size" => set(&mut spelled.key_bytes, number(btf, member)?, "key")?,
        "value_size" => set(&mut spelled.value_bytes, number(btf, member)?, "value")?,
        "key" => set(&mut spelled.key_bytes, size(btf, member)?, "key")?,
        "value" => {
            set(&mut spelled.value_bytes, size(btf, member)?, "value")?;
            spelled.timer = timer::find(btf, member.ty)?;
        }
        // By name or not at all; there is no file system of maps to pin it in, so that it makes no
        // difference to a program that runs once.
        "pinning" => match number(btf, member)? {
            // 16 is of Cilium's loader, which pins a new map under the name of the old one.
            0 | 1 | 16 => {}
            other => {
                return Err(unreadable(
                    "pinning",
                    &format!("{other}"),
                    "use LIBBPF_PIN_BY_NAME",
                ));
            }
        },
        // A bound on memory placement, not on meaning.
        "numa_node" => {}
        "map_extra" => spelled.extra = number(btf, member)?,
        "values" => {
            match element(btf, member) {
                Some((_, Kind::Prototype { .. })) => {}
                Some((ty, Kind::Struct { .. })) => spelled.inner = Some(ty),
                _ => {
                    return Err(unreadable(
                        "values",
                        "neither an array of maps nor one of programs",
                        "use `__array(values, struct { … })` or `__array(values, int (void *))`",
                    ));
                }
            }
            spelled.values = Some(member.offset / 8);
        }
        other => return Err(unreadable(&printable(other), "unknown", "leave it out")),
    }
    Ok(())
}

/// Target type of the pointers in an array of values.
fn element<'a>(btf: &'a Btf, member: &Member) -> Option<(u32, &'a Kind)> {
    let Some(Kind::Array { element, .. }) = btf.stripped(member.ty) else {
        return None;
    };
    let to = btf.pointee(*element)?;
    Some((to, btf.stripped(to)?))
}

fn unreadable(member: &str, what: &str, remedy: &str) -> LoadError {
    LoadError::new(
        "map-declaration",
        format!("the declaration's `{member}` is {what}"),
        remedy,
    )
}

fn set(place: &mut Option<u32>, bytes: u32, what: &str) -> Result<(), LoadError> {
    match place.replace(bytes) {
        Some(before) if before != bytes => Err(LoadError::new(
            "map-declaration",
            format!("its {what} is declared with {before} and with {bytes} bytes"),
            format!("give either the {what}'s type or its size"),
        )),
        _ => Ok(()),
    }
}

fn number(btf: &Btf, member: &Member) -> Result<u32, LoadError> {
    match btf.pointee(member.ty).and_then(|to| btf.stripped(to)) {
        Some(Kind::Array { count, .. }) => Ok(*count),
        _ => Err(unreadable(
            btf.string(member.name),
            "not a number",
            "use `__uint(name, number)`",
        )),
    }
}

fn size(btf: &Btf, member: &Member) -> Result<u32, LoadError> {
    let bytes = btf.pointee(member.ty).and_then(|to| btf.bytes(to));
    bytes.and_then(|b| u32::try_from(b).ok()).ok_or_else(|| {
        unreadable(
            btf.string(member.name),
            "of no known size",
            "use `__type(name, type)`, the type defined in this file",
        )
    })
}
