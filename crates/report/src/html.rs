//! The report as one self-contained page, without scripts and network access. Names come from untrusted objects, so all
//! text is escaped, and the page's own policy allows nothing but its style.

use std::fmt::Write;

use millrace_object::markup::escaped;

use super::document::{ObjectReport, Report};
use super::text::{
    at_most, at_once, declared, deeper, effect, ending, heading, summary, usage, when,
};
use super::tree::{Branch, Line, Node, Then, Tree};

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8886; --dim: #777; }
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 100em; padding: 0 1.5em; }
h1 { font-size: 1.5em; margin-bottom: 0; } h2 { font-size: 1.15em; margin-top: 2em; }
code, .tree, td, .key { font: 13px/1.55 ui-monospace, monospace; }
table { border-collapse: collapse; margin: .4em 0 .8em; } td { padding: .1em 1em .1em 0; vertical-align: top; }
.tree details, .tree .leaf { border-left: 1px solid var(--line); padding-left: 1.1em; margin-left: .35em; }
summary { cursor: pointer; } summary:hover { background: #8882; }
.if { color: var(--dim); } .dim { color: var(--dim); }
.a { display: block; } .a b, .o { color: oklch(.58 .15 var(--h)); font-weight: 600; }
.a { border-left: 3px solid oklch(.7 .13 var(--h)); padding-left: .5em; margin: .1em 0; }
.at { color: var(--dim); margin-left: 1.5em; }
.end { font-weight: 600; } .drop { color: #b3402f; } .go { color: #2e7d4f; }
.w { display: block; color: #8a6d00; } .why { color: #b3402f; }
a { color: inherit; } :target { background: #fd06; }
@media (prefers-color-scheme: dark) { .w { color: #d9b84a; } .go { color: #6fc38f; } .drop, .why { color: #ef8474; } }
";

/// The hue of an object: the golden angle apart, so that neighbours differ.
fn hue(object: usize) -> f64 {
    (200.0 + 137.508 * object as f64) % 360.0
}

/// The page.
#[must_use]
pub fn html(report: &Report) -> String {
    let mut out = String::new();
    let title = escaped(&report.name);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}: the model</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p>{}</p>\n",
        escaped(&heading(report))
    );
    for why in &report.bounded {
        let _ = writeln!(
            out,
            "<p class=\"why\">Not exhaustive: {}. Objects are reported from the proof of safety, which saw \
             every access.</p>",
            escaped(why)
        );
    }
    out.push_str("<h2>State</h2>\n");
    if report.objects.is_empty() {
        out.push_str("<p>None.</p>\n");
    }
    for (i, o) in report.objects.iter().enumerate() {
        object(&mut out, i, o);
    }
    if !report.relations.is_empty() {
        let of = if report.covers {
            ""
        } else {
            " on the paths that were followed"
        };
        let _ = writeln!(out, "<h2>Relations{of}</h2>");
        for r in &report.relations {
            let _ = writeln!(
                out,
                "<details><summary><span class=\"o\">{}</span>: {}</summary>",
                escaped(&r.object),
                escaped(&r.sentence)
            );
            for d in &r.details {
                let _ = writeln!(out, "<div class=\"key\">{}</div>", escaped(d));
            }
            out.push_str("</details>\n");
        }
    }
    for (i, t) in report.trees.iter().enumerate() {
        tree(&mut out, i, t);
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn object(out: &mut String, i: usize, o: &ObjectReport) {
    let most = if o.approximate { ", at most" } else { "" };
    let _ = writeln!(
        out,
        "<section style=\"--h:{:.0}\"><div><span class=\"o\">{}</span> <span class=\"dim\">({})</span>: {}{most}</div>",
        hue(i),
        escaped(&o.name),
        escaped(&declared(o)),
        usage(o)
    );
    for key in &o.keys {
        let letter = o.letters.iter().find(|l| l.1 == key);
        let letter = letter.map_or(String::new(), |l| format!("{} = ", l.0));
        let _ = writeln!(
            out,
            "<div class=\"key dim\">key {}</div>",
            escaped(&format!("{letter}{key}"))
        );
    }
    if !o.at_most.is_empty() {
        out.push_str("<div class=\"dim\">at most, on any path:</div>\n<table>\n");
        for a in &o.at_most {
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
                escaped(a.line.as_deref().unwrap_or("")),
                effect(a.effect),
                escaped(&at_most(a))
            );
        }
        out.push_str("</table>\n");
        if !o.accesses.is_empty() {
            out.push_str("<div class=\"dim\">on the paths that were followed:</div>\n");
        }
    }
    if !o.accesses.is_empty() {
        out.push_str("<table>\n");
    }
    for s in &o.accesses {
        let _ = writeln!(
            out,
            "<tr title=\"{}\"><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(s.source.as_deref().unwrap_or("")),
            escaped(s.line.as_deref().unwrap_or("")),
            effect(s.effect),
            escaped(&summary(s))
        );
    }
    if !o.accesses.is_empty() {
        out.push_str("</table>\n");
    }
    out.push_str("</section>\n");
}

fn tree(out: &mut String, number: usize, t: &Tree) {
    let _ = writeln!(
        out,
        "<h2>{} <span class=\"dim\">({}, {} paths)</span></h2>\n<div class=\"tree\">",
        escaped(&t.entry),
        escaped(&t.role),
        t.paths
    );
    node(out, number, &t.root);
    out.push_str("</div>\n");
}

fn access(out: &mut String, l: &Line) {
    let place = l.line.clone().unwrap_or_default();
    let hover = match &l.source {
        Some(text) => format!("{place}: {text}"),
        None => place.clone(),
    };
    let _ = writeln!(
        out,
        "<span class=\"a\" style=\"--h:{:.0}\" title=\"{}\"><b>{}</b><span class=\"at\">{}</span></span>",
        hue(l.object),
        escaped(&hover),
        escaped(&l.text),
        escaped(&place)
    );
}

fn node(out: &mut String, number: usize, n: &Node) {
    if let Some(label) = n.label {
        let _ = writeln!(
            out,
            "<div class=\"dim\" id=\"n{number}-{label}\">({label})</div>"
        );
    }
    for a in &n.accesses {
        access(out, a);
    }
    match &n.then {
        Then::End(end) => {
            for r in &end.rewrites {
                let text = format!("{} := {}", r.field, r.value);
                let _ = writeln!(out, "<span class=\"w\">{}</span>", escaped(&text));
            }
            let drop = !super::verdict::passes(&end.verdict);
            let _ = writeln!(
                out,
                "<div class=\"end {}\">{}</div>",
                if drop { "drop" } else { "go" },
                escaped(&ending(end))
            );
        }
        Then::Same(label) => {
            let _ = writeln!(
                out,
                "<div class=\"end\">=&gt; goes on as at <a href=\"#n{number}-{label}\">({label})</a></div>"
            );
        }
        Then::Deeper => {
            let _ = writeln!(out, "<div class=\"end\">{}</div>", escaped(&deeper(n)));
        }
        Then::Branches(all) => all.iter().for_each(|b| branch(out, number, b)),
    }
}

fn branch(out: &mut String, number: usize, b: &Branch) {
    let text = when(b);
    let paths = match b.node.paths {
        1 => String::new(),
        n => format!(" <span class=\"dim\">({n} paths)</span>"),
    };
    // A way that ends at once is one line.
    if let (Some(end), Then::End(last)) = (at_once(b), &b.node.then) {
        let drop = !super::verdict::passes(&last.verdict);
        let _ = writeln!(
            out,
            "<div class=\"leaf\"><span class=\"if\">{}</span> <span class=\"end {}\">{}</span></div>",
            escaped(&text),
            if drop { "drop" } else { "go" },
            escaped(&end)
        );
        return;
    }
    let _ = writeln!(
        out,
        "<details open><summary><span class=\"if\">{}</span>{paths}</summary>",
        escaped(&text)
    );
    node(out, number, &b.node);
    out.push_str("</details>\n");
}
