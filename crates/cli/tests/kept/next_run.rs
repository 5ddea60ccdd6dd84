//! State in a folder, from which the next run goes on.

use millrace_turns::of_today;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::common::live::{self, Live, header};
use crate::common::{self, Packet, SPLIT, capture, read, refused, root, udp};

use super::{PUBLIC, SERVER, bytes, halves, lan, opened, timed, whole};

/// `run` over this capture with the state in `folder`.
fn run(
    folder: &Path,
    elements: &[&str],
    (input, output): (&Path, &Path),
    words: &[&str],
) -> Command {
    let mut command = common::millrace();
    command
        .arg("run")
        .args(elements)
        .args(["--control", "none"]);
    command.arg("--in").arg(input).arg("--out").arg(output);
    command
        .args(["--split", "lan=10.0.0.0/8"])
        .arg("--state")
        .arg(folder);
    command.args(words);
    command
}

/// Two runs over the halves of these packets, with the state kept between them; what the second put out.
fn twice(
    folder: &Path,
    elements: &[&str],
    (first, second): (&[Packet], &[Packet]),
) -> Vec<(u32, u64, Vec<u8>)> {
    let state = folder.join("state");
    let mut out = Vec::new();
    for (number, half) in [first, second].iter().enumerate() {
        let input = folder.join(format!("half{number}.pcap"));
        let output = folder.join(format!("half{number}-out.pcap"));
        capture(&input, half);
        common::success(&mut run(&state, elements, (&input, &output), &[]));
        out.extend(read(&output));
    }
    out
}

#[test]
fn a_nat_goes_on_where_the_last_run_was() {
    let (first, second) = halves();
    let all = [first.clone(), second.clone()].concat();
    // One function over captures, and a chain.
    for elements in [&["nat"][..], &["nat", "nop"]] {
        let dir = tempfile::tempdir().unwrap();
        let expected = whole(dir.path(), elements, &all);
        let out = twice(dir.path(), elements, (&first, &second));
        assert!(out == expected, "{elements:?}");
    }
}

/// Which numbers are leased depends on keys that are drawn: they are those of the first run also in the second, so that
/// the answer to each connection comes to the worker that has it.
#[test]
fn several_workers_go_on_where_those_of_the_last_run_were() {
    for words in [
        &["--cores", "3"][..],
        &["--cores", "2", "--strategy", "lock"],
    ] {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        let state = file("state");
        let go = |name: &str, packets: &[Packet]| {
            let (input, output) = (
                file(&format!("{name}.pcap")),
                file(&format!("{name}-out.pcap")),
            );
            capture(&input, packets);
            let (account, status) =
                common::json(&mut run(&state, &["nat"], (&input, &output), words));
            assert_eq!(
                (status, &account["dropped"]),
                (0, &0.into()),
                "{words:?}: {account}"
            );
            let out = read(&output).into_iter().map(|(_, _, bytes)| bytes);
            out.collect::<Vec<_>>()
        };
        let opening = timed(opened(0, 300), 0);
        let translated = go("first", &opening);
        let public = |packet: &[u8]| u16::from_be_bytes([packet[34], packet[35]]);
        let answers = translated.iter().map(|p| udp(SERVER, (PUBLIC, public(p))));
        let answers: Vec<_> = answers.collect();
        // The same connections, answered; and then others, whose numbers are leased to nobody yet.
        let both = timed([answers, opened(0, 300), opened(300, 350)].concat(), 300);
        let out = go("second", &both);
        for (n, answer) in out[..300].iter().enumerate() {
            let to = lan(n as u32);
            assert_eq!(
                (&answer[30..34], &answer[36..38]),
                (&to.0[..], &to.1.to_be_bytes()[..]),
                "{words:?}"
            );
        }
        assert!(out[300..600] == translated, "{words:?}: other public ports");
        let all: std::collections::BTreeSet<_> = out[300..].iter().map(|p| public(p)).collect();
        assert_eq!(
            all.len(),
            350,
            "{words:?}: two connections share a public port"
        );
    }
}

