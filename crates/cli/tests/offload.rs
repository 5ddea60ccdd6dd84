//! `run --offload` and `chain --target`: a switch in front of a chain.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use millrace_switch::ovs::Bridge;
use millrace_synth::field::{Base, Var, bit, ip};
use millrace_synth::reference::{Became, Reference};
use millrace_synth::{rows, witness};
use serde_json::Value;

use crate::common::live::{header, record};
use crate::common::{millrace, read, refused, root, success};

#[path = "../../switch/tests/it/vswitch.rs"]
mod vswitch;

use vswitch::VSwitch;

const CHAIN: &str = "chains/acl/acl-251.click";

#[test]
fn rules_of_a_chain_with_their_share_of_traffic() {
    let words = format!("chain {CHAIN} --target openflow --in captures/talk.pcap");
    let words = crate::common::words(&words);
    let document = success(millrace().args(words));
    let rows: u64 = document["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["rows"].as_u64().unwrap())
        .sum();
    assert_eq!(document["rows"].as_array().unwrap().len() as u64, rows);
    let traffic = |name: &str| document["traffic"][name].as_u64().unwrap();
    assert_eq!(traffic("packets"), 1619);
    assert_eq!(
        traffic("packets"),
        traffic("dropped") + traffic("forwarded") + traffic("to_servers")
    );
}

#[test]
fn rules_that_a_switch_cannot_have_are_refused() {
    let fails = |words: &[&str], status: i32, what: &str| {
        let mut all = vec!["chain", CHAIN, "--target", "openflow"];
        all.extend(words);
        let said = refused(millrace().args(all), status);
        assert!(said.contains(what), "{said}");
    };
    fails(
        &["--table-rows", "100"],
        1,
        "the smallest that would do has 132 rows",
    );
    fails(&["--server", "11"], 1, "a server needs 2 ports");
    fails(&["--server", "1,12"], 1, "port 1 is named twice");
    fails(&["--server", "11,12*0"], 1, "weight 0");
    fails(&["--server", "a"], 2, "is no server");
    fails(&["--switch-ports", "0,1"], 1, "0 is no port");
    fails(
        &[
            "--switch", "standard", "--server", "11,12", "--server", "13,14",
        ],
        1,
        "name one server",
    );
    let word = "ovs:br0?inside=1:11&outside=2:12";
    let run = |nf: &str, word: &str| {
        refused(
            millrace().args(["run", nf, "--in", "captures/talk.pcap", "--offload", word]),
            2,
        )
    };
    assert!(run("nfs/nop", word).contains("one Click configuration"));
    assert!(run(CHAIN, "ovs:br0?inside=1:11").contains("the device outside"));
    assert!(run(CHAIN, "ovs:br0?lan=1:11").contains("no device 'lan'"));
}

/// Rows that the bridge has of a run.
fn until_rows(bridge: &Bridge, wanted: usize) {
    let begun = std::time::Instant::now();
    while bridge.have().map(|h| h.rows) != Ok(wanted) {
        assert!(
            begun.elapsed().as_secs() < 60,
            "no {wanted} rows: {:?}",
            bridge.have()
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_switch_in_front_of_a_chain() {
    let Some(mut switch) = VSwitch::start(&[1, 2, 11, 12]) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.pcap");
    let bridge = switch.bridge(0);
    let empty = dir.path().join("empty.pcap");
    std::fs::write(&empty, header()).unwrap();
    let input = format!("--in=-,{}", empty.display());
    let word = format!("ovs:{}?inside=1:11&outside=2:12", bridge.name);
    let mut run = millrace();
    run.args(crate::common::words(&format!(
        "run {CHAIN} {input} --out {} --offload {word} --json",
        out.display()
    )));
    let mut child = run
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut before = Vec::new();
    let said = lines.by_ref().map_while(Result::ok).find(|line| {
        before.push(line.clone());
        line.contains("rows and")
    });
    let said = said.unwrap_or_else(|| panic!("no rules: {before:?}"));
    let cookie = said.split("cookie 0x").nth(1).unwrap().trim().to_owned();
    let drained = std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>());
    let number = u64::from_str_radix(&cookie, 16).unwrap() as u32;
    let bridge = switch.bridge(number);
    let rows = 236;
    until_rows(&bridge, rows);

    // A switch that is restarted gets its rules again.
    switch.crash();
    switch.begin();
    let bridge = switch.bridge(number);
    until_rows(&bridge, rows);

    // What the switch leaves of the inside's packets goes to the chain, and comes out as if the chain had had all of them.
    let path = root().join(CHAIN);
    let graph = millrace_synth::graph(&path).unwrap();
    let of = millrace_synth::synthesise(
        "acl",
        graph,
        path.parent().unwrap(),
        millrace_synth::Options::default(),
    )
    .unwrap();
    let whole = Reference::new(&of);
    let (mut packets, mut right) = (Vec::new(), Vec::new());
    let hints = rows::hints(&of);
    for hint in hints.iter().chain(&hints) {
        // The first packet of the rule's, from the inside.
        let mut values = vec![(Var::Port, 0), (Var::Bits(Base::Upper(14), 96, 4), 5)];
        for word in 0..rows::WORDS {
            let low = match (word, hint.cube.get(word).0) {
                (rows::PROTOCOL, 0) => 17,
                (rows::FROM, 0) => 1_024 + packets.len() as u64,
                (_, low) => low,
            };
            values.push((rows::var(word), low));
        }
        values.extend([(Var::Length, 64), (ip(14, bit::LENGTH), 50)]);
        let (_, frame) = witness::frame(&values);
        let passed = whole.pass(0, 1_000_000_000, &frame);
        if let Some(Became::Left(_, bytes)) = passed.map(|p| p.became) {
            right.push(bytes);
        }
        packets.push(frame);
    }
    let frames: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
    switch.receive(1, &frames);
    let sent = switch.sent(0);
    let to_chain = &sent.iter().find(|s| s.0 == 11).unwrap().1;
    let (left, all) = (to_chain.len(), packets.len());
    assert!(left > 0 && left < all, "{left} of {all}");
    let mut input = child.stdin.take().unwrap();
    input.write_all(&header()).unwrap();
    for frame in to_chain {
        input.write_all(&record(1, frame)).unwrap();
    }
    drop(input);
    let done = child.wait_with_output().unwrap();
    let log = drained.join().unwrap().join("\n");
    assert!(done.status.success(), "{log}");
    assert!(log.contains("installed again"), "{log}");
    let account: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(account["read"], to_chain.len(), "{account}");
    // The rules are gone with the run.
    assert_eq!(bridge.have().unwrap().rows, 0);

    // Which port a flow leases is the chain's to choose.
    let remote = |bytes: Vec<u8>| (bytes.len(), bytes[30..34].to_vec(), bytes[36..38].to_vec());
    let given: Vec<_> = read(&out).into_iter().map(|p| remote(p.2)).collect();
    assert!(!given.is_empty());
    let right = right.into_iter().map(remote);
    assert_eq!(given, right.collect::<Vec<_>>());
}

#[test]
fn a_switch_that_refuses_a_rule_ends_the_run() {
    let Some(switch) = VSwitch::start(&[1, 2, 11, 12]) else {
        return;
    };
    // A table that holds 100 rows.
    switch.vsctl(&crate::common::words("--id=@t create Flow_Table flow_limit=100 overflow_policy=refuse -- set bridge br0 flow_tables:2=@t"));
    let bridge = switch.bridge(0);
    let word = format!("ovs:{}?inside=1:11&outside=2:12", bridge.name);
    let mut run = millrace();
    run.args(crate::common::words(&format!(
        "run {CHAIN} --in captures/talk.pcap --split inside=10.0.0.0/8 --offload {word}"
    )));
    let said = refused(&mut run, 2);
    assert!(said.contains("TABLE_FULL"), "{said}");
    let left = std::process::Command::new("ovs-ofctl")
        .args(["-O", "OpenFlow13", "dump-aggregate", &bridge.name])
        .output()
        .unwrap();
    let left = String::from_utf8_lossy(&left.stdout).into_owned();
    assert!(left.contains("flow_count=0"), "{left}");
}
