//! Entries of maps of maps (docs/maps.md): a value is the name of a map of the program, `new` for an empty
//! one, or the entries of one that is made for it.

use millrace_dataplane::module::{Entry, ObjectInfo};
use serde_json::Value;

use crate::contents::listed;
use crate::exposed::Exposed;

/// The number that asks for a new map (MAPS_OWN of fastpath/state/maps.h).
const NEW: [u8; 4] = [0xff; 4];

/// The word for it.
const NEW_WORD: &str = "new";

/// The request of one entry: the map under the key and, if it is made here, its entries.
///
/// # Errors
/// What is wrong with the entry, in words.
pub fn entries(
    exposed: &Exposed,
    object: usize,
    key: &[u8],
    value: &Value,
) -> Result<Vec<Entry>, String> {
    let holder = exposed.info(object)?;
    let (value, content) = match value {
        Value::String(word) if word == NEW_WORD => (NEW.to_vec(), Vec::new()),
        Value::String(name) => (named(exposed, holder, name)?, Vec::new()),
        Value::Array(list) if list.iter().all(Value::is_object) => {
            (NEW.to_vec(), listed(list.clone())?)
        }
        _ => {
            return Err(format!(
                "value: neither a name nor entries; {} holds maps: name one, or list its entries",
                holder.name
            ));
        }
    };
    let mut all = vec![Entry::new(object, key.to_vec(), value)];
    let (inside, shape) = shape(exposed, holder)?;
    for entry in content {
        let of = |e| format!("{}: {e}", entry.place);
        let own = shape.key_bytes.saturating_sub(holder.key_bytes);
        let mut both = key.to_vec();
        both.extend(exposed.plain_key(entry.key.as_ref(), own).map_err(of)?);
        let value = crate::value::read(&entry.value, shape.value_bytes, None);
        let value = value.map_err(|e| of(format!("value: {e}")))?;
        all.push(Entry::new(inside, both, value));
    }
    Ok(all)
}

/// The object through which the maps in a map are reached.
fn shape<'a>(exposed: &'a Exposed, holder: &ObjectInfo) -> Result<(usize, &'a ObjectInfo), String> {
    let name = format!("{}.maps", holder.name);
    let mut objects = exposed.objects.iter().map(|(o, _)| o).enumerate();
    objects
        .find(|(_, o)| o.name == name)
        .ok_or_else(|| format!("there is no {name}"))
}

/// The number of the map of this name, as the holder's value.
fn named(exposed: &Exposed, holder: &ObjectInfo, name: &str) -> Result<Vec<u8>, String> {
    let (_, shape) = shape(exposed, holder)?;
    let own = shape.key_bytes.saturating_sub(holder.key_bytes);
    let fits = |o: &ObjectInfo| {
        (o.kind, o.key_bytes, o.value_bytes) == (shape.kind, own, shape.value_bytes)
            && o.name != shape.name
    };
    let objects: Vec<&ObjectInfo> = exposed.objects.iter().map(|(o, _)| o).collect();
    match objects.iter().position(|o| o.name == name) {
        Some(at) if objects.get(at).is_some_and(|o| fits(o)) => {
            Ok((at as u32 + 1).to_le_bytes().to_vec())
        }
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
