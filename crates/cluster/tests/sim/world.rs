//! A cluster in simulated time: nodes, their machines and clocks, a network between them, a store, packets, and faults of a seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use millrace_cluster::store::{Reply, Request};
use millrace_cluster::vouch::{Answer, Ask};
use millrace_cluster::{
    Action, Agreement, Config, Entry, Event, NodeId, Outcome, Place, SECOND, Standing, Table,
    Times, Verdict, Weakened, What,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::store::Store;

pub const MS: u64 = 1_000_000;
pub const BUCKETS: u32 = 16;
pub const TTL: u64 = 2;
/// A request to the store without an answer has failed.
const TIMEOUT: u64 = 400 * MS;

/// The variant under test, the first being the real one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Variant {
    pub weak: Weakened,
    /// a receiver accepts packets of what it has taken, before the table names it
    pub early: bool,
    /// a forwarded packet is accepted without a look at the own table
    pub trusting: bool,
    /// workers do not look at the lease
    pub no_lease: bool,
}

enum Ev {
    Tick,
    Event(Event),
    /// a worker has a packet of a bucket, forwarded under a version
    Packet(u32, Option<u64>),
    /// a burst is processed: looks again, then acts
    Act(u32, u64),
    /// what was decided takes place
    Effect(u32, u64, u64),
    /// mover: goes on with the bucket at this place of the list
    Give(u64, u64, String, Vec<u32>, Vec<(u32, Outcome)>),
    Hand(u64, u64, String, Vec<u32>, Vec<(u32, Outcome)>, u64),
    Asked(usize, u64, u64, Ask),
    /// a row of a node's bucket, in its life, has come to the node that keeps a copy: what the bucket holds by then
    Row(String, u64, u32, u64),
}

struct Item {
    at: u64,
    seq: u64,
    node: usize,
    /// of the process that it is for; none: whatever process runs
    process: Option<u64>,
    ev: Ev,
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.seq) == (other.at, other.seq)
    }
}
impl Eq for Item {}
impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Item {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.seq).cmp(&(other.at, other.seq))
    }
}

/// A bucket in a machine: how many packets it has seen, which stands for its state.
#[derive(Clone, Copy, Default)]
struct Bucket {
    here: bool,
    held: bool,
    taken: bool,
    entries: u64,
    /// bursts between look and effect
    inside: u32,
}

pub struct Host {
    pub name: String,
    pub agreement: Option<Agreement>,
    process: u64,
    standing: Option<Standing>,
    table: Option<Table>,
    until: u64,
    machine: Vec<Bucket>,
    paused: u64,
    /// local time is `base + (now - since) * rate / 1e6`
    base: u64,
    since: u64,
    rate: u64,
    /// reaches the store
    store: bool,
    /// the next burst is interrupted by a pause, between its last look and its effect
    interrupt: Option<(u64, bool)>,
    /// refuses all buckets
    full: bool,
    /// of others' buckets, by the owner, its life and the bucket
    copies: BTreeMap<(String, u64, u32), u64>,
}

impl Host {
    fn clock(&self, now: u64) -> u64 {
        self.base + now.saturating_sub(self.since) / 1000 * self.rate / 1000
    }

    fn set_clock(&mut self, now: u64, base: u64) {
        (self.base, self.since) = (base, now);
    }
}

#[derive(Default, Debug)]
pub struct Seen {
    pub accepted: u64,
    /// effects of bursts that a pause longer than the margin interrupted
    pub late: u64,
    pub moves: u64,
    pub takeovers: u64,
    pub vouched: u64,
    pub stops: u64,
    pub lost_state: Vec<String>,
    /// buckets that a copy went on with, and packets of which it knew nothing
    pub inherited: u64,
    pub behind: u64,
}

pub struct World {
    pub now: u64,
    seq: u64,
    queue: BinaryHeap<Reverse<Item>>,
    rng: ChaCha8Rng,
    pub hosts: Vec<Host>,
    pub store: Store,
    store_away: bool,
    /// commits that an outage caught, done after it
    caught: Vec<(Request, u64)>,
    cut: Vec<Vec<bool>>,
    variant: Variant,
    pub log: Vec<Entry>,
    pub seen: Seen,
    expected: BTreeMap<u32, u64>,
    lossy: Vec<bool>,
    histories: usize,
    pub packets: bool,
    /// nodes keep copies of each other's buckets
    pub copies: bool,
    /// by bucket: the packets in flight to the copy when it was taken over, and what it lacked of all that were accepted
    pub lacked: Vec<u64>,
}

