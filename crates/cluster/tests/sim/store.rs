//! The store of the simulation: as etcd does, leases run by its own clock, survive an outage, and last their full time again after it. Other programs
//! may write to its keys.

use std::collections::BTreeMap;

use millrace_cluster::Table;
use millrace_cluster::store::{Foreign, Guard, Member, Reply, Request, View};

/// A key and what stands in it: the revisions at which it was made and written, and its lease; 0: none.
struct Key<T> {
    made: u64,
    written: u64,
    lease: i64,
    value: T,
}

#[derive(Default)]
pub struct Store {
    revision: u64,
    pub table: Option<(Table, u64)>,
    /// by lease: its end, its length in seconds
    leases: BTreeMap<i64, (u64, u64)>,
    /// by name
    members: BTreeMap<String, Key<Member>>,
    leader: Option<Key<(String, u64)>>,
    /// all tables that were ever written
    pub history: Vec<Table>,
}

const SECOND: u64 = millrace_cluster::SECOND;

impl Store {
    /// Ends leases at `now`; whether a key went with one.
    pub fn expire(&mut self, now: u64) -> bool {
        self.leases.retain(|_, (end, _)| now < *end);
        let lives = |lease: i64| lease == 0 || self.leases.contains_key(&lease);
        let before = self.members.len() + usize::from(self.leader.is_some());
        self.members.retain(|_, key| lives(key.lease));
        self.leader.take_if(|key| !lives(key.lease));
        before != self.members.len() + usize::from(self.leader.is_some())
    }

    /// After an outage, all leases last as long again.
    pub fn recover(&mut self, now: u64) {
        for (end, ttl) in self.leases.values_mut() {
            *end = now + *ttl * SECOND;
        }
    }

    /// Another program removes a node's key.
    pub fn erase(&mut self, name: &str) {
        self.members.remove(name);
    }

    /// Another program writes what stands in a node's key, and in the leader's, once more, without a lease.
    pub fn strip(&mut self, name: &str, leader: bool) {
        self.revision += 1;
        if let Some(key) = self.members.get_mut(name) {
            (key.lease, key.written) = (0, self.revision);
        }
        if let Some(key) = self.leader.as_mut().filter(|_| leader) {
            (key.lease, key.written) = (0, self.revision);
        }
    }

    fn leader(&self) -> Option<(String, u64)> {
        let led = self.leader.as_ref().filter(|key| key.lease != 0);
        led.map(|key| key.value.clone())
    }

    fn holds(&self, guard: &Guard) -> bool {
        let made = |name: &str| self.members.get(name).map_or(0, |key| key.made);
        let written = |name: &str| self.members.get(name).map_or(0, |key| key.written);
        let leader = self.leader.as_ref().map(|key| &key.value);
        guard.present.iter().all(|(n, life)| made(n) == *life)
            && guard.unclaimed.iter().all(|(n, at)| written(n) == *at)
            && (guard.leader.is_none() || guard.leader.as_ref() == leader)
    }

    fn view(&self) -> View {
        let keys = self.members.values();
        let members: Vec<Member> = keys
            .clone()
            .filter(|key| key.lease != 0)
            .map(|key| Member {
                life: key.made,
                lease: key.lease,
                ..key.value.clone()
            })
            .collect();
        let foreign = keys.filter(|key| key.lease == 0).map(|key| Foreign {
            key: format!("members/{}", key.value.name),
            why: "it has no lease".into(),
            at: key.written,
        });
        let nodes = self.table.iter().flat_map(|(table, _)| &table.nodes);
        let asked = nodes.filter(|n| n.alive && !members.iter().any(|m| m.lease == n.lease));
        View {
            table: self.table.clone(),
            ended: asked
                .map(|n| n.lease)
                .filter(|lease| !self.leases.contains_key(lease))
                .collect(),
            foreign: foreign.collect(),
            leader: self.leader(),
            members,
        }
    }

    pub fn perform(&mut self, request: &Request, now: u64) -> Reply {
        self.expire(now);
        match request {
            Request::Join { member, ttl } => {
                if self.members.get(&member.name).is_some_and(|k| k.lease != 0) {
                    return Reply::Taken;
                }
                self.revision += 1;
                let life = self.revision;
                let lease = i64::try_from(life).expect("small");
                self.leases.insert(lease, (now + ttl * SECOND, *ttl));
                let key = Key {
                    made: life,
                    written: life,
                    lease,
                    value: member.clone(),
                };
                self.members.insert(member.name.clone(), key);
                Reply::Joined {
                    lease,
                    life,
                    ttl: *ttl,
                }
            }
            Request::Renew { member } => {
                let key = self.members.get_mut(&member.name);
                let key = key.filter(|key| key.made == member.life);
                let Some(key) = key.filter(|_| self.leases.contains_key(&member.lease)) else {
                    return Reply::Gone;
                };
                self.revision += 1;
                (key.written, key.lease) = (self.revision, member.lease);
                Reply::Committed(self.revision)
            }
            Request::Keep { lease } => match self.leases.get_mut(lease) {
                Some((end, ttl)) => {
                    *end = now + *ttl * SECOND;
                    Reply::Kept { ttl: *ttl }
                }
                None => Reply::Gone,
            },
            Request::Read => Reply::Viewed(self.view()),
            Request::Lead { lease, me } => {
                if self.leader().is_none() && self.leases.contains_key(lease) {
                    self.revision += 1;
                    self.leader = Some(Key {
                        made: self.revision,
                        written: self.revision,
                        lease: *lease,
                        value: me.clone(),
                    });
                }
                Reply::Led
            }
            Request::Commit { at, guard, table } => {
                let is = self.table.as_ref().map_or(0, |t| t.1);
                if is != *at || !self.holds(guard) {
                    return Reply::Conflict;
                }
                self.revision += 1;
                self.table = Some((table.clone(), self.revision));
                self.history.push(table.clone());
                Reply::Committed(self.revision)
            }
            Request::Leave { lease } => {
                self.leases.remove(lease);
                self.expire(now);
                Reply::Gone
            }
        }
    }
}
