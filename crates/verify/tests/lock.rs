//! Workers that share state on threads of their own: what they did is what one worker does in the order of commits,
//! and where they do not lock it is not.

use crate::common;

use common::*;
use millrace_place::Held;
use millrace_steer::Field;
use millrace_traffic::generate::Spec;
use millrace_turns::of_today;
use millrace_verify::{Deal, Findings, Generated, Kind, Schedule};

/// Flows that start and end for this many seconds, with answers.
fn churning(packets: u64, seconds: f64) -> Generated {
    let rate = packets as f64 / seconds;
    Generated(Spec {
        packets,
        flows: 400,
        churn: rate,
        rate,
        ..Spec::default()
    })
}

fn locked(
    function: &Function,
    workers: u32,
    schedule: Schedule,
    packets: u64,
    seconds: f64,
) -> Findings {
    let rss = vec![by(&plain_key(), workers, &Field::ALL); 2];
    let deal = Deal::even(&function.program, workers, &rss, function.locked());
    function.verify(&deal, schedule, &mut churning(packets, seconds))
}

#[test]
fn a_bridge_that_workers_share_is_equal() {
    let bridge = Function::named("bridge");
    for (workers, schedule) in [
        (1, Schedule::Threads),
        (2, Schedule::Seeded(3)),
        (4, Schedule::Seeded(3)),
        (8, Schedule::Seeded(3)),
        (8, Schedule::Threads),
        (4, Schedule::Ingress),
    ] {
        let found = locked(&bridge, workers, schedule, 12_000, 130.0);
        assert!(found.equal, "{workers} {schedule:?}");
        assert_eq!(found.compared, 12_000);
        assert_eq!(found.writers.is_some(), workers > 1);
        assert!(found.entries > 0 && found.not_compared.is_empty());
    }
}

/// Expiry, refreshes by readers on every core, leases, and answers to what was leased.
#[test]
fn functions_with_all_that_they_write_under_the_lock_are_equal() {
    for name in of_today(
        "functions under the lock",
        ["firewall", "nat", "policer", "psd"],
        2,
    ) {
        let function = Function::named(name);
        let found = locked(&function, 4, Schedule::Seeded(7), 12_000, 130.0);
        assert!(found.equal, "{name}");
        let writers = found.writers.unwrap();
        assert!(
            writers > 0 && writers <= found.compared,
            "{name}: {writers}"
        );
    }
}

/// One counter for all packets, which each is told.
const TICKETS: &str = r#"
#include <millrace/nf.h>

PORTS(LAN, WAN);
VECTOR(tickets, __u64, .capacity = 1);
VECTOR(seen, __u64, .capacity = 1);

ON_PACKET(p)
{
	__u8 *bytes = packet_bytes(p, 0, 14);
	__u64 *ticket = vector_at(&tickets, 0), *mine = vector_at(&seen, 0);

	if (!bytes || !ticket || !mine)
		return DROP;
	*mine += 1;
	*ticket += 1;
	bytes[5] = *ticket;
	return FORWARD(peer(p));
}
"#;

#[test]
fn a_lock_that_is_dropped_is_caught() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tickets.c");
    std::fs::write(&path, TICKETS).unwrap();
    let mut tickets = Function::of(&path, &[], &[]);
    let rss = vec![by(&plain_key(), 4, &Field::ALL); 2];
    let verify = |function: &Function, seed: u64| {
        let objects = function.program.objects.iter();
        let held = objects.map(|o| match o.name.as_str() {
            "tickets" => Held::Locked,
            "seen" => sums(o, 8),
            _ => Held::Copied,
        });
        let deal = Deal::even(&function.program, 4, &rss, held.collect());
        function.verify(&deal, Schedule::Seeded(seed), &mut churning(4_000, 0.1))
    };
    let found = verify(&tickets, 1);
    assert!(found.equal);
    assert_eq!(found.writers, Some(4_000));
    tickets.dropped = true;
    let found = (1..=8)
        .map(|seed| verify(&tickets, seed))
        .find(|f| !f.equal);
    let found = found.expect("no seed showed it");
    let kinds: Vec<Kind> = found.differences.iter().map(|d| d.kind).collect();
    assert!(kinds.contains(&Kind::Bytes), "{kinds:?}");
}

