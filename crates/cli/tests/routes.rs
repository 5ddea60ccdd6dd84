//! `millrace run --routes`, from outside: the table decides where packets go, and with which addresses.

use crate::common;

use std::path::Path;
use std::process::Command;

use common::{capture, json, millrace, refused, root, success};

fn router() -> std::path::PathBuf {
    root().join("crates/cli/tests/router.c")
}

fn run(input: &Path, routes: Option<&Path>) -> Command {
    let mut command = millrace();
    command.arg("run").arg(router()).arg("--in").arg(input);
    if let Some(routes) = routes {
        command.arg("--routes").arg(routes);
    }
    command
}

/// IPv4 packets to an address that is routed, a neighbour unknown, a blackhole, the machine itself.
fn frames() -> Vec<(u64, Vec<u8>)> {
    let frame = |to: [u8; 4]| {
        let mut frame = vec![0; 60];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[26..30].copy_from_slice(&[10, 0, 0, 9]);
        frame[30..34].copy_from_slice(&to);
        frame
    };
    let to = [
        [8, 8, 8, 8],
        [8, 8, 4, 4],
        [10, 0, 0, 77],
        [10, 9, 1, 1],
        [10, 0, 0, 1],
    ];
    to.map(|to| (1_000_000_000, frame(to))).to_vec()
}

const TABLE: &str = r#"{"ports": [
  {"ifname": "lan", "address": "02:00:00:00:00:01", "addresses": ["10.0.0.1/24"]},
  {"ifname": "wan", "address": "02:00:00:00:00:02", "addresses": ["192.0.2.1/30"]}],
"routes": [{"dst": "default", "gateway": "192.0.2.2", "dev": "wan"},
  {"dst": "10.9.0.0/16", "type": "blackhole"}],
"neighbours": [{"dst": "192.0.2.2", "lladdr": "02:00:00:00:00:99", "dev": "wan"}]}"#;

#[test]
fn packets_go_where_the_table_says() {
    let dir = tempfile::tempdir().unwrap();
    let (input, table) = (dir.path().join("in.pcap"), dir.path().join("table.json"));
    capture(&input, &frames());
    std::fs::write(&table, TABLE).unwrap();
    let account = success(&mut run(&input, Some(&table)));
    let fates = ["forwarded", "dropped", "passed"].map(|f| account[f].as_u64().unwrap());
    assert_eq!(fates, [2, 1, 2], "{account}");

    // Without a table nothing is forwarded, and the user is told.
    let (account, status) = json(&mut run(&input, None));
    assert_eq!(
        (status, account["passed"].as_u64()),
        (0, Some(5)),
        "{account}"
    );
    let told = common::output(&mut run(&input, None)).1;
    assert!(
        told.contains("note: the function looks routes up"),
        "{told}"
    );
}

#[test]
fn a_table_of_many_routes_makes_room_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let (input, table) = (dir.path().join("in.pcap"), dir.path().join("table.json"));
    capture(&input, &frames());
    let routes: Vec<String> = (0..5000)
        .map(|i| {
            format!(
                r#"{{"dst": "11.{}.{}.0/24", "dev": "wan"}}"#,
                i / 256,
                i % 256
            )
        })
        .collect();
    let text = TABLE.replace(
        "\"routes\": [",
        &format!("\"routes\": [{},", routes.join(",\n")),
    );
    std::fs::write(&table, text).unwrap();
    let (account, status) = json(&mut run(&input, Some(&table)));
    assert_eq!(
        (status, account["forwarded"].as_u64()),
        (0, Some(2)),
        "{account}"
    );
}

#[test]
fn what_is_wrong_with_a_table_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (input, table) = (dir.path().join("in.pcap"), dir.path().join("table.json"));
    capture(&input, &frames());
    let told = refused(&mut run(&input, Some(&table)), 2);
    assert!(told.contains("table.json: No such file"), "{told}");
    std::fs::write(&table, TABLE.replace("10.9.0.0/16", "10.9.0.0/36")).unwrap();
    let told = refused(&mut run(&input, Some(&table)), 2);
    assert!(
        told.contains("table.json: line 5: \"10.9.0.0/36\" is not an address"),
        "{told}"
    );
    let told = refused(&mut run(&input, Some(Path::new("system:no-such0"))), 2);
    assert!(told.contains("there is no interface no-such0"), "{told}");
    std::fs::write(&table, TABLE).unwrap();
    let mut other = millrace();
    other
        .args(["run", "nop", "--in"])
        .arg(&input)
        .arg("--routes")
        .arg(&table);
    assert!(refused(&mut other, 2).contains("nop looks no routes up"));
}

/// Beside a case lies its table; without one there is no forwarding.
#[test]
fn a_packet_test_has_its_table_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let case = |name: &str, fate: &str| {
        let file = dir.path().join(name);
        let text = format!(
            "# A packet to the world.\n0: eth / ip 10.0.0.9 > 8.8.8.8 / udp 1 > 2\n  -> {fate}\n\
             0: eth / ip 10.0.0.9 > 10.9.1.1 / udp 1 > 2\n  -> {}\n",
            if fate == "pass" { "pass" } else { "drop" }
        );
        std::fs::write(&file, text).unwrap();
        file
    };
    let routed = "1: eth 02:00:00:00:00:02 > 02:00:00:00:00:99 / ip 10.0.0.9 > 8.8.8.8 / udp 1 > 2";
    let files = [case("with.pkt", routed), case("without.pkt", "pass")];
    let run = |files: &[std::path::PathBuf]| {
        let mut command = millrace();
        command.arg("test").arg(router());
        for file in files {
            command.arg("--case").arg(file);
        }
        json(&mut command)
    };
    let table = dir.path().join("with.routes");
    std::fs::write(&table, TABLE).unwrap();
    let (document, status) = run(&files);
    assert_eq!(status, 0, "{document}");
    assert_eq!(document["passed"], 2, "{document}");
    // It is the table that makes the difference.
    std::fs::remove_file(&table).unwrap();
    let (document, status) = run(&files);
    assert_eq!((status, &document["failed"]), (1, &serde_json::json!(1)));
    // One with more routes than the function has room for, and one that is none.
    let many: Vec<String> = (0..3000)
        .map(|i| {
            format!(
                r#"{{"dst": "20.{}.{}.0/24", "gateway": "192.0.2.2", "dev": "wan"}}"#,
                i / 250,
                i % 250
            )
        })
        .collect();
    let large = TABLE.replace(
        r#""routes": ["#,
        &format!(r#""routes": [{},"#, many.join(",")),
    );
    std::fs::write(&table, large).unwrap();
    assert_eq!(run(&files).1, 0);
    std::fs::write(&table, "{").unwrap();
    let mut command = millrace();
    command
        .arg("test")
        .arg(router())
        .arg("--case")
        .arg(&files[0]);
    let text = refused(&mut command, 2);
    assert!(
        text.contains("with.routes") && text.contains("line 1"),
        "{text}"
    );
}
