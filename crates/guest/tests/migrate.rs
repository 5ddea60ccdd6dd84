//! Moving guests: what they tell at their end is what they would have told without a move.

#![allow(unsafe_code)]

use crate::common;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{BURST, Packets, capture, compile, installed, native};
use millrace_dataplane::worker::foreign::Foreign;
use millrace_guest::migrate::desk::{self, Desk};
use millrace_guest::migrate::{self, Report};
use millrace_guest::snapshot::format::VERSION;
use millrace_guest::{Element, Hosted, Word};

/// Another process: this test's program, as [`receiver`], which takes one guest at this socket.
struct Other {
    process: Child,
    socket: std::path::PathBuf,
}

impl Other {
    fn start(folder: &Path) -> Self {
        let socket = folder.join("receiver.sock");
        let process = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "migrate::receiver",
                "--nocapture",
                "--test-threads=1",
            ])
            .env("MILLRACE_TEST_RECEIVE", &socket)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while !socket.exists() {
            assert!(
                Instant::now() < deadline,
                "the other process does not listen"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { process, socket }
    }

    fn connect(&self) -> UnixStream {
        // The name is there a moment before anybody listens.
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            match UnixStream::connect(&self.socket) {
                Ok(stream) => return stream,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What it printed; it has ended by itself.
    fn end(self) -> String {
        let output = self.process.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// No test by itself: what the other process does.
#[test]
fn receiver() {
    let Some(socket) = std::env::var_os("MILLRACE_TEST_RECEIVE") else {
        return;
    };
    let listener = UnixListener::bind(socket).unwrap();
    let (stream, _) = listener.accept().unwrap();
    match migrate::receive(&stream, 1, None, &mut |_| {}) {
        Ok((name, packets, told)) => println!("received {name}: {packets} packets, {told:?}"),
        Err(error) => println!("not received: {error}"),
    }
}

fn element(folder: &Path, word: &str) -> Element {
    let mut spec = Word::of(word).unwrap().spec().unwrap();
    spec.directory = folder.canonicalize().unwrap();
    Element::new(Hosted::start(spec).unwrap())
}

/// Packets that a worker would bring, at most one burst each millisecond, until all have been given.
fn play(element: &mut Element, packets: &mut Packets, pause: Duration) -> usize {
    let mut on = 0;
    packets.bursts(|burst| {
        // SAFETY: as `bursts` promises.
        unsafe { element.burst(burst) };
        on += burst.iter().filter(|p| p.fate == 0).count();
        std::thread::sleep(pause);
    });
    on
}

/// Moves a guest while its packets come; the other half comes after that.
fn moved(
    element: &mut Element,
    packets: &mut Packets,
    name: &str,
    other: &Other,
    compare: bool,
) -> Report {
    let found: Arc<Desk> = desk::find(name).unwrap();
    let stream = other.connect();
    let mover = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        let how = if compare {
            migrate::migrate_by_comparison
        } else {
            migrate::migrate
        };
        how(&found, stream, "the other process").unwrap()
    });
    let all = packets.len();
    let on = play(element, packets, Duration::from_millis(2));
    assert_eq!(on, all, "each packet goes on, once");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !mover.is_finished() {
        assert!(Instant::now() < deadline);
        element.idle();
        std::thread::sleep(Duration::from_millis(1));
    }
    mover.join().unwrap()
}

#[test]
fn prads_is_moved_in_the_middle_of_a_trace_and_its_log_is_the_same() {
    if !installed("prads") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    native(
        dir.path(),
        &format!("prads -r {} -l native.log", capture().display()),
    );
    for (slot, compare) in [(200, false), (201, true)] {
        let folder = dir.path().join(slot.to_string());
        std::fs::create_dir(&folder).unwrap();
        let other = Other::start(&folder);
        let mut element = element(&folder, &format!("guest,slot={slot}:prads -i @ -l log"));
        let mut packets = Packets::read();
        let report = moved(
            &mut element,
            &mut packets,
            &slot.to_string(),
            &other,
            compare,
        );
        println!(
            "prads, by {}: stopped for {:.2} ms, {} KiB, rounds {:?}",
            report.by,
            report.stopped.as_secs_f64() * 1e3,
            report.bytes >> 10,
            report.rounds
        );
        let epilogue = element.finish();
        assert_eq!(epilogue.failure, None);
        assert!(
            epilogue.facts[0].contains("moved to the other process"),
            "{epilogue:?}"
        );
        let said = other.end();
        assert!(said.contains("received prads"), "{said}");
        let log = std::fs::read_to_string(folder.join("log")).unwrap();
        let expected = std::fs::read_to_string(dir.path().join("native.log")).unwrap();
        assert!(expected.lines().count() > 10);
        assert_eq!(log, expected, "by {}", report.by);
        assert!(report.rounds.len() > 1, "{report:?}");
    }
}

/// Every packet is seen once, whatever threads the guest has.
#[test]
fn no_packet_is_lost_or_doubled_by_a_move() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    for (slot, how) in [(210, "count"), (211, "thread"), (212, "busy")] {
        let folder = dir.path().join(how);
        std::fs::create_dir(&folder).unwrap();
        let other = Other::start(&folder);
        let word = format!(
            "guest,slot={slot},read={}:{} {how}",
            dir.path().display(),
            program.display()
        );
        let mut element = element(&folder, &word);
        let mut packets = Packets::read();
        moved(&mut element, &mut packets, &slot.to_string(), &other, false);
        let epilogue = element.finish();
        assert_eq!(epilogue.failure, None, "{how}");
        let said = other.end();
        let expected = format!("{} packets, sum {}\n", packets.len(), packets.sum());
        assert!(said.contains(&expected), "{how}: {said}");
    }
}

/// A receiver that cannot have it, or goes away: the guest goes on where it was.
#[test]
fn a_move_that_fails_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let mut element = element(
        dir.path(),
        &format!("guest,slot=220:{} count", program.display()),
    );
    let mut packets = Packets::read();
    let found = desk::find("220").unwrap();
    // In this process its slot is taken.
    let (near, far) = UnixStream::pair().unwrap();
    let receiver =
        std::thread::spawn(move || migrate::receive(&far, 2, None, &mut |_| {}).err().unwrap());
    let error = migrate::migrate(&found, near, "here")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the receiver says") && error.contains("slot 220"),
        "{error}"
    );
    assert!(receiver.join().unwrap().to_string().contains("slot 220"));
    // One that is silent at once.
    let (near, far) = UnixStream::pair().unwrap();
    drop(far);
    assert!(migrate::migrate(&found, near, "nobody").is_err());
    let on = play(&mut element, &mut packets, Duration::ZERO);
    assert_eq!(on, packets.len());
    let epilogue = element.finish();
    assert_eq!(epilogue.failure, None, "{epilogue:?}");
    let error = migrate::migrate(&found, UnixStream::pair().unwrap().0, "x").unwrap_err();
    assert!(
        error.to_string().contains("has ended")
            || matches!(error, millrace_guest::snapshot::SnapshotError::Io(_)),
        "{error}"
    );
}

