//! Chains: described in files, between pipes, and asked through the shell.

use crate::common;
use crate::common::live;
use crate::common::stream;

use std::io::{Read, Write};
use std::process::Stdio;

use common::{json, millrace, output, read, refused, root, success};
use live::{Live, from, header, record};
use stream::{counter, receiver};

const CAPTURE: &str = "captures/talk.pcap";

#[test]
fn a_file_describes_a_chain() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.pcap");
    let guest = receiver(dir.path());
    std::fs::write(dir.path().join("count.c"), "").unwrap();
    counter(dir.path(), "count.c", 1000, "__u64");
    std::fs::write(dir.path().join("start.csv"), "77,5\n").unwrap();
    let file = dir.path().join("edge.toml");
    let text = format!(
        r#"
name = "edge"
connect = [["in.1", "tap.0"], ["tap.1", "count.0"]]
entry = ["in.0", "count.1"]

[[element]]
name = "in"
nf = "{}"

[[element]]
nf = "count.c"
capacity = {{ sources = 5000 }}
map = {{ sources = "start.csv" }}

[[element]]
name = "tap"
guest = ["{}", "count"]
environment = {{ TZ = "UTC0" }}
memory = 64
dir = "."
"#,
        root().join("nfs/nop").display(),
        guest.display()
    );
    std::fs::write(&file, &text).unwrap();
    let run = |words: &[&str]| {
        let mut run = millrace();
        run.args(["run", file.to_str().unwrap(), "--in", CAPTURE])
            .args(words);
        run
    };
    let account = success(run(&["--out", out.to_str().unwrap()]).stdin(Stdio::null()));
    assert_eq!(account["name"], "edge", "{account}");
    assert_eq!(account["forwarded"], 1619, "{account}");
    let stages = account["stages"].as_array().unwrap();
    let names: Vec<_> = stages.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["in", "tap", "count"]);
    assert!(
        stages
            .iter()
            .all(|s| s["packets"] == 1619 && s["cycles_per_packet"].as_f64() > Some(0.0))
    );
    let object = &account["objects"][0];
    assert_eq!(
        (&object["name"], &object["capacity"]),
        (&"count:sources".into(), &5000.into()),
        "{account}"
    );
    // The capture's packets, and the entry that was there before.
    assert!(object["entries"].as_u64() > Some(1));
    assert_eq!(read(&out).len(), 1619);
    let (said, _) = output(&mut run(&[]));
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(
        said.contains("cycles a packet") && said.contains(" %"),
        "{said}"
    );

    for (from, to, line, what) in [
        ("memory = 64", "memory = 1", 19, "memory=1"),
        ("memory = 64", "speed = 1", 19, "option `speed=1`"),
        ("\"count.0\"", "\"count.9\"", 11, "count.0 is not connected"),
        (
            ", [\"tap.1\", \"count.0\"]",
            "",
            11,
            "count.0 is not connected",
        ),
        ("capacity", "capacities", 12, "no `capacities` here"),
    ] {
        std::fs::write(&file, text.replace(from, to)).unwrap();
        let said = refused(&mut run(&[]), 2);
        let place = format!("edge.toml:{line}: ");
        assert!(
            said.contains(what) && said.contains(&place),
            "{what}: {said}"
        );
    }
    let said = refused(
        millrace().args(["run", "nop", "x.toml", "--in", CAPTURE]),
        2,
    );
    assert!(said.contains("stands alone"), "{said}");
}

