//! Chains: described in files, and changed while packets go through them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/live.rs"]
mod live;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use common::{json, millrace, output, read, refused, root};
use live::{Live, from, header, record};
use serde_json::Value;

const CAPTURE: &str = "captures/talk.pcap";

/// Writes packets with numbers into a run's standard input until it is told to end; says how many.
struct Stream {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU32>,
    thread: std::thread::JoinHandle<()>,
}

impl Stream {
    fn into(live: &mut Live) -> Self {
        let mut pipe = live.child.stdin.take().unwrap();
        let (stop, sent) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU32::new(0)),
        );
        let (stopped, count) = (stop.clone(), sent.clone());
        let thread = std::thread::spawn(move || {
            pipe.write_all(&header()).unwrap();
            let mut number = 0_u32;
            while !stopped.load(Ordering::Relaxed) {
                let mut piece = Vec::new();
                for _ in 0..17 {
                    let mut packet = from([10, 0, (number >> 8) as u8, number as u8]);
                    packet[40..44].copy_from_slice(&number.to_be_bytes());
                    piece.extend(record(number, &packet));
                    number += 1;
                }
                pipe.write_all(&piece).unwrap();
                count.store(number, Ordering::Relaxed);
                // A stream, not a flood: changes fall into its middle.
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        Self { stop, sent, thread }
    }

    /// Waits until so many more have been sent.
    fn more(&self, packets: u32) {
        let until = self.sent.load(Ordering::Relaxed) + packets;
        let began = std::time::Instant::now();
        while self.sent.load(Ordering::Relaxed) < until {
            assert!(began.elapsed() < live::LONG, "the stream stands still");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    fn end(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.sent.load(Ordering::Relaxed)
    }
}

/// The numbers of the packets of a capture.
fn numbers(path: &Path) -> Vec<u32> {
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes[40..44].try_into().unwrap());
    read(path)
        .iter()
        .map(|(_, _, bytes)| number(bytes))
        .collect()
}

fn elements(answer: &Value) -> Vec<&str> {
    let all = answer["elements"].as_array().unwrap();
    all.iter().map(|e| e.as_str().unwrap()).collect()
}

/// A guest that counts, from its source.
fn receiver(folder: &Path) -> PathBuf {
    let program = folder.join("receiver");
    let room = root().join("crates/guest");
    let built = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-pthread", "-I"])
        .arg(room.join("preload"))
        .arg("-o")
        .arg(&program)
        .arg(room.join("tests/programs/receiver.c"))
        .status()
        .unwrap();
    assert!(built.success());
    program
}

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
    let words = [
        "--ports",
        &port,
        "--packets",
        "300000000",
        "--seconds",
        "60",
    ];
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

/// A program that counts packets by source, in a map of this capacity and value type.
fn counter(folder: &Path, name: &str, capacity: u32, value: &str) -> String {
    let source = format!(
        r#"#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct {{
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, {capacity});
	__type(key, __u32);
	__type(value, {value});
}} sources SEC(".maps");
SEC("xdp") int count(struct xdp_md *ctx)
{{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 key;
	{value} one = 1, *n;

	if (data + 30 > end)
		return XDP_DROP;
	__builtin_memcpy(&key, data + 26, 4);
	n = bpf_map_lookup_elem(&sources, &key);
	if (n)
		++*n;
	else
		bpf_map_update_elem(&sources, &key, &one, BPF_ANY);
	return bpf_redirect(ctx->ingress_ifindex == 1 ? 2 : 1, 0);
}}
char _license[] SEC("license") = "GPL";
"#
    );
    let path = folder.join(name);
    std::fs::write(&path, source).unwrap();
    path.display().to_string()
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
        let done = live.ask(&["ctl", "chain", "replace", "count", &other]);
        let lost = done["lost"].to_string();
        assert!(
            lost.contains(why) && done["kept"] == serde_json::json!([]),
            "{done}"
        );
        live.ask(&["ctl", "chain", "replace", "count", &larger]);
    }
    let done = live.ask(&["ctl", "chain", "replace", "count", &larger, "--anew"]);
    assert_eq!(
        (&done["kept"], &done["lost"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
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

#[test]
fn a_file_describes_a_chain() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.pcap");
    let guest = receiver(dir.path());
    std::fs::write(dir.path().join("count.c"), "").unwrap();
    counter(dir.path(), "count.c", 1000, "__u64");
    std::fs::write(dir.path().join("start.csv"), "77,5\n").unwrap();
    let file = dir.path().join("edge.toml");
    let text = format!(
        r#"
name = "edge"
connect = [["in.1", "tap.0"], ["tap.1", "count.0"]]
entry = ["in.0", "count.1"]

[[element]]
name = "in"
nf = "{}"

[[element]]
nf = "count.c"
capacity = {{ sources = 5000 }}
map = {{ sources = "start.csv" }}

[[element]]
name = "tap"
guest = ["{}", "count"]
environment = {{ TZ = "UTC0" }}
memory = 64
dir = "."
"#,
        root().join("nfs/nop").display(),
        guest.display()
    );
    std::fs::write(&file, &text).unwrap();
    let run = |words: &[&str]| {
        let mut run = millrace();
        run.args(["run", file.to_str().unwrap(), "--in", CAPTURE])
            .args(words);
        run
    };
    let (account, status) = json(run(&["--out", out.to_str().unwrap()]).stdin(Stdio::null()));
    assert_eq!((status, &account["name"]), (0, &"edge".into()), "{account}");
    assert_eq!(account["forwarded"], 1619, "{account}");
    let stages = account["stages"].as_array().unwrap();
    let names: Vec<_> = stages.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["in", "tap", "count"]);
    assert!(
        stages
            .iter()
            .all(|s| s["packets"] == 1619 && s["cycles_per_packet"].as_f64() > Some(0.0))
    );
    let object = &account["objects"][0];
    assert_eq!(
        (&object["name"], &object["capacity"]),
        (&"count:sources".into(), &5000.into()),
        "{account}"
    );
    // The capture's packets, and the entry that was there before.
    assert!(object["entries"].as_u64() > Some(1));
    assert_eq!(read(&out).len(), 1619);
    let (said, _) = output(&mut run(&[]));
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(
        said.contains("cycles a packet") && said.contains(" %"),
        "{said}"
    );

    for (from, to, line, what) in [
        ("memory = 64", "memory = 1", 19, "memory=1"),
        ("memory = 64", "speed = 1", 19, "option `speed=1`"),
        ("\"count.0\"", "\"count.9\"", 11, "count.0 is not connected"),
        (
            ", [\"tap.1\", \"count.0\"]",
            "",
            11,
            "count.0 is not connected",
        ),
        ("capacity", "capacities", 12, "no `capacities` here"),
    ] {
        std::fs::write(&file, text.replace(from, to)).unwrap();
        let said = refused(&mut run(&[]), 2);
        let place = format!("edge.toml:{line}: ");
        assert!(
            said.contains(what) && said.contains(&place),
            "{what}: {said}"
        );
    }
    let said = refused(
        millrace().args(["run", "nop", "x.toml", "--in", CAPTURE]),
        2,
    );
    assert!(said.contains("stands alone"), "{said}");
}

/// A function with four ports, and elements behind two of them: each packet takes the way that it is sent.
#[test]
fn a_chain_may_be_a_tree() {
    let dir = tempfile::tempdir().unwrap();
    let source = r#"#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
SEC("xdp") int fan(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (data + 1 > end)
		return XDP_DROP;
	if (ctx->ingress_ifindex != 1)
		return bpf_redirect(1, 0);
	return bpf_redirect(2 + data[0] % 3, 0);
}
char _license[] SEC("license") = "GPL";
"#;
    std::fs::write(dir.path().join("fan.c"), source).unwrap();
    let file = dir.path().join("fan.toml");
    let nop = root().join("nfs/nop").display().to_string();
    let text = format!(
        "connect = [['fan.1', 'a.0'], ['fan.2', 'b.0']]\nentry = ['fan.0', 'a.1', 'b.1', 'fan.3']\n\
         [[element]]\nname = 'b'\nnf = '{nop}'\n[[element]]\nnf = 'fan.c'\n[[element]]\nname = 'a'\nnf = '{nop}'\n"
    );
    std::fs::write(&file, text).unwrap();
    let input = dir.path().join("in.pcap");
    common::capture(&input, &common::each_byte());
    let outs: Vec<_> = (0..4)
        .map(|n| dir.path().join(format!("{n}.pcap")))
        .collect();
    let words: Vec<_> = outs.iter().map(|p| p.to_str().unwrap()).collect();
    let mut run = millrace();
    run.args([
        "run",
        file.to_str().unwrap(),
        "--in",
        input.to_str().unwrap(),
        "--out",
        &words.join(","),
    ]);
    let (account, status) = json(&mut run);
    assert_eq!((status, &account["forwarded"]), (0, &9.into()), "{account}");
    let bytes = |n: usize| {
        read(&outs[n])
            .iter()
            .map(|(_, _, b)| b[0])
            .collect::<Vec<_>>()
    };
    assert_eq!(bytes(1), [0, 3, 6]);
    assert_eq!(bytes(2), [1, 4, 7]);
    assert_eq!(bytes(3), [2, 5, 8]);
    let stages = account["stages"].to_string();
    assert!(
        stages.contains("\"fan\"") && bytes(0).is_empty(),
        "{stages}"
    );
}

#[test]
fn a_shell_that_is_no_terminal_reads_lines() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::looping(dir.path(), &[]);
    let shell = |lines: &str| {
        let mut shell = live.command(&["ctl"]);
        let mut child = shell
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(lines.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let (status, said, _) = shell(
        "# set and look\nmap set blocked 10.9.0.0/16 '{\"number\": 7, \"port\": 80}'\n\nmap get blocked 10.9.0.0/16 --json\nstats\nquit\nnonsense\n",
    );
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("1 set, 0 deleted") && said.contains("\"number\": 7"),
        "{said}"
    );
    assert!(said.contains("packets in"), "{said}");
    // A line that fails is told, and the next one is done.
    let (status, said, errors) = shell("nonsense\nmap get blocked 'x\nmap get nothing 1\nmap list");
    assert_eq!(status, Some(2), "{errors}");
    assert!(
        said.contains("blocked") && errors.contains("unrecognized"),
        "{said}{errors}"
    );
    assert!(errors.contains("there is no such object"), "{errors}");
}
