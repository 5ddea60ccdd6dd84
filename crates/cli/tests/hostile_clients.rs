//! Clients that do not keep to the rules: each is told so or closed, and nothing is held up by them.

use crate::common;
use crate::common::live;

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use common::{capture, millrace, refused, root};
use live::{LONG, Live, Raw, from};
use serde_json::json;

/// Packets go on, and a client that keeps to the rules is answered.
fn goes_on(live: &Live) {
    let before = live.stats()["read"].as_u64().unwrap();
    live.until(|s| s["read"].as_u64().unwrap() > before);
}

#[test]
fn garbage_is_named_and_closed() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::looping(dir.path(), &[]);
    let deep = format!("{}\n", "[".repeat(100_000));
    let wide = format!("{{\"v\":1,\"do\":\"{}\"}}\n", "x".repeat(2 << 20));
    for (bytes, code) in [
        (&b"\n"[..], "malformed"),
        (b"GET / HTTP/1.1\r\n", "malformed"),
        (b"\xff\xfe\x00\n", "malformed"),
        (b"{\"v\":1}\n", "malformed"),
        (b"{\"v\":1,\"do\":\"hello\",\"dont\":1}\n", "malformed"),
        (b"{\"v\":9,\"do\":\"hello\"}\n", "version"),
        (deep.as_bytes(), "malformed"),
        (wide.as_bytes(), "too-large"),
    ] {
        let mut client = Raw::connect(&live.socket);
        // The server may close before it has read all of it.
        let _ = client.send(bytes);
        let answer = client.receive();
        if bytes.len() < 1 << 20 {
            let answer = answer.expect("an answer");
            assert_eq!(answer["error"]["code"], code, "{answer}");
            assert!(client.receive().is_none());
        }
    }
    // What can be read, but not done, leaves the connection open.
    let mut client = Raw::connect(&live.socket);
    for (request, code) in [
        (json!({"do": "explode"}), "unknown"),
        (json!({"do": "get"}), "malformed"),
        (json!({"do": "get", "object": "no"}), "no-such-object"),
        (
            json!({"do": "get", "object": "left", "key": [[]]}),
            "malformed",
        ),
        (
            json!({"do": "get", "object": "left", "key": {"a": {"b": 1}}}),
            "malformed",
        ),
        (
            json!({"do": "edit", "edits": [{"object": "left", "op": "burn"}]}),
            "malformed",
        ),
        (
            json!({"do": "edit", "edits": [{"object": "left", "op": "set"}]}),
            "malformed",
        ),
        (
            json!({"do": "edit", "edits": [{"object": "left", "op": "set", "key": 0, "value": 1_u64 << 40}]}),
            "malformed",
        ),
        (json!({"do": "set", "setting": "grace"}), "malformed"),
    ] {
        let answer = client.ask(request.clone());
        assert_eq!(answer["error"]["code"], code, "{request}: {answer}");
    }
    // Any cursor is somewhere or at the end.
    for cursor in [0, 1, 255, 256, u64::from(u32::MAX), u64::MAX] {
        let request = json!({"do": "entries", "object": "sources", "cursor": cursor, "limit": 5});
        assert!(client.ask(request)["ok"]["entries"].is_array());
    }
    // An edit that failed leaves nothing staged behind.
    let bad = json!({"do": "edit", "edits": [{"object": "left", "op": "burn"}]});
    client.ask(json!({"do": "edit", "more": true, "edits": [{"object": "left", "op": "clear"}]}));
    client.ask(bad);
    assert_eq!(
        client.ask(json!({"do": "edit"}))["ok"],
        json!({"set": 0, "deleted": 0})
    );
    goes_on(&live);
}

#[test]
fn a_request_that_does_not_end_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::seldom(dir.path());
    let mut slow = Raw::connect(&live.socket);
    let began = Instant::now();
    slow.send(b"{\"v\":1").unwrap();
    let drip = std::thread::spawn({
        let mut stream = UnixStream::connect(&live.socket).unwrap();
        move || {
            // A byte now and then does not lengthen the time that a request has.
            while stream.write_all(b" ").is_ok() && began.elapsed() < LONG {
                std::thread::sleep(Duration::from_millis(200));
            }
            began.elapsed()
        }
    });
    goes_on(&live);
    let answer = slow.receive().unwrap();
    assert_eq!(answer["error"]["code"], "timeout", "{answer}");
    assert!(slow.receive().is_none());
    assert!(drip.join().unwrap() < LONG);
}

