//! A history in words.

use std::fmt::Write;

use crate::History;

/// The text: fields, bits, bytes, and the line that each field is for.
#[must_use]
pub fn text(history: &History) -> String {
    let mut out = String::new();
    for refusal in &history.refusals {
        let place = refusal
            .line
            .as_ref()
            .map_or_else(String::new, |l| format!("{}:{}: ", l.file, l.line));
        let object = refusal
            .object
            .as_ref()
            .map_or_else(String::new, |o| format!("{o}: "));
        let _ = writeln!(out, "not replicated: {place}{object}{}", refusal.reason);
        if let Some(line) = &refusal.line {
            let _ = writeln!(out, "    {}", line.text);
        }
    }
    if !history.refusals.is_empty() {
        return out;
    }
    if !history.touches() {
        return "No packet touches replicated state: there are no rows.\n".into();
    }
    let _ = writeln!(out, "{} bits, {} bytes a row", history.bits, history.bytes);
    let head = [
        (
            "time, ns",
            history.time_bits,
            "modulo 2^40; the rest is the carrier's",
        ),
        (
            "number",
            history.number_bits,
            "of the packet, for random draws",
        ),
        (
            "site",
            history.selector_bits(),
            "which first access to state",
        ),
    ];
    for (name, bits, what) in head.into_iter().filter(|(_, bits, _)| *bits > 0) {
        let _ = writeln!(out, "{bits:>5}  {name:<44}  {what}");
    }
    let several = history.fields.iter().any(|f| f.site > 0);
    let mut site = usize::MAX;
    for field in &history.fields {
        if several && field.site != site {
            site = field.site;
            let _ = writeln!(out, "site {site}, {}", field.function);
        }
        let line = field.line.as_ref().map_or_else(String::new, |l| {
            format!("{}:{}: {}", l.file, l.line, l.text)
        });
        let _ = writeln!(out, "{:>5}  {:<44}  {line}", field.bits, field.name);
    }
    out
}
