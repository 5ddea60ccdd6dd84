//! Keys that are computed from fields: what packets with one key have in common, as a solver says.

use crate::support;

use std::path::Path;
use std::time::Duration;

use millrace_place::Treatment;
use millrace_plan::plan::{Asked, ObjectPlan, Rule};
use millrace_plan::{Plan, Wanted, plan};
use support::{Modelled, kind, modelled, object, port};

const FROM: &str = "source-address";
const TO: &str = "destination-address";

/// A program of tests/programs with other lines in the place of some.
fn with(name: &str, lines: &[(&str, &str)]) -> Option<Modelled> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut text = std::fs::read_to_string(folder.join(name).with_extension("c")).unwrap();
    for (define, value) in lines {
        let start = format!("#define {define} ");
        let mut old = text.lines().filter(|l| l.starts_with(&start));
        let old = old.next().unwrap().to_owned();
        text = text.replace(&old, &format!("{start}{value}"));
    }
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join(name).with_extension("c");
    std::fs::write(&source, text).unwrap();
    modelled(&source)
}

/// The plan of a function whose entries have this key.
fn by_key(key: &str) -> Option<Plan> {
    Some(with("computed", &[("KEY", key)])?.plan("generic"))
}

fn counts(plan: &Plan) -> &ObjectPlan {
    object(plan, "counts")
}

fn asked(plan: &Plan) -> Asked {
    counts(plan).asked.unwrap()
}

/// It is sharded by R1, by these fields of TCP at each port, and the whole index of the table.
fn sharded(plan: &Plan, key: &str, lan: &[&str], wan: &[&str]) {
    let o = counts(plan);
    assert_eq!(
        (o.treatment, o.rule),
        (Treatment::Shard, Rule::R1),
        "{key}: {o:?}"
    );
    for (at, fields) in [("LAN", lan), ("WAN", wan)] {
        let tcp = kind(port(plan, at), "ipv4-tcp");
        assert!(tcp.bound, "{key} {at}: {tcp:?}");
        assert_eq!(tcp.fields, fields, "{key} {at}");
        assert_eq!(tcp.table_rank, 7, "{key} {at}");
    }
}

/// It is locked by R4, and the reason says this.
fn locked(plan: &Plan, key: &str, says: &[&str]) {
    let o = counts(plan);
    assert_eq!(
        (o.treatment, o.rule),
        (Treatment::Lock, Rule::R4),
        "{key}: {o:?}"
    );
    for text in says {
        assert!(o.reason.contains(text), "{key}: {}", o.reason);
    }
}

#[test]
fn numbers_that_are_one_to_one_shard_by_what_they_are_computed_from() {
    for key in [
        "(ntohl(ip->src) + 1)",
        "(ip->src - 77)",
        "(ntohl(ip->src) < 5000 ? ntohl(ip->src) + 7 : ntohl(ip->src) * 4ull)",
    ] {
        let Some(plan) = by_key(key) else { return };
        sharded(&plan, key, &[FROM], &[FROM]);
        let asked = asked(&plan);
        assert!(asked.questions >= 1 && asked.gained > 0, "{key}: {asked:?}");
        assert_eq!((asked.unanswered, asked.open), (0, 0), "{key}");
        let o = counts(&plan);
        for text in [
            "the key is computed from source address on LAN and WAN",
            "have the same source address",
            "asked of the solver",
        ] {
            assert!(o.reason.contains(text), "{key}: {}", o.reason);
        }
    }
}

#[test]
fn what_is_made_of_steps_that_are_one_to_one_needs_no_question() {
    for key in [
        "(ip->src ^ (ip->src >> 7))",
        "crc32c(0, ip->src)",
        "(__u32)(ntohl(ip->src) * 3)",
        "(__u32)(ntohl(ip->src) * 2654435761u)",
        MIXED,
    ] {
        let Some(plan) = by_key(key) else { return };
        sharded(&plan, key, &[FROM], &[FROM]);
        assert_eq!(asked(&plan), Asked::default(), "{key}");
        let reason = &counts(&plan).reason;
        assert!(reason.contains("have the same source address"), "{reason}");
    }
}

