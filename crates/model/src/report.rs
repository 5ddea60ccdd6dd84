//! The model for people, and as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use millrace_object::program::{Dialect, ObjectId, Program, Role};
use serde::Serialize;

use crate::exec::{Target, Written};
use crate::expr::print::Printer;
use crate::expr::walk::cone;
use crate::expr::{ExprId, Node, Origin};
use crate::layout::Layout;
use crate::model::{Effect, Entry, Model, Outcome, Path, Took, Use, Verdict};
use crate::relation::{KeyUse, key_use, port, sentences};

/// A model in words: what `--json` prints, and what the text is made of.
#[derive(Serialize)]
pub struct Report {
    /// the program
    pub name: String,
    /// whether all entries' paths are all
    pub exhaustive: bool,
    /// what stood in the way, by entry
    pub bounded: Vec<String>,
    /// the objects
    pub objects: Vec<ObjectReport>,
    /// how keys on different ports are related
    pub relations: Vec<String>,
    /// the paths of all entries
    pub paths: Vec<PathReport>,
    /// what it took, by entry
    pub took: BTreeMap<String, Took>,
}

/// One object.
#[derive(Serialize)]
pub struct ObjectReport {
    /// its name
    pub name: String,
    /// its kind
    pub kind: &'static str,
    /// how it is used
    pub access: Use,
    /// from the proof of safety alone
    pub approximate: bool,
    /// the keys that paths use, each once
    pub keys: Vec<String>,
}

/// One access.
#[derive(Serialize)]
pub struct AccessReport {
    /// the object
    pub object: String,
    /// the helper, `load`, `store` or `atomic`
    pub operation: &'static str,
    /// what it does
    pub effect: Effect,
    /// the key's parts, in memory order
    pub key: Vec<String>,
    /// what is written
    pub value: Vec<String>,
    /// first byte of the value that is touched
    pub offset: Option<u32>,
    /// what came of it
    pub outcome: Option<&'static str>,
    /// FILE:LINE
    pub line: Option<String>,
}

/// Bytes of the packet that are written.
#[derive(Serialize)]
pub struct Rewrite {
    /// the field
    pub field: String,
    /// the value
    pub value: String,
}

/// One path.
#[derive(Serialize)]
pub struct PathReport {
    /// the entry's function
    pub entry: String,
    /// conditions, all of which hold
    pub guard: Vec<String>,
    /// accesses to state in order
    pub accesses: Vec<AccessReport>,
    /// packet writes
    pub rewrites: Vec<Rewrite>,
    /// the verdict
    pub verdict: String,
    /// whether anything that it does depends on the time
    pub time: bool,
    /// or on a random draw
    pub random: bool,
    /// the solver could not say whether it is possible
    pub undecided: bool,
}

/// Puts a model into words.
#[must_use]
pub fn report(model: &mut Model, program: &Program) -> Report {
    let mut paths = Vec::new();
    let mut uses: Vec<KeyUse> = Vec::new();
    let mut bounded = Vec::new();
    let mut took = BTreeMap::new();
    for entry in &mut model.entries {
        if let Outcome::Bounded { why } = &entry.outcome {
            bounded.push(format!("{}: {why}", entry.function));
        }
        took.insert(entry.function.clone(), entry.took);
        for path in entry.paths.clone() {
            let layout = Layout::of(&entry.arena, &path.guard);
            let on = port(entry, &path);
            for access in path.accesses.iter().filter(|a| !a.key.is_empty()) {
                let used = key_use(entry, &layout, access, on);
                if !uses.contains(&used) {
                    uses.push(used);
                }
            }
            paths.push(one(entry, &path, &layout, program));
        }
    }
    let object_name = |i: usize| {
        program
            .objects
            .get(i)
            .map_or(String::new(), |o| o.name.clone())
    };
    let objects = model
        .objects
        .iter()
        .filter_map(|o| {
            let declared = program.objects.get(o.id.0)?;
            let keys: BTreeSet<String> = uses
                .iter()
                .filter(|u| u.object == o.id.0)
                .map(|u| u.text.clone())
                .collect();
            Some(ObjectReport {
                name: declared.name.clone(),
                kind: declared.kind.name,
                access: o.usage,
                approximate: o.approximate,
                keys: keys.into_iter().collect(),
            })
        })
        .collect();
    Report {
        name: model.name.clone(),
        exhaustive: model.exhaustive(),
        bounded,
        objects,
        relations: sentences(&uses, &program.ports, &object_name),
        paths,
        took,
    }
}

