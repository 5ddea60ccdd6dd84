//! `--map NAME=FILE`: what a state object holds before the first packet, from a file (docs/maps.md).

use std::path::Path;

use millrace_dataplane::Module;
use millrace_dataplane::module::Entry;
use millrace_object::program::Program;
use serde_json::Value;

use crate::failure::Failure;
use crate::literal;
use crate::nested;

/// A million entries in the longest form are less; as a tree of JSON values it is ten times as much.
const MOST_BYTES: u64 = 1 << 28;

/// One entry as it is written: where in the file, its key, its value.
pub(crate) struct Written {
    pub(crate) place: String,
    /// none where it was left out, as objects without a key have it
    pub(crate) key: Option<Text>,
    pub(crate) value: Text,
}

/// A key or value: in words, byte by byte, or the entries of a map.
pub(crate) enum Text {
    Words(String),
    Bytes(Vec<u8>),
    Entries(Vec<Written>),
}

impl Text {
    pub(crate) fn bytes(&self, size: usize) -> Result<Vec<u8>, String> {
        match self {
            Self::Words(words) => literal::bytes(words, size),
            Self::Bytes(bytes) if bytes.len() == size => Ok(bytes.clone()),
            Self::Bytes(bytes) => Err(format!("{} bytes, {size} are wanted", bytes.len())),
            Self::Entries(_) => Err("entries, where only a map of maps has any".into()),
        }
    }
}

/// The entries that `--map` names, for the objects of a module whose packet entries are `programs`.
///
/// # Errors
/// A word that is not NAME=FILE, an object that is not there or takes no entries, a file that cannot be
/// read or is malformed, with its line.
pub fn entries(
    words: &[String],
    module: &Module,
    programs: &[&str],
) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    for word in words {
        let (name, file) = word
            .split_once('=')
            .filter(|(name, file)| !name.is_empty() && !file.is_empty())
            .ok_or_else(|| {
                Failure::wrong(format!("--map {word}: not NAME=FILE"))
                    .help("as in --map stations=stations.json")
            })?;
        let object = object(module, name)
            .map_err(|(what, help)| Failure::wrong(format!("--map {name}: {what}")).help(help))?;
        let path = Path::new(file);
        let wrong = |what: String| Failure::wrong(format!("{file}: {what}"));
        let text = read(path).map_err(|e| wrong(e).help("give a file of entries, JSON or CSV"))?;
        let of_programs = module
            .objects()
            .get(object)
            .is_some_and(|o| o.kind == "prog_array");
        for mut written in parse(&text).map_err(|e| wrong(e).help(FORMS))? {
            if of_programs {
                written.value = numbered(written.value, programs);
            }
            let new = if nested::holds_maps(module, object) {
                nested::entries(module, object, &written)
            } else {
                sized(module, object, written.key.as_ref(), &written.value).map(|e| vec![e])
            };
            let new = new.map_err(|e| wrong(format!("{}: {e}", written.place)).help(FORMS))?;
            entries.extend(new);
        }
    }
    Ok(entries)
}

/// Names of the packet entries of a program, in its order.
pub fn programs(program: Option<&Program>) -> Vec<&str> {
    program.map_or_else(Vec::new, |p| {
        p.entries
            .iter()
            .filter_map(|e| p.functions.get(e.function.0))
            .map(|f| f.name.as_str())
            .collect()
    })
}

/// In an array of programs a program's name stands for its number, from 1.
fn numbered(value: Text, programs: &[&str]) -> Text {
    let Text::Words(word) = &value else {
        return value;
    };
    match programs.iter().position(|name| name == word) {
        Some(at) => Text::Words(format!("u32:{}", at + 1)),
        None => value,
    }
}

const FORMS: &str = "write [{\"key\": \"10.0.0.1\", \"value\": 1}] or lines of KEY,VALUE; docs/maps.md says \
                     how keys and values are written";

