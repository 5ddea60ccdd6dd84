//! Fields of a packet that are compared with those of the packet that made the entry, as in translations of addresses.
//! On one port packets look an entry up and go on only if fields of theirs equal what it holds; what it holds was written
//! by packets of another port; and a mismatch ends as a miss does.
//!
//! R5 of the plan (crates/plan, rules/interchangeable.rs) decides the same question bit by bit, over the fields that
//! NICs hash. This finder names fields of all headers, for readers; nothing is decided by what it finds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use millrace_model::expr::{ExprId, Node, Rel};
use millrace_model::model::{self, Entry, Model, Path};

use super::{Relation, port, port_name};
use crate::layout::Layout;
use crate::layout::fields::{End, Name, Role};
use crate::verdict::{Ending, verdict};
use crate::words::Printer;
use crate::{Context, clean, listed, place};

/// The byte of the value that a field is held against, and the field.
type Match = (u32, Name);

/// One path that looked an entry of the object up.
struct Asked {
    port: u64,
    found: bool,
    /// what must be equal, by the first byte of the value: fields
    equal: BTreeSet<Match>,
    /// that something is not
    differs: bool,
    passes: bool,
    effect: Effect,
    /// the same in words
    words: String,
}

/// Effect of a path on packet and state, and its verdict.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Effect {
    ending: Ending,
    /// the packet is changed
    changed: bool,
    /// what is done to state: operations and objects
    operations: Vec<(&'static str, usize)>,
}

/// A writer of bytes of the value: its port, and which field comes to which byte.
struct Wrote {
    port: Option<u64>,
    line: String,
    /// by byte of the value: field and byte in it; none for anything else
    bytes: BTreeMap<u32, Option<(Name, i64)>>,
}

pub(super) fn find(context: &Context<'_>, model: &Model) -> Vec<Relation> {
    let mut out = Vec::new();
    for object in 0..context.program.objects.len() {
        let (mut asked, mut wrote) = (Vec::new(), Vec::new());
        let mut portless = false;
        for entry in &model.entries {
            for path in &entry.paths {
                let touches = path.accesses.iter().any(|a| a.object.0 == object);
                if !touches {
                    continue;
                }
                let layout = Layout::of(&entry.arena, &path.guard, &context.memory);
                let keys = context.keys(path);
                let printer = context.printer(&entry.arena, &layout, &keys);
                wrote.extend(writers(context, &printer, entry, path, object));
                match port(context, entry, path) {
                    Some(on) => asked.extend(one(context, &printer, entry, path, object, on)),
                    None => portless = true,
                }
            }
        }
        if !portless {
            out.extend(relations(context, object, &asked, &wrote));
        }
    }
    out
}

fn relations(
    context: &Context<'_>,
    object: usize,
    asked: &[Asked],
    wrote: &[Wrote],
) -> Vec<Relation> {
    let ports: BTreeSet<u64> = asked.iter().map(|a| a.port).collect();
    let mut out = Vec::new();
    for on in ports {
        let here = || asked.iter().filter(|a| a.port == on);
        let going: Vec<&Asked> = here().filter(|a| a.passes).collect();
        let misses: BTreeMap<&Effect, &str> = here()
            .filter(|a| !a.found)
            .map(|a| (&a.effect, a.words.as_str()))
            .collect();
        let mut mismatches = here().filter(|a| a.found && a.differs).peekable();
        let all_held = going.iter().all(|a| a.found && !a.equal.is_empty());
        if going.is_empty() || !all_held || misses.is_empty() || mismatches.peek().is_none() {
            continue;
        }
        if !mismatches.all(|m| misses.contains_key(&m.effect)) {
            continue;
        }
        // Packets of different transports are held against fields of different names.
        let sets: BTreeSet<&BTreeSet<Match>> = going.iter().map(|a| &a.equal).collect();
        let Some(told) = sets
            .iter()
            .map(|equal| told(context, equal, on, wrote))
            .collect::<Option<Vec<Told>>>()
        else {
            continue;
        };
        let mut sentences: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for t in told {
            sentences
                .entry((t.what, t.writer))
                .or_default()
                .extend(t.details);
        }
        let ends: BTreeSet<&str> = misses.into_values().collect();
        let ends: Vec<&str> = ends.into_iter().collect();
        let name = context.program.objects.get(object).map(|o| o.name.clone());
        let name = name.unwrap_or_default();
        for ((what, writer), details) in sentences {
            let on = port_name(context, on);
            out.push(Relation {
                kind: "stored",
                object: name.clone(),
                sentence: format!(
                    "a {on} packet that looks up {} changes or passes only if its {what} equal{} \
                     stored by the {writer} packet that opened the mapping; a mismatch behaves as a \
                     miss ({})",
                    clean(&name),
                    if what.contains(" and ") { " those" } else { "s the one" },
                    ends.join("; "),
                ),
                details: details.into_iter().collect(),
            });
        }
    }
    out
}

struct Told {
    what: String,
    writer: String,
    details: Vec<String>,
}