pub fn times() -> Times {
    Times {
        alone: 20 * SECOND,
        ..Times::of_lease(TTL)
    }
}

impl World {
    pub fn new(seed: u64, nodes: usize, variant: Variant) -> Self {
        let mut world = Self {
            now: SECOND,
            seq: 0,
            queue: BinaryHeap::new(),
            rng: ChaCha8Rng::seed_from_u64(seed),
            hosts: Vec::new(),
            store: Store::default(),
            store_away: false,
            caught: Vec::new(),
            cut: vec![vec![false; nodes]; nodes],
            variant,
            log: Vec::new(),
            seen: Seen::default(),
            expected: BTreeMap::new(),
            lossy: vec![true; BUCKETS as usize],
            histories: 0,
            packets: true,
            copies: !seed.is_multiple_of(3),
            lacked: Vec::new(),
        };
        for at in 0..nodes {
            let base = world.rng.random_range(0..1000 * SECOND);
            // Clocks run up to 1 % fast or slow: a hundred times what quartz does.
            let rate = world.rng.random_range(990_000..=1_010_000);
            world.hosts.push(Host {
                name: format!("n{at}"),
                agreement: None,
                process: 0,
                standing: None,
                table: None,
                until: 0,
                machine: vec![Bucket::default(); BUCKETS as usize],
                paused: 0,
                base,
                since: SECOND,
                rate,
                store: true,
                interrupt: None,
                full: false,
                copies: BTreeMap::new(),
            });
        }
        world
    }

    pub fn draw(&mut self, below: u64) -> u64 {
        self.rng.random_range(0..below)
    }

    fn push(&mut self, delay: u64, node: usize, process: Option<u64>, ev: Ev) {
        self.seq += 1;
        self.queue.push(Reverse(Item {
            at: self.now + delay,
            seq: self.seq,
            node,
            process,
            ev,
        }));
    }

    // Faults.

    pub fn start(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        if host.agreement.is_some() {
            return;
        }
        host.process += 1;
        host.machine = vec![Bucket::default(); BUCKETS as usize];
        host.copies.clear();
        (host.standing, host.table, host.until, host.paused) = (None, None, 0, 0);
        let mut agreement = Agreement::new(Config {
            name: host.name.clone(),
            peer: ([10, 0, 0, node as u8 + 1], 4800).into(),
            buckets: BUCKETS,
            times: times(),
            batch: 4,
            copies: self.copies,
        });
        agreement.weaken(self.variant.weak);
        host.agreement = Some(agreement);
        let process = Some(host.process);
        self.push(0, node, process, Ev::Tick);
        if self.packets {
            self.push(0, node, process, Ev::Packet(u32::MAX, None));
        }
    }

    pub fn kill(&mut self, node: usize) {
        self.hosts[node].agreement = None;
        self.hosts[node].process += 1;
    }

    pub fn leave(&mut self, node: usize) {
        let process = Some(self.hosts[node].process);
        self.push(0, node, process, Ev::Event(Event::Leave));
    }

    /// The process does not run for so long; its clock may stand still meanwhile.
    pub fn pause(&mut self, node: usize, ns: u64, clock_stands: bool) {
        let inside = self.draw(2) == 0;
        let host = &mut self.hosts[node];
        if inside && host.interrupt.is_none() && host.paused <= self.now {
            host.interrupt = Some((ns, clock_stands));
            return;
        }
        if host.paused > self.now {
            return;
        }
        host.paused = self.now + ns;
        if clock_stands {
            let base = host.clock(self.now);
            host.base = base;
            host.since = self.now + ns;
        }
    }

    /// The clock jumps ahead.
    pub fn jump(&mut self, node: usize, ns: u64) {
        let now = self.now;
        let host = &mut self.hosts[node];
        if host.since <= now {
            let base = host.clock(now) + ns;
            host.set_clock(now, base);
        }
    }

    pub fn cut_store(&mut self, node: usize, cut: bool) {
        self.hosts[node].store = !cut;
    }

    pub fn cut_peers(&mut self, a: usize, b: usize, cut: bool) {
        self.cut[a][b] = cut;
        self.cut[b][a] = cut;
    }

    /// Another program removes a node's key from the store, or writes it, and maybe the leader's, without a lease.
    pub fn tamper(&mut self, node: usize, erased: bool) {
        if self.store_away {
            return;
        }
        let name = self.hosts[node].name.clone();
        let leader = self.draw(2) == 0;
        match erased {
            true => self.store.erase(&name),
            false => self.store.strip(&name, leader),
        }
        self.watch();
    }