#[test]
fn what_equations_say_is_not_asked() {
    for (key, says) in [
        // The highest bit is lost.
        (
            "(__u32)(ntohl(ip->src) * 2)",
            "by 31 bits of the source address",
        ),
        (
            "(ntohl(ip->src) % 4096)",
            "by 12 bits of the source address",
        ),
    ] {
        let Some(plan) = by_key(key) else { return };
        sharded(&plan, key, &[FROM], &[FROM]);
        let o = counts(&plan);
        assert_eq!(o.asked, None, "{key}");
        assert!(o.reason.contains(says), "{key}: {}", o.reason);
    }
    // Nor where the fields beside it are enough.
    let Some(mut plain) = with("computed_ports", &[]) else {
        return;
    };
    let plan = plain.plan("generic");
    sharded(&plan, "sum of ports", &[FROM], &[FROM]);
    assert_eq!(counts(&plan).asked, None);
}

#[test]
fn what_a_sum_leaves_of_ports_is_found_beside_a_computed_address() {
    let lines = [("SENDER", "(f.src + 1)")];
    let Some(mut modelled) = with("computed_ports", &lines) else {
        return;
    };
    let plan = modelled.plan("generic");
    sharded(&plan, "sum of ports", &[FROM], &[FROM]);
    let reason = &counts(&plan).reason;
    assert!(
        reason.contains("the same source address and exclusive or of some bits"),
        "{reason}"
    );
}

#[test]
fn two_ports_swapped_have_computed_keys_in_common() {
    let key = "((p->port == LAN ? ntohl(ip->src) : ntohl(ip->dst)) + 1)";
    let Some(plan) = by_key(key) else { return };
    sharded(&plan, key, &[FROM], &[TO]);
    // A key drawn at random brings both directions to one core.
    let steering = plan.steering(2, [3; 32]).unwrap();
    let frame = |from, to| support::tcp(from, to, 0x0102, 0x0304);
    let mut cores = std::collections::BTreeSet::new();
    for n in 0..200 {
        let (a, b) = ([10, 0, n / 7, n], [198, 51, 100, 200 - n]);
        let there = steering[0].queue(&frame(a, b));
        assert_eq!(there, steering[1].queue(&frame(b, a)), "{n}");
        cores.insert(there);
    }
    assert!(cores.len() > 8, "{cores:?}");
}

#[test]
fn a_remainder_leaves_what_its_divisor_has_of_two() {
    // 1000 is eight times 125, so that three bits are told apart; of 125 none.
    for (places, says) in [("1000", "D = 3"), ("125", "D = 0")] {
        let Some(mut modelled) = with("computed_place", &[("PLACES", places)]) else {
            return;
        };
        let plan = modelled.plan("generic");
        locked(&plan, places, &["computed from source address", says]);
        assert!(counts(&plan).infeasible, "{places}");
        assert_eq!(asked(&plan).open, 0, "{places}");
    }
    let Some(mut modelled) = with("computed_place", &[("PLACES", "1024")]) else {
        return;
    };
    sharded(&modelled.plan("generic"), "1024", &[FROM], &[FROM]);
}

#[test]
fn what_every_packet_can_collide_with_is_proved_without_a_question() {
    let key = "((__u64)ip->src * ip->dst)";
    let Some(plan) = by_key(key) else { return };
    locked(&plan, key, &["D = 0", "without a question"]);
    assert!(counts(&plan).infeasible);
}

/// The finaliser of SplitMix64, of which every step is one to one.
const MIXED: &str = "({ __u64 z = (__u64)ip->src * 0x9e3779b97f4a7c15ull; \
z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull; z = (z ^ (z >> 27)) * 0x94d049bb133111ebull; z ^ (z >> 31); })";

/// One half of a product by a number: whether it is one to one is hard to say.
const HALF: &str = "((ip->src * 0x9e3779b97f4a7c15ull) >> 24 & 0xffffffff)";