fn one(entry: &Entry, path: &Path, layout: &Layout, program: &Program) -> PathReport {
    let printer = Printer {
        arena: &entry.arena,
        layout,
    };
    let all: Vec<ExprId> = path
        .guard
        .iter()
        .copied()
        .chain(path.rewrites.iter().map(|w| w.byte))
        .chain(
            path.accesses
                .iter()
                .flat_map(|a| a.key.iter().chain(&a.value).copied()),
        )
        .collect();
    let depends = |origin: Origin| {
        let in_it = |e: ExprId| matches!(entry.arena.node(e), Node::Sym(s) if entry.arena.symbol(*s).origin == origin);
        cone(&entry.arena, &all, |_| false).into_iter().any(in_it)
    };
    let expires = path.accesses.iter().any(|a| {
        program
            .objects
            .get(a.object.0)
            .is_some_and(|o| o.expire_after > 0 || o.window > 0)
    });
    PathReport {
        entry: entry.function.clone(),
        guard: path.guard.iter().map(|e| printer.text(*e)).collect(),
        accesses: path
            .accesses
            .iter()
            .map(|a| AccessReport {
                object: program
                    .objects
                    .get(a.object.0)
                    .map_or(String::new(), |o| o.name.clone()),
                operation: a.operation,
                effect: a.effect,
                key: printer.bytes(&a.key),
                value: printer.bytes(&a.value),
                offset: a.offset,
                outcome: a.outcome,
                line: a.line.as_ref().map(|l| {
                    let file = std::path::Path::new(&*l.file);
                    let name = file
                        .file_name()
                        .map_or_else(|| l.file.to_string(), |f| f.to_string_lossy().into_owned());
                    format!("{name}:{}", l.line)
                }),
            })
            .collect(),
        rewrites: rewrites(&printer, &path.rewrites),
        verdict: verdict(&printer, path, program, entry.role),
        time: depends(Origin::Time) || expires,
        random: depends(Origin::Random),
        undecided: path.undecided,
    }
}

/// Written bytes that follow each other, as fields.
fn rewrites(printer: &Printer<'_>, written: &[Written]) -> Vec<Rewrite> {
    let mut last: Vec<Written> = Vec::new();
    for w in written {
        last.retain(|o| (o.base, o.at) != (w.base, w.at));
        last.push(*w);
    }
    last.sort_by_key(|w| (w.base, w.at));
    let mut out = Vec::new();
    let mut i = 0;
    while let Some(first) = last.get(i) {
        let field = printer.layout.field(printer.arena, first.base, first.at);
        let most = field.as_ref().map_or(usize::MAX, |f| (f.2 - f.1) as usize);
        let mut n = 1;
        while n < most
            && last.get(i + n).is_some_and(|w| {
                w.base == first.base
                    && w.at == first.at + n as i64
                    && (field.is_some()
                        || printer.layout.field(printer.arena, w.base, w.at).is_none())
            })
        {
            n += 1;
        }
        let bytes: Vec<ExprId> = last.iter().skip(i).take(n).map(|w| w.byte).collect();
        let from = first
            .base
            .map_or(String::new(), |b| format!("{} + ", printer.text(b)));
        let name = match field {
            Some((name, 0, all)) if all as usize == n => name,
            Some((name, at, _)) => format!("{name}[{at}..{}]", at + n as i64),
            None => format!("pkt[{from}{}..{}]", first.at, first.at + n as i64),
        };
        out.push(Rewrite {
            field: name,
            value: printer.bytes(&bytes).join(" ++ "),
        });
        i += n;
    }
    out
}

