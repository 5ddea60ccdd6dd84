//! Limits of sizes, common to the declarations of all kinds.

use crate::program::StateObject;

/// Longest key, in bytes: the kernel's `MAX_BPF_STACK`, as a key is built on the stack.
pub const MAX_KEY: u32 = 512;
/// Longest value, in bytes. The kernel admits more, but a value is copied at each update.
pub const MAX_VALUE: u32 = 1 << 20;
/// Most entries.
pub const MAX_CAPACITY: u64 = 1 << 26;
/// Most CPUs, of which each worker is one.
pub const CPUS: u64 = 1024;
/// Most bytes of one object.
pub const MAX_BYTES: u64 = 64 << 30;

pub(super) fn key(object: &StateObject) -> Result<(), String> {
    match object.key_bytes {
        1..=MAX_KEY => Ok(()),
        other => Err(format!(
            "a key of {other} bytes; 1 to {MAX_KEY} are possible"
        )),
    }
}

pub(super) fn index_key(object: &StateObject) -> Result<(), String> {
    match object.key_bytes {
        4 => Ok(()),
        other => Err(format!(
            "a key of {other} bytes; an index is a __u32, 4 bytes"
        )),
    }
}

/// A value that is a descriptor.
pub(super) fn descriptor(object: &StateObject) -> Result<(), String> {
    match object.value_bytes {
        4 => Ok(()),
        other => Err(format!(
            "a value of {other} bytes; 4 are possible, as in the kernel"
        )),
    }
}

pub(super) fn value(object: &StateObject) -> Result<(), String> {
    match object.value_bytes {
        1..=MAX_VALUE => Ok(()),
        other => Err(format!(
            "a value of {other} bytes; 1 to {MAX_VALUE} are possible (the kernel admits more)"
        )),
    }
}

/// Handlers may declare an empty structure: presence of the key is all there is to know.
pub(super) fn value_or_none(object: &StateObject) -> Result<(), String> {
    match object.value_bytes {
        0 => Ok(()),
        _ => value(object),
    }
}

pub(super) fn capacity(object: &StateObject) -> Result<(), String> {
    match object.capacity {
        1..=MAX_CAPACITY => Ok(()),
        other => Err(format!("{other} entries; 1 to {MAX_CAPACITY} are possible")),
    }
}

pub(super) fn total(bytes: u64) -> Result<(), String> {
    match bytes {
        0..=MAX_BYTES => Ok(()),
        other => Err(format!(
            "it would take {other} bytes; at most {MAX_BYTES} (64 GiB) are possible, with fewer entries"
        )),
    }
}

/// Who may touch the values of a map: what programs may, `check` enforces; what processes outside may has no meaning
/// here.
pub(super) const ACCESS: [(u32, &str); 4] = [
    (1 << 3, "BPF_F_RDONLY"),
    (1 << 4, "BPF_F_WRONLY"),
    (super::RDONLY_PROG, "BPF_F_RDONLY_PROG"),
    (super::WRONLY_PROG, "BPF_F_WRONLY_PROG"),
];

/// Map flags that change nothing here: where memory is, and access from outside.
pub(super) const PLACED: &[(u32, &str)] = &[(1 << 2, "BPF_F_NUMA_NODE"), ACCESS[0], ACCESS[1]];

/// Only the named map flags may be set.
pub(super) fn flags(object: &StateObject, known: &[(u32, &str)]) -> Result<(), String> {
    let all = known.iter().fold(0, |all, (bit, _)| all | bit);
    match object.flags & !all {
        0 => Ok(()),
        other => {
            let names: Vec<&str> = known.iter().map(|(_, name)| *name).collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            Err(format!("unknown map flags {other:#x}; there are: {names}"))
        }
    }
}

/// Of the options that a handler may give only to some kinds, those of these names alone may be given.
pub(super) fn options(object: &StateObject, taken: &[&str]) -> Result<(), String> {
    let all = [
        (object.expire_after, "expire_after"),
        (object.first, "first"),
        (object.window, "window"),
        (u64::from(object.rows), "rows"),
    ];
    let given = |(value, name): &&(u64, &str)| *value != 0 && !taken.contains(name);
    match all.iter().find(given) {
        Some((_, name)) => Err(format!("it takes no .{name}; leave it out")),
        None => Ok(()),
    }
}
