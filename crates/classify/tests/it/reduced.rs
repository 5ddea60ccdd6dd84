//! Rules that cannot change a class.

use millrace_classify::{Budget, Key, Redundant, Rules, Together, Why, redundant, together};

fn read(text: &str, classes: u32) -> Rules {
    Rules::read(text.as_bytes(), &Key::flow4(), classes, 4096)
        .unwrap()
        .rules
}

fn found(text: &str) -> Vec<(usize, Why)> {
    let (found, all) = redundant(&read(text, 4), &Budget::default());
    assert!(all);
    found
        .iter()
        .map(|Redundant { index, why }| (*index, *why))
        .collect()
}

#[test]
fn an_earlier_rule_shadows_whatever_its_class() {
    let text = "src 10.0.0.0/8 class 1\nsrc 10.1.0.0/16 dport 80 class 2\nsrc 11.0.0.0/8 class 2\n";
    assert_eq!(found(text), [(1, Why::Shadowed(0))]);
}

#[test]
fn a_later_rule_of_the_class_repeats_unless_another_class_meets_it_between() {
    let text =
        "dport 80 class 1\nsport 5 class 2\nprotocol 6 dport 81 class 1\ndport 70-90 class 1\n";
    // The first meets `sport 5` on the way to the last; the third has nothing between.
    assert_eq!(found(text), [(2, Why::Repeated(3))]);
    let apart = "dport 80 class 1\ndport 99 class 2\ndport 70-90 class 1\n";
    assert_eq!(found(apart), [(0, Why::Repeated(2))]);
}

#[test]
fn class_0_at_the_end_says_nothing() {
    let text = "src 10.0.0.0/8 class 1\nsrc 11.0.0.0/8 class 0\nclass 0\n";
    // From the last on: when the second is looked at, the third is gone.
    assert_eq!(found(text), [(1, Why::Default), (2, Why::Default)]);
    // Before a rule that it keeps from some keys it counts.
    assert_eq!(found("src 11.0.0.0/8 class 0\nclass 1\n"), []);
}

#[test]
fn all_go_together() {
    // A rule is not taken out in favour of one that goes itself.
    let text = "dport 5 class 1\ndport 5 class 1\ndport 5 class 1\ndport 1-9 class 1\n";
    let rules = read(text, 2);
    let (gone, _) = redundant(&rules, &Budget::default());
    let keep: Vec<bool> = (0..rules.len())
        .map(|i| gone.iter().all(|r| r.index != i))
        .collect();
    assert_eq!(gone.len(), 3);
    let rest = rules.filtered(&keep);
    for port in 0..12 {
        let key = [0, 0, 0, port, 0];
        assert_eq!(rest.scan(&key), rules.scan(&key));
    }
}

#[test]
fn a_budget_that_is_spent_is_said_and_keeps_the_rest() {
    let text = "dport 5 class 1\n".repeat(100);
    let budget = Budget {
        pairs: 10,
        ..Budget::default()
    };
    let (found, all) = redundant(&read(&text, 2), &budget);
    assert!(!all && found.len() < 99);
}

/// Without those that one other makes redundant: those that several do.
fn joined(text: &str) -> Vec<(usize, Vec<usize>)> {
    let rules = read(text, 4);
    let (gone, _) = redundant(&rules, &Budget::default());
    let (found, enough) = together(&rules, &gone, &Budget::default());
    assert!(enough);
    let one = |Together { index, among }| (index, among);
    found.into_iter().map(one).collect()
}

#[test]
fn several_rules_may_hide_one() {
    let halves = "dport 0-79 class 1\ndport 80-65535 class 2\nsrc 10.0.0.0/8 class 3\n";
    assert_eq!(joined(halves), [(2, vec![0, 1])]);
    // One port is left to it.
    let but_one = "dport 0-78 class 1\ndport 80-65535 class 2\nsrc 10.0.0.0/8 class 3\n";
    assert_eq!(joined(but_one), []);
    // An earlier one has a part, a later one of its class the rest, behind another class that meets only what is hidden.
    let both = "dport 0-9 class 2\ndport 5-20 class 1\ndport 7-8 class 3\ndport 10-99 class 1\n";
    assert_eq!(joined(both), [(1, vec![0, 3])]);
    // What is left has class 0 anyway.
    assert_eq!(
        joined("dport 5 class 1\ndport 0-9 class 0\ndport 5-7 class 2\n"),
        []
    );
    let anyway = "dport 5-7 class 1\ndport 0-9 class 0\ndport 6-7 class 2\ndport 5 class 3\n";
    assert_eq!(joined(anyway), []);
    assert_eq!(
        found(anyway),
        [
            (1, Why::Default),
            (2, Why::Shadowed(0)),
            (3, Why::Shadowed(0))
        ]
    );
}

/// Small random lists: no key's class changes, and each rule that is left is needed by some key.
#[test]
fn without_them_nothing_changes_and_each_rule_is_needed() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = |most: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % most
    };
    let mut several = 0;
    for _ in 0..400 {
        let mut text = String::new();
        for _ in 0..2 + draw(9) {
            let [a, b, c, d] = [draw(6), draw(6), draw(6), draw(6)];
            let (a, b, c, d) = (a.min(b), a.max(b), c.min(d), c.max(d));
            text += &format!("sport {a}-{b} dport {c}-{d} class {}\n", draw(3));
        }
        let rules = read(&text, 3);
        let (gone, _) = redundant(&rules, &Budget::default());
        let (more, enough) = together(&rules, &gone, &Budget::default());
        assert!(enough);
        several += more.len();
        let mut keep = vec![true; rules.len()];
        gone.iter().for_each(|r| keep[r.index] = false);
        more.iter().for_each(|r| keep[r.index] = false);
        let keys = (0..49).map(|n| [0, 0, n % 7, n / 7, 0]);
        let differs = |keep: &[bool]| {
            let rest = rules.filtered(keep);
            keys.clone().any(|key| rest.scan(&key) != rules.scan(&key))
        };
        assert!(!differs(&keep), "{text}{gone:?} {more:?}");
        for index in 0..keep.len() {
            if keep[index] {
                keep[index] = false;
                assert!(differs(&keep), "{text}{gone:?} {more:?}: {index}");
                keep[index] = true;
            }
        }
    }
    assert!(several > 50, "{several}");
}

#[test]
fn rules_that_take_long_are_kept() {
    let text = "dport 0-79 class 1\ndport 80-65535 class 2\nsrc 10.0.0.0/8 class 3\n";
    let budget = Budget {
        pairs: 4,
        ..Budget::default()
    };
    assert_eq!(together(&read(text, 4), &[], &budget), (Vec::new(), false));
}
