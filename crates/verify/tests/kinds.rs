//! Kinds of state, schedules and traffic, one property each.

use crate::common;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use common::*;
use millrace_dataplane::port::{InputOptions, input};
use millrace_dataplane::runner::{Entry, Sources};
use millrace_object::program::StateObject;
use millrace_place::{Held, Word};
use millrace_steer::{Field, Parsed, Steering};
use millrace_traffic::generate::Spec;
use millrace_traffic::language::packet;
use millrace_verify::{
    Captured, Deal, Dispatch, Generated, Given, Kind, Packet, Schedule, VerifyError,
};

static NEVER: AtomicBool = AtomicBool::new(false);

/// The bundled capture, the LAN's packets at port 0.
fn talk() -> Captured<impl FnMut() -> Result<Sources, millrace_verify::TraceError>> {
    Captured(|| {
        let word = root().join("captures/talk.pcap");
        let options = InputOptions {
            loops: Some(1),
            stop: &NEVER,
        };
        let entry = Entry::Split {
            split: "lan=10.0.0.0/24,fd00::/8".parse().unwrap(),
            named: 0,
            other: 1,
        };
        let opened = input(word.to_str().unwrap(), &options).unwrap();
        Ok(Sources::new(vec![(opened, entry)]))
    })
}

fn traffic(packets: u64) -> Generated {
    Generated(Spec {
        packets,
        flows: 300,
        churn: packets as f64 / 150.0,
        rate: packets as f64 / 100.0,
        ..Spec::default()
    })
}

/// A function written for a test.
fn written(name: &str, text: &str) -> (tempfile::TempDir, Function) {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join(format!("{name}.c"));
    std::fs::write(&path, text).unwrap();
    let function = Function::of(&path, &[], &[]);
    (folder, function)
}

#[test]
fn a_real_capture_is_equal_under_every_schedule() {
    let firewall = Function::named("firewall");
    let nat = Function::named("nat");
    for workers in [2, 8] {
        let both = vec![
            by(
                &symmetric_key(),
                workers,
                &[SourceAddress, DestinationAddress]
            );
            2
        ];
        let servers = vec![
            by(&plain_key(), workers, &[DestinationAddress]),
            by(&plain_key(), workers, &[SourceAddress]),
        ];
        for schedule in [Schedule::Ingress, Schedule::Seeded(5), Schedule::Threads] {
            for (function, dispatch) in [(&firewall, &both), (&nat, &servers)] {
                let deal = Deal::even(&function.program, workers, dispatch, function.divided());
                let found = function.verify(&deal, schedule, &mut talk());
                assert!(
                    found.equal,
                    "{} {workers} {schedule:?}",
                    function.program.name
                );
                assert_eq!(found.compared, 1619);
            }
        }
    }
}

#[test]
fn workers_that_fall_behind_each_other_change_nothing() {
    let nat = Function::named("nat");
    let steering = vec![
        by(&plain_key(), 4, &[DestinationAddress, DestinationPort]),
        by(&plain_key(), 4, &[SourceAddress, SourcePort]),
    ];
    let deal = Deal::even(&nat.program, 4, &steering, nat.divided());
    for schedule in [Schedule::Seeded(1), Schedule::Seeded(2), Schedule::Threads] {
        assert!(
            nat.verify(&deal, schedule, &mut traffic(12_000)).equal,
            "{schedule:?}"
        );
    }
}

#[test]
fn an_xdp_function_is_sharded_by_source() {
    let ddos = Function::named("ddos");
    let right = vec![by(&plain_key(), 4, &[SourceAddress]); 2];
    let found = ddos.shard(4, &right, &mut traffic(12_000));
    assert!(found.equal && found.entries > 100);
    // Counts of one source at several workers: the entry is there twice.
    let wrong = vec![by(&plain_key(), 4, &Field::ALL); 2];
    let mut few = traffic(12_000);
    few.0.lan = "10.0.0.0/28".parse().unwrap();
    let found = ddos.shard(4, &wrong, &mut few);
    assert!(!found.equal);
    assert!(found.differences.iter().any(|d| d.kind == Kind::State));
}

