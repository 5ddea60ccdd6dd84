//! Buckets that go to other nodes, and that come.

use super::{Action, Asked, Lease, Node, Outcome};
use crate::log::What;
use crate::moving::{Moving, Parcel, Stage, Taken};
use crate::store::{Guard, Request};
use crate::table::{NodeId, Table};
use crate::times::SECOND;

impl Node {
    /// Whether the entries of a bucket may be put in, for a peer that hands them over under `version`. Call [`Self::has_taken`] when they are.
    ///
    /// # Errors
    /// Why not, for the peer.
    pub fn may_take(&self, bucket: u32, version: u64, now: u64) -> Result<(), String> {
        let (Some(me), Some(table)) = (self.id(), &self.table) else {
            return Err("the node has not joined".into());
        };
        if now >= self.until {
            return Err("the node's lease has ended".into());
        }
        let Some(wanted) = table.wanted.get(bucket as usize) else {
            return Err(format!(
                "there is no bucket {bucket} of {}",
                table.wanted.len()
            ));
        };
        if table.owner(bucket) == Some(me) {
            return Err(format!(
                "the node has bucket {bucket} under version {}",
                table.version
            ));
        }
        if version <= table.version && *wanted != Some(me) {
            return Err(format!(
                "version {} means bucket {bucket} for another node",
                table.version
            ));
        }
        Ok(())
    }

    /// The entries are put in.
    pub fn has_taken(&mut self, bucket: u32, version: u64, now: u64) {
        let table = self.table.as_ref().filter(|t| t.version >= version);
        let owner = table.map(|t| t.owner(bucket));
        self.taken.insert(
            bucket,
            Taken {
                version,
                owner,
                at: now,
            },
        );
    }

    /// Whether an earlier hand-over of this bucket was put in, and it is not this node's yet.
    #[must_use]
    pub fn has_entries(&self, bucket: u32) -> bool {
        self.taken.contains_key(&bucket)
    }

    /// Parcels of a commit that a newer table has decided.
    pub(super) fn settle_moving(&mut self, me: Option<NodeId>, table: &Table, now: u64) {
        let Some(moving) = self.moving.as_mut() else {
            return;
        };
        let Stage::Committing(version) = moving.stage else {
            return;
        };
        if table.version < version {
            return;
        }
        let parcels = std::mem::take(&mut moving.parcels);
        let early = moving.early;
        self.moving = None;
        for parcel in parcels {
            let mine = me.is_some() && table.owner(parcel.bucket) == me;
            if mine && early {
                self.set_here_quietly(parcel.bucket);
            } else if mine {
                // The table was changed by somebody else: this commit can no longer be done.
                self.set_here(parcel.bucket, Some(parcel.entries), now);
            } else if early {
                self.drop_here(parcel.bucket, now);
            } else {
                self.set_away(parcel.bucket, now);
            }
        }
    }

    /// Forgets what was given: the lease is gone, and so are the buckets.
    pub(super) fn abandon(&mut self, now: u64) {
        if let Some(moving) = self.moving.take() {
            for parcel in moving.parcels {
                self.set_away(parcel.bucket, now);
            }
        }
    }

    pub(super) fn moved(&mut self, id: u64, outcomes: Vec<(u32, Outcome)>, now: u64) {
        let current = self
            .moving
            .as_ref()
            .is_some_and(|m| m.stage == Stage::Handing(id));
        let Some(mut moving) = self.moving.take_if(|_| current) else {
            return;
        };
        // What a former life gave is void, even where the bucket is this node's again.
        let life = self.lease.as_ref().map(|l| l.life);
        let me = self.id().filter(|_| life == Some(moving.life));
        for (bucket, outcome) in outcomes {
            let table = self.table.as_ref();
            let mine = me.is_some() && table.and_then(|t| t.owner(bucket)) == me;
            let (entries, why) = match outcome {
                Outcome::Handed(entries) if mine => {
                    moving.parcels.push(Parcel { bucket, entries });
                    continue;
                }
                Outcome::Handed(entries) => (Some(entries), None),
                Outcome::Refused(entries, why) => (Some(entries), Some(why)),
                Outcome::Kept(why) => (None, Some(why)),
            };
            if let Some(why) = why {
                self.refuse(bucket, &why, now);
            }
            match entries {
                Some(entries) if mine => self.set_here(bucket, Some(entries), now),
                None if mine => {}
                Some(_) => self.set_away(bucket, now),
                None => self.drop_here(bucket, now),
            }
        }
        if !moving.parcels.is_empty() {
            moving.stage = Stage::Ready;
            self.moving = Some(moving);
        }
        if let Some(table) = self.table.clone() {
            self.adopt(&table, now);
        }
    }

