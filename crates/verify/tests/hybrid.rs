//! Heavy keys replicated and others sharded, with promotions and demotions at drawn moments: equal on any number of workers, however
//! far they fall behind each other; and what is done wrong is found.

use std::sync::Arc;

use crate::common;

use common::*;
use millrace_object::program::ObjectId;
use millrace_place::{Elephants, Held, Placement, Strategy, Treatment};
use millrace_plan::Wanted;
use millrace_steer::hybrid::{Key, Keys};
use millrace_turns::its_turn;
use millrace_verify::{Deal, Findings, Generated, Schedule};

/// Few flows, so that each is moved several times, which start and end for more than two minutes: entries expire on the way.
fn churning(packets: u64, seed: u64) -> Generated {
    over_minutes(packets, 60, 20.0, seed)
}

type Changed = fn(Arc<dyn Keys>) -> Arc<dyn Keys>;

/// On this many workers; `change` may put something wrong in place of the keys.
fn hybrid(
    function: &Function,
    workers: u32,
    schedule: Schedule,
    trace: &mut Generated,
    change: Changed,
) -> Findings {
    let program = &function.program;
    let checked = millrace_check::check(program, &Default::default()).unwrap();
    let mut model = modelled(program, &checked);
    let wanted = Wanted {
        cores: workers,
        nic: "software".into(),
        strategy: Some(Strategy::Shard),
        ..Wanted::default()
    };
    let plan = millrace_plan::plan(&mut model, program, &wanted).unwrap();
    let secret = [workers as u8; 32];
    let steering = plan.steering(2, secret).unwrap();
    let ids = (0..program.objects.len()).map(ObjectId);
    let held = ids.map(|id| match plan.treatment(id) {
        Treatment::Shard => {
            assert!(plan.tells(id.0, &steering));
            Held::Divided
        }
        _ => Held::Copied,
    });
    let mut deal = Deal::even(program, workers, &steering, held.collect());
    deal.finder = Some(plan.finder(&steering));
    let keys = plan.fingerprints(program, &steering, secret).unwrap();
    deal.placement.elephants = Some(Arc::new(Elephants {
        replicas: Arc::new(Placement::even(
            program.objects.as_slice(),
            1,
            function.replicated(),
        )),
        keys: change(keys),
        row: millrace_steer::hybrid::ROW,
    }));
    assert_eq!(deal.placement.strategy(), Strategy::Hybrid);
    function.verify(&deal, schedule, trace)
}

fn right(keys: Arc<dyn Keys>) -> Arc<dyn Keys> {
    keys
}

fn equal(name: &str, some: &[u32], packets: u64) {
    let function = Function::named(name);
    for workers in counts(some, 14) {
        let seed = u64::from(workers);
        let mut trace = churning(packets, seed);
        let found = hybrid(
            &function,
            workers,
            Schedule::Seeded(seed),
            &mut trace,
            right,
        );
        assert!(found.equal, "{name} at {workers}: {:?}", found.differences);
        assert_eq!(found.compared, packets);
        assert!(found.rows.is_some_and(|rows| rows > packets / 20), "{name}");
        assert!(found.promotions.unwrap() > 50 && found.demotions.unwrap() > 50);
        // Some were looked for while packets came, and some at their row.
        let (foreseen, all) = (found.foreseen.unwrap(), found.promotions.unwrap());
        assert!(foreseen * 4 > all && foreseen < all, "{foreseen} of {all}");
    }
}

#[test]
fn the_five_of_the_paper_are_equal() {
    if !its_turn("heavy keys of the five of the paper", 0, 2) {
        return;
    }
    equal("ddos", &[2, 14], 4000);
    equal("portknock", &[3, 8], 4000);
    equal("heavyhitter", &[2, 7], 4000);
    equal("tokenbucket", &[5, 13], 4000);
    equal("conntrack", &[4, 14], 4000);
}

/// Entries move with their age, by addresses that are turned around in answers.
#[test]
fn handlers_whose_entries_expire_are_equal() {
    if !its_turn("heavy keys of handlers", 1, 2) {
        return;
    }
    equal("firewall", &[3, 10], 6000);
    equal("policer", &[5], 4000);
    equal("psd", &[4], 4000);
}

#[test]
fn threads_wait_for_owners() {
    let conntrack = Function::named("conntrack");
    for workers in [2, 6] {
        let mut trace = churning(6000, 9);
        let found = hybrid(&conntrack, workers, Schedule::Threads, &mut trace, right);
        assert!(found.equal, "{workers}: {:?}", found.differences);
    }
    let mut trace = churning(3000, 9);
    let found = hybrid(&conntrack, 3, Schedule::Ingress, &mut trace, right);
    assert!(found.equal);
}

/// Which entries a key has, or whose packets are whose, is told wrongly.
struct Wrong {
    keys: Arc<dyn Keys>,
    /// a third of entries stay where they are
    left: bool,
    /// packets of a third of keys are promoted with another owner than they have
    owner: bool,
}

impl Keys for Wrong {
    fn packet(&self, port: u32, frame: &[u8]) -> (Key, u32) {
        let (key, owner) = self.keys.packet(port, frame);
        let wrong = self.owner && key.0.is_multiple_of(3);
        (key, if wrong { owner ^ 1 } else { owner })
    }

    fn owner(&self, port: u32, frame: &[u8]) -> u32 {
        self.keys.owner(port, frame)
    }

    fn belongs(&self, object: usize, bytes: &[u8], key: Key) -> bool {
        let left = self.left && key.0.is_multiple_of(3);
        !left && self.keys.belongs(object, bytes, key)
    }
}

#[test]
fn state_that_is_not_moved_is_found() {
    let changes: [Changed; 2] = [
        |keys| {
            Arc::new(Wrong {
                keys,
                left: true,
                owner: false,
            })
        },
        |keys| {
            Arc::new(Wrong {
                keys,
                left: false,
                owner: true,
            })
        },
    ];
    let function = Function::named("heavyhitter");
    for change in changes {
        let mut trace = churning(3000, 1);
        let found = hybrid(&function, 4, Schedule::Seeded(1), &mut trace, change);
        assert!(!found.equal);
    }
}

/// One of seven rows of others is not applied.
#[test]
fn a_replica_that_leaves_rows_out_is_found() {
    if !its_turn("a replica that leaves rows out", 2, 3) {
        return;
    }
    let mut conntrack = Function::named("conntrack");
    conntrack.heavy = true;
    conntrack.plant = Some(Plant {
        place: Place::Module,
        text: "replay0_0(self, pkt, row, slot);",
        wrong: "if (number % 7)\n\t\t\treplay0_0(self, pkt, row, slot);",
    });
    let mut trace = churning(3000, 1);
    let found = hybrid(&conntrack, 3, Schedule::Seeded(1), &mut trace, right);
    assert!(!found.equal);
}

/// Entries come from heavy keys as if they had been refreshed then.
#[test]
fn entries_that_move_without_their_age_are_found() {
    if !its_turn("entries of heavy keys that move without their age", 1, 3) {
        return;
    }
    let mut firewall = Function::named("firewall");
    firewall.heavy = true;
    firewall.plant = Some(Plant {
        place: Place::Header("state/hash.h"),
        text: "piece->stamp = *hash_stamp(entry);",
        wrong: "piece->stamp = *hash_stamp(entry) + 20000000000ull;",
    });
    let mut trace = churning(6000, 3);
    let found = hybrid(&firewall, 3, Schedule::Seeded(1), &mut trace, right);
    assert!(!found.equal);
}
