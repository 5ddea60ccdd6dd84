//! A node of a cluster as a state machine: no sockets, no clocks, no threads.
//!
//! [`Node::step`] takes an event and the time and returns what to do. [`crate::Membership`] drives it with a store, a machine and peers; the
//! simulation of the tests drives the same code with seeded faults.
//!
//! # Ownership
//! A node accepts packets of a bucket while (a) its table names it as the owner, in its present life, (b) its right to act has not ended by its own
//! monotonic clock, and (c) the bucket is with its machine. The right lasts `ttl - margin` from the *sending* of the last keepalive that the store
//! answered. The store counts the lease from the arrival of that keepalive, and the leader takes buckets over only in a transaction that compares
//! that the node's key is gone. So the node has stopped `margin` before, unless its clock runs slower than the store's by more than `margin / ttl`.
//!
//! # Where the store is away
//! A node cannot tell a store that is away for all from one that is away for it. It asks its peers ([`crate::vouch`]).
//!
//! # Hand-over
//! The owner takes a bucket's entries out, sends them, and commits `owners[bucket]` by compare-and-swap; the receiver accepts under the new table
//! only. Where the outcome of a commit is not known, the bucket is held until a read tells.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::lead;
use crate::log::{Author, Entry, What};
use crate::machine::Place;
use crate::moving::{Moving, Parcel, Stage, Taken};
use crate::store::{Guard, Member, Reply, Request, View};
use crate::table::{Node as Machine, NodeId, Table};
use crate::times::{SECOND, Times};
use crate::vouch::{Answer, Ask, Round};

/// What happened to a bucket of [`Action::Move`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The machine did not give it; it goes on here.
    Kept(String),
    /// The peer refused these entries.
    Refused(Vec<u8>, String),
    /// The peer has put these entries in.
    Handed(Vec<u8>),
}

/// What a node is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Time has passed; often enough is four times a [`Times::beat`].
    Tick,
    /// Something below the cluster's name changed, or a peer has a newer table.
    Changed,
    /// The store's answer to a request; each has one, within a bounded time.
    Reply(u64, Reply),
    /// What [`Action::Move`] led to.
    Moved(u64, Vec<(u32, Outcome)>),
    /// The answer of a peer, by its name, to a round of [`Action::Vouch`].
    Vouched(u64, String, Answer),
    /// The process is to end.
    Leave,
}

/// What is to be done, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Ask the store; the answer comes as [`Event::Reply`] with this number.
    Ask(u64, Request),
    /// This table counts from now on.
    Publish(Table),
    /// The right to act ends then, ns; 0: there is none.
    Until(u64),
    /// Give each bucket and hand it to the peer; the outcomes come as [`Event::Moved`]. Whatever was given stays held.
    Move {
        /// number of the answer
        id: u64,
        /// the table's version
        version: u64,
        /// the new owner
        to: Machine,
        /// which
        buckets: Vec<u32>,
    },
    /// See [`crate::Machine::settle`].
    Settle(u32, Place, Option<Vec<u8>>),
    /// Throw the bucket's entries away: it is elsewhere, or was lost with the lease.
    Forget(u32),
    /// Ask a peer to vouch.
    Vouch(u64, Machine, Ask),
    /// A line for the node's log.
    Log(Entry),
    /// Something for a person.
    Say(String),
    /// The node cannot go on; it has stopped accepting.
    Stop(String),
    /// The node has left.
    Left,
}

/// What a node is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// its name, unique in the cluster and kept over restarts
    pub name: String,
    /// where others reach it: a name and an address are one machine
    pub peer: SocketAddr,
    /// how many buckets its function has, a power of two
    pub buckets: u32,
    /// durations, the same on all nodes
    pub times: Times,
    /// buckets that one commit hands over at most
    pub batch: usize,
}

/// Parts of the protocol left out, which the check of the simulation has to notice.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Weakened {
    /// the lease counts from the answer, and there is no margin
    pub margin: bool,
    /// the new owner is committed before the bucket is given
    pub commit_first: bool,
    /// a promise to a peer binds nobody
    pub promise: bool,
    /// one promise counts as all
    pub one_promise: bool,
    /// a node is taken for what it was in a former life, and takeovers do not compare that its key is gone
    pub lives: bool,
}

/// A lease.
#[derive(Clone, Debug)]
struct Lease {
    id: i64,
    life: u64,
    since: u64,
    /// when the last answered keepalive was sent
    kept: u64,
}

