//! Guests that send packets of their own.

use crate::common;

use std::path::Path;
use std::process::Command;

use common::{Caught, Packets, capture};
use millrace_guest::{Over, describe};
use millrace_traffic::capture::Reader;

const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/libpcap.so.0.8";
const PACKETS: usize = 100;

#[test]
fn what_is_injected_leaves_at_the_named_port() {
    if !Path::new(LIBRARY).exists() {
        println!("skipped: libpcap is not installed (scripts/setup.sh test)");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("sender");
    let room = env!("CARGO_MANIFEST_DIR");
    let status = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(format!("{room}/preload"))
        .arg("-o")
        .arg(&program)
        .arg(format!("{room}/tests/programs/sender.c"))
        .arg(LIBRARY)
        .status()
        .unwrap();
    assert!(status.success());
    let mut expected = Vec::new();
    let mut reader = Reader::open(capture()).unwrap();
    while expected.len() < PACKETS {
        let record = reader.next().unwrap().unwrap();
        expected.push(record.data[..record.data.len().min(60)].to_vec());
    }
    expected.push(vec![1, 2, 3, 4]);
    for (device, port) in [("@", 1), ("@0", 0)] {
        let word = format!("guest:{} {device} {PACKETS}", program.display());
        let mut caught = Caught::start(dir.path(), &word).unwrap();
        Packets::read().play(&mut [&mut caught.guest]);
        let sent = std::mem::take(&mut caught.guest.sent);
        assert!(sent.iter().all(|s| s.port == port && s.after), "{device}");
        let sent: Vec<Vec<u8>> = sent.into_iter().map(|s| s.bytes).collect();
        assert!(sent == expected, "{device}: {} packets", sent.len());
        let (over, printed) = caught.finish();
        assert!(matches!(over, Over::Exit(0)), "{}", describe(&over));
        assert_eq!(
            printed,
            format!(
                "sendpacket 0\nlong -1: a packet of more than 65535 bytes cannot be sent\nended -2, received {PACKETS}\n"
            )
        );
    }
}
