//! Chains that are changed while packets go through them: none is lost, doubled or overtaken.

use crate::common;
use crate::common::live;
use crate::common::stream;

use std::sync::atomic::Ordering;

use common::{output, refused};
use live::Live;
use stream::{Stream, counter, elements, installed, numbers, receiver};

const CAPTURE: &str = "captures/talk.pcap";

#[test]
fn a_chain_is_changed_while_a_stream_runs_and_no_packet_is_lost_or_doubled() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.pcap");
    let words = ["--in", "-", "--out", out.to_str().unwrap()];
    let mut live = Live::of(dir.path(), &["nop", "nop"], &words);
    let stream = Stream::into(&mut live);
    live.until(|s| s["read"].as_u64() > Some(100));

    let chain = |words: &[&str]| {
        stream.more(500);
        live.ask(&[&["ctl", "chain"], words].concat())
    };
    let shown = chain(&["show"]);
    assert_eq!(
        shown["elements"][1]["ports"][1]["leads"]["out"], 1,
        "{shown}"
    );
    assert_eq!(
        shown["elements"][1]["ports"][0]["leads"]["element"], "nop",
        "{shown}"
    );
    // A program in the middle, which says how many packets it had.
    let guest = format!("guest:{} count", receiver(dir.path()).display());
    let done = chain(&["attach", &guest, "--name", "tap", "--after", "nop"]);
    assert_eq!(elements(&done), ["nop", "tap", "nop-2"]);
    let seen = live.until(|s| s["stages"][1]["packets"].as_u64() > Some(500));
    assert_eq!(seen["stages"][1]["name"], "tap");
    let done = chain(&["reorder", "tap", "nop-2", "nop"]);
    assert_eq!(elements(&done), ["tap", "nop-2", "nop"]);
    let done = chain(&["move", "tap", "--after", "nop"]);
    assert_eq!(elements(&done), ["nop-2", "nop", "tap"]);
    let done = chain(&["attach", "nop", "--before", "nop"]);
    assert_eq!(elements(&done), ["nop-2", "nop-3", "nop", "tap"]);
    let done = chain(&["replace", "nop", "nop"]);
    assert_eq!(
        (elements(&done).len(), &done["element"]),
        (4, &"nop".into())
    );
    for round in 0..10 {
        let done = chain(&["attach", "nop", "--name", "again"]);
        assert_eq!(elements(&done).len(), 5, "{round}");
        chain(&["detach", "again"]);
    }
    let done = chain(&["detach", "tap"]);
    assert_eq!(elements(&done), ["nop-2", "nop-3", "nop"]);
    chain(&["detach", "nop-3"]);
    chain(&["detach", "nop"]);
    // Alone it has the chain's ports, and is still one that can be changed.
    let alone = refused(&mut live.command(&["ctl", "chain", "detach", "nop-2"]), 1);
    assert!(alone.contains("the only element"), "{alone}");
    chain(&["attach", "nop", "--before", "nop-2"]);
    stream.more(500);

    let sent = stream.end();
    let (account, status) = live.end();
    assert_eq!(status, 0, "{account}");
    for fate in ["read", "forwarded", "written"] {
        assert_eq!(account[fate], sent, "{fate}: {account}");
    }
    assert_eq!(
        numbers(&out),
        (0..sent).collect::<Vec<_>>(),
        "each once, in order"
    );
    let stages = account["stages"].as_array().unwrap();
    let packets = |name: &str| -> u64 {
        let own = stages.iter().filter(|s| s["name"] == name);
        own.map(|s| s["packets"].as_u64().unwrap()).sum()
    };
    assert_eq!(
        packets("nop-2"),
        u64::from(sent),
        "it was in the chain throughout"
    );
    let facts = account["facts"].to_string();
    assert!(facts.contains("tap, taken out: it ended"), "{facts}");
    assert!(packets("again") > 0 && packets("tap") > 500, "{stages:?}");
    let share: f64 = stages.iter().map(|s| s["share"].as_f64().unwrap()).sum();
    assert!((share - 1.0).abs() < 1e-6, "{stages:?}");
    let left = stages.iter().filter(|s| s["left"] == true).count();
    assert_eq!(left, 4, "nop, nop-3, again and tap have left: {stages:?}");
}

