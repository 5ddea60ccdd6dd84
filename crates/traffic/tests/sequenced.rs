//! Sequenced captures: golden ones in tests/sequencer, and readers of damaged ones.

use std::fmt::Write as _;
use std::io::Cursor;
use std::path::PathBuf;

use etherparse::PacketBuilder;
use millrace_steer::sequence::{
    Extract, Form, Header, Key, Kind, MAX_GAP, Row, Sequencer, Shape, State,
};
use millrace_traffic::capture::{self, Format};
use millrace_traffic::sequenced::{Reader, SequenceError, Step, Writer, sequence};
use millrace_wire::{Rule, Stop, Version};
use proptest::prelude::*;

/// A stream that a test reads again.
#[derive(Clone, Default)]
struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Twelve packets of 42 to 60 bytes: UDP over IPv4, ARP, IPv6, one that is cut; a pause of five minutes, a clock that goes back.
fn packets() -> Vec<u8> {
    let shared = Shared::default();
    let mut writer = capture::Writer::new("packets", shared.clone(), Format::Pcap, &[]);
    let mut time = 1_700_000_000_000_000_000_u64;
    for i in 0..12_u8 {
        let mut frame = Vec::new();
        let from = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        match i {
            2 => {
                frame.extend([255; 6]);
                frame.extend([2, 0, 0, 0, 0, 1, 8, 6]);
                frame.extend([0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1]);
                frame.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
            }
            6 => from
                .ipv6([1; 16], [2; 16], 64)
                .udp(7, 8)
                .write(&mut frame, b"six")
                .unwrap(),
            _ => from
                .ipv4([10, 0, 0, 1 + i % 3], [192, 0, 2, i], 64)
                .udp(1000 + u16::from(i), 53)
                .write(&mut frame, &[i; 3])
                .unwrap(),
        }
        if i == 9 {
            frame.truncate(20);
        }
        time += match i {
            8 => 300_000_000_000,
            _ => 1_000 * u64::from(i),
        };
        let stamp = if i == 5 { time - 9_000 } else { time };
        writer.write(stamp, 0, 0, &frame).unwrap();
    }
    writer.finish().unwrap();
    shared.0.lock().unwrap().clone()
}

/// The source address, as a function needs it that counts packets by source.
fn sources() -> impl Extract {
    let take = |frame: &[u8], _: u16, _: u64, row: &mut [u8]| match layers(frame) {
        None => false,
        Some(at) => copy(frame, at + 12..at + 16, row),
    };
    (Shape::new(4, None).unwrap(), take)
}

/// Addresses, ports, protocol and time, as a token bucket for each flow needs them.
fn flows() -> impl Extract {
    let take = |frame: &[u8], _: u16, _: u64, row: &mut [u8]| match layers(frame) {
        None => false,
        Some(at) => {
            copy(frame, at + 12..at + 24, row) && copy(frame, at + 9..at + 10, &mut row[12..])
        }
    };
    (Shape::new(18, Some(13)).unwrap(), take)
}

/// Where the IPv4 header of a whole UDP packet is.
fn layers(frame: &[u8]) -> Option<usize> {
    let layers = millrace_wire::walk(frame, Rule::PROGRAM);
    let ip = layers.ip.filter(|ip| ip.version == Version::V4)?;
    (layers.stop == Stop::Transport && ip.header == 20).then_some(ip.at)
}

fn copy(frame: &[u8], from: std::ops::Range<usize>, row: &mut [u8]) -> bool {
    let found = frame.get(from);
    let bytes = found.unwrap_or_default();
    row.iter_mut().zip(bytes).for_each(|(r, b)| *r = *b);
    found.is_some()
}

const KEY: Key = Key(*b"sequencer-golden");

