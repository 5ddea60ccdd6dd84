//! Guests of a chain that are moved to another process with `millrace ctl migrate` while packets come.

use crate::common;
use crate::common::live;
use crate::common::stream;

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use common::{millrace, output};
use live::{LONG, Live};
use serde_json::Value;
use stream::{Stream, installed, numbers};

/// A process that waits for a guest.
struct Receiver {
    child: Child,
    socket: PathBuf,
}

impl Receiver {
    fn start(folder: &Path, name: &str, words: &[&str]) -> Self {
        let socket = folder.join(name);
        let mut receive = millrace();
        receive.arg("receive").arg(&socket).args(words);
        receive.args(["--json", "--seconds", "60"]);
        let child = receive
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let child = child.unwrap();
        let began = std::time::Instant::now();
        while !socket.exists() {
            assert!(began.elapsed() < LONG, "no socket");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Self { child, socket }
    }

    fn word(&self) -> &str {
        self.socket.to_str().unwrap()
    }

    /// Its document, and its exit status.
    fn end(self) -> (Value, Option<i32>, String) {
        let output = self.child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let document = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (document, output.status.code(), said)
    }
}

#[test]
fn a_guest_moves_to_another_process_in_mid_stream() {
    if !installed("tcpdump") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let apart = dir.path().join("apart");
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&apart)
        .unwrap();
    let (out, seen) = (dir.path().join("out.pcap"), dir.path().join("seen.pcap"));
    let guest = format!("guest:tcpdump -n -i @ -w {}", seen.display());
    let words = ["--in", "-", "--out", out.to_str().unwrap()];
    let mut live = Live::of(dir.path(), &["nop", &guest], &words);
    let stream = Stream::into(&mut live);
    live.until(|s| s["read"].as_u64() > Some(200));
    let guests = live.ask(&["ctl", "guests"]);
    assert_eq!(guests["guests"][0]["name"], "tcpdump", "{guests}");

    // Where it may not open the file that it writes, it does not go; it goes on where it was.
    let strict = Receiver::start(&apart, "strict.sock", &["--only", "--read", "/srv"]);
    let words = ["ctl", "migrate", "tcpdump", "--to", strict.word()];
    let (_, said) = output(&mut live.command(&words));
    assert!(
        said.contains("the receiver says") && said.contains("seen.pcap"),
        "{said}"
    );
    let (_, status, said) = strict.end();
    assert_eq!(status, Some(2), "{said}");
    stream.more(300);

    let other = Receiver::start(&apart, "other.sock", &[]);
    let moved = live.ask(&["ctl", "migrate", "tcpdump", "--to", other.word()]);
    assert_eq!(moved["guest"], "tcpdump", "{moved}");
    assert!(moved["bytes"].as_u64() > Some(4096), "{moved}");
    assert!(moved["stopped_ms"].as_f64() > Some(0.0), "{moved}");
    stream.more(500);
    // What runs elsewhere is still an element of the chain, and leaves it as others do.
    let chain = live.ask(&["ctl", "chain", "detach", "tcpdump"]);
    assert_eq!(chain["elements"].as_array().unwrap().len(), 1, "{chain}");
    let (document, status, said) = other.end();
    assert_eq!(status, Some(0), "{said}");
    stream.more(100);
    let sent = stream.end();
    let (account, status) = live.end();
    assert_eq!(status, 0, "{account}");
    for fate in ["read", "forwarded", "written"] {
        assert_eq!(account[fate], sent, "{fate}: {account}");
    }
    assert_eq!(numbers(&out), (0..sent).collect::<Vec<_>>());
    let seen = numbers(&seen);
    assert_eq!(
        seen,
        (0..seen.len() as u32).collect::<Vec<_>>(),
        "one file, no gap, no packet twice"
    );
    let stages = account["stages"].as_array().unwrap();
    let own = stages.iter().find(|s| s["name"] == "tcpdump").unwrap();
    assert_eq!(own["packets"], seen.len(), "{stages:?}");
    let there = document["packets"].as_u64().unwrap();
    assert!(
        (400..seen.len() as u64 - 400).contains(&there),
        "{document}"
    );
}
