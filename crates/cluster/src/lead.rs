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
        admit(&mut table, member);
    }
    let gone = |node: &Node| node.alive && !view.members.iter().any(|m| m.name == node.name);
    for node in table.nodes.iter_mut().filter(|n| gone(n)).take(MAX_DEAD) {
        if may_take {
            node.alive = false;
            guard.absent.push(node.name.clone());
        }
    }
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
    // A dead node gives nothing: its buckets are with their new owners at once, without state. A drained one hands over.
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
        }
    }
    if old == Some(&table) {
        return None;
    }
    table.version += 1;
    Some(Change { table, guard })
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

fn admit(table: &mut Table, member: &Member) {
    let place = table.nodes.iter().position(|n| n.name == member.name);
    if let Some(node) = place.and_then(|at| table.nodes.get_mut(at)) {
        node.peer = member.peer;
        node.life = member.life;
        node.alive = true;
    } else if table.nodes.len() < MAX_NODES {
        table.nodes.push(Node {
            name: member.name.clone(),
            peer: member.peer,
            life: member.life,
            alive: true,
            drained: false,
        });
    }
}