/// Name, capture, its key.
fn golden() -> [(&'static str, Vec<u8>, Option<Key>); 3] {
    let form = |cores, slots, rows: &dyn Fn() -> Shape| Form::new(cores, slots, rows()).unwrap();
    let [few, many] = [
        form(2, 3, &|| sources().shape()),
        form(3, 6, &|| flows().shape()),
    ];
    [
        ("sources", sequenced(sources(), few, MAX_GAP), None),
        ("flows", sequenced(flows(), many.clone(), 40_000), None),
        (
            "tagged",
            sequenced(flows(), many.with_key(KEY), MAX_GAP),
            Some(KEY),
        ),
    ]
}

fn sequenced(rows: impl Extract, form: Form, period: u64) -> Vec<u8> {
    let shared = Shared::default();
    let mut input = capture::Reader::new("packets", Cursor::new(packets())).unwrap();
    // A pause of five minutes would be 7,500,000 heartbeats of 40 us.
    let pause = period < MAX_GAP;
    let mut state = State::new(form.cores(), period).unwrap();
    let to = |form, state: &State| Writer::new("golden", shared.clone(), form, state);
    if !pause {
        state = sequence(&mut input, rows, state, form, to).unwrap().0;
        assert_eq!(state.back(), 1);
    } else {
        let mut writer = to(form, &state).unwrap();
        let mut sequencer = Sequencer::new(state, rows);
        for _ in 0..8 {
            let record = input.next().unwrap().unwrap();
            let mut give = |header: Header, row: Option<Row>| {
                writer.write(&header, row.as_ref(), record.data).unwrap();
            };
            sequencer
                .packet(record.data, 0, record.time_ns, &mut give)
                .unwrap();
        }
        // Nothing comes any more: heartbeats tell all cores what they lost.
        let (header, row) = sequencer.beat(u64::MAX / 2).unwrap().unwrap();
        writer.write(&header, Some(&row), &[]).unwrap();
        writer.finish().unwrap();
    }
    shared.0.lock().unwrap().clone()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/sequencer")
}

fn steps(
    capture: &[u8],
    key: Option<Key>,
) -> Result<Vec<Step>, millrace_traffic::sequenced::Error> {
    let mut reader = Reader::new("capture", Cursor::new(capture.to_vec()), key)?;
    let mut steps = Vec::new();
    while let Some(step) = reader.next()? {
        steps.push(step);
    }
    Ok(steps)
}

/// The captures of tests/sequencer are what the sequencer gives, and the listings beside them what is in them.
/// MILLRACE_BLESS=1 writes both anew after a change that is meant.
#[test]
fn golden_captures() {
    let mut files = vec![("packets.pcap".to_owned(), packets())];
    for (name, capture, key) in golden() {
        let mut listing = String::new();
        for step in steps(&capture, key).unwrap() {
            writeln!(listing, "{step}").unwrap();
        }
        files.push((format!("{name}.pcap"), capture));
        files.push((format!("{name}.txt"), listing.into_bytes()));
    }
    for (name, now) in files {
        let path = folder().join(&name);
        if std::env::var_os("MILLRACE_BLESS").is_some() {
            std::fs::write(&path, &now).unwrap();
        }
        let kept = std::fs::read(&path).unwrap_or_default();
        assert!(
            kept == now,
            "tests/sequencer/{name} is another; MILLRACE_BLESS=1 accepts what is written now"
        );
    }
}

/// What a reader gives, a writer writes back to the same bytes.
#[test]
fn round_trip() {
    for (_, capture, key) in golden() {
        let reader = Reader::new("capture", Cursor::new(capture.clone()), key).unwrap();
        let shared = Shared::default();
        let mut writer = Writer::new(
            "again",
            shared.clone(),
            reader.form().clone(),
            reader.state(),
        )
        .unwrap();
        for step in steps(&capture, key).unwrap() {
            writer
                .write(&step.header, step.row.as_ref(), &step.frame)
                .unwrap();
        }
        writer.finish().unwrap();
        assert_eq!(*shared.0.lock().unwrap(), capture);
    }
}

/// The bytes of each record, with its header, behind the file's header.
fn records(capture: &[u8]) -> Vec<&[u8]> {
    let mut rest = &capture[24..];
    let mut records = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let (record, behind) = rest.split_at(16 + length);
        records.push(record);
        rest = behind;
    }
    records
}

fn rebuilt(capture: &[u8], records: &[&[u8]]) -> Vec<u8> {
    [&capture[..24], &records.concat()].concat()
}

