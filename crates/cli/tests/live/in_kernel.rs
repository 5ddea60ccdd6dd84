//! A function that the kernel runs: the same packets, verdicts and state as between files.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::instance::{Instance, command, count};
use super::net::{Net, until};
use crate::common::{self, capture, json, millrace, output, read, refused};

pub const SOURCES: u8 = 20;

/// A TCP packet to a port.
fn knock(source: u8, port: u16) -> Vec<u8> {
    let mut packet = vec![0; 60];
    packet[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6]);
    packet[26..34].copy_from_slice(&[10, 0, 0, source, 10, 0, 1, 1]);
    packet[36..38].copy_from_slice(&port.to_be_bytes());
    packet[46] = 0x50;
    packet
}

/// Sources that knock in turn: every third in the right order, and then sends more.
pub fn knocks(path: &Path) {
    let mut packets = Vec::new();
    for source in 1..=SOURCES {
        let ports = match source % 3 {
            0 => [100, 101, 102, 80],
            1 => [100, 102, 101, 80],
            _ => [100, 100, 101, 102],
        };
        for port in ports {
            packets.push((1_000_000_000 + packets.len() as u64, knock(source, port)));
        }
    }
    capture(path, &packets);
}

pub fn bytes(path: &Path) -> Vec<Vec<u8>> {
    read(path).into_iter().map(|(_, _, bytes)| bytes).collect()
}

/// What a run has kept of its map, in an order of its own.
fn state(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("sources.json")).unwrap();
    let entries: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut entries: Vec<_> = entries.iter().map(Value::to_string).collect();
    entries.sort();
    entries
}

/// Whether the kernel lets us load programs; said aloud where not.
fn loads(net: &Net) -> bool {
    let short = ["nfs/portknock", "--ports", "xdp:a1", "--seconds", "0.01"];
    let (ran, text) = output(&mut command(net, "n", &short));
    let allowed = ran.status.success();
    if !allowed {
        assert!(text.contains("Operation not permitted"), "{text}");
        println!("skipped: programs cannot be loaded here");
    }
    allowed
}

#[test]
fn the_kernel_does_what_happens_between_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let trace = path("trace.pcap");
    knocks(&trace);
    let (trace, expected) = (trace.to_str().unwrap(), path("expected.pcap"));
    let kept = path("file");
    std::fs::create_dir(&kept).unwrap();
    let pinned = |folder: &Path| {
        [
            "--pin".into(),
            folder.to_str().unwrap().to_owned(),
            "--pin-all".into(),
        ]
    };
    let args = format!(
        "run nfs/portknock --in {trace} --out {}",
        expected.display()
    );
    let args = common::words(&args);
    let (account, status) = json(millrace().args(args).args(pinned(&kept)));
    assert_eq!(status, 0, "{account:#}");
    assert!(bytes(&expected).len() > 10 && state(&kept).len() == usize::from(SOURCES));

    for mode in ["generic", "native"] {
        let Some(net) = Net::new("xdp") else { return };
        if !loads(&net) {
            return;
        }
        // In native mode a veth takes packets from its peer only where it has a program itself.
        let take = if mode == "native" {
            "afxdp:a0?mode=native"
        } else {
            "afpacket:a0"
        };
        let folder = path(mode);
        std::fs::create_dir(&folder).unwrap();
        let word = format!("xdp:a1?mode={mode}");
        let pin = pinned(&folder);
        let mut words = vec!["nfs/portknock", "--ports", &word];
        words.extend(pin.iter().map(String::as_str));
        let function = Instance::start(&net, "n", &words);
        let got = path(&format!("{mode}.pcap"));
        let recorder = Instance::start(
            &net,
            "a",
            &["nfs/nop", "--in", take, "--out", got.to_str().unwrap()],
        );
        let play = ["nfs/nop", "--in", trace, "--out", "afpacket:a0"];
        let (played, text) = output(&mut command(&net, "a", &play));
        assert!(played.status.success(), "{mode}: {text}");
        std::thread::sleep(Duration::from_millis(500));
        let (_, status) = recorder.stop();
        assert_eq!(status, 0);
        let (inside, status) = function.stop();
        assert_eq!(status, 0, "{inside:#}");
        for field in ["read", "forwarded", "dropped", "passed", "aborted"] {
            assert_eq!(
                count(&inside, field),
                count(&account, field),
                "{mode}: {field}"
            );
        }
        assert_eq!(bytes(&got), bytes(&expected), "{mode}");
        assert_eq!(state(&folder), state(&kept), "{mode}");
    }
}

