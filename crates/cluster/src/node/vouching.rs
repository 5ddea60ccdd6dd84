//! Nodes without an answer of the store: what this one asks of others, and what it promises to them.

use super::{Action, Lease, Node};
use crate::log::What;
use crate::table::{Node as Machine, NodeId};
use crate::vouch::{Answer, Ask, Round};

impl Node {
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

    pub(super) fn vouch_refusal(&self, ask: &Ask, version: u64, now: u64) -> Option<&'static str> {
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
        if self.changes() {
            return Some("a change of the table is under way");
        }
        None
    }

    pub(super) fn vouched(&mut self, id: u64, by: &str, answer: &Answer, now: u64) {
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
            if !self.weak.own_change {
                // As its peers, it changes nothing meanwhile: what it admits could take its buckets over.
                self.promised = self.promised.max(sent.saturating_add(times.ttl));
            }
            self.log(now, What::Vouched, None);
        }
    }

    /// Asks all peers, where the store has not answered for three beats.
    pub(super) fn seek_vouchers(&mut self, lease: &Lease, now: u64) {
        let times = self.config.times;
        let silent = now >= lease.kept + 3 * times.beat();
        let fresh = |r: &Round| now < r.sent + times.beat();
        if !silent || self.round.as_ref().is_some_and(fresh) {
            return;
        }
        if self.changes() && !self.weak.own_change {
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
}
