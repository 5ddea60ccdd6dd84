//! Keys of one object on two ports, of which one is the other with source and destination swapped, as in programs that
//! let the answers to flows pass. Keys are compared by identity (words/identity.rs); texts are only printed.

use std::collections::{BTreeMap, BTreeSet};

use millrace_model::exec::Access;
use millrace_model::expr::ExprId;
use millrace_model::model::{Entry, Model};

use super::{Relation, port, port_name};
use crate::Context;
use crate::layout::Layout;
use crate::words::{Ends, Keys};

/// Most alternatives of one key that are told apart.
const MOST: usize = 16;

/// A key in words, and its identity.
type Key = (String, u64);

/// A key as it is used on a port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct KeyUse {
    object: usize,
    port: u64,
    key: Key,
    /// its identity with source and destination swapped, if there is anything to swap
    swapped: Option<u64>,
}

/// One sentence for each object and pair of ports where a key of the one port is a key of the other swapped;
/// its details name the keys of which that cannot be said.
pub(super) fn find(context: &Context<'_>, model: &Model) -> Vec<Relation> {
    let mut uses: Vec<KeyUse> = Vec::new();
    for entry in &model.entries {
        for path in &entry.paths {
            let Some(on) = port(context, entry, path) else {
                continue;
            };
            let layout = Layout::of(&entry.arena, &path.guard, &context.memory);
            let keys = context.keys(path);
            let mut met = BTreeSet::new();
            let keyed = path.accesses.iter().filter(|a| !a.key.is_empty());
            for access in keyed.filter(|a| met.insert((a.object, &a.key))) {
                for used in key_uses(context, entry, (&layout, &keys), access, on) {
                    if !uses.contains(&used) {
                        uses.push(used);
                    }
                }
            }
        }
    }
    uses.sort();
    let mut pairs: BTreeMap<(usize, u64, u64), Vec<(Key, Key)>> = BTreeMap::new();
    for a in &uses {
        for b in &uses {
            if a.port < b.port
                && a.object == b.object
                && a.key.1 != b.key.1
                && b.swapped == Some(a.key.1)
            {
                let pair = (a.key.clone(), b.key.clone());
                pairs
                    .entry((a.object, a.port, b.port))
                    .or_default()
                    .push(pair);
            }
        }
    }
    let mut out = Vec::new();
    for ((object, p, q), pairs) in pairs {
        // Keys of the first port without their like on the other.
        let alone: Vec<String> = uses
            .iter()
            .filter(|u| u.object == object && u.port == p && u.swapped.is_some())
            .filter(|u| !pairs.iter().any(|k| k.0 == u.key))
            .map(|u| format!("not said of {}", u.key.0))
            .collect();
        let (p, q) = (port_name(context, p), port_name(context, q));
        let details = pairs.iter();
        out.push(Relation {
            kind: "swapped",
            object: context
                .program
                .objects
                .get(object)
                .map_or(String::new(), |o| o.name.clone()),
            sentence: format!(
                "the {q} path's key is the {p} path's key with source and destination swapped"
            ),
            details: details
                .map(|(a, b)| format!("{p} {}; {q} {}", a.0, b.0))
                .chain(alone)
                .collect(),
        });
    }
    out
}

/// The alternatives of a key, of which merged paths leave several.
fn key_uses(
    context: &Context<'_>,
    entry: &Entry,
    (layout, keys): (&Layout, &Keys),
    access: &Access,
    port: u64,
) -> Vec<KeyUse> {
    let printer = context.printer(&entry.arena, layout, keys);
    let ways = printer.ways(&access.key).filter(|w| w.len() <= MOST);
    let ways: Vec<(Layout, Vec<ExprId>)> = match ways {
        Some(ways) => {
            let each = ways.into_iter();
            each.map(|w| (printer.layout_of(&w), w.bytes)).collect()
        }
        None => vec![(layout.clone(), access.key.clone())],
    };
    let each = ways.iter().map(|(layout, key)| {
        let printer = context.printer(&entry.arena, layout, keys);
        let text = printer.key_parts(access.object.0, key).join(" ++ ");
        let kept = printer.identity(key, Ends::Kept);
        let swapped = printer.identity(key, Ends::Exchanged);
        KeyUse {
            object: access.object.0,
            port,
            key: (text, kept),
            swapped: (swapped != kept).then_some(swapped),
        }
    });
    each.collect()
}
