//! Bundled functions under plans written by hand: right ones are equal, wrong ones are caught.

use crate::common;

use common::*;
use millrace_steer::Field;
use millrace_traffic::generate::Spec;
use millrace_turns::its_turn;
use millrace_verify::{Generated, Kind};

/// Flows that start and end for more than two minutes, with answers: entries expire on the way.
fn churning(packets: u64) -> Generated {
    over_minutes(packets, 400, 300.0, Spec::default().seed)
}

#[test]
fn a_firewall_with_a_symmetric_key_is_equal_and_with_another_is_not() {
    let firewall = Function::named("firewall");
    for workers in [1, 2, 4, 8] {
        let rss = vec![by(&symmetric_key(), workers, &Field::ALL); 2];
        let found = firewall.shard(workers, &rss, &mut churning(30_000));
        assert!(found.equal, "{workers}");
        assert_eq!(found.compared, 30_000);
        assert!(found.entries > 300 && found.not_compared.is_empty());
        assert!(found.relaxations.is_empty());
        assert_eq!(
            found.shares.iter().filter(|n| **n > 0).count(),
            workers as usize
        );
    }
    let rss = vec![by(&plain_key(), 4, &Field::ALL); 2];
    let found = firewall.shard(4, &rss, &mut churning(30_000));
    assert!(!found.equal);
    let first = &found.differences[0];
    assert_eq!(first.kind, Kind::Verdict);
    let (one, other) = (
        first.sequential.as_ref().unwrap(),
        first.parallel.as_ref().unwrap(),
    );
    assert_eq!(
        (one.fate.as_str(), other.fate.as_str()),
        ("forwarded to LAN", "dropped: no_flow")
    );
    // The entry that it asked for is at another worker, and the line says what was answered.
    let flows = first.state.iter().find(|s| s.object == "flows").unwrap();
    assert!(flows.sequential.before.is_some());
    assert!(
        flows
            .parallel
            .iter()
            .any(|p| p.worker == other.worker && p.entry.before.is_none())
    );
    assert!(
        flows
            .parallel
            .iter()
            .any(|p| p.worker != other.worker && p.entry.before.is_some())
    );
    let parts = first.parts.as_ref().unwrap();
    assert!(parts.line.contains("firewall.c:"), "{parts:?}");
}

#[test]
fn a_policer_is_sharded_by_destination_and_not_by_source() {
    let policer = Function::with("policer", &[("rate", "2000"), ("burst", "4000")], &[]);
    let (lan, right, wrong) = (
        by(&plain_key(), 4, &Field::ALL),
        by(&plain_key(), 4, &[DestinationAddress]),
        by(&plain_key(), 4, &[SourceAddress]),
    );
    let found = policer.shard(4, &vec![lan.clone(), right], &mut churning(30_000));
    assert!(found.equal);
    let mut few = churning(30_000);
    // Few hosts with many servers: each is at several workers.
    few.0.lan = "10.0.0.0/29".parse().unwrap();
    let found = policer.shard(4, &vec![lan, wrong], &mut few);
    assert!(!found.equal);
    assert_eq!(found.differences[0].kind, Kind::Verdict);
}

#[test]
fn a_port_scan_detector_is_sharded_by_source() {
    let psd = Function::with("psd", &[("limit", "3")], &[]);
    let lan = by(&plain_key(), 4, &Field::ALL);
    let right = vec![lan.clone(), by(&plain_key(), 4, &[SourceAddress])];
    assert!(psd.shard(4, &right, &mut churning(30_000)).equal);
    let wrong = vec![lan, by(&plain_key(), 4, &[DestinationAddress])];
    let mut few = churning(30_000);
    // Few servers with many clients: each is at several workers.
    few.0.wan = "198.18.0.0/29".parse().unwrap();
    assert!(!psd.shard(4, &wrong, &mut few).equal);
}

#[test]
fn a_nat_is_sharded_by_the_server_up_to_its_leases() {
    if !its_turn("a NAT by the server", 1, 2) {
        return;
    }
    let nat = Function::named("nat");
    for workers in [1, 2, 4, 8] {
        let lan = by(
            &plain_key(),
            workers,
            &[DestinationAddress, DestinationPort],
        );
        let wan = by(&plain_key(), workers, &[SourceAddress, SourcePort]);
        let found = nat.shard(workers, &vec![lan, wan], &mut churning(30_000));
        assert!(found.equal, "{workers}");
        assert!(found.redirected > 10_000, "{}", found.redirected);
        let leases = found.relaxations.iter().find(|r| r.name == "lease");
        assert_eq!(leases.is_some_and(|r| r.packets > 1000), workers > 1);
    }
    // By the inside host: an answer does not come home.
    let lan = by(&plain_key(), 4, &[SourceAddress]);
    let wan = by(&plain_key(), 4, &[SourceAddress]);
    assert!(!nat.shard(4, &vec![lan, wan], &mut churning(30_000)).equal);
}

#[test]
fn a_table_that_is_full_on_one_core_is_counted() {
    // What fits into 400 entries together does not fit into 50 of each worker.
    let firewall = Function::with("firewall", &[], &[("flows", 400)]);
    let mut spec = churning(30_000);
    spec.0.churn = 0.0;
    let rss = vec![by(&symmetric_key(), 8, &Field::ALL); 2];
    let found = firewall.shard(8, &rss, &mut spec);
    assert!(found.equal);
    let full = found
        .relaxations
        .iter()
        .find(|r| r.name == "capacity")
        .unwrap();
    assert!(full.packets > 0 && full.entries > 0, "{full:?}");
    // A wrong key is found although tables are full, too.
    let rss = vec![by(&plain_key(), 8, &Field::ALL); 2];
    assert!(!firewall.shard(8, &rss, &mut spec).equal);
}