/// From several workers with parts of their own to one and to several that share, and on between those: every connection goes
/// on with the public port that it had, and new ones get others.
#[test]
fn state_goes_on_on_another_number_of_cores() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let state = file("state");
    let go = |name: &str, packets: &[Packet], words: &[&str]| {
        let (input, output) = (
            file(&format!("{name}.pcap")),
            file(&format!("{name}-out.pcap")),
        );
        capture(&input, packets);
        let mut command = run(&state, &["nat"], (&input, &output), words);
        let account = common::success(&mut command);
        assert_eq!(account["dropped"], 0, "{words:?}: {account}");
        let out = read(&output).into_iter().map(|(_, _, bytes)| bytes);
        out.collect::<Vec<_>>()
    };
    let public = |packet: &[u8]| u16::from_be_bytes([packet[34], packet[35]]);
    let mut ports = Vec::new();
    let mut time = 0;
    for (number, words) in [
        &["--cores", "3"][..],
        &[],
        &["--cores", "2", "--strategy", "lock"],
        &["--cores", "3", "--strategy", "lock"],
        &[],
    ]
    .iter()
    .enumerate()
    {
        // Those that are there are answered and sent from again; others are opened.
        let known = ports.len();
        let answers = ports.iter().map(|port| udp(SERVER, (PUBLIC, *port)));
        let new = opened(known as u32, known as u32 + 10 * (10 - number as u32));
        let packets = [answers.collect(), opened(0, known as u32), new].concat();
        let out = go(&format!("run{number}"), &timed(packets, time), words);
        time += out.len() as u64;
        for (n, answer) in out[..known].iter().enumerate() {
            let to = lan(n as u32);
            assert_eq!(
                (&answer[30..34], &answer[36..38]),
                (&to.0[..], &to.1.to_be_bytes()[..]),
                "{words:?}"
            );
        }
        let now: Vec<u16> = out[known..].iter().map(|p| public(p)).collect();
        assert!(now.starts_with(&ports), "{words:?}: other public ports");
        let each: std::collections::BTreeSet<_> = now.iter().collect();
        assert_eq!(each.len(), now.len(), "{words:?}: a public port of two");
        ports = now;
    }
    // Which of several workers with parts a connection would belong to is not known: refused before a packet is read.
    let (input, output) = (file("run0.pcap"), file("refused-out.pcap"));
    let before = std::fs::read(state.join("state")).unwrap();
    let mut command = run(&state, &["nat"], (&input, &output), &["--cores", "3"]);
    let said = refused(&mut command, 1);
    assert!(said.contains("1 cores before, 3 now"), "{said}");
    assert!(std::fs::read(state.join("state")).unwrap() == before);
}

