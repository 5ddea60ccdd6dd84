//! The report for people, on a terminal or in a file: first the accesses to state, then the decisions.

use std::fmt::Write;

use millrace_model::model::{Effect, Use};

use super::clean;
use super::document::{AtMost, ObjectReport, Report, Summary};
use super::tree::{Branch, End, Line, Node, Then, Tree};

/// Colours of objects on a terminal, in the order of their declaration (ECMA-48, SGR).
const COLOURS: &[u8] = &[36, 33, 35, 32, 34, 31, 96, 93, 95, 92, 94, 91];
/// Where source lines begin.
const COLUMN: usize = 88;
/// Most keys and values of one access that are shown.
const MOST: usize = 4;

/// How an object is used, in words.
#[must_use]
pub fn usage(o: &ObjectReport) -> &'static str {
    match o.access {
        Use::Unused => "not used",
        Use::ReadOnly => "read-only",
        Use::WrittenAtStart => "written at start only",
        Use::Additive => "additions only",
        Use::ReadWrite => "read and written",
    }
}

/// Effect of an access, in a word.
#[must_use]
pub fn effect(e: Effect) -> &'static str {
    match e {
        Effect::Read => "reads",
        Effect::Refresh => "refreshes",
        Effect::Add => "adds",
        Effect::Write => "writes",
    }
}

/// Nanoseconds as people say them.
fn time(ns: u64) -> String {
    match ns {
        ns if ns % 1_000_000_000 == 0 => format!("{} s", ns / 1_000_000_000),
        ns if ns % 1_000_000 == 0 => format!("{} ms", ns / 1_000_000),
        ns => format!("{ns} ns"),
    }
}

/// An object's kind and size.
#[must_use]
pub fn declared(o: &ObjectReport) -> String {
    let mut out = o.kind.name.to_owned();
    if !o.kind.is_global() {
        let _ = write!(out, ", {} entries", o.capacity);
    }
    if o.expire_after > 0 {
        let _ = write!(out, ", expire after {}", time(o.expire_after));
    }
    out
}

/// Effect of a line on an object, without its place.
#[must_use]
pub fn summary(s: &Summary) -> String {
    let mut out = s.operation.to_owned();
    let list = |all: &[String], between: &str| {
        let mut shown: Vec<String> = all.iter().take(MOST).cloned().collect();
        if all.len() > MOST {
            shown.push(format!("… {} more", all.len() - MOST));
        }
        shown.join(between)
    };
    if !s.parts.is_empty() {
        let _ = write!(out, " {}", s.parts.join(", "));
    }
    if !s.keys.is_empty() {
        let _ = write!(out, " [{}]", list(&s.keys, " | "));
    }
    if !s.values.is_empty() {
        let _ = write!(out, " <- {}", list(&s.values, " | "));
    }
    if !s.outcomes.is_empty() {
        let _ = write!(out, ": {}", s.outcomes.join(" or "));
    }
    if s.repeated {
        out.push_str("; in any turn of a loop");
    }
    if !s.ports.is_empty() {
        let _ = write!(out, "; on {}", s.ports.join(", "));
    }
    if !s.when.is_empty() {
        let _ = write!(out, "; when {}", list(&s.when, ", "));
    }
    out
}

/// Upper bound of the effect of a line on an object, without its place.
#[must_use]
pub fn at_most(a: &AtMost) -> String {
    let bytes = match a.to.saturating_sub(a.from) {
        1 => format!("byte {}", a.from),
        _ => format!("bytes {} to {}", a.from, a.to.saturating_sub(1)),
    };
    if a.parts.is_empty() {
        return format!("{} {bytes}", a.operation);
    }
    let mut parts: Vec<&str> = a.parts.iter().take(MOST).map(String::as_str).collect();
    if a.parts.len() > MOST {
        parts.push("…");
    }
    format!("{} {} ({bytes})", a.operation, parts.join(", "))
}

/// The first line.
#[must_use]
pub fn heading(report: &Report) -> String {
    let all = if report.exhaustive {
        "all of them"
    } else if report.covers {
        "every execution takes one of them"
    } else {
        "not all, or not all possible"
    };
    format!(
        "{}: {} paths, {all}",
        clean(&report.name),
        report.paths.len()
    )
}

