//! What a reload changes: elements, connections, and what is set in the state of those that stay.

use std::sync::Arc;

use millrace_place::Held;
use millrace_topology::{Rearranged, Topology};

use super::edits::gone;
use super::{Difference, Edits, Keeps};
use crate::answer::Result;
use crate::answer::chain::Seen;
use crate::chain::{self, Kept};
use crate::edit::Change;
use crate::elements::Element;
use crate::exposed::Exposed;
use crate::reload::{How, Planned, Wanted, edits, renumbered};
use crate::trouble::Trouble;

pub(super) fn planned_edits(seen: &Seen, planned: &Planned) -> Result<Keeps> {
    let old = seen.list.iter().find(|e| e.name == planned.name);
    let before = old.and_then(|e| e.exposed.clone());
    let (now, kept) = match &planned.how {
        How::Stays => (before, None),
        How::New { made, .. } => {
            let now = made.as_ref().and_then(|made| made.exposed.clone());
            let kept = before.zip(now.clone());
            let kept = kept.map(|(before, now)| (chain::kept(&before, &now), before));
            (now, kept)
        }
    };
    let named = |(kept, before): &(Kept, Arc<Exposed>)| {
        let name = |(old, _): &(usize, usize)| before.info(*old).map(|o| o.name.clone());
        let names = kept.pairs.iter().map(name);
        names.map(|n| n.unwrap_or_default()).collect::<Vec<_>>()
    };
    let names = kept.as_ref().map(named).unwrap_or_default();
    let edits = match now {
        None => None,
        Some(exposed) => {
            // A new one that keeps nothing has its entries from its start.
            let whole = matches!(planned.how, How::New { .. }) && kept.is_none();
            let changes = match (&kept, whole) {
                (_, true) => Ok(Vec::new()),
                (Some((_, old)), _) => {
                    let before = renumbered(&planned.before, old, &exposed);
                    edits(&exposed, &before, &planned.entries)
                }
                (None, _) => edits(&exposed, &planned.before, &planned.entries),
            };
            let mut changes = changes.map_err(|t| Trouble {
                what: format!("{}: {}", planned.name, t.what),
                ..t
            })?;
            if !changes.is_empty() {
                changes.extend(made(planned, &exposed)?);
            }
            Some(Edits {
                id: old.map_or(0, |e| e.id),
                name: planned.name.clone(),
                exposed,
                params: Arc::new(planned.params.clone()),
                changes: Arc::new(changes),
            })
        }
    };
    Ok(Keeps {
        edits,
        kept: kept.map(|(kept, _)| kept),
        names,
    })
}

/// What `ON_START` makes of the entries, in objects that nothing else writes.
pub(super) fn made(planned: &Planned, exposed: &Exposed) -> Result<Vec<Change>> {
    let each = planned.made.iter().map(|(object, content)| {
        if exposed.share(*object).held != Held::Copied {
            let name = exposed.info(*object).map_or("", |o| o.name.as_str());
            let what = format!(
                "{}: {name} is made by ON_START of entries that have changed, and is not a copy on each worker",
                planned.name
            );
            return Err(Trouble::new("refused", what).help("restart the run"));
        }
        Ok(Change::Load {
            object: *object,
            content: content.clone(),
            time: planned.time,
        })
    });
    each.collect()
}

/// What is to be done with the chain.
pub(super) fn difference(seen: &Seen, wanted: &Wanted) -> Result<Difference> {
    let ports = seen.topology.entries().len();
    let topology = match &wanted.topology {
        Some(topology) => topology.clone(),
        None => Topology::alone(ports),
    };
    if topology.entries().len() != ports {
        let now = topology.entries().len();
        return Err(Trouble::new(
            "refused",
            format!("the chain has {now} ports, and {ports} in the run: they cannot change while it runs"),
        )
        .help("restart the run, or connect the elements so that as many ports are left"));
    }
    let place = |name: &str| seen.list.iter().position(|e| e.name == name);
    let (mut added, mut replaced, mut was) = (Vec::new(), Vec::new(), Vec::new());
    for planned in &wanted.elements {
        let old = place(&planned.name);
        match (&planned.how, old) {
            (How::Stays, Some(at)) => was.push(Some(at)),
            (How::Stays, None) => return Err(gone(&planned.name)),
            (How::New { why, .. }, old) => {
                let list = match old {
                    Some(_) => &mut replaced,
                    None => &mut added,
                };
                list.push((planned.name.clone(), why.clone()));
                was.push(None);
            }
        }
    }
    let named = |e: &&Element| !wanted.elements.iter().any(|p| p.name == e.name);
    let removed: Vec<_> = seen
        .list
        .iter()
        .filter(named)
        .map(|e| e.name.clone())
        .collect();
    let order: Vec<_> = wanted.elements.iter().map(|p| place(&p.name)).collect();
    let same = order.iter().enumerate().all(|(at, was)| *was == Some(at));
    let connected = added.is_empty() && removed.is_empty() && !(same && topology == seen.topology);
    Ok(Difference {
        arranged: Rearranged { topology, was },
        added,
        replaced,
        removed,
        connected,
    })
}

/// Changes of a chain in a few words.
pub(super) fn told(difference: &Difference) -> String {
    let names = |list: &[(String, String)]| {
        let names: Vec<_> = list.iter().map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    };
    let mut parts = Vec::new();
    if !difference.added.is_empty() {
        parts.push(format!("new {}", names(&difference.added)));
    }
    if !difference.replaced.is_empty() {
        parts.push(format!("changed {}", names(&difference.replaced)));
    }
    if !difference.removed.is_empty() {
        parts.push(format!("without {}", difference.removed.join(", ")));
    }
    if difference.connected {
        parts.push("connected otherwise".to_owned());
    }
    parts.join("; ")
}
