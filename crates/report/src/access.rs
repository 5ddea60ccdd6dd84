//! Accesses to state in words: one by one for a path, and by source line for an object.

use std::collections::{BTreeMap, BTreeSet};

use millrace_model::exec::Access;
use millrace_model::expr::ExprId;
use millrace_model::model::{Effect, Entry, Path};
use millrace_object::program::Line as Source;

use super::document::{AccessReport, Summary};
use super::tree::Line;
use super::{Context, clean, state_condition};
use crate::layout::Layout;
use crate::names::member;
use crate::relation::port;
use crate::words::{Keys, Order, Printer};

/// Beyond this many characters only what a value depends on is shown.
const LONGEST: usize = 160;

/// A line of the source as FILE:LINE, without the file's folder.
#[must_use]
pub fn place(line: &Source) -> String {
    line.place()
}

fn source(a: &Access) -> Option<String> {
    let text = a.line.as_ref().map(|l| clean(&l.text));
    text.filter(|t| !t.is_empty())
}

/// The entry that an access is about, with its key.
fn entry(printer: &Printer<'_>, a: &Access) -> String {
    let object = printer.object(a.object.0);
    if a.key.is_empty() {
        return object;
    }
    format!("{object}[{}]", printer.short_key(a.object.0, &a.key))
}

/// The part of the value that a load or store touches.
fn part(printer: &Printer<'_>, a: &Access) -> Option<String> {
    let offset = a.offset?;
    let parts = printer.names.objects.get(a.object.0)?;
    if a.chosen.is_some() {
        // The members' names are the elements'.
        let to = offset.saturating_add(a.bytes);
        return Some(format!("[one of {offset}..{to}]"));
    }
    Some(match member(&parts.value, offset) {
        Some(m) => m.name.clone(),
        None if a.value.is_empty() && offset == 0 && parts.value_bytes <= 8 => "value".to_owned(),
        None if a.value.is_empty() => format!("[{offset}..]"),
        None if offset == 0 && a.value.len() as u32 == parts.value_bytes => "value".to_owned(),
        None => format!("[{offset}..{}]", offset as usize + a.value.len()),
    })
}

/// All parts of it, by their names.
fn parts(printer: &Printer<'_>, a: &Access) -> Vec<String> {
    let (Some(from), Some(names)) = (a.offset, printer.names.objects.get(a.object.0)) else {
        return Vec::new();
    };
    let to = from.saturating_add(a.bytes);
    let within = names
        .value
        .iter()
        .filter(|m| m.from < to && from < m.from.saturating_add(m.bytes));
    let all: Vec<String> = within.map(|m| m.name.clone()).collect();
    match part(printer, a) {
        Some(one) if all.is_empty() => vec![one],
        _ => all,
    }
}

/// The written value, member by member where the declaration names them.
fn written(printer: &Printer<'_>, a: &Access) -> Vec<String> {
    let Some(parts) = printer.names.objects.get(a.object.0) else {
        return Vec::new();
    };
    // What all elements hold, of which one is another than before.
    if a.chosen.is_some() {
        return vec!["a number".to_owned()];
    }
    let from = a.offset.unwrap_or(0);
    let mut out = Vec::new();
    let mut at = 0;
    while at < a.value.len() {
        let place = from + at as u32;
        let m = member(&parts.value, place);
        let end = m.map_or(a.value.len(), |m| {
            ((m.from + m.bytes).saturating_sub(from) as usize).min(a.value.len())
        });
        let bytes = a.value.get(at..end.max(at + 1)).unwrap_or(&[]);
        let text = match m {
            Some(m) => printer.member(m, bytes),
            // A store is of one number.
            None if a.offset.is_some() => printer.whole(bytes),
            None => printer.bytes(bytes, Order::Memory).join(" ++ "),
        };
        let text = if text.chars().count() > LONGEST {
            printer.elided(bytes)
        } else {
            text
        };
        out.push(match m {
            Some(m) => format!("{} = {text}", m.name),
            None => text,
        });
        at = end.max(at + 1);
    }
    out
}

