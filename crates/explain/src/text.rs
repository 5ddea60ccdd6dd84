//! An explanation for people.

use std::fmt::Write;

use millrace_object::program::clean;

use crate::document::{Access, By, Explanation, Step, Value};

/// Select graphic rendition (ECMA-48): what is dim, bold, a decision, state, a drop, a packet that goes on.
const DIM: &str = "2";
const BOLD: &str = "1";
const DECISION: &str = "36";
const STATE: &str = "33";
const DROP: &str = "1;31";
const PASS: &str = "1;32";
/// Characters of a line of conditions.
const WIDTH: usize = 96;
/// Most values beside a condition.
const MOST: usize = 8;

struct Text {
    out: String,
    colours: bool,
}

impl Text {
    fn paint(&self, how: &str, text: &str) -> String {
        match self.colours && !text.is_empty() {
            true => format!("\x1b[{how}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{}", text.trim_end());
    }
}

/// Nanoseconds as people say them.
fn time(ns: u64) -> String {
    match ns {
        0..=999 => format!("{ns} ns"),
        1_000..=999_999 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..=999_999_999 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

fn by(by: &By) -> String {
    let at = by
        .line
        .as_ref()
        .map_or_else(String::new, |l| format!(" at {l}"));
    format!("packet {}{at}, {} before", by.packet, time(by.before_ns))
}

/// What of the values the condition does not already say.
fn values(condition: &str, all: &[Value]) -> String {
    let said = |v: &&Value| {
        // `a == 5` says it, and so does `a there`.
        !condition.split(" and ").any(|c| {
            c.starts_with(&format!("{} == ", v.name))
                || c == v.name
                || c.strip_prefix("not ") == Some(&v.name)
        })
    };
    let all: Vec<String> = (all.iter().filter(said))
        .take(MOST)
        .map(|v| format!("{} = {}", v.name, v.value))
        .collect();
    all.join(", ")
}

/// Conditions that all hold, in lines of a readable length.
fn wrapped(condition: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for c in condition.split(" and ") {
        match out.last_mut() {
            Some(line) if line.chars().count() + c.chars().count() < WIDTH => {
                line.push_str(" and ");
                line.push_str(c);
            }
            Some(line) => {
                line.push_str(" and");
                out.push(c.to_owned());
            }
            None => out.push(c.to_owned()),
        }
    }
    out
}

/// An access in one line.
#[must_use]
pub fn access(a: &Access) -> String {
    let mut out = match (&a.key, &a.part) {
        (Some(key), Some(part)) => format!("{} {}[{key}].{part}", a.operation, a.object),
        (Some(key), None) => format!("{} {}[{key}]", a.operation, a.object),
        (None, Some(part)) => format!("{} {}.{part}", a.operation, a.object),
        (None, None) => format!("{} {}", a.operation, a.object),
    };
    if let Some(written) = &a.written {
        let of = a.written_of.join(", ");
        let _ = match of.is_empty() || of == *written {
            true => write!(out, " <- {written}"),
            false => write!(out, " <- {written} ({of})"),
        };
    }
    match (&a.outcome, a.found) {
        (Some(outcome), _) => {
            let _ = write!(out, ": {outcome}");
        }
        (None, Some(true)) => out.push_str(": there"),
        (None, Some(false)) => out.push_str(": absent"),
        (None, None) => {}
    }
    if let Some(before) = a.before.as_ref().filter(|b| !b.is_empty()) {
        let _ = match a.operation.as_str() {
            "load" => write!(out, ": {before}"),
            _ => write!(out, ", was {before}"),
        };
    }
    out
}

/// What a step did, without its place.
#[must_use]
pub fn what(step: &Step) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(condition) = &step.condition {
        let values = values(condition, &step.values);
        let mut lines = wrapped(condition);
        match lines.last_mut() {
            Some(last) if !values.is_empty() && last.len() + values.len() < 2 * WIDTH => {
                *last = format!("{last}   [{values}]");
            }
            _ if !values.is_empty() => lines.push(format!("[{values}]")),
            _ => {}
        }
        out.extend(lines);
    }
    if let Some(a) = &step.access {
        out.push(access(a));
        let key = a.key_of.join(" ++ ");
        if !key.is_empty() && Some(&key) != a.key.as_ref() {
            out.push(format!("  the key is {key}"));
        }
        if let Some(of) = &a.by {
            out.push(format!("  so since {} ({})", by(of), of.headers));
        }
        if let Some(of) = a
            .refreshed
            .as_ref()
            .filter(|r| a.by.as_ref().is_none_or(|b| b.packet != r.packet))
        {
            out.push(format!("  last refreshed by {}", by(of)));
        }
    }
    if let Some(store) = &step.store {
        let (at, bytes) = (store.offset, &store.bytes);
        out.push(format!("writes {bytes} at byte {at} of the packet"));
    }
    out.into_iter().map(|t| clean(&t)).collect()
}

/// The lines, without colours, as comments of a capture.
#[must_use]
pub fn comments(e: &Explanation) -> Vec<String> {
    let mut out = vec![format!("{}: {}", e.name, e.verdict)];
    for step in &e.steps {
        let place = match (&step.file, step.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            _ => "no line".to_owned(),
        };
        // Tools cut long comments short.
        for what in what(step) {
            out.push(format!("{place}: {}", what.trim()));
        }
    }
    for r in &e.rewrites {
        out.push(format!("{}: {} -> {}", r.field, r.from, r.to));
    }
    if let Some(nearest) = &e.nearest {
        for d in &nearest.differs {
            out.push(format!("{} if {}", nearest.verdict, d.condition));
        }
    }
    out
}

/// The explanation for people; with `colours` for a terminal.
#[must_use]
pub fn text(e: &Explanation, colours: bool) -> String {
    let mut t = Text {
        out: String::new(),
        colours,
    };
    let head = format!(
        "packet {} at {}: {}",
        e.packet.number, e.packet.port, e.packet.headers
    );
    t.line(&head);
    let mut element = None;
    let mut place: Option<(Option<&String>, Option<u32>)> = None;
    let chain = e.elements.len() > 1;
    for step in &e.steps {
        if chain && element != Some(&step.element) {
            element = Some(&step.element);
            place = None;
            let name = t.paint(BOLD, &step.element);
            t.line("");
            t.line(&name);
        }
        let here = (step.file.as_ref(), step.line);
        if place != Some(here) || step.file.is_none() {
            place = Some(here);
            let at = match here {
                (Some(file), Some(line)) => format!("{file}:{line}"),
                _ => "(no line)".to_owned(),
            };
            let source = step.source.as_deref().unwrap_or_default();
            let how = if step.library { DIM } else { BOLD };
            let line = format!("  {:<16} {}", t.paint(DIM, &at), t.paint(how, source));
            t.line(&line);
        }
        let how = if step.access.is_some() {
            STATE
        } else {
            DECISION
        };
        for (i, what) in what(step).iter().enumerate() {
            let how = if i > 0 && step.access.is_some() {
                DIM
            } else {
                how
            };
            let line = format!("      {}", t.paint(how, what));
            t.line(&line);
        }
    }
    if !e.rewrites.is_empty() {
        t.line("");
        t.line("  rewrites");
        for r in &e.rewrites {
            let of =
                r.of.as_ref()
                    .map_or_else(String::new, |of| format!("   [{of}]"));
            t.line(&format!("      {}: {} -> {}{of}", r.field, r.from, r.to));
        }
    }
    t.line("");
    let how = match e.verdict.starts_with("dropped") || e.verdict.starts_with("aborted") {
        true => DROP,
        false => PASS,
    };
    let at = e.elements.last().and_then(|l| l.line.as_ref());
    let at = at.map_or_else(String::new, |l| format!(" ({l})"));
    let verdict = format!("  {}{}", t.paint(how, &e.verdict), t.paint(DIM, &at));
    t.line(&verdict);
    if let Some(nearest) = &e.nearest {
        let verdict = format!("  It would have been \"{}\" if", nearest.verdict);
        t.line(&verdict);
        for d in &nearest.differs {
            let values = values(&d.condition, &d.values);
            let values = match values.is_empty() {
                true => String::new(),
                false => format!("   [{values}]"),
            };
            t.line(&format!("      {}{values}", d.condition));
        }
        if nearest.incomplete {
            t.line("      (of the paths that the model has, which are not all)");
        }
    }
    for note in &e.notes {
        let note = format!("  note: {note}");
        let note = t.paint(DIM, &note);
        t.line(&note);
    }
    t.out
}