/// A function with four ports, and elements behind two of them: each packet takes the way that it is sent.
#[test]
fn a_chain_may_be_a_tree() {
    let dir = tempfile::tempdir().unwrap();
    let source = r#"#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
SEC("xdp") int fan(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (data + 1 > end)
		return XDP_DROP;
	if (ctx->ingress_ifindex != 1)
		return bpf_redirect(1, 0);
	return bpf_redirect(2 + data[0] % 3, 0);
}
char _license[] SEC("license") = "GPL";
"#;
    std::fs::write(dir.path().join("fan.c"), source).unwrap();
    let file = dir.path().join("fan.toml");
    let nop = root().join("nfs/nop").display().to_string();
    let text = format!(
        "connect = [['fan.1', 'a.0'], ['fan.2', 'b.0']]\nentry = ['fan.0', 'a.1', 'b.1', 'fan.3']\n\
         [[element]]\nname = 'b'\nnf = '{nop}'\n[[element]]\nnf = 'fan.c'\n[[element]]\nname = 'a'\nnf = '{nop}'\n"
    );
    std::fs::write(&file, text).unwrap();
    let input = dir.path().join("in.pcap");
    common::capture(&input, &common::each_byte());
    let outs: Vec<_> = (0..4)
        .map(|n| dir.path().join(format!("{n}.pcap")))
        .collect();
    let words: Vec<_> = outs.iter().map(|p| p.to_str().unwrap()).collect();
    let mut run = millrace();
    run.args(common::words(&format!(
        "run {} --in {} --out {}",
        file.display(),
        input.display(),
        words.join(",")
    )));
    let (account, status) = json(&mut run);
    assert_eq!((status, &account["forwarded"]), (0, &9.into()), "{account}");
    let bytes = |n: usize| {
        read(&outs[n])
            .iter()
            .map(|(_, _, b)| b[0])
            .collect::<Vec<_>>()
    };
    assert_eq!(bytes(1), [0, 3, 6]);
    assert_eq!(bytes(2), [1, 4, 7]);
    assert_eq!(bytes(3), [2, 5, 8]);
    let stages = account["stages"].to_string();
    assert!(
        stages.contains("\"b+fan+a\"") && bytes(0).is_empty(),
        "one program is all of it: {stages}"
    );
    let outs: Vec<Vec<u8>> = outs.iter().map(|p| std::fs::read(p).unwrap()).collect();
    // The command prints JSON already.
    let (done, said) = output(run.args(["--link", "no"]));
    let account: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(done.status.success() && account["forwarded"] == 9, "{said}");
    let stages = account["stages"].to_string();
    assert!(stages.contains("\"fan\""), "{stages}");
    let again = words.iter().map(|p| std::fs::read(p).unwrap());
    assert!(again.eq(outs), "other packets");
}

/// What has come is handed on before more comes, and the program's time is the packets' own.
#[test]
fn a_chain_between_pipes_holds_nothing_back() {
    let mut run = millrace();
    run.args(["run", "nop", "nop", "--in", "-", "--out", "-"]);
    run.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = run.stderr(Stdio::null()).spawn().unwrap();
    let (mut to, mut back) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    to.write_all(&header()).unwrap();
    let mut begins = Vec::new();
    for number in 0..5 {
        let packet = record(number, &from([10, 0, 0, number as u8]));
        to.write_all(&packet).unwrap();
        if begins.is_empty() {
            begins = vec![0; header().len()];
            back.read_exact(&mut begins).unwrap();
        }
        // The test would wait for ever here for a packet that is held back.
        let mut came = vec![0; packet.len()];
        back.read_exact(&mut came).unwrap();
        assert_eq!(came, packet, "{number}");
    }
    drop(to);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_shell_that_is_no_terminal_reads_lines() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::looping(dir.path(), &[]);
    let shell = |lines: &str| {
        let mut shell = live.command(&["ctl"]);
        let mut child = shell
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(lines.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let (status, said, _) = shell(
        "# set and look\nmap set blocked 10.9.0.0/16 '{\"number\": 7, \"port\": 80}'\n\nmap get blocked 10.9.0.0/16 --json\nstats\nquit\nnonsense\n",
    );
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("1 set, 0 deleted") && said.contains("\"number\": 7"),
        "{said}"
    );
    assert!(said.contains("packets in"), "{said}");
    // A line that fails is told, and the next one is done.
    let (status, said, errors) = shell("nonsense\nmap get blocked 'x\nmap get nothing 1\nmap list");
    assert_eq!(status, Some(2), "{errors}");
    assert!(
        said.contains("blocked") && errors.contains("unrecognized"),
        "{said}{errors}"
    );
    assert!(errors.contains("there is no such object"), "{errors}");
}

/// A packet whose own port is none of the rewriter's range gets one at random, in the function and in the interpreter: that is no difference.
#[test]
fn a_chain_is_compared_over_a_capture_whose_ports_are_drawn() {
    let mut command = millrace();
    command.args(["chain", "chains/napts/napts-1.click", "--compare"]);
    command.args(common::words(
        "--in captures/talk.pcap --split inside=10.0.0.0/24",
    ));
    let (output, said) = output(&mut command);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text} {said}");
    assert!(text.contains("napts-1: equal on captures"), "{text}");
}