#[test]
fn a_divided_sketch_confuses_other_keys_and_that_is_counted() {
    let cl = Function::with("cl", &[("limit", "3")], &[("opened", 32)]);
    let pairs = vec![by(&symmetric_key(), 4, &[SourceAddress, DestinationAddress]); 2];
    let found = cl.shard(4, &pairs, &mut traffic(12_000));
    assert!(found.equal);
    let collision = found
        .relaxations
        .iter()
        .find(|r| r.name == "collision")
        .unwrap();
    assert!(collision.packets > 0);
    assert!(found.not_compared.iter().any(|n| n.object == "opened"));
    // What has room enough for its keys counts the same.
    let cl = Function::with("cl", &[("limit", "3")], &[("opened", 1 << 18)]);
    let found = cl.shard(4, &pairs, &mut traffic(12_000));
    assert!(found.equal && found.relaxations.is_empty());
}

/// Every second the direction that is let through changes; packets and bytes are counted.
const SWITCH: &str = r#"
#include <millrace/nf.h>

PORTS(LAN, WAN);

static __u32 seconds;
static __u64 packets, bytes;

EVERY(SECONDS(1), p)
{
    seconds++;
}

ON_PACKET(p)
{
    packets++;
    bytes += packet_length(p);
    if ((seconds & 1) == p->port)
        return DROP_BECAUSE(closed);
    return FORWARD(peer(p));
}
"#;

#[test]
fn timers_run_everywhere_and_counters_are_summed() {
    let (_folder, switch) = written("switch", SWITCH);
    let rss = vec![by(&plain_key(), 4, &Field::ALL); 2];
    let held = |how: fn(&StateObject) -> Held| -> Vec<Held> {
        let objects = switch.program.objects.iter();
        objects
            .map(|o| if o.read_only { Held::Copied } else { how(o) })
            .collect()
    };
    // All of the globals are one object, whose counters of packets differ from worker to worker while the seconds
    // are the same everywhere: neither sum nor copy, and both are said to be different.
    for how in [|o: &StateObject| sums(o, 8), |_: &StateObject| Held::Copied] {
        let deal = Deal::even(&switch.program, 4, &rss, held(how));
        let found = switch.verify(&deal, Schedule::Seeded(9), &mut traffic(8_000));
        assert!(!found.equal);
        assert!(
            found.differences.iter().all(|d| d.kind == Kind::State),
            "verdicts are equal"
        );
        assert_eq!(found.differing, 1);
    }
}

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

#[test]
fn counters_of_all_workers_add_up() {
    let (_folder, counts) = written("counts", COUNTS);
    let rss = vec![by(&plain_key(), 4, &Field::ALL); 2];
    let held = counts.program.objects.iter().map(|o| sums(o, 8));
    let deal = Deal::even(&counts.program, 4, &rss, held.collect());
    let found = counts.verify(&deal, Schedule::Seeded(1), &mut traffic(5_000));
    assert!(found.equal && found.entries > 0);
}

/// A number of two bytes that goes below zero, a count, and between them what is there from the start.
const NARROW: &str = r#"
#include <millrace/nf.h>

PORTS(LAN, WAN);
struct tally { __u16 credit, label; __u32 packets; };
VECTOR(tallies, struct tally, .capacity = 4);

ON_START(p)
{
    struct tally *tally = vector_at(&tallies, 1);

    if (tally)
        tally->label = 7;
}

ON_PACKET(p)
{
    struct tally *tally = vector_at(&tallies, 1);

    if (!tally)
        return DROP;
    tally->credit--;
    tally->packets++;
    return FORWARD(peer(p));
}
"#;

/// Which numbers are sums, and how wide they are, is declared: no other width fits, and what is no sum is not added.
#[test]
fn sums_are_those_of_the_declared_words() {
    let (_folder, narrow) = written("narrow", NARROW);
    let rss = vec![by(&plain_key(), 4, &Field::ALL); 2];
    let word = |offset, bytes| Word {
        offset,
        bytes,
        low: 0,
    };
    let verify = |words: &[Word]| {
        let objects = narrow.program.objects.iter();
        let held = objects.map(|o| match o.name.as_str() {
            "tallies" => Held::merged(words),
            _ => Held::Copied,
        });
        let deal = Deal::even(&narrow.program, 4, &rss, held.collect());
        narrow.verify(&deal, Schedule::Seeded(1), &mut traffic(5_000))
    };
    let found = verify(&[word(0, 2), word(4, 4)]);
    assert!(found.equal && found.entries > 0);
    // Each worker's credit is below zero, so that in wider words their sum carries into the label; a word too few is lost.
    for wrong in [
        &[word(0, 8)][..],
        &[word(0, 4), word(4, 4)],
        &[word(4, 4)],
        &[word(0, 2)],
    ] {
        let found = verify(wrong);
        assert!(!found.equal, "{wrong:?}");
        assert!(found.differences.iter().all(|d| d.kind == Kind::State));
    }
}

