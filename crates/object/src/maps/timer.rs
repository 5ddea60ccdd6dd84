//! Where the timer of a map's values is: a member of type `struct bpf_timer`, at most one a value
//! (kernel/bpf/btf.c `btf_parse_fields`).

use crate::btf::{Btf, Kind};
use crate::error::LoadError;
use crate::helper::TIMER_INIT;
use crate::program::{StateObject, TIMER_BYTES};

/// The type's name.
const NAME: &str = "bpf_timer";
/// Deeper structures are not looked into.
const MAX_DEPTH: usize = 16;
/// Most members that are looked at: type information may be a graph whose paths are many.
const MAX_MEMBERS: usize = 4096;

/// The offset of the timer in the type that this pointer points to, if it has one.
///
/// # Errors
/// `map-declaration`: it has several.
pub(super) fn find(btf: &Btf, pointer: u32) -> Result<Option<u32>, LoadError> {
    let Some(value) = btf.pointee(pointer) else {
        return Ok(None);
    };
    let mut found = Vec::new();
    let mut pending = vec![(value, 0_u32, 0)];
    let mut seen = 0;
    while let Some((ty, at, depth)) = pending.pop() {
        seen += 1;
        if seen > MAX_MEMBERS {
            break;
        }
        let id = btf.strip(ty);
        match btf.stripped(ty) {
            Some(Kind::Struct { bytes, .. }) if btf.name(id) == NAME && *bytes == TIMER_BYTES => {
                found.push(at);
            }
            Some(Kind::Struct {
                members,
                union: false,
                ..
            }) if depth < MAX_DEPTH => {
                let inside =
                    |m: &crate::btf::Member| (m.ty, at.saturating_add(m.offset / 8), depth + 1);
                pending.extend(members.iter().take(MAX_MEMBERS).map(inside));
            }
            // Of an array's elements the first and the second tell whether there are several.
            Some(Kind::Array { element, count }) if depth < MAX_DEPTH => {
                let bytes = btf.bytes(*element).and_then(|b| u32::try_from(b).ok());
                let step = bytes.unwrap_or(0);
                let element = |i: u32| {
                    (
                        *element,
                        at.saturating_add(i.saturating_mul(step)),
                        depth + 1,
                    )
                };
                pending.extend((0..(*count).min(2)).map(element));
            }
            _ => {}
        }
    }
    match found.as_slice() {
        [] => Ok(None),
        [at] => Ok(Some(*at)),
        _ => Err(LoadError::new(
            "map-declaration",
            format!("its values have {} timers", found.len()),
            "have one `struct bpf_timer` a value, as in the kernel",
        )),
    }
}

/// Refuses timers in kinds of maps that have none.
///
/// # Errors
/// `map-declaration`
pub(super) fn allow(object: &StateObject) -> Result<(), LoadError> {
    if object.timer.is_none() || object.kind.does(&TIMER_INIT).is_some() {
        return Ok(());
    }
    Err(LoadError::new(
        "map-declaration",
        format!(
            "values of a {} have no timers, as in the kernel",
            object.kind.name
        ),
        format!("use one of these: {}", TIMER_INIT.kind_names()),
    ))
}
