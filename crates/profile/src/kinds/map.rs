//! Maps: `MAP`, `PACKET_SET`, BPF's hashes.

use millrace_dataplane::module::What;
use millrace_object::state::{hash, lru_hash, map};

use super::{Advice, Idea, Met, word};

/// The advice.
pub const ADVICE: Advice = Advice {
    about: |object| [&map::KIND, &hash::KIND, &lru_hash::KIND].contains(&object.kind),
    cause,
    ideas,
    forces: |_| false,
};

/// Puts an entry that is there.
const PUTS: [&str; 2] = ["map_put", "map_update_elem"];
/// So many times as many puts as there are entries: they are not insertions.
const AGAIN: u64 = 8;

/// Returns an entry that is there.
const GETS: [&str; 3] = ["map_get", "map_refresh", "map_lookup_elem"];

/// Whether a lookup alone makes the packet a writer: of a cache it changes which entry is evicted.
fn orders(met: &Met<'_>) -> bool {
    *met.object.kind == lru_hash::KIND
        && matches!(met.what, Some(What::Write) | None)
        && GETS.contains(&met.abort.operation.as_str())
}

/// Whether entries that are there are put again and again.
fn refreshes(met: &Met<'_>) -> bool {
    let puts = PUTS.contains(&met.abort.operation.as_str());
    let entries = met.entries.unwrap_or(u64::MAX).max(1);
    puts && met.abort.count / entries >= AGAIN
}

fn cause(met: &Met<'_>) -> String {
    let name = &met.object.name;
    let (mine, theirs) = (word(&met.abort.operation), word(met.with()));
    if refreshes(met) {
        return format!(
            "concurrent refresh: entries of {name} that are there are put again, {} times for {} entries",
            met.abort.count,
            met.entries.unwrap_or(0)
        );
    }
    if orders(met) {
        return format!(
            "{mine} of {name} changes the order in which its entries are evicted, so that the packet waits for all other cores and runs alone"
        );
    }
    match met.what {
        Some(What::Bucket) => format!(
            "two keys in one bucket of {name}: {mine} of a key that is absent, while {theirs} filed or removed another one"
        ),
        Some(What::Full) => format!("{name} is full: {mine} asks for room"),
        Some(What::Write) => format!(
            "{mine} changes {name}, so that the packet waits for all other cores and runs alone"
        ),
        Some(What::Pool) => format!(
            "an insertion by a worker whose pool is empty: {mine} of {name} runs alone and takes half of the fullest pool"
        ),
        Some(What::Ways) => {
            format!("{mine} into a bucket of {name} that is full, which runs alone to make room")
        }
        Some(What::Room) => format!(
            "the packet reads or writes more than a transaction has room for, from {mine} of {name} on, and runs alone"
        ),
        None => format!("{mine} runs alone: {name} has no room for it in the worker's part"),
        // Who found the entry changed met a change of what a lookup returned.
        Some(What::Entry) if GETS.contains(&met.with()) => format!(
            "{mine} {} of {name}, while another packet writes what {theirs} returned",
            met.of_keys()
        ),
        _ if mine == theirs => format!("two packets with {mine} {} of {name}", met.of_keys()),
        _ => format!("{mine} and {theirs} {} of {name}", met.of_keys()),
    }
}

fn ideas(met: &Met<'_>) -> Vec<Idea> {
    let capacity = met.object.capacity;
    let mut ideas = Vec::new();
    if refreshes(met) {
        let name = &met.object.name;
        let why = "a refresh writes nothing that other cores read, and a put of another value does. The value stays as it was put first: \
                   put it again where something in it differs that matters";
        ideas.push(match met.abort.operation.as_str() {
            "map_put" => Idea::edit(
                &format!("map_put(&{name}, "),
                &format!("map_keep(&{name}, "),
                0.9,
                why,
            ),
            put => Idea::source(
                format!("{put}(&{name}, …)"),
                format!("a lookup in {name} first, and {put} only if the value differs"),
                0.9,
                why,
            ),
        });
    }
    if orders(met) {
        let name = &met.object.name;
        ideas.push(Idea::source(
            format!("LRU_HASH {name}"),
            format!("HASH {name}"),
            0.5,
            "another object: a lookup in a hash that evicts nothing changes nothing that other cores read",
        ));
    }
    match met.what {
        Some(What::Bucket | What::Ways) => ideas.push(Idea::option(
            "capacity",
            capacity.saturating_mul(2),
            0.5,
            "a larger map has more buckets, so that fewer keys meet in one",
        )),
        Some(What::Full | What::Pool) | None if !orders(met) => ideas.push(Idea::option(
            "capacity",
            capacity.saturating_mul(2),
            0.9,
            "over-provisioning: who finds room waits for nobody",
        )),
        _ => {}
    }
    ideas
}
