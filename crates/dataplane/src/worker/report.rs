//! What the account of a run says beyond its counters: state, memory, outputs, failures.

use std::collections::BTreeMap;

use super::foreign::Epilogue;
use super::{Histogram, Serve, Shared, Worker};
use crate::account::{Account, Failure, Function, ObjectAccount, OutputAccount};
use crate::mailbox::{Desk, Job};
use crate::memory::Memory;
use crate::share::{Count, Latest};

/// Completes the account once the workers have ended; a worker that died is none.
pub fn complete(
    account: &mut Account,
    shared: &Shared,
    ended: &mut [Option<Worker>],
    serve: &Serve,
    ns_per_tick: f64,
) {
    let (mut each, mut counts) = (Histogram::default(), Vec::new());
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
        let first = account.objects.is_empty();
        objects(account, &mut counts, shared, worker, first);
        for stage in &mut worker.chain.stages {
            if let Some(transactions) = &mut account.transactions {
                for (why, packets) in stage.ran_alone().into_iter().filter(|(_, n)| *n > 0) {
                    *transactions.reasons.entry(why).or_default() += packets;
                }
            }
            let met = stage.conflicts().into_iter();
            account.conflicts.extend(met.map(|c| (number, c)));
            // What all workers have in common is there once.
            let common = stage.common_bytes().saturating_mul(u64::from(number > 0));
            state = state.saturating_add(stage.objects_bytes.saturating_sub(common));
            if let Some(epilogue) = stage.epilogue.take() {
                told(account, &stage.life.name, epilogue, &mut foreign);
            }
        }
    }
    let mut beyond = BTreeMap::new();
    tidy(account, counts, &mut beyond);
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
    for (name, times) in beyond {
        *account.relaxations.entry(name).or_default() += times;
    }
    let records = shared.finish_records(account);
    account.errors.extend(records);
    let ns = account.workers.iter().map(|w| w.seconds).sum::<f64>() * 1e9;
    account.function = Function::over(each.total(), ns, &each, ns_per_tick);
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
    let account = || account.clone();
    // At the end their owners have all keys: nothing is heavy.
    let mut desk = Desk {
        instance: instances.next(),
        others: instances.collect(),
        ..Desk::stateless(now, &account)
    };
    job(&mut desk);
}

/// Adds what a worker has of the state objects at the end; `counts` has a place for each.
fn objects(
    account: &mut Account,
    counts: &mut Vec<(Count, Latest)>,
    shared: &Shared,
    worker: &mut Worker,
    first: bool,
) {
    let several = shared.workers() > 1;
    let mut at = 0;
    for stage in &mut worker.chain.stages {
        let objects = std::mem::take(&mut stage.objects);
        for (index, object) in objects.iter().enumerate() {
            let share = stage.shares.get(index).filter(|_| several).cloned();
            let share = share.unwrap_or_default();
            let whole = share.divided().then_some(share.whole);
            if first {
                counts.push((
                    Count::new(&share, object.kind),
                    Latest::new(&share, object.kind),
                ));
                account.objects.push(ObjectAccount {
                    name: shared.lives.named(&stage.life.name, &object.name),
                    kind: object.kind.name.to_owned(),
                    entries: None,
                    capacity: whole.unwrap_or(object.capacity),
                    bytes: 0,
                    by_worker: Vec::new(),
                    full_by_worker: Vec::new(),
                });
            }
            let now = worker.clock;
            let full = stage.full(index).unwrap_or(0);
            let once = stage.is_shared(index) && !first;
            if let (Some(seen), Some((count, latest))) =
                (account.objects.get_mut(at), counts.get_mut(at))
            {
                if let Some(instance) = stage.instance() {
                    count.add(instance, index, now);
                    latest.add(instance, index, now);
                }
                // One for all workers is one.
                seen.bytes += if once { 0 } else { object.bytes };
                if whole.is_some() {
                    seen.full_by_worker.push(full);
                }
            }
            at += 1;
        }
        stage.objects = objects;
    }
}

/// What all workers together have, and whose parts have never been full.
fn tidy(account: &mut Account, counts: Vec<(Count, Latest)>, beyond: &mut BTreeMap<String, u64>) {
    for (object, (count, latest)) in account.objects.iter_mut().zip(counts) {
        count.note(beyond, object.capacity);
        latest.note(beyond);
        object.entries = count.whole();
        if !object.full_by_worker.is_empty() && count.each.len() == object.full_by_worker.len() {
            object.by_worker = count.each;
        }
        if object.full_by_worker.iter().all(|n| *n == 0) {
            object.full_by_worker.clear();
        }
    }
}
