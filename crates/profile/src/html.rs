//! A profile as one page: the author's source with what conflicts take in the margin.

use std::collections::BTreeMap;
use std::fmt::Write;

use millrace_object::markup::escaped;

use crate::declared::Sources;
use crate::document::Report;
use crate::text::{named, text};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em}\
pre{font:13px/1.45 ui-monospace,monospace;overflow-x:auto}table{border-collapse:collapse;width:100%}\
td{padding:0 .6em;vertical-align:top;white-space:pre-wrap;font:13px/1.45 ui-monospace,monospace}\
td.n,td.s{text-align:right;color:#777;white-space:nowrap}tr.hot td{background:#fde9e7}tr.warm td{background:#fff6e0}\
td.w{color:#a33;font-family:system-ui,sans-serif}@media(prefers-color-scheme:dark){body{background:#161616;color:#ddd}\
tr.hot td{background:#4a2320}tr.warm td{background:#3d3418}td.w{color:#f99}}";

/// Escaped text that has lines and tabs, which stay.
fn lines_escaped(text: &str) -> String {
    let tabs = |line: &str| line.split('\t').map(escaped).collect::<Vec<_>>().join("\t");
    text.split('\n').map(tabs).collect::<Vec<_>>().join("\n")
}

/// The page. It needs nothing beside itself.
#[must_use]
pub fn page(report: &Report, sources: &Sources) -> String {
    let mut at: BTreeMap<&str, (f64, Vec<String>)> = BTreeMap::new();
    for cause in &report.causes {
        let line = at.entry(&cause.line).or_default();
        line.1.push(cause.cause.clone());
    }
    for abort in &report.aborts {
        at.entry(&abort.line).or_default().0 += abort.share;
    }
    let declared: Vec<(String, String)> = (report.recipes.iter())
        .filter(|r| r.line > 0 && r.object.is_some())
        .map(|r| {
            (
                format!("{}:{}", r.file, r.line),
                format!("{} (predicted {:.2})", named(r), r.gain),
            )
        })
        .collect();
    for (line, recipe) in &declared {
        at.entry(line).or_default().1.push(recipe.clone());
    }
    let mut out = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{0}: profile</title><style>{STYLE}</style></head><body><h1>{0}</h1><pre>{1}</pre>",
        escaped(&report.name),
        lines_escaped(&text(report))
    );
    for (file, lines) in sources.files() {
        let any = at
            .keys()
            .any(|place| place.rsplit_once(':').is_some_and(|p| p.0 == file));
        if !any {
            continue;
        }
        let _ = write!(out, "<h2>{}</h2><table>", escaped(file));
        for (index, line) in lines.iter().enumerate() {
            let place = format!("{file}:{}", index + 1);
            let (share, words) = at.get(place.as_str()).cloned().unwrap_or_default();
            let class = match (share, words.is_empty()) {
                (share, _) if share >= 0.25 => " class=\"hot\"",
                (_, true) => "",
                _ => " class=\"warm\"",
            };
            let share = if share > 0.0 {
                format!("{:.0} %", share * 100.0)
            } else {
                String::new()
            };
            let _ = write!(
                out,
                "<tr{class}><td class=\"s\">{share}</td><td class=\"n\">{}</td><td>{}</td><td class=\"w\">{}</td></tr>",
                index + 1,
                lines_escaped(line),
                escaped(&words.join("; "))
            );
        }
        out.push_str("</table>");
    }
    out.push_str("</body></html>\n");
    out
}
