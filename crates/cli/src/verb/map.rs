//! `millrace map`: the state of a running function.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use millrace_control::client::{Client, request};
use millrace_control::contents;
use millrace_control::pins::write_entries;
use millrace_control::protocol::{Edit, Request};
use millrace_control::strict;
use serde_json::{Value, json};

use crate::failure::{DONE, Failure};
use crate::quantity::{bytes, grouped};
use crate::screen;
use crate::target::Target;

/// Look at and change the maps of a running function.
#[derive(Args)]
#[command(after_help = "\
Keys and values are written as docs/maps.md says: 10.0.0.1, 80, \"10.0.0.1 be16:80\", or as JSON, \
'{\"addr\": \"10.0.0.1\", \"port\": 80}'. A change lies between two bursts of packets.

Exit status: 0 done, 1 there is no such entry, 2 wrong use or nothing that answers.")]
pub struct Map {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    target: Target,

    /// Print one JSON document
    #[arg(long, global = true)]
    pub json: bool,
}

/// What can be done with maps.
#[derive(Subcommand)]
pub enum What {
    /// The maps there are, with what is in them
    List,
    /// One map: its sizes and types
    Show {
        /// The map
        name: String,
    },
    /// The value under a key
    Get {
        /// The map
        name: String,
        /// The key
        key: String,
    },
    /// Write a value under a key, over an older one if there is one
    Set {
        /// The map
        name: String,
        /// The key
        key: String,
        /// The value
        value: String,
    },
    /// Remove the entry under a key
    Delete {
        /// The map
        name: String,
        /// The key
        key: String,
    },
    /// Remove all entries; elements of an array become zero
    Clear {
        /// The map
        name: String,
    },
    /// Write the entries of a file, JSON or CSV, all at one moment; of a classifier, replace its rules by those of the file
    Import {
        /// The map
        name: String,
        /// The file
        file: PathBuf,
        /// Clear the map first, at the same moment
        #[arg(long)]
        replace: bool,
    },
    /// Print all entries, as `--map` and `import` read them
    Export {
        /// The map
        name: String,
        /// As lines of KEY,VALUE instead of JSON
        #[arg(long)]
        csv: bool,
    },
}

/// Edits in one request: far below the longest one, whatever the keys and values.
const EDIT_BYTES: usize = 256 << 10;

impl Map {
    /// Asks the run, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        self.what.perform(&mut self.target.connect()?, self.json)
    }
}

impl What {
    /// Asks the run, and gives the exit status; with `json` the answer is one document.
    pub fn perform(&self, client: &mut Client, json: bool) -> Result<u8, Failure> {
        let ask = |client: &mut Client, request| client.ask(request).map_err(Failure::from);
        match self {
            What::List => {
                let answer = ask(client, request("objects"))?;
                tell(json, &answer, || table(&answer));
            }
            What::Show { name } => {
                let answer = ask(client, of("object", name))?;
                tell(json, &answer, || shown(&answer));
            }
            What::Get { name, key } => {
                let wanted = Request {
                    key: Some(written(key)),
                    ..of("get", name)
                };
                let answer = ask(client, wanted)?;
                tell(json, &answer, || text(&answer["value"]));
            }
            What::Set { name, key, value } => {
                let edit = edit(name, "set", Some(key), Some(value));
                edit_all(json, client, vec![edit])?;
            }
            What::Delete { name, key } => {
                let edit = edit(name, "delete", Some(key), None);
                let answer = edit_all(json, client, vec![edit])?;
                if answer["deleted"] == 0 {
                    return Ok(crate::failure::NO);
                }
            }
            What::Clear { name } => {
                edit_all(json, client, vec![edit(name, "clear", None, None)])?;
            }
            What::Import {
                name,
                file,
                replace,
            } => {
                if ask(client, of("object", name))?["kind"] == "classifier" {
                    // A classifier's rules are always replaced.
                    edit_all(json, client, rules(name, file)?)?;
                    return Ok(DONE);
                }
                let mut edits = Vec::new();
                if *replace {
                    edits.push(edit(name, "clear", None, None));
                }
                edits.extend(imported(name, file)?);
                edit_all(json, client, edits)?;
            }
            What::Export { name, csv } => export(client, name, *csv)?,
        }
        Ok(DONE)
    }
}

/// Makes edits together.
fn edit_all(json: bool, client: &mut Client, edits: Vec<Edit>) -> Result<Value, Failure> {
    let mut rest = edits.into_iter().peekable();
    loop {
        let (mut part, mut size) = (Vec::new(), 0);
        while size < EDIT_BYTES
            && let Some(edit) = rest.next()
        {
            size += serde_json::to_string(&edit).map_or(0, |text| text.len());
            part.push(edit);
        }
        let more = rest.peek().is_some();
        let request = Request {
            edits: part,
            more,
            ..request("edit")
        };
        let answer = client.ask(request)?;
        if !more {
            tell(json, &answer, || {
                let count = |name: &str| grouped(answer[name].as_u64().unwrap_or(0));
                format!("{} set, {} deleted", count("set"), count("deleted"))
            });
            return Ok(answer);
        }
    }
}

fn tell(json: bool, answer: &Value, text: impl FnOnce() -> String) {
    if json {
        screen::document(answer);
    } else {
        screen::out(&text());
    }
}

fn of(verb: &str, object: &str) -> Request {
    Request {
        object: Some(object.to_owned()),
        ..request(verb)
    }
}