/// The object of a name, if entries can be set in it; else what is wrong, and what to do.
///
/// # Errors
/// There is none, or it has nothing to set.
pub fn object(module: &Module, name: &str) -> Result<usize, (String, String)> {
    let objects = module.objects();
    match objects.iter().position(|o| o.name == name) {
        Some(at) if module.settable(at) => Ok(at),
        Some(_) => Err((
            "this kind of object takes no entries".into(),
            "name a map, a vector or an array".into(),
        )),
        None => {
            let names: Vec<_> = objects.iter().map(|o| o.name.as_str()).collect();
            Err((
                "there is no such object".into(),
                format!("the function has {}", names.join(", ")),
            ))
        }
    }
}

/// An entry in words.
///
/// # Errors
/// The key or the value is not of the object's size, or nothing that can be read.
pub fn entry(module: &Module, object: usize, key: &str, value: &str) -> Result<Entry, String> {
    let words = |text: &str| Text::Words(text.to_owned());
    if nested::holds_maps(module, object) {
        let written = Written {
            place: String::new(),
            key: Some(words(key)),
            value: words(value),
        };
        let mut one = nested::entries(module, object, &written)?;
        return one.pop().ok_or_else(|| "there is no entry".into());
    }
    sized(module, object, Some(&words(key)), &words(value))
}

fn sized(
    module: &Module,
    object: usize,
    key: Option<&Text>,
    value: &Text,
) -> Result<Entry, String> {
    let info = module
        .objects()
        .get(object)
        .ok_or("there is no such object")?;
    Ok(Entry {
        object,
        key: key_bytes(key, info.key_bytes)?,
        value: value
            .bytes(info.value_bytes)
            .map_err(|e| format!("value: {e}"))?,
    })
}

/// The bytes of a key, of which there are none where the object has no key.
pub(crate) fn key_bytes(key: Option<&Text>, bytes: usize) -> Result<Vec<u8>, String> {
    match key {
        Some(key) => key.bytes(bytes).map_err(|e| format!("key: {e}")),
        None if bytes == 0 => Ok(Vec::new()),
        None => Err("there is no \"key\"".into()),
    }
}

fn read(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|e| e.to_string())?.len();
    if size > MOST_BYTES {
        return Err(format!("{size} bytes, at most {MOST_BYTES} are read"));
    }
    std::fs::read_to_string(path).map_err(|e| e.to_string())
}

fn parse(text: &str) -> Result<Vec<Written>, String> {
    if text.trim_start().starts_with(['[', '{']) {
        json(text)
    } else {
        csv(text)
    }
}

fn json(text: &str) -> Result<Vec<Written>, String> {
    let document: Value = serde_json::from_str(text).map_err(|e| format!("not JSON: {e}"))?;
    listed(document.as_array().ok_or("not a JSON array of entries")?)
}

fn listed(list: &[Value]) -> Result<Vec<Written>, String> {
    let entries = list.iter().enumerate().map(|(index, entry)| {
        let place = format!("entry {}", index + 1);
        let member = |name: &str| {
            let text = entry.get(name).map(text_of).transpose();
            text.map_err(|e| format!("{place}: {name}: {e}"))
        };
        let value = member("value")?;
        Ok(Written {
            key: member("key")?,
            value: value.ok_or_else(|| format!("{place}: there is no \"value\""))?,
            place,
        })
    });
    entries.collect()
}

fn text_of(value: &Value) -> Result<Text, String> {
    match value {
        Value::String(words) => Ok(Text::Words(words.clone())),
        Value::Number(number) => Ok(Text::Words(number.to_string())),
        Value::Array(list) if list.first().is_some_and(Value::is_object) => {
            listed(list).map(Text::Entries)
        }
        // As bpftool prints them: "0x0a" each. Plain numbers serve too.
        Value::Array(bytes) => bytes
            .iter()
            .map(|byte| {
                let byte = match byte {
                    Value::String(hex) => hex
                        .strip_prefix("0x")
                        .and_then(|h| u8::from_str_radix(h, 16).ok()),
                    other => other.as_u64().and_then(|n| u8::try_from(n).ok()),
                };
                byte.ok_or_else(|| "an array has bytes, 0 to 255 or \"0x00\" to \"0xff\"".into())
            })
            .collect::<Result<_, String>>()
            .map(Text::Bytes),
        _ => Err("neither a text, a number nor an array of bytes".into()),
    }
}