/// A sender of another release is told so before anything is made of what it sends.
#[test]
fn another_version_is_refused() {
    let (mut near, far) = UnixStream::pair().unwrap();
    let receiver =
        std::thread::spawn(move || migrate::receive(&far, 2, None, &mut |_| {}).err().unwrap());
    let mut bytes = b"MRGUEST\0".to_vec();
    bytes.extend((VERSION + 1).to_le_bytes());
    bytes.extend([0; 4]);
    near.write_all(&bytes).unwrap();
    let error = receiver.join().unwrap();
    let what = format!("version {} of the format", VERSION + 1);
    assert!(error.to_string().contains(&what), "{error}");
    assert!(
        error.help().contains("the same release"),
        "{}",
        error.help()
    );
    let mut reply = Vec::new();
    near.read_to_end(&mut reply).unwrap();
    let reply = String::from_utf8_lossy(&reply);
    assert!(
        reply.contains(&what) && reply.contains("same release"),
        "{reply}"
    );
}

/// It fails once, in the second burst, and goes on from what it knew after the first.
#[test]
fn a_guest_that_fails_goes_on_from_its_last_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let file = dir.path().join("last.snapshot");
    let word = format!(
        "guest,slot=230,restart=1,snapshot={},every=0.01:{} once",
        file.display(),
        program.display()
    );
    let mut element = element(dir.path(), &word);
    let mut packets = Packets::read();
    let mut bursts = 0;
    let mut past = 0;
    packets.bursts(|burst| {
        // SAFETY: as `bursts` promises.
        unsafe { element.burst(burst) };
        bursts += 1;
        let until = Instant::now() + Duration::from_secs(20);
        match bursts {
            // A snapshot is taken, and taken note of.
            1 => {
                while Instant::now() < until && !(file.exists() && past > 20) {
                    std::thread::sleep(Duration::from_millis(11));
                    element.idle();
                    past += u32::from(file.exists());
                }
            }
            // It has failed; it comes back.
            2 => {
                for _ in 0..300 {
                    std::thread::sleep(Duration::from_millis(11));
                    element.idle();
                    if dir.path().join("failed-once").exists() && element.runs() {
                        break;
                    }
                }
            }
            _ => {}
        }
    });
    let epilogue = element.finish();
    assert_eq!(epilogue.failure, None, "{epilogue:?}");
    // The first burst and all from the third.
    let said = epilogue.facts.join("; ");
    assert!(
        said.contains(&format!("{BURST} packets went past it")),
        "{said}"
    );
    assert!(said.contains("snapshots, which stopped it"), "{said}");
}