fn edit(object: &str, op: &str, key: Option<&str>, value: Option<&str>) -> Edit {
    Edit {
        object: object.to_owned(),
        op: op.to_owned(),
        key: key.map(written),
        value: value.map(written),
    }
}

/// A key or value of the command line: JSON if it begins as an object or an array does, else words.
fn written(text: &str) -> Value {
    let json = text
        .starts_with(['{', '['])
        .then(|| strict::from_str(text).ok());
    let negative = text.parse::<i64>().ok().filter(|n| *n < 0).map(Value::from);
    json.flatten()
        .or(negative)
        .unwrap_or_else(|| Value::from(text))
}

fn imported(name: &str, file: &Path) -> Result<Vec<Edit>, Failure> {
    let entries = contents::read(file)?;
    let edits = entries.into_iter().map(|e| Edit {
        object: name.to_owned(),
        op: "set".to_owned(),
        key: e.key,
        value: Some(e.value),
    });
    Ok(edits.collect())
}

/// A file of rules, in parts that fit a request.
fn rules(name: &str, file: &Path) -> Result<Vec<Edit>, Failure> {
    let text =
        millrace_object::file::read_text(file, millrace_classify::MOST_BYTES).map_err(|e| {
            Failure::wrong(format!("{}: {e}", file.display()))
                .help("give a file of rules (docs/maps.md)")
        })?;
    let mut edits = Vec::new();
    let mut rest = text.as_str();
    loop {
        let mut at = rest.len().min(EDIT_BYTES);
        while !rest.is_char_boundary(at) {
            at -= 1;
        }
        let (part, behind) = rest.split_at(at);
        edits.push(Edit {
            object: name.to_owned(),
            op: "rules".to_owned(),
            key: None,
            value: Some(Value::from(part)),
        });
        rest = behind;
        if rest.is_empty() {
            return Ok(edits);
        }
    }
}

/// Prints entries page by page, so that a large map needs no memory here.
fn export(client: &mut Client, name: &str, csv: bool) -> Result<(), Failure> {
    let out = std::io::stdout();
    let mut out = std::io::BufWriter::new(out.lock());
    let mut next = Some(0);
    let mut failed = None;
    let mut page = Vec::new().into_iter();
    let member = if csv { "words" } else { "entries" };
    let mut entries = std::iter::from_fn(|| {
        loop {
            if let Some(entry) = page.next() {
                return Some(entry);
            }
            let wanted = Request {
                cursor: Some(next?),
                ..of("entries", name)
            };
            match client.ask(wanted) {
                Ok(mut answer) => {
                    next = answer["cursor"].as_u64();
                    let Value::Array(list) = answer[member].take() else {
                        return None;
                    };
                    page = list.into_iter();
                }
                Err(error) => {
                    (failed, next) = (Some(error), None);
                }
            }
        }
    });
    let written = if csv {
        entries.try_for_each(|e| {
            let word = |at: usize| e[at].as_str().unwrap_or_default();
            writeln!(out, "{},{}", word(0), word(1))
        })
    } else {
        let pairs = entries.map(|mut e| (e["key"].take(), e["value"].take()));
        write_entries(&mut out, pairs)
    };
    if let Some(error) = failed {
        return Err(Failure::from(error));
    }
    // A reader that has gone away is no error.
    let _ = written.and_then(|()| out.flush());
    Ok(())
}

fn table(answer: &Value) -> String {
    let mut lines = vec![format!(
        "{:<18}{:<18}{:>5}{:>8}{:>14}{:>14}",
        "map", "kind", "key", "value", "entries", "capacity"
    )];
    for object in answer["objects"].as_array().into_iter().flatten() {
        let number = |name: &str| object[name].as_u64().map_or("-".into(), grouped);
        lines.push(format!(
            "{:<18}{:<18}{:>5}{:>8}{:>14}{:>14}",
            text(&object["name"]),
            text(&object["kind"]),
            number("key_bytes"),
            number("value_bytes"),
            number("entries"),
            number("capacity"),
        ));
    }
    lines.join("\n")
}

fn shown(object: &Value) -> String {
    let number = |name: &str| object[name].as_u64().unwrap_or(0);
    let ty = |name: &str| match &object[name] {
        Value::Null => "of no known type".to_owned(),
        ty => text(ty),
    };
    let entries = object["entries"].as_u64().map_or("-".into(), grouped);
    let mut lines = vec![
        format!("{}: {}", text(&object["name"]), text(&object["kind"])),
        format!("  key      {} bytes, {}", number("key_bytes"), ty("key")),
        format!(
            "  value    {} bytes, {}",
            number("value_bytes"),
            ty("value")
        ),
        format!("  entries  {entries} of {}", grouped(number("capacity"))),
        format!("  memory   {}", bytes(number("bytes"))),
    ];
    let rules = &object["rules"];
    if rules.is_object() {
        let redundant = rules["redundant"].as_array().map_or(0, Vec::len);
        lines.push(format!(
            "  rules    {}, {} of them cannot change a class; {} of {}",
            grouped(rules["rules"].as_u64().unwrap_or(0)),
            grouped(redundant as u64),
            text(&rules["form"]),
            bytes(rules["table_bytes"].as_u64().unwrap_or(0)),
        ));
    }
    for (member, text) in [
        ("settable", "entries can be set"),
        ("pinned", "declared pinned by name"),
    ] {
        if object[member] == json!(true) {
            lines.push(format!("  {text}"));
        }
    }
    lines.join("\n")
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
