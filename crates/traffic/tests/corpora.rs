//! Every public capture: read to the last packet, rewritten in both formats, read back identical.

use crate::common;

use std::process::Command;

use common::{Owned, corpora, drain};
use millrace_traffic::capture::{Reader, Writer};

#[test]
fn every_capture_is_read_whole_and_survives_both_formats() {
    let Some(folder) = corpora() else { return };
    let out = tempfile::tempdir().unwrap();
    let index = std::fs::read_to_string(folder.join("index.csv")).unwrap();
    let mut captures = 0;
    for line in index.lines().skip(1) {
        let fields: Vec<_> = line.split(',').collect();
        let (file, packets): (_, usize) = (fields[0], fields[4].parse().unwrap());
        let (read, error) = drain(Reader::open(folder.join(file)).unwrap());
        assert!(error.is_none(), "{file}: {}", error.unwrap());
        assert_eq!(read.len(), packets, "{file}");
        for extension in ["pcap", "pcapng"] {
            let path = out.path().join("again").with_extension(extension);
            let mut writer = Writer::create(&path, &["lan"]).unwrap();
            for packet in &read {
                writer
                    .write(packet.time_ns, 0, packet.original_length, &packet.data)
                    .unwrap();
            }
            let written = writer.finish().unwrap();
            assert_eq!(written.packets, packets as u64);
            assert_eq!(written.bytes, path.metadata().unwrap().len());
            let (again, error) = drain(Reader::open(&path).unwrap());
            assert!(error.is_none());
            let same = |a: &Owned, b: &Owned| {
                a.time_ns == b.time_ns
                    && a.data == b.data
                    // A snapped length below the captured one is a lie that is not repeated.
                    && a.original_length.max(a.data.len() as u32) == b.original_length
            };
            assert!(
                read.iter().zip(&again).all(|(a, b)| same(a, b)),
                "{file} as {extension}"
            );
            assert_eq!(again.len(), packets);
            tools_agree(&path, packets);
        }
        captures += 1;
    }
    assert!(captures > 0);
}

/// capinfos counts what was written as we do, where it is installed.
fn tools_agree(path: &std::path::Path, packets: usize) {
    let Ok(output) = Command::new("capinfos")
        .args(["-c", "-M", "-T", "-r"])
        .arg(path)
        .output()
    else {
        eprintln!("skipped: capinfos is not installed");
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let count: usize = text.trim().rsplit('\t').next().unwrap().parse().unwrap();
    assert_eq!(count, packets);
}
