//! What the account of a run says beyond its counters: state, memory, outputs, failures.

use super::foreign::Epilogue;
use super::{Histogram, Serve, Shared, Worker};
use crate::account::{Account, Failure, Function, ObjectAccount, OutputAccount};
use crate::mailbox::{Desk, Job};
use crate::memory::Memory;
use crate::share::Share;

/// Completes the account once the workers have ended; a worker that died is none.
pub fn complete(
    account: &mut Account,
    shared: &Shared,
    ended: &mut [Option<Worker>],
    serve: &Serve,
    ns_per_tick: f64,
) {
    let mut each = Histogram::default();
    let (mut memory, mut foreign, mut state) = (0, 0, 0_u64);
    account.facts.clone_from(&serve.facts);
    for (number, worker) in ended.iter_mut().enumerate() {
        let Some(worker) = worker else {
            account.errors.push(Failure {
                error: format!("worker {number} died; packets that it held are lost"),
                help: "this is a defect of Millrace: please report it with the command".into(),
            });
            continue;
        };
        each.merge(&worker.each);
        account.errors.append(&mut worker.failures);
        for (served, word) in worker.queues.iter().zip(&serve.words) {
            memory += served.queue.memory();
            let Some(kept) = served.queue.kept() else {
                continue;
            };
            account.written += kept.packets;
            let error = served.failed.then(|| "see the errors".to_owned());
            account.outputs.push(OutputAccount::new(word, kept, error));
        }
        objects(account, shared, worker, number == 0);
        for stage in &mut worker.chain.stages {
            // What all workers have in common is there once.
            let common = stage.common_bytes().saturating_mul(u64::from(number > 0));
            state = state.saturating_add(stage.objects_bytes.saturating_sub(common));
            if let Some(epilogue) = stage.epilogue.take() {
                told(account, &stage.life.name, epilogue, &mut foreign);
            }
        }
    }
    tidy(account);
    let (left, untold) = shared.lives.epilogues();
    for (name, epilogue) in left {
        // What it had was given back.
        told(account, &format!("{name}, taken out"), epilogue, &mut 0);
    }
    if untold > 0 {
        account
            .facts
            .push(format!("{untold} more elements were taken out"));
    }
    account.relaxations = shared.pressure.relaxations();
    let records = shared.finish_records(account);
    account.errors.extend(records);
    let ns = account.workers.iter().map(|w| w.seconds).sum::<f64>() * 1e9;
    account.function = Function::over(account.read, ns, &each, ns_per_tick);
    account.memory = Memory::predict(state.saturating_add(foreign), memory).measured();
}

/// What became of a foreign element.
fn told(account: &mut Account, name: &str, epilogue: Epilogue, memory: &mut u64) {
    let facts = epilogue.facts.into_iter();
    account
        .facts
        .extend(facts.map(|fact| format!("{name}: {fact}")));
    let failure = epilogue.failure.into_iter();
    account.errors.extend(failure.map(|(error, help)| Failure {
        error: format!("{name}: {error}"),
        help,
    }));
    *memory += epilogue.memory;
}

/// Does what is to be done at the end with the first function's states on all workers.
pub fn finally(job: Job, ended: &mut [Option<Worker>], account: &Account) {
    let now = ended.iter().flatten().map(|w| w.clock).max().unwrap_or(0);
    let stages = ended.iter_mut().flatten();
    let mut instances = stages.filter_map(|w| w.chain.stages.first_mut()?.instance());
    let mut desk = Desk {
        instance: instances.next(),
        chain: None,
        others: instances.collect(),
        now,
        account: &|| account.clone(),
        order: None,
    };
    job(&mut desk);
}

/// The state objects at the end: of those that are divided the entries of all workers.
fn objects(account: &mut Account, shared: &Shared, worker: &mut Worker, first: bool) {
    let several = shared.workers() > 1;
    let mut at = 0;
    for stage in &mut worker.chain.stages {
        let objects = std::mem::take(&mut stage.objects);
        for (index, object) in objects.iter().enumerate() {
            let entries = stage.count(index, worker.clock);
            let full = stage.full(index).unwrap_or(0);
            let whole = match stage.shares.get(index) {
                Some(Share::Divided { whole }) if several => Some(*whole),
                _ => None,
            };
            if first {
                account.objects.push(ObjectAccount {
                    name: shared.lives.named(&stage.life.name, &object.name),
                    kind: object.kind.clone(),
                    entries,
                    capacity: whole.unwrap_or(object.capacity),
                    bytes: object.bytes,
                    by_worker: whole.map_or_else(Vec::new, |_| vec![entries]),
                    full_by_worker: whole.map_or_else(Vec::new, |_| vec![full]),
                });
            } else if let Some(seen) = account.objects.get_mut(at) {
                // One for all workers is one.
                if !stage.is_shared(index) {
                    seen.bytes += object.bytes;
                }
                if whole.is_some() {
                    seen.entries = seen.entries.zip(entries).map(|(a, b)| a + b);
                    seen.by_worker.push(entries);
                    seen.full_by_worker.push(full);
                }
            }
            at += 1;
        }
        stage.objects = objects;
    }
}

/// Leaves out whose parts have never been full.
fn tidy(account: &mut Account) {
    for object in &mut account.objects {
        if object.full_by_worker.iter().all(|n| *n == 0) {
            object.full_by_worker.clear();
        }
    }
}