/// A tail call by byte 0, a redirect by bytes 2 and 3: tests/programs/onward.c.
#[test]
fn redirects_go_to_the_ports_that_a_devmap_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (trace, map) = (path("trace.pcap"), path("ports.csv"));
    let packet = |call: u8, index: u8| {
        let mut packet = vec![0; 60];
        packet[..4].copy_from_slice(&[call, 0, index, 0]);
        packet[12] = 0x88;
        packet
    };
    // Ten to port 1, three to an index that is in no map, two to nothing.
    let calls = [(2, 1); 10]
        .into_iter()
        .chain([(2, 3); 3])
        .chain([(0, 0); 2]);
    let packets = calls
        .enumerate()
        .map(|(at, (call, index))| (1000 + at as u64, packet(call, index)));
    capture(Path::new(&trace), &packets.collect::<Vec<_>>());
    // Index 1: interface 2, which is port 1.
    std::fs::write(&map, "1,2\n").unwrap();
    let map = format!("ports={map}");
    let nf = format!("tests/programs/onward.c --program first --map {map}");
    let nf = common::words(&nf);
    let between = ["--in", &trace, "--out", &path("out.pcap")];
    let (account, status) = json(millrace().arg("run").args(&nf).args(between));
    assert_eq!(status, 0, "{account:#}");
    assert_eq!(count(&account, "forwarded"), 10);

    let Some(net) = Net::new("xdp") else { return };
    if !loads(&net) {
        return;
    }
    let words = net.words("?mode=generic");
    let function = Instance::start(&net, "n", &[&nf[..], &["--ports", &words]].concat());
    let got = path("got.pcap");
    let recorder = Instance::start(
        &net,
        "b",
        &["nfs/nop", "--in", "afpacket:b0", "--out", &got],
    );
    let play = ["nfs/nop", "--in", &trace, "--out", "afpacket:a0"];
    let (played, text) = output(&mut command(&net, "a", &play));
    assert!(played.status.success(), "{text}");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(recorder.stop().1, 0);
    let (inside, status) = function.stop();
    assert_eq!(status, 0, "{inside:#}");
    for field in ["read", "forwarded", "dropped", "passed", "aborted"] {
        assert_eq!(count(&inside, field), count(&account, field), "{field}");
    }
    let row = inside["ports"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&row["name"], row["sent"].as_u64()),
        (&"redirected".into(), Some(10))
    );
    assert_eq!(bytes(Path::new(&got)), vec![packet(2, 1); 10]);
}

#[test]
fn nothing_is_left_after_a_kill() {
    let Some(net) = Net::new("xdp") else { return };
    if !loads(&net) {
        return;
    }
    let attached = |net: &Net| {
        let shown = net.within("n", "ip", &["-d", "link", "show", "a1"]);
        String::from_utf8(shown.stdout)
            .unwrap()
            .contains("prog/xdp")
    };
    let function = Instance::start(&net, "n", &["nfs/portknock", "--ports", &net.words("")]);
    assert!(attached(&net));
    let second = ["nfs/portknock", "--ports", "xdp:a1"];
    let text = refused(&mut command(&net, "n", &second), 2);
    assert!(text.contains("another program is attached"), "{text}");
    function.killed();
    until("the program is taken off", || !attached(&net));
}

