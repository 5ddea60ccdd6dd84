//! A table for a load that is known, from a trace.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// For each index the queue, over `queues` queues (at least 1), so that the most loaded queue has little
/// more than the mean: the heaviest index first, each to the queue with the least load so far. At most
/// 4/3 - 1/(3n) of the best there is for n queues (Graham, "Bounds on Multiprocessing Timing Anomalies",
/// SIAM J. Appl. Math. 17(2), 1969, theorem 2, longest processing time first).
///
/// An index without load goes where the fewest indexes are, so that what the trace did not show spreads.
#[must_use]
pub fn balanced(loads: &[u64], queues: u32) -> Vec<u32> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    let load = |index: usize| loads.get(index).copied().unwrap_or(0);
    order.sort_by_key(|index| (Reverse(load(*index)), *index));
    // Least load, then fewest indexes, then least number.
    let mut heap: BinaryHeap<Reverse<(u64, usize, u32)>> = (0..queues.max(1))
        .map(|queue| Reverse((0, 0, queue)))
        .collect();
    let mut table = vec![0; loads.len()];
    let (loaded, empty): (Vec<usize>, Vec<usize>) =
        order.into_iter().partition(|index| load(*index) > 0);
    let mut give = |heap: &mut BinaryHeap<Reverse<(u64, usize, u32)>>, index: usize, more: u64| {
        if let Some(Reverse((load, count, queue))) = heap.pop() {
            if let Some(entry) = table.get_mut(index) {
                *entry = queue;
            }
            heap.push(Reverse((load.saturating_add(more), count + 1, queue)));
        }
    };
    for index in loaded {
        give(&mut heap, index, load(index));
    }
    let mut by_count: BinaryHeap<Reverse<(u64, usize, u32)>> = heap
        .into_iter()
        .map(|Reverse((load, count, queue))| {
            Reverse((
                count as u64,
                usize::try_from(load).unwrap_or(usize::MAX),
                queue,
            ))
        })
        .collect();
    for index in empty {
        if let Some(Reverse((count, load, queue))) = by_count.pop() {
            if let Some(entry) = table.get_mut(index) {
                *entry = queue;
            }
            by_count.push(Reverse((count + 1, load, queue)));
        }
    }
    table
}

/// The load of each of `indexes` indexes: how many of the packets have it. An index out of range counts
/// nowhere.
#[must_use]
pub fn loads(indexes: usize, packets: impl IntoIterator<Item = u32>) -> Vec<u64> {
    let mut loads = vec![0; indexes];
    for index in packets {
        if let Some(load) = loads.get_mut(index as usize) {
            *load += 1;
        }
    }
    loads
}

/// The most loaded queue's load as a multiple of the mean over `queues` queues: 1 is even, `queues` is all
/// on one. 1 without any load.
#[must_use]
pub fn imbalance(loads: &[u64], table: &[u32], queues: u32) -> f64 {
    let mut queue = vec![0_u64; queues.max(1) as usize];
    for (load, to) in loads.iter().zip(table) {
        if let Some(sum) = queue.get_mut(*to as usize) {
            *sum += load;
        }
    }
    let (sum, most) = (queue.iter().sum::<u64>(), queue.iter().max().copied());
    if sum == 0 {
        return 1.0;
    }
    most.unwrap_or(0) as f64 * queue.len() as f64 / sum as f64
}

/// How much worse a table balances a later load than one made for it would: the difference of their
/// imbalances. 0 says that nothing need be moved.
#[must_use]
pub fn drift(table: &[u32], later: &[u64], queues: u32) -> f64 {
    let best = imbalance(later, &balanced(later, queues), queues);
    (imbalance(later, table, queues) - best).max(0.0)
}
