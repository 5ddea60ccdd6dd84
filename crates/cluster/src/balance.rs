//! Assignment of buckets to nodes with least movement.
//!
//! Every usable node gets `floor(B/n)` or `ceil(B/n)` of B buckets. Nodes that hold the most keep the larger shares, so the number of buckets that
//! change their node is the least that any balanced assignment needs: a node keeps `min(held, share)`, and the sum of these is maximal where the
//! `B mod n` larger shares go to the nodes that hold the most. A consistent hash moves as little in expectation, and is balanced only in
//! expectation; a table that is agreed on anyway can be exact. O(B + n log n).

use crate::table::NodeId;

/// Whether each bucket has a usable node and the nodes' numbers of buckets differ by one at most.
#[must_use]
pub fn balanced(assigned: &[Option<NodeId>], usable: &[NodeId]) -> bool {
    let held = counts(assigned, usable);
    let (least, most) = (held.iter().min(), held.iter().max());
    let sum: usize = held.iter().sum();
    match (least, most) {
        (Some(least), Some(most)) => sum == assigned.len() && most - least <= 1,
        _ => assigned.iter().all(Option::is_none),
    }
}

/// The node of each bucket, from what it is now. `usable` is in ascending order and without repetitions; where it is empty, no bucket has a node.
/// The result depends on the arguments alone, so every leader computes the same.
#[must_use]
pub fn assign(now: &[Option<NodeId>], usable: &[NodeId]) -> Vec<Option<NodeId>> {
    if usable.is_empty() {
        return vec![None; now.len()];
    }
    let share = shares(&counts(now, usable), now.len());
    let mut left = share;
    let mut to: Vec<Option<NodeId>> = now
        .iter()
        .map(|owner| {
            let owner = (*owner)?;
            let left = left.get_mut(usable.binary_search(&owner).ok()?)?;
            *left = left.checked_sub(1)?;
            Some(owner)
        })
        .collect();
    // Round robin over the nodes with room: neighbouring buckets, which one busy prefix may fill, go to different nodes.
    let mut next = 0;
    for bucket in to.iter_mut().filter(|to| to.is_none()) {
        for _ in 0..usable.len() {
            let at = next % usable.len();
            next += 1;
            if let (Some(left), Some(node)) = (left.get_mut(at), usable.get(at))
                && *left > 0
            {
                *left -= 1;
                *bucket = Some(*node);
                break;
            }
        }
    }
    to
}

/// How many buckets each usable node has.
fn counts(assigned: &[Option<NodeId>], usable: &[NodeId]) -> Vec<usize> {
    let mut held = vec![0; usable.len()];
    for owner in assigned.iter().flatten() {
        if let Ok(at) = usable.binary_search(owner)
            && let Some(held) = held.get_mut(at)
        {
            *held += 1;
        }
    }
    held
}

/// How many each shall have: the larger shares to those that hold the most, then by number.
fn shares(held: &[usize], buckets: usize) -> Vec<usize> {
    let (small, larger) = (buckets / held.len(), buckets % held.len());
    let mut order: Vec<usize> = (0..held.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(held.get(*at).copied().unwrap_or(0)));
    let mut shares = vec![small; held.len()];
    for at in order.into_iter().take(larger) {
        if let Some(share) = shares.get_mut(at) {
            *share += 1;
        }
    }
    shares
}
