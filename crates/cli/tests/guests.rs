//! Other people's programs in a chain of `millrace run`.

use crate::common;

use std::process::Command;

use common::stream::{installed, receiver};
use common::{json, millrace, output, refused, success};

const CAPTURE: &str = "captures/talk.pcap";

#[test]
fn a_guest_prints_what_it_prints_alone() {
    if !installed("tcpdump") {
        return;
    }
    let alone = Command::new("tcpdump")
        .args(["-n", "-r", CAPTURE])
        .current_dir(common::root())
        .output()
        .unwrap();
    let (hosted, said) =
        output(millrace().args(["run", "nop", "guest:tcpdump -n -i @", "--in", CAPTURE]));
    assert_eq!(hosted.status.code(), Some(0), "{said}");
    assert!(
        said.contains("note: guests are contained, not isolated")
            || said.contains("note: protection keys keep guests out"),
        "{said}"
    );
    let text = String::from_utf8_lossy(&hosted.stdout).into_owned();
    let packets = String::from_utf8_lossy(&alone.stdout).into_owned();
    // The account follows: it is written last.
    let account = text
        .strip_prefix(&packets)
        .expect("every line of tcpdump's, in order");
    assert!(
        account.starts_with("nop, tcpdump: 1 619 packets"),
        "{account}"
    );
    assert!(
        account.contains("ns a packet") && account.contains("tcpdump: it ended"),
        "{account}"
    );
}

/// A guest takes more addresses than are allowed: that is said at once, and what to raise.
#[test]
fn a_limit_on_addresses_is_named() {
    let command = millrace();
    let mut limited = Command::new("prlimit");
    limited.arg("--as=4000000000").arg(command.get_program());
    limited.current_dir(common::root());
    for (name, value) in command.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    limited.args(["run", "nop", "guest:true", "--in", CAPTURE]);
    let said = refused(&mut limited, 2);
    assert!(said.contains("ulimit -v"), "{said}");
}

#[test]
fn functions_and_guests_stand_in_one_chain() {
    if !["tcpdump", "ndpiReader"].into_iter().all(installed) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let mut run = millrace();
    run.args(["run", "firewall", "guest:ndpiReader -i @"])
        .arg(format!("guest:tcpdump -n -i @ -w {}", path("seen.pcap")))
        .args(common::words(&format!(
            "--in {CAPTURE} --split lan=10.0.0.0/24,fd00::/8 --out {}",
            path("out.pcap")
        )));
    let account = success(&mut run);
    let count = |what: &str| account[what].as_u64().unwrap();
    assert_eq!(count("read"), 1619);
    assert_eq!(count("forwarded") + count("dropped"), 1619);
    let stages = account["stages"].as_array().unwrap();
    let names: Vec<_> = stages.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["firewall", "ndpiReader", "tcpdump"]);
    let seen = stages[2]["packets"].as_u64().unwrap() as usize;
    assert_eq!(
        common::read(dir.path().join("seen.pcap").as_path()).len(),
        seen
    );
}

/// Ten packets and then no more: that is an end, and no failure.
#[test]
fn a_guest_that_ends_early_lets_packets_past() {
    if !installed("tcpdump") {
        return;
    }
    let (account, status) =
        json(millrace().args(["run", "nop", "guest:tcpdump -c 10 -n -i @", "--in", CAPTURE]));
    assert_eq!(
        (status, &account["forwarded"]),
        (0, &1619.into()),
        "{account}"
    );
    let facts = account["facts"].to_string();
    assert!(
        facts.contains("it ended; 1") && facts.contains("packets went past it"),
        "{facts}"
    );
}

/// The run goes on without a guest that fails, and tells of it; or with it, started anew.
#[test]
fn a_guest_that_fails_is_told_and_packets_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let word = format!("guest:{} null", receiver(dir.path()).display());
    let (account, status) = json(millrace().args(["run", "nop", &word, "nop", "--in", CAPTURE]));
    assert_eq!(
        (status, &account["forwarded"]),
        (2, &1619.into()),
        "{account}"
    );
    assert_eq!(account["stages"][2]["packets"], 1619);
    let errors = account["errors"].to_string();
    assert!(
        errors.contains("a null pointer") && errors.contains("/receiver+0x"),
        "{errors}"
    );

    let word = word.replace("guest:", "guest,restart=1000:");
    let (account, _) = json(millrace().args([
        "run",
        "nop",
        &word,
        "--loops",
        "400",
        "--in",
        &format!("mem:{CAPTURE}"),
    ]));
    assert_eq!(account["forwarded"], 400 * 1619, "{account}");
    let facts = account["facts"].to_string();
    assert!(facts.contains("until it was started again"), "{facts}");
}

#[test]
fn what_cannot_be_hosted_is_refused() {
    for (word, what) in [
        ("guest:no-such-program-anywhere", "there is no program"),
        ("guest:tcpdump 'x", "missing closing quote"),
        ("guest,fast:true", "option `fast`"),
        ("guest:true", "did not get as far as asking for packets"),
    ] {
        let said = refused(millrace().args(["run", "nop", word, "--in", CAPTURE]), 2);
        assert!(said.contains(what), "{word}: {said}");
    }
}

/// A capture is one sequence of packets: refused before any of the chain is built or started.
#[test]
fn a_guest_runs_on_one_core_over_captures() {
    let run = ["run", "nop", "guest:true", "--cores", "2", "--in", CAPTURE];
    let said = refused(millrace().args(run), 2);
    assert!(
        said.contains("one sequence of packets, which workers that host `guest:true` cannot share")
            && said.contains("use --cores 1"),
        "{said}"
    );
    assert!(!said.contains("spread"), "`nop` was built: {said}");
}