#[test]
fn thousands_of_clients_come_and_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::looping(dir.path(), &[]);
    // Silent ones take all the places there are; one more is told so.
    let admitted = || {
        let began = Instant::now();
        loop {
            // The place of a client that has just gone may not be free yet.
            let mut client = Raw::connect(&live.socket);
            if client.ask_hello().is_some() {
                return client;
            }
            assert!(began.elapsed() < LONG);
        }
    };
    let silent: Vec<_> = (0..32).map(|_| admitted()).collect();
    let refused = Raw::connect(&live.socket).receive().unwrap();
    assert_eq!(refused["error"]["code"], "busy", "{refused}");
    // Those that go at once, in thousands, use up nothing.
    let mut told = 0;
    for _ in 0..3000 {
        if let Ok(stream) = UnixStream::connect(&live.socket) {
            drop(stream);
            told += 1;
        }
    }
    assert!(told > 2000, "{told}");
    drop(silent);
    admitted();
    goes_on(&live);
    let threads = std::fs::read_dir(format!("/proc/{}/task", live.child.id()))
        .unwrap()
        .count();
    assert!(threads < 40, "{threads} threads");
}

impl Raw {
    fn ask_hello(&mut self) -> Option<serde_json::Value> {
        self.send(b"{\"v\":1,\"do\":\"hello\"}\n").ok()?;
        self.receive()?.get("ok").cloned()
    }
}

#[test]
fn a_client_that_never_reads_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::seldom(dir.path());
    let mut deaf = UnixStream::connect(&live.socket).unwrap();
    deaf.set_write_timeout(Some(LONG)).unwrap();
    let began = Instant::now();
    // Answers that nobody reads fill the buffers; then the server closes.
    let request = b"{\"v\":1,\"do\":\"objects\"}\n";
    while deaf.write_all(request).is_ok() {
        assert!(began.elapsed() < LONG, "still taken");
    }
    goes_on(&live);
    assert_eq!(live.ask(&["ctl", "stop"])["state"], "stopping");
    assert_eq!(live.end().1, 0);
}

/// What `run` says of a place for its socket that it refuses.
fn refuses(folder: &Path, words: &[&str]) -> String {
    let input = folder.join("in.pcap");
    capture(&input, &[(1, from([1, 2, 3, 4]))]);
    let mut command = millrace();
    command
        .arg("run")
        .arg(root().join("tests/programs/blocklist.c"))
        .arg("--in")
        .arg(&input);
    command.env("XDG_RUNTIME_DIR", folder).args(words);
    refused(&mut command, 2)
}

#[test]
fn a_socket_goes_only_where_nobody_else_can_come() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(at("file"), "keep").unwrap();
    symlink(at("file"), at("link")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    for (name, what) in [
        ("file", "is there and is no socket"),
        ("link", "is a symbolic link"),
        ("dangling", "is a symbolic link"),
        ("no/such/folder", "its folder"),
    ] {
        let text = refuses(dir.path(), &["--control", &at(name)]);
        assert!(text.contains(what), "{name}: {text}");
    }
    let long = refuses(dir.path(), &["--control", &at(&"x".repeat(120))]);
    assert!(long.contains("107 bytes"), "{long}");
    assert_eq!(std::fs::read_to_string(at("file")).unwrap(), "keep");
    assert!(!Path::new(&at("nowhere")).exists());

    // The folder without --control: others may enter it, or it is somewhere else.
    let folder = dir.path().join("millrace");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    let open = refuses(dir.path(), &["--name", "a"]);
    assert!(open.contains("has mode 755, others may enter it"), "{open}");
    std::fs::remove_dir(&folder).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), &folder).unwrap();
    let link = refuses(dir.path(), &["--name", "a"]);
    assert!(link.contains("is no folder"), "{link}");
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn the_socket_is_its_owners_alone_and_a_dead_one_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    // A listener that is gone, as a killed run leaves it.
    drop(UnixListener::bind(dir.path().join("control.sock")).unwrap());
    let live = Live::looping(dir.path(), &[]);
    let mode = std::fs::metadata(&live.socket)
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = refuses(dir.path(), &["--control", live.socket.to_str().unwrap()]);
    assert!(text.contains("a running process listens there"), "{text}");
    goes_on(&live);
    let socket = live.socket.clone();
    live.ask(&["ctl", "stop"]);
    live.end();
    assert!(!socket.exists());
}