fn words(printer: &Printer<'_>, a: &Access, agree: bool) -> String {
    let entry = entry(printer, a);
    let outcome = match a.outcome {
        Some(o) if agree => format!(": {o}"),
        _ => String::new(),
    };
    let value = written(printer, a).join(", ");
    let parts = printer.names.objects.get(a.object.0);
    let global = parts.is_some_and(|p| p.global && !p.value.is_empty());
    match (a.operation, part(printer, a)) {
        ("load", Some(part)) if global => format!("read {part}"),
        ("store", Some(_)) if global => format!("write {}", value.replacen(" = ", " := ", 1)),
        ("load", Some(part)) => format!("read {entry}.{part}").replace(".[", "["),
        ("store", Some(part)) => {
            let value = value.strip_prefix(&format!("{part} = ")).unwrap_or(&value);
            format!("write {entry}.{part} := {value}").replace(".[", "[")
        }
        ("atomic", Some(part)) => format!("atomic {entry}.{part} := {value}").replace(".[", "["),
        (op, _) if value.is_empty() => format!("{op} {entry}{outcome}"),
        (op, _) => format!("{op} {entry} <- {value}{outcome}"),
    }
}

/// Accesses one after another; reads of one entry in one line, those of settings left out.
pub(super) fn lines(
    printer: &Printer<'_>,
    context: &Context<'_>,
    accesses: &[Access],
    agree: &[bool],
) -> Vec<Line> {
    let mut out: Vec<Line> = Vec::new();
    let mut last: Option<(String, Vec<String>)> = None;
    for (i, a) in accesses.iter().enumerate() {
        let object = context.program.objects.get(a.object.0);
        if object.is_some_and(|o| o.read_only) && a.effect == Effect::Read {
            continue;
        }
        let line = a.line.as_ref().map(place);
        if a.operation == "load"
            && let Some(part) = part(printer, a)
        {
            let of = entry(printer, a);
            if let (Some((entry, parts)), Some(l)) = (&mut last, out.last_mut())
                && *entry == of
                && l.line == line
            {
                if !parts.contains(&part) {
                    l.text.push_str(&format!(", .{part}").replace(".[", "["));
                    parts.push(part);
                }
                continue;
            }
            last = Some((of, vec![part]));
        } else {
            last = None;
        }
        out.push(Line {
            object: a.object.0,
            text: {
                let text = words(printer, a, agree.get(i).copied().unwrap_or(true));
                if a.repeated {
                    format!("in each turn, perhaps: {text}")
                } else {
                    text
                }
            },
            line,
            source: source(a),
        });
    }
    out
}

/// One access for machines.
pub(super) fn one(printer: &Printer<'_>, a: &Access) -> AccessReport {
    AccessReport {
        object: printer.object(a.object.0),
        operation: a.operation,
        effect: a.effect,
        key: if a.key.is_empty() {
            Vec::new()
        } else {
            printer.key_parts(a.object.0, &a.key)
        },
        value: match a.chosen {
            Some(_) => Vec::new(),
            None => printer.bytes(&a.value, Order::Memory),
        },
        offset: a.offset,
        outcome: a.outcome,
        repeated: a.repeated,
        line: a.line.as_ref().map(place),
    }
}

/// Facts about the accesses of one line to one object.
struct Gathered {
    summary: Summary,
    when: Option<BTreeSet<ExprId>>,
    texts: BTreeMap<ExprId, BTreeSet<String>>,
    ports: BTreeSet<Option<u64>>,
    /// the values without the keys of the entries that they are read from
    bare: Vec<String>,
    last: usize,
}