/// The same figures by the control socket, `top` and a scrape as in the account; and an end by order.
#[test]
fn a_function_in_the_kernel_is_watched_and_ended_from_outside() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (trace, socket) = (path("trace.pcap"), path("control.sock"));
    knocks(Path::new(&trace));
    let Some(net) = Net::new("xdp") else { return };
    if !loads(&net) {
        return;
    }
    net.ip("n", "link set lo up");
    let words = ["nfs/portknock", "--ports", "xdp:a1"];
    let watched = ["--control", &socket, "--metrics", "127.0.0.1:0"];
    let function = Instance::start(&net, "n", &[&words[..], &watched].concat());
    let ask = |words: &[&str]| {
        let (document, status) = json(millrace().args(words).args(["--control", &socket]));
        assert_eq!(status, 0, "{words:?}: {document:#}");
        document
    };
    assert_eq!(ask(&["ctl", "stats"])["accounts"][0]["read"], 0);
    let play = ["nfs/nop", "--in", &trace, "--out", "afpacket:a0"];
    let (played, text) = output(&mut command(&net, "a", &play));
    assert!(played.status.success(), "{text}");
    let all = u64::from(SOURCES) * 4;
    until("all packets are counted", || {
        count(&ask(&["ctl", "stats"])["accounts"][0], "read") == all
    });
    let stats = ask(&["ctl", "stats"])["accounts"][0].take();
    super::instance::balances(&stats);
    let top = ask(&["top", "--every", "0.1"]);
    assert_eq!(top["ports"][0]["name"], "0", "{top:#}");
    assert_eq!(top["reasons"][0]["packets"], stats["dropped"], "{top:#}");
    // A scrape's figures are a moment old.
    let said = function.said();
    let url = said
        .lines()
        .find_map(|l| l.strip_prefix("metrics at "))
        .unwrap();
    until("a scrape has them too", || {
        let scraped = net.within("n", "curl", &["-s", url]);
        let text = String::from_utf8(scraped.stdout).unwrap();
        let read: u64 = (text.lines())
            .filter(|l| l.starts_with("millrace_packets_total") && l.contains("port=\"0\""))
            .filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok())
            .sum();
        read >= all
    });
    // State is the kernel's: no object is seen.
    let objects = ask(&["map", "list"]);
    assert_eq!(objects["objects"], serde_json::json!([]), "{objects:#}");
    ask(&["ctl", "drain"]);
    let (account, status) = function.ended();
    assert_eq!(status, 0, "{account:#}");
    for field in ["read", "forwarded", "dropped", "passed", "aborted"] {
        assert_eq!(account[field], stats[field], "{field}");
    }
    assert_eq!(account["interrupted"], true);
}

#[test]
fn what_the_kernel_cannot_run_is_refused() {
    let gate = format!("{}/gate.c", common::GATE);
    for (words, why) in [
        (
            vec![gate.as_str(), "--ports", "xdp:lo"],
            "written with handlers",
        ),
        (
            vec!["nfs/portknock", "--in", "xdp:lo"],
            "--in and --out has no meaning in the kernel",
        ),
        (
            vec!["nfs/portknock", "--ports", "xdp:lo,afxdp:x"],
            "afxdp:x is not in the kernel",
        ),
        (
            vec!["nfs/portknock", "--ports", "xdp:lo?ring=1"],
            "there is no such option",
        ),
        (
            vec!["nfs/portknock", "--ports", "xdp:lo", "--cores", "2"],
            "--cores and --cpus has no meaning",
        ),
        (
            vec!["nfs/portknock", "--ports", "xdp:no-such-if"],
            "there is no interface",
        ),
    ] {
        let text = refused(millrace().arg("run").args(&words), 2);
        assert!(text.contains(why), "{words:?}: {text}");
    }
}

/// Compiles a C file that was emitted: for the kernel, or the loader.
fn compiled(source: &Path, to: &Path, words: &[&str]) {
    let cache = millrace_emit::cache::Cache::of_user().unwrap();
    let clang = millrace_emit::toolchain::find(&cache).unwrap().clang;
    let mut command = std::process::Command::new(clang);
    command.arg("-O2").args(words).arg("-o").arg(to).arg(source);
    let (ran, text) = output(&mut match words.contains(&"-c") {
        true => command,
        false => {
            command.arg("-lbpf");
            command
        }
    });
    assert!(ran.status.success(), "{text}");
}

