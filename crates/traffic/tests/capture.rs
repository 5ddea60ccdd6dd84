//! Reading and writing captures, byte by byte.

use crate::common;

use common::{Sink, drain, read};
use millrace_traffic::capture::{Format, MAX_PACKET, Merge, Problem, Reader, WriteProblem, Writer};

/// Lays out words in either byte order.
fn words(big: bool, values: &[u32]) -> Vec<u8> {
    let bytes = |value: &u32| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    values.iter().flat_map(bytes).collect()
}

fn halves(big: bool, first: u16, second: u16) -> Vec<u8> {
    let bytes = |value: u16| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    [bytes(first), bytes(second)].concat()
}

fn pcap(big: bool, magic: u32, link_type: u32, packets: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let mut bytes = words(big, &[magic]);
    bytes.extend(halves(big, 2, 4));
    bytes.extend(words(big, &[0, 0, 65535, link_type]));
    for (seconds, fraction, data) in packets {
        let length = data.len() as u32;
        bytes.extend(words(big, &[*seconds, *fraction, length, length + 7]));
        bytes.extend(*data);
    }
    bytes
}

fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = body.len() as u32 + 12;
    [words(big, &[kind, length]), body, words(big, &[length])].concat()
}

fn section(big: bool) -> Vec<u8> {
    let body = [
        words(big, &[0x1a2b_3c4d]),
        halves(big, 1, 0),
        words(big, &[u32::MAX; 2]),
    ]
    .concat();
    block(big, 0x0a0d_0d0a, &body)
}

fn interface(big: bool, link_type: u16, resolution: Option<u8>, offset: Option<i64>) -> Vec<u8> {
    let mut body = [halves(big, link_type, 0), words(big, &[0])].concat();
    // A comment before all else, which must not be taken for anything.
    body.extend(halves(big, 1, 5));
    body.extend(b"hello\0\0\0");
    if let Some(resolution) = resolution {
        body.extend(halves(big, 9, 1));
        body.extend([resolution, 0, 0, 0]);
    }
    if let Some(offset) = offset {
        body.extend(halves(big, 14, 8));
        body.extend(if big {
            offset.to_be_bytes()
        } else {
            offset.to_le_bytes()
        });
    }
    body.extend([0; 4]);
    block(big, 1, &body)
}

fn enhanced(big: bool, interface: u32, ticks: u64, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u32;
    let mut body = words(
        big,
        &[
            interface,
            (ticks >> 32) as u32,
            ticks as u32,
            length,
            length,
        ],
    );
    body.extend(data);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(halves(big, 1, 3));
    body.extend(b"hi!\0\0\0\0\0");
    block(big, 6, &body)
}

#[test]
fn pcap_in_both_orders_and_resolutions() {
    let packets: &[(u32, u32, &[u8])] = &[(5, 6, b"abc"), (7, 999, b""), (u32::MAX, 0, &[9; 1500])];
    for big in [false, true] {
        for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
            let (read, error) = read(&pcap(big, magic, 1, packets)).unwrap();
            assert!(error.is_none());
            assert_eq!(read.len(), 3);
            for (got, (seconds, fraction, data)) in read.iter().zip(packets) {
                let expected = u64::from(*seconds) * 1_000_000_000 + u64::from(*fraction) * unit;
                assert_eq!(got.time_ns, expected);
                assert_eq!(got.data, *data);
                assert_eq!(got.original_length, data.len() as u32 + 7);
            }
        }
    }
}

#[test]
fn pcapng_with_sections_interfaces_and_clocks() {
    for (first, second) in [(false, true), (true, false)] {
        let bytes = [
            section(first),
            interface(first, 1, None, None),
            interface(first, 1, Some(9), Some(-3)),
            // Name resolution, statistics and a kind nobody knows: stepped over.
            block(first, 4, &[0; 4]),
            block(first, 5, &[0; 12]),
            block(first, 0xbad, &[1; 400_000]),
            enhanced(first, 0, 1_000_001, b"micro"),
            enhanced(first, 1, 4_000_000_002, b"nano"),
            section(second),
            interface(second, 1, Some(0x80 | 10), Some(100)),
            interface(second, 113, Some(12), None),
            enhanced(second, 0, 1024 + 512, b"binary"),
            // A simple packet: no stamp of its own.
            block(second, 3, &[words(second, &[3]), b"abc".to_vec()].concat()),
            // An obsolete packet block: interface and drops share a word.
            block(
                second,
                2,
                &[
                    halves(second, 0, 9),
                    words(second, &[0, 1024, 2, 60]),
                    b"ol".to_vec(),
                ]
                .concat(),
            ),
        ]
        .concat();
        let (packets, error) = read(&bytes).unwrap();
        assert!(error.is_none(), "{}", error.unwrap());
        let got: Vec<_> = packets
            .iter()
            .map(|packet| (packet.time_ns, packet.interface, packet.data.as_slice()))
            .collect();
        let expected: &[(u64, u32, &[u8])] = &[
            (1_000_001_000, 0, b"micro"),
            (1_000_000_002, 1, b"nano"),
            (101_500_000_000, 2, b"binary"),
            (101_500_000_000, 2, b"abc"),
            (101_000_000_000, 2, b"ol"),
        ];
        assert_eq!(got, expected);
        assert_eq!(packets[4].original_length, 60);
    }
}