    /// A peer refused a bucket; it is offered again after one second, then after twice as long each time, up to a minute.
    pub(super) fn refuse(&mut self, bucket: u32, why: &str, now: u64) {
        let wait = self.refused.get(&bucket).map_or(SECOND, |(_, wait)| *wait);
        let next = (2 * wait).min(60 * SECOND);
        self.refused.insert(bucket, (now + wait, next));
        self.log(now, What::Refused, Some(bucket));
        self.out.push(Action::Say(format!(
            "bucket {bucket} stays here for {} s at least: {why}",
            wait / SECOND
        )));
    }

    /// The owner's work: one batch of buckets to one node at a time.
    pub(super) fn hand_over(&mut self, lease: &Lease, now: u64) {
        if self.pending(|a| matches!(a, Asked::Commit(_))) || now >= self.until {
            return;
        }
        let (Some(me), Some((table, at))) = (self.id(), self.view.table.clone()) else {
            return;
        };
        if let Some(moving) = &self.moving {
            match moving.stage {
                Stage::Handing(_) => {}
                Stage::Ready => {
                    self.drop_unwanted(&table, now);
                    self.commit_moved(lease, me, table, at, now);
                }
                Stage::Committing(_) if now >= self.commit_at => {
                    self.commit_moved(lease, me, table, at, now);
                }
                Stage::Committing(_) => {}
            }
            return;
        }
        let waits = |b: &u32| self.refused.get(b).is_some_and(|(at, _)| now < *at);
        let to_go = |bucket: u32| -> Option<NodeId> {
            let wanted = table.wanted.get(bucket as usize).copied().flatten()?;
            let there = table.node(wanted).is_some_and(|n| n.alive);
            let go = table.owner(bucket) == Some(me) && wanted != me && there && !waits(&bucket);
            go.then_some(wanted)
        };
        let Some(to) = (0..self.config.buckets).find_map(to_go) else {
            return;
        };
        let Some(node) = table.node(to).cloned() else {
            return;
        };
        let buckets: Vec<u32> = (0..self.config.buckets)
            .filter(|b| to_go(*b) == Some(to))
            .take(self.config.batch.max(1))
            .collect();
        let soon = (0..self.config.buckets).filter(|b| to_go(*b).is_some());
        let soon = soon.collect();
        self.next += 1;
        let id = self.next;
        let moving = Moving {
            to: node.clone(),
            life: lease.life,
            version: table.version,
            since: now,
            stage: Stage::Handing(id),
            parcels: Vec::new(),
            buckets: buckets.clone(),
            early: false,
        };
        if self.weak.commit_first {
            self.moving = Some(moving.early());
            self.commit_moved(lease, me, table, at, now);
            return;
        }
        self.moving = Some(moving);
        self.out.push(Action::Move {
            id,
            version: table.version,
            to: node,
            buckets,
            soon,
        });
    }

    /// Puts back what the table means for another node by now, or what the receiver may have forgotten.
    pub(super) fn drop_unwanted(&mut self, table: &Table, now: u64) {
        let Some(mut moving) = self.moving.take() else {
            return;
        };
        let to = table.named(&moving.to.name);
        let old = now >= moving.since + self.config.times.ttl;
        let wanted = |bucket: u32| table.wanted.get(bucket as usize).copied().flatten();
        let (on, back): (Vec<_>, Vec<_>) = std::mem::take(&mut moving.parcels)
            .into_iter()
            .partition(|p| !old && to.is_some() && wanted(p.bucket) == to);
        for parcel in back {
            self.set_here(parcel.bucket, Some(parcel.entries), now);
        }
        if !on.is_empty() {
            moving.buckets = on.iter().map(|p| p.bucket).collect();
            moving.parcels = on;
            self.moving = Some(moving);
        }
    }

    pub(super) fn commit_moved(
        &mut self,
        lease: &Lease,
        me: NodeId,
        table: Table,
        at: u64,
        now: u64,
    ) {
        self.commit_at = now + self.config.times.beat() / 4;
        let Some(moving) = self.moving.as_mut() else {
            return;
        };
        let Some(to) = table.named(&moving.to.name) else {
            return;
        };
        let mut next = table;
        for parcel in &moving.parcels {
            if let Some(owner) = next.owners.get_mut(parcel.bucket as usize)
                && *owner == Some(me)
                && let Some(given) = next.given.get_mut(parcel.bucket as usize)
            {
                *owner = Some(to);
                *given = moving.version;
                let at = parcel.bucket as usize;
                if let Some(inherited) = next.inherited.get_mut(at) {
                    *inherited = None;
                }
                // Its state is here by now; the next table may name another one.
                if let Some(standby) = next.standbys.get_mut(at)
                    && *standby == Some(to)
                {
                    *standby = Some(me);
                }
            }
        }
        next.version += 1;
        moving.stage = Stage::Committing(next.version);
        let guard = Guard {
            present: vec![
                (self.config.name.clone(), lease.life),
                (moving.to.name.clone(), moving.to.life),
            ],
            ..Guard::default()
        };
        let request = Request::Commit {
            at,
            guard,
            table: next,
        };
        self.ask(request, Asked::Commit(at));
    }
}
