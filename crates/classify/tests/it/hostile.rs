//! Rules that explode, and a million of them: bounded in memory and in time.

use millrace_classify::{Budget, Classifier, Form, Key, Meter, Rules, diagram};

/// Boxes across each other in all five fields, each of a class of its own: a diagram of them has a node for each set.
fn crossing(n: u32) -> Rules {
    let mut rules = Rules::new(Key::flow4(), n + 1, 1 << 20);
    for i in 0..n {
        // Numbers without a pattern, the same in every run.
        let at = |salt: u32, max: u32| {
            let x = (i.wrapping_mul(2_654_435_761) ^ salt).wrapping_mul(2_246_822_519);
            (x ^ x >> 15) % max
        };
        let range = |salt, max: u32| {
            let (a, b) = (at(salt, max), at(salt + 77, max));
            (a.min(b), a.max(b))
        };
        let ranges = [
            range(1, u32::MAX),
            range(2, u32::MAX),
            range(3, 65535),
            range(4, 65535),
            range(5, 255),
        ];
        rules.push_box(&ranges, i + 1, i + 1).unwrap();
    }
    rules
}

#[test]
fn a_diagram_that_explodes_gives_way_to_trees() {
    let rules = crossing(300);
    let budget = Budget {
        bytes: 1 << 20,
        steps: 2_000_000,
        pairs: 1 << 20,
    };
    let order: Vec<usize> = (0..5).collect();
    assert!(diagram(&rules, &order, &mut Meter::new(budget.steps)).is_err());
    let c = Classifier::build(rules.clone(), &budget);
    assert_eq!(c.form(), Form::Trees);
    assert!(c.table().bytes() <= 2 << 20, "{} bytes", c.table().bytes());
    let mut x = 1_u32;
    let mut draw = || {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        x
    };
    for _ in 0..2000 {
        let key = [draw(), draw(), draw() >> 16, draw() >> 16, draw() >> 24];
        assert_eq!(c.find(&key), rules.scan(&key));
    }
}

#[test]
fn a_million_rules_are_trees_within_the_budget() {
    let n = 1 << 20;
    let mut rules = Rules::new(Key::flow4(), 2, n);
    for i in 0..n as u32 {
        let src = i.wrapping_mul(2_654_435_761);
        let port = i % 60_000;
        rules
            .push_box(
                &[
                    (src, src),
                    (0, u32::MAX),
                    (0, 65535),
                    (port, port + 9),
                    (6, 6),
                ],
                i % 2,
                i + 1,
            )
            .unwrap();
    }
    assert!(
        rules
            .push_box(&[(0, 1), (0, 1), (0, 1), (0, 1), (0, 1)], 0, 0)
            .is_err()
    );
    let budget = Budget {
        bytes: 64 << 20,
        steps: 4_000_000,
        pairs: 4_000_000,
    };
    let c = Classifier::build(rules, &budget);
    assert!(!c.compared());
    // The rules themselves are 44 MiB of it.
    assert!(c.table().bytes() < 128 << 20, "{} bytes", c.table().bytes());
    for i in (0..n as u32).step_by(65_537) {
        let key = [i.wrapping_mul(2_654_435_761), 7, 7, i % 60_000 + 9, 6];
        assert_eq!(c.find(&key), i % 2);
    }
    assert_eq!(c.find(&[1, 7, 7, 7, 17]), 0);
}

#[test]
fn saved_rules_come_back_and_others_are_refused() {
    let mut rules = crossing(40);
    rules
        .push_box(&[(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)], 3, 9)
        .unwrap();
    let bytes = rules.to_bytes();
    let again = Rules::from_bytes(&bytes).unwrap();
    assert!(
        again
            .iter()
            .zip(rules.iter())
            .all(|(a, b)| a.ranges == b.ranges && a.class == b.class && a.line == b.line)
    );
    assert_eq!(
        (again.key(), again.classes(), again.len()),
        (rules.key(), rules.classes(), 41)
    );
    for end in 0..bytes.len() {
        assert!(Rules::from_bytes(&bytes[..end]).is_err(), "{end}");
    }
    assert!(Rules::from_bytes(&[bytes.as_slice(), &[0]].concat()).is_err());
    for at in (0..bytes.len()).step_by(3) {
        let mut bytes = bytes.clone();
        bytes[at] = 0xff;
        // Whatever it is then, it is an error or rules of the same size.
        if let Ok(other) = Rules::from_bytes(&bytes) {
            assert_eq!(other.to_bytes().len(), bytes.len());
        }
    }
}