struct Text {
    out: String,
    colours: bool,
}

/// The report for people; with `colours` for a terminal.
#[must_use]
pub fn text(report: &Report, colours: bool) -> String {
    let mut t = Text {
        out: String::new(),
        colours,
    };
    let _ = writeln!(t.out, "{}", heading(report));
    for why in &report.covering {
        let _ = writeln!(t.out, "  not exhaustive: {}", clean(why));
    }
    for why in &report.bounded {
        let _ = writeln!(t.out, "  not exhaustive: {}", clean(why));
        let _ = writeln!(
            t.out,
            "    objects are reported from the proof of safety, which saw every access"
        );
    }
    let _ = writeln!(t.out, "\nstate");
    if report.objects.is_empty() {
        let _ = writeln!(t.out, "  none");
    }
    for (i, o) in report.objects.iter().enumerate() {
        t.object(i, o);
    }
    if !report.relations.is_empty() {
        let of = if report.covers {
            ""
        } else {
            " on the paths that were followed"
        };
        let _ = writeln!(t.out, "\nrelations{of}");
        for r in &report.relations {
            let _ = writeln!(t.out, "  {}: {}", clean(&r.object), r.sentence);
            for d in &r.details {
                let _ = writeln!(t.out, "    {d}");
            }
        }
    }
    for tree in &report.trees {
        t.tree(tree);
    }
    t.out
}