/// Packets put prefixes of several lengths for one address, which are listed by that address.
const NESTED: &str = r#"
#include <millrace/nf.h>

PORTS(LAN, WAN);
LPM(nets, struct address, __u64, .capacity = 64);

ON_PACKET(p)
{
    struct address net = { { 0, 1 } };
    struct flow f;
    __u64 *seen;

    if (!packet_flow(p, &f))
        return FORWARD(peer(p));
    seen = lpm_put(&nets, &net, 16 + (f.dport & 31), &(__u64){ p->time });
    return seen ? FORWARD(peer(p)) : DROP_BECAUSE(full);
}
"#;

#[test]
fn prefixes_of_one_address_are_compared_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nested.c");
    std::fs::write(&path, NESTED).unwrap();
    let function = Function::of(&path, &[], &[]);
    let rss = vec![by(&plain_key(), 3, &Field::ALL); 2];
    let deal = Deal::even(&function.program, 3, &rss, function.locked());
    let found = function.verify(&deal, Schedule::Seeded(1), &mut churning(600, 0.1));
    assert!(found.equal, "{:?}", found.differences);
}

/// A hundred packets and one each second are forwarded, and time is subtracted.
const LIMIT: &str = r#"
#include <millrace/nf.h>

PORTS(LAN, WAN);
struct window { __u64 since, count; };
VECTOR(window, struct window, .capacity = 1);

ON_PACKET(p)
{
	struct window *w = vector_at(&window, 0);

	if (!w)
		return DROP;
	if (p->time - w->since > SECONDS(1)) {
		w->since = p->time;
		w->count = 0;
	}
	if (w->count > 100)
		return DROP;
	w->count++;
	return FORWARD(peer(p));
}
"#;

/// The same with the kernel's clocks, one for each of the four, and the difference of them all.
const CLOCKS: &str = r#"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct seen { __u64 ns, boot, coarse, tai, ticks, back; };
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct seen);
} seen SEC(".maps");

SEC("xdp")
int clocks(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct seen *s = bpf_map_lookup_elem(&seen, &zero);
	__u64 ns = bpf_ktime_get_ns(), boot = bpf_ktime_get_boot_ns();
	__u64 coarse = bpf_ktime_get_coarse_ns(), tai = bpf_ktime_get_tai_ns(), ticks = bpf_jiffies64();

	if (!s)
		return XDP_ABORTED;
	if (ns < s->ns || boot < s->boot || coarse < s->coarse || tai < s->tai || ticks < s->ticks) {
		s->back++;
		return XDP_DROP;
	}
	s->ns = ns;
	s->boot = boot;
	s->coarse = coarse;
	s->tai = tai;
	s->ticks = ticks;
	return XDP_TX;
}

char _license[] SEC("license") = "MIT";
"#;

/// However far workers are apart, no packet has an earlier time than one that committed before it.
#[test]
fn time_does_not_go_back_in_the_order_of_commits() {
    // Each is one of 3,000 in less than a second: nobody begins anew, and no clock runs backwards.
    for (text, forwarded) in [(LIMIT, 101), (CLOCKS, 3_000)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("timed.c");
        std::fs::write(&path, text).unwrap();
        let function = Function::of(&path, &[], &[]);
        for schedule in [Schedule::Seeded(1), Schedule::Threads] {
            let found = locked(&function, 4, schedule, 3_000, 0.9);
            assert!(found.equal, "{schedule:?}");
            assert_eq!(found.forwarded, forwarded, "{schedule:?}");
        }
    }
}
