//! The store of the simulation: as etcd does, leases run by its own clock, survive an outage, and last their full time again after it.

use std::collections::BTreeMap;

use millrace_cluster::Table;
use millrace_cluster::store::{Guard, Member, Reply, Request, View};

#[derive(Default)]
pub struct Store {
    revision: u64,
    pub table: Option<(Table, u64)>,
    /// by lease: its end, its length in seconds, its member, whether it leads
    leases: BTreeMap<i64, (u64, u64, Member, bool)>,
    /// all tables that were ever written
    pub history: Vec<Table>,
}

const SECOND: u64 = millrace_cluster::SECOND;

impl Store {
    /// Ends leases at `now`.
    pub fn expire(&mut self, now: u64) -> bool {
        let before = self.leases.len();
        self.leases.retain(|_, (end, ..)| now < *end);
        before != self.leases.len()
    }

    /// After an outage, all leases last as long again.
    pub fn recover(&mut self, now: u64) {
        for (end, ttl, ..) in self.leases.values_mut() {
            *end = now + *ttl * SECOND;
        }
    }

    fn member(&self, name: &str) -> Option<&Member> {
        let mut all = self.leases.values();
        all.find(|(_, _, m, _)| m.name == name)
            .map(|(_, _, m, _)| m)
    }

    fn leader(&self) -> Option<(String, u64)> {
        let mut all = self.leases.values();
        all.find(|(.., leads)| *leads)
            .map(|(_, _, m, _)| (m.name.clone(), m.life))
    }

    fn holds(&self, guard: &Guard) -> bool {
        let life = |name: &str| self.member(name).map(|m| m.life);
        guard.present.iter().all(|(n, l)| life(n) == Some(*l))
            && guard.absent.iter().all(|n| life(n).is_none())
            && (guard.leader.is_none() || guard.leader == self.leader())
    }

    pub fn perform(&mut self, request: &Request, now: u64) -> Reply {
        self.expire(now);
        match request {
            Request::Join { member, .. } if self.member(&member.name).is_some() => Reply::Taken,
            Request::Join { member, ttl } => {
                self.revision += 1;
                let life = self.revision;
                let lease = i64::try_from(life).expect("small");
                let member = Member {
                    life,
                    ..member.clone()
                };
                let of = (now + ttl * SECOND, *ttl, member, false);
                self.leases.insert(lease, of);
                Reply::Joined {
                    lease,
                    life,
                    ttl: *ttl,
                }
            }
            Request::Keep { lease } => match self.leases.get_mut(lease) {
                Some((end, ttl, ..)) => {
                    *end = now + *ttl * SECOND;
                    Reply::Kept { ttl: *ttl }
                }
                None => Reply::Gone,
            },
            Request::Read => Reply::Viewed(View {
                table: self.table.clone(),
                members: self.leases.values().map(|l| l.2.clone()).collect(),
                leader: self.leader(),
                foreign: Vec::new(),
            }),
            Request::Lead { lease, .. } => {
                if self.leader().is_none()
                    && let Some(of) = self.leases.get_mut(lease)
                {
                    of.3 = true;
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
                Reply::Gone
            }
        }
    }
}