    pub fn set_full(&mut self, node: usize, full: bool) {
        self.hosts[node].full = full;
    }

    pub fn store_away(&mut self, away: bool) {
        if self.store_away && !away {
            self.store.recover(self.now);
            for (request, at) in std::mem::take(&mut self.caught) {
                if self.now >= at {
                    self.store.perform(&request, self.now);
                }
            }
            self.watch();
        }
        self.store_away = away;
    }

    pub fn heal(&mut self) {
        self.store_away(false);
        for a in 0..self.hosts.len() {
            self.hosts[a].store = true;
            self.hosts[a].full = false;
            for b in 0..self.hosts.len() {
                self.cut[a][b] = false;
            }
        }
        for node in 0..self.hosts.len() {
            self.start(node);
        }
    }

    pub fn drain(&mut self, node: usize, drained: bool) {
        let Some((mut table, at)) = self.store.table.clone() else {
            return;
        };
        let name = self.hosts[node].name.clone();
        if self.store_away {
            return;
        }
        if let Some(n) = table.nodes.iter_mut().find(|n| n.name == name) {
            n.drained = drained;
            table.version += 1;
            let guard = Default::default();
            self.store
                .perform(&Request::Commit { at, guard, table }, self.now);
            self.watch();
        }
    }

    // Time.

    pub fn run(&mut self, ns: u64) {
        let end = self.now + ns;
        while self
            .queue
            .peek()
            .is_some_and(|Reverse(item)| item.at <= end)
        {
            let Some(Reverse(item)) = self.queue.pop() else {
                break;
            };
            self.now = item.at.max(self.now);
            if !self.store_away && self.store.expire(self.now) {
                self.watch();
            }
            self.dispatch(item);
        }
        self.now = end;
    }

    fn dispatch(&mut self, item: Item) {
        let node = item.node;
        let host = &self.hosts[node];
        if item.process.is_some_and(|p| p != host.process) || host.agreement.is_none() {
            return;
        }
        if self.now < host.paused {
            let at = host.paused;
            self.seq += 1;
            self.queue.push(Reverse(Item { at, ..item }));
            return;
        }
        let process = Some(host.process);
        match item.ev {
            Ev::Tick => {
                self.event(node, Event::Tick);
                self.push(60 * MS, node, process, Ev::Tick);
            }
            Ev::Event(event) => self.event(node, event),
            Ev::Packet(u32::MAX, _) => {
                let bucket = self.draw(u64::from(BUCKETS)) as u32;
                self.packet(node, bucket, None);
                let next = self.rng.random_range(5 * MS..30 * MS);
                self.push(next, node, process, Ev::Packet(u32::MAX, None));
            }
            Ev::Packet(bucket, stamp) => self.packet(node, bucket, stamp),
            Ev::Act(bucket, version) => self.act(node, bucket, version),
            Ev::Effect(bucket, version, looked) => self.effect(node, bucket, version, looked),
            Ev::Give(id, version, to, rest, done) => self.give(node, id, version, to, rest, done),
            Ev::Hand(id, version, to, rest, done, entries) => {
                self.hand(node, id, version, to, rest, done, entries);
            }
            Ev::Row(owner, life, bucket, entries) => {
                let copies = &mut self.hosts[node].copies;
                let had = copies.entry((owner, life, bucket)).or_default();
                // A stream keeps its order, which delays drawn apart do not.
                *had = entries.max(*had);
            }
            Ev::Asked(by, process, id, ask) => {
                let clock = host.clock(self.now);
                let name = host.name.clone();
                let agreement = self.hosts[node].agreement.as_mut();
                let Some(answer) = agreement.map(|a| a.vouch(&ask, clock)) else {
                    return;
                };
                let delay = self.latency();
                if !self.cut[node][by] {
                    let event = Event::Vouched(id, name, answer);
                    self.push(delay, by, Some(process), Ev::Event(event));
                }
            }
        }
    }

    fn event(&mut self, node: usize, event: Event) {
        let host = &mut self.hosts[node];
        let clock = host.clock(self.now);
        let Some(agreement) = host.agreement.as_mut() else {
            return;
        };
        let actions = agreement.step(event, clock);
        self.perform(node, actions);
    }

    fn latency(&mut self) -> u64 {
        if self.draw(20) == 0 {
            self.rng.random_range(MS..200 * MS)
        } else {
            self.rng.random_range(MS / 5..3 * MS)
        }
    }

