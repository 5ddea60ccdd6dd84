//! A chain from a file in TOML (docs/chains.md).
//!
//! The tables are read member by member, so that each thing that is wrong is told with its line, and nothing that was
//! written is passed over.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::description::{
    Description, Element, Function, Given, Guest, MOST_ELEMENTS, Port, Setting, What,
};
use crate::error::{ChainError, Place};
use crate::table::{Source, Wrong};

/// The longest file, bytes: far more than 64 elements need.
const MOST_BYTES: u64 = 1 << 20;

/// The keys at the top of a file that are not about the run.
pub const OF_CHAIN: [&str; 4] = ["name", "element", "connect", "entry"];
const OF_ALL: [&str; 3] = ["name", "nf", "guest"];
/// The option of a guest that begins with a snapshot, and not with a program.
const RESTORE: &str = "restore";
const OF_FUNCTION: &str = "name, nf or click, program, set, capacity and map";

/// Whether a word of a command line names such a file.
#[must_use]
pub fn is_file(word: &str) -> bool {
    Path::new(word).extension().is_some_and(|e| e == "toml")
}

/// A word that may be a path from a folder: that path, where something is there.
#[must_use]
pub fn beside(folder: &Path, word: &str) -> String {
    let file = match word.rsplit_once(".o:") {
        Some((file, _)) => format!("{file}.o"),
        None => word.to_owned(),
    };
    if folder.join(file).exists() {
        return folder.join(word).display().to_string();
    }
    word.to_owned()
}

