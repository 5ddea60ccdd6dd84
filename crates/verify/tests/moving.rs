//! Buckets of the indirection table that change their workers with their state at drawn moments: equal for every sharded function, on any
//! number of workers, with other keys and other numbers of workers on the way; and what is done wrong is found.

use crate::common;

use std::sync::Arc;

use common::*;
use millrace_dataplane::module::Homes;
use millrace_object::program::ObjectId;
use millrace_place::{Held, Treatment};
use millrace_plan::Wanted;
use millrace_steer::buckets::{Buckets, Drawn};
use millrace_turns::its_turn;
use millrace_verify::{Deal, Findings, Generated, Moving, Schedule};

/// Flows that start and end for more than two minutes: entries expire on the way.
fn churning(packets: u64, seed: u64) -> Generated {
    over_minutes(packets, 100, 20.0, seed)
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
        let mut model = modelled(program, &checked);
        let wanted = Wanted {
            cores: self.workers,
            nic: "software".into(),
            ..Wanted::default()
        };
        let plan = millrace_plan::plan(&mut model, program, &wanted).unwrap();
        let steering = plan.steering(2, [self.workers as u8; 32]).unwrap();
        let buckets = plan
            .buckets(program, &steering)
            .map_err(|e| e.to_string())?;
        let ids = (0..program.objects.len()).map(ObjectId);
        let held = ids.map(|id| match plan.treatment(id) {
            Treatment::Shard => Held::Divided,
            Treatment::Merge if program.objects[id.0].kind.holds_records() => Held::merged(&[]),
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
        Ok(function
            .coming_home(&deal, homes, self.schedule, trace)
            .unwrap())
    }
}

fn equal(name: &str, some: &[u32], packets: u64) {
    over(name, some, packets, None);
}

/// The same over one trace, whatever the number of workers is.
fn over(name: &str, some: &[u32], packets: u64, trace: Option<u64>) {
    let function = Function::named(name);
    for workers in counts(some, 8) {
        let case = Case::new(workers, u64::from(workers));
        let mut trace = churning(packets, trace.unwrap_or(u64::from(workers)));
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
fn the_five_of_the_paper_are_equal() {
    equal("ddos", &[2, 8], 4000);
    equal("portknock", &[3], 4000);
    equal("heavyhitter", &[2, 7], 4000);
    equal("tokenbucket", &[5], 4000);
    equal("conntrack", &[4, 8], 4000);
}

/// Entries with their ages, of one direction and both, of keys that are parts of others', and of sums beside them.
#[test]
fn handlers_are_equal() {
    if !its_turn("moves of handlers", 0, 2) {
        return;
    }
    equal("firewall", &[8], 6000);
    equal("abacus", &[3], 4000);
    equal("dpi", &[4], 4000);
    equal("hhh", &[3], 4000);
    equal("policer", &[6], 4000);
    equal("psd", &[5], 4000);
    equal("tunnel", &[3], 4000);
}

/// An entry's expiry is an event, which fires at its moment wherever the entry is then.
#[test]
fn packet_sets_that_end_are_equal() {
    equal("antiddos", &[3], 4000);
    equal("dnstunnel", &[2], 4000);
    equal("portscan", &[4], 4000);
}

/// Numbers go with the leases that have them, and so do those that are free.
#[test]
fn leases_are_equal() {
    if !its_turn("moves of leases", 1, 2) {
        return;
    }
    // In others a client's own port is one that is leased by chance, and is taken for that (`probes.rs`).
    over("nat", &[3, 8], 6000, Some(3));
    over("einat", &[3], 4000, Some(3));
}

/// Elements of a vector go with the bucket of the packets whose header says the index, which is a number of 64 bits where their keys have 32.
#[test]
fn elements_of_a_vector_go_along() {
    let text = r"
#include <millrace/nf.h>
PORTS(LAN, WAN);
struct gap { __s64 mean; __u64 last; };
VECTOR(hosts, struct gap, .capacity = 256);
ON_PACKET(p)
{
	struct flow4_headers headers;
	struct flow4 f;
	struct gap *host;

	if (packet_find_flow4(p, &f, &headers) != FLOW_OWN)
		return FORWARD(peer(p));
	host = vector_at(&hosts, ntohl(p->port == LAN ? f.src : f.dst) & 0xff);
	if (!host)
		return DROP;
	host->mean += ((__s64)(p->time - host->last) - host->mean) >> 3;
	host->last = p->time;
	return host->mean < 0 ? DROP_BECAUSE(negative) : FORWARD(peer(p));
}";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gaps.c");
    std::fs::write(&path, text).unwrap();
    let function = Function::of(&path, &[], &[]);
    let found = Case::new(3, 1)
        .verified(&function, &mut churning(3000, 1))
        .unwrap();
    assert!(found.equal, "{:?}", found.differences);
    let m = found.moved.unwrap();
    assert!(m.entries > 20 && m.keys > 0 && m.lost == 0, "{m:?}");
}

/// Beside state that all workers have in common.
#[test]
fn a_part_of_a_mixed_plan_is_equal() {
    equal("monitor", &[3], 4000);
    equal("sidejacking", &[4], 4000);
}

#[test]
fn what_cannot_be_found_by_its_bucket_stays() {
    for (name, why) in [
        (
            "cl",
            "opened: a sketch does not know the keys that it counts",
        ),
        (
            "dummy",
            "elements: its keys do not say which packets have an entry",
        ),
    ] {
        let case = Case::new(2, 1);
        let found = case.verified(&Function::named(name), &mut churning(2000, 1));
        assert_eq!(found.unwrap_err(), why);
    }
}

/// Each worker has room for a part of the flows alone, so that the receiver of a bucket may be full.
#[test]
fn a_receiver_without_room_leaves_a_bucket_where_it_is() {
    let firewall = Function::with("firewall", &[], &[("flows", 4096)]);
    let case = Case {
        part: Some(48),
        ..Case::new(4, 3)
    };
    let found = case.verified(&firewall, &mut churning(8000, 3)).unwrap();
    assert!(found.equal, "{:?}", found.differences);
    let m = found.moved.unwrap();
    assert!(m.refused > 10 && m.moves > 10 && m.lost == 0, "{m:?}");
}

/// Workers that are far behind each other, on threads, or not at all.
#[test]
fn any_schedule_is_equal() {
    let conntrack = Function::named("conntrack");
    for schedule in [Schedule::Ingress, Schedule::Threads] {
        let case = Case {
            schedule,
            ..Case::new(3, 5)
        };
        let found = case.verified(&conntrack, &mut churning(4000, 5)).unwrap();
        assert!(found.equal, "{schedule:?}: {:?}", found.differences);
    }
}

/// Entries or packets have another bucket than they have.
struct Wrong {
    buckets: Arc<dyn Buckets>,
    entries: bool,
}

impl Buckets for Wrong {
    fn count(&self) -> u32 {
        self.buckets.count()
    }

    fn packet(&self, port: u32, frame: &[u8]) -> u32 {
        let bucket = self.buckets.packet(port, frame);
        match !self.entries && port == 1 {
            true => bucket ^ 1,
            false => bucket,
        }
    }

    fn entry(&self, object: usize, key: &[u8]) -> Option<u32> {
        let bucket = self.buckets.entry(object, key)?;
        let wrong = self.entries && bucket.is_multiple_of(3);
        Some(if wrong { bucket + 1 } else { bucket })
    }

    fn draw(&self, _: [u8; 32]) -> Option<Drawn> {
        None
    }
}

#[test]
fn state_that_does_not_move_is_found() {
    let firewall = Function::named("firewall");
    type Change = fn(Arc<dyn Buckets>) -> Arc<dyn Buckets>;
    let changes: [Change; 2] = [
        |buckets| {
            Arc::new(Wrong {
                buckets,
                entries: true,
            })
        },
        |buckets| {
            Arc::new(Wrong {
                buckets,
                entries: false,
            })
        },
    ];
    for change in changes {
        let case = Case {
            change,
            ..Case::new(4, 1)
        };
        assert!(
            !case
                .verified(&firewall, &mut churning(4000, 1))
                .unwrap()
                .equal
        );
    }
}

/// Something in the fast path that moves entries wrongly.
fn planted(name: &str, place: &'static str, text: &'static str, wrong: &'static str) {
    let mut function = Function::named(name);
    function.plant = Some(Plant {
        place: Place::Header(place),
        text,
        wrong,
    });
    let case = Case::new(3, 2);
    let found = case.verified(&function, &mut churning(6000, 2)).unwrap();
    assert!(!found.equal, "{name}: {wrong}");
}

#[test]
fn entries_that_move_without_their_age_are_found() {
    if !its_turn("entries that move without their age", 2, 3) {
        return;
    }
    let stamp = "u64 stamp = piece->bound ? piece->stamp : now;\n\n        *hash_stamp(entry) = stamp;\n        if (s->shared)";
    let late = "u64 stamp = now + 20000000000ull;\n\n        *hash_stamp(entry) = stamp;\n        if (s->shared)";
    planted("firewall", "state/hash.h", stamp, late);
    // Of one whose expiry is an event, the moment.
    let event = "own.order = h->timers.alarms->started++;";
    let later = "own.order = h->timers.alarms->started++, own.due += 5000000000ull;";
    planted("portscan", "state/hash.h", event, later);
}

#[test]
fn leases_that_stay_behind_are_found() {
    if !its_turn("leases that stay behind", 0, 3) {
        return;
    }
    let take = "allocator_take(a, s, index, stamp);\n        memcpy";
    let not = "if (index % 3)\n            allocator_take(a, s, index, stamp);\n        memcpy";
    planted("nat", "state/allocator.h", take, not);
}