/// A request under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    Join(u64),
    Keep(u64),
    Read,
    Lead,
    /// a commit against this revision
    Commit(u64),
    Leave,
}

/// See the module.
#[derive(Debug)]
pub struct Node {
    config: Config,
    weak: Weakened,
    author: Author,
    lease: Option<Lease>,
    until: u64,
    /// the end that was last told
    told: u64,
    going: bool,
    view: View,
    table: Option<Table>,
    asked: BTreeMap<u64, Asked>,
    next: u64,
    /// a read has to be started after the one under way
    again: bool,
    read_at: u64,
    join_at: u64,
    /// a commit of a hand-over is not repeated before
    commit_at: u64,
    /// a commit against this revision may still be done
    unsure: Option<u64>,
    promised: u64,
    /// since when no node of the table has a lease
    orphaned: Option<u64>,
    round: Option<Round>,
    moving: Option<Moving>,
    /// buckets that the machine has been told are here
    here: Vec<bool>,
    /// buckets taken from a peer, not yet owned
    taken: BTreeMap<u32, Taken>,
    /// refused buckets: not before, and the wait after the next refusal
    refused: BTreeMap<u32, (u64, u64)>,
    /// the last error of the store, which is said once
    trouble: String,
    led: bool,
    leaving: bool,
    out: Vec<Action>,
}

