//! Faults that are put into the parallel side, one at a time, each found: in a plan, in steering, in emitted code, in the
//! headers it is compiled with, and in the function itself. Without them both sides are equal.

use crate::common;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

use common::*;
use millrace_place::Held;
use millrace_steer::{Field, Parsed, Steering};
use millrace_traffic::generate::{Mix, Spec};
use millrace_turns::of_today;
use millrace_verify::{Deal, Dispatch, Findings, Generated, Kind, Schedule};

/// What is verified, without anything wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Base {
    /// the firewall, divided by both ends of a flow
    Firewall,
    /// the same at one worker, with a table that becomes full
    Small,
    /// the NAT, divided by the server
    Nat,
    /// a function of this file with everything divided by source
    Own(&'static str),
    /// the firewall with its flows under the lock
    Locked,
    /// a function of this file with everything under the lock
    LockedOwn(&'static str),
    /// a function of this file whose globals are merged
    Merged(&'static str),
}

/// What is wrong.
#[derive(Clone, Copy)]
enum Wrong {
    /// in the code
    Code(Plant),
    /// these fields decide, under a key without symmetry
    Fields(&'static [Field]),
    /// one packet of 64 goes to the next worker
    Astray,
    /// objects that are held like this
    Held(fn() -> Held),
    /// writers take no lock
    Dropped,
}

struct Fault {
    name: &'static str,
    base: Base,
    wrong: Wrong,
    /// what it is found by
    found: &'static [Kind],
}

const fn source(text: &'static str, wrong: &'static str) -> Wrong {
    Wrong::Code(Plant {
        place: Place::Source,
        text,
        wrong,
    })
}

const fn module(text: &'static str, wrong: &'static str) -> Wrong {
    Wrong::Code(Plant {
        place: Place::Module,
        text,
        wrong,
    })
}

const fn header(name: &'static str, text: &'static str, wrong: &'static str) -> Wrong {
    Wrong::Code(Plant {
        place: Place::Header(name),
        text,
        wrong,
    })
}

/// Per source: packets and when the last one came; the count is written into the packet, a record left of each eighth,
/// and forgotten after 20.
const SOURCES: &str = r#"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct seen { __u64 packets, last; };
struct key { __u32 from, to; };
struct note { __u32 from, packets; };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct key);
	__type(value, struct seen);
} sources SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} notes SEC(".maps");

SEC("xdp")
int count(struct xdp_md *ctx)
{
	unsigned char *bytes = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct seen *seen, fresh = {};
	struct key key = {};
	struct note note;

	if (bytes + 34 > end || bytes[12] != 8 || bytes[13] != 0)
		return XDP_TX;
	__builtin_memcpy(&key.from, bytes + 26, 4);
	key.to = key.from;
	seen = bpf_map_lookup_elem(&sources, &key);
	if (!seen) {
		bpf_map_update_elem(&sources, &key, &fresh, BPF_ANY);
		seen = bpf_map_lookup_elem(&sources, &key);
	}
	if (!seen)
		return XDP_DROP;
	seen->packets += 1;
	seen->last = bpf_ktime_get_ns();
	bytes[5] = seen->packets;
	if (seen->packets % 8 == 0) {
		note.from = key.from;
		note.packets = seen->packets;
		bpf_ringbuf_output(&notes, &note, sizeof(note), 0);
	}
	if (seen->packets >= 20)
		bpf_map_delete_elem(&sources, &key);
	return XDP_TX;
}

char _license[] SEC("license") = "MIT";
"#;

/// One of eight packets is dropped by chance.
const CHANCE: &str = r#"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int chance(struct xdp_md *ctx)
{
	return bpf_get_prandom_u32() % 8 == 0 ? XDP_DROP : XDP_TX;
}

char _license[] SEC("license") = "MIT";
"#;

/// Only counts.
const COUNTS: &str = r#"
#include <millrace/nf.h>

PORTS(LAN, WAN);
static __u64 packets, bytes;

ON_PACKET(p)
{
	packets++;
	bytes += packet_length(p);
	return FORWARD(peer(p));
}
"#;

/// Each packet is told how many came before it, and how long ago the last one did.
const TICKETS: &str = r#"
#include <millrace/nf.h>

