//! Replicas between live ports whose devices number nothing: a core ahead of the workers does.

use std::time::Duration;

use super::in_kernel::{bytes, knocks};
use super::instance::{Instance, command, count};
use super::net::Net;
use crate::common::{json, millrace, output};

/// What one core makes of packets in their order, replicas make of them behind a core that numbers them; which one sends a packet
/// first, nobody says.
#[test]
fn a_core_ahead_of_replicas_numbers_what_ports_bring() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (trace, expected) = (path("trace.pcap"), path("expected.pcap"));
    knocks(&trace);
    let trace = trace.to_str().unwrap();
    let args = ["run", "nfs/portknock", "--in", trace, "--out"];
    let (account, status) = json(millrace().args(args).arg(&expected));
    assert_eq!(status, 0, "{account:#}");
    let sorted = |name: &std::path::Path| {
        let mut all = bytes(name);
        all.sort();
        all
    };
    for (kind, word) in [
        ("afpacket", "afpacket:a1"),
        ("afxdp", "afxdp:a1?mode=generic"),
    ] {
        let Some(net) = Net::new(kind) else { return };
        let words = format!("nfs/portknock --ports {word} --strategy replicate --cores 3");
        let words = crate::common::words(&words);
        let function = Instance::start(&net, "n", &words);
        let got = path(&format!("{kind}.pcap"));
        let record = format!("nfs/nop --in afpacket:a0 --out {}", got.display());
        let record = crate::common::words(&record);
        let recorder = Instance::start(&net, "a", &record);
        let play = ["nfs/nop", "--in", trace, "--out", "afpacket:a0"];
        let (played, text) = output(&mut command(&net, "a", &play));
        assert!(played.status.success(), "{kind}: {text}");
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(recorder.stop().1, 0);
        let (inside, status) = function.stop();
        assert_eq!(
            (status, &inside["errors"]),
            (0, &serde_json::json!([])),
            "{inside:#}"
        );
        for field in ["read", "forwarded", "dropped", "passed", "aborted"] {
            assert_eq!(
                count(&inside, field),
                count(&account, field),
                "{kind}: {field}"
            );
        }
        assert_eq!(sorted(&got), sorted(&expected), "{kind}");
        // All replicas have seen each packet, and all of them had packets.
        let workers = inside["workers"].as_array().unwrap();
        for worker in workers {
            assert_eq!(worker["behind"], 0, "{inside:#}");
            assert!(worker["packets"].as_u64() > Some(10), "{inside:#}");
        }
        assert!(
            count(&inside, "replayed") >= 2 * count(&inside, "read"),
            "{inside:#}"
        );
    }
}
