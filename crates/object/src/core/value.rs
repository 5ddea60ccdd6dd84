//! The number that a relocation stands for, in the local type and in the target.

use super::flavor::{Flavors, essential};
use super::known;
use super::walk::{Place, numbers, walk};
use crate::btf::ext::CoreRecord;
use crate::btf::{Btf, Kind};

/// `enum bpf_core_relo_kind`.
const FIELD_BYTE_OFFSET: u32 = 0;
const FIELD_BYTE_SIZE: u32 = 1;
const FIELD_EXISTS: u32 = 2;
const FIELD_SIGNED: u32 = 3;
const FIELD_LSHIFT: u32 = 4;
const FIELD_RSHIFT: u32 = 5;
const TYPE_ID_LOCAL: u32 = 6;
const TYPE_ID_TARGET: u32 = 7;
const TYPE_EXISTS: u32 = 8;
const TYPE_SIZE: u32 = 9;
const ENUM_VALUE_EXISTS: u32 = 10;
const ENUM_VALUE: u32 = 11;
const TYPE_MATCHES: u32 = 12;

/// A relocation's number.
pub(super) enum Worth {
    Number {
        value: u64,
        /// what the compiler must have written; none where that depends on the compiler
        before: Option<u64>,
        /// where the field's size is another one
        resized: Option<Resized>,
    },
    /// the target lacks the field, type or enumerator
    Absent,
}

/// A field whose size differs between the local type and the target.
#[derive(Clone, Copy)]
pub(super) struct Resized {
    pub from: u64,
    pub to: u64,
    /// whether a load may be made as wide as the field is now: of numbers without a sign, and pointers
    pub loads: bool,
}

impl Worth {
    fn number(value: u64, before: Option<u64>) -> Worth {
        Worth::Number {
            value,
            before,
            resized: None,
        }
    }

    /// The answer to whether something exists; compilers write that it does.
    fn answer(exists: bool) -> Worth {
        Worth::number(u64::from(exists), Some(1))
    }
}

pub(super) fn of(btf: &Btf, flavors: &mut Flavors, record: CoreRecord) -> Result<Worth, String> {
    if btf.get(record.ty).is_none() {
        return Err(format!("names type {}, which does not exist", record.ty));
    }
    let access = btf.string(record.access);
    match record.kind {
        FIELD_BYTE_OFFSET..=FIELD_RSHIFT => field(btf, flavors, record, access),
        TYPE_ID_LOCAL..=TYPE_SIZE | TYPE_MATCHES => {
            if access != "0" {
                return Err("is of a type and goes into it".to_owned());
            }
            of_type(btf, flavors, record)
        }
        ENUM_VALUE_EXISTS | ENUM_VALUE => enumerator(btf, flavors, record, access),
        kind => Err(format!("is of the unknown kind {kind}")),
    }
}

fn is_known(btf: &Btf, ty: u32) -> bool {
    known::is_known(essential(btf.name(ty)))
}

fn field(
    btf: &Btf,
    flavors: &mut Flavors,
    record: CoreRecord,
    access: &str,
) -> Result<Worth, String> {
    let local = walk(btf, record.ty, access)?;
    let before = Field::of(btf, &local, record.kind)?;
    let target = match flavors.target(btf, record.ty)? {
        Some(target) => flavors.place(btf, local, record.ty, target)?,
        None => None,
    };
    if record.kind == FIELD_EXISTS {
        return Ok(Worth::answer(target.is_some() && is_known(btf, record.ty)));
    }
    let Some(target) = target else {
        return Ok(Worth::Absent);
    };
    let now = Field::of(btf, &target, record.kind)?;
    let resized = (before.bytes != now.bytes).then_some(Resized {
        from: before.bytes,
        to: now.bytes,
        loads: before.widens && now.widens,
    });
    Ok(Worth::Number {
        value: now.value,
        before: before.certain.then_some(before.value),
        resized,
    })
}

/// Request of a relocation about a field.
struct Field {
    value: u64,
    /// whether the value follows from the types alone, whatever loads a compiler chose
    certain: bool,
    bytes: u64,
    /// a load of it may be of another size without changing its meaning
    widens: bool,
}