PORTS(LAN, WAN);
struct last { __u64 ticket, time; };
VECTOR(tickets, struct last, .capacity = 1);

ON_PACKET(p)
{
	__u8 *bytes = packet_bytes(p, 0, 14);
	struct last *last = vector_at(&tickets, 0);

	if (!bytes || !last)
		return DROP;
	bytes[4] ^= 0x5a;
	bytes[5] = ++last->ticket;
	bytes[3] = (p->time - last->time) >> 20;
	last->time = p->time;
	return FORWARD(peer(p));
}
"#;

const ANY: &[Kind] = &[
    Kind::Verdict,
    Kind::Bytes,
    Kind::State,
    Kind::Lease,
    Kind::Records,
];
const STATE: &[Kind] = &[Kind::State];

/// The table.
const FAULTS: &[Fault] = &[
    // Steering and plans.
    Fault {
        name: "a key that tells both directions apart",
        base: Base::Firewall,
        wrong: Wrong::Fields(&Field::ALL),
        found: &[Kind::Verdict],
    },
    Fault {
        name: "steering by half the fields",
        base: Base::Firewall,
        wrong: Wrong::Fields(&[SourceAddress, SourcePort]),
        found: &[Kind::Verdict],
    },
    Fault {
        name: "packets by the client where leases are found by the server",
        base: Base::Nat,
        wrong: Wrong::Fields(&[SourceAddress]),
        found: &[Kind::Verdict],
    },
    Fault {
        name: "packets that go to another worker now and then",
        base: Base::Firewall,
        wrong: Wrong::Astray,
        found: &[Kind::Verdict, Kind::Order],
    },
    Fault {
        name: "the order of a flow that nothing keeps",
        base: Base::Own(CHANCE),
        wrong: Wrong::Astray,
        found: &[Kind::Order],
    },
    Fault {
        name: "entries of one source at the workers of its flows",
        base: Base::Own(SOURCES),
        wrong: Wrong::Fields(&Field::ALL),
        found: ANY,
    },
    Fault {
        name: "state that packets write, taken for a copy",
        base: Base::Merged(COUNTS),
        wrong: Wrong::Held(|| Held::Copied),
        found: STATE,
    },
    Fault {
        name: "sums taken for entries of one worker each",
        base: Base::Merged(COUNTS),
        wrong: Wrong::Held(|| Held::Divided),
        found: STATE,
    },
    Fault {
        name: "a verdict",
        base: Base::Firewall,
        wrong: source("return DROP_BECAUSE(no_flow);", "return FORWARD(peer(p));"),
        found: &[Kind::Verdict],
    },
    Fault {
        name: "a byte rewritten",
        base: Base::Nat,
        wrong: source(
            "\tcount_hop(ip);\n\tif (source)",
            "\tcount_hop(ip);\n\tipv4_decrement_ttl(ip);\n\tif (source)",
        ),
        found: &[Kind::Bytes],
    },
    Fault {
        name: "a checksum that does not follow",
        base: Base::Nat,
        wrong: source(
            "\tcount_hop(ip);\n\tif (source)",
            "\tip->ttl -= 1;\n\tif (source)",
        ),
        found: &[Kind::Bytes],
    },
    Fault {
        name: "an entry for the reverse direction",
        base: Base::Firewall,
        wrong: source(
            "if (p->port == WAN)\n\t\tflow_reverse(&f);",
            "if (p->port == LAN)\n\t\tflow_reverse(&f);",
        ),
        found: ANY,
    },
    Fault {
        name: "a record that is lost",
        base: Base::Own(SOURCES),
        wrong: source("if (seen->packets % 8 == 0)", "if (seen->packets == 8)"),
        found: &[Kind::Records],
    },
    Fault {
        name: "a record twice",
        base: Base::Own(SOURCES),
        wrong: source(
            "bpf_ringbuf_output(&notes, &note, sizeof(note), 0);",
            "bpf_ringbuf_output(&notes, &note, sizeof(note), 0);\n\t\tbpf_ringbuf_output(&notes, &note, sizeof(note), 0);",
        ),
        found: &[Kind::Records],
    },
    Fault {
        name: "a byte of a record",
        base: Base::Own(SOURCES),
        wrong: source(
            "note.packets = seen->packets;",
            "note.packets = seen->packets + 1;",
        ),
        found: &[Kind::Records],
    },
    Fault {
        name: "a stale entry",
        base: Base::Own(SOURCES),
        wrong: source("if (seen->packets >= 20)", "if (seen->packets >= 21)"),
        found: ANY,
    },
    Fault {
        name: "an addition too many in a sum",
        base: Base::Merged(COUNTS),
        wrong: source("packets++;", "packets += 2;"),
        found: STATE,
    },
    Fault {
        name: "a sum that one kind of packet is left out of",
        base: Base::Merged(COUNTS),
        wrong: source(
            "bytes += packet_length(p);",
            "if (p->port == LAN)\n\t\tbytes += packet_length(p);",
        ),
        found: STATE,
    },
    Fault {
        name: "the time of the last packet",
        base: Base::Own(SOURCES),
        wrong: source(
            "seen->last = bpf_ktime_get_ns();",
            "seen->last = bpf_ktime_get_ns() + 1;",
        ),
        found: STATE,
    },
    // Emitted code.
    Fault {
        name: "the last packet of a burst left out",
        base: Base::Locked,
        wrong: module(
            "for (u32 i = 0; i < n; i++) {",
            "for (u32 i = 0; i + (n > 2) < n; i++) {",
        ),
        found: &[Kind::Verdict],
    },
    Fault {
        name: "packets done twice",
        base: Base::LockedOwn(TICKETS),
        wrong: module(
            "packet0(self, packets[i]);",
            "packet0(self, packets[i]);\n\t\tpacket0(self, packets[i]);",
        ),
        found: ANY,
    },
    Fault {
        name: "a burst backwards",
        base: Base::LockedOwn(TICKETS),
        wrong: module(
            "void read0(struct mr_instance *self, struct mr_packet *const *packets, u32 n)\n{\n",
            "void read0(struct mr_instance *self, struct mr_packet *const *packets, u32 n)\n{\n\tstruct mr_packet *back[256];\n\n\tfor (u32 i = 0; i < n; i++)\n\t\tback[i] = packets[n - 1 - i];\n\tpackets = back;\n",
        ),
        found: &[Kind::Order],
    },
    Fault {
        name: "a capacity less one",
        base: Base::Small,
        wrong: module(".capacity = 300", ".capacity = 299"),
        found: ANY,
    },
    Fault {
        name: "a life that is longer",
        base: Base::Firewall,
        wrong: header(
            "state/expiry.h",
            "now - stamp >= expire_after",
            "now - stamp > expire_after + 1000000000",
        ),
        found: ANY,
    },
    Fault {
        name: "a refresh that is lost",
        base: Base::Firewall,
        wrong: header(
            "state/hash.h",
            "*hash_stamp(entry) = now;\n    }",
            "*hash_stamp(entry) += 0;\n    }",
        ),
        found: ANY,
    },
    Fault {
        name: "a key of half the fields",
        base: Base::Firewall,
        wrong: source(
            "\tif (p->port == WAN)\n\t\tflow_reverse(&f);",
            "\tf.ports = 0;\n\tif (p->port == WAN)\n\t\tflow_reverse(&f);",
        ),
        found: ANY,
    },
    Fault {
        name: "a deletion that does nothing",
        base: Base::Own(SOURCES),
        wrong: header(
            "state/hash.h",
            "there = !hash_expired(h, s, entry, pkt->time);\n    hash_drop(h, s, index);",
            "there = !hash_expired(h, s, entry, pkt->time);",
        ),
        found: ANY,
    },
    Fault {
        name: "one number leased twice",
        base: Base::Nat,
        wrong: header(
            "state/allocator.h",
            "return s->first + index;",
            "return s->first + index / 2;",
        ),
        found: ANY,
    },
    Fault {
        name: "a lease that nothing refreshes",
        base: Base::Nat,
        wrong: header(
            "state/allocator.h",
            "*(u64 *)entry = pkt->time;",
            "*(u64 *)entry += 0;",
        ),
        found: ANY,
    },
    Fault {
        name: "a draw of the processor's",
        base: Base::Own(CHANCE),
        wrong: header(
            "helpers/get_prandom_u32.h",
            "pkt->draws",
            "pkt->cpu + pkt->draws",
        ),
        found: &[Kind::Verdict],
    },
    // The lock's steps.
    Fault {
        name: "a lock that is dropped",
        base: Base::LockedOwn(TICKETS),
        wrong: Wrong::Dropped,
        found: &[Kind::Bytes, Kind::Time, Kind::Order],
    },
    Fault {
        name: "commits that are not counted",
        base: Base::LockedOwn(TICKETS),
        wrong: header(
            "sync/lock.h",
            "return 2 * ++k->commits;",
            "return 2 * (k->commits | 1);",
        ),
        found: &[Kind::Bytes, Kind::Time],
    },
    Fault {
        name: "time that goes back under the lock",
        base: Base::LockedOwn(TICKETS),
        wrong: header(
            "sync/lock.h",
            "        if (time < k->line[i].time)\n            time = k->line[i].time;\n    if (time < k->time)\n        time = k->time;\n",
            "        ;\n",
        ),
        found: &[Kind::Time],
    },
    Fault {
        name: "a reader at the time when it came",
        base: Base::Locked,
        wrong: header(
            "sync/lock.h",
            "    if (mr_unlikely(time < k->time))\n        time = k->time;\n",
            "",
        ),
        found: &[Kind::Time],
    },
    Fault {
        name: "time that runs ahead",
        base: Base::LockedOwn(TICKETS),
        wrong: header(
            "sync/lock.h",
            "    k->time = time;\n    return time;",
            "    k->time = time;\n    return time + 1000000000;",
        ),
        found: &[Kind::Time],
    },
    Fault {
        name: "a reader's stores that are not undone",
        base: Base::LockedOwn(TICKETS),
        wrong: header(
            "sync/undo.h",
            "    while (u->count > 0) {",
            "    u->count = 0;\n    while (u->count > 0) {",
        ),
        found: &[Kind::Bytes],
    },
    Fault {
        name: "refreshes of other cores that nobody joins",
        base: Base::Locked,
        wrong: header(
            "sync/stamps.h",
            "if (*stamps_at(t, i, place) > *stamp)",
            "if (i == 0 && *stamps_at(t, i, place) > *stamp)",
        ),
        found: ANY,
    },
    Fault {
        name: "a reader's refresh that is lost",
        base: Base::Locked,
        wrong: header(
            "sync/stamps.h",
            "    *mine = pkt->time;\n    return 0;",
            "    return 0;",
        ),
        found: ANY,
    },
    Fault {
        name: "a reader that takes the expired for alive",
        base: Base::Locked,
        wrong: header(
            "sync/hash.h",
            "        if (mr_unlikely(expiry_over(latest, s->expire_after, pkt->time)))\n            return MR_RESTART;",
            "        if (0)\n            return latest ? MR_RESTART : NULL;",
        ),
        found: ANY,
    },
    Fault {
        name: "a reader that refuses what has room",
        base: Base::Locked,
        wrong: header(
            "sync/hash.h",
            "return hash_reader_refuses(h, s, pkt) ? NULL : MR_RESTART;",
            "return NULL;",
        ),
        found: ANY,
    },
];

