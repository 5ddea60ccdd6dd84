//! A cluster's state for a person, and what is wrong with it.

use std::fmt;

use serde::Serialize;

use crate::balance;
use crate::store::{Foreign, View};
use crate::table::{NodeId, Table};

/// A node of a cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NodeStatus {
    /// its name
    pub name: String,
    /// where other nodes reach it
    pub peer: String,
    /// it has a lease now
    pub lease: bool,
    /// the table counts it among the living
    pub alive: bool,
    /// it is to have no buckets
    pub drained: bool,
    /// it computes the table
    pub leader: bool,
    /// buckets that it has
    pub buckets: usize,
    /// buckets that it shall have
    pub wanted: usize,
    /// buckets of others of which it keeps a copy
    pub copies: usize,
    /// why it can neither give nor take buckets any more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stays: Option<String>,
}

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// what it is
    pub what: String,
    /// how to fix it
    pub help: String,
}

/// A cluster at one revision of the store.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Status {
    /// of the table; 0: there is none
    pub version: u64,
    /// how many buckets there are
    pub buckets: usize,
    /// buckets that nobody has: their packets are dropped
    pub unowned: usize,
    /// buckets that are to go to another node
    pub moving: usize,
    /// by number
    pub nodes: Vec<NodeStatus>,
    /// what is wrong; none: nothing
    pub findings: Vec<Finding>,
}

impl Status {
    /// Of what stands in the store.
    #[must_use]
    pub fn of(view: &View) -> Self {
        let none = Table::empty(0);
        let table = view.table.as_ref().map_or(&none, |(table, _)| table);
        let lease = |name: &str| view.members.iter().any(|m| m.name == name);
        let nodes = (0u16..).zip(&table.nodes).map(|(at, node)| {
            let count =
                |of: &[Option<NodeId>]| of.iter().filter(|o| **o == Some(NodeId(at))).count();
            NodeStatus {
                name: node.name.clone(),
                peer: node.peer.to_string(),
                lease: lease(&node.name) || view.holds(node),
                alive: node.alive,
                drained: node.drained,
                leader: view.leader.as_ref().is_some_and(|(n, _)| *n == node.name),
                buckets: count(&table.owners),
                wanted: count(&table.wanted),
                copies: count(&table.standbys),
                stays: stays(view, &node.name),
            }
        });
        let pairs = || table.owners.iter().zip(&table.wanted);
        Self {
            version: table.version,
            buckets: table.owners.len(),
            unowned: table.owners.iter().filter(|o| o.is_none()).count(),
            moving: pairs().filter(|(o, w)| o.is_some() && o != w).count(),
            nodes: nodes.collect(),
            findings: findings(view, table),
        }
    }
}

/// How to fix that a node can neither give nor take buckets.
pub const STAYS: &str = "`millrace cluster undrain` it, and it goes on with the buckets that it has; or end its run, behind which others begin these without \
     state, and start the new function as a run of its own";

fn stays(view: &View, name: &str) -> Option<String> {
    let member = view.members.iter().find(|m| m.name == name);
    member.and_then(|m| m.stays.clone())
}

