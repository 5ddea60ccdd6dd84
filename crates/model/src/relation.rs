//! How the keys of one object on different ports are related: what a program that answers flows shows.

use std::collections::BTreeMap;

use crate::exec::Access;
use crate::expr::print::Printer;
use crate::expr::walk::{cone, rename};
use crate::expr::{ExprId, Node, Rel};
use crate::layout::Layout;
use crate::model::{Entry, Path};

/// A key as it is used on a port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct KeyUse {
    /// the object's index
    pub object: usize,
    /// the port, if the path's guard fixes it
    pub port: Option<u64>,
    /// the key as a person reads it
    pub text: String,
    /// the same with source and destination swapped, if there is anything to swap
    pub swapped: Option<String>,
}

/// The port that a path's guard fixes.
#[must_use]
pub fn port(entry: &Entry, path: &Path) -> Option<u64> {
    let a = &entry.arena;
    let is_port = |e: ExprId| matches!(a.node(e), Node::Sym(s) if a.symbol(*s).name == "port");
    let mut low = None;
    for e in &path.guard {
        match *a.node(*e) {
            Node::Cmp(Rel::Eq, x, y) if is_port(x) => return a.constant(y),
            // Of two ports, the one that is not the other.
            Node::Bin(crate::expr::Bin::Xor, x, y) => {
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

/// The key of an access as text, and with source and destination swapped.
#[must_use]
pub fn key_use(entry: &mut Entry, layout: &Layout, access: &Access, port: Option<u64>) -> KeyUse {
    let mut changed = false;
    let mut swapped = Vec::new();
    for e in &access.key {
        // Where each byte goes is looked up before the arena changes.
        let mut moves = BTreeMap::new();
        for id in cone(&entry.arena, &[*e], |_| false) {
            if let Node::Byte { base, at } = *entry.arena.node(id)
                && let Some(to) = layout.swapped(&entry.arena, base, at)
            {
                moves.insert((base, at), to);
            }
        }
        let new = rename(&mut entry.arena, *e, &|base, at| {
            moves.get(&(base, at)).copied()
        });
        changed |= new != *e;
        swapped.push(new);
    }
    let printer = Printer {
        arena: &entry.arena,
        layout,
    };
    KeyUse {
        object: access.object.0,
        port,
        text: printer.bytes(&access.key).join(" ++ "),
        swapped: changed.then(|| printer.bytes(&swapped).join(" ++ ")),
    }
}

/// Pairs of keys of one object on two ports of which one is the other swapped, as sentences.
#[must_use]
pub fn sentences(
    uses: &[KeyUse],
    ports: &[String],
    objects: &dyn Fn(usize) -> String,
) -> Vec<String> {
    let name = |p: u64| {
        ports
            .get(p as usize)
            .cloned()
            .unwrap_or_else(|| format!("port {p}"))
    };
    let mut out = Vec::new();
    for a in uses {
        for b in uses {
            let (Some(p), Some(q)) = (a.port, b.port) else {
                continue;
            };
            if p >= q
                || a.object != b.object
                || b.swapped.as_ref() != Some(&a.text)
                || a.text == b.text
            {
                continue;
            }
            out.push((
                format!(
                    "{}: the {} path's key is the {} path's key with source and destination swapped",
                    objects(a.object),
                    name(q),
                    name(p)
                ),
                a.text.clone(),
                b.text.clone(),
            ));
        }
    }
    out.sort();
    out.dedup();
    out.into_iter()
        .map(|(s, a, b)| format!("{s}\n      {a}\n      {b}"))
        .collect()
}
