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

/// The node that keeps a copy of each bucket, from what it is now: one of `keepers`, in ascending order, other than the bucket's owner. A bucket
/// without an owner has none. A copy stays where it is as long as that may keep it, unless the node with the most copies gets fewer by a move; what moves
/// goes to the node that has the fewest by then. The result depends on the arguments alone.
#[must_use]
pub fn standbys(
    now: &[Option<NodeId>],
    owners: &[Option<NodeId>],
    keepers: &[NodeId],
) -> Vec<Option<NodeId>> {
    let may = |bucket: usize, id: NodeId| {
        let owner = owners.get(bucket).copied().flatten();
        owner.is_some_and(|owner| owner != id) && keepers.binary_search(&id).is_ok()
    };
    let kept: Vec<Option<NodeId>> = (0..owners.len())
        .map(|at| now.get(at).copied().flatten().filter(|id| may(at, *id)))
        .collect();
    let most = |of: &[Option<NodeId>]| counts(of, keepers).into_iter().max().unwrap_or(0);
    let needed = owners.iter().flatten().count();
    let whole = fill(kept.clone(), &may, keepers, usize::MAX);
    let even = fill(kept, &may, keepers, needed.div_ceil(keepers.len().max(1)));
    // Otherwise a table would follow a table for nothing.
    if most(&even) < most(&whole) {
        even
    } else {
        whole
    }
}

/// Keeps at most so many copies at each node, and gives those that are left to the nodes with the fewest.
fn fill(
    mut kept: Vec<Option<NodeId>>,
    may: &dyn Fn(usize, NodeId) -> bool,
    keepers: &[NodeId],
    share: usize,
) -> Vec<Option<NodeId>> {
    let mut held = vec![0_usize; keepers.len()];
    let place = |id: NodeId| keepers.binary_search(&id).ok();
    for bucket in &mut kept {
        let at = bucket.and_then(place);
        match at.and_then(|at| held.get_mut(at)) {
            Some(held) if *held < share => *held += 1,
            _ => *bucket = None,
        }
    }
    for (at, bucket) in kept.iter_mut().enumerate().filter(|(_, b)| b.is_none()) {
        let able = keepers.iter().zip(0..).filter(|(id, _)| may(at, **id));
        let least = able.min_by_key(|(_, place): &(_, usize)| held.get(*place).copied());
        if let Some((id, place)) = least {
            *bucket = Some(*id);
            if let Some(held) = held.get_mut(place) {
                *held += 1;
            }
        }
    }
    kept
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
