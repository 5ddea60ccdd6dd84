//! What the account of a run over captures says once its workers have ended.

use std::collections::BTreeMap;

use super::Reader;
use super::worker::Worker;
use crate::account::{Account, Failure, ObjectAccount, WorkerAccount};
use crate::clock::Rate;
use crate::mailbox::Desk;
use crate::memory::Memory;
use crate::module::Instance;
use crate::share::{Count, Latest, Share};

impl Reader {
    /// Adds up what the workers say; one that died says nothing.
    pub(super) fn report(
        mut self,
        ended: Vec<Option<Worker>>,
        shares: &[Share],
        rate: &Rate,
    ) -> Account {
        let (mut accounts, mut instances, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        let mut records = Vec::new();
        let tick = rate.ns_per_tick();
        for (number, worker) in ended.into_iter().enumerate() {
            let Some(mut worker) = worker else {
                errors.push(Failure {
                    error: format!("worker {number} died; packets that it held are lost"),
                    help: "this is a defect of Millrace: please report it with the command".into(),
                });
                continue;
            };
            self.tally.add(&worker.tally);
            accounts.push(WorkerAccount {
                worker: number as u32,
                seconds: worker.tally.ticks as f64 * tick / 1e9,
                ..worker.tally.worker
            });
            records.append(&mut worker.records);
            instances.push(worker.instance);
        }
        self.write(records);
        let interrupted = self.tally.account.interrupted;
        let beyond = &mut self.pressure.relaxations;
        let objects = objects(&mut instances, shares, beyond, self.clock);
        self.pressure
            .finish(|object| objects.get(object).and_then(|o| o.entries));
        let reasons = std::mem::take(&mut self.run.reasons);
        if let (Some(job), [first, others @ ..]) = (self.run.at_end.take(), &mut *instances) {
            let tally = &self.tally;
            let mut desk = Desk {
                instance: Some(first),
                chain: None,
                others: others.iter_mut().collect(),
                now: self.clock,
                account: &|| tally.account(&reasons, rate),
                order: None,
            };
            job(&mut desk);
        }
        let mut account = self.tally.account(&reasons, rate);
        account.interrupted = interrupted;
        account.workers = accounts;
        account.objects = objects;
        account.relaxations = self.pressure.relaxations;
        account.errors = errors;
        let (each, workers) = (self.run.objects_bytes, instances.len() as u64);
        let once = self.run.module.common_bytes();
        let shared = once.saturating_mul(workers.saturating_sub(1));
        let state = each.saturating_mul(workers).saturating_sub(shared);
        let buffers = self.pool.bytes();
        let bytes = self.run.complete(&mut account);
        account.memory = Memory::predict(state, buffers + bytes).measured();
        account
    }
}

/// The state objects at the end: of those of which each worker has a part the entries of all parts.
fn objects(
    instances: &mut [Instance],
    shares: &[Share],
    beyond: &mut BTreeMap<String, u64>,
    now: u64,
) -> Vec<ObjectAccount> {
    let Some(module) = instances.first().map(|i| i.module().objects().to_vec()) else {
        return Vec::new();
    };
    let accounts = module.into_iter().enumerate().map(|(index, object)| {
        let copied = Share::default();
        let share = shares.get(index).unwrap_or(&copied);
        let mut count = Count::new(share, object.kind);
        let mut latest = Latest::new(share, object.kind);
        let mut bytes = 0_u64;
        for (number, instance) in instances.iter_mut().enumerate() {
            count.add(instance, index, now);
            latest.add(instance, index, now);
            // One for all workers is there once.
            if number == 0 || !instance.module().is_shared(index) {
                bytes = bytes.saturating_add(object.bytes);
            }
        }
        count.note(beyond, object.capacity);
        latest.note(beyond);
        let mut account = ObjectAccount {
            name: object.name,
            kind: object.kind.name.to_owned(),
            entries: count.whole(),
            capacity: object.capacity,
            bytes,
            by_worker: Vec::new(),
            full_by_worker: Vec::new(),
        };
        if share.divided() {
            account.capacity = share.whole;
            let full = instances.iter_mut().map(|i| i.full(index).unwrap_or(0));
            account.full_by_worker = full.collect();
            if account.full_by_worker.iter().all(|n| *n == 0) {
                account.full_by_worker.clear();
            }
            if count.each.len() == instances.len() {
                account.by_worker = count.each;
            }
        }
        account
    });
    accounts.collect()
}
