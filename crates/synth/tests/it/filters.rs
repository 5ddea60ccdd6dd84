//! Long filters: a diagram of their own, composed with what follows, does what the interpreter does; and as data in C.

use std::fmt::Write;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use millrace_classify::{Budget, Classifier, Form};
use millrace_synth::Options;
use millrace_synth::reference::witnesses;
use millrace_turns::its_turn;

use crate::compare::{compare, synthesis, synthesis_of};

/// Rules of which many meet.
fn rules(rng: &mut ChaCha8Rng, count: usize) -> String {
    let mut text = String::new();
    for n in 0..count {
        let net = |rng: &mut ChaCha8Rng| {
            let bits = [8, 16, 24, 28, 32][rng.random_range(0..5)];
            let host: u32 = 0x0a00_0000 | rng.random_range(0..64) << 8 | rng.random_range(0..4);
            let host = host & (u32::MAX << (32 - bits));
            format!("{}/{bits}", std::net::Ipv4Addr::from(host))
        };
        let mut tests = vec![
            format!("src net {}", net(rng)),
            format!("dst net {}", net(rng)),
        ];
        match rng.random_range(0..6) {
            0 => tests.push("tcp".into()),
            1 => tests.push(format!("udp && src port >= {}", rng.random_range(0..2000))),
            2 => tests.push("icmp type 8".into()),
            3 => tests.push("ip frag".into()),
            _ => tests.push(format!("dst port {} or 443", rng.random_range(78..82))),
        }
        if rng.random_range(0..8) == 0 {
            tests.push(format!("not ip ttl < {}", rng.random_range(1..70)));
        }
        let action = ["allow", "deny", "1"][rng.random_range(0..3)];
        let comma = if n > 0 { ", " } else { "" };
        let _ = write!(text, "{comma}{action} {}", tests.join(" && "));
    }
    text
}

#[test]
fn long_filters_do_what_the_interpreter_does() {
    if !its_turn("long filters", 0, 2) {
        return;
    }
    for seed in 0..6 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (first, second) = (rules(&mut rng, 40), rules(&mut rng, 24));
        let text = format!(
            "FromDevice(a) -> MarkIPHeader(14) -> f :: IPFilter({first});\n\
             f[0] -> DecIPTTL -> g :: IPFilter({second}) -> ToDevice(b);\n\
             f[1] -> DecIPTTL -> g; g[1] -> Discard;\n"
        );
        let of = synthesis(&text, seed % 2 == 0).unwrap();
        let compared = compare(&of, &mut rng, 400);
        compared.unwrap_or_else(|why| panic!("seed {seed}\n{text}\n{why}"));
    }
}

/// The same of filters that are asked as lists, with writes of what they test in front of them.
#[test]
fn lists_do_what_the_interpreter_does() {
    if !its_turn("filters as lists", 1, 2) {
        return;
    }
    let options = |reasons| Options {
        reasons,
        lists: true,
        ..Options::default()
    };
    for seed in 0..3 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (first, second) = (rules(&mut rng, 40), rules(&mut rng, 24));
        let text = format!(
            "FromDevice(a) -> MarkIPHeader(14) -> f :: IPFilter({first});\n\
             f[0] -> DecIPTTL -> g :: IPFilter({second}) -> ToDevice(b);\n\
             f[1] -> StoreIPAddress(10.0.3.1, src) -> DecIPTTL -> g; g[1] -> Discard;\n"
        );
        let of = synthesis_of(&text, options(seed % 2 == 0)).unwrap();
        let c = millrace_synth::emit::c(&of);
        assert!(c.contains("classify(&rules_") && !c.contains("#error"));
        let compared = compare(&of, &mut rng, 600);
        compared.unwrap_or_else(|why| panic!("seed {seed}\n{text}\n{why}"));
    }
}

/// Rules that meet in many ways: the diagram of some hundred has hundreds of thousands of edges.
fn exploding(rng: &mut ChaCha8Rng, count: usize) -> String {
    let mut text = String::new();
    for n in 0..count {
        let mut within = |what: &str, most: u32| {
            let first = rng.random_range(1..most - most / 6);
            format!("{what} >= {first} && {what} <= {}", first + most / 6)
        };
        let tests = [
            within("src port", 65_535),
            within("dst port", 65_535),
            within("ip[12:2]", 0xdfff),
            within("ip[16:2]", 0xdfff),
        ];
        let action = ["allow", "deny", "1"][n % 3];
        let comma = if n > 0 { ", " } else { "" };
        let _ = write!(text, "{comma}{action} udp && {}", tests.join(" && "));
    }
    text
}

