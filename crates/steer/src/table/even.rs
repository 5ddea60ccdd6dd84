//! A table for when no load is known.

/// For each index the queue, over `queues` queues (at least 1): the queue is the high bits of the index.
///
/// Not index mod queues, which takes the low bits: a field that is cancelled on its right reaches with its
/// last bits only the high index bits (the windows of the last bits in the key end in what is cancelled),
/// and the hosts of one subnet differ in just those last bits.
#[must_use]
pub fn even(indexes: usize, queues: u32) -> Vec<u32> {
    let queue = |index: usize| (index as u64 * u64::from(queues) / indexes as u64) as u32;
    (0..indexes).map(queue).collect()
}

/// The queues of the indexes repeated to a whole table of this many entries.
#[must_use]
pub fn repeated(queues: &[u32], entries: usize) -> Vec<u32> {
    queues.iter().copied().cycle().take(entries).collect()
}