#[test]
fn clocks_at_their_limits_do_not_overflow() {
    for (resolution, offset, ticks, expected) in [
        (0, 0, u64::MAX, i64::MAX as u64),
        (127, 0, u64::MAX, 0),
        (0xff, 0, u64::MAX, 0),
        (0x80, 0, 7, 7_000_000_000),
        (12, 0, 1_234_567, 1_234),
        (9, i64::MIN, u64::MAX, 0),
        (0, i64::MAX, u64::MAX, i64::MAX as u64),
    ] {
        let clock = interface(false, 1, Some(resolution), Some(offset));
        let bytes = [section(false), clock, enhanced(false, 0, ticks, b"x")].concat();
        let (packets, error) = read(&bytes).unwrap();
        assert!(error.is_none());
        assert_eq!(
            packets[0].time_ns, expected,
            "resolution {resolution}, ticks {ticks}"
        );
    }
}

#[test]
fn every_truncation_delivers_what_is_whole_and_says_where_it_ends() {
    let whole_pcap = pcap(
        false,
        0xa1b2_c3d4,
        1,
        &[(1, 2, b"first"), (3, 4, b"second")],
    );
    let pcap_ends = [24, 24 + 16 + 5, whole_pcap.len()];
    let whole_ng = [
        section(false),
        interface(false, 1, None, None),
        enhanced(false, 0, 1, b"first"),
        enhanced(false, 0, 2, b"second"),
    ]
    .concat();
    let ng_head = section(false).len() + interface(false, 1, None, None).len();
    let ng_ends = [
        ng_head,
        ng_head + enhanced(false, 0, 1, b"first").len(),
        whole_ng.len(),
    ];
    for (whole, ends) in [(whole_pcap, pcap_ends), (whole_ng, ng_ends)] {
        for length in 0..=whole.len() {
            let expected = ends
                .iter()
                .filter(|end| **end <= length)
                .count()
                .saturating_sub(1);
            match read(&whole[..length]) {
                Ok((packets, error)) => {
                    assert_eq!(packets.len(), expected, "{length} bytes");
                    if ends.contains(&length) {
                        assert!(error.is_none());
                    } else if let Some(error) = error {
                        assert!(
                            matches!(error.problem, Problem::Truncated { .. }),
                            "{error}"
                        );
                        assert!(error.offset <= length as u64);
                        assert_eq!(error.packets as usize, expected);
                    } else {
                        // Between two blocks before the first packet there is nothing to miss.
                        assert_eq!(length, section(false).len());
                    }
                }
                Err(error) => assert!(length < 24, "{length} bytes: {error}"),
            }
        }
    }
}

#[test]
fn what_is_wrong_is_named() {
    let problem = |bytes: &[u8]| match read(bytes) {
        Ok((_, error)) => error.expect("an error"),
        Err(error) => error,
    };
    assert!(matches!(problem(b"").problem, Problem::Empty));
    assert!(matches!(
        problem(b"\x1f\x8b\x08\x00").problem,
        Problem::Compressed("gzip")
    ));
    assert!(matches!(
        problem(b"GET / HTTP/1.1").problem,
        Problem::NotACapture
    ));

    let loopback = pcap(false, 0xa1b2_c3d4, 113, &[(0, 0, b"x")]);
    let error = problem(&loopback);
    assert!(matches!(error.problem, Problem::LinkType(113)));
    assert!(error.to_string().contains("the interface `any`"), "{error}");

    let mut giant = pcap(false, 0xa1b2_c3d4, 1, &[(0, 0, b"ok")]);
    giant.extend(words(false, &[0, 0, u32::MAX, u32::MAX]));
    let error = problem(&giant);
    assert!(matches!(error.problem, Problem::TooLarge { .. }));
    assert_eq!((error.offset, error.packets), (42, 1));

    let start = [section(false), interface(false, 1, None, None)].concat();
    let with = |block: Vec<u8>| problem(&[start.clone(), block].concat()).problem;
    assert!(matches!(
        with(enhanced(false, 9, 0, b"x")),
        Problem::UnknownInterface(9)
    ));
    assert!(matches!(
        with(words(false, &[6, 8, 8])),
        Problem::Damaged(_)
    ));
    assert!(matches!(
        with(words(false, &[6, 34, 8])),
        Problem::Damaged(_)
    ));
    assert!(matches!(
        with(words(false, &[6, 1 << 30, 0])),
        Problem::TooLarge { .. }
    ));
    assert!(matches!(
        with(words(false, &[7, 1 << 30, 0])),
        Problem::Truncated { .. }
    ));
    // A packet that claims more bytes than its block has.
    let lie = block(false, 6, &words(false, &[0, 0, 0, 400, 400, 0]));
    assert!(matches!(with(lie), Problem::Damaged(_)));
    let lie = block(false, 3, &words(false, &[100]));
    assert!(matches!(with(lie), Problem::Damaged(_)));

    let missing = Reader::open("/nonexistent/x.pcap").err().unwrap();
    assert!(matches!(missing.problem, Problem::Open(_)));
    let folder = Reader::open("/").err().unwrap();
    assert!(matches!(folder.problem, Problem::Open(_)));
}

