//! Numbers that come home: einat under a plan written by hand, and plans with something wrong.

use crate::common;

use std::sync::Arc;

use common::*;
use millrace_dataplane::module::Homes;
use millrace_place::Placement;
use millrace_steer::{Field, Kind, Parsed, Steering};
use millrace_traffic::generate::{Mix, Spec};
use millrace_turns::its_turn;
use millrace_verify::{Deal, Findings, Generated, Schedule};

/// Hosts that come and go for ten minutes, longer than a mapping of UDP lives.
fn churning(packets: u64) -> Generated {
    Generated(Spec {
        packets,
        flows: 400,
        churn: packets as f64 / 400.0,
        rate: packets as f64 / 600.0,
        mix: Mix {
            tcp: 4.0,
            udp: 4.0,
            icmp: 2.0,
        },
        ..Spec::default()
    })
}

/// By the inside endpoint on one side, and by the leased number on the other.
fn steering(workers: u32) -> Vec<Steering> {
    let lan = by(&plain_key(), workers, &[SourceAddress, SourcePort]);
    let wan = by(&plain_key(), workers, &[DestinationPort]);
    let looking = |s: Steering| Steering { echoes: true, ..s };
    vec![looking(lan), looking(wan)]
}

/// Tells each allocator's numbers where they come home; `wrong` is added to each number's index.
fn come_home(of: &Function, placement: &mut Placement, wrong: u32) {
    let nic = &placement.steering[1];
    let indexes = nic.nic.table().len() as u32;
    for (object, place) in of.program.objects.iter().zip(&mut placement.objects) {
        if !object.kind.leases() {
            continue;
        }
        let index = |n: u64| {
            let bytes = (n as u16).to_be_bytes();
            let packet = Parsed::with_only(Kind::Ipv4Udp, Field::DestinationPort, &bytes);
            (nic.index_of(&packet) + wrong) % indexes
        };
        let numbers = object.first..object.first + object.capacity;
        place.home = Some(numbers.map(index).collect());
        // Numbers are not divided: each worker has all, and leases those of its indexes.
        place.part = place.whole;
    }
    placement.indexes = indexes;
}

fn verified(of: &Function, workers: u32, wrong: u32, trace: &mut Generated) -> Findings {
    let steering = steering(workers);
    let mut deal = Deal::even(&of.program, workers, &steering, of.divided());
    deal.placement.steering.clone_from(&steering);
    come_home(of, &mut deal.placement, wrong);
    let homes = Homes::of_placement(&deal.placement).map(Arc::new);
    of.coming_home(&deal, homes, Schedule::Seeded(3), trace)
        .unwrap()
}

#[test]
fn einat_is_sharded_by_what_it_leased() {
    if !its_turn("einat by what it leased", 0, 2) {
        return;
    }
    let einat = Function::named("einat");
    for workers in [1, 2, 4, 8] {
        let found = verified(&einat, workers, 0, &mut churning(20_000));
        assert!(found.equal, "{workers}");
        assert!(found.redirected > 5_000, "{}", found.redirected);
        let leases = found.relaxations.iter().find(|r| r.name == "lease");
        assert!(leases.is_some_and(|r| r.packets > 1000), "{workers}");
        assert!(found.shares.iter().all(|n| *n > 0), "{:?}", found.shares);
    }
}

#[test]
fn numbers_that_do_not_come_home_are_found() {
    if !its_turn("numbers that do not come home", 0, 3) {
        return;
    }
    let einat = Function::named("einat");
    // Leased as on one core: an answer comes to whoever it comes to.
    let steering = steering(4);
    let found = einat.shard(4, &steering, &mut churning(5_000));
    assert!(!found.equal);
    // Of an index, but of the neighbour's.
    assert!(!verified(&einat, 4, 1, &mut churning(5_000)).equal);
}

#[test]
fn an_index_without_numbers_is_counted() {
    if !its_turn("an index without numbers", 1, 3) {
        return;
    }
    // 512 numbers over the indexes: hardly any flow waits where one core would have numbers.
    let einat = Function::with(
        "einat",
        &[],
        &[("udp_leases0", 2048), ("tcp_leases0", 2048)],
    );
    let mut dense = churning(20_000);
    dense.0.flows = 1200;
    let found = verified(&einat, 4, 0, &mut dense);
    assert!(found.equal, "{:?}", found.differences.first());
    let full = found.relaxations.iter().find(|r| r.name == "capacity");
    assert!(
        full.is_some_and(|r| r.packets > 0),
        "{:?}",
        found.relaxations
    );
}