impl Field {
    fn of(btf: &Btf, place: &Place, kind: u32) -> Result<Field, String> {
        let size = || btf.bytes(place.ty).filter(|b| *b > 0);
        let unsized_type = || "is of a field without a size".to_owned();
        if kind == FIELD_EXISTS {
            return Ok(Field {
                value: 1,
                certain: true,
                bytes: 0,
                widens: false,
            });
        }
        let bitfield = place.width > 0;
        let (offset, bytes, width) = if bitfield {
            let bytes = size().ok_or_else(unsized_type)?;
            let (offset, bytes) = load_of(place, bytes)?;
            (offset, bytes, u64::from(place.width))
        } else {
            // A field whose size nobody asks for may have none: a flexible array.
            let bytes = match kind {
                FIELD_BYTE_OFFSET => size().unwrap_or(0),
                _ => size().ok_or_else(unsized_type)?,
            };
            let width = bytes.checked_mul(8).ok_or_else(unsized_type)?;
            (place.bits / 8, bytes, width)
        };
        let (signed, widens) = match btf.stripped(place.ty) {
            Some(Kind::Int { signed, .. }) => (*signed, !signed),
            Some(Kind::Enum { signed, .. }) => (*signed, false),
            Some(Kind::Pointer(_)) => (false, true),
            _ => (false, false),
        };
        let too_wide = || "shifts a field of more than 64 bits".to_owned();
        let (value, certain) = match kind {
            FIELD_BYTE_OFFSET => (offset, !bitfield),
            FIELD_BYTE_SIZE => (bytes, !bitfield),
            _ if !place.is_member => {
                return Err("asks of an array's element what only members have".to_owned());
            }
            FIELD_SIGNED => (u64::from(signed), true),
            FIELD_LSHIFT => {
                let above = place.bits.checked_add(width);
                let above = above.and_then(|end| end.checked_sub(offset.checked_mul(8)?));
                let shift = above.and_then(|bits| 64_u64.checked_sub(bits));
                (shift.ok_or_else(too_wide)?, false)
            }
            _ => (64_u64.checked_sub(width).ok_or_else(too_wide)?, true),
        };
        Ok(Field {
            value,
            certain,
            bytes,
            widens,
        })
    }
}

/// The naturally aligned load of at least so many bytes that holds a bit field: its byte and its size.
fn load_of(place: &Place, bytes: u64) -> Result<(u64, u64), String> {
    let mut bytes = bytes;
    loop {
        if !matches!(bytes, 1 | 2 | 4 | 8) {
            return Err("is of a bit field that no load holds".to_owned());
        }
        let offset = place.bits / 8 / bytes * bytes;
        let end = place.bits.checked_add(u64::from(place.width));
        if end.is_some_and(|end| end - offset * 8 <= bytes * 8) {
            return Ok((offset, bytes));
        }
        bytes *= 2;
    }
}

fn of_type(btf: &Btf, flavors: &mut Flavors, record: CoreRecord) -> Result<Worth, String> {
    let local = record.ty;
    let target = match is_known(btf, local) {
        true => flavors.target(btf, local)?,
        false => None,
    };
    let size = |ty| btf.bytes(ty).ok_or("is of a type without a size");
    Ok(match record.kind {
        TYPE_ID_LOCAL => Worth::number(u64::from(local), Some(u64::from(local))),
        // Compilers leave the target's number to the loader.
        TYPE_ID_TARGET => Worth::number(target.map_or(0, u64::from), None),
        TYPE_EXISTS => Worth::answer(target.is_some()),
        TYPE_SIZE => {
            let now = target.map_or(Ok(0), size)?;
            Worth::number(now, Some(size(local)?))
        }
        _ => Worth::answer(match target {
            Some(target) => flavors.matches(btf, local, target)?,
            None => false,
        }),
    })
}

fn enumerator(
    btf: &Btf,
    flavors: &mut Flavors,
    record: CoreRecord,
    access: &str,
) -> Result<Worth, String> {
    let no_enumeration = || "is of an enumerator and names no enumeration".to_owned();
    let values = |ty| match btf.stripped(ty) {
        Some(Kind::Enum { values, .. }) => Some(values.as_slice()),
        _ => None,
    };
    let [index] = numbers(access)?[..] else {
        return Err(no_enumeration());
    };
    let all = values(record.ty).ok_or_else(no_enumeration)?;
    let local = all.get(index as usize);
    let local = local.ok_or_else(|| format!("names enumerator {index} of {}", all.len()))?;
    let target = flavors.target(btf, record.ty)?.and_then(values);
    let found = match target {
        Some(values) => flavors.enumerator(btf, values, local.name)?,
        None => None,
    };
    if record.kind == ENUM_VALUE_EXISTS {
        let name = essential(btf.name(record.ty));
        let exists = found.is_some_and(|e| known::is_supported(name, e.value));
        return Ok(Worth::answer(exists && known::is_known(name)));
    }
    Ok(match found {
        Some(now) => Worth::number(now.value, Some(local.value)),
        None => Worth::Absent,
    })
}
