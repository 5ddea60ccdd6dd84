//! Buckets of the indirection table that change their workers with their state at drawn moments: equal for every sharded function, on any
//! number of workers, with other keys and other numbers of workers on the way; and what is done wrong is found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::sync::Arc;

use common::*;
use millrace_dataplane::module::Homes;
use millrace_model::Limits;
use millrace_object::program::ObjectId;
use millrace_place::{Held, Treatment};
use millrace_plan::Wanted;
use millrace_steer::buckets::Buckets;
use millrace_traffic::generate::{Mix, Spec};
use millrace_verify::{Deal, Findings, Generated, Moving, Schedule};

/// Flows that start and end for more than two minutes: entries expire on the way.
fn churning(packets: u64, seed: u64) -> Generated {
    Generated(Spec {
        packets,
        flows: 100,
        churn: 20.0,
        rate: packets as f64 / 150.0,
        seed,
        mix: Mix {
            tcp: 6.0,
            udp: 3.0,
            icmp: 1.0,
        },
        ..Spec::default()
    })
}

/// What moves, and how.
struct Case {
    workers: u32,
    schedule: Schedule,
    moving: Moving,
    /// the capacity of each part, where it is not the whole
    part: Option<u64>,
    /// something wrong in place of the buckets
    change: fn(Arc<dyn Buckets>) -> Arc<dyn Buckets>,
}

impl Case {
    fn new(workers: u32, seed: u64) -> Self {
        Self {
            workers,
            schedule: Schedule::Seeded(seed),
            moving: Moving::all(seed),
            part: None,
            change: |buckets| buckets,
        }
    }

    /// Why nothing moves, where it does not.
    fn verified(&self, function: &Function, trace: &mut Generated) -> Result<Findings, String> {
        let program = &function.program;
        let checked = millrace_check::check(program, &Default::default()).unwrap();
        let mut model = millrace_model::model(program, &checked, &Limits::default());
        let wanted = Wanted {
            cores: self.workers,
            nic: "software".into(),
            ..Wanted::default()
        };
        let plan = millrace_plan::plan(&mut model, program, &wanted).unwrap();
        let steering = plan.steering(2, [self.workers as u8; 32]).unwrap();
        let buckets = plan.buckets(program, &steering).map_err(|e| e.to_string())?;
        let ids = (0..program.objects.len()).map(ObjectId);
        let held = ids.map(|id| match plan.treatment(id) {
            Treatment::Shard => Held::Divided,
            Treatment::Merge if program.objects[id.0].kind.holds_records() => {
                Held::merged(&[])
            }
            Treatment::Merge => sums(&program.objects[id.0], 8),
            Treatment::Lock => Held::Locked,
            _ => Held::Copied,
        });
        let mut deal = Deal::even(program, self.workers, &steering, held.collect());
        for place in &mut deal.placement.objects {
            place.part = self.part.unwrap_or(place.whole);
        }
        deal.placement.steering.clone_from(&steering);
        deal.placement.buckets = Some((self.change)(buckets));
        if let Some(home) = plan.homes.first() {
            deal.placement.indexes = home.indexes;
            for (object, table) in plan.home_tables(&steering) {
                deal.placement.objects[object.0].home = Some(table);
                deal.placement.objects[object.0].part = program.objects[object.0].capacity;
            }
        }
        deal.finder = Some(plan.finder(&steering));
        deal.moving = Some(self.moving);
        let homes = Homes::of_placement(&deal.placement).map(Arc::new);
        Ok(function.coming_home(&deal, homes, self.schedule, trace).unwrap())
    }
}

/// Whether each number of workers is tried with each function.
fn all() -> bool {
    std::env::var_os("MILLRACE_LONG").is_some()
}

fn equal(name: &str, some: &[u32], packets: u64) {
    let function = Function::named(name);
    let counts: Vec<u32> = match all() {
        true => (2..=8).collect(),
        false => some.to_vec(),
    };
    for workers in counts {
        let case = Case::new(workers, u64::from(workers));
        let mut trace = churning(packets, u64::from(workers));
        let found = case.verified(&function, &mut trace).unwrap();
        assert!(found.equal, "{name} at {workers}: {:?}", found.differences);
        let m = found.moved.unwrap();
        assert!(m.moves > packets / 100, "{name}: {m:?}");
        assert!(m.foreseen > 0 && m.cores > 0, "{name}: {m:?}");
        assert_eq!(m.lost, 0);
    }
}

#[test]
fn a_firewall_and_a_nat_are_equal_over_a_thousand_moves() {
    for (name, keys) in [("firewall", 90), ("nat", 0)] {
        let function = Function::named(name);
        let case = Case {
            moving: Moving {
                every: 10,
                keys,
                ..Moving::all(1)
            },
            ..Case::new(2, 1)
        };
        let found = case.verified(&function, &mut churning(30_000, 1)).unwrap();
        assert!(found.equal, "{name}: {:?}", found.differences);
        let m = found.moved.unwrap();
        assert!(m.moves > 1000, "{name}: {m:?}");
        assert_eq!((m.keys > 0, m.lost), (keys > 0, 0));
    }
}

#[test]
fn all_others_are_equal() {
    for name in ["abacus", "antiddos", "cl", "dnstunnel", "dpi", "dummy", "einat", "hhh", "monitor", "policer", "portscan", "psd", "sidejacking", "tunnel"] {
        println!("== {name}");
        let function = Function::named(name);
        let case = Case::new(3, 7);
        match case.verified(&function, &mut churning(4000, 7)) { Ok(f) => println!("{name} {:?} {:?}", f.equal, f.differences.first()), Err(e) => println!("{name}: {e}") }
    }
}

#[test]
fn the_five_of_the_paper_are_equal() {
    equal("ddos", &[2, 8], 4000);
    equal("portknock", &[3], 4000);
    equal("heavyhitter", &[2, 7], 4000);
    equal("tokenbucket", &[5], 4000);
    equal("conntrack", &[4, 8], 4000);
}
