//! Rules that cannot change a class.

use millrace_classify::{Budget, Key, Redundant, Rules, Why, redundant};

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
