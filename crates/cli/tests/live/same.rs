//! The same trace through every kind of port gives the same output packets.

use std::path::Path;
use std::time::Duration;

use super::instance::{Instance, command};
use super::net::{KINDS, Net};
use crate::common::{millrace, output, read};

/// Packets of the trace: fewer than the smallest ring holds, since nothing slows the sender down.
const PACKETS: &str = "200";

/// What a function makes of a trace between files: the packets' bytes.
pub fn through_files(dir: &Path, trace: &str, function: &str) -> Vec<Vec<u8>> {
    let out = dir.join("expected.pcap");
    let out = out.to_str().unwrap();
    let function = format!("nfs/{function}");
    let args = ["run", &function, "--in", trace, "--out", out];
    let (ran, text) = output(millrace().args(args));
    assert!(ran.status.success(), "{text}");
    bytes(Path::new(out))
}

pub fn bytes(path: &Path) -> Vec<Vec<u8>> {
    read(path).into_iter().map(|(_, _, bytes)| bytes).collect()
}

/// A trace in a folder.
pub fn generated(dir: &Path, packets: &str) -> String {
    let trace = dir.join("trace.pcap");
    let trace = trace.to_str().unwrap();
    let make = format!("trace gen --packets {packets} --flows 20 -o {trace}");
    let make = crate::common::words(&make);
    let (made, text) = output(millrace().args(make));
    assert!(made.status.success(), "{text}");
    trace.to_owned()
}

#[test]
fn every_kind_of_port_gives_what_files_give() {
    give_what_files_give(&KINDS);
}

/// Plays a trace through a function on these kinds of port.
pub fn give_what_files_give(kinds: &[&'static str]) {
    let dir = tempfile::tempdir().unwrap();
    let trace = generated(dir.path(), PACKETS);
    let trace = trace.as_str();
    let expected = through_files(dir.path(), trace, "firewall");
    assert!(expected.len() > 100, "{} packets", expected.len());

    for kind in kinds {
        let Some(net) = Net::new(kind) else { return };
        let function = Instance::start(&net, "n", &["nfs/firewall", "--ports", &net.words("")]);
        net.settle_silent();
        let got = dir.path().join(format!("{kind}.pcap"));
        let record = format!("nfs/nop --in afpacket:b0 --out {}", got.display());
        let record = crate::common::words(&record);
        let recorder = Instance::start(&net, "b", &record);
        let play = ["nfs/nop", "--in", trace, "--out", "afpacket:a0"];
        let (played, text) = output(&mut command(&net, "a", &play));
        assert!(played.status.success(), "{kind}: {text}");
        // What is on its way arrives within the time-outs of the rings.
        std::thread::sleep(Duration::from_millis(500));
        // The recorder first: the interfaces of a tap go with the function.
        let (account, status) = recorder.stop();
        assert_eq!(status, 0, "{account:#}");
        let (account, status) = function.stop();
        assert_eq!(status, 0, "{account:#}");
        assert_eq!(bytes(&got), expected, "{kind}");
    }
}
