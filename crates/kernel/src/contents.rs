//! The contents of maps: from files at start, for the account at the end.

use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;

use libbpf_rs::{Map, MapCore, MapFlags, MapType, Object, libbpf_sys};
use millrace_dataplane::module::KeyValue;
use millrace_dataplane::port::PortError;

use crate::load::Wanted;
use crate::trouble;

/// Keeps libbpf from pinning a map that is declared pinned by name: it would outlive the process. What is to be
/// kept from run to run is kept in files.
pub fn unpin(word: &str, map: NonNull<libbpf_sys::bpf_map>) -> Result<(), PortError> {
    // SAFETY: a map of an object that is open and not yet loaded, from libbpf; a null path is one that it takes.
    let done = unsafe { libbpf_sys::bpf_map__set_pin_path(map.as_ptr(), std::ptr::null()) };
    if done == 0 {
        return Ok(());
    }
    let error = std::io::Error::from_raw_os_error(-done);
    Err(trouble::live(
        word,
        format!("cannot keep a map from being pinned: {error}"),
        "try again",
    ))
}

/// Puts the entries in that are to be there before the first packet.
pub fn fill(
    word: &str,
    object: &Object,
    wanted: &Wanted<'_>,
    interfaces: &[u32],
) -> Result<(), PortError> {
    for content in &wanted.contents {
        let name = &content.map;
        let wrong = |what: String| {
            trouble::live(
                word,
                format!("--map {name}: {what}"),
                "`millrace check` lists the maps; docs/maps.md says what they hold",
            )
        };
        let map = find(object, name).ok_or_else(|| wrong("the kernel has no such map".into()))?;
        let kind = map.map_type();
        let value = match kind {
            MapType::ProgArray => program(object, wanted, &content.value),
            MapType::Devmap | MapType::DevmapHash => interface(interfaces, &content.value),
            MapType::ArrayOfMaps | MapType::HashOfMaps => {
                Err("maps of maps are not filled in the kernel: use afxdp:".to_owned())
            }
            _ => Ok(content.value.clone()),
        };
        let value = value.map_err(wrong)?;
        let set = if kind.is_percpu() {
            let cpus = libbpf_rs::num_possible_cpus().map_err(|e| wrong(e.to_string()))?;
            map.update_percpu(&content.key, &vec![value; cpus], MapFlags::ANY)
        } else {
            map.update(&content.key, &value, MapFlags::ANY)
        };
        set.map_err(|e| wrong(format!("the kernel does not take an entry: {e}")))?;
    }
    Ok(())
}

/// The 32-bit number that a value begins with, less one.
fn place(value: &[u8]) -> Option<usize> {
    let number = u32::from_ne_bytes(*value.first_chunk()?);
    usize::try_from(number).ok()?.checked_sub(1)
}

/// A program's descriptor in place of its number.
fn program(object: &Object, wanted: &Wanted<'_>, value: &[u8]) -> Result<Vec<u8>, String> {
    let name = place(value).and_then(|at| wanted.programs.get(at));
    let name = name.ok_or("there is no program of this number")?;
    let program = object.progs().find(|p| p.name() == name.as_str());
    let program = program.ok_or_else(|| format!("the object has no program `{name}`"))?;
    Ok(program.as_fd().as_raw_fd().to_ne_bytes().to_vec())
}

/// An interface's number in place of its port's.
fn interface(interfaces: &[u32], value: &[u8]) -> Result<Vec<u8>, String> {
    let index = place(value).and_then(|at| interfaces.get(at));
    let index = index.ok_or("interface n is port n - 1, and there is no such port")?;
    let mut bytes = index.to_ne_bytes().to_vec();
    // A program that runs at the other interface may follow: none.
    bytes.resize(value.len(), 0);
    Ok(bytes)
}

fn find<'a>(object: &'a Object, name: &str) -> Option<Map<'a>> {
    object.maps().find(|m| m.name() == name)
}

/// Whether entries come and go in a map of this type, so that their number says something.
#[must_use]
pub fn counted(kind: MapType) -> bool {
    matches!(
        kind,
        MapType::Hash
            | MapType::LruHash
            | MapType::PercpuHash
            | MapType::LruPercpuHash
            | MapType::LpmTrie
            | MapType::DevmapHash
            | MapType::HashOfMaps
    )
}

/// Name of a map's type.
#[must_use]
pub fn kind(kind: MapType) -> String {
    let mut text = String::new();
    for letter in format!("{kind:?}").chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// The entries of a map whose values are bytes of its own.
pub fn entries(object: &Object, name: &str) -> Result<Vec<KeyValue>, PortError> {
    let wrong = |what: String| {
        trouble::live(
            name,
            what,
            "read it with `bpftool map dump` while the function runs",
        )
    };
    let map = find(object, name).ok_or_else(|| wrong("the kernel has no such map".into()))?;
    match map.map_type() {
        MapType::Hash | MapType::LruHash | MapType::Array | MapType::LpmTrie => {}
        other => return Err(wrong(format!("a map of type {} is not read", kind(other)))),
    }
    let mut entries = Vec::new();
    for key in map.keys() {
        let value = map.lookup(&key, MapFlags::ANY);
        if let Some(value) = value.map_err(|e| wrong(e.to_string()))? {
            entries.push((key, value));
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_numbered_from_one_and_become_interfaces() {
        assert_eq!(
            interface(&[17, 23], &2_u32.to_ne_bytes()).unwrap(),
            23_u32.to_ne_bytes()
        );
        assert_eq!(
            interface(&[17], &[1, 0, 0, 0, 9, 9, 9, 9]).unwrap(),
            [17, 0, 0, 0, 0, 0, 0, 0]
        );
        for value in [&0_u32.to_ne_bytes()[..], &3_u32.to_ne_bytes(), &[1]] {
            assert!(interface(&[17, 23], value).is_err(), "{value:?}");
        }
    }

    #[test]
    fn types_have_the_names_that_other_ports_give_them() {
        assert_eq!(kind(MapType::LruHash), "lru_hash");
        assert_eq!(kind(MapType::Array), "array");
    }
}
