//! Packet sets: the expiry of each is one event, at its moment, on whichever core, and in its place in the order of commits
//! where workers share the sets.

use crate::common;

use common::*;
use millrace_place::Held;
use millrace_steer::{Field, Steering};
use millrace_traffic::generate::{Mix, Spec};
use millrace_turns::its_turn;
use millrace_verify::{Deal, Findings, Generated, Schedule};

/// Flows with pauses that are longer than a set lives, and shorter ones, from both sides.
fn pausing(packets: u64) -> Generated {
    let rate = packets as f64 / 60.0;
    Generated(Spec {
        packets,
        flows: 300,
        churn: rate,
        rate,
        ..Spec::default()
    })
}

/// A set whose every life is written down: what is opened a second time has ended once since, and a packet that does not
/// find it so is dropped.
const ONCE: &str = r#"
#include <millrace/nf.h>
#include <millrace/set.h>

PORTS(LAN, WAN);
PACKET_SET(flows, struct flow, struct { __u64 at; }, .capacity = 4096, .expire_after = SECONDS(2));
MAP(lives, struct flow, struct { __u64 opened; __u64 ended; __u64 last; }, .capacity = 65536);

SET_KEY(p, key)
{
	struct flow f = {};

	if (!packet_flow(p, &f))
		return 0;
	if (p->port == WAN)
		flow_reverse(&f);
	*key = f;
	return 1;
}

ON_FIRST_PACKET(p, key)
{
	typeof(*lives.value) *life = map_get(&lives, key);

	if (!life)
		life = map_put(&lives, key, &(typeof(*lives.value)){});
	if (!life)
		return DROP_BECAUSE(full);
	if (life->ended < life->opened)
		return DROP_BECAUSE(lost);
	if (life->ended > life->opened)
		return DROP_BECAUSE(twice);
	if (life->opened && p->time < life->last)
		return DROP_BECAUSE(late);
	life->opened++;
	return set_open(&flows, key, &(millrace_set_state){ p->time }) ? FORWARD(peer(p)) :
									 DROP_BECAUSE(full);
}

ON_PACKET(p, key, state)
{
	if (p->time - state->at >= SECONDS(2))
		return DROP_BECAUSE(old);
	state->at = p->time;
	return FORWARD(peer(p));
}

ON_ORPHAN(p)
{
	return FORWARD(peer(p));
}

ON_EXPIRY(p, key, state)
{
	typeof(*lives.value) *life = map_get(&lives, key);

	if (!life)
		return;
	life->ended++;
	/* The moment, to the nanosecond. */
	life->last = p->time;
	if (p->time != state->at + SECONDS(2))
		life->ended += 100;
}
"#;

fn once(folder: &tempfile::TempDir) -> Function {
    let path = folder.path().join("once.c");
    std::fs::write(&path, ONCE).unwrap();
    Function::of(&path, &[], &[])
}

fn shared(function: &Function, workers: u32, schedule: Schedule) -> Findings {
    let rss = vec![by(&plain_key(), workers, &Field::ALL); 2];
    let deal = Deal::even(&function.program, workers, &rss, function.locked());
    function.verify(&deal, schedule, &mut pausing(PACKETS))
}

const PACKETS: u64 = 8_000;

#[test]
fn each_set_ends_once_at_its_moment() {
    let folder = tempfile::tempdir().unwrap();
    let once = once(&folder);
    for workers in [1, 4] {
        let rss = vec![by(&symmetric_key(), workers, &Field::ALL); 2];
        let found = once.shard(workers, &rss, &mut pausing(PACKETS));
        assert!(found.equal, "{workers}");
        // Nothing was lost, nothing ended twice, late or early: every packet went on.
        assert_eq!(found.forwarded, PACKETS, "{workers}");
        assert!(found.entries > 300, "{}", found.entries);
    }
}

#[test]
fn where_workers_share_sets_an_expiry_is_an_event_of_their_order() {
    if !its_turn("sets that workers share", 0, 2) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let once = once(&folder);
    for schedule in [
        Schedule::Seeded(3),
        Schedule::Seeded(11),
        Schedule::Threads,
        Schedule::Ingress,
    ] {
        let found = shared(&once, 4, schedule);
        assert!(found.equal, "{schedule:?}");
        assert_eq!(found.forwarded, PACKETS, "{schedule:?}");
    }
}

