//! Entries of maps of maps (docs/maps.md): a value is the name of a map of the program, `new` for an empty
//! one, or the entries of one that is made for it.

use millrace_dataplane::Module;
use millrace_dataplane::module::{Entry, ObjectInfo};

use crate::contents::{Text, Written, key_bytes};

/// The number that asks for a new map (MAPS_OWN of fastpath/state/maps.h).
const NEW: [u8; 4] = [0xff; 4];

/// The word for it.
const NEW_WORD: &str = "new";

/// Whether the values of an object are maps.
pub fn holds_maps(module: &Module, object: usize) -> bool {
    let info = module.objects().get(object);
    info.is_some_and(|o| matches!(o.kind.as_str(), "array_of_maps" | "hash_of_maps"))
}

/// What one entry asks for: the map under the key and, if it is made here, its entries.
///
/// # Errors
/// What is wrong with the entry, in words.
pub fn entries(module: &Module, object: usize, written: &Written) -> Result<Vec<Entry>, String> {
    let holder = info(module, object)?;
    let key = key_bytes(written.key.as_ref(), holder.key_bytes)?;
    let (value, content) = match &written.value {
        Text::Words(word) if word == NEW_WORD => (NEW.to_vec(), &[][..]),
        Text::Words(name) => (named(module, holder, name)?, &[][..]),
        // An empty list of entries looks like one of bytes.
        Text::Bytes(bytes) if bytes.is_empty() => (NEW.to_vec(), &[][..]),
        Text::Bytes(_) => {
            return Err(format!(
                "value: bytes; {} holds maps: name one, or list its entries",
                holder.name
            ));
        }
        Text::Entries(content) => (NEW.to_vec(), content.as_slice()),
    };
    let mut all = vec![Entry {
        object,
        key: key.clone(),
        value,
    }];
    let (inside, shape) = shape(module, holder)?;
    for entry in content {
        let of = |e| format!("{}: {e}", entry.place);
        let own = shape.key_bytes.saturating_sub(holder.key_bytes);
        let mut both = key.clone();
        both.extend(key_bytes(entry.key.as_ref(), own).map_err(of)?);
        let value = entry.value.bytes(shape.value_bytes);
        all.push(Entry {
            object: inside,
            key: both,
            value: value.map_err(|e| of(format!("value: {e}")))?,
        });
    }
    Ok(all)
}

fn info(module: &Module, object: usize) -> Result<&ObjectInfo, String> {
    let info = module.objects().get(object);
    info.ok_or_else(|| "there is no such object".into())
}

/// The object through which the maps in a map are reached.
fn shape<'a>(module: &'a Module, holder: &ObjectInfo) -> Result<(usize, &'a ObjectInfo), String> {
    let name = format!("{}.maps", holder.name);
    let mut objects = module.objects().iter().enumerate();
    objects
        .find(|(_, o)| o.name == name)
        .ok_or_else(|| format!("there is no {name}"))
}

/// The number of the map of this name, as the holder's value.
fn named(module: &Module, holder: &ObjectInfo, name: &str) -> Result<Vec<u8>, String> {
    let (_, shape) = shape(module, holder)?;
    let own = shape.key_bytes.saturating_sub(holder.key_bytes);
    let fits = |o: &ObjectInfo| {
        (o.kind.as_str(), o.key_bytes, o.value_bytes) == (&shape.kind, own, shape.value_bytes)
            && o.name != shape.name
    };
    let objects = module.objects();
    match objects.iter().position(|o| o.name == name) {
        Some(at) if objects.get(at).is_some_and(fits) => Ok((at as u32 + 1).to_le_bytes().to_vec()),
        found => {
            let names: Vec<&str> = objects
                .iter()
                .filter(|o| fits(o))
                .map(|o| o.name.as_str())
                .collect();
            let problem = match found {
                Some(_) => "is not like the maps it holds",
                None => "is no map of the program",
            };
            let all = if names.is_empty() {
                "there is none".to_owned()
            } else {
                format!("there are {}", names.join(", "))
            };
            Err(format!(
                "value: `{name}` {problem} ({all}); or write `{NEW_WORD}`, or a list of its entries in JSON"
            ))
        }
    }
}
