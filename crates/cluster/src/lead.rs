//! The leader's next table.

use crate::balance;
use crate::store::{Guard, Member, View};
use crate::table::{Node, NodeId, Table};

/// Nodes that a table lists at most, gone ones counted.
pub const MAX_NODES: usize = 1024;

/// Nodes declared dead in one commit at most: etcd refuses transactions of more than 128 comparisons.
const MAX_DEAD: usize = 100;

/// A change that the leader wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// the table after it
    pub table: Table,
    /// what it relies on; the leader's key is not in it yet
    pub guard: Guard,
}

/// The table after the one in `view`; none where nothing is to be changed. `may_take`: nodes without a lease may be declared dead. A node of the list
/// without a lease keeps its buckets until then.
#[must_use]
pub fn next(view: &View, buckets: u32, may_take: bool) -> Option<Change> {
    let old = view.table.as_ref().map(|(table, _)| table);
    let mut table = old.cloned().unwrap_or_else(|| Table::empty(buckets));
    let mut guard = Guard::default();
    for member in &view.members {
        admit(&mut table, member, view);
    }
    let gone = |node: &Node| node.alive && !view.lives(node);
    for node in table.nodes.iter_mut().filter(|n| gone(n)).take(MAX_DEAD) {
        if may_take {
            node.alive = false;
            let at = view.stands_at(&node.name);
            guard.unclaimed.push((node.name.clone(), at));
        }
    }
    inherit(&mut table, old);
    let usable = usable(&table);
    let has = |id: Option<NodeId>| id.filter(|id| usable.binary_search(id).is_ok());
    if !balance::balanced(&table.wanted, &usable) {
        let now: Vec<_> = table
            .owners
            .iter()
            .zip(&table.wanted)
            .map(|(owner, wanted)| has(*owner).or_else(|| has(*wanted)))
            .collect();
        table.wanted = balance::assign(&now, &usable);
    }
    // A dead node gives nothing: its buckets are with their new owners at once, without state where nobody has a copy. A drained one hands over.
    for at in 0..table.owners.len() {
        let owner = table.owners.get(at).copied().flatten();
        let alive = owner.and_then(|id| table.node(id)).is_some_and(|n| n.alive);
        if !alive
            && let (Some(owner), Some(wanted)) = (table.owners.get_mut(at), table.wanted.get(at))
        {
            *owner = *wanted;
        }
        let same = |id: NodeId| {
            let old = old.filter(|t| t.owners.get(at) == Some(&Some(id)));
            let life = |t: &Table| t.node(id).map(|n| n.life);
            old.is_some_and(|t| life(t) == life(&table))
        };
        if !table.owner(at as u32).is_some_and(same)
            && let Some(given) = table.given.get_mut(at)
        {
            *given = 0;
            let inherited = table.inherited.get(at).copied().flatten();
            let inherited = inherited.filter(|from| lost(old, &table, at, *from));
            if let Some(at) = table.inherited.get_mut(at) {
                *at = inherited;
            }
        }
    }
    let keepers: Vec<NodeId> = usable
        .iter()
        .copied()
        .filter(|id| table.node(*id).is_some_and(|n| n.copies))
        .collect();
    let copied = table.owners.iter().map(|owner| {
        let owner = owner.and_then(|id| Some((id, table.node(id)?)));
        owner.filter(|(_, n)| n.alive && n.copies).map(|(id, _)| id)
    });
    let copied: Vec<_> = copied.collect();
    table.standbys = balance::standbys(&table.standbys, &copied, &keepers);
    if old == Some(&table) {
        return None;
    }
    table.version += 1;
    Some(Change { table, guard })
}

/// Whether what a bucket's owner inherits is of this change: node `from`, in that life, had the bucket under the old table.
fn lost(old: Option<&Table>, new: &Table, at: usize, from: (NodeId, u64)) -> bool {
    let owner = old.and_then(|t| t.owner(at as u32));
    let life = |t: &Table| owner.and_then(|id| t.node(id)).map(|n| n.life);
    let gone = owner
        .and_then(|id| new.node(id))
        .is_none_or(|n| !n.alive || Some(n.life) != old.and_then(life));
    gone && owner.zip(old.and_then(life)) == Some(from)
}

/// Buckets of nodes that are gone, or have begun another life, go to the nodes that have copies of them.
fn inherit(table: &mut Table, old: Option<&Table>) {
    let Some(old) = old else { return };
    for at in 0..table.owners.len() {
        let bucket = at as u32;
        let (Some(owner), Some(standby)) = (old.owner(bucket), old.standby(bucket)) else {
            continue;
        };
        let of = |t: &Table, id: NodeId| t.node(id).map(|n| (n.life, n.alive));
        let stays = |id: NodeId| {
            let (before, now) = (of(old, id), of(table, id));
            now.is_some_and(|(life, alive)| alive && before.is_some_and(|(was, _)| was == life))
        };
        if stays(owner) || !stays(standby) || owner == standby {
            continue;
        }
        let life = of(old, owner).map_or(0, |(life, _)| life);
        if let Some(inherited) = table.inherited.get_mut(at)
            && let Some(now) = table.owners.get_mut(at)
        {
            *now = Some(standby);
            *inherited = Some((owner, life));
        }
    }
}

/// Nodes that may have buckets, in ascending order.
fn usable(table: &Table) -> Vec<NodeId> {
    let ids = |drained: bool| {
        (0u16..)
            .zip(&table.nodes)
            .filter(|(_, n)| n.alive && (drained || !n.drained))
            .map(|(at, _)| NodeId(at))
            .collect::<Vec<_>>()
    };
    let usable = ids(false);
    // Where all are drained, somebody has to have the buckets.
    if usable.is_empty() { ids(true) } else { usable }
}

fn admit(table: &mut Table, member: &Member, view: &View) {
    let place = table.nodes.iter().position(|n| n.name == member.name);
    if let Some(node) = place.and_then(|at| table.nodes.get_mut(at)) {
        // Its key was removed or written by others, and what had joined before may still act.
        if node.lease != member.lease && view.holds(node) {
            return;
        }
        node.peer = member.peer;
        (node.life, node.lease) = (member.life, member.lease);
        node.copies = member.copies;
        node.alive = true;
    } else if table.nodes.len() < MAX_NODES {
        table.nodes.push(Node {
            name: member.name.clone(),
            peer: member.peer,
            life: member.life,
            lease: member.lease,
            alive: true,
            drained: false,
            copies: member.copies,
        });
    }
}
