//! `millrace run`, from outside.

use crate::common;

use std::io::Write;
use std::process::Stdio;

use common::{GATE, capture, each_byte, json, millrace, output, read, refused, success};
use millrace_tables::rows;
use serde_json::json;

#[test]
fn every_packet_has_one_fate_and_leaves_where_it_should() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    capture(&path("in.pcap"), &each_byte());
    let account = success(
        millrace()
            .args(["run", GATE, "--in"])
            .arg(path("in.pcap"))
            .arg("--out")
            .arg(path("out.pcapng"))
            .arg("--pass")
            .arg(path("pass.pcap")),
    );
    let fates = [
        "read",
        "forwarded",
        "dropped",
        "passed",
        "consumed",
        "aborted",
    ]
    .map(|f| account[f].as_u64().unwrap());
    assert_eq!(fates, [9, 4, 2, 1, 1, 1]);
    assert_eq!(
        (&account["written"], &account["created"]),
        (&json!(5), &json!(1))
    );
    assert_eq!(account["reasons"], json!({"no_such_port": 1, "dropped": 2}));
    assert_eq!(account["name"], "gate");
    // 2 s between the first and the last: due at 1 s and at 2 s.
    assert_eq!(account["timers_fired"], 2);
    assert_eq!(account["errors"], json!([]));
    assert_eq!(account["ports"][0]["name"], "LAN");
    assert_eq!(account["ports"][2]["sent"], 2);
    assert_eq!(account["workers"].as_array().unwrap().len(), 1);
    assert!(account["seconds"].as_f64().unwrap() > 0.0);
    assert!(account["function"]["ns_per_packet"].as_f64().unwrap() > 0.0);
    let seen = common::named(&account["objects"], "seen");
    assert_eq!(
        (&seen["entries"], &seen["capacity"]),
        (&json!(9), &json!(256))
    );

    let left: Vec<_> = read(&path("out.pcapng"))
        .into_iter()
        .map(|(port, _, bytes)| (port, bytes[0]))
        .collect();
    assert_eq!(left, [(1, 1), (2, 2), (1, 3), (2, 3), (0, 0xee)]);
    assert_eq!(read(&path("pass.pcap"))[0].2, [5, 0, 0]);
}

#[test]
fn settings_limits_and_one_output_a_port() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    capture(
        path("in.pcap").as_ref(),
        &[(1, vec![1, 0]), (2, vec![2, 0])],
    );
    let outputs = [path("lan.pcap"), path("wan.pcap"), path("dmz.pcap")].join(",");
    let account = success(millrace().args(["run", GATE, "--set", "limit=3"]).args([
        "--in",
        &format!("mem:{}", path("in.pcap")),
        "--loops",
        "5",
        "--out",
        &outputs,
    ]));
    assert_eq!(
        (&account["read"], &account["reasons"]),
        (&json!(10), &json!({"over_limit": 4}))
    );
    let counts = ["lan", "wan", "dmz"].map(|n| read(path(&format!("{n}.pcap")).as_ref()).len());
    assert_eq!(counts, [0, 3, 3]);
}

#[test]
fn one_capture_is_split_over_two_ports_and_several_are_merged() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let status = output(
        millrace()
            .args(["trace", "gen", "--packets", "500", "-o"])
            .arg(path("t.pcapng")),
    );
    assert!(status.0.status.success());
    let frames = read(&path("t.pcapng"));
    let from_lan = frames.iter().filter(|f| f.0 == 0).count();
    let (account, _) = json(
        millrace()
            .args(["run", "nop", "--split", "lan=10.0.0.0/8", "--in"])
            .arg(path("t.pcapng")),
    );
    assert_eq!(account["ports"][0]["read"], from_lan);
    assert_eq!(account["ports"][1]["sent"], from_lan);
    assert_eq!(account["ports"][1]["read"], frames.len() - from_lan);

    capture(&path("a.pcap"), &[(10, vec![1, 0]), (30, vec![2, 0])]);
    capture(&path("b.pcap"), &[(20, vec![1, 1]), (40, vec![2, 1])]);
    let both = format!("{},{}", path("a.pcap").display(), path("b.pcap").display());
    let (account, _) = json(
        millrace()
            .args(["run", GATE, "--in", &both, "--out"])
            .arg(path("out.pcap")),
    );
    let times: Vec<_> = read(&path("out.pcap")).iter().map(|p| p.1).collect();
    assert_eq!(times, [10, 20, 30, 40]);
    assert_eq!(
        (&account["ports"][0]["read"], &account["ports"][1]["read"]),
        (&json!(2), &json!(2))
    );
}

