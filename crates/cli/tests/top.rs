//! `millrace top`: as text, as a document, and on a pseudo terminal.

use crate::common;
use crate::common::live;
use crate::common::terminal;

use std::process::Stdio;
use std::time::Instant;

use common::{capture, millrace, output, refused, udp};
use live::{LONG, Live, from};
use serde_json::{Value, json};
use terminal::Terminal;

#[test]
fn once_prints_tables_and_json_one_document() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::looping(dir.path(), &[]);
    let view = live.ask(&["top", "--every", "0.2"]);
    assert_eq!(view["name"], "blocklist");
    let rate = |v: &Value| v["packets_per_second"].as_f64().unwrap();
    assert!(rate(&view) > 1000.0, "{view}");
    assert!((0.15..20.0).contains(&view["interval"].as_f64().unwrap()));
    // Over a capture the worker is all there is: the parts are the whole.
    for part in ["workers", "functions"] {
        let [only] = view[part].as_array().unwrap().as_slice() else {
            panic!("{view}");
        };
        let ratio = rate(only) / rate(&view);
        assert!((0.99..1.01).contains(&ratio), "{ratio} {view}");
        assert!(only["ns_per_packet"].as_f64().unwrap() > 0.0, "{view}");
    }
    let (done, _) = output(&mut live.command(&["top", "--once", "--every", "0.1"]));
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success());
    for part in ["blocklist", "Elements", "Ports", "Workers", "ns/packet"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // No terminal, no screen; nobody there, no figures.
    let no = refused(&mut live.command(&["top"]), 2);
    assert!(no.contains("terminal") && no.contains("--once"), "{no}");
    let (often, said) = output(&mut live.command(&["top", "--once", "--every", "0"]));
    assert!(
        often.status.code() == Some(2) && said.contains("0.05"),
        "{said}"
    );
    drop(live);
    let gone = dir.path().join("control.sock");
    let mut command = millrace();
    refused(command.args(["top", "--once", "--control"]).arg(&gone), 2);
}

