//! `millrace cluster`, from outside, against a real etcd where there is one.

use millrace_turns::its_turn;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::live::Live;
use crate::common::{capture, json, millrace, output, refused, success, udp};
use crate::owned::{EVEN, program};

/// A server of etcd, which ends with the test.
struct Etcd {
    child: Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn etcd() -> Option<Etcd> {
    let folder = tempfile::tempdir().unwrap();
    let ports = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let [client, peer] = ports.map(|p| format!("http://{}", p.local_addr().unwrap()));
    let mut command = Command::new("etcd");
    command
        .arg("--data-dir")
        .arg(folder.path())
        .args(["--listen-client-urls", &client])
        .args(["--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer])
        .args(["--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &format!("default={peer}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(child) = command.spawn() else {
        println!("skipped: there is no etcd here (Debian: etcd-server)");
        return None;
    };
    Some(Etcd {
        child,
        url: client,
        _folder: folder,
    })
}

impl Etcd {
    fn cluster(&self) -> String {
        format!("{}/lab", self.url.replace("http", "etcd"))
    }

    /// Writes a table as another program would.
    fn put(&self, table: &serde_json::Value) {
        let body =
            json!({"key": base64("/millrace/lab/table"), "value": base64(&table.to_string())});
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let put = Command::new("curl")
                .args(["-sf", "--noproxy", "*", "-m", "5", "-d", &body.to_string()])
                .arg(format!("{}/v3/kv/put", self.url))
                .stdout(Stdio::null())
                .status();
            if put.unwrap().success() {
                return;
            }
            assert!(Instant::now() < end, "etcd does not answer");
            crate::common::pause();
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn base64(text: &str) -> String {
    let mut command = Command::new("base64");
    command
        .arg("-w0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

/// A gateway of etcd that answers each request, in order, by one of these; whether all were asked for.
fn gateway(
    answers: Vec<fn(&str, &mut String) -> Value>,
    table: &Value,
) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("etcd://{}/lab", listener.local_addr().unwrap());
    let mut stored = base64(&table.to_string());
    let serve = move || {
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(&stream);
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.trim().to_lowercase();
                if let Some(bytes) = line.strip_prefix("content-length:") {
                    length = bytes.trim().parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let body = String::from_utf8(body).unwrap();
            let text = answer(&body, &mut stored).to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                text.len()
            );
            (&stream).write_all((head + &text).as_bytes()).unwrap();
        }
    };
    (at, std::thread::spawn(serve))
}

#[test]
fn a_node_is_drained_while_servers_of_etcd_elect_one_that_leads() {
    fn elects(_: &str, _: &mut String) -> Value {
        let why = "etcdserver: leader changed";
        json!({"error": why, "code": 14, "message": why})
    }
    fn shows(body: &str, stored: &mut String) -> Value {
        assert!(body.contains("request_range"), "{body}");
        let table = json!({"response_range": {"kvs": [{"value": stored, "mod_revision": "5"}]}});
        let none = json!({"response_range": {}});
        json!({"header": {"revision": "9"}, "succeeded": true, "responses": [table, none, none]})
    }
    // It is done, and the server that led is gone before it can say so.
    fn does(body: &str, stored: &mut String) -> Value {
        let body: Value = serde_json::from_str(body).unwrap();
        let put = &body["success"][0]["request_put"]["value"];
        put.as_str().unwrap().clone_into(stored);
        elects("", stored)
    }
    let node = |name: &str, at: u8| json!({"name": name, "peer": format!("10.0.0.{at}:4800"), "life": 3, "alive": true, "drained": false});
    let table = json!({"version": 7, "nodes": [node("a", 1), node("b", 2)], "owners": [0, 0], "wanted": [0, 0]});
    let (at, served) = gateway(
        vec![elects, shows, does, elects, shows, elects, shows],
        &table,
    );
    let mut command = millrace();
    command.args(["cluster", "drain", &at, "b"]);
    let document = success(&mut command);
    assert_eq!(
        document,
        json!({"node": "b", "drained": true, "buckets": 0})
    );
    served.join().unwrap();
}

#[test]
fn a_cluster_is_shown_checked_and_drained() {
    let Some(etcd) = etcd() else {
        return;
    };
    let node = |name: &str, at: u8| json!({"name": name, "peer": format!("10.0.0.{at}:4800"), "life": 3, "alive": true, "drained": false});
    let mut table = json!({"version": 7, "nodes": [node("a", 1), node("b", 2)], "owners": [0, 0, 1, null], "wanted": [0, 0, 1, 1]});
    etcd.put(&table);
    let at = etcd.cluster();
    let cluster = |words: &[&str]| {
        let mut command = millrace();
        command.arg("cluster").args(words);
        command
    };
    let (shown, text) = output(&mut cluster(&["show", &at]));
    let shown = String::from_utf8(shown.stdout).unwrap();
    let expected = "\
cluster lab: version 7, 4 buckets, 0 to move, 1 without owner
node  peer           buckets   wanted   copies  state
a     10.0.0.1:4800        2        2        0  lost
b     10.0.0.2:4800        1        2        0  lost
";
    assert_eq!(shown, expected, "{text}");
    let (document, status) = json(&mut cluster(&["check", &at]));
    assert_eq!((status, &document["right"]), (1, &json!(false)));
    let findings = document["status"]["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 4, "{findings:?}");
    let (document, status) = json(&mut cluster(&["drain", &at, "b"]));
    assert_eq!(status, 0);
    assert_eq!(
        document,
        json!({"node": "b", "drained": true, "buckets": 1})
    );
    let (document, _) = json(&mut cluster(&["show", &at]));
    assert_eq!(document["status"]["version"], 8);
    assert_eq!(document["status"]["nodes"][1]["drained"], true);
    for (node, why) in [("a", "only living node"), ("x", "it has: a, b")] {
        let (output, text) = output(&mut cluster(&["drain", &at, node]));
        assert_eq!(output.status.code(), Some(1));
        assert!(text.contains(why), "{text}");
    }
    success(&mut cluster(&["undrain", &at, "b"]));
    // A table that names a node that is not there.
    table["owners"][0] = json!(5);
    etcd.put(&table);
    let text = refused(&mut cluster(&["show", &at]), 2);
    assert!(
        text.contains("/millrace/lab/table") && text.contains("bucket 0 is of node 5"),
        "{text}"
    );
}

#[test]
fn an_etcd_that_is_none_is_refused() {
    let text = refused(
        millrace().args(["cluster", "show", "etcd://127.0.0.1:1/lab"]),
        2,
    );
    assert!(text.contains("127.0.0.1:1 cannot be reached"), "{text}");
    let (output, text) = output(millrace().args(["cluster", "show", "http://h:1/lab"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("etcd://HOST:2379/NAME is meant"), "{text}");
    let missing = crate::common::words("cluster show etcds://h:1/lab --ca /nonexistent/ca.pem");
    let (output, text) = crate::common::output(millrace().args(missing));
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("/nonexistent/ca.pem"), "{text}");
}

#[test]
fn a_function_some_of_whose_state_all_workers_share_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table.toml");
    let secret = "5a".repeat(32);
    let node = "[[node]]\nname = \"a\"\npeer = \"127.0.0.1:0\"\nbuckets = [\"0-127\"]\n";
    std::fs::write(
        &table,
        format!("version = 1\nsecret = \"{secret}\"\n{node}"),
    )
    .unwrap();
    let mut command = millrace();
    command.args(["run", "nfs/nat", "--ports", "tap:mr-x,tap:mr-y"]);
    // Flows are divided; what is noted of fragments is one table under a lock, of which another machine would see nothing.
    command.args(crate::common::words(
        "--set fragments=1 --peer 127.0.0.1:0 --node a",
    ));
    command.args(["--peer-plain", "--cluster"]);
    command.arg(format!("static:{}", table.display()));
    let said = refused(&mut command, 1);
    assert!(said.contains("share state that packets write"), "{said}");
}

/// Entries that only somebody outside has put there: no packet puts them back where they are lost.
fn put_from_outside(nodes: &[&Live], hosts: u8) {
    for host in 0..hosts {
        let key = format!("10.{}.7.{}", host.wrapping_mul(37), 2 * host + 1);
        let set = |node: &&&Live| {
            let mut command = millrace();
            command.args(["map", "set", "listed", &key, "5", "--control"]);
            output(command.arg(&node.socket)).0.status.success()
        };
        assert_eq!(nodes.iter().filter(set).count(), 1, "{key}");
    }
}

/// How many of them a node has: those whose last byte is odd.
fn from_outside(node: &Live) -> usize {
    let all = node.ask(&["map", "export", "listed"]);
    let odd = |e: &&Value| e["key"].as_u64().unwrap() >> 24 & 1 == 1;
    all.as_array().unwrap().iter().filter(odd).count()
}

/// All nodes as `top` shows them.
fn top(at: &str) -> Value {
    let mut command = millrace();
    command.args(["top", "--cluster", at, "--peer-plain", "--every", "0.2"]);
    json(&mut command).0
}

/// Packets of hosts that come again and again, and the function that they go through.
fn hosts(folder: &Path) -> (String, String) {
    let packets: Vec<_> = (0..64_u8)
        .map(|host| {
            let frame = udp(
                ([10, host.wrapping_mul(37), 3, host], 7),
                ([10, 9, 9, host], 9),
            );
            (1000 + u64::from(host), frame)
        })
        .collect();
    let nf = program(folder, "made.c", EVEN);
    let hosts = folder.join("hosts.pcap");
    capture(&hosts, &packets);
    (nf, format!("vnic:{}?rate=2k", hosts.display()))
}

fn cluster(words: &[&str]) -> Command {
    let mut command = millrace();
    command.arg("cluster").args(words);
    command
}

/// A node of this name, in a folder of its own.
fn node(folder: &Path, name: &str, (nf, port): (&str, &str), at: &str, more: &[&str]) -> Live {
    let end = Instant::now() + Duration::from_secs(60);
    while output(&mut cluster(&["show", at])).0.status.code() == Some(2) {
        assert!(Instant::now() < end, "etcd does not answer");
    }
    let own = folder.join(name);
    std::fs::create_dir(&own).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = free.local_addr().unwrap().to_string();
    drop(free);
    let words = ["--ports", port, "--cluster", at, "--node", name];
    let others = ["--peer", &peer, "--peer-plain", "--seconds", "600"];
    Live::of(&own, &[nf], &[&words[..], &others, more].concat())
}

/// Another version, which keeps what there is.
fn another(nf: &str) {
    let source = std::fs::read_to_string(nf).unwrap();
    std::fs::write(nf, source.replace("1000000000", "1000000007")).unwrap();
}

/// A node whose function was replaced hands buckets over as before, to nodes where the same one runs by now; others refuse them until then.
fn replaced_one_after_the_other(cores: &str) {
    let Some(etcd) = etcd() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (nf, port) = hosts(folder.path());
    let at = etcd.cluster();
    let node = |name: &str| {
        let of = (&*nf, &*port);
        node(folder.path(), name, of, &at, &["--cores", cores])
    };
    let (a, b) = (node("a"), node("b"));
    shared(&at, 2);
    put_from_outside(&[&a, &b], 24);
    let before = (from_outside(&a), from_outside(&b));
    assert!(
        before.0 > 0 && before.1 > 0 && before.0 + before.1 == 24,
        "{before:?}"
    );
    // What they have counted is theirs, and their sum.
    let all = top(&at);
    assert_eq!(
        (&all["answered"], &all["balances"]),
        (&json!(2), &json!(true)),
        "{all:#}"
    );
    let machines = all["machines"].as_array().unwrap();
    let sum = |of: &str| {
        machines
            .iter()
            .map(|m| m["figures"][of].as_u64().unwrap())
            .sum::<u64>()
    };
    assert!(
        sum("read") > 0 && all["sum"]["read"] == sum("read"),
        "{all:#}"
    );
    let own = machines
        .iter()
        .map(|m| m["figures"]["peers"]["buckets"].as_u64().unwrap());
    assert_eq!(
        own.sum::<u64>(),
        all["buckets"].as_u64().unwrap(),
        "{all:#}"
    );
    another(&nf);
    let replace = ["ctl", "chain", "replace", "made", &nf];
    let done = a.ask(&replace);
    assert_eq!(done["elements"], json!(["made"]), "{done}");
    let drain = |wait: &str| output(&mut cluster(&["drain", &at, "a", "--wait", wait]));
    let (early, said) = drain("1");
    assert_eq!(early.status.code(), Some(1), "{said}");
    let told = std::fs::read_to_string(folder.path().join("a/stderr")).unwrap();
    assert!(told.contains("another version of it"), "{told}");
    // All go back; what is asked for once more is on its way for a moment.
    until_kept("all go back", || {
        (from_outside(&a), from_outside(&b)) == before
    });
    b.ask(&replace);
    let (drained, said) = drain("120");
    assert_eq!(drained.status.code(), Some(0), "{said}");
    assert_eq!((from_outside(&a), from_outside(&b)), (0, 24));
    json(&mut cluster(&["undrain", &at, "a"]));
    shared(&at, 2);
    let (one, other) = (from_outside(&a), from_outside(&b));
    assert!(one > 0 && one + other == 24, "{one} and {other}");
    success(&mut cluster(&["check", &at]));
    // No other function beside it: its state would not go along.
    let mut attach = millrace();
    attach.args(["ctl", "chain", "attach", "nfs/counter", "--control"]);
    let said = refused(attach.arg(&a.socket), 1);
    assert!(said.contains("runs one function"), "{said}");
    // One that is gone is said to be, and not waited for.
    drop(b);
    let all = top(&at);
    assert_eq!(
        (&all["answered"], all["machines"].as_array().unwrap().len()),
        (&json!(1), 2)
    );
    let silent = { all["machines"].as_array().unwrap().iter() }.find(|m| m["name"] == "b");
    assert!(silent.unwrap()["silent"].is_string(), "{all:#}");
}

#[test]
fn nodes_whose_function_is_replaced_one_after_the_other_lose_nothing_and_top_shows_them() {
    if !its_turn("the replacement of functions on two nodes", 1, 6) {
        return;
    }
    replaced_one_after_the_other("1");
}

#[test]
fn nodes_of_two_cores_whose_function_is_replaced_lose_nothing() {
    if !its_turn(
        "the replacement of functions of two cores on two nodes",
        5,
        6,
    ) {
        return;
    }
    replaced_one_after_the_other("2");
}

/// Entries that a node keeps copies of.
fn kept(node: &Live) -> u64 {
    let stats = node.stats();
    stats["peers"]["copies"]["entries"].as_u64().unwrap()
}

fn until_kept(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Copies end where one machine runs another version, and begin anew where both do: the one that is left goes on with what the other had.
#[test]
fn copies_begin_anew_when_both_machines_run_the_new_version() {
    if !its_turn("the replacement of functions with copies", 3, 6) {
        return;
    }
    let Some(etcd) = etcd() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (nf, port) = hosts(folder.path());
    let at = etcd.cluster();
    let node = |name: &str| {
        let of = (&*nf, &*port);
        let more = ["--standby", "1", "--cores", "2"];
        node(folder.path(), name, of, &at, &more)
    };
    let (a, b) = (node("a"), node("b"));
    shared(&at, 2);
    put_from_outside(&[&a, &b], 24);
    let has = |node: &Live| {
        node.ask(&["map", "export", "listed"])
            .as_array()
            .unwrap()
            .len() as u64
    };
    // No more and no less, also of buckets that have gone from one to the other since they were copied.
    let both = || kept(&a) == has(&b) && kept(&b) == has(&a) && kept(&a) > 0 && kept(&b) > 0;
    until_kept("each has a copy of the other", both);
    another(&nf);
    let replace = ["ctl", "chain", "replace", "made", &nf];
    a.ask(&replace);
    let none = || (kept(&a), kept(&b)) == (0, 0);
    until_kept("copies of two versions end", none);
    b.ask(&replace);
    until_kept("each has a copy of the other's new version", both);
    assert_eq!(from_outside(&a) + from_outside(&b), 24);
    drop(b);
    shared(&at, 1);
    // The table names the new owner before that has taken the entries up.
    until_kept("it has all of them", || from_outside(&a) == 24);
    let copies = &a.stats()["peers"]["copies"];
    for none in ["partial", "lost", "full", "refused"] {
        assert_eq!(copies[none], 0, "{none}: {copies:#}");
    }
    let said = std::fs::read_to_string(folder.path().join("a/stderr")).unwrap();
    assert!(
        said.contains("node b is gone: its buckets go on here with"),
        "{said}"
    );
}

/// Waits until so many nodes have buckets, and none has to move.
fn shared(at: &str, count: usize) {
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        let mut command = millrace();
        let (shown, _) = json(command.args(["cluster", "show", at]));
        // Of a cluster that did not answer nothing is told.
        let nodes = shown["status"]["nodes"].as_array().into_iter().flatten();
        let have = nodes.filter(|n| n["buckets"].as_u64() > Some(0));
        if have.count() == count && shown["status"]["moving"] == 0 {
            return;
        }
        assert!(Instant::now() < end, "{shown}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// What a machine kept is of buckets that others may have had since.
#[test]
fn state_of_before_is_refused_before_a_packet_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let mut command = millrace();
    command.args(["run", "nfs/firewall", "--ports", "tap:mr-x,tap:mr-y"]);
    command.args(["--cluster", "etcd://127.0.0.1:1/lab", "--peer-plain"]);
    command.args(["--node", "a", "--peer", "127.0.0.1:0"]);
    command.arg("--state").arg(&kept);
    let said = refused(&mut command, 2);
    assert!(
        said.contains("--state") && said.contains("others may have had"),
        "{said}"
    );
    assert!(!kept.exists(), "it was made all the same");
}

/// Whoever looks says by what machines know it, and a cluster that there is not is not made.
#[test]
fn a_look_at_a_cluster_needs_one_and_a_way_to_be_known() {
    let Some(etcd) = etcd() else {
        return;
    };
    let at = etcd.cluster();
    let look = |words: &[&str]| {
        let mut command = millrace();
        command
            .args(["top", "--once", "--cluster", &at])
            .args(words);
        command
    };
    let said = refused(&mut look(&[]), 2);
    assert!(
        said.contains("--peer-tls FOLDER, or --peer-plain"),
        "{said}"
    );
    etcd.put(&json!({"version": 1, "nodes": [], "owners": [null], "wanted": [null]}));
    let said = refused(&mut look(&["--peer-plain"]), 1);
    assert!(said.contains("there is no cluster lab"), "{said}");
}
