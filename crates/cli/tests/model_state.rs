//! `millrace model` says of each object what a reader writes of it who has the source alone: expected/NF.state,
//! written by hand. Where paths are not all, the fallback must say the same of use, lines and members.
//!
//! A line of such a file that begins in the first column names an object and its use; below it stand its
//! keys, and the lines of the source that touch it: what the line does, the call or the access, the member. Behind
//! semicolons `on` a port, `at start`, `when` conditions hold (the report may say more of them), `[keys]` if it
//! is not all of the object's, and `<-` what is written.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};

use common::{json, millrace, root, success};
use serde_json::Value;

/// What a line of the source does to an object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Does {
    place: String,
    effect: String,
    operation: String,
}

#[derive(Default, Debug)]
struct More {
    parts: BTreeSet<String>,
    ports: Option<BTreeSet<String>>,
    when: BTreeSet<String>,
    keys: Option<BTreeSet<String>>,
    values: Option<BTreeSet<String>>,
}

#[derive(Default)]
struct Object {
    access: String,
    keys: BTreeSet<String>,
    lines: BTreeMap<Does, More>,
}

fn list(text: &str, between: &str) -> BTreeSet<String> {
    text.split(between).map(|s| s.trim().to_owned()).collect()
}

fn expected(nf: &str) -> BTreeMap<String, Object> {
    let file = root().join(format!("crates/cli/tests/expected/{nf}.state"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut all: BTreeMap<String, Object> = BTreeMap::new();
    let mut last = String::new();
    for line in text
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        if !line.starts_with(' ') {
            let (name, access) = line.split_once(": ").unwrap();
            last = name.to_owned();
            let access = access.to_owned();
            let object = Object {
                access,
                ..Object::default()
            };
            assert!(all.insert(last.clone(), object).is_none(), "{nf}: {line}");
            continue;
        }
        let object = all.get_mut(&last).unwrap();
        if let Some(key) = line.trim().strip_prefix("key ") {
            object.keys.insert(key.to_owned());
            continue;
        }
        let mut parts = line.trim().split("; ");
        let words: Vec<&str> = parts.next().unwrap().splitn(4, ' ').collect();
        let does = Does {
            place: words[0].to_owned(),
            effect: words[1].to_owned(),
            operation: words[2].to_owned(),
        };
        // A line that touches several members may be written once for each.
        let more = object.lines.entry(does).or_default();
        more.parts
            .extend(words.get(3).map_or(BTreeSet::new(), |w| list(w, ", ")));
        for part in parts {
            match part.split_once(' ') {
                Some(("on", "no port")) | Some(("at", "start")) => {
                    more.ports = Some(BTreeSet::new());
                }
                Some(("on", ports)) => more.ports = Some(list(ports, ", ")),
                Some(("when", all)) => more.when = list(all, ", "),
                Some(("<-", values)) => more.values = Some(list(values, " | ")),
                _ => {
                    let keys = part.strip_prefix('[').and_then(|p| p.strip_suffix(']'));
                    let keys = keys.unwrap_or_else(|| panic!("{nf}: {part}"));
                    more.keys = Some(list(keys, " | "));
                }
            }
        }
    }
    all
}

/// The same with what stands in brackets left out: by which key an entry was found.
fn bare(text: &str) -> String {
    let mut out = String::new();
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '[' => {
                depth += 1;
                if depth == 1 {
                    out.push_str("[…");
                }
            }
            ']' => {
                depth -= 1;
                if depth == 0 {
                    out.push(']');
                }
            }
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

/// A key as a reader writes it: who reads the source does not tell TCP's ports from UDP's, nor where in
/// a chain of headers the protocol's number stands.
fn canonical(key: &str) -> Vec<String> {
    let mut out = Vec::new();
    // What may be one of several, in turn.
    let choice = |open: &str, close: char| -> Option<(usize, usize)> {
        let from = key.find(open)?;
        let to = key[from..].find(close)? + from;
        Some((from, to))
    };
    if let Some((from, to)) = choice("one of {", '}') {
        for way in key[from + "one of {".len()..to].split(", ") {
            let whole = format!("{}{way}{}", &key[..from], &key[to + 1..]);
            out.extend(canonical(&whole));
        }
        return out;
    }
    // (CONDITION ? YES : NO), by the same condition throughout.
    if let Some((from, to)) = choice("(", ')')
        && let Some((condition, _)) = key[from + 1..to].split_once(" ? ")
    {
        for way in [0, 1] {
            let mut whole = key.to_owned();
            let open = format!("({condition} ? ");
            while let Some(from) = whole.find(&open) {
                let to = whole[from..].find(')').unwrap() + from;
                let sides = &whole[from + open.len()..to];
                let (yes, no) = sides.split_once(" : ").unwrap();
                let side = [yes, no][way].to_owned();
                whole.replace_range(from..=to, &side);
            }
            out.extend(canonical(&whole));
        }
        return out;
    }
    let parts: Vec<String> = key
        .split(" ++ ")
        .map(|p| {
            p.replace("tcp.", "l4.")
                .replace("udp.", "l4.")
                .replace("icmp6.", "icmp.")
        })
        .collect();
    let protocol = |p: &str| {
        matches!(p, "6" | "17" | "1" | "58") || p.ends_with(".next") || p.ends_with(".protocol")
    };
    // It follows the ports.
    let ports = parts
        .iter()
        .rposition(|p| p.contains("port") || p == "icmp.id");
    let ports = ports.map(|at| {
        if parts.get(at + 1).is_some_and(|p| p == "0") {
            at + 1
        } else {
            at
        }
    });
    let parts = parts.iter().enumerate().map(|(i, p)| match ports {
        Some(at) if i == at + 1 && protocol(p) => "protocol".to_owned(),
        _ => p.clone(),
    });
    vec![parts.collect::<Vec<_>>().join(" ++ ")]
}

fn strings(v: &Value) -> Vec<String> {
    let all = v.as_array().into_iter().flatten();
    all.map(|s| s.as_str().unwrap().to_owned()).collect()
}

fn usage(access: &str) -> &'static str {
    match access {
        "read-only" => "read-only",
        "written-at-start" => "written at start only",
        "additive" => "additions only",
        "read-write" => "read and written",
        _ => "not used",
    }
}

fn effect(effect: &str) -> &'static str {
    match effect {
        "read" => "reads",
        "refresh" => "refreshes",
        "add" => "adds",
        _ => "writes",
    }
}