fn verdict(printer: &Printer<'_>, path: &Path, program: &Program, role: Role) -> String {
    let e = match path.verdict {
        Verdict::Number(e) => e,
        Verdict::None => return "none".to_owned(),
        Verdict::GoesOn(array, index) => {
            let array = program.objects.get(array.0).map_or("", |o| &o.name);
            return format!("tail call to {array}[{}]", printer.text(index));
        }
    };
    if !matches!(role, Role::Xdp | Role::OnPacket) {
        return "none".to_owned();
    }
    let a = printer.arena;
    let Some(n) = a.constant(e) else {
        return forward(printer, e).unwrap_or_else(|| printer.text(e));
    };
    if program.dialect == Dialect::Xdp {
        let to = path.target.as_ref().map_or_else(String::new, |t| {
            let name = |o: &ObjectId| program.objects.get(o.0).map_or("", |o| &o.name);
            match t {
                Target::Interface(e) => format!(" to interface {}", printer.text(*e)),
                Target::Entry(o, key) => {
                    format!(" to {}[{}]", name(o), printer.bytes(key).join(" ++ "))
                }
                Target::All(o) => format!(" to all of {}", name(o)),
            }
        });
        return match n {
            0 => "XDP_ABORTED".to_owned(),
            1 => "XDP_DROP".to_owned(),
            2 => "XDP_PASS".to_owned(),
            3 => "XDP_TX".to_owned(),
            4 => format!("XDP_REDIRECT{to}"),
            other => format!("{other}, which is no verdict"),
        };
    }
    let low = n & 0xff_ffff;
    match n >> 24 {
        0 => {
            let reason = program.reasons.get(low as usize);
            format!("drop: {}", reason.map_or("dropped", |r| r))
        }
        1 => {
            let name = program.ports.get(low as usize);
            format!(
                "forward to {}",
                name.cloned().unwrap_or_else(|| low.to_string())
            )
        }
        2 => "flood".to_owned(),
        3 => "consume".to_owned(),
        4 => "pass to the host".to_owned(),
        _ => format!("{n:#x}, which is no verdict"),
    }
}

/// A forward to a port that is computed.
fn forward(printer: &Printer<'_>, e: ExprId) -> Option<String> {
    let Node::Concat(parts) = printer.arena.node(e) else {
        return None;
    };
    let (high, low) = parts.split_first()?;
    let is = printer.arena.width(*high) == 8 && printer.arena.constant(*high) == Some(1);
    let rest: Vec<String> = low.iter().map(|p| printer.text(*p)).collect();
    is.then(|| format!("forward to port {}", rest.join(" ++ ")))
}

/// The report for people.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    let n = report.paths.len();
    let all = if report.exhaustive {
        "all of them"
    } else {
        "not all, or not all possible"
    };
    let _ = writeln!(out, "{}: {n} paths, {all}", report.name);
    for why in &report.bounded {
        let _ = writeln!(out, "  not exhaustive: {why}");
        let _ = writeln!(
            out,
            "    objects are reported from the proof of safety, which saw every access"
        );
    }
    let _ = writeln!(out, "\nstate");
    if report.objects.is_empty() {
        let _ = writeln!(out, "  none");
    }
    for o in &report.objects {
        let usage = match o.access {
            Use::Unused => "unused",
            Use::ReadOnly => "read-only",
            Use::WrittenAtStart => "written at start",
            Use::Additive => "additions only",
            Use::ReadWrite => "read-write",
        };
        let most = if o.approximate { ", at most" } else { "" };
        let _ = writeln!(out, "  {} ({}): {usage}{most}", o.name, o.kind);
        for key in &o.keys {
            let _ = writeln!(out, "    key {key}");
        }
    }
    if !report.relations.is_empty() {
        let of = if report.exhaustive {
            ""
        } else {
            " on the paths that were followed"
        };
        let _ = writeln!(out, "\nrelations{of}");
        for r in &report.relations {
            let _ = writeln!(out, "  {r}");
        }
    }
    for (i, p) in report.paths.iter().enumerate() {
        let _ = writeln!(out, "\npath {} of {}: {}", i + 1, p.entry, p.verdict);
        for g in &p.guard {
            let _ = writeln!(out, "  if {g}");
        }
        for a in &p.accesses {
            let at = a
                .offset
                .map_or(String::new(), |o| format!(" byte {o} of the value"));
            let outcome = a.outcome.map_or(String::new(), |o| format!(": {o}"));
            let value = if a.value.is_empty() {
                String::new()
            } else {
                format!(" <- {}", a.value.join(" ++ "))
            };
            let key = if a.key.is_empty() {
                String::new()
            } else {
                format!(" [{}]", a.key.join(" ++ "))
            };
            let line = a
                .line
                .as_ref()
                .map_or(String::new(), |l| format!("  ({l})"));
            let _ = writeln!(
                out,
                "  {} {}{key}{at}{value}{outcome}{line}",
                a.operation, a.object
            );
        }
        for r in &p.rewrites {
            let _ = writeln!(out, "  {} := {}", r.field, r.value);
        }
        let notes: Vec<&str> = [
            (p.time, "depends on time"),
            (p.random, "depends on a random draw"),
            (p.undecided, "may be impossible: the solver could not say"),
        ]
        .into_iter()
        .filter_map(|(is, what)| is.then_some(what))
        .collect();
        if !notes.is_empty() {
            let _ = writeln!(out, "  {}", notes.join("; "));
        }
    }
    out
}
