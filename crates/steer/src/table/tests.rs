use super::*;

/// The least that the most loaded of this many queues can have, by trying every table.
fn least(loads: &[u64], queues: &mut [u64]) -> u64 {
    let Some((load, rest)) = loads.split_first() else {
        return queues.iter().copied().max().unwrap_or(0);
    };
    let mut best = u64::MAX;
    for queue in 0..queues.len() {
        queues[queue] += load;
        best = best.min(least(rest, queues));
        queues[queue] -= load;
    }
    best
}

fn most(loads: &[u64], table: &[u32], queues: u32) -> u64 {
    let of = |queue| {
        let here = loads.iter().zip(table).filter(|(_, to)| **to == queue);
        here.map(|(load, _)| load).sum::<u64>()
    };
    (0..queues).map(of).max().unwrap_or(0)
}

proptest::proptest! {
    #[test]
    fn the_longest_first_are_within_a_third_of_the_best(
        loads in proptest::collection::vec(0_u64..100, 0..8),
        queues in 1_u32..4,
    ) {
        let table = balanced(&loads, queues);
        proptest::prop_assert_eq!(table.len(), loads.len());
        proptest::prop_assert!(table.iter().all(|queue| *queue < queues));
        let (found, best) = (
            most(&loads, &table, queues),
            least(&loads, &mut vec![0; queues as usize]),
        );
        // 4/3 - 1/(3n), in whole numbers.
        let n = u64::from(queues);
        proptest::prop_assert!(3 * n * found <= (4 * n - 1) * best);
        let sum: u64 = loads.iter().sum();
        let figure = imbalance(&loads, &table, queues);
        let wanted = if sum == 0 { 1.0 } else { (found * n) as f64 / sum as f64 };
        proptest::prop_assert!((figure - wanted).abs() < 1e-9);
        proptest::prop_assert_eq!(drift(&table, &loads, queues), 0.0);
    }

    #[test]
    fn without_loads_the_indexes_are_divided_evenly(indexes in 1_usize..600, queues in 1_u32..40) {
        for table in [even(indexes, queues), balanced(&vec![0; indexes], queues)] {
            let count = |queue| table.iter().filter(|to| **to == queue).count();
            let counts: Vec<usize> = (0..queues).map(count).collect();
            let (least, most) = (counts.iter().min(), counts.iter().max());
            proptest::prop_assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1));
            proptest::prop_assert_eq!(counts.iter().sum::<usize>(), indexes);
        }
        let even = even(indexes, queues);
        proptest::prop_assert!(even.is_sorted());
        let twice = repeated(&even, 2 * indexes);
        proptest::prop_assert_eq!(&twice[..indexes], &twice[indexes..]);
    }
}

#[test]
fn what_the_load_did_not_show_is_divided_too() {
    // One heavy index fills a queue; the six without load go to the others first.
    let table = balanced(&[90, 0, 0, 0, 0, 0, 0], 3);
    let count = |queue| table.iter().filter(|to| **to == queue).count();
    assert_eq!([count(0), count(1), count(2)].iter().max(), Some(&3));
    assert_eq!(loads(4, [0, 1, 1, 9]), [1, 2, 0, 0]);
    assert_eq!(imbalance(&[], &[], 4), 1.0);
}
