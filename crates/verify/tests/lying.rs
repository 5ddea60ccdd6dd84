//! Entries lie under the index of the indirection table that their keys say, and one who looks under another key's
//! indexes is told that they do not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::*;
use millrace_model::Limits;
use millrace_object::program::ObjectId;
use millrace_plan::{Plan, Wanted};
use millrace_traffic::generate::Spec;
use millrace_verify::{Deal, Findings, Generated, Kind, Schedule, held};

const WORKERS: u32 = 4;

fn planned(of: &Function) -> Plan {
    let checked = millrace_check::check(&of.program, &Default::default()).unwrap();
    let mut model = millrace_model::model(&of.program, &checked, &Limits::default());
    let wanted = Wanted {
        cores: WORKERS,
        nic: "generic".into(),
        ..Wanted::default()
    };
    millrace_plan::plan(&mut model, &of.program, &wanted).unwrap()
}

/// Verifies under keys of one secret, looking for entries under those of another.
fn verified(of: &Function, plan: &Plan, secrets: [u8; 2]) -> Findings {
    let [steering, other] = secrets.map(|s| plan.steering(2, [s; 32]).unwrap());
    let deal = Deal::even(
        &of.program,
        WORKERS,
        &steering,
        held(plan, &of.program, &Default::default()),
    );
    let deal = Deal {
        finder: Some(plan.finder(&other)),
        ..deal
    };
    let mut trace = Generated(Spec {
        packets: 5_000,
        flows: 300,
        ..Spec::default()
    });
    of.verify(&deal, Schedule::Ingress, &mut trace)
}

#[test]
fn entries_are_found_by_the_index_that_their_keys_say() {
    for name in ["policer", "firewall", "hhh", "nat"] {
        let function = Function::named(name);
        let plan = planned(&function);
        let found = verified(&function, &plan, [1, 1]);
        assert!(found.equal, "{name}: {:?}", found.differences.first());
        assert!(
            found.found_by_index > 10,
            "{name}: {}",
            found.found_by_index
        );
    }
}

#[test]
fn a_finder_of_other_keys_does_not_find_them() {
    let firewall = Function::named("firewall");
    let plan = planned(&firewall);
    let found = verified(&firewall, &plan, [1, 2]);
    assert!(!found.equal);
    let first = found.differences.first().unwrap();
    assert_eq!(first.kind, Kind::State);
    assert!(
        first.what.contains("an entry of flows lies at worker"),
        "{}",
        first.what
    );
}

#[test]
fn entries_of_one_index_lie_at_one_worker_and_every_index_has_some() {
    let policer = Function::named("policer");
    let plan = planned(&policer);
    let steering = plan.steering(2, [9; 32]).unwrap();
    let finder = plan.finder(&steering);
    let objects = policer.program.objects.iter();
    let buckets = ObjectId({ objects }.position(|o| o.name == "buckets").unwrap());
    let mut at = std::collections::BTreeMap::new();
    for host in 0..4096_u16 {
        // IPv4, as an address of IPv6 (RFC 4291, 2.5.5.2).
        let mut key = [0; 16];
        key[10..14].copy_from_slice(&[0xff, 0xff, 10, 0]);
        key[14..].copy_from_slice(&host.to_be_bytes());
        let lies = finder.lies(buckets, &key).unwrap();
        assert_eq!(*at.entry(lies.index).or_insert(lies.worker), lies.worker);
    }
    assert_eq!(at.len(), steering[0].nic.table().len());
    // A key of another length is none of the object's.
    assert_eq!(finder.lies(buckets, &[10, 0, 0]), None);
}