/// Compared fields and their stored counterparts, if all of these were stored by packets of one other port.
fn told(context: &Context<'_>, equal: &BTreeSet<Match>, on: u64, wrote: &[Wrote]) -> Option<Told> {
    let mut what: Vec<String> = Vec::new();
    let mut details = Vec::new();
    let mut writers: BTreeSet<u64> = BTreeSet::new();
    for (byte, field) in equal {
        let mut stored: BTreeSet<(Name, String)> = BTreeSet::new();
        for w in wrote {
            match w.bytes.get(byte) {
                // Other bytes of the value.
                None => continue,
                Some(Some((from, 0))) => {
                    writers.insert(w.port?);
                    stored.insert((*from, w.line.clone()));
                }
                // A constant, as the protocol where a path knows it, or the absent port of an echo.
                Some(None) => {
                    writers.insert(w.port?);
                }
                Some(Some(_)) => return None,
            }
        }
        if stored.is_empty() {
            return None;
        }
        let spoken = spoken(*field);
        if !what.contains(&spoken) {
            what.push(spoken);
        }
        // Of the same transport, if one is told.
        if stored.iter().any(|s| s.0.header() == field.header()) {
            stored.retain(|s| s.0.header() == field.header());
        }
        for (from, line) in stored {
            details.push(format!("{field} == the stored {from} ({line})"));
        }
    }
    let writer = match writers.iter().copied().collect::<Vec<_>>().as_slice() {
        [one] if *one != on => port_name(context, *one),
        _ => return None,
    };
    let rank = |w: &String| {
        ["address", "port", "protocol"]
            .iter()
            .position(|k| w.ends_with(k))
    };
    what.sort_by_key(|w| (rank(w).unwrap_or(9), w.clone()));
    let what = match what.as_slice() {
        [a, p, rest @ ..] if a == "source address" && p == "source port" => {
            let mut all = vec!["source address".to_owned(), "port".to_owned()];
            all.extend(rest.iter().cloned());
            listed(&all)
        }
        all => listed(all),
    };
    Some(Told {
        what,
        writer,
        details,
    })
}

/// A field as people call it.
fn spoken(field: Name) -> String {
    let name = match field.role() {
        Some(Role::Source(End::Address)) => "source address",
        Some(Role::Destination(End::Address)) => "destination address",
        Some(Role::Source(End::Port)) => "source port",
        Some(Role::Destination(End::Port)) => "destination port",
        Some(Role::Protocol) => "protocol",
        None => return field.to_string(),
    };
    let inner = if field.inner { "carried " } else { "" };
    format!("{inner}{name}")
}

/// The lookup of a path, if it has one of the object.
fn one(
    context: &Context<'_>,
    printer: &Printer<'_>,
    entry: &Entry,
    path: &Path,
    object: usize,
    on: u64,
) -> Option<Asked> {
    let lookup = path.accesses.iter().find(|a| {
        a.object.0 == object
            && matches!(a.effect, model::Effect::Read | model::Effect::Refresh)
            && matches!(a.outcome, Some("there" | "absent"))
    })?;
    let found = lookup.outcome == Some("there");
    let (mut equal, mut differs) = (BTreeSet::new(), false);
    for e in &path.guard {
        let Some((holds, x, y)) = equality(entry, *e) else {
            continue;
        };
        let Some((byte, field)) = held(printer, (object, lookup.entry), x, y)
            .or_else(|| held(printer, (object, lookup.entry), y, x))
        else {
            continue;
        };
        if !holds {
            differs = true;
        } else if let Some(field) = field {
            equal.insert((byte, field));
        }
    }
    let ending = Ending::of(printer, path, (context.program, entry.role), on);
    let effect = Effect {
        ending,
        changed: !path.rewrites.is_empty(),
        operations: path
            .accesses
            .iter()
            .filter(|a| a.effect != model::Effect::Read)
            .map(|a| (a.operation, a.object.0))
            .collect(),
    };
    let mut words = verdict(printer, path, context.program, entry.role);
    if effect.changed {
        words.push_str(", the packet changed");
    }
    for (operation, object) in &effect.operations {
        let _ = write!(words, ", {operation} {}", printer.object(*object));
    }
    Some(Asked {
        port: on,
        found,
        equal,
        differs,
        passes: ending.passes(context.program.dialect) || effect.changed,
        effect,
        words,
    })
}

/// An equality of a guard, or its contrary.
fn equality(entry: &Entry, e: ExprId) -> Option<(bool, ExprId, ExprId)> {
    let a = &entry.arena;
    let contrary = a.negated(e);
    match *a.node(contrary.unwrap_or(e)) {
        Node::Cmp(Rel::Eq, x, y) => Some((contrary.is_none(), x, y)),
        _ => None,
    }
}

/// Where the first expression is bytes of the entry's value: the first of them, and the field that the
/// second is, if it is one.
fn held(
    printer: &Printer<'_>,
    (object, number): (usize, u32),
    x: ExprId,
    y: ExprId,
) -> Option<(u32, Option<Name>)> {
    let (o, n, bytes) = printer.memory_value(x)?;
    if (o, n) != (object, number) {
        return None;
    }
    let field = match printer.arena.node(y) {
        Node::Const(_) => None,
        _ => Some(printer.memory_field(y)?),
    };
    Some((bytes.start, field))
}

/// The accesses of a path that write the value.
fn writers(
    context: &Context<'_>,
    printer: &Printer<'_>,
    entry: &Entry,
    path: &Path,
    object: usize,
) -> Vec<Wrote> {
    let all = path.accesses.iter().filter(|a| {
        a.object.0 == object
            && a.effect == model::Effect::Write
            && !a.value.is_empty()
            && !matches!(a.outcome, Some("full" | "none free" | "beyond the last"))
    });
    all.map(|a| Wrote {
        port: port(context, entry, path),
        line: a.line.as_ref().map_or(String::new(), place),
        bytes: (a.offset.unwrap_or(0)..)
            .zip(&a.value)
            .map(|(at, e)| {
                let field = match *printer.arena.node(*e) {
                    Node::Byte { base, at } => printer.named(base, at),
                    _ => None,
                };
                (at, field.map(|f| (f.0, f.1)))
            })
            .collect(),
    })
    .collect()
}
