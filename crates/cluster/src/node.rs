//! A node of a cluster as a state machine: no sockets, no clocks, no threads.
//!
//! [`Node::step`] takes an event and the time and returns what to do. [`crate::Membership`] drives it with a store, a machine and peers; the
//! simulation of the tests drives the same code with seeded faults.
//!
//! # Ownership
//! A node accepts packets of a bucket while (a) its table names it as the owner, in its present life, (b) its right to act has not ended by its own
//! monotonic clock, and (c) the bucket is with its machine. The right lasts `ttl - margin` from the *sending* of the last keepalive that the store
//! answered. The store counts the lease from the arrival of that keepalive, and the leader takes buckets over only in a transaction that compares
//! that the node's key is gone, once the lease has ended. So the node has stopped `margin` before, unless its clock runs slower than the store's by more than `margin / ttl`.
//!
//! # Where the store is away
//! A node cannot tell a store that is away for all from one that is away for it. It asks its peers ([`crate::vouch`]).
//!
//! # Hand-over
//! The owner takes a bucket's entries out, sends them, and commits `owners[bucket]` by compare-and-swap; the receiver accepts under the new table
//! only. Where the outcome of a commit is not known, the bucket is held until a read tells.

mod adopting;
mod handing;
mod leading;
mod vouching;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::log::{Author, Entry, What};
use crate::machine::Place;
use crate::moving::{Moving, Stage, Taken};
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
        /// all that are to go to some node by now, these among them: see [`crate::Machine::foresee`]
        soon: Vec<u32>,
    },
    /// See [`crate::Machine::settle`].
    Settle(u32, Place, Option<Vec<u8>>),
    /// See [`crate::Machine::inherit`]: the bucket, and the node of whose bucket this one has a copy, in its life.
    Inherit(u32, String, u64),
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
    /// it keeps copies of others' buckets, and has others keep copies of its own
    pub copies: bool,
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
    /// a node whose key is away is taken for dead, whatever its lease
    pub keys: bool,
    /// a node that is vouched for may have changed the table itself
    pub own_change: bool,
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
    Renew,
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
    /// the own key is not put again before
    renew_at: u64,
    /// the table is not changed before, as the store has refused that
    govern_at: u64,
    /// why it has, which is said once
    refusal: String,
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
            renew_at: 0,
            govern_at: 0,
            refusal: String::new(),
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

    fn ask(&mut self, request: Request, asked: Asked) {
        self.next += 1;
        if matches!(asked, Asked::Commit(_)) && !self.weak.own_change {
            // Peers were asked about the table before it.
            self.round = None;
        }
        self.asked.insert(self.next, asked);
        self.out.push(Action::Ask(self.next, request));
    }

    /// Whether a change of the table by this node may be done that it does not know of.
    fn changes(&self) -> bool {
        self.unsure.is_some() || self.pending(|a| matches!(a, Asked::Commit(_)))
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
        if let Reply::Failed(why) = &reply {
            self.say_once(why.clone());
        }
        match (asked, reply) {
            (Asked::Join(sent), Reply::Joined { lease, life, ttl }) => {
                // What is read by now may be older than the key.
                self.asked.retain(|_, asked| *asked != Asked::Read);
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
                self.say_once(format!(
                    "another process has a lease as node '{name}': waiting for its end"
                ));
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
            (Asked::Renew, Reply::Gone) if self.lease.is_some() => {
                self.out.push(Action::Say(
                    "this node's key in the store was removed, or is another's: it joins anew"
                        .into(),
                ));
                // Nothing prolongs the lease any more. Until it has ended nobody takes these buckets.
                self.fall_out(now);
            }
            (Asked::Read, Reply::Viewed(view)) => {
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

    /// Says what is wrong with the store, unless that was said last.
    fn say_once(&mut self, why: String) {
        if why != self.trouble {
            self.trouble.clone_from(&why);
            self.out.push(Action::Say(why));
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

    fn committed(&mut self, at: u64, reply: &Reply, now: u64) {
        match reply {
            Reply::Failed(_) => self.unsure = Some(at),
            Reply::Refused(why) => {
                self.govern_at = now + self.config.times.beat();
                let words = format!("the table cannot be changed, and no bucket moves: {why}");
                if self.refusal != words {
                    self.refusal.clone_from(&words);
                    self.out.push(Action::Say(words));
                }
            }
            _ => self.refusal.clear(),
        }
        self.read(now, true);
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
                let member = self.member(0, 0);
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
        if now < self.govern_at {
            return;
        }
        self.govern(&lease, now);
        self.hand_over(&lease, now);
    }

    fn member(&self, life: u64, lease: i64) -> Member {
        Member {
            name: self.config.name.clone(),
            peer: self.config.peer,
            life,
            lease,
            copies: self.config.copies,
            stays: None,
        }
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