/// Each worker answers for itself: their sum is the whole.
#[test]
fn workers_answer_for_themselves_also_those_of_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace.pcap");
    let packets: Vec<_> = (0..256)
        .map(|i| (1000 + i, from([10, 0, (i / 7) as u8, i as u8])))
        .collect();
    capture(&trace, &packets);
    let socket = dir.path().join("row.sock");
    let mut run = millrace();
    run.args(common::words(
        "run nop nop --cores 2 --json --packets 300000000",
    ))
    .args(["--seconds", "60", "--control"])
    .arg(&socket)
    .args([
        "--ports",
        &format!("vnic:{}?steer=spray&measure=off", trace.display()),
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::null());
    let live = Live {
        child: run.spawn().unwrap(),
        socket,
    };
    let began = Instant::now();
    let ready = || std::os::unix::net::UnixStream::connect(&live.socket).is_ok();
    while !ready() {
        assert!(began.elapsed() < LONG);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let accounts = loop {
        let stats = live.ask(&["ctl", "stats"]);
        assert_eq!(stats["name"], "nop+nop");
        let accounts = stats["accounts"].as_array().unwrap().clone();
        let busy = |a: &Value| a["read"].as_u64() > Some(10_000);
        if accounts.iter().all(busy) {
            break accounts;
        }
        assert!(began.elapsed() < LONG, "{stats}");
    };
    assert_eq!(accounts.len(), 2);
    for (number, account) in accounts.iter().enumerate() {
        let [own] = account["workers"].as_array().unwrap().as_slice() else {
            panic!("{account}");
        };
        assert_eq!(own["worker"], json!(number));
        assert_eq!(own["packets"], account["read"], "{account}");
        assert_eq!(account["ports"][0]["read"], account["read"]);
        assert_eq!(account["stages"].as_array().unwrap().len(), 2);
        assert!(account["function"]["ns_per_packet"].as_f64() > Some(0.0));
        assert_eq!(account["queues"][0]["worker"], json!(number));
    }
    let view = live.ask(&["top", "--every", "0.3"]);
    let whole = view["packets_per_second"].as_f64().unwrap();
    let each = |name: &str| view[name].as_array().unwrap().clone();
    let sum: f64 = each("workers")
        .iter()
        .map(|w| w["packets_per_second"].as_f64().unwrap())
        .sum();
    assert!((0.99..1.01).contains(&(sum / whole)), "{view}");
    assert_eq!(each("functions").len(), 2, "{view}");
    // The packets are dealt out one by one.
    let shares: Vec<f64> = each("workers")
        .iter()
        .map(|w| w["share"].as_f64().unwrap())
        .collect();
    let busiest = shares.iter().copied().fold(0.0, f64::max);
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{view}");
    assert!((view["imbalance"].as_f64().unwrap() - 2.0 * busiest).abs() < 1e-6);
    assert!(
        each("workers")
            .iter()
            .all(|w| w["packets_per_burst"].as_f64() >= Some(1.0))
    );
    // A row has no objects that could be asked for, and ends when it is told.
    let none = live.ask(&["map", "list"]);
    assert_eq!(none["objects"], json!([]));
    live.ask(&["ctl", "stop"]);
    let (account, status) = live.end();
    assert_eq!((status, &account["interrupted"]), (0, &json!(true)));
}

/// Two of three packets are of one flow: `top` names the entry of the table that it has, and the worker.
#[test]
fn a_flood_aimed_at_one_entry_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace.pcap");
    let flood = udp(([10, 0, 0, 9], 4242), ([198, 51, 100, 1], 53));
    let mut packets = Vec::new();
    for n in 0..512_u16 {
        let client = ([10, 0, (n / 200) as u8 + 1, (n % 200) as u8 + 1], 2000 + n);
        let other = udp(client, ([198, 51, 100, (n % 7) as u8 + 1], 53));
        for frame in [&flood, &other, &flood] {
            packets.push((1000 + packets.len() as u64, frame.clone()));
        }
    }
    capture(&trace, &packets);
    let socket = dir.path().join("flood.sock");
    let key = "6d5a".repeat(20);
    let mut run = millrace();
    run.args(common::words(
        "run firewall --cores 2 --json --packets 300000000",
    ))
    .args([
        "--seconds",
        "60",
        "--steer",
        &format!("key={key}"),
        "--control",
    ])
    .arg(&socket)
    .arg("--ports")
    .arg(format!(
        "vnic:{}?measure=off&split=lan=10.0.0.0/8",
        trace.display()
    ))
    .stdout(Stdio::piped())
    .stderr(Stdio::null());
    let live = Live {
        child: run.spawn().unwrap(),
        socket,
    };
    let began = Instant::now();
    while std::os::unix::net::UnixStream::connect(&live.socket).is_err() {
        assert!(began.elapsed() < LONG);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // A second must be over before anything is known.
    let view = loop {
        let view = live.ask(&["top", "--every", "0.3"]);
        if view["entries"].as_array().unwrap().len() == 2 {
            break view;
        }
        assert!(began.elapsed() < LONG, "{view}");
    };
    let nic = millrace_steer::nic::named("generic").unwrap();
    let rss = millrace_steer::Rss::new(&nic, 2);
    let rss = rss.with_key(&nic, &[0x6d, 0x5a].repeat(20)).unwrap();
    let flooded = millrace_steer::fields::parse(&flood);
    let first = &view["entries"][0];
    assert_eq!(first["port"], "LAN", "{view}");
    assert_eq!(first["entry"], json!(rss.index_of(&flooded)), "{view}");
    assert_eq!(first["entries"], json!(rss.table().len()), "{view}");
    assert_eq!(first["worker"], json!(rss.queue_of(&flooded)), "{view}");
    let share = |n: usize| view["entries"][n]["share"].as_f64().unwrap();
    assert!((share(0) - 2.0 / 3.0).abs() < 0.08, "{view}");
    // The other worker has flows as they come: none of its entries stands out.
    assert!(share(1) < 0.05, "{view}");
    let (done, _) = output(&mut live.command(&["top", "--once", "--every", "0.3"]));
    let text = String::from_utf8(done.stdout).unwrap();
    let named = format!("collide on entry {} of LAN", rss.index_of(&flooded));
    assert!(
        text.contains("Heaviest entries") && text.contains(&named),
        "{text}"
    );
    live.ask(&["ctl", "stop"]);
    let (account, status) = live.end();
    assert_eq!((status, &account["interrupted"]), (0, &json!(true)));
}

#[test]
fn on_a_terminal_keys_work_and_the_terminal_is_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::looping(dir.path(), &[]);
    let terminal = Terminal::open();
    let before = terminal.modes();
    let mut command = live.command(&["top", "--every", "0.1"]);
    terminal.attach(&mut command);
    let mut top = command.env("TERM", "xterm").spawn().unwrap();
    terminal.until("blocklist");
    terminal.until("Elements");
    terminal.until("Workers");
    assert_ne!(terminal.modes(), before, "raw mode");
    terminal.press("s");
    // Only what changes is written: the key's name where "order" was.
    terminal.until("packets");
    terminal.press(" ");
    terminal.until("PAUSED");
    terminal.press("q");
    let status = top.wait().unwrap();
    assert!(status.success());
    // It leaves the alternate screen, shows the cursor again, and restores the modes.
    terminal.until("\u{1b}[?1049l");
    assert_eq!(terminal.modes(), before);

    // The run ends: so does the screen, and what it showed last stays.
    let mut command = live.command(&["top", "--every", "0.1"]);
    terminal.attach(&mut command);
    let mut top = command.env("TERM", "xterm").spawn().unwrap();
    terminal.until("Workers");
    live.ask(&["ctl", "stop"]);
    assert!(top.wait().unwrap().success());
    terminal.until("\u{1b}[?1049l");
    terminal.until("Workers");
    terminal.until("the run has ended");
    assert_eq!(terminal.modes(), before);
}
