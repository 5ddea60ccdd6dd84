//! `millrace cluster`, from outside, against a real etcd where there is one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::live::Live;
use crate::common::{capture, json, millrace, output, refused, udp};
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
    let (document, status) = json(&mut command);
    assert_eq!(status, 0, "{document:#}");
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
    let (_, status) = json(&mut cluster(&["undrain", &at, "b"]));
    assert_eq!(status, 0);
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
    let missing = [
        "cluster",
        "show",
        "etcds://h:1/lab",
        "--ca",
        "/nonexistent/ca.pem",
    ];
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
    command.args([
        "--set",
        "fragments=1",
        "--peer",
        "127.0.0.1:0",
        "--node",
        "a",
    ]);
    command.args(["--peer-plain", "--cluster"]);
    command.arg(format!("static:{}", table.display()));
    let said = refused(&mut command, 1);
    assert!(said.contains("share state that packets write"), "{said}");
}

/// A node whose function was replaced can hand nothing over: whoever waits for that is told why, and waits no longer.
#[test]
fn a_drain_of_a_node_whose_function_was_replaced_ends_with_the_reason() {
    let Some(etcd) = etcd() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let packets: Vec<_> = (0..64_u8)
        .map(|host| {
            let frame = udp(
                ([10, host.wrapping_mul(37), 3, host], 7),
                ([10, 9, 9, host], 9),
            );
            (1000 + u64::from(host), frame)
        })
        .collect();
    let nf = program(folder.path(), "made.c", EVEN);
    let hosts = folder.path().join("hosts.pcap");
    capture(&hosts, &packets);
    let port = format!("vnic:{}?rate=2k", hosts.display());
    let at = etcd.cluster();
    let cluster = |words: &[&str]| {
        let mut command = millrace();
        command.arg("cluster").args(words);
        command
    };
    let end = Instant::now() + Duration::from_secs(60);
    while output(&mut cluster(&["show", &at])).0.status.code() == Some(2) {
        assert!(Instant::now() < end, "etcd does not answer");
    }
    let node = |name: &str| {
        let own = folder.path().join(name);
        std::fs::create_dir(&own).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = free.local_addr().unwrap().to_string();
        drop(free);
        let words = [
            "--ports",
            &port,
            "--cluster",
            &at,
            "--node",
            name,
            "--peer",
            &peer,
        ];
        let more = ["--peer-plain", "--seconds", "600"];
        Live::of(&own, &[&nf], &[&words[..], &more].concat())
    };
    let (a, _b) = (node("a"), node("b"));
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        let (shown, _) = json(&mut cluster(&["show", &at]));
        let nodes = shown["status"]["nodes"].as_array().unwrap();
        let have = nodes.iter().filter(|n| n["buckets"].as_u64() > Some(0));
        if have.count() == 2 && shown["status"]["moving"] == 0 {
            break;
        }
        assert!(Instant::now() < end, "{shown}");
        std::thread::sleep(Duration::from_millis(200));
    }
    let done = a.ask(&["ctl", "chain", "replace", "made", &nf, "--anew"]);
    assert_eq!(done["elements"], json!(["made"]), "{done}");
    let (drained, said) = output(&mut cluster(&["drain", &at, "a", "--wait", "120"]));
    assert_eq!(drained.status.code(), Some(1), "{said}");
    assert!(
        said.contains("buckets of a stay where they are: its function was replaced")
            && said.contains("cluster undrain"),
        "{said}"
    );
    let (found, status) = json(&mut cluster(&["check", &at]));
    assert_eq!(status, 1, "{found}");
    assert!(
        found.to_string().contains("neither give nor take"),
        "{found}"
    );
    let (shown, _) = json(&mut cluster(&["show", &at]));
    let why = shown["status"]["nodes"][0]["stays"].as_str();
    assert!(why.is_some_and(|why| why.contains("replaced")), "{shown}");
}