fn findings(view: &View, table: &Table) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut say = |what: String, help: &str| {
        found.push(Finding {
            what,
            help: help.to_owned(),
        });
    };
    for foreign in &view.foreign {
        let Foreign { key, why, .. } = foreign;
        say(
            format!("what stands in etcd at '{key}' is not of a node: {why}"),
            "another program has written there: remove that key with etcdctl, below /millrace/ and the cluster's name",
        );
    }
    if view.table.is_none() {
        say(
            "there is no table".into(),
            "start a node: `millrace run FUNCTION --cluster … --peer PORT`",
        );
        return found;
    }
    if view.leader.is_none() {
        say(
            "no node computes the table".into(),
            "a node that the table counts among the living leads as soon as it has a lease: start one of them under its name and address; any other \
             leads ten minutes after the last of them was lost",
        );
    }
    for node in &table.nodes {
        let member = view.members.iter().find(|m| m.name == node.name);
        match member {
            _ if view.holds(node) && member.is_none_or(|m| m.lease != node.lease) => say(
                format!(
                    "node '{}' has a lease, and its key in etcd is away or another's",
                    node.name
                ),
                "another program has removed the key or written there: the node puts it again, or joins anew, by itself; where this stays, look at its log",
            ),
            None if node.alive => say(
                format!("node '{}' has no lease, and the table has it", node.name),
                "its buckets go to others as soon as a node leads; where this stays, look at the leader's log",
            ),
            Some(m) if !node.alive || m.life != node.life || m.peer != node.peer => say(
                format!(
                    "node '{}' has a lease, and the table has an older life of it",
                    node.name
                ),
                "the leader takes it in; where this stays, look at the leader's log",
            ),
            _ => {}
        }
    }
    for member in &view.members {
        if table.named(&member.name).is_none() {
            say(
                format!(
                    "node '{}' has a lease, and is not in the table",
                    member.name
                ),
                "the leader takes it in, up to 1024 nodes, those counted that are gone",
            );
        }
    }
    for node in &table.nodes {
        if let Some(why) = stays(view, &node.name) {
            say(
                format!(
                    "node '{}' can neither give nor take buckets: {why}",
                    node.name
                ),
                STAYS,
            );
        }
    }
    let unowned = table.owners.iter().filter(|o| o.is_none()).count();
    if unowned > 0 {
        say(
            format!("{unowned} buckets have no owner: their packets are dropped"),
            "start a node, or `millrace cluster undrain` one",
        );
    }
    let dead = |id: &Option<NodeId>| id.and_then(|id| table.node(id)).is_some_and(|n| !n.alive);
    let dead = table.owners.iter().filter(|o| dead(o)).count();
    if dead > 0 {
        say(
            format!("{dead} buckets are owned by nodes that the table counts among the dead"),
            "the leader gives them to others with its next table",
        );
    }
    let usable: Vec<NodeId> = (0u16..)
        .zip(&table.nodes)
        .filter(|(_, n)| n.alive && !n.drained)
        .map(|(at, _)| NodeId(at))
        .collect();
    if usable.is_empty() {
        say(
            "all living nodes are drained".into(),
            "`millrace cluster undrain` one: until then they keep what they have",
        );
    } else if !balance::balanced(&table.wanted, &usable) {
        say(
            "the buckets are not divided evenly".into(),
            "the leader divides them with its next table",
        );
    }
    found
}

impl fmt::Display for Status {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            version, buckets, ..
        } = self;
        writeln!(
            to,
            "version {version}, {buckets} buckets, {} to move, {} without owner",
            self.moving, self.unowned
        )?;
        let wide = |of: fn(&NodeStatus) -> usize, head: usize| {
            self.nodes.iter().map(of).max().unwrap_or(0).max(head)
        };
        let (name, peer) = (wide(|n| n.name.len(), 4), wide(|n| n.peer.len(), 4));
        write!(
            to,
            "{:name$}  {:peer$}  {:>7}  {:>7}  {:>7}  state",
            "node", "peer", "buckets", "wanted", "copies"
        )?;
        for node in &self.nodes {
            let mut state = vec![match (node.lease, node.alive) {
                (true, true) => "alive",
                (true, false) => "joining",
                (false, true) => "lost",
                (false, false) => "gone",
            }];
            if node.leader {
                state.push("leads");
            }
            if node.drained {
                state.push("drained");
            }
            let (has, wants, keeps) = (node.buckets, node.wanted, node.copies);
            if node.stays.is_some() {
                state.push("buckets stay");
            }
            let state = state.join(", ");
            write!(
                to,
                "\n{:name$}  {:peer$}  {has:>7}  {wants:>7}  {keeps:>7}  {state}",
                node.name, node.peer
            )?;
        }
        Ok(())
    }
}

/// Why a node is not drained.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DrainError {
    /// There is no such node.
    #[error("the cluster has no node '{name}'; it has: {has}")]
    Unknown {
        /// what was asked for
        name: String,
        /// names, with commas
        has: String,
    },
    /// It is the last one that may have buckets.
    #[error("'{name}' is the only living node that is not drained: nobody could take its buckets")]
    Last {
        /// the node
        name: String,
    },
}

/// The next table, with a node drained or not; none where it is so already.
///
/// # Errors
/// There is no such node, or nobody could take its buckets.
pub fn drain(table: &Table, name: &str, drained: bool) -> Result<Option<Table>, DrainError> {
    let Some(id) = table.named(name) else {
        let names: Vec<&str> = table.nodes.iter().map(|n| n.name.as_str()).collect();
        return Err(DrainError::Unknown {
            name: name.to_owned(),
            has: names.join(", "),
        });
    };
    let others = || {
        table
            .nodes
            .iter()
            .any(|n| n.name != name && n.alive && !n.drained)
    };
    let mut next = table.clone();
    let Some(node) = next.nodes.get_mut(usize::from(id.0)) else {
        return Ok(None);
    };
    if node.drained == drained {
        return Ok(None);
    }
    if drained && node.alive && !others() {
        return Err(DrainError::Last {
            name: name.to_owned(),
        });
    }
    node.drained = drained;
    next.version += 1;
    Ok(Some(next))
}