/// A plan that shards, as `emit` prints it for the kernel: packets of a source meet on one processor, so that each source has its
/// limit, which is exact only there.
#[test]
fn a_sharded_function_runs_on_processors_of_the_kernel() {
    const LIMIT: usize = 3;
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("skipped: one processor");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let limit = format!("threshold={LIMIT}");
    let mut emit = millrace();
    emit.args(["emit", "nfs/ddos", "--set", &limit, "--target", "xdp"]);
    emit.args(["--strategy", "shard", "--cores", "2", "--out"]);
    let (ran, text) = output(emit.arg(dir.path()));
    assert!(ran.status.success(), "{text}");
    let include = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    for name in ["steer", "worker"] {
        let words = ["-g", "-target", "bpf", "-mcpu=v4", &include, "-c"];
        compiled(
            &path(&format!("{name}.bpf.c")),
            &path(&format!("{name}.o")),
            &words,
        );
    }
    compiled(
        &path("load.c"),
        &path("load"),
        &["-Wall", "-Wextra", "-Werror"],
    );
    let mut packets = Vec::new();
    for turn in 0..10 {
        for source in 1..=SOURCES {
            packets.push((
                1_000_000_000 + packets.len() as u64,
                knock(source, 100 + turn),
            ));
        }
    }
    let trace = path("trace.pcap");
    capture(&trace, &packets);
    let Some(net) = Net::new("xdp") else { return };
    if !loads(&net) {
        return;
    }
    let words = [path("steer.o"), path("worker.o")];
    let words: Vec<&Path> = words.iter().map(|w| w.as_path()).collect();
    let (mut load, mut said, line) = loaded(&net, &path("load"), &words, "a1");
    assert_eq!(line, "{\"workers\": 2, \"ports\": 1}\n");
    let got = path("got.pcap");
    // A veth takes packets of XDP where its end has a program itself.
    let take = format!("nfs/nop --in afxdp:a0?mode=native --out {}", got.display());
    let take = common::words(&take);
    let recorder = Instance::start(&net, "a", &take);
    let play = format!("nfs/nop --in {} --out afpacket:a0", trace.display());
    let play = common::words(&play);
    let (played, text) = output(&mut command(&net, "a", &play));
    assert!(played.status.success(), "{text}");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(recorder.stop().1, 0);
    let end = ["-TERM".to_owned(), load.id().to_string()];
    assert!(
        std::process::Command::new("kill")
            .args(end)
            .status()
            .unwrap()
            .success()
    );
    let mut text = String::new();
    std::io::Read::read_to_string(&mut said, &mut text).unwrap();
    assert!(load.wait().unwrap().success());
    let said: Value = serde_json::from_str(&text).unwrap();
    let workers = said["workers"].as_array().unwrap();
    let sum = |field: &str| {
        workers
            .iter()
            .map(|w| w[field].as_u64().unwrap())
            .sum::<u64>()
    };
    let (all, sent) = (packets.len() as u64, (LIMIT * usize::from(SOURCES)) as u64);
    assert_eq!(
        (sum("packets"), sum("sent"), sum("dropped")),
        (all, sent, all - sent),
        "{said}"
    );
    for worker in workers {
        // Ten packets of each source, all of them on one worker.
        let packets = worker["packets"].as_u64().unwrap();
        assert!(packets > 0 && packets % 10 == 0, "{said}");
    }
    let sent: Vec<Vec<u8>> = bytes(&got);
    for source in 1..=SOURCES {
        let of = sent.iter().filter(|p| p[29] == source).count();
        assert_eq!(of, LIMIT, "source {source}: {said}");
    }
}

/// A loader that was started in the namespace of `net`, once it has said its first line; the line, and where more comes from.
type Loader = (
    std::process::Child,
    std::io::BufReader<std::process::ChildStdout>,
    String,
);