/// Remembers sources as long as there is room, and says whether it knows one.
const KNOWN: &str = r#"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 64);
    __type(key, __u32);
    __type(value, __u64);
} known SEC(".maps");

SEC("xdp")
int remember(struct xdp_md *ctx)
{
    char *data = (char *)(long)ctx->data, *end = (char *)(long)ctx->data_end;
    __u64 *count, one = 1;
    __u32 source;

    if (data + 34 > end)
        return XDP_PASS;
    source = *(__u32 *)(data + 26);
    count = bpf_map_lookup_elem(&known, &source);
    if (count) {
        *count += 1;
        return XDP_TX;
    }
    bpf_map_update_elem(&known, &source, &one, BPF_ANY);
    return XDP_DROP;
}

char _license[] SEC("license") = "MIT";
"#;

#[test]
fn workers_evict_on_their_own_and_that_is_counted() {
    let (_folder, known) = written("known", KNOWN);
    let rss = vec![by(&plain_key(), 4, &[SourceAddress]); 2];
    let found = known.shard(4, &rss, &mut traffic(8_000));
    assert!(found.equal);
    let evicted = found
        .relaxations
        .iter()
        .find(|r| r.name == "eviction")
        .unwrap();
    assert!(evicted.packets > 0 && evicted.entries > 0);
}

/// Brings some packets to another worker than theirs.
struct Astray(Vec<Steering>, u32);

impl Dispatch for Astray {
    fn worker(&self, port: u32, frame: &[u8]) -> u32 {
        let right = self.0.worker(port, frame);
        // By what is in no key: the IPv4 identification.
        let astray = frame
            .get(18..20)
            .is_some_and(|id| u32::from(id[1]) % 64 == 0);
        if astray { (right + 1) % self.1 } else { right }
    }

    fn read(&self, port: u32, frame: &[u8]) -> Parsed {
        self.0.read(port, frame)
    }
}

#[test]
fn packets_that_go_astray_are_caught() {
    let firewall = Function::named("firewall");
    let dispatch = Astray(vec![by(&symmetric_key(), 4, &Field::ALL); 2], 4);
    let found = firewall.shard(4, &dispatch, &mut traffic(8_000));
    assert!(!found.equal);
    assert!(found.differences[0].packet.is_some());
    // A function without state has no other verdict; that the order of a flow is lost is still said.
    let nop = Function::named("nop");
    let found = nop.shard(4, &dispatch, &mut traffic(8_000));
    assert!(found.differences.iter().all(|d| d.kind == Kind::Order) && !found.equal);
}

/// A request and a reply with one identifier, of one host at one port, are read as packets of two flows: the one asks, and
/// the other answers who asked it.
#[test]
fn what_steering_reads_otherwise_is_another_flow() {
    let steering = Steering {
        echoes: true,
        ..by(&plain_key(), 4, &Field::ALL)
    };
    let frames: Vec<Vec<u8>> = (1..65)
        .flat_map(|id| ["echo", "reply"].map(|kind| format!("icmp {kind} {id} 1")))
        .map(|icmp| packet(&format!("eth / ip 198.51.100.8 > 192.0.2.1 / {icmp}")).unwrap())
        .collect();
    let parted = frames.chunks(2);
    let parted = parted.filter(|pair| steering.queue(&pair[0]) != steering.queue(&pair[1]));
    assert!(parted.count() > 16);
    let packets = (0..).zip(&frames).map(|(number, frame)| Packet {
        number,
        port: 0,
        time: 1_000_000 * number,
        wire: frame.len() as u32,
        frame: frame.clone(),
    });
    let mut trace = Given(packets.collect());
    let nop = Function::named("nop");
    let dispatch = vec![steering; 2];
    let deal = Deal::even(&nop.program, 4, &dispatch, nop.divided());
    assert!(nop.verify(&deal, Schedule::Ingress, &mut trace).equal);
}

#[test]
fn a_trace_without_packets_is_an_error() {
    let nop = Function::named("nop");
    let rss = vec![by(&plain_key(), 2, &Field::ALL); 2];
    let deal = Deal::even(&nop.program, 2, &rss, nop.divided());
    let error = nop.try_verify(&deal, Schedule::Ingress, &mut Given(Vec::new()));
    assert!(matches!(error, Err(VerifyError::Empty)));
}
