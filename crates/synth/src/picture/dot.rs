//! Pictures in the DOT language of Graphviz. Labels are quoted strings, in which quotes, backslashes and line ends are escaped.

use std::fmt::Write;

use millrace_object::markup::quoted;

use super::{Kind, Picture};

/// Both pictures as one graph, a cluster each.
#[must_use]
pub fn dot(pictures: &[Picture], note: &str) -> String {
    let mut out = String::from(
        "digraph chain {\n\trankdir=LR;\n\tnode [fontname=sans, fontsize=10];\n\tedge [fontname=sans, fontsize=9];\n",
    );
    let _ = writeln!(out, "\tlabel={};\n\tlabeljust=l;", quoted(note));
    for (n, picture) in pictures.iter().enumerate() {
        let _ = writeln!(
            out,
            "\tsubgraph cluster_{n} {{\n\t\tlabel={};",
            quoted(&picture.title)
        );
        for (id, shape) in picture.shapes.iter().enumerate() {
            let style = match shape.kind {
                Kind::Device => "shape=box, style=filled, fillcolor=\"#dddddd\"",
                Kind::Read => "shape=box, style=rounded, color=\"#2e7d32\"",
                Kind::Write => "shape=box, style=dashed, color=\"#1565c0\"",
                Kind::Drop => "shape=box, color=\"#c62828\"",
                Kind::Other => "shape=box, color=\"#888888\"",
            };
            let label = quoted(&shape.label.join("\n"));
            let _ = writeln!(out, "\t\tb{n}_{id} [label={label}, {style}];");
        }
        for (from, to, label) in &picture.edges {
            let label = match label.is_empty() {
                true => String::new(),
                false => format!(" [label={}]", quoted(label)),
            };
            let _ = writeln!(out, "\t\tb{n}_{from} -> b{n}_{to}{label};");
        }
        out.push_str("\t}\n");
    }
    out.push_str("}\n");
    out
}
