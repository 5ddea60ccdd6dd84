//! One worker of a run over captures: its state, and what it does with a window's packets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

use super::window::{Batch, Kept, Part, Step};
use crate::clock::Rate;
use crate::mailbox::{Desk, Mailbox, Order};
use crate::module::Instance;
use crate::place::pin;
use crate::runner::IDLE;
use crate::runner::tally::{Tally, count};
use crate::share::{self, Share};

/// What somebody outside has asked for, by whichever worker heard it.
#[derive(Default)]
pub struct Orders(AtomicU8);

impl Orders {
    fn give(&self, order: Order) {
        // A stop is more than a drain.
        self.0.fetch_max(order as u8 + 1, Ordering::Relaxed);
    }

    /// What was asked for so far.
    pub fn get(&self) -> Option<Order> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            n if n == Order::Drain as u8 + 1 => Some(Order::Drain),
            _ => Some(Order::Stop),
        }
    }
}

/// A worker.
pub struct Worker {
    /// its state
    pub instance: Instance,
    /// what it has counted
    pub tally: Tally,
    pub(super) program: usize,
    pub(super) prefetch: bool,
    pub(super) ports: u32,
    pub(super) has_records: bool,
    pub(super) reasons: Arc<Vec<String>>,
    pub(super) mailbox: Option<Arc<Mailbox>>,
    pub(super) orders: Arc<Orders>,
    pub(super) cpu: Option<usize>,
    /// ns
    pub(super) clock: u64,
    /// the last packet's number
    pub(super) last: u64,
    /// how many firings of maps' timers the tally has
    pub(super) alarms: u64,
    pub(super) rate: Rate,
    /// records that came out outside of a window
    pub records: Vec<Kept>,
    /// the objects that are divided, and how often each was found full
    pub(super) divided: Vec<(usize, u64)>,
    /// how objects stand on the workers, in the module's order
    pub(super) shares: Arc<[Share]>,
}

impl Worker {
    /// Works until nothing more comes; gives itself back.
    pub fn work(mut self, work: &Receiver<Batch>, done: &Sender<Batch>) -> Self {
        if let Some(cpu) = self.cpu {
            pin(cpu);
        }
        self.instance.start(self.clock);
        share::begin(&mut self.instance, &self.shares, self.clock);
        self.drain();
        loop {
            self.attend();
            match work.recv_timeout(IDLE) {
                Ok(mut batch) => {
                    self.process(&mut batch);
                    if done.send(batch).is_err() {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // Other workers' packets may have come later than the last of this one's.
        self.instance.alarm(self.clock);
        self.count_alarms();
        self.instance.stop(self.clock);
        self.drain();
        self
    }

    fn process(&mut self, batch: &mut Batch) {
        for step in &mut batch.steps {
            match step {
                Step::Fire { timer, moment } => {
                    let fired = self.instance.fire(*timer, *moment);
                    self.tally.account.timers_fired += u64::from(fired);
                }
                Step::Burst(burst, leaves) => {
                    let took = self.instance.burst(self.program, self.prefetch, burst);
                    self.tally.burst(took, burst.len() as u64);
                    self.count_alarms();
                    leaves.clear();
                    for index in 0..burst.len() {
                        let Some(packet) = burst.outcome(index) else {
                            continue;
                        };
                        let arrival = packet.arrival;
                        self.tally.account.came(arrival.port, packet.came);
                        self.clock = arrival.time;
                        self.last = arrival.number;
                        leaves.push(self.tally.settle(&packet, self.ports));
                    }
                    self.drain();
                }
            }
        }
        batch.records.append(&mut self.records);
        self.clock = self.clock.max(batch.clock);
        for (object, seen) in &mut self.divided {
            let full = self.instance.full(*object).unwrap_or(0);
            let more = full.saturating_sub(std::mem::replace(seen, full));
            self.tally.worker.full += more;
            batch.parts.push(Part {
                full: more,
                entries: if batch.count {
                    self.instance.count(*object, self.clock)
                } else {
                    None
                },
            });
        }
    }

    fn count_alarms(&mut self) {
        let fired = self.instance.alarms_fired();
        self.tally.account.timers_fired += fired.saturating_sub(self.alarms);
        self.alarms = fired;
    }

    fn drain(&mut self) {
        if !self.has_records {
            return;
        }
        let (after, time, records) = (self.last, self.clock, &mut self.records);
        let before = records.len();
        self.instance.drain(|record| {
            records.push(Kept {
                after,
                time,
                record,
            });
        });
        let objects = self.instance.module().objects();
        for kept in records.iter().skip(before) {
            let name = objects
                .get(kept.record.object)
                .map_or("", |o| o.name.as_str());
            count(&mut self.tally.account.records, name);
        }
    }

    /// Does what was asked for from outside; mostly there is nothing, which costs one load.
    fn attend(&mut self) {
        let Some(mailbox) = self.mailbox.clone() else {
            return;
        };
        for job in mailbox.take() {
            let (tally, reasons, rate) = (&self.tally, &self.reasons, &self.rate);
            let mut desk = Desk {
                instance: Some(&mut self.instance),
                chain: None,
                others: Vec::new(),
                now: self.clock,
                account: &|| tally.account(reasons, rate),
                order: None,
            };
            job(&mut desk);
            if let Some(order) = desk.order {
                self.orders.give(order);
            }
        }
    }
}