#[test]
fn a_killed_run_goes_on_where_it_was_last_saved() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = halves();
    let all = [first.clone(), second.clone()].concat();
    let expected = whole(dir.path(), &["nat", "nop"], &all);
    let state = dir.path().join("kept");
    let words = |out: &str| {
        let words = format!("--in - --out {out} --split lan=10.0.0.0/8 --state");
        let words = common::words(&words);
        let more = [state.to_str().unwrap(), "--state-every", "0.05"];
        words
            .iter()
            .chain(&more)
            .map(|w| (*w).to_owned())
            .collect::<Vec<_>>()
    };
    let lost = dir.path().join("lost.pcap");
    let own = words(lost.to_str().unwrap());
    let own: Vec<_> = own.iter().map(String::as_str).collect();
    let mut live = Live::of(dir.path(), &["nat", "nop"], &own);
    let mut pipe = live.child.stdin.take().unwrap();
    pipe.write_all(&header()).unwrap();
    pipe.write_all(&bytes(&first)).unwrap();
    live.until(|stats| stats["read"].as_u64() == Some(first.len() as u64));
    // Saved twice since then: the second of these begins after all packets were through.
    let saved = || {
        std::fs::metadata(state.join("state"))
            .and_then(|m| m.modified())
            .ok()
    };
    for _ in 0..2 {
        let (before, began) = (saved(), std::time::Instant::now());
        while saved() == before {
            assert!(began.elapsed() < live::LONG, "nothing is saved");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
    // No other run may have the folder meanwhile.
    let input = dir.path().join("second.pcap");
    capture(&input, &second);
    let out = dir.path().join("second-out.pcap");
    let said = refused(&mut run(&state, &["nat", "nop"], (&input, &out), &[]), 2);
    assert!(said.contains("another run keeps its state there"), "{said}");
    live.child.kill().unwrap();
    live.child.wait().unwrap();
    common::success(&mut run(&state, &["nat", "nop"], (&input, &out), &[]));
    let rest = &expected[expected.len() - second.len()..];
    assert!(read(&out) == rest, "a connection was lost");
}

/// The service's end: SIGTERM comes while packets do. Those that were read have been through, and the next run goes on
/// with the first that was not.
#[test]
fn a_run_that_is_told_to_end_under_traffic_leaves_all_of_its_state() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = halves();
    let all = [first.clone(), second].concat();
    let elements = ["nat", "nop"];
    let expected = whole(dir.path(), &elements, &all);
    let state = dir.path().join("kept");
    let out = dir.path().join("first-out.pcap");
    let words = ["--in", "-", "--out", out.to_str().unwrap()];
    let words = [&words[..], &["--split", "lan=10.0.0.0/8", "--state"]].concat();
    let words = [&words[..], &[state.to_str().unwrap()]].concat();
    let mut live = Live::of(dir.path(), &elements, &words);
    let mut pipe = live.child.stdin.take().unwrap();
    pipe.write_all(&header()).unwrap();
    let packets = all.clone();
    // Goes on after the signal, until nobody reads or all packets are written.
    let traffic = std::thread::spawn(move || {
        for packet in packets.chunks(3) {
            if pipe.write_all(&bytes(packet)).is_err() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        // The pipe stays open: it is the signal that ends the run.
        std::thread::sleep(live::LONG);
    });
    live.until(|stats| stats["read"].as_u64() > Some(first.len() as u64 / 2));
    let pid = live.child.id().to_string();
    let told = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(told.unwrap().success());
    let (account, status) = live.end();
    assert_eq!(status, 0, "{account}");
    let read_ = account["account"]["read"]
        .as_u64()
        .or(account["read"].as_u64());
    let had = read_.expect("an account") as usize;
    assert!(had > first.len() / 2 && had < all.len(), "{had} packets");
    drop(traffic);
    let (input, rest) = (
        dir.path().join("rest.pcap"),
        dir.path().join("rest-out.pcap"),
    );
    capture(&input, &all[had..]);
    common::success(&mut run(&state, &elements, (&input, &rest), &[]));
    assert!(
        [read(&out), read(&rest)].concat() == expected,
        "a connection was lost"
    );
}

#[test]
fn a_state_that_does_not_fit_is_refused_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = halves();
    let state = dir.path().join("kept");
    let (input, output) = (dir.path().join("in.pcap"), dir.path().join("out.pcap"));
    capture(&input, &first);
    let paths = (input.as_path(), output.as_path());
    assert_eq!(common::json(&mut run(&state, &["nat"], paths, &[])).1, 0);
    let file = state.join("state");
    let good = std::fs::read(&file).unwrap();
    let cases: [(&[&str], &[&str], &[&str]); 4] = [
        (
            &["firewall"],
            &[],
            &["no element `nat`", "`firewall` is new"],
        ),
        (
            &["nat"],
            &["--capacity", "flows=1000"],
            &["flows: 1000 entries fit, 64512 did before"],
        ),
        (
            &["nat"],
            &["--cores", "2"],
            &[
                "1 cores before, 2 now: ",
                "leases: divided on the workers now",
                "--strategy lock",
            ],
        ),
        (&["nat"], &["--seed", "3"], &["seed 0"]),
    ];
    for (elements, words, parts) in cases {
        let said = refused(&mut run(&state, elements, paths, words), 1);
        for part in parts {
            assert!(said.contains(part), "{words:?}: {said}");
        }
        assert!(std::fs::read(&file).unwrap() == good, "{words:?}");
    }
    let (both, said) = common::output(&mut run(&state, &["nat"], paths, &["--pin", "x"]));
    assert!(
        both.status.code() == Some(2) && said.contains("'--pin <FOLDER>'"),
        "{said}"
    );
    // Half written, changed, of another version, no state at all.
    let mut changed = good.clone();
    *changed.last_mut().unwrap() ^= 1;
    let mut version = good.clone();
    version[8] = 9;
    for (bytes, part) in [
        (&good[..good.len() / 2], "not written to its end"),
        (&changed, "checksum"),
        (&version, "version 9"),
        (b"", "no state of a run"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let said = refused(&mut run(&state, &["nat"], paths, &[]), 1);
        assert!(said.contains(part) && said.contains("--anew"), "{said}");
        assert!(std::fs::read(&file).unwrap() == bytes);
    }
    // What a killed run has left beside is not looked at, and goes.
    std::fs::write(&file, &good).unwrap();
    std::fs::write(state.join("state.new"), b"half").unwrap();
    capture(&input, &second);
    let account = common::success(&mut run(&state, &["nat"], paths, &[]));
    assert_eq!(account["dropped"], 0, "{account}");
    assert!(!state.join("state.new").exists());
    // Anew, answers belong to nobody.
    std::fs::write(&file, b"no state").unwrap();
    let (account, status) = common::json(&mut run(&state, &["nat"], paths, &["--anew"]));
    assert!(
        status == 0 && account["dropped"].as_u64() > Some(0),
        "{account}"
    );
    assert!(std::fs::read(&file).unwrap().starts_with(b"millrace"));
}

/// A disk that is full: what was saved before is there still, and the run says so.
#[test]
fn what_cannot_be_written_leaves_what_was_saved() {
    let dir = tempfile::tempdir().unwrap();
    let (first, _) = halves();
    let state = dir.path().join("kept");
    let (input, output) = (dir.path().join("in.pcap"), dir.path().join("out.pcap"));
    capture(&input, &first);
    let paths = (input.as_path(), output.as_path());
    assert_eq!(common::json(&mut run(&state, &["nat"], paths, &[])).1, 0);
    let good = std::fs::read(state.join("state")).unwrap();
    // No file may grow beyond a block, whoever runs this; that the signal is ignored is inherited.
    let mut limited = Command::new("bash");
    let words = run(&state, &["nat"], (&input, Path::new("null:")), &["--json"]);
    limited.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""]);
    limited.arg(words.get_program()).args(words.get_args());
    limited.envs(words.get_envs().filter_map(|(k, v)| Some((k, v?))));
    limited.current_dir(root());
    let (output, said) = common::output(&mut limited);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("still there; make room"), "{said}");
    assert!(std::fs::read(state.join("state")).unwrap() == good);
}

