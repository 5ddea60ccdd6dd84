//! Rules in the switch in software.

use millrace_turns::its_turn;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::common::{assumed, chain, compared, differs, packets, request, rules, text_of};
use crate::generate::configuration;
use millrace_switch::run::Switch;
use millrace_switch::switch::Switch as Kind;
use millrace_switch::{Assumptions, Request, compile};

fn chains(paths: &[&str], assume: Assumptions, count: usize) {
    for path in paths {
        let of = chain(path);
        let rules = rules(&of, assume);
        let tables: Vec<_> = rules
            .tables
            .iter()
            .map(|t| (t.name, t.rows.len()))
            .collect();
        let packets = packets(&of, 1, count);
        let [all, servers, left] = compared(&of, &rules, assume, &packets);
        println!(
            "{}: {tables:?}, bits {:?}, {servers} of {all} to servers, {left} left",
            of.name, rules.bits
        );
        assert!(left > 0, "{}: nothing leaves", of.name);
        assert!(servers < all, "{}: the switch decides nothing", of.name);
    }
}

/// Rows of the tables of flows, and bits of metadata by stage.
fn flows(path: &str) -> (usize, Vec<[u32; 2]>) {
    let rules = rules(&chain(path), Assumptions::default());
    let tables = rules.tables.iter().filter(|t| t.name == "flows");
    (tables.map(|t| t.rows.len()).sum(), rules.bits)
}

#[test]
fn a_rule_is_a_row() {
    // Rules that change nothing are left out; each of two regions has a last row, and each stage but the last one more.
    assert_eq!(flows("acl/acl-251.click"), (132, vec![[0, 4]]));
    assert_eq!(flows("acl/acl-713.click"), (691, vec![[0, 16]]));
    assert_eq!(flows("acl/acl-8550.click"), (7_184, vec![[0, 63], [0, 59]]));
}

#[test]
fn openflow_without_extensions() {
    let of = chain("acl/acl-251.click");
    let request = Request {
        switch: Kind::standard(),
        ..request(&of)
    };
    let rules = compile(&of, &request).unwrap();
    assert!(rules.extensions.is_empty(), "{:?}", rules.extensions);
    let packets = packets(&of, 2, 4_000);
    compared(&of, &rules, Assumptions::default(), &packets);
    // A router's time to live is not seen, so that a server has what may expire.
    let of = chain("routers/routers-1.click");
    let request = Request {
        switch: Kind::standard(),
        assume: assumed(),
        ..crate::common::request(&of)
    };
    let rules = compile(&of, &request).unwrap();
    assert!(
        rules.unseen.contains(&"ip ttl".to_owned()),
        "{:?}",
        rules.unseen
    );
    let packets = crate::common::packets(&of, 2, 4_000);
    let [all, servers, _] = compared(&of, &rules, assumed(), &packets);
    assert!(servers > 0 && servers < all, "{servers} of {all}");
}

#[test]
fn a_wrong_list_is_seen() {
    let of = chain("acl/acl-251.click");
    let packets = packets(&of, 4, 10_000);
    let mut rules = rules(&of, Assumptions::default());
    assert_eq!(differs(&of, &Switch::new(&rules), &packets), None);
    // Without its rows that let flows pass the switch drops them.
    for table in rules.tables.iter_mut().filter(|t| t.name == "flows") {
        table.rows.retain(|r| r.does.is_empty());
    }
    let why = differs(&of, &Switch::new(&rules), &packets);
    assert!(why.is_some_and(|w| w.contains("the switch dropped it")));
}

#[test]
fn acl_251() {
    chains(&["acl/acl-251.click"], Assumptions::default(), 10_000);
}

#[test]
fn acl_713() {
    chains(&["acl/acl-713.click"], Assumptions::default(), 10_000);
}

#[test]
fn acl_8550() {
    if !its_turn("8,550 rules in a switch", 0, 2) {
        return;
    }
    chains(&["acl/acl-8550.click"], Assumptions::default(), 2_000);
}

#[test]
fn others() {
    let all = [
        "routers/routers-1.click",
        "routers/routers-10.click",
        "napts/napts-1.click",
        "firewall-router/firewall-router.click",
        "example/example.click",
        "napts/zones.click",
        "napts/napts-3.click",
    ];
    chains(&all, Assumptions::default(), 4_000);
    chains(&all, assumed(), 4_000);
}

/// Random configurations that are tried; `MILLRACE_TARGET_SEEDS` says how many.
fn seeds() -> u64 {
    let asked = std::env::var("MILLRACE_TARGET_SEEDS").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(80)
}

/// Random configurations: what a switch decides is what their interpreter says.
#[test]
fn random_configurations() {
    let [mut compiled, mut decided] = [0; 2];
    for seed in 0..seeds() {
        let text = configuration(&mut ChaCha8Rng::seed_from_u64(seed));
        for assume in [Assumptions::default(), assumed()] {
            let Some(of) = text_of(&text) else {
                continue;
            };
            let request = Request {
                assume,
                ..request(&of)
            };
            let rules = match compile(&of, &request) {
                Ok(rules) => rules,
                Err(error) => {
                    // More rows than a switch has priorities, and no other reason.
                    assert!(error.to_string().contains("rows"), "{seed}: {error}");
                    continue;
                }
            };
            let packets = packets(&of, seed, 400);
            let [all, servers, _] = compared(&of, &rules, assume, &packets);
            compiled += 1;
            decided += all - servers;
        }
    }
    println!("{compiled} configurations, the switch decided {decided} packets");
    assert!(compiled > 20 && decided > 1_000, "{compiled}, {decided}");
}