fn does(line: &Value) -> Does {
    Does {
        place: line["line"].as_str().unwrap_or_default().to_owned(),
        effect: effect(line["effect"].as_str().unwrap()).to_owned(),
        operation: line["operation"].as_str().unwrap().to_owned(),
    }
}

/// Everything in which the report differs from what was written by hand.
fn differences(nf: &str, document: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let hand = expected(nf);
    let objects = document["objects"].as_array().unwrap();
    let names: BTreeSet<&str> = objects
        .iter()
        .map(|o| o["name"].as_str().unwrap())
        .collect();
    if names != hand.keys().map(String::as_str).collect() {
        out.push(format!("objects: {names:?}"));
    }
    for o in objects {
        let name = o["name"].as_str().unwrap();
        let Some(hand) = hand.get(name) else { continue };
        let access = usage(o["access"].as_str().unwrap());
        if access != hand.access {
            out.push(format!("{name}: {access}, by hand {}", hand.access));
        }
        let approximate = o["approximate"] == true;
        let lines = &o[if approximate { "at_most" } else { "accesses" }];
        let lines = lines.as_array().unwrap();
        let mut parts: BTreeMap<Does, BTreeSet<String>> = BTreeMap::new();
        for l in lines {
            parts
                .entry(does(l))
                .or_default()
                .extend(strings(&l["parts"]));
        }
        let lines: BTreeMap<Does, &Value> = lines.iter().map(|l| (does(l), l)).collect();
        for (d, more) in &hand.lines {
            let Some(parts) = parts.get(d).filter(|p| **p != more.parts) else {
                continue;
            };
            out.push(format!(
                "{name}: {d:?}: {parts:?}, by hand {:?}",
                more.parts
            ));
        }
        for d in lines.keys().filter(|d| !hand.lines.contains_key(d)) {
            out.push(format!("{name}: only the report has {d:?}"));
        }
        for d in hand.lines.keys().filter(|d| !lines.contains_key(d)) {
            out.push(format!("{name}: only written by hand is {d:?}"));
        }
        if approximate {
            continue;
        }
        let letters = o["letters"].as_object().unwrap();
        let long = |key: &String| {
            letters
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or(key)
                .to_owned()
        };
        let keys = |keys: &Value| -> BTreeSet<String> {
            let all = strings(keys).into_iter();
            all.flat_map(|k| canonical(&long(&k)))
                .map(|k| bare(&k))
                .collect()
        };
        let canonical_of = |all: &BTreeSet<String>| -> BTreeSet<String> {
            all.iter().flat_map(|k| canonical(k)).collect()
        };
        let mine = canonical_of(&hand.keys);
        if !mine.is_empty() && keys(&o["keys"]) != mine {
            out.push(format!(
                "{name}: keys {:#?}, by hand {mine:#?}",
                keys(&o["keys"])
            ));
        }
        for (d, more) in &hand.lines {
            let Some(line) = lines.get(d) else { continue };
            let place = format!("{name}: {} {}", d.place, d.operation);
            let ports: BTreeSet<String> = strings(&line["ports"]).into_iter().collect();
            if more.ports.as_ref().is_some_and(|p| *p != ports) {
                out.push(format!("{place}: on {ports:?}"));
            }
            let when: BTreeSet<String> = strings(&line["when"]).iter().map(|w| bare(w)).collect();
            if !more.when.is_subset(&when) {
                out.push(format!("{place}: when {when:?}"));
            }
            let values: BTreeSet<String> =
                strings(&line["values"]).iter().map(|w| bare(w)).collect();
            if more.values.as_ref().is_some_and(|v| *v != values) {
                out.push(format!("{place}: <- {values:?}"));
            }
            let used = keys(&line["keys"]);
            let wanted = more
                .keys
                .as_ref()
                .map_or_else(|| mine.clone(), canonical_of);
            if !wanted.is_empty() && used != wanted {
                out.push(format!("{place}: of {used:#?}"));
            }
        }
    }
    out
}