/// Each function of this repository that packets change, and each program of its tests: the second half of a capture
/// gives the same packets, records and verdicts as without an interruption.
#[test]
fn every_function_goes_on_where_the_last_run_was() {
    let talk: Vec<Packet> = (read(&root().join("captures/talk.pcap")).into_iter())
        .map(|(_, time, bytes)| (time, bytes))
        .collect();
    let (first, second) = talk.split_at(talk.len() / 2);
    let mut functions = Vec::new();
    for entry in std::fs::read_dir(root().join("nfs")).unwrap().flatten() {
        if entry.path().is_dir() {
            functions.push(entry.path());
        }
    }
    for entry in std::fs::read_dir(root().join("tests/programs"))
        .unwrap()
        .flatten()
    {
        if entry.path().extension().is_some_and(|e| e == "c") {
            functions.push(entry.path());
        }
    }
    functions.sort();
    let mut compared = 0;
    let all = functions.len();
    let functions = of_today("functions that go on in the next run", functions, 5);
    for function in &functions {
        let dir = tempfile::tempdir().unwrap();
        let name = function.display().to_string();
        let file = |name: &str| dir.path().join(name);
        let go = |state: &str, packets: &[Packet], run: &str| {
            let input = file(&format!("{run}.pcap"));
            capture(&input, packets);
            let mut command = common::millrace();
            command.args(["run", &name, "--control", "none", "--split", SPLIT, "--in"]);
            command
                .arg(&input)
                .arg("--out")
                .arg(file(&format!("{run}-out.pcap")));
            command.arg("--records").arg(file(&format!("{run}.json")));
            // Records are handed over between bursts: where these end is not state.
            command.args(["--burst", "1", "--state"]).arg(file(state));
            let (output, said) = common::output(&mut command);
            (output.status.code(), said)
        };
        let (status, said) = go("whole", &talk, "whole");
        if status != Some(0) {
            // What cannot be run like this, and what cannot be kept, says so.
            assert!(said.contains("help: "), "{name}: {said}");
            println!(
                "skipped: {name}: {}",
                said.lines().next().unwrap_or_default()
            );
            continue;
        }
        for (half, run) in [(first, "first"), (second, "second")] {
            let (status, said) = go("halves", half, run);
            assert_eq!(status, Some(0), "{name}, {run}: {said}");
        }
        let out = |run: &str| read(&file(&format!("{run}-out.pcap")));
        let both = [out("first"), out("second")].concat();
        assert!(
            both == out("whole"),
            "{name}: {} and {} packets",
            both.len(),
            out("whole").len()
        );
        let records = |run: &str| std::fs::read_to_string(file(&format!("{run}.json"))).unwrap();
        let both = records("first") + &records("second");
        assert_eq!(both, records("whole"), "{name}");
        compared += 1;
    }
    assert!(
        compared * all > 25 * functions.len(),
        "{compared} of {}",
        functions.len()
    );
}

