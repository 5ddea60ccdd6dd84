//! Replicas: packets in turn over the workers, each of which applies the rows of all. Every function that a history admits is
//! equal, in any order in which workers fall behind each other; and what is not done alike is found.

use crate::common;

use common::*;
use millrace_steer::Field;
use millrace_verify::{Deal, Findings, Generated, Kind, Schedule};

/// Flows that start and end for more than two minutes, with answers: entries expire on the way.
fn churning(packets: u64, seed: u64) -> Generated {
    over_minutes(packets, 200, 30.0, seed)
}

fn replicate(
    function: &Function,
    workers: u32,
    schedule: Schedule,
    trace: &mut Generated,
) -> Findings {
    let rss = vec![by(&plain_key(), workers, &Field::ALL); 2];
    let deal = Deal::even(&function.program, workers, &rss, function.replicated());
    function.verify(&deal, schedule, trace)
}

fn equal(name: &str, some: &[u32], packets: u64) {
    let function = Function::named(name);
    for workers in counts(some, 14) {
        let seed = u64::from(workers);
        let mut trace = churning(packets, seed);
        let found = replicate(&function, workers, Schedule::Seeded(seed), &mut trace);
        assert!(found.equal, "{name} at {workers}");
        assert_eq!(found.compared, packets);
        assert!(found.rows.is_some_and(|rows| rows > 0), "{name}");
        assert!(
            found.relaxations.is_empty(),
            "{name}: {:?}",
            found.relaxations
        );
        // In turn.
        let most = found.shares.iter().max().unwrap();
        let least = found.shares.iter().min().unwrap();
        assert!(most - least <= 1 && found.shares.len() == workers as usize);
    }
}

#[test]
fn the_five_of_the_paper_are_equal() {
    equal("ddos", &[2, 14], 4000);
    equal("portknock", &[3, 8], 4000);
    equal("heavyhitter", &[2, 7], 4000);
    equal("tokenbucket", &[5, 13], 4000);
    equal("conntrack", &[4, 14], 4000);
}

/// Expiry, timers, leases, sketches, entries that LRU evicts.
#[test]
fn handlers_with_all_kinds_of_state_are_equal() {
    equal("firewall", &[3], 6000);
    equal("bridge", &[2], 4000);
    equal("policer", &[5], 4000);
    equal("lb", &[2], 3000);
    equal("psd", &[4], 4000);
    equal("hhh", &[2], 3000);
    equal("cl", &[3], 4000);
}

/// Packet sets whose expiry runs a function: at rows' numbers, on all replicas.
#[test]
fn sets_that_run_a_function_when_they_expire_are_equal() {
    equal("monitor", &[3], 3000);
    equal("antiddos", &[5], 3000);
}

/// Timers in the values of maps: they fire at rows, and start again with the function that they were set to.
#[test]
fn timers_fire_at_one_place_on_all_replicas() {
    for (name, workers) in [("ticker", 2), ("alarms", 3), ("timers", 3)] {
        let source = root().join(format!("tests/programs/{name}.c"));
        let function = Function::of(&source, &[], &[]);
        let seed = u64::from(workers);
        let mut trace = churning(4000, seed);
        let found = replicate(&function, workers, Schedule::Seeded(seed), &mut trace);
        assert!(found.equal && found.compared == 4000, "{name}");
    }
}

#[test]
fn threads_that_read_rows_while_others_do_are_equal() {
    let conntrack = Function::named("conntrack");
    for workers in [2, 6] {
        let mut trace = churning(6000, 9);
        let found = replicate(&conntrack, workers, Schedule::Threads, &mut trace);
        assert!(found.equal, "{workers}");
    }
    let found = replicate(&conntrack, 3, Schedule::Ingress, &mut churning(4000, 9));
    assert!(found.equal);
}

/// One of seven rows of others is not applied.
#[test]
fn a_replica_that_leaves_rows_out_is_found() {
    let mut conntrack = Function::named("conntrack");
    conntrack.plant = Some(Plant {
        place: Place::Module,
        text: "replay0_0(self, pkt, row, slot);",
        wrong: "if (number % 7)\n\t\t\treplay0_0(self, pkt, row, slot);",
    });
    let found = replicate(&conntrack, 3, Schedule::Seeded(1), &mut churning(3000, 1));
    assert!(!found.equal);
    let unlike = |what: &str| what.contains("is not that of worker 0, byte for byte");
    let kinds: Vec<Kind> = found.differences.iter().map(|d| d.kind).collect();
    assert!(
        kinds.contains(&Kind::Verdict) || found.differences.iter().any(|d| unlike(&d.what)),
        "{kinds:?}"
    );
}

/// A replica reclaims what has expired where it has a packet of its own, and not at others' rows. What packets find is the
/// same, and the replicas are not.
#[test]
fn replicas_that_only_answer_alike_are_found() {
    let mut firewall = Function::named("firewall");
    firewall.plant = Some(Plant {
        place: Place::Module,
        text: "row_begin(self, pkt, number);\n\tswitch",
        wrong: "row_begin(self, pkt, number | 1);\n\tswitch",
    });
    let found = replicate(&firewall, 3, Schedule::Ingress, &mut churning(6000, 1));
    assert!(!found.equal);
    let first = &found.differences[0];
    assert_eq!(first.kind, Kind::State);
    assert!(
        first.what.contains("the replica of flows at worker"),
        "{}",
        first.what
    );
}
