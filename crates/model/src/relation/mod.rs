//! What holds between accesses to one object on different paths, as sentences: one file a relation.

mod stored;
mod swapped;

use serde::Serialize;

use crate::expr::{Bin, Node, Rel};
use crate::model::{Entry, Model, Path};
use crate::report::Context;

/// A relation that was found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Relation {
    /// which of those that are looked for
    pub kind: &'static str,
    /// the object that it is about
    pub object: String,
    /// the relation
    pub sentence: String,
    /// what it was seen in
    pub details: Vec<String>,
}

type Find = fn(&Context<'_>, &mut Model) -> Vec<Relation>;

/// What is looked for.
const RELATIONS: &[Find] = &[swapped::find, stored::find];

/// All that hold on the paths that were followed.
pub(crate) fn all(context: &Context<'_>, model: &mut Model) -> Vec<Relation> {
    let mut out: Vec<Relation> = RELATIONS
        .iter()
        .flat_map(|find| find(context, model))
        .collect();
    out.sort();
    out.dedup();
    out
}

/// The name of a port.
fn port_name(context: &Context<'_>, port: u64) -> String {
    let name = context.program.ports.get(port as usize).cloned();
    name.unwrap_or_else(|| format!("port {port}"))
}

/// The port that a path's guard fixes.
#[must_use]
pub fn port(entry: &Entry, path: &Path) -> Option<u64> {
    let a = &entry.arena;
    let mut low = None;
    let is_port = |e| matches!(a.node(e), Node::Sym(s) if a.symbol(*s).name == "port");
    for e in &path.guard {
        match *a.node(*e) {
            Node::Cmp(Rel::Eq, x, y) if is_port(x) => return a.constant(y),
            // Of two ports, the one that is not the other.
            Node::Bin(Bin::Xor, x, y) => {
                let inner = if a.constant(x) == Some(1) { y } else { x };
                if let Node::Cmp(Rel::Eq, p, c) = *a.node(inner)
                    && is_port(p)
                    && let Some(c) = a.constant(c)
                    && c < 2
                {
                    low = Some(1 - c);
                }
            }
            _ => {}
        }
    }
    low
}
