//! Files of entries (docs/maps.md): what a state object holds, in JSON or CSV.

use std::path::Path;

use millrace_dataplane::module::Entry;
use serde_json::Value;

use crate::exposed::Exposed;
use crate::trouble::Trouble;

/// A million entries in the longest form are less; as a tree of JSON values it is ten times as much.
const MOST_BYTES: u64 = 1 << 28;

/// One entry as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// where in the file
    pub place: String,
    /// a text, a number, an array of bytes, or an object of fields; none where it was left out, as objects
    /// without a key have it
    pub key: Option<Value>,
    /// the same; in a map of maps also a list of entries
    pub value: Value,
}

/// The entries that `--map` names.
///
/// # Errors
/// A word that is not NAME=FILE, an object that is not there or takes no entries, a file that cannot be
/// read or is malformed, with its line.
pub fn entries(words: &[String], exposed: &Exposed) -> Result<Vec<Entry>, Trouble> {
    let mut entries = Vec::new();
    for word in words {
        let (name, file) = word
            .split_once('=')
            .filter(|(name, file)| !name.is_empty() && !file.is_empty())
            .ok_or_else(|| {
                Trouble::new("malformed", format!("--map {word}: not NAME=FILE"))
                    .help("as in --map stations=stations.json")
            })?;
        if let Ok(object) = exposed.index(name)
            && exposed.takes_rules(object)
        {
            let of_file = exposed.rules_of_file(object, Path::new(file));
            entries.push(of_file.map_err(|t| Trouble {
                what: format!("--map {name}: {}", t.what),
                ..t
            })?);
            continue;
        }
        let object = exposed.settable(name).map_err(|t| Trouble {
            what: format!("--map {name}: {}", t.what),
            ..t
        })?;
        entries.extend(of_file(Path::new(file), exposed, object)?);
    }
    Ok(entries)
}

/// The entries of a file, for one object.
///
/// # Errors
/// The file cannot be read or is malformed, or an entry does not fit the object.
pub fn of_file(path: &Path, exposed: &Exposed, object: usize) -> Result<Vec<Entry>, Trouble> {
    let name = path.display();
    let wrong = |what: String| Trouble::new("malformed", format!("{name}: {what}")).help(FORMS);
    let written = read(path)?;
    let mut all = Vec::new();
    for w in &written {
        let entries = exposed.entries(object, w.key.as_ref(), &w.value);
        all.extend(entries.map_err(|e| wrong(format!("{}: {e}", w.place)))?);
    }
    Ok(all)
}

/// The entries of a file as they are written.
///
/// # Errors
/// The file cannot be read or is malformed.
pub fn read(path: &Path) -> Result<Vec<Written>, Trouble> {
    let name = path.display();
    let text = text_of(path).map_err(|e| {
        Trouble::new("unreadable", format!("{name}: {e}"))
            .help("give a file of entries, JSON or CSV")
    })?;
    parse(&text).map_err(|e| Trouble::new("malformed", format!("{name}: {e}")).help(FORMS))
}

/// How entries are written.
pub const FORMS: &str = "write [{\"key\": \"10.0.0.1\", \"value\": 1}] or lines of KEY,VALUE; docs/maps.md says \
                         how keys and values are written";

fn text_of(path: &Path) -> Result<String, String> {
    millrace_object::file::read_text(path, MOST_BYTES).map_err(|e| e.to_string())
}

/// The entries of a text, JSON if it begins with a bracket, else CSV.
///
/// # Errors
/// What is malformed, and where.
pub fn parse(text: &str) -> Result<Vec<Written>, String> {
    if text.trim_start().starts_with(['[', '{']) {
        json(text)
    } else {
        csv(text)
    }
}

fn json(text: &str) -> Result<Vec<Written>, String> {
    let document = crate::strict::from_str(text).map_err(|e| format!("not JSON: {e}"))?;
    let Value::Array(list) = document else {
        return Err("not a JSON array of entries".into());
    };
    listed(list)
}

/// The entries of a JSON list.
///
/// # Errors
/// What is malformed, and in which entry.
pub(crate) fn listed(list: Vec<Value>) -> Result<Vec<Written>, String> {
    let entries = list.into_iter().enumerate().map(|(index, mut entry)| {
        let place = format!("entry {}", index + 1);
        let mut member = |name: &str| {
            match entry.get_mut(name) {
                Some(Value::Null | Value::Bool(_)) => Err(format!(
                    "{place}: {name}: neither a text, a number, an array of bytes nor an object of fields"
                )),
                value => Ok(value.map(Value::take)),
            }
        };
        let (key, value) = (member("key")?, member("value")?);
        Ok(Written {
            key,
            value: value.ok_or_else(|| format!("{place}: there is no \"value\""))?,
            place,
        })
    });
    entries.collect()
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
        let words = |text: &str| Value::from(text.trim().trim_matches('"'));
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
    use super::*;
    use crate::value;

    fn both(text: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        let entries = parse(text).unwrap();
        let bytes = entries.iter().map(|e| {
            (
                value::read(e.key.as_ref().unwrap(), 6, None).unwrap(),
                value::read(&e.value, 4, None).unwrap(),
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
    fn malformed_files_are_refused_with_the_place() {
        for (text, what) in [
            ("[{", "not JSON"),
            ("{}", "not a JSON array"),
            (
                r#"[{"key": 1, "value": 2}, {"key": 1}]"#,
                "entry 2: there is no \"value\"",
            ),
            (r#"[{"key": null, "value": 2}]"#, "entry 1: key: neither"),
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