const WORKERS: u32 = 4;

struct Astray(Vec<Steering>);

impl Dispatch for Astray {
    fn worker(&self, port: u32, frame: &[u8]) -> u32 {
        // By what is in no key: the IPv4 identification.
        let astray = frame.get(19).is_some_and(|id| id % 64 == 0);
        (self.0.worker(port, frame) + u32::from(astray)) % WORKERS
    }

    fn read(&self, port: u32, frame: &[u8]) -> Parsed {
        self.0.read(port, frame)
    }
}

fn traffic(base: Base) -> Generated {
    let packets: u64 = match base {
        Base::LockedOwn(_) | Base::Merged(_) | Base::Own(_) => 3_000,
        _ => 8_000,
    };
    let seconds = match base {
        Base::LockedOwn(_) => 0.5,
        _ => 150.0,
    };
    let rate = packets as f64 / seconds;
    Generated(Spec {
        packets,
        flows: 400,
        churn: 0.6 * rate,
        rate,
        mix: Mix {
            tcp: 6.0,
            udp: 3.0,
            icmp: 1.0,
        },
        lan: "10.0.0.0/26".parse().unwrap(),
        ..Spec::default()
    })
}

fn function(base: Base, folder: &Path) -> Function {
    match base {
        Base::Firewall | Base::Locked => Function::named("firewall"),
        Base::Small => Function::with("firewall", &[], &[("flows", 300)]),
        Base::Nat => Function::named("nat"),
        Base::Own(text) | Base::LockedOwn(text) | Base::Merged(text) => {
            let path = folder.join("own.c");
            std::fs::write(&path, text).unwrap();
            Function::of(&path, &[], &[])
        }
    }
}