/// Reads a file.
///
/// # Errors
/// It cannot be read, is no TOML, or says something that makes no sense; see docs/chains.md.
pub fn read(path: &Path) -> Result<Description, ChainError> {
    let failed = |what: String| ChainError {
        file: Some(path.to_owned()),
        place: None,
        what,
        help: "give a chain file as docs/chains.md describes it".into(),
    };
    let bytes = millrace_object::file::read(path, MOST_BYTES).map_err(|e| match e.kind() {
        ErrorKind::FileTooLarge => failed(format!("longer than {MOST_BYTES} bytes")),
        _ => failed(e.to_string()),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| failed("not text in UTF-8".into()))?;
    parse(&text, Some(path))
}

/// Reads what a file says.
///
/// # Errors
/// As [`read`].
pub fn parse(text: &str, file: Option<&Path>) -> Result<Description, ChainError> {
    let source = Source::new(text);
    described(&source)
        .map_err(|wrong| ChainError {
            file: file.map(Path::to_owned),
            place: wrong.span.map(|span| Place::of(text, &span)),
            what: wrong.what,
            help: wrong.help,
        })
        .map(|description| Description {
            file: file.map(Path::to_owned),
            text: text.to_owned(),
            ..description
        })
}

fn described(source: &Source<'_>) -> Result<Description, Wrong> {
    let root = DeTable::parse(source.text).map_err(|e| Wrong {
        span: e.span(),
        what: e.message().to_owned(),
        help: "write TOML as docs/chains.md shows it".into(),
    })?;
    let mut chain = Description::default();
    for (key, value) in root.get_ref() {
        let name: &str = key.get_ref();
        match name {
            "name" => chain.name = Some(source.text("name", value)?),
            "element" => {
                let list = value.get_ref().as_array();
                let list =
                    list.ok_or_else(|| source.kind("element", value, "a list: [[element]]"))?;
                for of in list.iter() {
                    chain.elements.push(element(source, of)?);
                }
            }
            "connect" => chain.connections = connections(source, value)?,
            "entry" => {
                let list = value.get_ref().as_array();
                let list = list.ok_or_else(|| source.kind("entry", value, "a list of ports"))?;
                let ports = list.iter().map(|v| port(source, "entry", v));
                chain.entries = ports.collect::<Result<_, _>>()?;
            }
            other => chain.settings.push(setting(source, key, other, value)?),
        }
    }
    // A table has its own order.
    chain.settings.sort_by_key(|setting| setting.span.start);
    let wrong = |span, what: String, help: &str| Wrong {
        span,
        what,
        help: help.to_owned(),
    };
    if chain.elements.is_empty() {
        return Err(wrong(
            None,
            "it has no elements".into(),
            "add an [[element]] with nf or guest",
        ));
    }
    if chain.elements.len() > MOST_ELEMENTS {
        let what = format!("{} elements", chain.elements.len());
        return Err(wrong(None, what, "a chain has at most 64"));
    }
    for (at, element) in chain.elements.iter().enumerate() {
        if chain
            .elements
            .iter()
            .take(at)
            .any(|e| e.name == element.name)
        {
            let what = format!("there are two elements `{}`", element.name);
            let span = element.line.map(|line| source.whole(line));
            return Err(wrong(span, what, "give each a name of its own"));
        }
    }
    if chain.entries.is_empty() && !chain.connections.is_empty() {
        let span = root.get_ref().get("connect").map(Spanned::span);
        let help =
            "add entry = [\"ELEMENT.PORT\", …], the chain's ports in the order of --in and --out";
        return Err(wrong(span, "connections, and no entry".into(), help));
    }
    Ok(chain)
}

/// A key about the run.
fn setting(
    source: &Source<'_>,
    key: &Spanned<std::borrow::Cow<'_, str>>,
    name: &str,
    value: &Spanned<DeValue<'_>>,
) -> Result<Setting, Wrong> {
    let given = match value.get_ref() {
        DeValue::Boolean(truth) => Given::Switch(*truth),
        DeValue::Array(list) => {
            let one = |v: &Spanned<DeValue<'_>>| Ok((source.scalar(name, v)?, v.span()));
            Given::Several(list.iter().map(one).collect::<Result<_, _>>()?)
        }
        _ => Given::One(source.scalar(name, value)?),
    };
    Ok(Setting {
        name: name.to_owned(),
        span: key.span().start..value.span().end,
        given,
    })
}

fn unknown(
    source: &Source<'_>,
    key: &Spanned<std::borrow::Cow<'_, str>>,
    name: &str,
    known: &str,
) -> Wrong {
    source.wrong(
        key,
        format!("there is no `{name}` here"),
        &format!("there are {known}"),
    )
}

fn element(source: &Source<'_>, value: &Spanned<DeValue<'_>>) -> Result<Element, Wrong> {
    let table = source.table("element", value)?;
    let first = table.iter().map(|(key, _)| key.span().start).min();
    let first = first.unwrap_or(value.span().start);
    let line = Some(source.line(&(first..first)));
    let wrong = |what: String, help: &str| Wrong {
        span: line.map(|line| source.whole(line)),
        what,
        help: help.to_owned(),
    };
    let has = |name: &str| table.iter().any(|(key, _)| key.get_ref() == name);
    if has("nf") && has("click") {
        return Err(wrong(
            "both `nf` and `click`".into(),
            "an element is one of them",
        ));
    }
    let what = match (has("nf") || has("click"), has("guest") || has(RESTORE)) {
        (true, false) => What::Function(function(source, table)?),
        (false, true) => What::Guest(guest(source, table)?),
        (true, true) => {
            return Err(wrong(
                "both `nf` and `guest`".into(),
                "an element is one of them",
            ));
        }
        (false, false) => {
            return Err(wrong(
                "neither `nf` nor `click` nor `guest` nor `restore`".into(),
                "say what the element is",
            ));
        }
    };
    let given = table.iter().find(|(key, _)| key.get_ref() == "name");
    let name = match (given, &what) {
        (Some((_, value)), _) => {
            let name = source.text("name", value)?;
            let fit = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            if name.is_empty() || name.len() > 64 || !name.chars().all(fit) {
                return Err(source.wrong(
                    value,
                    format!("`{name}` is no name"),
                    "use 1 to 64 letters, digits, _ and -",
                ));
            }
            name
        }
        (None, What::Function(function)) => stem(&function.word),
        (None, What::Guest(guest)) => {
            let first = guest.arguments.first().cloned();
            let first =
                first.or_else(|| guest.command.split_whitespace().next().map(str::to_owned));
            let restored = guest.options.iter().find(|(name, ..)| name == RESTORE);
            let first = first.or_else(|| restored.map(|(_, file, _)| file.clone()));
            stem(&first.unwrap_or_default())
        }
    };
    Ok(Element {
        name,
        line,
        keys: keys(table),
        what,
    })
}

/// The bytes of the keys of a table, and of those of the tables in it.
fn keys(table: &DeTable<'_>) -> Vec<(String, Range<usize>)> {
    let mut keys = Vec::new();
    for (key, value) in table {
        keys.push((
            key.get_ref().to_string(),
            key.span().start..value.span().end,
        ));
        for (member, value) in value.get_ref().as_table().into_iter().flatten() {
            let name = format!("{}.{}", key.get_ref(), member.get_ref());
            keys.push((name, member.span().start..value.span().end));
        }
    }
    keys
}

/// Name of a function or a program: the last part of its path, without an ending.
#[must_use]
pub fn stem(word: &str) -> String {
    let path = Path::new(word.trim_end_matches('/'));
    let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned());
    stem.unwrap_or_else(|| word.to_owned())
}

