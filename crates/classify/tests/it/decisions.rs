//! Diagrams that are given as such: the table, the bytes that are kept, and bytes that are none.

use millrace_classify::{
    Budget, Classifier, DecisionError, Decisions, Edge, Field, Key, Order, Ref, Rules,
};
use proptest::prelude::*;

const LEVELS: u8 = 3;
const CLASSES: u32 = 4;

fn key() -> Key {
    let field = |n: u32| Field {
        name: format!("f{n}"),
        offset: 4 * n,
        bytes: 4,
        order: Order::Host,
    };
    Key::new(
        4 * u32::from(LEVELS),
        (0..u32::from(LEVELS)).map(field).collect(),
    )
    .unwrap()
}

/// Nodes of ascending places: each level from the last to the first, whose edges lead to classes and to nodes of later levels.
fn decisions() -> impl Strategy<Value = Decisions> {
    let node = || prop::collection::vec((0..40_u32, any::<u16>()), 1..6);
    let level = prop::collection::vec(node(), 1..4);
    prop::collection::vec(level, usize::from(LEVELS)).prop_map(|levels| {
        let mut made = Decisions::new(vec![2, 0, 1], usize::from(LEVELS), CLASSES).unwrap();
        let mut below: Vec<Ref> = (0..CLASSES).map(Ref::terminal).collect();
        for (n, nodes) in levels.into_iter().enumerate() {
            let mut own = Vec::new();
            for mut edges in nodes {
                edges.sort_unstable();
                edges.dedup_by_key(|e| e.0);
                let count = edges.len();
                let edges = edges.into_iter().enumerate().map(|(i, (last, to))| Edge {
                    last: if i + 1 == count { u32::MAX } else { last },
                    to: below[usize::from(to) % below.len()],
                });
                own.push(made.push(LEVELS - 1 - n as u8, edges.collect()).unwrap());
            }
            below.extend(own);
        }
        made
    })
}

proptest! {
    #[test]
    fn the_table_is_the_diagram(given in decisions(), keys in prop::collection::vec((0..42_u32, 0..42_u32, 0..42_u32), 40)) {
        let rules = Rules::decided(key(), CLASSES, given.clone());
        let again = Rules::from_bytes(&rules.to_bytes()).unwrap();
        prop_assert_eq!(&again, &rules);
        let made = Classifier::build(again, &Budget::default());
        for (a, b, c) in keys {
            let key = [a, b, c];
            prop_assert_eq!(made.find(&key), given.find(&key));
            prop_assert_eq!(rules.scan(&key), given.find(&key));
        }
        for class in 0..CLASSES {
            if let Some(key) = made.witness(class) {
                prop_assert_eq!(given.find(key), class);
            }
        }
    }

    #[test]
    fn bytes_that_somebody_changed_are_refused_or_another_diagram(given in decisions(), at in any::<prop::sample::Index>(), to in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut bytes = Rules::decided(key(), CLASSES, given).to_bytes();
        let cut = cut.index(bytes.len());
        let _ = Rules::from_bytes(&bytes[..cut]);
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(rules) = Rules::from_bytes(&bytes) {
            let made = Classifier::build(rules.clone(), &Budget::default());
            let key = vec![1; rules.words()];
            prop_assert_eq!(made.find(&key), rules.scan(&key));
        }
    }
}

#[test]
fn what_is_no_diagram_is_refused() {
    let new = || Decisions::new(vec![0, 1, 2], 3, CLASSES).unwrap();
    let all = |to| vec![Edge { last: u32::MAX, to }];
    assert_eq!(Decisions::new(vec![0, 0], 3, 2), Err(DecisionError::Order));
    assert_eq!(Decisions::new(vec![3], 3, 2), Err(DecisionError::Order));
    assert_eq!(
        new().push(3, all(Ref::terminal(0))),
        Err(DecisionError::Order)
    );
    assert_eq!(
        new().push(0, all(Ref::terminal(CLASSES))),
        Err(DecisionError::Class(CLASSES, CLASSES))
    );
    assert_eq!(new().push(0, Vec::new()), Err(DecisionError::Intervals));
    let mut made = new();
    let below = made.push(1, all(Ref::terminal(1))).unwrap();
    // The same level again, which would be a way without end if it were not ordered.
    assert_eq!(made.push(1, all(below)), Err(DecisionError::Target));
    assert_eq!(made.push(2, all(below)), Err(DecisionError::Target));
    let twice = vec![Edge { last: 5, to: below }, Edge { last: 5, to: below }];
    assert_eq!(made.push(0, twice), Err(DecisionError::Intervals));
}