/// Whether the report of a function says what was written by hand; whether all of it was compared.
fn compare(nf: &str) -> bool {
    let document = success(millrace().args(["model", nf, "--time", "30"]));
    let out = differences(nf, &document);
    assert!(out.is_empty(), "{nf}:\n{}", out.join("\n"));
    let all = document["covers"] == true;
    if !all {
        let why = &document["bounded"];
        eprintln!("skipped: keys, ports and conditions of {nf}, whose paths are not all: {why}");
    }
    all
}

#[test]
fn functions_that_are_followed_to_the_last_path() {
    for nf in ["sbridge", "bridge", "policer", "cl"] {
        assert!(compare(nf), "{nf} is not exhaustive");
    }
}

#[test]
fn functions_that_are_long() {
    for nf in ["psd", "hhh"] {
        compare(nf);
    }
}

/// Its loops over backends are taken for any number of turns, and its keys are those of a reader.
#[test]
fn a_function_whose_paths_cover_what_it_does() {
    assert!(compare("lb"), "there may be other paths");
}

#[test]
fn an_expectation_that_is_wrong_is_found() {
    let (mut document, _) = json(millrace().args(["model", "sbridge"]));
    assert_eq!(differences("sbridge", &document), Vec::<String>::new());
    let wrong: [(&str, Value); 4] = [
        ("/objects/0/access", "read-write".into()),
        ("/objects/0/accesses/0/effect", "write".into()),
        ("/objects/0/accesses/0/keys/0", "eth.src".into()),
        ("/objects/0/accesses/1/when/0", "stations full".into()),
    ];
    for (at, value) in wrong {
        let place = document.pointer_mut(at).unwrap();
        let right = std::mem::replace(place, value);
        assert!(!differences("sbridge", &document).is_empty(), "{at}");
        *document.pointer_mut(at).unwrap() = right;
    }
}
