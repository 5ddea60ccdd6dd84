//! Entries lie under the index of the indirection table that their keys say, and one who looks under another key's
//! indexes is told that they do not.

use crate::common;

use common::*;
use millrace_object::program::{ObjectId, Program};
use millrace_place::{Held, Treatment, Word};
use millrace_plan::{Carried, Plan, Wanted};
use millrace_steer::{Parsed, Steering};
use millrace_traffic::generate::Spec;
use millrace_verify::{Deal, Dispatch, Findings, Generated, Kind, Schedule};

const WORKERS: u32 = 4;

/// The worker behind the right one.
struct Next(Vec<Steering>);

impl Dispatch for Next {
    fn worker(&self, port: u32, frame: &[u8]) -> u32 {
        (self.0.worker(port, frame) + 1) % WORKERS
    }

    fn read(&self, port: u32, frame: &[u8]) -> Parsed {
        self.0.read(port, frame)
    }
}

fn planned(of: &Function) -> Plan {
    let checked = millrace_check::check(&of.program, &Default::default()).unwrap();
    let mut model = modelled(&of.program, &checked);
    let wanted = Wanted {
        cores: WORKERS,
        nic: "generic".into(),
        // By R6 a worker has to be told which numbers come home to it (tests/homing.rs).
        carried: Carried::Compared,
        ..Wanted::default()
    };
    millrace_plan::plan(&mut model, &of.program, &wanted).unwrap()
}

/// How the objects are held.
fn held(plan: &Plan, program: &Program) -> Vec<Held> {
    let objects = (0..program.objects.len()).map(ObjectId);
    objects
        .map(|id| match plan.treatment(id) {
            Treatment::Shard => Held::Divided,
            Treatment::Merge => {
                let said = plan.objects.iter().find(|o| o.id == id).unwrap();
                let word = |w: &millrace_model::sums::Word| Word {
                    offset: w.offset as usize,
                    bytes: w.bytes as usize,
                    low: w.low,
                };
                Held::merged(&said.words.iter().map(word).collect::<Vec<_>>())
            }
            _ => Held::Copied,
        })
        .collect()
}

/// Verifies under keys of one secret, looking for entries under those of another.
fn verified(of: &Function, plan: &Plan, secrets: [u8; 2]) -> Findings {
    let [steering, other] = secrets.map(|s| plan.steering(2, [s; 32]).unwrap());
    let deal = Deal::even(&of.program, WORKERS, &steering, held(plan, &of.program));
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

/// A place of an array for each source, by the last bits of its address; most are never touched, and some are at zero again.
const PLACES: &str = r#"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} places SEC(".maps");

SEC("xdp")
int place(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 key;
	__u64 *count;

	if (data + 34 > end || data[12] != 8 || data[13] != 0 || data[14] != 0x45)
		return XDP_PASS;
	key = data[29] | (data[28] & 3) << 8;
	count = bpf_map_lookup_elem(&places, &key);
	if (count && ++*count == 5)
		*count = 0;
	return count && *count == 3 ? XDP_DROP : XDP_TX;
}

char _license[] SEC("license") = "MIT";
"#;

#[test]
fn elements_that_nobody_touched_are_nobodys_entries() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("places.c");
    std::fs::write(&path, PLACES).unwrap();
    let places = Function::of(&path, &[], &[]);
    let plan = planned(&places);
    assert_eq!(plan.strategy, millrace_place::Strategy::Shard);
    let found = verified(&places, &plan, [1, 1]);
    assert!(found.equal, "{:?}", found.differences.first());
    assert!(
        (10..900).contains(&found.found_by_index),
        "{}",
        found.found_by_index
    );
    // Everything at the next worker: each verdict and each value is right, and every entry lies elsewhere.
    let steering = plan.steering(2, [1; 32]).unwrap();
    let next = Next(steering.clone());
    let held = held(&plan, &places.program);
    let deal = Deal {
        finder: Some(plan.finder(&steering)),
        ..Deal::even(&places.program, WORKERS, &next, held)
    };
    let mut trace = Generated(Spec {
        packets: 5_000,
        flows: 300,
        ..Spec::default()
    });
    let found = places.verify(&deal, Schedule::Ingress, &mut trace);
    assert!(!found.equal && found.found_by_index == 0);
    let lies = |d: &millrace_verify::Difference| d.what.contains("lies at worker");
    assert!(
        found.differences.iter().all(lies),
        "{:?}",
        found.differences
    );
}