#[test]
fn an_ended_reader_stays_ended() {
    let mut bytes = pcap(false, 0xa1b2_c3d4, 1, &[(0, 0, b"ok")]);
    bytes.push(0);
    let mut reader = Reader::new("test", std::io::Cursor::new(bytes)).unwrap();
    assert!(reader.next().unwrap().is_some());
    assert!(reader.next().is_err());
    assert!(reader.next().unwrap().is_none());
    assert!(reader.record().is_none());
}

/// A stream that gives a byte at a time, as a slow pipe may.
struct Drip(std::io::Cursor<Vec<u8>>);

impl std::io::Read for Drip {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let n = to.len().min(1);
        std::io::Read::read(&mut self.0, &mut to[..n])
    }
}

#[test]
fn a_slow_pipe_gives_the_same_packets() {
    let bytes = pcap(
        true,
        0xa1b2_3c4d,
        1,
        &[(1, 2, b"first"), (3, 4, &[5; 3000])],
    );
    let slow = Reader::new("pipe", Drip(std::io::Cursor::new(bytes.clone()))).unwrap();
    assert_eq!(drain(slow).0, read(&bytes).unwrap().0);
}

#[test]
fn what_is_written_is_read_back_and_is_the_same_every_time() {
    let packets: Vec<(u64, u32, Vec<u8>)> = (0..5000_u32)
        .map(|i| {
            (
                u64::from(i) * 1_000_000_007,
                i % 3,
                vec![i as u8; (i * 37 % 1600) as usize],
            )
        })
        .chain([(5, 1, vec![7; MAX_PACKET])])
        .collect();
    for format in [Format::Pcap, Format::Pcapng] {
        let write = || {
            let sink = Sink::new(usize::MAX);
            let mut writer = Writer::new("sink", sink.clone(), format, &["lan", "wan", "dmz"]);
            for (time, port, data) in &packets {
                writer
                    .write(*time, *port, data.len() as u32 + 4, data)
                    .unwrap();
            }
            let written = writer.finish().unwrap();
            let bytes = std::mem::take(&mut *sink.bytes.lock().unwrap());
            assert_eq!(written.bytes, bytes.len() as u64);
            bytes
        };
        let bytes = write();
        assert!(bytes == write());
        let (read, error) = read(&bytes).unwrap();
        assert!(error.is_none());
        assert_eq!(read.len(), packets.len());
        for (got, (time, port, data)) in read.iter().zip(&packets) {
            assert_eq!((got.time_ns, &got.data), (*time, data));
            assert_eq!(got.original_length, data.len() as u32 + 4);
            assert_eq!(
                got.interface,
                if format == Format::Pcap { 0 } else { *port }
            );
        }
    }
}

#[test]
fn ports_are_named_interfaces() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pcapng");
    let mut writer = Writer::create(&path, &["lan", "uplink"]).unwrap();
    writer.write(1, 1, 3, b"abc").unwrap();
    writer.finish().unwrap();
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().interface, 1);
    let names: Vec<_> = reader
        .interfaces()
        .iter()
        .map(|i| i.name.as_deref().unwrap())
        .collect();
    assert_eq!(names, ["lan", "uplink"]);
}

#[test]
fn a_full_output_keeps_whole_records_and_counts_them() {
    for format in [Format::Pcap, Format::Pcapng] {
        let limit = 1_000_001;
        let sink = Sink::new(limit);
        let mut writer = Writer::new("sink", sink.clone(), format, &["lan"]);
        let mut failure = None;
        for i in 0..2000_u64 {
            if let Err(error) = writer.write(i, 0, 1000, &[0; 1000]) {
                failure = Some(error);
                break;
            }
        }
        let failure = failure.expect("two megabytes do not fit into one");
        assert!(matches!(failure.problem, WriteProblem::Write(_)));
        assert!(failure.cut);
        let again = writer.write(0, 0, 1, b"x").map(|()| writer.flush());
        assert!(matches!(
            again.unwrap().unwrap_err().problem,
            WriteProblem::Ended
        ));
        let bytes = sink.bytes.lock().unwrap();
        assert_eq!(bytes.len(), limit);
        let (read, error) = read(&bytes).unwrap();
        assert_eq!(read.len() as u64, failure.written.packets);
        assert_eq!(error.unwrap().offset, failure.written.bytes);
    }
}