#[test]
fn pipes_carry_captures_both_ways() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in.pcap");
    capture(&file, &each_byte());
    let mut child = millrace()
        .args(["run", GATE, "--in", "-", "--out", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(&std::fs::read(&file).unwrap())
        .unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let out = dir.path().join("out.pcap");
    std::fs::write(&out, &done.stdout).unwrap();
    assert_eq!(read(&out).len(), 5);
    assert!(String::from_utf8_lossy(&done.stderr).contains("gate: 9 packets"));
}

#[test]
fn records_are_json_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    output(
        millrace()
            .args(["trace", "gen", "--packets", "2000", "--flows", "5", "-o"])
            .arg(path("t.pcap")),
    );
    let account = success(
        millrace()
            .args(["run", "heavyhitter", "--set", "threshold=5000", "--in"])
            .arg(path("t.pcap"))
            .arg("--records")
            .arg(path("r.jsonl")),
    );
    let text = std::fs::read_to_string(path("r.jsonl")).unwrap();
    assert!(
        account["records"]["reports"].as_u64().unwrap() > 0,
        "{account}"
    );
    assert_eq!(account["records"]["reports"], text.lines().count());
    for line in text.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["object"], "reports");
        assert!(record["time"].as_u64().unwrap() > 0);
        assert!(
            record["bytes"]
                .as_str()
                .unwrap()
                .bytes()
                .all(|b| b.is_ascii_hexdigit())
        );
    }
}

#[test]
fn a_signal_drains_and_reports() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in.pcap");
    capture(&file, &each_byte());
    let (_, status) = json(millrace().args(["run", GATE, "--in"]).arg(&file));
    assert_eq!(status, 0);
    let mut child = millrace()
        .args([
            "run",
            GATE,
            "--json",
            "--seconds",
            "60",
            "--in",
            &format!("mem:{}", file.display()),
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It is running by then: what it needs is in the cache.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let kill = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let mut text = String::new();
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let account: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(account["interrupted"], true);
    let sum: u64 = ["forwarded", "dropped", "passed", "consumed", "aborted"]
        .iter()
        .map(|f| account[*f].as_u64().unwrap())
        .sum();
    assert!(sum > 0 && account["read"] == sum, "{account}");
}

#[test]
fn a_signal_ends_a_run_that_waits_for_its_input() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in.pcap");
    capture(&file, &each_byte());
    let (_, status) = json(millrace().args(["run", GATE, "--in"]).arg(&file));
    assert_eq!(status, 0);
    let mut child = millrace()
        .args(["run", GATE, "--json", "--in", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The pipe stays open, with half a record in it.
    let whole = std::fs::read(&file).unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&whole[..whole.len() - 1]).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    let kill = std::process::Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let mut text = String::new();
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    drop(pipe);
    let account: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (
            &account["interrupted"],
            &account["read"],
            &account["errors"]
        ),
        (&json!(true), &json!(8), &json!([]))
    );
}

#[test]
fn a_truncated_capture_is_accounted_up_to_there() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in.pcap");
    capture(&file, &each_byte());
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    let (account, status) = json(millrace().args(["run", GATE, "--in"]).arg(&file));
    assert_eq!((status, &account["read"]), (2, &json!(8)));
    assert!(
        account["errors"][0]["error"]
            .as_str()
            .unwrap()
            .contains("truncated"),
        "{account}"
    );
}

#[test]
fn the_sanitised_run_gives_the_same_packets() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    capture(&path("in.pcap"), &each_byte());
    for (out, more) in [("plain.pcap", None), ("sanitised.pcap", Some("--sanitize"))] {
        let (account, status) = json(
            millrace()
                .args(["run", GATE])
                .args(more)
                .arg("--in")
                .arg(path("in.pcap"))
                .arg("--out")
                .arg(path(out)),
        );
        if more.is_some()
            && account["error"]
                .as_str()
                .is_some_and(|e| e.contains("not installed"))
        {
            println!("skipped: {}", account["help"]);
            return;
        }
        assert_eq!(status, 0, "{account}");
    }
    let bytes = |name| std::fs::read(path(name)).unwrap();
    assert!(bytes("plain.pcap") == bytes("sanitised.pcap"));
}

