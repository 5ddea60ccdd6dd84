//! From source to running: the memory that a function takes is the one that `check` predicts. How long it takes, the
//! benchmark measures (docs/measurements/bench.md).

use std::sync::atomic::{AtomicUsize, Ordering};

use millrace_tests::command::{json, millrace, nfs};

#[test]
fn an_nf_takes_the_memory_that_check_predicts() {
    // What a debug build takes by itself depends on how it was compiled: that is what one without state takes more.
    let own = match cfg!(debug_assertions) {
        true => {
            let (resident, predicted) = memory("nop");
            resident - predicted
        }
        false => 0.0,
    };
    let (nfs, next) = (nfs(), AtomicUsize::new(0));
    let work = || {
        while let Some(nf) = nfs.get(next.fetch_add(1, Ordering::Relaxed)) {
            takes_what_check_predicts(nf, own);
        }
    };
    // Each function is compiled: all processors have something to do.
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
}

/// What a run takes, and what is predicted of it: bytes.
fn memory(nf: &str) -> (f64, f64) {
    let run = || {
        let mut command = millrace();
        command.args(["run", nf, "--json"]);
        command.args(["--in", "captures/talk.pcap", "--out", "/dev/null"]);
        let (account, code) = json(&mut command);
        assert_eq!(code, 0, "{nf}: {account}");
        account
    };
    // The first run may prove and compile the function: pages of the code that does, and of the heap that it
    // leaves in pieces, stay resident. The prediction is of a run that finds its module (`dataplane::memory::BASE`).
    run();
    let account = run();
    let of = |name: &str| account["memory"][name].as_f64().unwrap();
    (of("resident"), of("predicted"))
}

fn takes_what_check_predicts(nf: &str, own: f64) {
    let (resident, predicted) = memory(nf);
    let (document, _) = json(millrace().args(["check", nf, "--json"]));
    assert_eq!(
        document["memory"]["predicted"].as_f64(),
        Some(predicted),
        "{nf}"
    );
    assert!(
        (0.9 * predicted..=1.1 * predicted).contains(&(resident - own)),
        "{nf}: {resident} bytes resident, {own} of them the build's own, {predicted} predicted"
    );
}