fn loaded(net: &Net, load: &Path, words: &[&Path], interface: &str) -> Loader {
    let mut command = std::process::Command::new("ip");
    command.args(["netns", "exec", &net.name("n")]).arg(load);
    command.args(words).arg(interface);
    command.stdout(std::process::Stdio::piped());
    let mut load = command.spawn().unwrap();
    let mut said = std::io::BufReader::new(load.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    (load, said, line)
}

/// A function that is replicated, as `emit` prints it for the kernel: packets go to replicas in turn, and each source has its limit
/// all the same, which is exact only where all replicas have the same state.
#[test]
fn a_replicated_function_runs_behind_a_sequencer_of_the_kernel() {
    const LIMIT: usize = 3;
    const TURNS: u16 = 10;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let limit = format!("threshold={LIMIT}");
    let mut emit = millrace();
    emit.args(["emit", "nfs/ddos", "--set", &limit, "--target", "xdp"]);
    // A heartbeat three seconds after the last packet.
    emit.args(["--cores", "3", "--slots", "6", "--period", "3000000000"]);
    let (ran, text) = output(emit.arg("--out").arg(dir.path()));
    assert!(ran.status.success(), "{text}");
    let include = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    for name in ["sequencer", "replica"] {
        let words = ["-g", "-target", "bpf", "-mcpu=v4", &include, "-c"];
        let source = path(&format!("{name}.bpf.c"));
        compiled(&source, &path(&format!("{name}.o")), &words);
    }
    let strict = ["-Wall", "-Wextra", "-Werror"];
    compiled(&path("load.c"), &path("load"), &strict);
    let mut packets = Vec::new();
    for turn in 0..TURNS {
        for source in 1..=SOURCES {
            let at = 1_000_000_000 + packets.len() as u64;
            packets.push((at, knock(source, 100 + turn)));
        }
    }
    let trace = path("trace.pcap");
    capture(&trace, &packets);
    let Some(net) = Net::new("xdp") else { return };
    if !loads(&net) {
        return;
    }
    let words = [path("sequencer.o"), path("replica.o")];
    let words: Vec<&Path> = words.iter().map(|w| w.as_path()).collect();
    let (mut load, mut said, line) = loaded(&net, &path("load"), &words, "a1");
    assert_eq!(line, "{\"replicas\": 3, \"ports\": 1}\n");
    let got = path("got.pcap");
    let got = got.to_str().unwrap();
    // A veth takes packets of XDP where its end has a program itself.
    let take = ["nfs/nop", "--in", "afxdp:a0?mode=native", "--out", got];
    let recorder = Instance::start(&net, "a", &take);
    let trace = trace.to_str().unwrap();
    let play = ["nfs/nop", "--in", trace, "--out", "afpacket:a0"];
    let (played, text) = output(&mut command(&net, "a", &play));
    assert!(played.status.success(), "{text}");
    // Behind the last packet a heartbeat brings all replicas to the same state.
    std::thread::sleep(Duration::from_millis(4500));
    assert_eq!(recorder.stop().1, 0);
    let end = ["-TERM".to_owned(), load.id().to_string()];
    let ended = std::process::Command::new("kill").args(end).status();
    assert!(ended.unwrap().success());
    let mut text = String::new();
    std::io::Read::read_to_string(&mut said, &mut text).unwrap();
    assert!(load.wait().unwrap().success(), "{text}");
    let said: Value = serde_json::from_str(&text).unwrap();
    let replicas = said["replicas"].as_array().unwrap();
    let all = packets.len() as u64;
    let beats = count(&said, "heartbeats") / 3;
    assert!(beats > 0, "{said}");
    // Packets that came when a heartbeat was due are dropped and counted: on a machine that stood still for seconds.
    let sequenced = count(&said, "sent");
    assert_eq!(sequenced + count(&said, "due"), all, "{said}");
    let mut own = 0;
    for replica in replicas {
        own += count(replica, "packets");
        // Its own packets and the rows of all others.
        let rows = count(replica, "packets") + count(replica, "replayed");
        assert_eq!(
            (rows, count(replica, "heartbeats")),
            (sequenced, beats),
            "{said}"
        );
        for none in ["late", "lost", "stopped", "other"] {
            assert_eq!(count(replica, none), 0, "{none}: {said}");
        }
    }
    assert_eq!(own, sequenced, "{said}");
    let sent = bytes(Path::new(got));
    for source in 1..=SOURCES {
        let of = sent.iter().filter(|p| p[29] == source).count();
        if sequenced == all {
            assert_eq!(of, LIMIT, "source {source}: {said}");
        }
    }
    // Nothing is left.
    let links = net.within("n", "ip", &["-o", "link", "show"]);
    let links = String::from_utf8(links.stdout).unwrap();
    assert!(!links.contains(": mr"), "{links}");
}