impl Text {
    fn coloured(&self, object: usize, text: &str) -> String {
        let colour = COLOURS.get(object % COLOURS.len());
        match colour {
            Some(c) if self.colours => format!("\x1b[{c}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }

    fn object(&mut self, i: usize, o: &ObjectReport) {
        let most = if o.approximate { ", at most" } else { "" };
        let name = self.coloured(i, &clean(&o.name));
        let _ = writeln!(self.out, "  {name} ({}): {}{most}", declared(o), usage(o));
        for key in &o.keys {
            let letter = o.letters.iter().find(|l| l.1 == key);
            let letter = letter.map_or(String::new(), |l| format!("{} = ", l.0));
            let _ = writeln!(self.out, "    key {letter}{key}");
        }
        let width = o
            .accesses
            .iter()
            .filter_map(|s| s.line.as_ref())
            .map(String::len);
        let width = width.max().unwrap_or(0);
        if o.approximate && !o.at_most.is_empty() {
            let _ = writeln!(self.out, "    at most, on any path:");
            let lines = o.at_most.iter().filter_map(|a| a.line.as_ref());
            let width = lines.map(|l| l.chars().count()).max().unwrap_or(0);
            for a in &o.at_most {
                let line = a.line.clone().unwrap_or_default();
                let (effect, what) = (effect(a.effect), at_most(a));
                let others = o.at_most.iter().flat_map(|b| &b.entries);
                let all = others.clone().all(|e| a.entries.contains(e));
                let what = if all {
                    what
                } else {
                    format!("{what}; in {}", clean(&a.entries.join(", ")))
                };
                let _ = writeln!(self.out, "    {line:width$}  {effect:9}  {what}");
            }
            if !o.accesses.is_empty() {
                let _ = writeln!(self.out, "    on the paths that were followed:");
            }
        }
        for s in &o.accesses {
            let line = s.line.clone().unwrap_or_default();
            let _ = writeln!(
                self.out,
                "    {line:width$}  {:9}  {}",
                effect(s.effect),
                summary(s)
            );
        }
    }

    fn tree(&mut self, tree: &Tree) {
        let paths = if tree.paths == 1 {
            "1 path".to_owned()
        } else {
            format!("{} paths", tree.paths)
        };
        let _ = writeln!(
            self.out,
            "\n{} ({}): {paths}",
            clean(&tree.entry),
            tree.role
        );
        self.node(&tree.root, 1);
    }

    fn put(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", 2 * depth);
    }

    fn access(&mut self, depth: usize, l: &Line) {
        let shown = self.coloured(l.object, &l.text);
        let line = l.line.clone().unwrap_or_default();
        let used = 2 * depth + l.text.chars().count();
        let gap = COLUMN.saturating_sub(used).max(2);
        let text = format!("{shown}{:gap$}{line}", "");
        self.put(depth, text.trim_end());
    }

    fn end(&mut self, depth: usize, end: &End) {
        for r in &end.rewrites {
            self.put(depth, &format!("{} := {}", r.field, r.value));
        }
        let text = ending(end);
        self.put(depth, &text);
    }

    fn node(&mut self, node: &Node, depth: usize) {
        // Ways that end at once are told first, in one line each, and the last way goes on beneath them.
        let mut node = node;
        loop {
            if let Some(label) = node.label {
                self.put(depth, &format!("({label})"));
            }
            for a in &node.accesses {
                self.access(depth, a);
            }
            let all = match &node.then {
                Then::End(end) => return self.end(depth, end),
                Then::Same(label) => {
                    return self.put(depth, &format!("=> goes on as at ({label})"));
                }
                Then::Deeper => return self.put(depth, &deeper(node)),
                Then::Branches(all) => all,
            };
            let (short, long): (Vec<&Branch>, Vec<&Branch>) =
                all.iter().partition(|b| at_once(b).is_some());
            let last = match long.as_slice() {
                [one] if !short.is_empty() && all.len() == 2 => Some(*one),
                _ => None,
            };
            if let Some(b) = last {
                let end = short.first().and_then(|s| at_once(s)).unwrap_or_default();
                let others = short.first().map_or(&[][..], |s| &s.conditions);
                if others.is_empty() {
                    self.put(
                        depth,
                        &format!("unless {} {end}", b.conditions.join(" and ")),
                    );
                } else {
                    self.put(depth, &format!("if {} {end}", others.join(" and ")));
                    // That the other way's one condition does not hold goes without saying.
                    let told = usize::from(b.contrary && others.len() == 1);
                    let rest = b.conditions.get(told..).unwrap_or(&[]);
                    if !rest.is_empty() {
                        self.put(depth, &format!("else, with {}", rest.join(" and ")));
                    }
                }
                node = &b.node;
                continue;
            }
            let (rest, short): (Vec<&Branch>, Vec<&Branch>) =
                short.into_iter().partition(|b| b.conditions.is_empty());
            let at_end = |t: &mut Self, all: Vec<&Branch>| {
                for b in all {
                    let end = at_once(b).unwrap_or_default();
                    t.put(depth, &format!("{} {end}", when(b)));
                }
            };
            at_end(self, short);
            for b in long {
                self.put(depth, &when(b));
                self.node(&b.node, depth + 1);
            }
            at_end(self, rest);
            return;
        }
    }
}

/// Under which conditions a branch is taken. Of several that are only told by what they depend on, each text once.
#[must_use]
pub fn when(b: &Branch) -> String {
    let mut shown: Vec<&str> = Vec::new();
    for condition in &b.conditions {
        if !(condition.starts_with("f(") && shown.contains(&condition.as_str())) {
            shown.push(condition);
        }
    }
    match shown.as_slice() {
        [] => "otherwise".to_owned(),
        all => format!("if {}", all.join(" and ")),
    }
}

/// How a path ends, in one line.
#[must_use]
pub fn ending(end: &End) -> String {
    let notes = if end.notes.is_empty() {
        String::new()
    } else {
        format!("  ({})", end.notes.join(", "))
    };
    format!("=> {}{notes}", end.verdict)
}

/// Placeholder for decisions that are not shown.
#[must_use]
pub fn deeper(node: &Node) -> String {
    format!(
        "=> {} paths, too deep to be shown here; --json lists them",
        node.paths
    )
}

/// The end of a way that does nothing else.
pub(super) fn at_once(b: &Branch) -> Option<String> {
    if !b.node.accesses.is_empty() || b.node.label.is_some() {
        return None;
    }
    match &b.node.then {
        Then::End(end) if end.rewrites.is_empty() => Some(ending(end)),
        Then::Same(label) => Some(format!("=> goes on as at ({label})")),
        _ => None,
    }
}
