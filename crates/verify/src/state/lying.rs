//! Entries of objects that workers divide: whether each lies at the worker that the index of the indirection table leads
//! to which its key says. Only so all entries of one index can be found, and moved together.

use std::collections::HashMap;

use millrace_object::program::{ObjectId, Program};
use millrace_place::Held;

use super::Base;
use crate::deal::Deal;
use crate::lane::Lane;

/// An entry that lies elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Elsewhere {
    /// the object, by its index in the program
    pub object: usize,
    /// the entry's key
    pub key: Vec<u8>,
    /// the worker that has it
    pub at: u32,
    /// the index that its key says
    pub index: u32,
    /// the worker that this leads to
    pub worker: u32,
}

/// Result of the search.
#[derive(Default, Debug)]
pub struct Lying {
    /// entries that lie where their keys say
    pub found: u64,
    /// those that do not
    pub elsewhere: Vec<Elsewhere>,
}

/// Asks for each entry of every worker, at `now` (ns). Objects that do not list their entries are left out. What is
/// addressed by an index has all elements at every worker: those that are as they were in `base` are none's.
pub fn lying(
    program: &Program,
    deal: &Deal<'_>,
    base: &Base,
    parallel: &mut Lane<'_>,
    now: u64,
) -> Lying {
    let mut lying = Lying::default();
    let Some(finder) = &deal.finder else {
        return lying;
    };
    let Lane { copies, table, .. } = parallel;
    for object in 0..program.objects.len() {
        let id = ObjectId(object);
        if *deal.held(object) != Held::Divided || !finder.knows(id) {
            continue;
        }
        let base = base.get(object).map_or(&[][..], Vec::as_slice);
        let base: HashMap<&Vec<u8>, &Vec<u8>> = base.iter().map(|(k, v)| (k, v)).collect();
        for (at, copy) in (0..).zip(&mut *copies) {
            for (key, value) in copy.own_entries(object, now).unwrap_or_default() {
                if base.get(&key) == Some(&&value) {
                    continue;
                }
                // Where buckets move, the table is no longer what it was.
                let lies = match table.as_ref() {
                    Some(table) => table.lies(object, &key),
                    None => { finder.lies(id, &key) }
                        .map(|lies| (lies.index, lies.worker % deal.workers.max(1))),
                };
                let Some((index, worker)) = lies else {
                    continue;
                };
                if worker == at {
                    lying.found += 1;
                    continue;
                }
                lying.elsewhere.push(Elsewhere {
                    object,
                    key,
                    at,
                    index,
                    worker,
                });
            }
        }
    }
    lying
}
