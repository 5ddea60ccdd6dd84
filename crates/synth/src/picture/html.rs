//! Pictures as a page with drawings, which needs nothing but a browser. Names come from configurations: all text is escaped.

use std::collections::BTreeMap;
use std::fmt::Write;

use millrace_object::markup::escaped;

use super::{Kind, Picture};
use crate::operations::Cost;

/// Pixels of a character, of a line, between boxes and between layers.
const CHARACTER: usize = 7;
const LINE: usize = 15;
const BETWEEN: usize = 14;
const APART: usize = 90;

const STYLE: &str = "body { font: 14px sans-serif; margin: 2em; color: #222 }
table { border-collapse: collapse; margin: 1em 0 } td, th { border: 1px solid #bbb; padding: .3em .7em; text-align: right }
td:first-child, th:first-child { text-align: left }
svg text { font: 11px sans-serif } .edge { fill: none; stroke: #666 } .word { fill: #555 }
rect { fill: #fff; stroke: #888 } .device { fill: #ddd } .read { stroke: #2e7d32; stroke-width: 2 }
.write { stroke: #1565c0; stroke-width: 2; stroke-dasharray: 5 3 } .drop { stroke: #c62828 }
.scroll { overflow-x: auto }";

/// The page: both pictures, and what packets take.
#[must_use]
pub fn html(name: &str, pictures: &[Picture], costs: &[Cost]) -> String {
    let mut out = String::new();
    out.push_str("<p>Green: reads. Blue, dashed: writes. Red: drops.</p>\n<h2>Operations a packet</h2>\n<table><tr><th>packets</th><th>elements</th><th>reads</th><th>writes</th><th>checksums</th><th>lookups</th></tr>\n");
    for cost in costs {
        let (b, a) = (cost.before, cost.after);
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{} → {}</td><td>{} → {}</td><td>{} → {}</td><td>{} → {}</td></tr>",
            escaped(&cost.whose()),
            cost.elements,
            b.reads,
            a.reads,
            b.writes,
            a.writes,
            b.checksums,
            a.checksums,
            b.lookups,
            a.lookups
        );
    }
    out.push_str("</table>\n");
    page(name, &out, pictures)
}

/// A page of pictures, with this markup above them.
#[must_use]
pub fn page(name: &str, above: &str, pictures: &[Picture]) -> String {
    let name = escaped(name);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{name}</title>\n<style>{STYLE}</style></head><body>\n<h1>{name}</h1>\n{above}"
    );
    for picture in pictures {
        let _ = writeln!(out, "<h2>{}</h2>", escaped(&picture.title));
        drawing(picture, &mut out);
    }
    out.push_str("</body></html>\n");
    out
}

/// Left, top, width and height of a box.
type Place = (usize, usize, usize, usize);

/// Boxes in columns by layer; the width and height of all.
fn places(picture: &Picture) -> (Vec<Place>, usize, usize) {
    let mut columns: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (id, shape) in picture.shapes.iter().enumerate() {
        columns.entry(shape.layer).or_default().push(id);
    }
    let mut places = vec![(0, 0, 0, 0); picture.shapes.len()];
    let (mut x, mut height) = (10, 0);
    for ids in columns.values() {
        let mut widest = 0;
        let mut y = 10;
        for id in ids {
            let Some((shape, place)) = picture.shapes.get(*id).zip(places.get_mut(*id)) else {
                continue;
            };
            let longest = shape.label.iter().map(|l| l.chars().count()).max();
            let wide = longest.unwrap_or(0) * CHARACTER + 16;
            let high = shape.label.len() * LINE + 10;
            *place = (x, y, wide, high);
            widest = widest.max(wide);
            y += high + BETWEEN;
        }
        // Labels of edges stand between this layer and the next.
        let words = picture.edges.iter().filter(|e| ids.contains(&e.0));
        let words = words.map(|e| e.2.chars().count()).max().unwrap_or(0);
        x += widest + APART.max(words * 6 + 30);
        height = height.max(y);
    }
    (places, x, height)
}

fn drawing(picture: &Picture, out: &mut String) {
    let (places, width, height) = places(picture);
    let _ = writeln!(
        out,
        "<div class=\"scroll\"><svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">"
    );
    for (from, to, label) in &picture.edges {
        let (Some(a), Some(b)) = (places.get(*from), places.get(*to)) else {
            continue;
        };
        let (x1, y1) = (a.0 + a.2, a.1 + a.3 / 2);
        let (x2, y2) = (b.0, b.1 + b.3 / 2);
        let bend = 40;
        let _ = writeln!(
            out,
            "<path class=\"edge\" d=\"M{x1} {y1} C{} {y1} {} {y2} {x2} {y2}\"/>",
            x1 + bend,
            x2.saturating_sub(bend)
        );
        if !label.is_empty() {
            let _ = writeln!(
                out,
                "<text class=\"word\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                x2.saturating_sub(6),
                y2.saturating_sub(5),
                escaped(label)
            );
        }
    }
    for (shape, (x, y, wide, high)) in picture.shapes.iter().zip(&places) {
        let class = match shape.kind {
            Kind::Device => "device",
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Drop => "drop",
            Kind::Other => "other",
        };
        let round = if shape.kind == Kind::Read { 8 } else { 0 };
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" rx=\"{round}\"/>"
        );
        for (n, line) in shape.label.iter().enumerate() {
            let _ = writeln!(
                out,
                "<text x=\"{}\" y=\"{}\">{}</text>",
                x + 8,
                y + 16 + n * LINE,
                escaped(line)
            );
        }
    }
    out.push_str("</svg></div>\n");
}
