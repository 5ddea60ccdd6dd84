//! The functions of this repository, on packets made for all of them.

use super::frames::frames;
use super::{Fault, compiled, run, text};
use crate::support::{Bench, Packet, Way, facts, nf};
use millrace_history::History;
use millrace_turns::of_today;

/// Functions that are replicated.
const SERVED: &[&str] = &[
    "bridge",
    "cl",
    "conntrack",
    "ddos",
    "firewall",
    "heavyhitter",
    "hhh",
    "lb",
    "policer",
    "portknock",
    "psd",
    "tokenbucket",
];
/// Functions that are refused, with what the refusal says.
const REFUSED: &[(&str, &str)] = &[
    ("nat", "several kinds of memory"),
    ("router", "borders are moved"),
    ("einat", "several kinds of memory"),
];

/// One function: the program's fates with rows are those without, and both replicas have the same state.
fn compare(bench: &Bench, name: &str, sanitize: bool, packets: &[Packet]) {
    let program = nf::load(bench, name);
    let alone = millrace_emit::alone::emit(&program, &facts(&program), "module.c").unwrap();
    let alone = compiled(bench, &alone, sanitize);
    let way = Way {
        sanitize,
        plain: true,
        burst: 1,
    };
    let (expected, _) = bench.run(&program, &alone, way, packets);
    let module = compiled(bench, &text(&program).unwrap(), sanitize);
    let found = run(
        bench,
        &program,
        &module,
        (sanitize, Fault::default()),
        packets,
    );
    assert_eq!(found.differs, None, "{name}");
    assert!(found.rows > 0, "{name}: no rows");
    for (n, (a, b)) in expected.iter().zip(&found.outcomes).enumerate() {
        assert_eq!(a, b, "packet {n} of {name}");
    }
}

#[test]
fn replicas_of_every_function_are_alike() {
    let packets = frames(1, 3000);
    let bench = Bench::new();
    for name in of_today("functions that are replicated", SERVED, 3) {
        compare(&bench, name, false, &packets);
    }
}

#[test]
fn and_under_sanitizers() {
    let packets = frames(2, 600);
    let bench = Bench::new();
    for name in ["conntrack", "firewall"] {
        compare(&bench, name, true, &packets);
    }
}

#[test]
fn what_cannot_be_replicated_is_refused_by_name() {
    let bench = Bench::new();
    for (name, what) in REFUSED {
        let program = nf::load(&bench, name);
        let error = text(&program).unwrap_err().to_string();
        assert!(
            error.contains(what) && error.contains(".c:") || error.contains(".h:"),
            "{name}: {error}"
        );
    }
}

/// The test above can fail: without any one field the other replica goes another way.
#[test]
fn no_field_of_a_row_can_be_left_out() {
    let packets = frames(3, 3000);
    let bench = Bench::new();
    for name in ["portknock", "heavyhitter", "tokenbucket"] {
        let program = nf::load(&bench, name);
        let history = History::of(&program, &facts(&program));
        let module = compiled(&bench, &text(&program).unwrap(), false);
        let whole = run(
            &bench,
            &program,
            &module,
            (false, Fault::default()),
            &packets,
        );
        assert_eq!(whole.differs, None, "{name}");
        let time = (history.time_bits > 0).then_some((0, history.time_bits));
        for cleared in history.fields.iter().map(|f| (f.at, f.bits)).chain(time) {
            let fault = Fault {
                cleared,
                ..Fault::default()
            };
            let found = run(&bench, &program, &module, (false, fault), &packets);
            assert!(
                found.differs.is_some(),
                "{name}: bits {cleared:?} are not needed"
            );
        }
    }
}

/// Clang computes the address of an element once, before it is touched: the row has the index.
#[test]
fn elements_of_global_arrays_are_replicated() {
    let bench = Bench::new();
    let program = nf::compile(&bench, "counts", COUNTS);
    let history = History::of(&program, &facts(&program));
    assert_eq!((history.refusals.len(), history.bytes), (0, 4));
    let module = compiled(&bench, &text(&program).unwrap(), true);
    let packets = frames(5, 600);
    let fault = Fault::default();
    let found = run(&bench, &program, &module, (true, fault), &packets);
    assert_eq!(found.differs, None);
    assert!(found.rows > 100);
    // The index is needed.
    let fault = Fault {
        cleared: (0, 32),
        ..Fault::default()
    };
    let found = run(&bench, &program, &module, (true, fault), &packets);
    assert!(found.differs.is_some());
}

#[test]
fn the_packets_end_may_be_spilled() {
    let bench = Bench::new();
    let program = nf::compile(&bench, "spilled", include_str!("spilled.c"));
    let module = compiled(&bench, &text(&program).unwrap(), true);
    let packets = frames(6, 400);
    let fault = Fault::default();
    let found = run(&bench, &program, &module, (true, fault), &packets);
    assert_eq!(found.differs, None);
    assert!(found.rows > 300);
}

const COUNTS: &str = "#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

static struct { __u64 packets, bytes, last; } counts[24];

SEC(\"xdp\")
int count(struct xdp_md *ctx)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 length = end - data;

	if (data + 34 > end)
		return XDP_PASS;
	__u32 at = data[23] % 24;
	counts[at].packets++;
	counts[at].bytes += length;
	counts[at].last = counts[at].last * 3 + data[33];
	return counts[at].packets & 1 ? XDP_TX : XDP_PASS;
}

char _license[] SEC(\"license\") = \"GPL\";
";

/// A packet that changes once its row is made is aborted, and state goes the row's way.
#[test]
fn a_packet_that_is_not_its_rows_is_aborted() {
    let packets = frames(4, 1000);
    let bench = Bench::new();
    let program = nf::load(&bench, "ddos");
    let module = compiled(&bench, &text(&program).unwrap(), true);
    // Byte 27 is of the source address; these are IPv4.
    let ipv4 = |p: &Packet| p.bytes.len() >= 34 && p.bytes[12..15] == [8, 0, 0x45];
    let changed: Vec<usize> = (0..packets.len())
        .filter(|&n| n % 9 == 0 && ipv4(&packets[n]))
        .collect();
    let fault = Fault {
        changed: &changed,
        ..Fault::default()
    };
    let found = run(&bench, &program, &module, (true, fault), &packets);
    assert_eq!(found.differs, None);
    assert!(changed.len() > 20);
    for n in changed {
        assert_eq!(found.outcomes[n].fate, 0, "packet {n}");
    }
}