    fn perform(&mut self, node: usize, actions: Vec<Action>) {
        for action in actions {
            let process = Some(self.hosts[node].process);
            match action {
                Action::Ask(id, request) => self.ask(node, id, request),
                Action::Publish(table) => {
                    let host = &mut self.hosts[node];
                    let me = table.named(&host.name);
                    if host.standing.is_none()
                        && let Some(me) = me
                    {
                        host.standing = Some(Standing::new(me, Table::empty(BUCKETS)));
                    }
                    if let Some(standing) = &host.standing {
                        standing.set_table(table.clone());
                        standing.set_until(host.until);
                    }
                    host.table = Some(table);
                }
                Action::Until(until) => {
                    let host = &mut self.hosts[node];
                    host.until = until;
                    if let Some(standing) = &host.standing {
                        standing.set_until(until);
                    }
                }
                Action::Move {
                    id,
                    version,
                    to,
                    buckets,
                    soon: _,
                } => {
                    let ev = Ev::Give(id, version, to.name, buckets, Vec::new());
                    self.push(MS / 10, node, process, ev);
                }
                Action::Settle(bucket, place, back) => {
                    let b = &mut self.hosts[node].machine[bucket as usize];
                    b.held = false;
                    b.taken = false;
                    b.here = place == Place::Here;
                    if let Some(back) = back {
                        b.entries = u64::from_le_bytes(back.try_into().expect("8 bytes"));
                    }
                    if !b.here {
                        b.entries = 0;
                    }
                }
                Action::Inherit(bucket, from, life) => self.inherit(node, bucket, from, life),
                Action::Forget(bucket) => {
                    let b = &mut self.hosts[node].machine[bucket as usize];
                    *b = Bucket {
                        inside: b.inside,
                        ..Bucket::default()
                    };
                }
                Action::Vouch(id, to, ask) => {
                    let to = self.host(&to.name);
                    let delay = self.latency();
                    if !self.cut[node][to] {
                        let from = self.hosts[node].process;
                        self.push(delay, to, None, Ev::Asked(node, from, id, ask));
                    } else {
                        let name = self.hosts[to].name.clone();
                        let answer = Answer {
                            life: 0,
                            version: 0,
                            refused: Some("not there".into()),
                        };
                        let event = Event::Vouched(id, name, answer);
                        self.push(TIMEOUT, node, process, Ev::Event(event));
                    }
                }
                Action::Log(mut entry) => {
                    entry.t = self.now;
                    match entry.event {
                        What::Vouched => self.seen.vouched += 1,
                        What::Stop => self.seen.stops += 1,
                        _ => {}
                    }
                    self.log.push(entry);
                }
                Action::Say(_) => {}
                Action::Stop(why) => panic!("{} stops: {why}", self.hosts[node].name),
                Action::Left => self.kill(node),
            }
        }
    }

    fn host(&self, name: &str) -> usize {
        let at = self.hosts.iter().position(|h| h.name == name);
        at.expect("a node of the simulation")
    }

    fn ask(&mut self, node: usize, id: u64, request: Request) {
        let process = Some(self.hosts[node].process);
        let there = self.latency();
        let back = self.latency();
        let lost = self.draw(100);
        let reachable = self.hosts[node].store && !self.store_away;
        let reply = |reply| Ev::Event(Event::Reply(id, reply));
        let commit = matches!(request, Request::Commit { .. });
        // The request is done at once, and its way there and back is in the delay of the answer; a late one is done by the next outage's end or by
        // a commit that waits.
        if !reachable || lost < 2 {
            if commit && self.draw(2) == 0 {
                let at = self.now + self.rng.random_range(0..3 * SECOND);
                self.caught.push((request, at));
            }
            self.push(TIMEOUT, node, process, reply(Reply::Failed("away".into())));
            return;
        }
        let answer = self.store.perform(&request, self.now);
        if !matches!(request, Request::Read | Request::Keep { .. }) {
            self.watch();
        }
        if lost < 4 {
            self.push(TIMEOUT, node, process, reply(Reply::Failed("lost".into())));
        } else {
            self.push(there + back, node, process, reply(answer));
        }
    }

