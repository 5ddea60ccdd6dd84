//! Assignments are balanced within one bucket and move as little as a balanced one can.

use millrace_cluster::{NodeId, assign, balanced};
use proptest::prelude::*;

fn nodes(of: impl IntoIterator<Item = u16>) -> Vec<NodeId> {
    of.into_iter().map(NodeId).collect()
}

fn moved(a: &[Option<NodeId>], b: &[Option<NodeId>]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

/// The least number of buckets that a balanced assignment moves, by trying which nodes have the larger shares.
fn least(now: &[Option<NodeId>], usable: &[NodeId]) -> usize {
    let (n, larger) = (usable.len(), now.len() % usable.len());
    let small = now.len() / n;
    let held = |id: &NodeId| now.iter().flatten().filter(|o| *o == id).count();
    (0u32..1 << n)
        .filter(|set| set.count_ones() as usize == larger)
        .map(|set| {
            let kept = usable.iter().enumerate().map(|(at, id)| {
                let share = small + usize::from(set >> at & 1 == 1);
                held(id).min(share)
            });
            now.len() - kept.sum::<usize>()
        })
        .min()
        .unwrap_or(0)
}

proptest! {
    #[test]
    fn one_more_node_moves_one_part(bits in 0u32..=12, n in 1u16..40) {
        let buckets = 1usize << bits;
        let before = assign(&vec![None; buckets], &nodes(0..n));
        prop_assert!(balanced(&before, &nodes(0..n)));
        let after = assign(&before, &nodes(0..=n));
        prop_assert!(balanced(&after, &nodes(0..=n)));
        prop_assert!(moved(&before, &after) <= buckets.div_ceil(usize::from(n) + 1));
        // And back: only what the node had moves.
        let had = after.iter().filter(|o| **o == Some(NodeId(n))).count();
        let back = assign(&after, &nodes(0..n));
        prop_assert!(balanced(&back, &nodes(0..n)));
        prop_assert_eq!(moved(&after, &back), had);
    }

    #[test]
    fn any_table_moves_least(
        now in prop::collection::vec(prop::option::of(0u16..9), 64),
        usable in prop::collection::btree_set(0u16..9, 1..8),
    ) {
        let now: Vec<_> = now.into_iter().map(|o| o.map(NodeId)).collect();
        let usable = nodes(usable);
        let after = assign(&now, &usable);
        prop_assert!(balanced(&after, &usable));
        prop_assert_eq!(moved(&now, &after), least(&now, &usable));
        prop_assert_eq!(&assign(&after, &usable), &after);
    }
}

#[test]
fn no_node_no_owner() {
    let now = vec![Some(NodeId(1)), None];
    assert_eq!(assign(&now, &[]), vec![None, None]);
    assert!(!balanced(&now, &[]));
}

#[test]
fn copies_are_elsewhere_even_and_stay() {
    use millrace_cluster::standbys;
    let ids = |n: u16| (0..n).map(NodeId).collect::<Vec<_>>();
    let owners = |n: u16| -> Vec<_> { (0..64).map(|b| Some(NodeId(b % n))).collect() };
    for n in 1..6 {
        let owners = owners(n);
        let first = standbys(&[], &owners, &ids(n));
        assert_eq!(standbys(&first, &owners, &ids(n)), first);
        if n == 1 {
            assert!(first.iter().all(Option::is_none));
            continue;
        }
        let apart = first
            .iter()
            .zip(&owners)
            .all(|(s, o)| s.is_some() && s != o);
        assert!(apart, "{n}: {first:?}");
        // Another node that may keep copies takes its share, and no copy moves between others.
        let more = standbys(&first, &owners, &ids(n + 1));
        let moved = first.iter().zip(&more).filter(|(a, b)| a != b);
        assert!(
            moved.clone().all(|(_, to)| *to == Some(NodeId(n))),
            "{n}: {more:?}"
        );
        let least = 64 / usize::from(n + 1);
        assert!(moved.count() >= least - 1, "{n}: {more:?}");
        // One that is gone: only its copies move.
        let fewer: Vec<_> = ids(n).into_iter().filter(|id| id.0 != 0).collect();
        let left = standbys(&first, &owners, &fewer);
        let kept = first
            .iter()
            .zip(&left)
            .filter(|(a, _)| **a != Some(NodeId(0)));
        assert!(n < 4 || kept.clone().all(|(a, b)| a == b), "{n}: {left:?}");
        assert!(left.iter().all(|s| *s != Some(NodeId(0))));
    }
    // A bucket without an owner, or whose owner wants none, has none.
    assert_eq!(standbys(&[Some(NodeId(1))], &[None], &ids(3)), [None]);
}
