//! What a view of the store, and a newer table, change on this node.

use super::{Action, Asked, Node};
use crate::log::What;
use crate::machine::Place;
use crate::store::{Foreign, Member, Request, View};
use crate::table::Table;

impl Node {
    pub(super) fn drop_here(&mut self, bucket: u32, now: u64) {
        let moves = self.moving.as_ref().is_some_and(|m| m.has(bucket));
        if let Some(here) = self.here.get_mut(bucket as usize) {
            *here = false;
        }
        if !moves {
            self.out.push(Action::Forget(bucket));
        }
        self.log(now, What::Away, Some(bucket));
    }

    pub(super) fn viewed(&mut self, view: View, now: u64) {
        let ours = self.config.buckets as usize;
        let odd = self.table.is_some() && { view.table.as_ref() }
            .is_some_and(|(t, _)| t.owners.len() != ours);
        if odd {
            // Tables of one cluster have as many: another program has written this one.
            self.say_once(format!(
                "the store's table has not {ours} buckets, as those before it: it is not of this cluster, and the one before it stays"
            ));
            return;
        }
        match view.foreign.first() {
            Some(Foreign { key, why, .. }) => self.say_once(format!(
                "what stands in the store at '{key}' is not of a node, and counts as none: {why}"
            )),
            None => self.trouble.clear(),
        }
        if let Some((table, at)) = &view.table {
            if table.owners.len() != self.config.buckets as usize {
                let (theirs, ours) = (table.owners.len(), self.config.buckets);
                self.halt(format!(
                    "the cluster has {theirs} buckets, this node {ours}: run it with as many"
                ));
                return;
            }
            let known = self.table.as_ref().map_or(0, |t| t.version);
            if table.version < known {
                self.halt(format!(
                    "the store's table is version {}, this node has seen version {known}: the store has lost data; stop all nodes, then start them anew",
                    table.version
                ));
                return;
            }
            if self.unsure.is_some_and(|unsure| unsure < *at) {
                self.unsure = None;
            }
            let table = table.clone();
            self.view = view;
            self.adopt(&table, now);
        } else {
            self.view = view;
        }
        self.claim(now);
        self.orphaned = match (&self.orphaned, self.is_orphaned()) {
            (_, false) => None,
            (Some(since), true) => Some(*since),
            (None, true) => Some(now),
        };
    }

    /// Puts the own key again, once a beat, where it does not stand under the own lease. Until then others leave this node its buckets, as that lease
    /// has not ended.
    fn claim(&mut self, now: u64) {
        let Some(lease) = self.lease.clone() else {
            return;
        };
        let stands = |m: &Member| m.lease == lease.id && m.name == self.config.name;
        let pending = self.pending(|a| matches!(a, Asked::Renew));
        if now < self.renew_at || pending || self.view.members.iter().any(stands) {
            return;
        }
        self.renew_at = now + self.config.times.beat();
        let member = self.member(lease.life, lease.id);
        self.out.push(Action::Say(
            "this node's key in the store is not under its lease: another program has written there; putting it again".into(),
        ));
        self.ask(Request::Renew { member }, Asked::Renew);
    }

    pub(super) fn halt(&mut self, why: String) {
        self.until = 0;
        self.out.push(Action::Until(0));
        self.told = 0;
        self.leaving = true;
        self.out.push(Action::Stop(why));
    }

    /// Another table, or the same one in another life.
    pub(super) fn adopt(&mut self, table: &Table, now: u64) {
        let newer = self
            .table
            .as_ref()
            .is_none_or(|t| t.version < table.version);
        if newer {
            self.out.push(Action::Publish(table.clone()));
            self.table = Some(table.clone());
            self.log(now, What::Version, None);
        }
        let me = self.id();
        self.settle_moving(me, table, now);
        for bucket in 0..self.config.buckets {
            let mine = me.is_some() && table.owner(bucket) == me;
            let here = self.here.get(bucket as usize) == Some(&true);
            let moves = self.moving.as_ref().is_some_and(|m| m.has(bucket));
            if mine && !here && !moves {
                let given = table.given.get(bucket as usize).copied();
                let inherited = table.inherited.get(bucket as usize).copied().flatten();
                if let Some(taken) = self.taken.remove(&bucket)
                    && given != Some(taken.version)
                {
                    // Its former owner went on with the bucket after that, and has died since: this state is older than what was seen of it.
                    self.out.push(Action::Forget(bucket));
                }
                if let Some((from, life)) = inherited
                    && let Some(from) = table.node(from)
                {
                    let from = from.name.clone();
                    self.out.push(Action::Inherit(bucket, from, life));
                    self.log(now, What::Inherit, Some(bucket));
                }
                self.set_here(bucket, None, now);
            } else if !mine && here && !moves {
                self.drop_here(bucket, now);
            }
        }
        for (bucket, taken) in &mut self.taken {
            if table.version >= taken.version {
                taken.owner.get_or_insert(table.owner(*bucket));
            }
        }
        let old = 2 * self.config.times.ttl;
        let lost: Vec<u32> = self
            .taken
            .iter()
            .filter(|(bucket, taken)| {
                let wanted = table.wanted.get(**bucket as usize).copied().flatten();
                let moved = taken
                    .owner
                    .is_some_and(|owner| table.owner(**bucket) != owner);
                moved || (wanted != me && now >= taken.at + old)
            })
            .map(|(bucket, _)| *bucket)
            .collect();
        for bucket in lost {
            self.taken.remove(&bucket);
            self.out.push(Action::Forget(bucket));
        }
    }

    pub(super) fn set_here(&mut self, bucket: u32, back: Option<Vec<u8>>, now: u64) {
        if let Some(here) = self.here.get_mut(bucket as usize) {
            *here = true;
        }
        self.out.push(Action::Settle(bucket, Place::Here, back));
        self.log(now, What::Here, Some(bucket));
    }

    pub(super) fn set_away(&mut self, bucket: u32, now: u64) {
        if let Some(here) = self.here.get_mut(bucket as usize) {
            *here = false;
        }
        self.out.push(Action::Settle(bucket, Place::Away, None));
        self.log(now, What::Away, Some(bucket));
    }

    pub(super) fn set_here_quietly(&mut self, bucket: u32) {
        if let Some(here) = self.here.get_mut(bucket as usize) {
            *here = true;
        }
    }
}