    /// Commits on their way that are done now, watchers, and what the new tables lost.
    fn watch(&mut self) {
        if !self.store_away {
            for (request, at) in std::mem::take(&mut self.caught) {
                if self.now >= at {
                    self.store.perform(&request, self.now);
                } else {
                    self.caught.push((request, at));
                }
            }
        }
        while self.histories < self.store.history.len() {
            let new = &self.store.history[self.histories];
            if let Some(old) = self.histories.checked_sub(1) {
                let old = &self.store.history[old];
                for bucket in 0..BUCKETS {
                    let was = old.owner(bucket);
                    let life = |t: &Table| was.and_then(|id| t.node(id)).map(|n| n.life);
                    let dead = was.and_then(|id| new.node(id)).is_none_or(|n| !n.alive);
                    if dead || life(old) != life(new) {
                        self.lossy[bucket as usize] = true;
                        self.seen.takeovers += 1;
                    } else if was != new.owner(bucket) {
                        self.seen.moves += 1;
                    }
                }
            }
            self.histories += 1;
        }
        for node in 0..self.hosts.len() {
            // A watch is a hint: it may be lost.
            if self.hosts[node].store && self.draw(10) > 0 {
                let delay = self.latency();
                self.push(delay, node, None, Ev::Event(Event::Changed));
            }
        }
    }

    // The data plane.

    fn packet(&mut self, node: usize, bucket: u32, stamp: Option<u64>) {
        let host = &self.hosts[node];
        let (clock, process) = (host.clock(self.now), Some(host.process));
        let b = host.machine[bucket as usize];
        let Some(standing) = &host.standing else {
            return;
        };
        if let Some(stamp) = stamp
            && self.variant.trusting
        {
            return self.look(node, bucket, stamp);
        }
        if self.variant.early && b.taken {
            let version = standing.version();
            return self.look(node, bucket, version);
        }
        let clock = if self.variant.no_lease { 0 } else { clock };
        match standing.judge(bucket, stamp, clock) {
            Verdict::Accept { version } if b.here && !b.held => self.look(node, bucket, version),
            Verdict::Forward { to, version } => self.forward(node, to, bucket, version),
            Verdict::Stale => self.push(0, node, process, Ev::Event(Event::Changed)),
            _ => {}
        }
    }

    fn forward(&mut self, node: usize, to: NodeId, bucket: u32, version: u64) {
        let name = self.hosts[node].table.as_ref().and_then(|t| t.node(to));
        let Some(name) = name.map(|n| n.name.clone()) else {
            return;
        };
        let to = self.host(&name);
        if !self.cut[node][to] {
            let delay = self.latency();
            self.push(delay, to, None, Ev::Packet(bucket, Some(version)));
        }
    }

    /// The first look: the burst is processed, then looks again.
    fn look(&mut self, node: usize, bucket: u32, version: u64) {
        let process = Some(self.hosts[node].process);
        self.hosts[node].machine[bucket as usize].inside += 1;
        let delay = self.draw(MS / 10);
        self.push(delay, node, process, Ev::Act(bucket, version));
    }

    fn act(&mut self, node: usize, bucket: u32, version: u64) {
        let host = &self.hosts[node];
        let process = Some(host.process);
        let checked = !self.variant.trusting && !self.variant.early && !self.variant.no_lease;
        if checked
            && let Some(standing) = &host.standing
            && (!standing.holds(host.clock(self.now)) || standing.version() != version)
        {
            self.hosts[node].machine[bucket as usize].inside -= 1;
            return;
        }
        // Between the look and what it allows the process may be paused.
        let delay = self.draw(MS / 50);
        self.push(delay, node, process, Ev::Effect(bucket, version, self.now));
        if let Some((ns, stands)) = self.hosts[node].interrupt {
            self.pause(node, ns, stands);
            self.hosts[node].interrupt = None;
        }
    }

    fn effect(&mut self, node: usize, bucket: u32, version: u64, looked: u64) {
        let b = &mut self.hosts[node].machine[bucket as usize];
        b.inside -= 1;
        b.entries += 1;
        let entries = b.entries;
        let late = self.now - looked > times().margin / 2;
        self.row(node, bucket, entries);
        self.seen.accepted += 1;
        self.log.push(Entry {
            t: if late { looked } else { self.now },
            node: self.hosts[node].name.clone(),
            event: What::Accept,
            bucket: Some(bucket),
            version,
        });
        if late {
            self.seen.late += 1;
            self.lossy[bucket as usize] = true;
            return;
        }
        let expected = self.expected.entry(bucket).or_default();
        *expected += 1;
        if *expected != entries {
            if !self.lossy[bucket as usize] {
                self.seen.lost_state.push(format!(
                    "bucket {bucket} of n{node} at {} ns, version {version}: {entries} packets in its state, {expected} were accepted",
                    self.now
                ));
            }
            *expected = entries;
            self.lossy[bucket as usize] = false;
        }
    }

