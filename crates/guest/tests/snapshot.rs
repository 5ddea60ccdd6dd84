//! Snapshots: a guest goes on from one as if nothing had been.

use crate::common;

use std::io::{Read, Seek};
use std::os::fd::AsRawFd;

use common::{BURST, Caught, Packets, capture, compile, installed, native};
use millrace_guest::snapshot::format::{self, Kind};
use millrace_guest::snapshot::inspect::inspect;
use millrace_guest::snapshot::{SnapshotError, restore};
use millrace_guest::{Over, describe};

/// Goes on from a snapshot with the output that the guest had.
fn again(bytes: &[u8], output: i32) -> millrace_guest::Hosted {
    restore::read(&mut &*bytes, output).unwrap()
}

#[test]
fn a_guest_goes_on_where_its_snapshot_was_taken() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let mut packets = Packets::read();
    let expected = format!("{} packets, sum {}\n", packets.len(), packets.sum());
    // Alone, and with a thread that waits for the packets' thread.
    for (slot, how) in [(100, "count"), (101, "thread"), (105, "busy")] {
        let word = format!("guest,slot={slot}:{} {how}", program.display());
        let mut caught = Caught::start(dir.path(), &word).unwrap();
        let half = packets.len() / BURST / 2 * BURST;
        packets.part(0..half, &mut [&mut caught.guest]);
        let mut bytes = Vec::new();
        let rounds = caught.guest.snapshot(&mut bytes).unwrap();
        println!("{how}: {} bytes, {rounds:?}", bytes.len());
        // It goes on itself, too, up to the same end.
        packets.part(half..packets.len(), &mut [&mut caught.guest]);
        caught.guest.finish();
        assert_eq!(caught.printed(), expected, "{how}");
        // One slot holds one guest.
        let mut output = tempfile::tempfile().unwrap();
        let error = restore::read(&mut &*bytes, output.as_raw_fd())
            .err()
            .unwrap();
        assert!(error.to_string().contains("slot"), "{error}");
        drop(caught);
        let mut guest = again(&bytes, output.as_raw_fd());
        assert_eq!(guest.slot(), slot);
        packets.part(half..packets.len(), &mut [&mut guest]);
        guest.finish();
        let over = guest.over().unwrap();
        assert!(matches!(over, Over::Exit(0)), "{how}: {}", describe(over));
        let mut printed = String::new();
        output.rewind().unwrap();
        output.read_to_string(&mut printed).unwrap();
        assert_eq!(printed, expected, "{how}");
    }
}

#[test]
fn prads_from_a_snapshot_writes_the_log_of_one_that_ran_through() {
    if !installed("prads") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    native(
        dir.path(),
        &format!("prads -r {} -l native.log", capture().display()),
    );
    let mut packets = Packets::read();
    let half = packets.len() / BURST / 2 * BURST;
    let mut caught = Caught::start(dir.path(), "guest,slot=102:prads -i @ -l log").unwrap();
    packets.part(0..half, &mut [&mut caught.guest]);
    let file = dir.path().join("prads.snapshot");
    caught
        .guest
        .snapshot(&mut std::fs::File::create(&file).unwrap())
        .unwrap();
    // What it does after the snapshot is forgotten: its memory, and what it wrote to the log.
    packets.part(half..packets.len(), &mut [&mut caught.guest]);
    let written = std::fs::metadata(dir.path().join("log")).unwrap().len();
    drop(caught);
    let mut guest = restore::read(&mut std::fs::File::open(&file).unwrap(), 2).unwrap();
    assert!(std::fs::metadata(dir.path().join("log")).unwrap().len() <= written);
    packets.part(half..packets.len(), &mut [&mut guest]);
    guest.finish();
    let log = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert!(log("native.log").lines().count() > 10);
    assert_eq!(log("native.log"), log("log"));
}

/// Descriptors: a log with a copy of its descriptor, a pipe with something in it, an eventfd, an epoll instance.
#[test]
fn descriptors_are_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let mut packets = Packets::read();
    let word = format!("guest,slot=104:{} files", program.display());
    let mut caught = Caught::start(dir.path(), &word).unwrap();
    packets.part(0..BURST, &mut [&mut caught.guest]);
    let mut bytes = Vec::new();
    caught.guest.snapshot(&mut bytes).unwrap();
    drop(caught);
    let mut output = tempfile::tempfile().unwrap();
    let mut guest = again(&bytes, output.as_raw_fd());
    packets.part(BURST..packets.len(), &mut [&mut guest]);
    guest.finish();
    let over = guest.over().unwrap();
    assert!(matches!(over, Over::Exit(0)), "{}", describe(over));
    let mut printed = String::new();
    output.rewind().unwrap();
    output.read_to_string(&mut printed).unwrap();
    assert_eq!(printed, "all as it was, process the same\n");
    let log = std::fs::read_to_string(dir.path().join("files.log")).unwrap();
    assert_eq!(log, "before\nbehind\n");
}