/// Where packets are transactions, too: an expiry that is due runs before the packet that comes to it, alone.
#[test]
fn where_packets_are_transactions_an_expiry_is_an_event_of_their_order() {
    if !its_turn("sets of transactions", 1, 2) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let once = once(&folder);
    let transacted = |held: Held| match held {
        Held::Locked => Held::Transacted,
        held => held,
    };
    let held: Vec<Held> = once.locked().into_iter().map(transacted).collect();
    let rss = vec![by(&plain_key(), 4, &Field::ALL); 2];
    let deal = Deal::even(&once.program, 4, &rss, held);
    for schedule in [Schedule::Seeded(3), Schedule::Threads] {
        let found = once.verify(&deal, schedule, &mut pausing(PACKETS));
        assert!(found.equal, "{schedule:?}");
        assert_eq!(found.forwarded, PACKETS, "{schedule:?}");
    }
}

/// Contacts that nobody answers.
fn unanswered(packets: u64) -> Generated {
    let rate = packets as f64 / 60.0;
    Generated(Spec {
        packets,
        flows: 300,
        churn: rate,
        rate,
        both: false,
        lan: "10.0.0.0/26".parse().unwrap(),
        mix: Mix {
            tcp: 1.0,
            udp: 0.0,
            icmp: 0.0,
        },
        ..Spec::default()
    })
}

/// By the host of the LAN.
fn by_host(workers: u32) -> Vec<Steering> {
    [Field::SourceAddress, Field::DestinationAddress]
        .map(|f| by(&symmetric_key(), workers, &[f]))
        .to_vec()
}

#[test]
fn what_an_expiry_does_to_another_object_is_done_where_its_packets_are() {
    let portscan = Function::with("portscan", &[("threshold", "2")], &[]);
    let found = portscan.shard(4, &by_host(4), &mut unanswered(PACKETS));
    assert!(found.equal);
    assert!(found.forwarded < PACKETS, "{}", found.forwarded);
    // By the whole flow the walks of a host are in several places.
    let rss = vec![by(&symmetric_key(), 4, &Field::ALL); 2];
    assert!(!portscan.shard(4, &rss, &mut unanswered(PACKETS)).equal);
    let monitor = Function::named("monitor");
    for schedule in [Schedule::Seeded(5), Schedule::Threads] {
        let rss = vec![by(&symmetric_key(), 4, &Field::ALL); 2];
        // The totals are the expiry's, too, so that they and the sessions are one for all as the hosts are.
        let all = monitor
            .program
            .objects
            .iter()
            .map(|_| Held::Locked)
            .collect();
        let deal = Deal::even(&monitor.program, 4, &rss, all);
        assert!(monitor.verify(&deal, schedule, &mut pausing(PACKETS)).equal);
    }
}

#[test]
fn wrong_events_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let header = |name, text, wrong| Plant {
        place: Place::Header(name),
        text,
        wrong,
    };
    // A refresh is not heard of; an entry that is closed keeps its event; the entry of an event is another one.
    for plant in [
        header("state/timers.h", "if (due > timer->due) {", "if (0) {"),
        header(
            "state/hash.h",
            "expiry_due(*stamp, s->expire_after)",
            "expiry_due(*stamp, s->expire_after) + 1",
        ),
    ] {
        let mut once = once(&folder);
        once.plant = Some(plant);
        let rss = vec![by(&symmetric_key(), 4, &Field::ALL); 2];
        let found = once.shard(4, &rss, &mut pausing(PACKETS));
        assert!(!found.equal, "{plant:?}");
    }
    // What is due is ended behind the packets that it is due before.
    let mut once = once(&folder);
    once.plant = Some(Plant {
        place: Place::Module,
        text: "\t\tfire_due(self, pkt);",
        wrong: "\t\t;",
    });
    assert!(!shared(&once, 4, Schedule::Seeded(3)).equal);
}
