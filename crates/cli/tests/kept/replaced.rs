//! State that a reload carries over.

use millrace_turns::of_today;
use std::io::Write;

use crate::common::live::{Live, header};
use crate::common::{self, Packet, SPLIT, capture, read, refused, root};

use super::{bytes, halves, whole};

#[test]
fn a_nat_that_is_replaced_carries_every_connection_on() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = halves();
    let all = [first.clone(), second.clone()].concat();
    let expected = whole(dir.path(), &["nat", "nop"], &all);
    assert_eq!(expected.len(), all.len(), "nothing is dropped");

    let out = dir.path().join("out.pcap");
    let words = format!("--in - --out {} --split lan=10.0.0.0/8", out.display());
    let words = common::words(&words);
    let mut live = Live::of(dir.path(), &["nat", "nop"], &words);
    let mut pipe = live.child.stdin.take().unwrap();
    pipe.write_all(&header()).unwrap();
    let mut sent = 0;
    for (number, piece) in [&first[..], &second[..200], &second[200..]]
        .iter()
        .enumerate()
    {
        if number > 0 {
            // Something that cannot be kept is named, and nothing changes.
            let said = refused(
                &mut live.command(&["ctl", "chain", "replace", "nat", "nop"]),
                1,
            );
            for part in ["state cannot be kept", "flows: ", "leases: ", "--anew"] {
                assert!(said.contains(part), "{part}: {said}");
            }
            let done = live.ask(&["ctl", "chain", "replace", "nat", "nat"]);
            let kept = done["kept"].as_array().unwrap();
            let of = |name: &str| {
                let object = kept.iter().find(|k| k["object"] == name);
                object.unwrap_or_else(|| panic!("{name}: {done}"))["entries"].as_u64()
            };
            assert_eq!(
                (of("flows"), of("leases")),
                (Some(300), Some(300)),
                "{done}"
            );
        }
        pipe.write_all(&bytes(piece)).unwrap();
        sent += piece.len() as u64;
        live.until(|stats| stats["read"].as_u64() == Some(sent));
    }
    // Leases can be looked at like entries.
    let (output, said) = common::output(&mut live.command(&["map", "export", "nat:leases"]));
    assert!(output.status.success(), "{said}");
    let leases: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(leases.len(), 350);
    assert_eq!(leases[0]["key"], 1024, "{}", leases[0]);
    drop(pipe);
    let (account, status) = live.end();
    assert_eq!((status, &account["dropped"]), (0, &0.into()), "{account}");
    assert!(
        read(&out) == expected,
        "other packets than without a replacement"
    );
}

#[test]
fn a_replacement_keeps_all_of_the_state_or_none() {
    let dir = tempfile::tempdir().unwrap();
    // The same translation, whose leases have another first number.
    let text = std::fs::read_to_string(root().join("nfs/nat/nat.c")).unwrap();
    let other = dir.path().join("other.c");
    std::fs::write(
        &other,
        text.replace("#define FIRST_PORT 1024", "#define FIRST_PORT 2048"),
    )
    .unwrap();
    let other = other.to_str().unwrap();
    let words = ["--in", "-", "--split", "lan=10.0.0.0/8"];
    let mut live = Live::of(dir.path(), &["nat", "nop"], &words);
    let mut pipe = live.child.stdin.take().unwrap();
    let (first, _) = halves();
    pipe.write_all(&header()).unwrap();
    pipe.write_all(&bytes(&first)).unwrap();
    live.until(|stats| stats["read"].as_u64() == Some(first.len() as u64));
    let said = refused(
        &mut live.command(&["ctl", "chain", "replace", "nat", other]),
        1,
    );
    assert!(
        said.contains("leases: ") && said.contains("flows: "),
        "{said}"
    );
    let done = live.ask(&["ctl", "chain", "replace", "nat", other, "--anew"]);
    assert_eq!(done["kept"], serde_json::json!([]), "{done}");
    let entries = live.ask(&["map", "show", "nat:flows"])["entries"].as_u64();
    assert_eq!(entries, Some(0));
    drop(pipe);
    assert_eq!(live.end().1, 0);
}

/// Each function of this repository is replaced by itself in the middle of a capture, and what comes out is what comes out without
/// that; one whose state cannot be kept would be refused, and none is.
#[test]
fn every_function_is_replaced_in_mid_trace() {
    let talk: Vec<Packet> = (read(&root().join("captures/talk.pcap")).into_iter())
        .map(|(_, time, bytes)| (time, bytes))
        .collect();
    let (first, second) = talk.split_at(talk.len() / 2);
    let piped = |packets: &[Packet]| {
        let mut all = Vec::new();
        for (time, packet) in packets {
            let length = packet.len() as u32;
            let seconds = (time / 1_000_000_000) as u32;
            for word in [seconds, (time % 1_000_000_000) as u32, length, length] {
                all.extend(word.to_le_bytes());
            }
            all.extend(packet);
        }
        all
    };
    let mut functions: Vec<_> = std::fs::read_dir(root().join("nfs"))
        .unwrap()
        .flatten()
        .collect();
    // A row takes functions of two ports; webfront has five.
    functions.retain(|f| f.path().is_dir() && f.file_name() != "webfront");
    functions.sort_by_key(|f| f.file_name());
    assert!(functions.len() >= 17);
    for function in of_today("functions replaced in mid trace", functions, 3) {
        let name = function.file_name().into_string().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        capture(&path("in.pcap"), &talk);
        let whole = path("whole.pcap");
        let mut command = common::millrace();
        command.args(common::words(&format!(
            "run {name} nop --control none --split {SPLIT} --in"
        )));
        command.arg(path("in.pcap")).arg("--out").arg(&whole);
        common::success(&mut command);

        let out = path("out.pcap");
        let words = format!("--in - --out {} --split {SPLIT}", out.display());
        let words = common::words(&words);
        let mut live = Live::of(dir.path(), &[&name, "nop"], &words);
        let mut pipe = live.child.stdin.take().unwrap();
        pipe.write_all(&header()).unwrap();
        pipe.write_all(&piped(first)).unwrap();
        live.until(|stats| stats["read"].as_u64() == Some(first.len() as u64));
        let done = live.ask(&["ctl", "chain", "replace", &name, &name]);
        assert!(done["kept"].is_array(), "{name}: {done}");
        pipe.write_all(&piped(second)).unwrap();
        drop(pipe);
        assert_eq!(live.end().1, 0, "{name}");
        assert!(
            read(&out) == read(&whole),
            "{name}: other packets than without a replacement"
        );
    }
}