fn found(of: &mut Function, base: Base, wrong: Option<Wrong>) -> Findings {
    let workers = if base == Base::Small { 1 } else { WORKERS };
    let mut held = match base {
        Base::Locked | Base::LockedOwn(_) => of.locked(),
        Base::Merged(_) => of.program.objects.iter().map(|o| sums(o, 8)).collect(),
        _ => of.divided(),
    };
    let fields = |fields: &[&[Field]; 2]| -> Vec<Steering> {
        fields
            .iter()
            .map(|f| by(&plain_key(), workers, f))
            .collect()
    };
    let mut steering = match base {
        Base::Nat => fields(&[
            &[DestinationAddress, DestinationPort],
            &[SourceAddress, SourcePort],
        ]),
        Base::Own(_) => fields(&[&[SourceAddress], &[SourceAddress]]),
        _ => vec![by(&symmetric_key(), workers, &Field::ALL); 2],
    };
    of.plant = None;
    of.dropped = false;
    let mut astray = false;
    match wrong {
        Some(Wrong::Code(plant)) => of.plant = Some(plant),
        Some(Wrong::Fields(wrong)) => steering = fields(&[wrong, wrong]),
        Some(Wrong::Astray) => astray = true,
        Some(Wrong::Held(how)) => {
            for held in held
                .iter_mut()
                .filter(|h| matches!(h, Held::Divided | Held::Merged { .. }))
            {
                *held = how();
            }
        }
        Some(Wrong::Dropped) => of.dropped = true,
        None => {}
    }
    let (right, wrong) = (steering.clone(), Astray(steering));
    let dispatch: &dyn Dispatch = if astray { &wrong } else { &right };
    let deal = Deal::even(&of.program, workers, dispatch, held);
    of.verify(&deal, Schedule::Seeded(11), &mut traffic(base))
}