fn csv(text: &str) -> Result<Vec<Written>, String> {
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        // The first line may say what the columns are.
        if line.is_empty() || line.starts_with('#') || (index == 0 && line == "key,value") {
            continue;
        }
        let place = format!("line {}", index + 1);
        let (key, value) = line
            .split_once(',')
            .filter(|(_, value)| !value.contains(','))
            .ok_or_else(|| format!("{place}: not KEY,VALUE"))?;
        let words = |text: &str| Text::Words(text.trim().trim_matches('"').to_owned());
        entries.push(Written {
            key: Some(words(key)),
            value: words(value),
            place,
        });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn both(text: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        let entries = parse(text).unwrap();
        let bytes = entries.iter().map(|e| {
            (
                key_bytes(e.key.as_ref(), 6).unwrap(),
                e.value.bytes(4).unwrap(),
            )
        });
        bytes.collect()
    }

    #[test]
    fn the_same_entries_in_every_form() {
        let want = vec![(vec![2, 0, 0, 0, 0, 1], vec![5, 0, 0, 0])];
        for text in [
            r#"[{"key": "02:00:00:00:00:01", "value": 5}]"#,
            r#"[{"key": [2, 0, 0, 0, 0, 1], "value": ["0x05", "0x00", "0x00", "0x00"]}]"#,
            r#"[{"key": "hex:020000000001", "value": "u16:5 zeros:2"}]"#,
            "02:00:00:00:00:01,5",
            "key,value\n# who is where\n\n\"02:00:00:00:00:01\" , 5\r\n",
        ] {
            assert_eq!(both(text), want, "{text}");
        }
        assert!(parse("[]").unwrap().is_empty());
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn no_file_makes_it_panic() {
        let seeds: [&[u8]; 3] = [
            br#"[{"key": "02:00:00:00:00:01", "value": [1, "0x02"]}, {"key": 5, "value": "be16:80"}]"#,
            b"key,value\n10.0.0.1 u8:6 zeros:3,hex:00ff\n# x\naddress:10.0.0.1,::1\n",
            b"u64:18446744073709551615,0xffffffffffffffff\n02:00:00:00:00:0a,-1\n",
        ];
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut draw = |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 11) as usize % below
        };
        let mut understood = 0;
        for round in 0..20_000 {
            let mut text = seeds[round % seeds.len()].to_vec();
            for _ in 0..draw(4) {
                let at = draw(text.len());
                text[at] = b"\0 ,:\"[]{}\n0x9f\xc3"[draw(15)];
            }
            let text = String::from_utf8_lossy(&text);
            for entry in parse(&text).unwrap_or_default() {
                for size in [1, 4, 6, 16] {
                    for side in entry.key.iter().chain([&entry.value]) {
                        if let Ok(bytes) = side.bytes(size) {
                            assert_eq!(bytes.len(), size);
                            understood += 1;
                        }
                    }
                }
            }
        }
        assert!(understood > 1000, "only {understood} were understood");
    }

    #[test]
    fn malformed_files_are_refused_with_the_place() {
        for (text, what) in [
            ("[{", "not JSON"),
            ("{}", "not a JSON array"),
            (
                r#"[{"key": 1, "value": 2}, {"key": 1}]"#,
                "entry 2: there is no \"value\"",
            ),
            (r#"[{"key": {}, "value": 2}]"#, "entry 1: key: neither"),
            (r#"[{"key": [256], "value": 2}]"#, "0 to 255"),
            ("1,2\n3", "line 2: not KEY,VALUE"),
            ("1,2,3", "line 1: not KEY,VALUE"),
        ] {
            let Err(error) = parse(text) else {
                panic!("{text} is taken")
            };
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
