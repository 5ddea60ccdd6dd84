//! From source to running, and how much memory it takes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use millrace_tests::command::{json, millrace, nfs};

/// The bars of docs/measurements/bench.md, with room for a loaded machine: the benchmark holds the tight ones.
const COLD: Duration = Duration::from_secs(6);
const WARM: Duration = Duration::from_millis(250);

#[test]
fn an_nf_starts_cold_and_warm_in_time_and_takes_the_memory_that_check_predicts() {
    let cache = tempfile::tempdir().unwrap();
    for nf in nfs() {
        let run = || {
            let mut command = millrace();
            command
                .env("MILLRACE_CACHE", cache.path().join("millrace"))
                .args(["run", &nf, "--json"]);
            command.args(["--in", "captures/talk.pcap", "--out", "/dev/null"]);
            let start = Instant::now();
            let (account, code) = json(&mut command);
            assert_eq!(code, 0, "{nf}: {account}");
            (start.elapsed(), account)
        };
        let (cold, _) = run();
        assert!(
            cold < COLD,
            "{nf}: {cold:?} from source to the end of a small capture"
        );
        let (warm, account) = run();
        assert!(warm < WARM, "{nf}: {warm:?} with a warm cache");

        let predicted = account["memory"]["predicted"].as_f64().unwrap();
        let resident = account["memory"]["resident"].as_f64().unwrap();
        let (document, _) = json(millrace().args(["check", &nf, "--json"]));
        assert_eq!(
            document["memory"]["predicted"].as_f64(),
            Some(predicted),
            "{nf}"
        );
        let ratio = resident / predicted;
        assert!(
            (0.9..=1.1).contains(&ratio),
            "{nf}: {resident} bytes resident, {predicted} predicted"
        );
    }
}
