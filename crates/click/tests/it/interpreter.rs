//! The interpreter as other rooms use it: packets in, outcomes and counts out, bounds.

use std::cell::RefCell;
use std::rc::Rc;

use millrace_click::filter;
use millrace_click::interpreter::{Bounds, Ended, Memory, Router};
use millrace_click::language::{Limits, flatten, parse};
use millrace_click::names::Names;
use millrace_click::packet::Packet;

fn router(text: &str, bounds: Bounds) -> Router {
    let limits = Limits::default();
    let mut library = |_: &str, _: &str| Err("none".into());
    let file = parse(text, "t.click", &limits, &mut library).unwrap();
    let graph = flatten(&file, &limits).unwrap();
    Router::new(graph, bounds, Rc::new(RefCell::new(Memory::default()))).unwrap()
}

const SMALL: Bounds = Bounds {
    steps: 10_000,
    depth: 50,
    packets: 1000,
};

#[test]
fn a_packet_in_and_what_becomes_of_it() {
    let router = router(
        "FromDevice(a) -> s :: Strip(14) -> c :: Classifier(0/45, -) -> Queue -> to :: ToDevice(b); c[1] -> t :: Tee; \
         t[0] -> d :: Discard; t[1] -> ToDevice(c)",
        SMALL,
    );
    let from = router.graph().find("FromDevice@1").unwrap();
    let mut frame = [0; 60];
    frame[14] = 0x45;
    // In the queue, where nothing has pulled it.
    assert!(router.inject(from, 0, Packet::new(&frame)).is_empty());
    frame[14] = 0x60;
    let outcomes = router.inject(from, 0, Packet::new(&frame));
    let name = |at: usize| router.graph().elements[at].name.clone();
    let ends: Vec<_> = outcomes
        .iter()
        .map(|o| (name(o.element), o.left, o.packet.len()))
        .collect();
    assert_eq!(
        ends,
        [("d".into(), false, 46), ("ToDevice@8".into(), true, 46)]
    );
    let counts = router.counts();
    let of = |name: &str| &counts[router.graph().find(name).unwrap()];
    assert_eq!((of("s").inputs[0], of("s").outputs[0]), (2, 2));
    assert_eq!(of("c").outputs, [1, 1]);
    assert_eq!(
        (of("t").outputs.as_slice(), of("d").dropped),
        (&[1, 1][..], 1)
    );
}

#[test]
fn what_is_pulled_leaves_when_it_runs() {
    let mut router = router("FromDevice(a) -> Queue(1) -> to :: ToDevice(b)", SMALL);
    for _ in 0..2 {
        router.inject(0, 0, Packet::new(b"packet"));
    }
    assert_eq!(router.run(), Ended::Idle);
    let counts = router.counts();
    let of = |name: &str| &counts[router.graph().find(name).unwrap()];
    assert_eq!((of("Queue@2").dropped, of("to").inputs[0]), (1, 1));
}

#[test]
fn loops_end_by_a_bound() {
    let failed = |text: &str| match router(text, SMALL).run() {
        Ended::Failed(why) => why,
        other => panic!("{text}: {other:?}"),
    };
    assert!(failed("InfiniteSource -> n :: Null -> m :: Null -> n").contains("steps"));
    assert!(
        failed("InfiniteSource -> n :: Null -> t :: Tee -> n; t[1] -> n").contains("under way")
    );
    assert!(failed("InfiniteSource -> Discard").contains("steps"));
    assert!(failed("Script(label a, set x \"$x$x$x 12345678\", goto a)").contains("steps"));
    // A loop of pulls gives nothing.
    assert_eq!(
        router(
            "q :: PullNull -> p :: PullNull -> q; Idle -> Discard",
            SMALL
        )
        .run(),
        Ended::Idle
    );
}

#[test]
fn filters_that_are_refused() {
    let deep = format!("{}tcp", "not ".repeat(100_000));
    let open = format!("{}tcp", "(".repeat(100_000));
    for text in [
        "",
        "src",
        "port",
        "tcp port",
        "port x",
        "src port 99999",
        "host 1.2.3",
        "net 1.2.3.4/33",
        "(tcp",
        "tcp)",
        "tcp ? udp",
        "ip[",
        "ip[1:9]",
        "ip[-1]",
        "icmp type zzz",
        "tcp opt",
        "1.2.3.4 ?",
        "not",
        "or tcp",
        "foo",
        &deep,
        &open,
    ] {
        let read = filter::parse(text, &Names::default());
        assert!(read.is_err(), "{:.40}: {read:?}", text);
    }
}

#[test]
fn filters_agree_with_plain_tests() {
    // Each condition against the same said in Rust, for all packets of a small space.
    type Plain = fn(u8, u16, u16, u16) -> bool;
    let all: [(&str, Plain); 9] = [
        ("port 80 or 81", |p, s, d, f| {
            (p == 6 || p == 17) && f & 0x1fff == 0 && [80, 81].iter().any(|n| s == *n || d == *n)
        }),
        ("src port != 80", |p, s, _, f| {
            (p == 6 || p == 17) && f & 0x1fff == 0 && s != 80
        }),
        ("port != 80", |p, s, d, f| {
            (p == 6 || p == 17) && f & 0x1fff == 0 && s != 80 && d != 80
        }),
        ("not port 80", |p, s, d, f| {
            !((p == 6 || p == 17) && f & 0x1fff == 0 && (s == 80 || d == 80))
        }),
        ("udp dst port < 81 ip frag", |p, _, d, f| {
            p == 17 && f & 0x1fff == 0 && d < 81 && f & 0x3fff != 0
        }),
        ("ip unfrag && tcp", |p, _, _, f| p == 6 && f & 0x3fff == 0),
        ("tcp ? src port 80 : dst port 80", |p, s, d, f| {
            (p == 6 || p == 17) && f & 0x1fff == 0 && if p == 6 { s == 80 } else { d == 80 }
        }),
        ("ip[6:2] & 0x2000 != 0 or ip[9] = 1", |p, _, _, f| {
            f & 0x2000 != 0 || p == 1
        }),
        ("!(src port 80 && dst port 81)", |p, s, d, f| {
            !((p == 6 || p == 17) && f & 0x1fff == 0 && s == 80 && d == 81)
        }),
    ];
    for (text, plain) in all {
        let condition = filter::parse(text, &Names::default()).unwrap();
        for protocol in [1, 6, 17] {
            for fragment in [0, 0x2000, 1, 0x4000] {
                for (source, destination) in [(80, 81), (81, 80), (79, 82), (80, 80)] {
                    let mut bytes = [0; 28];
                    bytes[0] = 0x45;
                    bytes[6..8].copy_from_slice(&u16::to_be_bytes(fragment));
                    bytes[9] = protocol;
                    bytes[20..22].copy_from_slice(&u16::to_be_bytes(source));
                    bytes[22..24].copy_from_slice(&u16::to_be_bytes(destination));
                    let mut packet = Packet::new(&bytes);
                    packet.mark(0, 20);
                    assert_eq!(
                        condition.holds(&packet),
                        plain(protocol, source, destination, fragment),
                        "{text}: {protocol} {source} {destination} {fragment:x}"
                    );
                }
            }
        }
    }
}