    // Copies.

    /// Tells the node that keeps a copy of a bucket what it holds.
    fn row(&mut self, node: usize, bucket: u32, entries: u64) {
        let host = &self.hosts[node];
        let Some(table) = &host.table else { return };
        let me = table.named(&host.name).and_then(|id| table.node(id));
        let to = table.standby(bucket).and_then(|id| table.node(id));
        let Some((me, to)) = me.zip(to) else { return };
        let (row, to) = (
            Ev::Row(me.name.clone(), me.life, bucket, entries),
            to.name.clone(),
        );
        let to = self.host(&to);
        if to != node && !self.cut[node][to] && self.hosts[to].agreement.is_some() {
            let process = Some(self.hosts[to].process);
            let delay = self.latency();
            self.push(delay, to, process, row);
        }
    }

    /// A node goes on with its copy of another one's bucket.
    fn inherit(&mut self, node: usize, bucket: u32, from: String, life: u64) {
        let copy = self.hosts[node].copies.remove(&(from, life, bucket));
        let b = &mut self.hosts[node].machine[bucket as usize];
        assert!(!b.here, "bucket {bucket} of n{node} is here already");
        (b.entries, b.taken) = (copy.unwrap_or(0), true);
        let entries = b.entries;
        let accepted = self.expected.get(&bucket).copied().unwrap_or(0);
        self.seen.inherited += 1;
        // More may be there by packets of bursts that a pause interrupted, which are not counted.
        self.lacked.push(accepted.saturating_sub(entries));
        self.seen.behind += accepted.saturating_sub(entries);
    }

    // Hand-overs.

    fn give(
        &mut self,
        node: usize,
        id: u64,
        version: u64,
        to: String,
        mut rest: Vec<u32>,
        done: Vec<(u32, Outcome)>,
    ) {
        let process = Some(self.hosts[node].process);
        let Some(bucket) = rest.pop() else {
            return self.event(node, Event::Moved(id, done));
        };
        let b = &mut self.hosts[node].machine[bucket as usize];
        b.held = true;
        if b.inside > 0 {
            rest.push(bucket);
            return self.push(
                MS / 10,
                node,
                process,
                Ev::Give(id, version, to, rest, done),
            );
        }
        let entries = std::mem::take(&mut b.entries);
        rest.push(bucket);
        let (delay, peer) = (self.latency(), self.host(&to));
        if self.cut[node][peer] || self.hosts[peer].agreement.is_none() {
            let ev = Ev::Hand(id, version, to, rest, done, u64::MAX ^ entries);
            return self.push(TIMEOUT, node, process, ev);
        }
        self.push(
            delay,
            node,
            process,
            Ev::Hand(id, version, to, rest, done, entries),
        );
    }

    #[allow(clippy::too_many_arguments)]
    fn hand(
        &mut self,
        node: usize,
        id: u64,
        version: u64,
        to: String,
        mut rest: Vec<u32>,
        mut done: Vec<(u32, Outcome)>,
        entries: u64,
    ) {
        let process = Some(self.hosts[node].process);
        let bucket = rest.pop().expect("one was pushed");
        let absent = entries > u64::MAX / 2;
        let entries = if absent { u64::MAX ^ entries } else { entries };
        let bytes = entries.to_le_bytes().to_vec();
        let peer = self.host(&to);
        let now = self.now;
        let lost = self.draw(20) == 0;
        let host = &mut self.hosts[peer];
        let clock = host.clock(now);
        let answer = match &mut host.agreement {
            _ if absent || now < host.paused => Err("not there".to_owned()),
            None => Err("not there".to_owned()),
            Some(_) if host.full => Err("no room".to_owned()),
            Some(agreement) => agreement.may_take(bucket, version, clock).map(|()| {
                agreement.has_taken(bucket, version, clock);
                let b = &mut host.machine[bucket as usize];
                b.entries = entries;
                b.taken = true;
            }),
        };
        done.push((
            bucket,
            match answer {
                Ok(()) if !lost => Outcome::Handed(bytes),
                Ok(()) => Outcome::Refused(bytes, "no answer".into()),
                Err(why) => Outcome::Refused(bytes, why),
            },
        ));
        self.push(
            MS / 10,
            node,
            process,
            Ev::Give(id, version, to, rest, done),
        );
    }
}