/// All accesses to all objects, by object, line and operation.
pub(super) struct Summaries(BTreeMap<(usize, usize, u32, String, &'static str), Gathered>);

impl Summaries {
    pub(super) fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds those of a path.
    pub(super) fn add(
        &mut self,
        context: &Context<'_>,
        (number, entry): (usize, &Entry),
        (index, path): (usize, &Path),
    ) {
        let layout = Layout::of(&entry.arena, &path.guard, &context.memory);
        let keys = context.keys(path);
        let printer = context.printer(&entry.arena, &layout, &keys);
        let nothing = Keys::new();
        let bare = context.printer(&entry.arena, &layout, &nothing);
        let short: BTreeSet<ExprId> = path
            .guard
            .iter()
            .copied()
            .filter(|e| state_condition(&entry.arena, *e))
            .collect();
        // A path's accesses stand under the same conditions.
        let mut said: BTreeMap<ExprId, String> = BTreeMap::new();
        for a in &path.accesses {
            let line = a.line.as_ref();
            let at = (
                a.object.0,
                number,
                line.map_or(0, |l| l.line),
                line.map_or(String::new(), place),
                a.operation,
            );
            let g = self.0.entry(at).or_insert_with(|| Gathered {
                summary: Summary {
                    line: line.map(place),
                    source: source(a),
                    operation: a.operation,
                    effect: a.effect,
                    parts: Vec::new(),
                    keys: Vec::new(),
                    values: Vec::new(),
                    sources: Vec::new(),
                    outcomes: Vec::new(),
                    ports: Vec::new(),
                    when: Vec::new(),
                    paths: 0,
                    repeated: false,
                },
                when: None,
                texts: BTreeMap::new(),
                ports: BTreeSet::new(),
                bare: Vec::new(),
                last: usize::MAX,
            });
            let s = &mut g.summary;
            let once = |list: &mut Vec<String>, text: String| {
                if !list.contains(&text) {
                    list.push(text);
                }
            };
            s.effect = s.effect.max(a.effect);
            s.repeated |= a.repeated;
            for part in parts(&printer, a) {
                once(&mut s.parts, part);
            }
            if !a.key.is_empty() {
                once(&mut s.keys, printer.short_key(a.object.0, &a.key));
            }
            if !a.value.is_empty() {
                // Of a store the part is told already.
                let value = |printer: &Printer<'_>| {
                    let all = written(printer, a);
                    match (a.operation, all.as_slice(), s.parts.as_slice()) {
                        ("store", [one], [part]) => one
                            .strip_prefix(part.as_str())
                            .and_then(|v| v.strip_prefix(" = "))
                            .unwrap_or(one)
                            .to_owned(),
                        _ => all.join(", "),
                    }
                };
                let (named, without) = (value(&printer), value(&bare));
                once(&mut s.values, named);
                once(&mut g.bare, without);
            }
            for e in a.key.iter().chain(&a.value) {
                printer
                    .sources(&[*e])
                    .into_iter()
                    .for_each(|t| once(&mut s.sources, t));
            }
            if let Some(o) = a.outcome
                && !s.outcomes.contains(&o)
            {
                s.outcomes.push(o);
            }
            g.ports.insert(port(context, entry, path));
            if g.last != index {
                g.last = index;
                s.paths += 1;
            }
            let when = match g.when.take() {
                None => short.clone(),
                Some(before) => before.intersection(&short).copied().collect(),
            };
            g.texts.retain(|e, _| when.contains(e));
            for e in &when {
                let texts = g.texts.entry(*e).or_default();
                if texts.len() < 2 {
                    let text = said.entry(*e);
                    let text = text.or_insert_with(|| printer.condition(*e, true));
                    texts.insert(text.clone());
                }
                if texts.len() == 2 {
                    *texts = BTreeSet::from([bare.condition(*e, true)]);
                }
            }
            g.when = Some(when);
        }
    }

    /// Those of an object.
    pub(super) fn of(&self, context: &Context<'_>, object: usize) -> Vec<Summary> {
        let all = self.0.iter().filter(|(at, _)| at.0 == object);
        all.map(|(_, g)| {
            let mut s = g.summary.clone();
            let name = |p: u64| {
                let names = &context.program.ports;
                names
                    .get(p as usize)
                    .cloned()
                    .unwrap_or_else(|| p.to_string())
            };
            if !g.ports.contains(&None) {
                s.ports = g.ports.iter().flatten().map(|p| name(*p)).collect();
            }
            let when = g.when.iter().flatten();
            s.when = when
                .filter_map(|e| g.texts.get(e)?.first().cloned())
                .filter(|t| !t.starts_with("port "))
                .collect();
            s.sources.sort();
            // The same of several entries is said once.
            if g.bare.len() < s.values.len() {
                s.values.clone_from(&g.bare);
            }
            s
        })
        .collect()
    }
}
