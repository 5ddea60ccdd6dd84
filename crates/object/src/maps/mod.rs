//! Maps as XDP programs declare them: one file a way of declaring.

pub(crate) mod declared;
pub(crate) mod legacy;
pub(crate) mod nested;
pub(crate) mod programs;
pub(crate) mod slots;
pub(crate) mod timer;

use crate::error::LoadError;
use crate::program::StateObject;
use crate::state::{self, StateKind};

/// The kind that a declaration's type names.
fn kind(number: Option<u32>) -> Result<&'static StateKind, LoadError> {
    let exist = || {
        let kinds = state::KINDS.iter().filter(|k| k.bpf_type.is_some());
        kinds.map(|k| k.name).collect::<Vec<_>>().join(", ")
    };
    let Some(number) = number else {
        return Err(LoadError::new(
            "unknown-map-type",
            "the declaration has no `type`",
            format!("add `__uint(type, BPF_MAP_TYPE_…)`; there are {}", exist()),
        ));
    };
    state::by_bpf_type(number).ok_or_else(|| {
        LoadError::new(
            "unknown-map-type",
            format!(
                "the map type {} is not supported ({})",
                state::bpf_type_name(number),
                state::refused::reason(number).unwrap_or("there is no such type")
            ),
            format!("there are {}", exist()),
        )
    })
}

/// A map of a kind, its sizes still zero.
fn map(name: &str, kind: &'static StateKind) -> StateObject {
    let mut object = crate::layout::blank(name, kind);
    // What the host sets is constant for programs, but not known.
    object.read_only = kind.host_only();
    object.settable = kind.host_only();
    object
}

/// The flags of a declaration, and what they mean for programs.
fn flagged(object: &mut StateObject, flags: u32) {
    object.flags = flags;
    if flags & state::RDONLY_PROG != 0 {
        object.read_only = true;
        object.settable = true;
    }
}

/// The refusal of a map of maps that does not say what the maps are like.
pub(crate) fn no_inner() -> LoadError {
    LoadError::new(
        "map-in-map",
        "the declaration does not say what the maps that it holds are like",
        "add `__array(values, struct { __uint(type, …); … })`",
    )
}

/// The refusal of a kind of map that cannot be the value of another.
pub(crate) fn never_inside(kind: &StateKind) -> LoadError {
    LoadError::new(
        "map-in-map",
        format!(
            "a {} cannot be the value of a map of maps, as in the kernel",
            kind.name
        ),
        "hold maps of another kind",
    )
}

/// The refusal of timers in maps that are values of another.
pub(crate) fn no_timers_inside() -> LoadError {
    LoadError::new(
        "map-in-map",
        "the maps that it holds have timers in their values, which is not supported",
        "keep the timers in a map of the file's own",
    )
}