/// The faults of one base that are not found.
fn missed(base: Base) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut of = function(base, folder.path());
    let without = found(&mut of, base, None);
    assert!(
        without.equal,
        "{base:?} without a fault: {:?}",
        without.differences.first()
    );
    assert!(without.entries > 0 || base == Base::Own(CHANCE));
    let mut missed = Vec::new();
    for fault in FAULTS.iter().filter(|f| f.base == base) {
        let found = found(&mut of, base, Some(fault.wrong));
        let first = found.differences.first();
        let by = |d: &millrace_verify::Difference| fault.found.contains(&d.kind);
        if found.equal || !found.differences.iter().any(by) {
            missed.push(format!(
                "{}: {:?}",
                fault.name,
                first.map(|d| (d.kind, &d.what))
            ));
            continue;
        }
        println!(
            "FOUND {}: {}",
            fault.name,
            first.map_or("", |d| d.what.as_str())
        );
    }
    missed
}

/// Two threads: each base is prepared once, and a processor would stand idle otherwise.
#[test]
fn each_planted_fault_is_found() {
    assert!(FAULTS.len() >= 30);
    let bases: BTreeSet<Base> = FAULTS.iter().map(|f| f.base).collect();
    let bases = of_today("programs with planted faults", bases, 2);
    let waiting = Mutex::new(bases);
    let next = || waiting.lock().unwrap().pop();
    let work = || {
        std::iter::from_fn(next)
            .flat_map(missed)
            .collect::<Vec<_>>()
    };
    let missed = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut missed = work();
        missed.extend(other.join().unwrap());
        missed
    });
    assert!(
        missed.is_empty(),
        "{} of {}: {missed:#?}",
        missed.len(),
        FAULTS.len()
    );
}