fn function(source: &Source<'_>, table: &DeTable<'_>) -> Result<Function, Wrong> {
    let mut function = Function::default();
    let joined = |key: &str, value| {
        let pairs = source.pairs(key, value)?;
        Ok(pairs
            .into_iter()
            .map(|(n, v)| format!("{n}={v}"))
            .collect::<Vec<_>>())
    };
    for (key, value) in table {
        let name: &str = key.get_ref();
        match name {
            "name" => {}
            "nf" => function.word = source.text(name, value)?,
            "click" => {
                function.word = source.text(name, value)?;
                if !function.word.ends_with(".click") {
                    return Err(source.wrong(
                        value,
                        format!("`{}` is no Click configuration", function.word),
                        "name a file that ends in .click",
                    ));
                }
            }
            "program" => function.program = Some(source.text(name, value)?),
            "set" => function.set = joined(name, value)?,
            "capacity" => function.capacity = joined(name, value)?,
            "map" => function.maps = joined(name, value)?,
            other => return Err(unknown(source, key, other, OF_FUNCTION)),
        }
    }
    Ok(function)
}

/// The options are the guests' own: which there are is known where they are read.
fn guest(source: &Source<'_>, table: &DeTable<'_>) -> Result<Guest, Wrong> {
    let mut guest = Guest::default();
    for (key, value) in table {
        let name: &str = key.get_ref();
        let line = Some(source.line(&key.span()));
        match name {
            _ if name == "guest" && value.get_ref().is_array() => {
                guest.arguments = source.texts(name, value)?;
            }
            "guest" => guest.command = source.text(name, value)?,
            "environment" => {
                let pairs = source.pairs(name, value)?;
                guest.environment = pairs.into_iter().collect::<BTreeMap<_, _>>();
            }
            _ if OF_ALL.contains(&name) => {}
            _ => match value.get_ref() {
                DeValue::Array(list) => {
                    for value in list.iter() {
                        let value = source.scalar(name, value)?;
                        guest.options.push((name.to_owned(), value, line));
                    }
                }
                DeValue::Boolean(true) => {
                    guest.options.push((name.to_owned(), String::new(), line));
                }
                DeValue::Boolean(false) => {}
                _ => {
                    let value = source.scalar(name, value)?;
                    guest.options.push((name.to_owned(), value, line));
                }
            },
        }
    }
    let program = !guest.command.trim().is_empty() || !guest.arguments.is_empty();
    let restored = guest.options.iter().any(|(name, ..)| name == RESTORE);
    if restored && program {
        let value = table.iter().find(|(key, _)| key.get_ref() == "guest");
        return Err(Wrong {
            span: value.map(|(key, value)| key.span().start..value.span().end),
            what: "both a program and a snapshot".into(),
            help: "leave `guest` out: the program is that of the snapshot".into(),
        });
    }
    if !program && !restored {
        let value = table.iter().find(|(key, _)| key.get_ref() == "guest");
        return Err(Wrong {
            span: value.map(|(key, value)| key.span().start..value.span().end),
            what: "no program is named".into(),
            help: "write guest = \"PROGRAM ARGUMENTS\", with @ for the interface".into(),
        });
    }
    Ok(guest)
}

fn connections(
    source: &Source<'_>,
    value: &Spanned<DeValue<'_>>,
) -> Result<Vec<(Port, Port)>, Wrong> {
    const PAIRS: &str = "a list of pairs, as in [[\"fw.WAN\", \"tap.0\"]]";
    let list = value.get_ref().as_array();
    let list = list.ok_or_else(|| source.kind("connect", value, PAIRS))?;
    let pair = |value: &Spanned<DeValue<'_>>| {
        let ends: Vec<_> = value
            .get_ref()
            .as_array()
            .into_iter()
            .flat_map(|a| a.iter())
            .collect();
        match ends.as_slice() {
            [one, other] => Ok((
                port(source, "connect", one)?,
                port(source, "connect", other)?,
            )),
            _ => Err(source.kind("connect", value, PAIRS)),
        }
    };
    list.iter().map(pair).collect()
}

fn port(source: &Source<'_>, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Port, Wrong> {
    let text = source.text(key, value)?;
    let line = Some(source.line(&value.span()));
    match text.rsplit_once('.') {
        Some((element, port)) if !element.is_empty() && !port.is_empty() => Ok(Port {
            element: element.to_owned(),
            port: port.to_owned(),
            line,
        }),
        _ => Err(source.wrong(
            value,
            format!("`{text}` names no port"),
            "write ELEMENT.PORT, with the port's name or number",
        )),
    }
}
