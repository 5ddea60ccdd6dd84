//! Relations between accesses to one object on different paths, as sentences: one file a relation.

mod stored;
mod swapped;

use millrace_model::known::Of;
use millrace_model::model::{Entry, Model, Path};
use serde::Serialize;

use crate::Context;

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

type Find = fn(&Context<'_>, &Model) -> Vec<Relation>;

/// Finders of relations.
const RELATIONS: &[Find] = &[swapped::find, stored::find];

/// All that hold on the paths that were followed.
pub(crate) fn all(context: &Context<'_>, model: &Model) -> Vec<Relation> {
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
    let name = context.names.ports.get(port as usize).cloned();
    name.unwrap_or_else(|| format!("port {port}"))
}

/// The port that a path's guard fixes.
#[must_use]
pub(crate) fn port(context: &Context<'_>, entry: &Entry, path: &Path) -> Option<u64> {
    let ports = context.program.ports.len();
    context.memory.settle(&entry.arena);
    let known = context.memory.known.all(&entry.arena, &path.guard);
    let values = known.get(&Of::Port)?.values();
    let mut there = values.filter(|p| usize::from(*p) < ports.max(1));
    let first = there.next()?;
    there.next().is_none().then_some(u64::from(first))
}