impl Node {
    /// A node without a lease.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let here = vec![false; config.buckets as usize];
        let author = Author {
            name: config.name.clone(),
        };
        Self {
            config,
            weak: Weakened::default(),
            author,
            lease: None,
            until: 0,
            told: 0,
            going: false,
            view: View::default(),
            table: None,
            asked: BTreeMap::new(),
            next: 0,
            again: false,
            read_at: 0,
            join_at: 0,
            commit_at: 0,
            unsure: None,
            promised: 0,
            orphaned: None,
            round: None,
            moving: None,
            here,
            taken: BTreeMap::new(),
            refused: BTreeMap::new(),
            trouble: String::new(),
            led: false,
            leaving: false,
            out: Vec::new(),
        }
    }

    #[doc(hidden)]
    pub fn weaken(&mut self, weak: Weakened) {
        self.weak = weak;
    }

    /// The node's number, once a table lists it in its present life.
    #[must_use]
    pub fn id(&self) -> Option<NodeId> {
        let table = self.table.as_ref()?;
        let id = table.named(&self.config.name)?;
        let life = self.lease.as_ref()?.life;
        let same = |n: &&Machine| n.life == life || self.weak.lives;
        table.node(id).filter(same).map(|_| id)
    }

    /// Tells the node what happened at `now`, ns of its monotonic clock; returns what to do.
    pub fn step(&mut self, event: Event, now: u64) -> Vec<Action> {
        match event {
            Event::Tick => {}
            Event::Changed => self.read(now, true),
            Event::Reply(id, reply) => self.reply(id, reply, now),
            Event::Moved(id, outcomes) => self.moved(id, outcomes, now),
            Event::Vouched(id, by, answer) => self.vouched(id, &by, &answer, now),
            Event::Leave => self.leave(now),
        }
        self.tick(now);
        self.tell(now);
        std::mem::take(&mut self.out)
    }

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
        let owner = self.table.as_ref().and_then(|t| t.owner(bucket));
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

    /// Answers a peer whose store does not answer, see [`crate::vouch`].
    pub fn vouch(&mut self, ask: &Ask, now: u64) -> Answer {
        let life = self.lease.as_ref().map_or(0, |l| l.life);
        let version = self.table.as_ref().map_or(0, |t| t.version);
        let refusal = self.vouch_refusal(ask, version, now);
        if refusal.is_none() {
            self.promised = self.promised.max(now.saturating_add(ask.ttl));
        }
        Answer {
            life,
            version,
            refused: refusal.map(str::to_owned),
        }
    }

    fn vouch_refusal(&self, ask: &Ask, version: u64, now: u64) -> Option<&'static str> {
        let Some(lease) = &self.lease else {
            return Some("the node has not joined");
        };
        if version > ask.version {
            return Some("there is a newer table");
        }
        // A promise binds a later life of this node for its own lease's time.
        if ask.ttl > self.config.times.ttl {
            return Some("this node's lease is shorter: all nodes need the same");
        }
        let silent = lease.kept.saturating_add(3 * self.config.times.beat());
        if now < silent {
            return Some("the store answers here");
        }
        let commit = |a: &Asked| matches!(a, Asked::Commit(_));
        if self.unsure.is_some() || self.asked.values().any(commit) {
            return Some("a change of the table is under way");
        }
        None
    }

    fn ask(&mut self, request: Request, asked: Asked) {
        self.next += 1;
        self.asked.insert(self.next, asked);
        self.out.push(Action::Ask(self.next, request));
    }

    fn pending(&self, is: impl Fn(&Asked) -> bool) -> bool {
        self.asked.values().any(is)
    }

    fn log(&mut self, now: u64, event: What, bucket: Option<u32>) {
        let version = self.table.as_ref().map_or(0, |t| t.version);
        let entry = self.author.entry(now, event, bucket, version);
        self.out.push(Action::Log(entry));
    }

    fn read(&mut self, now: u64, anew: bool) {
        if self.lease.is_none() {
            return;
        }
        if self.pending(|a| *a == Asked::Read) {
            self.again |= anew;
        } else {
            self.read_at = now;
            self.ask(Request::Read, Asked::Read);
        }
    }

    fn reply(&mut self, id: u64, reply: Reply, now: u64) {
        let Some(asked) = self.asked.remove(&id) else {
            return;
        };
        if let Reply::Failed(why) = &reply
            && *why != self.trouble
        {
            self.trouble.clone_from(why);
            self.out.push(Action::Say(why.clone()));
        }
        match (asked, reply) {
            (Asked::Join(sent), Reply::Joined { lease, life, ttl }) => {
                self.lease = Some(Lease {
                    id: lease,
                    life,
                    since: now,
                    kept: sent,
                });
                self.prolong(sent, ttl, now);
                self.read(now, true);
            }
            (Asked::Join(_), Reply::Taken) => {
                self.join_at = now + self.config.times.beat();
                let name = &self.config.name;
                let why =
                    format!("another process has a lease as node '{name}': waiting for its end");
                if why != self.trouble {
                    self.trouble.clone_from(&why);
                    self.out.push(Action::Say(why));
                }
            }
            (Asked::Join(_), Reply::Failed(_)) => {
                self.join_at = now + self.config.times.beat();
            }
            (Asked::Keep(sent), Reply::Kept { ttl }) => {
                if let Some(lease) = &mut self.lease {
                    lease.kept = lease.kept.max(sent);
                    self.prolong(sent, ttl, now);
                }
            }
            (Asked::Keep(_), Reply::Gone) => self.fall_out(now),
            (Asked::Read, Reply::Viewed(view)) => {
                self.trouble.clear();
                self.viewed(view, now);
                if std::mem::take(&mut self.again) {
                    self.read(now, false);
                }
            }
            (Asked::Lead, _) => self.read(now, true),
            (Asked::Commit(at), reply) => self.committed(at, &reply, now),
            (Asked::Leave, _) => self.out.push(Action::Left),
            _ => {}
        }
    }

    fn prolong(&mut self, sent: u64, ttl: u64, now: u64) {
        let ns = ttl.saturating_mul(SECOND);
        let until = if self.weak.margin {
            now.saturating_add(ns)
        } else {
            self.config.times.until(sent, ns)
        };
        self.until = self.until.max(until);
    }

    /// The lease has ended in the store: what is here belongs to others.
    fn fall_out(&mut self, now: u64) {
        self.until = 0;
        self.lease = None;
        self.round = None;
        self.view = View::default();
        self.tell(now);
        for bucket in 0..self.config.buckets {
            if self.here.get(bucket as usize) == Some(&true) {
                self.drop_here(bucket, now);
            }
        }
        for bucket in std::mem::take(&mut self.taken).into_keys() {
            self.out.push(Action::Forget(bucket));
        }
        if let Some(moving) = &self.moving
            && !matches!(moving.stage, Stage::Handing(_))
        {
            self.abandon(now);
        }
        self.join_at = now + self.config.times.beat() / 2;
    }

    fn drop_here(&mut self, bucket: u32, now: u64) {
        let moves = self.moving.as_ref().is_some_and(|m| m.has(bucket));
        if let Some(here) = self.here.get_mut(bucket as usize) {
            *here = false;
        }
        if !moves {
            self.out.push(Action::Forget(bucket));
        }
        self.log(now, What::Away, Some(bucket));
    }

    fn viewed(&mut self, view: View, now: u64) {
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
        self.orphaned = match (&self.orphaned, self.is_orphaned()) {
            (_, false) => None,
            (Some(since), true) => Some(*since),
            (None, true) => Some(now),
        };
    }

    fn halt(&mut self, why: String) {
        self.until = 0;
        self.out.push(Action::Until(0));
        self.told = 0;
        self.leaving = true;
        self.out.push(Action::Stop(why));
    }

    /// Whether the table has living nodes and none of them has a lease.
    fn is_orphaned(&self) -> bool {
        let Some((table, _)) = &self.view.table else {
            return false;
        };
        let members = &self.view.members;
        let has = |n: &Machine| members.iter().any(|m| m.name == n.name && m.peer == n.peer);
        !table.nodes.iter().any(|n| n.alive && has(n))
    }

    /// Another table, or the same one in another life.
    fn adopt(&mut self, table: &Table, now: u64) {
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
                if let Some(taken) = self.taken.remove(&bucket)
                    && given != Some(taken.version)
                {
                    // Its former owner went on with the bucket after that, and has died since: this state is older than what was seen of it.
                    self.out.push(Action::Forget(bucket));
                }
                self.set_here(bucket, None, now);
            } else if !mine && here && !moves {
                self.drop_here(bucket, now);
            }
        }
        let old = 2 * self.config.times.ttl;
        let lost: Vec<u32> = self
            .taken
            .iter()
            .filter(|(bucket, taken)| {
                let wanted = table.wanted.get(**bucket as usize).copied().flatten();
                let moved = table.version >= taken.version && table.owner(**bucket) != taken.owner;
                moved || (wanted != me && now >= taken.at + old)
            })
            .map(|(bucket, _)| *bucket)
            .collect();
        for bucket in lost {
            self.taken.remove(&bucket);
            self.out.push(Action::Forget(bucket));
        }
    }

    fn set_here(&mut self, bucket: u32, back: Option<Vec<u8>>, now: u64) {
        if let Some(here) = self.here.get_mut(bucket as usize) {
            *here = true;
        }
        self.out.push(Action::Settle(bucket, Place::Here, back));
        self.log(now, What::Here, Some(bucket));
    }

    fn set_away(&mut self, bucket: u32, now: u64) {
        if let Some(here) = self.here.get_mut(bucket as usize) {
            *here = false;
        }
        self.out.push(Action::Settle(bucket, Place::Away, None));
        self.log(now, What::Away, Some(bucket));
    }

    /// Parcels of a commit that a newer table has decided.
    fn settle_moving(&mut self, me: Option<NodeId>, table: &Table, now: u64) {
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

    fn set_here_quietly(&mut self, bucket: u32) {
        if let Some(here) = self.here.get_mut(bucket as usize) {
            *here = true;
        }
    }

    /// Forgets what was given: the lease is gone, and so are the buckets.
    fn abandon(&mut self, now: u64) {
        if let Some(moving) = self.moving.take() {
            for parcel in moving.parcels {
                self.set_away(parcel.bucket, now);
            }
        }
    }

    fn committed(&mut self, at: u64, reply: &Reply, now: u64) {
        if matches!(reply, Reply::Failed(_)) {
            self.unsure = Some(at);
        }
        self.read(now, true);
    }

    fn moved(&mut self, id: u64, outcomes: Vec<(u32, Outcome)>, now: u64) {
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
    fn refuse(&mut self, bucket: u32, why: &str, now: u64) {
        let wait = self.refused.get(&bucket).map_or(SECOND, |(_, wait)| *wait);
        let next = (2 * wait).min(60 * SECOND);
        self.refused.insert(bucket, (now + wait, next));
        self.log(now, What::Refused, Some(bucket));
        self.out.push(Action::Say(format!(
            "bucket {bucket} stays here for {} s at least: {why}",
            wait / SECOND
        )));
    }

    fn vouched(&mut self, id: u64, by: &str, answer: &Answer, now: u64) {
        let Some(round) = self.round.as_mut().filter(|r| r.id == id) else {
            return;
        };
        round.answer(by, answer);
        if round.done() || (self.weak.one_promise && answer.refused.is_none()) {
            let times = &self.config.times;
            let sent = round.sent;
            let kept = self.lease.as_ref().map_or(0, |l| l.kept);
            let bound = times.until(kept, times.alone);
            self.round = None;
            self.until = self.until.max(times.until(sent, times.ttl).min(bound));
            self.log(now, What::Vouched, None);
        }
    }

    fn leave(&mut self, now: u64) {
        self.until = 0;
        self.leaving = true;
        self.tell(now);
        let Some(lease) = self.lease.clone() else {
            self.out.push(Action::Left);
            return;
        };
        let commit = |a: &Asked| matches!(a, Asked::Commit(_));
        if now >= self.promised
            && !self.pending(commit)
            && let (Some(id), Some((table, at))) = (self.id(), self.view.table.clone())
        {
            let mut table = table;
            if let Some(node) = table.nodes.get_mut(usize::from(id.0)) {
                node.alive = false;
            }
            table.version += 1;
            let guard = Guard {
                present: vec![(self.config.name.clone(), lease.life)],
                ..Guard::default()
            };
            self.ask(Request::Commit { at, guard, table }, Asked::Commit(at));
        }
        self.ask(Request::Leave { lease: lease.id }, Asked::Leave);
    }

    /// What time alone demands.
    fn tick(&mut self, now: u64) {
        if self.leaving {
            return;
        }
        let Some(lease) = self.lease.clone() else {
            if now >= self.join_at && !self.pending(|a| matches!(a, Asked::Join(_))) {
                let member = Member {
                    name: self.config.name.clone(),
                    peer: self.config.peer,
                    life: 0,
                };
                let ttl = self.config.times.ttl / SECOND;
                self.ask(Request::Join { member, ttl }, Asked::Join(now));
            }
            return;
        };
        let beat = self.config.times.beat();
        if now >= lease.kept + beat && !self.pending(|a| matches!(a, Asked::Keep(_))) {
            self.ask(Request::Keep { lease: lease.id }, Asked::Keep(now));
        }
        if now >= self.read_at + beat {
            self.read(now, false);
        }
        self.seek_vouchers(&lease, now);
        if now < self.promised && !self.weak.promise {
            return;
        }
        if self.pending(|a| matches!(a, Asked::Commit(_) | Asked::Lead)) {
            return;
        }
        self.govern(&lease, now);
        self.hand_over(&lease, now);
    }

    /// Asks all peers, where the store has not answered for three beats.
    fn seek_vouchers(&mut self, lease: &Lease, now: u64) {
        let times = self.config.times;
        let silent = now >= lease.kept + 3 * times.beat();
        let fresh = |r: &Round| now < r.sent + times.beat();
        if !silent || self.round.as_ref().is_some_and(fresh) {
            return;
        }
        let (Some(me), Some(table)) = (self.id(), &self.table) else {
            return;
        };
        let peers: Vec<Machine> = (0u16..)
            .zip(&table.nodes)
            .filter(|(id, n)| n.alive && NodeId(*id) != me)
            .map(|(_, n)| n.clone())
            .collect();
        self.next += 1;
        let ask = Ask {
            from: self.config.name.clone(),
            life: lease.life,
            version: table.version,
            ttl: times.ttl,
        };
        let version = table.version;
        let round = Round::new(self.next, now, version, &peers);
        for peer in peers {
            self.out.push(Action::Vouch(self.next, peer, ask.clone()));
        }
        let id = round.id;
        let alone = round.done();
        self.round = Some(round);
        if alone {
            // The only living node of the table: nobody else may change it.
            let none = Answer {
                life: 0,
                version,
                refused: None,
            };
            self.vouched(id, "", &none, now);
            self.next += 1;
            self.round = Some(Round::waiting(self.next, now));
        }
    }

    /// Whether this node may compute tables: see the last part of [`crate::vouch`].
    fn eligible(&self, now: u64) -> bool {
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
    fn govern(&mut self, lease: &Lease, now: u64) {
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
        let change = lead::next(&self.view, self.config.buckets, may_take);
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
            guard.absent.clear();
        }
        self.ask(Request::Commit { at, guard, table }, Asked::Commit(at));
    }

    /// The owner's work: one batch of buckets to one node at a time.
    fn hand_over(&mut self, lease: &Lease, now: u64) {
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
        });
    }

    /// Puts back what the table means for another node by now, or what the receiver may have forgotten.
    fn drop_unwanted(&mut self, table: &Table, now: u64) {
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

    fn commit_moved(&mut self, lease: &Lease, me: NodeId, table: Table, at: u64, now: u64) {
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

    /// Tells the end of the right to act, where it changed or passed.
    fn tell(&mut self, now: u64) {
        let right = if self.id().is_some() && !self.leaving {
            self.until
        } else {
            0
        };
        if right != self.told {
            self.told = right;
            self.out.push(Action::Until(right));
        }
        let going = now < right;
        if going != self.going {
            self.going = going;
            self.log(now, if going { What::Go } else { What::Stop }, None);
        }
    }
}