#[test]
fn a_filter_whose_diagram_passes_the_budget_is_a_list() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let rules = exploding(&mut rng, 120);
    let text = format!(
        "FromDevice(a) -> Strip(14) -> CheckIPHeader -> f :: IPFilter({rules});\n\
         f[0] -> DecIPTTL -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(b);\n\
         f[1] -> IPFilter(allow dst port 53, deny all) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:3) -> ToDevice(b);\n"
    );
    let options = Options {
        edges: 20_000,
        ..Options::default()
    };
    let of = synthesis_of(&text, options).unwrap();
    let compared = compare(&of, &mut rng, 3000);
    compared.unwrap_or_else(|why| panic!("{why}"));
    // Packets of its rules are among those that were compared.
    assert!(witnesses(&of, 500).len() > 200);
    let list = of.actions.lists.list(0).unwrap();
    assert_eq!(list.rules.len(), 120);
    let small = Budget {
        bytes: 1 << 16,
        steps: 1 << 16,
        ..Budget::default()
    };
    let classifier = Classifier::build(list.rules.clone(), &small);
    assert_eq!(classifier.form(), Form::Trees);
}

#[test]
fn a_long_filter_is_data() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let text = format!(
        "FromDevice(a) -> MarkIPHeader(14) -> f :: IPFilter({}) -> ToDevice(b); f[1] -> Discard;",
        rules(&mut rng, 60)
    );
    let of = synthesis(&text, false).unwrap();
    let c = millrace_synth::emit::c(&of);
    assert!(c.contains("chosen = classify(&choices, &place);"), "{c}");
    assert!(c.contains("millrace_rules_choices["), "{c}");
    assert!(!c.contains("#error"), "{c}");
}

/// What no packet can meet is nothing: no class leaves, and none is left to tell packets apart by.
#[test]
fn filters_that_contradict_themselves_let_nothing_through() {
    let text = "FromDevice(a) -> MarkIPHeader(14)\n\
        -> IPFilter(allow tcp && udp, allow src host 10.0.0.1 && src host 10.0.0.2,\n\
             allow ip ttl < 3 && ip ttl > 200, allow dst port 80 && not tcp && not udp, deny all) -> ToDevice(b);";
    let of = synthesis(text, false).unwrap();
    let all = millrace_synth::classes::classes(&of);
    assert!(all.iter().all(|c| c.verdict == "drop"), "{all:#?}");
}

/// Rules that one other makes redundant, or several, are found, whatever is said of fragments.
#[test]
fn redundant_rules_are_listed() {
    let mut rules: Vec<String> = (1..20)
        .map(|n| format!("allow src net 10.{n}.0.0/16 && tcp && dst port {n}"))
        .collect();
    rules.push("deny src net 10.3.4.0/24 && tcp && dst port 3".into());
    rules.push("allow src net 10.5.0.0/16 && dst port 100".into());
    rules.push("allow src net 10.5.0.0/16".into());
    rules.push("deny dst host 1.2.3.4".into());
    // Of the third the first has a half, and the second the other.
    rules.insert(22, "allow src net 10.6.0.0/17 && udp".into());
    rules.insert(23, "allow src net 10.6.128.0/17 && udp".into());
    rules.insert(24, "deny src net 10.6.0.0/16 && udp && dst port 53".into());
    rules.insert(25, "allow dst port 53".into());
    let text = format!(
        "FromDevice(a) -> MarkIPHeader(14) -> IPFilter({}) -> ToDevice(b);",
        rules.join(", ")
    );
    let of = synthesis(&text, false).unwrap();
    let filters = millrace_synth::redundant::filters(&of);
    let [filter] = filters.as_slice() else {
        panic!("{filters:#?}");
    };
    assert!(filter.compared);
    let found: Vec<(usize, &str, Option<usize>)> = filter
        .redundant
        .iter()
        .map(|g| (g.rule, g.why, g.by))
        .collect();
    // 5 and 21 are parts of 22, of one class, and no other stands between; 20 comes behind 3; 27 drops what is dropped anyway.
    assert_eq!(
        found,
        [
            (5, "repeated", Some(22)),
            (20, "shadowed", Some(3)),
            (21, "repeated", Some(22)),
            (25, "together", None),
            (27, "default", None)
        ]
    );
    let among = filter.redundant.iter().map(|g| g.among.as_slice());
    let none: &[usize] = &[];
    assert!(among.eq([none, none, none, &[23, 24], none]));
}
