//! `millrace verify` over functions whose keys are computed: the steering that a solver's answers allow is held against
//! one core.

use crate::common;

use std::path::PathBuf;

use common::{json, millrace, root, success};
use millrace_turns::of_today;

const TRAFFIC: [&str; 2] = [
    "--generate",
    "packets=20000,flows=300,churn=300,rate=200,mix=tcp:4+udp:4+icmp:1",
];

/// A program of crates/plan's tests with another line in the place of one.
fn with(folder: &tempfile::TempDir, name: &str, define: &str, value: &str) -> PathBuf {
    let source = root().join(format!("crates/plan/tests/programs/{name}.c"));
    let text = std::fs::read_to_string(source).unwrap();
    let start = format!("#define {define} ");
    let old = text.lines().find(|l| l.starts_with(&start)).unwrap();
    let text = text.replace(old, &format!("{start}{value}"));
    let source = folder.path().join(format!("{name}.c"));
    std::fs::write(&source, text).unwrap();
    source
}

#[test]
fn computed_keys_are_equal_to_one_core() {
    let cases = [
        ("computed", "KEY", "(ntohl(ip->src) + 1)", "shard"),
        ("computed", "KEY", "(__u32)(ntohl(ip->src) * 3)", "shard"),
        ("computed", "KEY", "(__u32)(ntohl(ip->src) * 2)", "shard"),
        (
            "computed",
            "KEY",
            "((p->port == LAN ? ntohl(ip->src) : ntohl(ip->dst)) + 1)",
            "shard",
        ),
        ("computed", "KEY", "crc32c(0, ip->src)", "shard"),
        (
            "computed",
            "KEY",
            "((__u64)ntohl(ip->src) / 10 * 16 + ntohl(ip->src) % 16)",
            "shard",
        ),
        ("computed_place", "PLACES", "1024", "shard"),
        // Of 1000 places eight groups are told apart, which is enough for so few cores; of 125 none.
        ("computed_place", "PLACES", "1000", "shard"),
        ("computed_place", "PLACES", "125", "lock"),
        ("computed_ports", "SENDER", "(f.src + 1)", "shard"),
    ];
    for (name, define, value, strategy) in of_today("computed keys", cases, 3) {
        let folder = tempfile::tempdir().unwrap();
        let source = with(&folder, name, define, value);
        let mut command = millrace();
        command.arg("verify").arg(source).args(TRAFFIC);
        let found = success(command.args(["--cores", "2,4"]));
        assert_eq!(found["equal"], true, "{value}: {found}");
        for run in found["runs"].as_array().unwrap() {
            assert_eq!(run["strategy"], strategy, "{value}: {run}");
            let shares = run["shares"].as_array().unwrap();
            let idle = shares.iter().filter(|s| s.as_u64() == Some(0)).count();
            assert!(idle == 0, "{value}: {run}");
        }
    }
}

/// Ten neighbours have one key. A steering as it would be if somebody had answered that no two of them have is wrong,
/// and shown to be.
#[test]
fn an_answer_that_is_wrong_would_be_caught() {
    let folder = tempfile::tempdir().unwrap();
    let source = with(&folder, "computed", "KEY", "((__u64)ntohl(ip->src) / 10)");
    let mut command = millrace();
    command.arg("verify").arg(&source).args(TRAFFIC);
    for port in ["LAN", "WAN"] {
        let steer = format!("{port}:nic=software&fields=source-address");
        command.args(["--steer", &steer]);
    }
    let (found, status) = json(command.args(["--cores", "4"]));
    assert_eq!((status, &found["equal"]), (1, &false.into()), "{found}");
    let first = &found["differences"][0];
    assert_eq!(first["state"][0]["object"], "counts", "{first}");
    // The plan does not believe that.
    let mut command = millrace();
    command.arg("verify").arg(&source).args(TRAFFIC);
    let found = success(command.args(["--cores", "4"]));
    assert_eq!(found["equal"], true, "{found}");
}