/// Words of `run`, where `{gate}` is a function of three ports and `{in}` a capture, and a part of what is said.
const WRONG: &str = r#"
{gate} --in pigeon:eth0                     | no port of kind `pigeon:`
{gate} --in null:                           | cannot be read from
{gate} --in {in} --out {in}                 | named twice
{gate} --in {in} --out /dev/null,/dev/null  | 2 outputs for 3 ports
{gate} --in {in} --cores 0                  | no number of cores
{gate} --in {in} --steer nic=generic        | several cores
{gate} --in {in} --set limit=-1             | out of range
{gate} --in {in} --set limit=many           | `limit`
{gate} --in {in} --set nosuch=1             | no parameter `nosuch`
{gate} --in {in} --set limit                | not a setting
{gate} --in {in} --program other            | no program `other`
{gate} --in {in} --loops 2                  | no input can begin again
{gate} --in {in} --split nowhere=10.0.0.0/8 | no port `nowhere`
{gate} --in {in} --json --out -             | standard output
no-such-nf --in {in}                        | no function `no-such-nf`
{gate} --in /nowhere.pcap                   | /nowhere.pcap
"#;

#[test]
fn wrong_use_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in.pcap");
    capture(&file, &each_byte());
    let name = file.display().to_string();
    for [line, said] in rows(WRONG) {
        let line = line.replace("{gate}", GATE).replace("{in}", &name);
        let text = refused(millrace().arg("run").args(common::words(&line)), 2);
        assert!(text.contains(&said), "{line}:\n{text}");
    }
    assert_eq!(read(&file).len(), 9);
}

#[test]
fn prefetching_changes_nothing_but_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let trace = ["--packets", "30000", "--flows", "5000", "--churn", "60000"];
    output(
        millrace()
            .args(["trace", "gen"])
            .args(trace)
            .arg("-o")
            .arg(path("t.pcap")),
    );
    // Larger than the cache, so that the prefetching passes are used.
    for (nf, object) in [
        ("firewall", "flows"),
        ("policer", "buckets"),
        ("heavyhitter", "flows"),
    ] {
        for (out, more) in [
            ("with.pcapng", None),
            ("without.pcapng", Some("--no-prefetch")),
        ] {
            let mut run = millrace();
            run.args(["run", nf, "--capacity", &format!("{object}=1000000")]);
            run.args(["--split", "lan=10.0.0.0/8", "--in"])
                .arg(path("t.pcap"));
            let account = success(run.args(more).arg("--out").arg(path(out)));
            assert_eq!(account["read"], json!(30000), "{account}");
        }
        let bytes = |name| std::fs::read(path(name)).unwrap();
        assert!(bytes("with.pcapng") == bytes("without.pcapng"), "{nf}");
    }
}

/// What is wrong with another program of the object does not matter to one that runs alone.
#[test]
fn one_program_of_several_stands_for_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (source, input) = (dir.path().join("two.c"), dir.path().join("in.pcap"));
    let text = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
        SEC(\"xdp\") int good(struct xdp_md *c) { return XDP_PASS; }\n\
        SEC(\"xdp\") int bad(struct xdp_md *c) { return *(__u8 *)(long)c->data; }\n";
    std::fs::write(&source, text).unwrap();
    capture(&input, &[(1, vec![0; 60])]);
    let check = |program: Option<&str>| {
        let mut command = millrace();
        command.arg("check").arg(&source);
        command.args(program.iter().flat_map(|p| ["--program", p]));
        json(&mut command)
    };
    assert_eq!(check(None).1, 1);
    assert_eq!(check(Some("bad")).1, 1);
    let (document, status) = check(Some("good"));
    assert_eq!(status, 0, "{document}");
    assert_eq!(document["instructions"], 2, "{document}");
    assert_eq!(document["entries"].as_array().unwrap().len(), 1);
    let mut run = millrace();
    run.arg("run")
        .arg(&source)
        .args(["--program", "good", "--in"]);
    let (account, status) = json(run.arg(&input));
    assert_eq!((status, &account["passed"]), (0, &serde_json::json!(1)));
    let mut ugly = millrace();
    ugly.arg("check").arg(&source).args(["--program", "ugly"]);
    let text = refused(&mut ugly, 2);
    assert!(
        text.contains("no program `ugly`") && text.contains("good, bad"),
        "{text}"
    );
}