#[test]
fn reordered_and_lost() {
    let [_, (_, capture, _), _] = golden();
    let all = records(&capture);
    let fails = |records: &[&[u8]]| {
        let error = steps(&rebuilt(&capture, records), None).unwrap_err();
        error.to_string()
    };
    for i in 1..all.len() - 1 {
        let mut swapped = all.clone();
        swapped.swap(i, i + 1);
        let error = fails(&swapped);
        assert!(
            error.starts_with(&format!("capture: record {}: ", i + 1)),
            "{error}"
        );
        let mut without = all.clone();
        without.remove(i);
        fails(&without);
    }
    // Without its end a capture is one of fewer packets, unless that is within a heartbeat.
    assert!(steps(&rebuilt(&capture, &all[..4]), None).is_ok());
    let ended = fails(&all[..all.len() - 1]);
    assert!(ended.contains("goes to 3 cores, and 2 have it"), "{ended}");
    let beats = steps(&capture, None).unwrap();
    assert_eq!(
        beats.iter().filter(|s| s.header.kind == Kind::Beat).count(),
        1
    );
}

#[test]
fn said() {
    let [(_, plain, _), _, (_, tagged, _)] = golden();
    let fails = |capture: &[u8], key| steps(capture, key).unwrap_err().to_string();
    assert!(fails(&packets(), None).contains("does not say the form"));
    assert!(fails(&plain[..24], None).contains("does not say the form"));
    assert!(fails(&[], None).contains("is empty"));
    assert!(fails(&tagged, None).contains("needs the key"));
    assert!(fails(&plain, Some(KEY)).contains("read without one"));
    assert!(
        fails(&tagged, Some(Key([0; 16]))).contains("record 2: no carrier of this form: the tag")
    );
    let changed = |record: usize, at: usize, value: u8| {
        let mut all: Vec<Vec<u8>> = records(&plain).iter().map(|r| r.to_vec()).collect();
        all[record][at] = value;
        let all: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        fails(&rebuilt(&plain, &all), None)
    };
    assert!(changed(0, 16 + 15, 1).contains("1 slots are too few for 2 cores"));
    assert!(changed(0, 16 + 19, 1).contains("does not say the form"));
    assert!(changed(0, 16 + 16, 65).contains("1 to 64 bytes"));
    assert!(changed(3, 12, 90).contains("was cut from 90"));
    assert!(changed(2, 4, 1).contains("and its stamp"));
    assert!(changed(2, 16 + 5, 0).contains("destination: the core"));
    // A row that was another one in an earlier carrier.
    let row = changed(2, 16 + 34 + 1, 11);
    assert!(row.starts_with("capture: record 3: the sequencer gives another carrier: its byte 35 is 0x0a, and here it is 0x0b (rows)"), "{row}");

    let wide = Form::new(2, 2, Shape::new(5, None).unwrap()).unwrap();
    let mut input = capture::Reader::new("packets", Cursor::new(packets())).unwrap();
    let state = State::new(2, 1_000_000).unwrap();
    let to = |form, state: &State| Writer::new("sink", std::io::sink(), form, state);
    let error = sequence(&mut input, sources(), state.clone(), wide, to).unwrap_err();
    assert!(matches!(error, SequenceError::Form { .. }), "{error}");
    let form = Form::new(2, 2, sources().shape()).unwrap();
    let gap = sequence(&mut input, sources(), state, form, to)
        .unwrap_err()
        .to_string();
    assert!(
        gap.starts_with("packet 9 (from 1): ") && gap.contains("check the time stamps"),
        "{gap}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A changed byte is refused, unless it is of a packet's content; without a tag also of its port, or of a row that no later
    /// carrier holds.
    #[test]
    fn damaged(which in 0_usize..3, at: prop::sample::Index, change in 1_u8..) {
        let (_, mut capture, key) = golden()[which].clone();
        let before = steps(&capture, key).unwrap();
        let at = at.index(capture.len());
        capture[at] ^= change;
        if let Ok(after) = steps(&capture, key) {
            prop_assert_eq!(before.len(), after.len());
            let last = before.last().unwrap().record;
            for (b, a) in before.iter().zip(&after) {
                let port = if key.is_none() { a.header.port } else { b.header.port };
                prop_assert_eq!(Header { port, ..b.header }, a.header);
                prop_assert!(b.row == a.row || key.is_none() && b.record == last);
            }
        }
    }
}
