//! `millrace cluster`, from outside, against a real etcd where there is one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::{json, millrace, output, refused};

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
        let base64 = |text: &str| {
            let mut command = Command::new("base64");
            command
                .arg("-w0")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
            String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
        };
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
