//! Maps declared as a structure of numbers in a section `maps` or `maps/…`, the way of before BTF.
//!
//! Four layouts are about, told apart by their size; all begin with type, key size, value size,
//! entries and flags:
//!
//! - libbpf's `struct bpf_map_def`, 20 bytes (16 without flags, the first ones);
//! - the kernel samples', 28 bytes: then the index of an inner map and a NUMA node;
//! - iproute2's `struct bpf_elf_map`, 36 bytes: then id, pinning, inner id and inner index;
//! - goebpf's, 40 bytes: then, aligned to 8, a pointer to an inner map and one to a path to pin at.
//!
//! A map of maps names another map of the section that is like its values: the samples' by its number in
//! the order they lie in, goebpf's by its address, iproute2's by its id; there that map also is a value
//! from the start, at the index that it names itself.
//!
//! Whatever else is longer must be zero beyond the flags, as libbpf has it
//! (`bpf_object__init_user_maps` before libbpf 1.0).

use crate::bytes::u32_at;
use crate::elf::{Elf, Section, Symbol, SymbolKind};
use crate::error::LoadError;
use crate::layout::{Declaration, Inner, admits, too_many};
use crate::maps::{flagged, kind, map};
use crate::program::StateObject;
use crate::reloc;
use crate::state::{bloom_filter, lpm_trie, perf_event_array, prog_array};

/// Type, key size, value size and entries.
const SHORTEST: usize = 16;
/// The same and flags: what all later layouts begin with.
const COMMON: usize = 20;
/// The kernel samples' layout.
const SAMPLES: usize = 28;
/// `struct bpf_elf_map`.
const IPROUTE2: usize = 36;
/// goebpf's layout.
const GOEBPF: usize = 40;

const BPF_F_NO_PREALLOC: u32 = 1;

/// Whether maps are declared the old way in a section of this name.
pub(crate) fn is_section(name: &str) -> bool {
    name == "maps" || name.starts_with("maps/")
}

/// Reads every declaration of the section: one a symbol.
pub(crate) fn read(elf: &Elf<'_>, index: usize) -> Result<Vec<Declaration>, LoadError> {
    let section = elf.section(index)?;
    let mut symbols: Vec<&Symbol<'_>> = elf
        .symbols
        .iter()
        .filter(|s| s.section == Some(index) && !s.name.is_empty())
        .filter(|s| matches!(s.kind, SymbolKind::Object | SymbolKind::Other))
        .collect();
    symbols.sort_by_key(|s| s.value);
    symbols.dedup_by_key(|s| s.value);
    if !admits(symbols.len()) {
        return Err(too_many());
    }
    if symbols.is_empty() {
        return Err(LoadError::malformed("maps are declared without symbols"));
    }
    let mut declarations = Vec::with_capacity(symbols.len());
    let mut texts = Vec::with_capacity(symbols.len());
    for (i, symbol) in symbols.iter().enumerate() {
        let limit = symbols.get(i + 1).map_or(section.size, |next| next.value);
        let end = match symbol.size {
            0 => limit,
            size => symbol.value.saturating_add(size),
        };
        let bytes = usize::try_from(symbol.value)
            .ok()
            .zip(usize::try_from(end).ok())
            .and_then(|(start, end)| section.data.get(start..end))
            .ok_or_else(|| {
                LoadError::malformed("a map declared beyond the end of its section")
                    .at_symbol(symbol.name)
            })?;
        texts.push(bytes);
        declarations.push(Declaration {
            start: symbol.value,
            end,
            values: None,
            id: id(bytes),
            inner: None,
            object: declaration(symbol, bytes).map_err(|e| e.at_symbol(symbol.name)),
        });
    }
    for at in 0..declarations.len() {
        let inner = inner(elf, section, &declarations, &texts, at);
        if let Some(declaration) = declarations.get_mut(at) {
            declaration.inner = inner;
        }
    }
    Ok(declarations)
}

/// Description of the values of a map of maps; none where that is not said.
fn inner(
    elf: &Elf<'_>,
    section: &Section<'_>,
    declarations: &[Declaration],
    texts: &[&[u8]],
    at: usize,
) -> Option<Inner> {
    let (declaration, bytes) = (declarations.get(at)?, *texts.get(at)?);
    declaration
        .object
        .as_ref()
        .ok()
        .filter(|o| o.kind.holds_maps())?;
    let word = |at: usize| u32_at(bytes, at).unwrap_or(0);
    let (found, holds) = match bytes.len() {
        SAMPLES => (word(20) as usize, false),
        IPROUTE2 => {
            let id = |text: &&[u8]| text.len() == IPROUTE2 && u32_at(text, 20) == Some(word(28));
            (texts.iter().position(id).filter(|_| word(28) != 0)?, true)
        }
        GOEBPF => {
            let pointer = declaration.start.checked_add(24)?;
            let target = reloc::pointer::resolve(elf, section, pointer).ok()??;
            let start = u64::try_from(target.offset).ok()?;
            (declarations.iter().position(|d| d.start == start)?, false)
        }
        _ => return None,
    };
    let like = declarations.get(found)?;
    let index = texts.get(found).and_then(|text| u32_at(text, 32));
    Some(Inner {
        shape: like.object.as_ref().ok()?.clone(),
        holds: index.filter(|_| holds).map(|index| (index, like.start)),
    })
}

fn declaration(symbol: &Symbol<'_>, bytes: &[u8]) -> Result<StateObject, LoadError> {
    if bytes.len() < SHORTEST {
        return Err(LoadError::malformed(format!(
            "a map's declaration of {} bytes; type, sizes and entries take {SHORTEST}",
            bytes.len()
        )));
    }
    let word = |at: usize| u32_at(bytes, at).unwrap_or(0);
    let kind = kind(Some(word(0)))?;
    // The words that only loaders look at: a NUMA node, an id, where to pin.
    let ignored = match bytes.len() {
        SAMPLES | IPROUTE2 | GOEBPF => bytes.len(),
        length => COMMON.min(length),
    };
    if bytes.get(ignored..).unwrap_or(&[]).iter().any(|b| *b != 0) {
        return Err(LoadError::new(
            "map-declaration",
            format!(
                "a declaration of {} bytes says more than type, sizes, entries and flags",
                bytes.len()
            ),
            "declare it in `SEC(\".maps\")` with `__uint(type, …)`, `__type(key, …)`, `__type(value, …)`",
        ));
    }
    let mut object = map(symbol.name, kind);
    object.key_bytes = word(4);
    object.value_bytes = word(8);
    object.capacity = u64::from(word(12));
    flagged(&mut object, word(16));
    if kind.membership() {
        object.rows = bloom_filter::HASHES;
    }
    if bytes.len() == GOEBPF {
        // What the kernel asks of every such map, goebpf's loader adds.
        if *kind == lpm_trie::KIND {
            object.flags |= BPF_F_NO_PREALLOC;
        } else if [&perf_event_array::KIND, &prog_array::KIND].contains(&kind) {
            (object.key_bytes, object.value_bytes) = (4, 4);
        }
    }
    Ok(object)
}

/// The number that iproute2's layout gives a map.
fn id(bytes: &[u8]) -> Option<u32> {
    (bytes.len() == IPROUTE2)
        .then(|| u32_at(bytes, COMMON))
        .flatten()
}
