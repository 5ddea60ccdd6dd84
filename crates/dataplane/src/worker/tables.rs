//! How full the state objects of an element are, as its workers have seen it last.
//!
//! A worker copies what its objects keep (places taken, insertions that found none free) to where everybody reads it,
//! now and then; nothing is counted for that.

use super::chain::{Code, Link};
use super::counters::Counters;
use super::stage::Stage;
use crate::account::TableAccount;

/// An object that tells how full it is.
struct Table {
    name: String,
    kind: &'static str,
    /// its index in the module
    object: usize,
    capacity: u64,
    /// it keeps how many places are taken
    used: bool,
    /// each worker has entries of its own
    divided: bool,
    /// one for all workers
    shared: bool,
}

/// Those of an element.
#[derive(Default)]
pub struct Tables {
    all: Vec<Table>,
    /// one a worker: of each table what is taken, and what was refused
    seen: Vec<Counters>,
}

impl Tables {
    /// Of an element on this many workers.
    #[must_use]
    pub fn of(link: &Link, workers: usize) -> Self {
        let Code::Module(code) = &link.code else {
            return Self::default();
        };
        let tables = link
            .objects()
            .iter()
            .enumerate()
            .filter_map(|(object, info)| {
                let (used, full) = code.module.tells(object);
                let share = link.shares.get(object).filter(|_| workers > 1);
                let divided = share.is_some_and(crate::share::Share::divided);
                (used || full).then(|| Table {
                    name: info.name.clone(),
                    kind: info.kind.name,
                    object,
                    capacity: match share {
                        Some(share) if divided => share.whole,
                        _ => info.capacity,
                    },
                    used,
                    divided,
                    shared: code.module.is_shared(object),
                })
            });
        let all: Vec<_> = tables.collect();
        let seen = (0..workers.max(1)).map(|_| Counters::new(2 * all.len()));
        Self {
            seen: seen.collect(),
            all,
        }
    }

    /// A worker copies what its objects say.
    pub fn look(&self, worker: usize, stage: &mut Stage) {
        let Some(seen) = self.seen.get(worker) else {
            return;
        };
        for (at, table) in self.all.iter().enumerate() {
            if table.shared && worker > 0 {
                continue;
            }
            seen.set(2 * at, stage.used(table.object).unwrap_or(0));
            seen.set(2 * at + 1, stage.full(table.object).unwrap_or(0));
        }
    }

    /// As these workers have seen them. Of objects of which each worker has a copy the first one's counts.
    pub fn account(&self, workers: &[usize]) -> Vec<TableAccount> {
        let each = self.all.iter().enumerate().map(|(at, table)| {
            let own = match (table.divided, table.shared) {
                (true, _) => workers,
                (false, true) => &[0],
                (false, false) => workers.get(..1).unwrap_or_default(),
            };
            let sum = |place: usize| -> u64 {
                let seen = own.iter().filter_map(|w| self.seen.get(*w));
                seen.map(|s| s.get(place)).sum()
            };
            TableAccount {
                name: table.name.clone(),
                kind: table.kind.to_owned(),
                used: table.used.then(|| sum(2 * at)),
                capacity: table.capacity,
                refused: sum(2 * at + 1),
            }
        });
        each.collect()
    }
}
