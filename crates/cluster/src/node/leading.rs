//! The leader: whether this node may compute tables, and the next one.

use super::{Asked, Lease, Node};
use crate::lead;
use crate::log::What;
use crate::store::{Guard, Request, View};
use crate::table::Node as Machine;

impl Node {
    /// Whether no living node of the table has a lease.
    pub(super) fn is_orphaned(&self) -> bool {
        let Some((table, _)) = &self.view.table else {
            return false;
        };
        let members = &self.view.members;
        let has = |n: &Machine| members.iter().any(|m| m.name == n.name && m.peer == n.peer);
        let mut living = table.nodes.iter().filter(|n| n.alive);
        !living.any(|n| has(n) || self.view.holds(n))
    }

    /// Whether this node may compute tables: see the last part of [`crate::vouch`].
    pub(super) fn eligible(&self, now: u64) -> bool {
        let Some((table, _)) = &self.view.table else {
            return true;
        };
        if !table.nodes.iter().any(|n| n.alive) {
            return true;
        }
        let mine = |n: &Machine| n.name == self.config.name && n.peer == self.config.peer;
        if table.nodes.iter().any(|n| n.alive && mine(n)) {
            return true;
        }
        let alone = self.config.times.alone;
        self.orphaned.is_some_and(|since| now >= since + alone)
    }

    /// The leader's work.
    pub(super) fn govern(&mut self, lease: &Lease, now: u64) {
        let me = (self.config.name.clone(), lease.life);
        let read = self.view.members.iter().any(|m| m.life == lease.life);
        if !read || !self.eligible(now) {
            return;
        }
        match &self.view.leader {
            None => {
                let id = lease.id;
                self.ask(Request::Lead { lease: id, me }, Asked::Lead);
                return;
            }
            Some(leader) if *leader != me => {
                self.led = false;
                return;
            }
            Some(_) => {}
        }
        if !std::mem::replace(&mut self.led, true) {
            self.log(now, What::Lead, None);
        }
        // A former life of this node may have promised something; that has ended a lease's time after this life began.
        let may_take = now >= lease.since + self.config.times.ttl;
        let change = if self.weak.keys {
            lead::next(&without_leases(&self.view), self.config.buckets, may_take)
        } else {
            lead::next(&self.view, self.config.buckets, may_take)
        };
        let at = self.view.table.as_ref().map_or(0, |(_, at)| *at);
        let (table, mut guard) = match (change, &self.view.table) {
            (Some(change), _) => (change.table, change.guard),
            // A commit whose outcome is unknown may still be done, until the table is another one.
            (None, Some((table, _))) if self.unsure == Some(at) => {
                let mut table = table.clone();
                table.version += 1;
                (table, Guard::default())
            }
            _ => return,
        };
        guard.leader = Some(me.clone());
        guard.present.push(me);
        if self.weak.lives {
            guard.unclaimed.clear();
        }
        self.ask(Request::Commit { at, guard, table }, Asked::Commit(at));
    }
}

/// A view in which every lease has ended that no key is under.
fn without_leases(view: &View) -> View {
    let mut view = view.clone();
    if let Some((table, _)) = &view.table {
        let nodes = table.nodes.iter();
        view.ended = nodes
            .map(|n| n.lease)
            .filter(|lease| !view.members.iter().any(|m| m.lease == *lease))
            .collect();
    }
    view
}