/// Entries of a file are set again in each run, and the router's `ON_START` gives an interface the hardware address that they
/// leave open: neighbours that know it from the run before go on being heard.
#[test]
fn what_a_start_fills_into_named_entries_stays_in_the_next_run() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let question = [
        &[0xff; 6][..],
        &[2, 0, 0, 0, 0, 9, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
        &[
            2, 0, 0, 0, 0, 9, 10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 10, 0, 0, 254,
        ],
    ];
    capture(&file("in.pcap"), &[(1_000_000_000, question.concat())]);
    let entries = r#"[{"key": 0, "value": {"address": "10.0.0.254", "bits": 24}}]"#;
    std::fs::write(file("interfaces.json"), entries).unwrap();
    for (workers, more) in [("1", &[][..]), ("2", &["--strategy", "lock"])] {
        let state = file(workers);
        let mut answers = Vec::new();
        for _ in 0..3 {
            let mut command = common::millrace();
            command.args(["run", "router", "--control", "none", "--cores", workers]);
            command.args(more).arg("--state").arg(&state);
            let map = format!("interfaces={}", file("interfaces.json").display());
            command.args(["--map", &map]);
            command.arg("--in").arg(file("in.pcap"));
            command.arg("--out").arg(file("out.pcap"));
            common::success(&mut command);
            let out = read(&file("out.pcap"));
            answers.push(out[0].2.get(6..12).unwrap().to_vec());
        }
        assert_eq!(answers, [[2, b'M', b'R', 0, 0, 0]; 3], "{workers} workers");
    }
}
