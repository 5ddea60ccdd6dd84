//! The decisions as a graph in the DOT language of Graphviz. Names come from untrusted objects: labels are quoted
//! strings, in which quotes, backslashes and line ends are escaped.

use std::collections::HashMap;
use std::fmt::Write;

use millrace_object::markup::quoted;

use super::document::Report;
use super::text::{deeper, ending};
use super::tree::{Node, Then};
use super::verdict::passes;

/// Longest line of a label.
const WIDTH: usize = 100;
/// Most conditions at an edge.
const CONDITIONS: usize = 6;
/// Trees of more paths are drawn from left to right: their many ends, one beneath the other, take less room.
const WIDE: usize = 60;

/// Lines that are not too long.
fn label(lines: &[String]) -> String {
    let cut = |l: &String| {
        if l.chars().count() > WIDTH {
            let short: String = l.chars().take(WIDTH).collect();
            format!("{short} …")
        } else {
            l.clone()
        }
    };
    let all: Vec<String> = lines.iter().map(cut).collect();
    quoted(&all.join("\n"))
}

/// The conditions at an edge.
fn edge(conditions: &[String]) -> String {
    let mut shown: Vec<String> = conditions.iter().take(CONDITIONS).cloned().collect();
    if conditions.len() > CONDITIONS {
        shown.push(format!("… {} more", conditions.len() - CONDITIONS));
    }
    label(&shown)
}

struct Graph {
    out: String,
    next: usize,
    /// by tree and label
    labelled: HashMap<(usize, usize), usize>,
    ends: HashMap<String, usize>,
    /// edges to nodes that may not be drawn yet
    later: Vec<(usize, (usize, usize), String)>,
}

/// The graph.
#[must_use]
pub fn dot(report: &Report) -> String {
    let mut g = Graph {
        out: String::new(),
        next: 0,
        labelled: HashMap::new(),
        ends: HashMap::new(),
        later: Vec::new(),
    };
    let _ = writeln!(g.out, "digraph {} {{", quoted(&report.name));
    let direction = if report.paths.len() > WIDE {
        "LR"
    } else {
        "TB"
    };
    let _ = writeln!(
        g.out,
        "  rankdir={direction}; node [shape=box, fontname=\"monospace\", fontsize=10]; edge [fontname=\"monospace\", fontsize=9];"
    );
    for (i, t) in report.trees.iter().enumerate() {
        let root = g.fresh();
        let title = vec![t.entry.clone(), t.role.clone()];
        let _ = writeln!(g.out, "  n{root} [shape=oval, label={}];", label(&title));
        g.node(i, &t.root, root, &[]);
    }
    for (from, to, text) in std::mem::take(&mut g.later) {
        if let Some(to) = g.labelled.get(&to) {
            let _ = writeln!(g.out, "  n{from} -> n{to} [label={text}];");
        }
    }
    g.out.push_str("}\n");
    g.out
}

impl Graph {
    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn edge(&mut self, from: usize, to: usize, conditions: &[String]) {
        let text = edge(conditions);
        let _ = writeln!(self.out, "  n{from} -> n{to} [label={text}];");
    }

    /// Draws a node under the one `from`, reached under these conditions.
    fn node(&mut self, tree: usize, n: &Node, from: usize, conditions: &[String]) {
        let (mut from, mut reached) = (from, conditions.to_vec());
        if let Then::Same(to) = n.then {
            let text = edge(&reached);
            self.later.push((from, (tree, to), text));
            return;
        }
        let mut first = None;
        for a in &n.accesses {
            let id = self.fresh();
            let place = a.line.clone().unwrap_or_default();
            let hue = (0.55 + 0.381_966 * a.object as f64) % 1.0;
            let _ = writeln!(
                self.out,
                "  n{id} [style=\"filled,rounded\", fillcolor=\"{hue:.3} 0.25 1.0\", label={}, tooltip={}];",
                label(&[a.text.clone(), place.clone()]),
                quoted(&format!(
                    "{place}: {}",
                    a.source.clone().unwrap_or_default()
                ))
            );
            self.edge(from, id, &reached);
            first = first.or(Some(id));
            (from, reached) = (id, Vec::new());
        }
        if let Then::End(end) = &n.then {
            let mut lines: Vec<String> = end
                .rewrites
                .iter()
                .map(|r| format!("{} := {}", r.field, r.value))
                .collect();
            lines.push(ending(end));
            let text = label(&lines);
            let known = self.ends.get(&text).copied();
            let id = match known {
                Some(id) => id,
                None => {
                    let id = self.fresh();
                    // A program without a packet neither passes nor drops one.
                    let colour = match end.verdict.as_str() {
                        "none" => "white",
                        v if passes(v) => "palegreen",
                        _ => "mistyrose",
                    };
                    let _ = writeln!(
                        self.out,
                        "  n{id} [shape=oval, style=filled, fillcolor={colour}, label={text}];"
                    );
                    self.ends.insert(text, id);
                    id
                }
            };
            if let Some(label) = n.label {
                self.labelled.insert((tree, label), first.unwrap_or(id));
            }
            return self.edge(from, id, &reached);
        }
        let id = self.fresh();
        let shown = match n.then {
            Then::Deeper => format!("shape=plaintext, label={}", label(&[deeper(n)])),
            _ => "shape=diamond, width=0.25, height=0.25, label=\"\"".to_owned(),
        };
        let _ = writeln!(self.out, "  n{id} [{shown}];");
        self.edge(from, id, &reached);
        if let Some(label) = n.label {
            self.labelled.insert((tree, label), first.unwrap_or(id));
        }
        if let Then::Branches(all) = &n.then {
            for b in all {
                let otherwise = vec!["otherwise".to_owned()];
                let given = if b.conditions.is_empty() {
                    &otherwise
                } else {
                    &b.conditions
                };
                self.node(tree, &b.node, id, given);
            }
        }
    }
}