#[test]
fn a_full_disk_is_reported() {
    if !std::path::Path::new("/dev/full").exists() {
        eprintln!("skipped: no /dev/full");
        return;
    }
    let mut writer = Writer::create("/dev/full", &[]).unwrap();
    writer.write(0, 0, 1, b"x").unwrap();
    let error = writer.finish().unwrap_err();
    assert_eq!(error.written.packets, 0);
    assert!(error.to_string().contains("No space left"), "{error}");
}

/// The part of the next test that runs in a process of its own: writes until the file may not grow.
fn fill(path: &std::ffi::OsStr) {
    let mut writer = Writer::create(path, &["lan"]).unwrap();
    let mut wrote = Ok(());
    for i in 0..2000_u64 {
        wrote = wrote.and_then(|()| writer.write(i, 0, 1000, &[0; 1000]));
    }
    let error = wrote.unwrap_err();
    assert!(!error.cut);
    println!(
        "intact: {} packets, {} bytes;",
        error.written.packets, error.written.bytes
    );
}

#[test]
fn a_file_that_fails_is_shortened_to_whole_records() {
    if let Some(path) = std::env::var_os("MILLRACE_TEST_LIMITED_FILE") {
        return fill(&path);
    }
    let folder = tempfile::tempdir().unwrap();
    for extension in ["pcap", "pcapng"] {
        let path = folder.path().join("limited").with_extension(extension);
        // A limit on the size of files is a disk that fills up, without a disk; 1 MB in half KiB. The
        // signal that comes with it is ignored, as EFBIG says the same.
        let output = std::process::Command::new("sh")
            .args([
                "-c",
                "trap '' XFSZ; ulimit -f 1950; exec \"$0\" --exact --nocapture \"$1\"",
            ])
            .arg(std::env::current_exe().unwrap())
            .arg("capture::a_file_that_fails_is_shortened_to_whole_records")
            .env("MILLRACE_TEST_LIMITED_FILE", &path)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let (packets, error) = drain(Reader::open(&path).unwrap());
        assert!(error.is_none(), "{}", error.unwrap());
        let bytes = path.metadata().unwrap().len();
        let intact = format!("intact: {} packets, {bytes} bytes;", packets.len());
        assert!(text.contains(&intact), "{intact} {text}");
        assert!(packets.len() > 100);
    }
}

#[test]
fn packets_that_cannot_be_written_do_not_end_the_output() {
    let sink = Sink::new(usize::MAX);
    let mut writer = Writer::new("sink", sink, Format::Pcap, &[]);
    let giant = vec![0; MAX_PACKET + 1];
    let error = writer.write(0, 0, 0, &giant).unwrap_err();
    assert!(matches!(error.problem, WriteProblem::TooLarge(_)));
    let error = writer.write(u64::MAX, 0, 0, b"x").unwrap_err();
    assert!(matches!(error.problem, WriteProblem::Time(_)));
    writer.write(3, 0, 0, b"x").unwrap();
    assert_eq!(writer.finish().unwrap().packets, 1);
    let mut writer = Writer::new("sink", Sink::new(usize::MAX), Format::Pcapng, &["lan"]);
    let error = writer.write(0, 1, 1, b"x").unwrap_err();
    assert!(matches!(error.problem, WriteProblem::Port(1)));
}

#[test]
fn captures_merge_by_time_and_stay_stable() {
    let reader = |packets: &[(u32, u32, &[u8])]| {
        let bytes = pcap(false, 0xa1b2_c3d4, 1, packets);
        Reader::new("test", std::io::Cursor::new(bytes)).unwrap()
    };
    let mut merge = Merge::new(vec![
        reader(&[(1, 0, b"a1"), (3, 0, b"a3"), (2, 0, b"a2"), (9, 0, b"a9")]),
        reader(&[]),
        reader(&[(1, 0, b"b1"), (3, 0, b"b3"), (4, 0, b"b4")]),
    ]);
    let mut got = Vec::new();
    while let Some((source, record)) = merge.next().unwrap() {
        got.push((source, String::from_utf8(record.data.to_vec()).unwrap()));
    }
    let names: Vec<_> = got.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["a1", "b1", "a3", "a2", "b3", "b4", "a9"]);
    assert!(
        got.iter()
            .all(|(source, name)| (*source == 2) == name.starts_with('b'))
    );
}