/// What the device loses it counts: nothing, at a rate that the chain keeps up with.
#[test]
fn a_live_port_loses_nothing_while_its_chain_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    let port = format!("vnic:{CAPTURE}?rate=2k&depth=4096&measure=off");
    // Over and over, until it is told to end.
    let words = format!("--ports {port} --packets 300000000 --seconds 60");
    let words = common::words(&words);
    let live = Live::of(dir.path(), &["nop", "nop"], &words);
    let began = live.until(|s| s["read"].as_u64() > Some(300));
    for _ in 0..5 {
        live.ask(&["ctl", "chain", "attach", "nop", "--name", "more"]);
        live.ask(&["ctl", "chain", "replace", "nop", "nop"]);
        live.ask(&["ctl", "chain", "detach", "more"]);
    }
    let read = began["read"].as_u64().unwrap();
    live.until(|s| s["read"].as_u64() > Some(read + 1500));
    live.ask(&["ctl", "drain"]);
    let (account, _) = live.end();
    assert_eq!(account["queues"][0]["missed"], 0, "{account}");
    assert_eq!(account["read"], account["forwarded"], "{account}");
}

#[test]
fn a_newer_version_keeps_what_has_the_same_layout() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.pcap");
    let first = counter(dir.path(), "count.c", 70_000, "__u64");
    let words = ["--in", "-", "--out", out.to_str().unwrap()];
    let mut live = Live::of(dir.path(), &["nop", &first], &words);
    let stream = Stream::into(&mut live);
    stream.more(3000);
    live.until(|s| s["read"].as_u64() > Some(2000));

    // The same again: what was counted goes on, exactly.
    let done = live.ask(&["ctl", "chain", "replace", "count", &first]);
    assert_eq!(done["kept"][0]["object"], "sources", "{done}");
    assert!(done["kept"][0]["entries"].as_u64() > Some(1000), "{done}");
    stream.more(1000);
    // Larger still fits; another type does not, and a smaller one does not either.
    let larger = counter(dir.path(), "larger.c", 80_000, "__u64");
    let done = live.ask(&["ctl", "chain", "replace", "count", &larger]);
    let before = done["kept"][0]["entries"].as_u64();
    assert!(before > Some(2000) && done["element"] == "count", "{done}");
    stream.more(1000);
    let sent = stream.sent.load(Ordering::Relaxed);
    live.until(|s| s["read"].as_u64() >= Some(u64::from(sent)));
    let entries = |live: &Live| live.ask(&["map", "show", "count:sources"])["entries"].as_u64();
    // There are 65536 sources.
    assert!(
        entries(&live) >= Some(u64::from(sent.min(1 << 16))),
        "each source once"
    );
    for (name, capacity, value, why) in [
        ("smaller.c", 7, "__u64", "entries fit"),
        ("narrow.c", 80_000, "__u32", "bytes before"),
    ] {
        let other = counter(dir.path(), name, capacity, value);
        let words = ["ctl", "chain", "replace", "count", &other];
        let said = refused(&mut live.command(&words), 1);
        assert!(said.contains(why) && said.contains("sources: "), "{said}");
    }
    let done = live.ask(&["ctl", "chain", "replace", "count", &larger, "--anew"]);
    assert_eq!(done["kept"], serde_json::json!([]));
    let sent = stream.end();
    let (account, status) = live.end();
    assert_eq!(
        (status, &account["forwarded"]),
        (0, &sent.into()),
        "{account}"
    );
    assert_eq!(numbers(&out), (0..sent).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_changed_is_refused_and_packets_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut live = Live::of(dir.path(), &["nop", "nop"], &["--in", "-"]);
    let stream = Stream::into(&mut live);
    live.until(|s| s["read"].as_u64() > Some(100));
    let unsafe_nf = dir.path().join("unsafe.c");
    let text = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\nSEC(\"xdp\") int f(struct xdp_md *c)\n\
                { return *(unsigned char *)(long)c->data; }\n";
    std::fs::write(&unsafe_nf, text).unwrap();
    let cases: [(&[&str], &str); 12] = [
        (&["detach", "nat"], "no element `nat`"),
        (
            &["attach", "no-such-function"],
            "no function `no-such-function`",
        ),
        (
            &["attach", "guest:no-such-program-anywhere"],
            "there is no program",
        ),
        (&["attach", "guest:true"], "did not get as far as asking"),
        (&["attach", unsafe_nf.to_str().unwrap()], "is refused"),
        (&["attach", "nop", "--name", "nop"], "already"),
        (&["attach", "nop", "--after", "nop.7"], "no such port"),
        (&["attach", "nop", "--set", "speed=1"], "speed"),
        (&["move", "nop", "--after", "nop"], "next to itself"),
        (&["reorder", "nop"], "each element once"),
        (&["reorder", "nop", "nop"], "each element once"),
        (&["replace", "nop", "guest,fast:true"], "option `fast`"),
    ];
    for (words, what) in cases {
        let (output, said) = output(&mut live.command(&[&["ctl", "chain"], words].concat()));
        let code = output.status.code();
        assert!(matches!(code, Some(1 | 2)), "{words:?}: {code:?}: {said}");
        assert!(said.contains(what), "{words:?}: {said}");
    }
    let sent = stream.end();
    let (account, _) = live.end();
    assert_eq!(
        (&account["read"], &account["forwarded"]),
        (&sent.into(), &sent.into())
    );

    // One function over captures is no chain.
    let mut live = Live::start(dir.path(), &["--in", "-"]);
    let said = refused(&mut live.command(&["ctl", "chain", "show"]), 1);
    assert!(
        said.contains("cannot be changed") && said.contains("chain file"),
        "{said}"
    );
    drop(live.child.stdin.take());
}

/// Guests and functions take one another's places. A guest that was put in and taken out has seen each packet of that time
/// once, in order, and the one that took its place begins with the packet behind its last.
#[test]
fn every_packet_is_seen_by_whoever_is_in_its_way() {
    if !installed("tcpdump") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let dump = |name: &str| format!("guest:tcpdump -n -i @ -w {}", file(name).display());
    let out = file("out.pcap");
    let words = ["--in", "-", "--out", out.to_str().unwrap()];
    let mut live = Live::of(dir.path(), &["nop", "nop"], &words);
    let stream = Stream::into(&mut live);
    live.until(|s| s["read"].as_u64() > Some(100));
    let chain = |words: &[&str]| {
        stream.more(200);
        let done = live.ask(&[&["ctl", "chain"], words].concat());
        elements(&done).join(" ")
    };
    let first = dump("first.pcap");
    assert_eq!(
        chain(&["attach", &first, "--name", "tap", "--after", "nop"]),
        "nop tap nop-2"
    );
    // A guest in a guest's place.
    assert_eq!(
        chain(&["replace", "tap", &dump("second.pcap")]),
        "nop tap nop-2"
    );
    assert_eq!(
        chain(&["attach", &dump("other.pcap"), "--name", "other"]),
        "nop tap nop-2 other"
    );
    assert_eq!(
        chain(&["reorder", "other", "tap", "nop-2", "nop"]),
        "other tap nop-2 nop"
    );
    // A function in a guest's, and a guest in a function's.
    assert_eq!(chain(&["replace", "other", "nop"]), "other tap nop-2 nop");
    let third = dump("third.pcap");
    assert_eq!(chain(&["replace", "nop-2", &third]), "other tap nop-2 nop");
    assert_eq!(
        chain(&["move", "nop-2", "--before", "other"]),
        "nop-2 other tap nop"
    );
    assert_eq!(chain(&["detach", "tap"]), "nop-2 other nop");
    stream.more(200);
    let sent = stream.end();
    let (account, status) = live.end();
    assert_eq!(status, 0, "{account}");
    for fate in ["read", "forwarded", "written"] {
        assert_eq!(account[fate], sent, "{fate}: {account}");
    }
    assert_eq!(numbers(&out), (0..sent).collect::<Vec<_>>());

    // Each guest's packets have no gap.
    let seen = |name: &str| {
        let seen = numbers(&file(name));
        let (first, last) = (seen[0], seen[seen.len() - 1]);
        assert_eq!(seen, (first..=last).collect::<Vec<_>>(), "{name}");
        (first, last)
    };
    let (first, second) = (seen("first.pcap"), seen("second.pcap"));
    let (other, third) = (seen("other.pcap"), seen("third.pcap"));
    assert!(first.0 > 0 && first.1 > first.0 + 100, "{first:?}");
    assert_eq!(
        first.1 + 1,
        second.0,
        "no packet between a guest and the one in its place"
    );
    assert!(second.1 < sent - 1 && other.0 > second.0 && other.1 < third.0);
    assert_eq!(third.1, sent - 1, "it was there to the end");
    let stages = account["stages"].as_array().unwrap();
    let packets = |name: &str| -> u64 {
        let own = stages.iter().filter(|s| s["name"] == name);
        own.map(|s| s["packets"].as_u64().unwrap()).sum()
    };
    assert_eq!(
        packets("tap"),
        u64::from(second.1 - first.0 + 1),
        "{stages:?}"
    );
    // A guest and then a function were `other`; a function and then a guest `nop-2`.
    assert_eq!(packets("other"), u64::from(sent - other.0), "{stages:?}");
    assert_eq!(packets("nop-2"), u64::from(sent), "{stages:?}");
}