#[test]
fn a_solver_that_does_not_answer_in_time_leaves_it_open() {
    let Some(mut modelled) = with("computed", &[("KEY", HALF)]) else {
        return;
    };
    let wanted = Wanted {
        cores: 16,
        solver_time: Duration::from_millis(200),
        ..Wanted::default()
    };
    let plan = plan(&mut modelled.model, &modelled.program, &wanted).unwrap();
    locked(&plan, HALF, &["unanswered in its time", "--solver-time"]);
    let (o, asked) = (counts(&plan), asked(&plan));
    assert!(
        !o.infeasible && asked.open > 0 && asked.unanswered > 0,
        "{o:?}"
    );
    // The time for a question ends in the middle of one; what is not asked takes none.
    assert!(plan.took_ms < 3000.0, "{}", plan.took_ms);
}

#[test]
fn a_guard_narrows_what_has_the_same_key() {
    // Without the guard, addresses that end alike have one key.
    let key = "({ __u32 n = ntohl(ip->src) - 0x0a000000; \
if (n >= 40000) return FORWARD(peer(p)); (__u64)(__u16)(n * 5); })";
    let Some(plan) = by_key(key) else { return };
    sharded(&plan, key, &[FROM], &[FROM]);
    let reason = &counts(&plan).reason;
    assert!(reason.contains("have the same source address"), "{reason}");
}

/// Paths that differ only in a value are merged, and their ports with them.
#[test]
fn a_key_that_is_chosen_by_the_port_is_another_one_at_each() {
    for key in [
        "(p->port == LAN ? ip->src : ip->dst)",
        "(p->port == WAN ? ip->dst : ip->src)",
        "(p->port == LAN ? ntohl(ip->src) : ntohl(ip->dst))",
        "(p->port == LAN ? (__u64)ip->src << 32 | ip->dst : (__u64)ip->dst << 32 | ip->src)",
    ] {
        let Some(plan) = by_key(key) else { return };
        let both = key.contains("__u64");
        let (lan, wan) = match both {
            true => (&[FROM, TO][..], &[FROM, TO][..]),
            false => (&[FROM][..], &[TO][..]),
        };
        sharded(&plan, key, lan, wan);
        // An answer goes where what it answers went.
        let steering = plan.steering(2, [3; 32]).unwrap();
        for n in 0..100_u8 {
            let (inside, outside) = ([10, 0, 0, n], [192, 0, n, 2]);
            let there = steering[0].queue(&udp(inside, outside));
            assert_eq!(there, steering[1].queue(&udp(outside, inside)), "{key}");
        }
    }
}

/// A parameter in a key has the value that is set, which the plan then says that it takes for given.
#[test]
fn a_parameter_in_a_key_is_taken_as_it_is_set() {
    let lines = [("KEY", "(by_destination ? ip->dst : ip->src)")];
    let Some(modelled) = with("computed", &lines) else {
        return;
    };
    for (value, field) in [("0", FROM), ("1", TO)] {
        let mut modelled = Modelled {
            program: modelled.program.clone(),
            model: modelled.model.clone(),
            history: modelled.history.clone(),
        };
        modelled.program.set_param("by_destination", value).unwrap();
        let plan = modelled.plan("generic");
        sharded(&plan, value, &[field], &[field]);
        let held: Vec<_> = plan.assumptions.iter().collect();
        assert_eq!(held.len(), 1, "{held:?}");
        assert_eq!(held[0].parameter, "by_destination");
        assert_eq!(held[0].value.to_string(), value);
    }
    let Some(plan) = by_key("(ntohl(ip->src) & mask)") else {
        return;
    };
    let o = counts(&plan);
    assert_eq!(o.treatment, Treatment::Shard, "{o:?}");
    assert_eq!(plan.assumptions[0].parameter, "mask");
    let tcp = kind(port(&plan, "LAN"), "ipv4-tcp");
    assert_eq!(
        (tcp.fields.as_slice(), tcp.table_rank),
        (&[FROM.to_owned()][..], 7)
    );
}

/// A UDP datagram over IPv4.
fn udp(from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend(from);
    frame.extend(to);
    frame.extend([0, 53, 0, 53, 0, 8, 0, 0]);
    frame
}