/// What may be opened is said anew where a guest goes on, also of files that it had open.
#[test]
fn a_guest_goes_on_with_the_files_that_it_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().canonicalize().unwrap();
    let program = compile(&folder, "receiver", &[]);
    let mut packets = Packets::read();
    let word = format!("guest,slot=107:{} files", program.display());
    let mut caught = Caught::start(&folder, &word).unwrap();
    packets.part(0..BURST, &mut [&mut caught.guest]);
    let file = folder.join("files.snapshot");
    caught
        .guest
        .snapshot(&mut std::fs::File::create(&file).unwrap())
        .unwrap();
    drop(caught);
    let go_on = |options: &str| {
        Caught::start(
            &folder,
            &format!("guest,restore={}{options}:", file.display()),
        )
    };
    for options in [",only", ",only,read=/srv", ",only,write=/srv"] {
        let error = go_on(options).err().unwrap();
        let text = error.to_string();
        assert!(
            text.contains("files.log") && text.contains("may not open"),
            "{options}: {text}"
        );
    }
    let mut caught = go_on(&format!(",only,write={}", folder.display())).unwrap();
    packets.part(BURST..packets.len(), &mut [&mut caught.guest]);
    let (over, printed) = caught.finish();
    assert!(matches!(over, Over::Exit(0)), "{}", describe(&over));
    assert_eq!(printed, "all as it was, process the same\n");
}

/// Each byte that is changed or missing is noticed, and no slot is lost by it.
#[test]
fn what_is_damaged_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let caught = Caught::start(
        dir.path(),
        &format!("guest,slot=103:{} count", program.display()),
    )
    .unwrap();
    let mut bytes = Vec::new();
    caught.guest.snapshot(&mut bytes).unwrap();
    drop(caught);
    for at in (0..bytes.len()).step_by(bytes.len() / 40) {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        let error = restore::read(&mut &*bad, 2).err().unwrap();
        assert!(
            matches!(error, SnapshotError::Broken(_)),
            "byte {at}: {error}"
        );
        let error = restore::read(&mut &bytes[..at], 2).err().unwrap();
        assert!(
            matches!(error, SnapshotError::Broken(_)),
            "cut at {at}: {error}"
        );
    }
    drop(again(&bytes, 2));
}

/// Documents that lie, in sections whose checksums are right: refused, or harmless; nothing is mapped for them.
#[test]
fn snapshots_that_lie_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let word = format!("guest,slot=106:{} thread", program.display());
    let caught = Caught::start(dir.path(), &word).unwrap();
    let mut bytes = Vec::new();
    caught.guest.snapshot(&mut bytes).unwrap();
    drop(caught);
    let outline = inspect(&mut &*bytes).unwrap();
    assert_eq!((outline.head.slot, outline.rest.parked.len()), (106, 1));
    // Its sections, pages left out but for their place.
    let mut sections = Vec::new();
    let mut input = &*bytes;
    format::begins(&mut input).unwrap();
    while sections.last().is_none_or(|(kind, _)| *kind != Kind::End) {
        let mut body = Vec::new();
        sections.push((format::take(&mut input, &mut body).unwrap(), body));
    }
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize % below
    };
    let mut refused = 0;
    let rounds = 600;
    for _ in 0..rounds {
        let mut out = Vec::new();
        format::begin(&mut out).unwrap();
        let which = [Kind::Head, Kind::Maps, Kind::Rest][draw(3)];
        for (kind, body) in &sections {
            let mut body = body.clone();
            if *kind == which {
                // A number, or anything else, is another one.
                let at = draw(body.len());
                let digits = (at..body.len()).find(|i| body[*i].is_ascii_digit());
                let at = digits.filter(|_| draw(4) > 0).unwrap_or(at);
                body[at] = if body[at].is_ascii_digit() {
                    b'0' + draw(10) as u8
                } else {
                    draw(256) as u8
                };
            }
            format::put(&mut out, *kind, &[&body]).unwrap();
        }
        refused += usize::from(inspect(&mut &*out).is_err());
    }
    assert!(refused > rounds / 10, "{refused} of {rounds}");
}
