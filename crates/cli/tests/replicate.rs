//! `--strategy replicate` from the command line: what leaves, the account, changes from outside while packets come.

use crate::common;
use crate::common::live;

use common::openmetrics;
use common::{json, millrace, output, refused, root, success};
use live::Live;
use serde_json::{Value, json};

fn talk() -> String {
    root().join("captures/talk.pcap").display().to_string()
}

fn run(folder: &std::path::Path, name: &str, out: &str, words: &[&str]) -> Value {
    let out = folder.join(out);
    let mut command = millrace();
    command.args(["run", name, "--in", &talk()]);
    command.args(["--split", "lan=10.0.0.0/24,fd00::/8", "--out"]);
    success(command.arg(out).args(words))
}

#[test]
fn replicas_write_what_one_core_does_and_count_objects_once() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["conntrack", "firewall", "heavyhitter"] {
        let one = run(dir.path(), name, "one.pcap", &[]);
        assert_eq!(one.get("replayed"), None);
        for cores in ["2", "14"] {
            let words = ["--strategy", "replicate", "--cores", cores];
            let several = run(dir.path(), name, "several.pcap", &words);
            let bytes = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
            assert!(bytes("one.pcap") == bytes("several.pcap"), "{name}");
            for field in ["read", "reasons", "records", "timers_fired", "forwarded"] {
                assert_eq!(one[field], several[field], "{name}: {field}");
            }
            let workers: u64 = cores.parse().unwrap();
            let objects = one["objects"].as_array().unwrap().iter();
            for (a, b) in objects.zip(several["objects"].as_array().unwrap()) {
                assert_eq!(a["entries"], b["entries"]);
                let (a, b) = (a["bytes"].as_u64().unwrap(), b["bytes"].as_u64().unwrap());
                assert_eq!(workers * a, b);
            }
            let replayed = several["replayed"].as_u64().unwrap();
            assert!(replayed > 0 && replayed.is_multiple_of(workers - 1));
        }
    }
}

/// Every function of nfs/ on 2 to 14 workers: equal, or refused with the reason, which the functions that are named here are not.
#[test]
fn every_function_is_equal_or_refused() {
    const REPLICATED: [&str; 16] = [
        "antiddos",
        "bridge",
        "cl",
        "conntrack",
        "ddos",
        "dummy",
        "firewall",
        "heavyhitter",
        "hhh",
        "lb",
        "monitor",
        "policer",
        "portknock",
        "psd",
        "tokenbucket",
        "webfront",
    ];
    let all = std::env::var_os("MILLRACE_LONG").is_some();
    if !all {
        println!(
            "skipped: MILLRACE_LONG=1 verifies replicas of every function; some are in millrace-verify's replicas"
        );
        return;
    }
    let mut names: Vec<String> = (std::fs::read_dir(root().join("nfs")).unwrap())
        .map(|e| e.unwrap())
        .filter(|e| e.path().is_dir())
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert!(names.len() > 20, "{names:?}");
    for nf in &names {
        let split = match nf.as_str() {
            "webfront" => "clients=10.0.0.0/24,fd00::/8",
            _ => "lan=10.0.0.0/24,fd00::/8",
        };
        let mut command = millrace();
        command.args(["verify", nf.as_str(), "--in", &talk(), "--split", split]);
        command.args(["--strategy", "replicate", "--json", "--cores"]);
        let (output, said) = output(command.arg("2,3,4,5,6,7,8,9,10,11,12,13,14"));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        match output.status.code() {
            Some(0) => {
                assert_eq!(found["equal"], true, "{nf}: {found}");
                let runs = found["runs"].as_array().unwrap();
                assert_eq!(runs.len(), 13, "{nf}: {found}");
                println!("{nf}: equal on 2 to 14");
            }
            _ => {
                let why = said.lines().find(|l| l.starts_with("error: "));
                let why = why.unwrap_or_else(|| panic!("{nf}: {said}{found}"));
                assert!(!REPLICATED.contains(&nf.as_str()), "{nf}: {why}");
                println!("{nf}: {why}");
            }
        }
    }
}

#[test]
fn what_replication_cannot_serve_is_refused_with_the_line() {
    let mut command = millrace();
    command.args(["run", "nat", "--in", &talk(), "--strategy", "replicate"]);
    let said = refused(command.args(["--cores", "2"]), 1);
    assert!(
        said.contains("nat.c:") && said.contains("forwards:"),
        "{said}"
    );
    // There is no table that a trace could balance.
    let mut command = millrace();
    command.args(["run", "ddos", "--in", &talk(), "--strategy", "replicate"]);
    command.args(["--cores", "2", "--trace", &talk()]);
    let said = refused(&mut command, 2);
    assert!(said.contains("ask for hybrid"), "{said}");
}

/// A queue beside a table that shards, which decides whether packets change the queue: the refusal names no remedy that there is not.
#[test]
fn what_is_sharded_may_not_decide_over_what_is_replicated() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("first.c");
    let text = r#"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 64); __type(key, __u32); __type(value, __u64); } hosts SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 8); __type(value, __u32); } recent SEC(".maps");
SEC("xdp") int first(struct xdp_md *ctx)
{
	__u8 *p = (void *)(long)ctx->data;
	if (p + 34 > (__u8 *)(long)ctx->data_end || p[12] != 8 || p[13] || p[14] != 0x45)
		return XDP_PASS;
	__u32 from = *(__u32 *)(p + 26);
	__u64 one = 1, *seen = bpf_map_lookup_elem(&hosts, &from);
	if (seen) {
		++*seen;
		return *seen > 20 ? XDP_DROP : XDP_TX;
	}
	bpf_map_update_elem(&hosts, &from, &one, BPF_ANY);
	bpf_map_push_elem(&recent, &from, BPF_EXIST);
	return XDP_TX;
}
"#;
    std::fs::write(&source, text).unwrap();
    let mut command = millrace();
    command.arg("verify").arg(&source);
    command.args(["--strategy", "hybrid", "--in", &talk()]);
    let said = refused(&mut command, 1);
    for words in [
        "first cannot have some objects sharded and others replicated: ",
        "hosts: it is sharded, and what the core of the packet finds there decides over state that all cores have to change alike",
        "leave --strategy out, or ask for replicate or lock; ",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("replicate it too"), "{said}");
    // Both that are named do.
    for strategy in ["replicate", "lock"] {
        let mut command = millrace();
        command.arg("verify").arg(&source);
        success(command.args(["--strategy", strategy, "--in", &talk()]));
    }
}

#[test]
fn maps_and_parameters_change_at_one_place_for_all_replicas() {
    let dir = tempfile::tempdir().unwrap();
    let input = format!("vnic:{}?measure=off&rate=20k&split=lan=10.0.0.0/24", talk());
    let words = ["--in", &input, "--out", "null:", "--seconds", "60"];
    let more = ["--strategy", "replicate", "--cores", "3"];
    let live = Live::of(dir.path(), &["policer"], &[&words[..], &more].concat());
    let sum = |field: &str| {
        let stats = live.ask(&["ctl", "stats"]);
        let accounts = stats["accounts"].as_array().unwrap().clone();
        accounts
            .iter()
            .map(|a| a[field].as_u64().unwrap())
            .sum::<u64>()
    };
    live.until(|stats| stats["replayed"].as_u64() > Some(0));
    // Rows are made with the setting, so that a replica without it would abort the packets of the others.
    let set = live.ask(&["ctl", "set", "rate=1000"]);
    assert_eq!(set["now"], json!(1000).to_string().trim_matches('"'));
    let before = sum("read");
    while sum("read") < before + 3000 {
        crate::common::pause();
    }
    assert_eq!(sum("aborted"), 0);
    assert_eq!(live.ask(&["ctl", "stop"])["state"], "stopping");
    let (account, status) = live.end();
    assert_eq!((status, &account["errors"]), (0, &json!([])), "{account}");
    assert_eq!(account["aborted"], 0);
}

/// Keys that are replicated while others are sharded: readers from outside find them, and what packets write is left to packets.
#[test]
fn heavy_keys_are_seen_and_parameters_change_for_all() {
    let dir = tempfile::tempdir().unwrap();
    // Most packets go to one address.
    let file = dir.path().join("heavy.pcap").display().to_string();
    let mut command = millrace();
    command.args(common::words(&format!(
        "trace gen -o {file} --packets 20000 --flows 50"
    )));
    command.args(["--zipf", "3", "--one-way", "--no-connections"]);
    assert!(command.output().unwrap().status.success());
    let input = format!("vnic:{file}?measure=off&rate=50k&split=lan=198.18.0.0/15");
    let words = ["--in", &input, "--out", "null:", "--seconds", "300"];
    let more = ["--strategy", "hybrid", "--cores", "3", "--metrics", "0"];
    let live = Live::of(dir.path(), &["policer"], &[&words[..], &more].concat());
    live.until(|stats| stats["replayed"].as_u64() > Some(0));
    let heavy = |stats: &Value| stats["elephants"][0]["packets"].as_u64() > Some(0);
    let stats = live.until(heavy);
    let flow = stats["elephants"][0]["flow"].as_str().unwrap().to_owned();
    assert!(flow.contains(" > "), "{flow}");
    assert!(stats["rows"].as_u64() > Some(0) && stats["workers"][0]["behind"].is_u64());
    let view = live.ask(&["top", "--every", "0.3"]);
    let shown = view["elephants"].as_array().unwrap();
    assert!(shown.iter().any(|e| e["flow"] == *flow), "{view}");
    assert!(view["workers"][2]["behind"].is_u64(), "{view}");
    let said = std::fs::read_to_string(dir.path().join("stderr")).unwrap();
    let address = said.split("http://").nth(1).unwrap();
    let (_, scraped) = openmetrics::get(address.split('/').next().unwrap(), "");
    for name in [
        "elephants",
        "elephant_packets_total",
        "sequenced_rows_total",
    ] {
        let line = scraped
            .lines()
            .find(|l| l.starts_with(&format!("millrace_{name}{{")));
        let value = line.and_then(|l| l.split(' ').next_back()?.parse::<f64>().ok());
        assert!(value > Some(0.0), "{name}: {scraped}");
    }
    assert!(scraped.contains("millrace_worker_behind_rows{worker=\"2\"}"));
    // Each flow has come.
    let read = || {
        let stats = live.ask(&["ctl", "stats"]);
        let accounts = stats["accounts"].as_array().unwrap().clone();
        let read = accounts.iter().map(|a| a["read"].as_u64().unwrap());
        read.sum::<u64>()
    };
    while read() < 60_000 {
        crate::common::pause();
    }
    let shown = live.ask(&["map", "export", "buckets"]);
    let entries = shown.as_array().unwrap();
    let one = millrace_entries(&file);
    assert_eq!(entries.len() as u64, one, "{shown}");
    let key = match &entries[0]["key"] {
        Value::String(key) => key.clone(),
        other => other.to_string(),
    };
    let delete = ["map", "delete", "buckets", &key];
    let said = live.command(&delete).output().unwrap();
    let said = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
    assert!(said.contains("move while packets come"), "{said}");
    live.ask(&["ctl", "set", "rate=1000"]);
    assert_eq!(live.ask(&["ctl", "stop"])["state"], "stopping");
    let (account, status) = live.end();
    assert_eq!((status, &account["errors"]), (0, &json!([])), "{account}");
    assert_eq!(account["aborted"], 0);
    let elephants = account["elephants"].as_array().unwrap();
    assert!(elephants[0]["packets"].as_u64() > Some(0), "{elephants:?}");
}

/// Packets from elsewhere come in at the WAN.
const SERVERS: &str = "lan=198.18.0.0/15";

/// Entries that one core has behind a capture.
fn millrace_entries(file: &str) -> u64 {
    let mut command = millrace();
    let (account, _) = json(command.args([
        "run", "policer", "--in", file, "--split", SERVERS, "--out", "null:",
    ]));
    let buckets = common::named(&account["objects"], "buckets");
    buckets["entries"].as_u64().unwrap()
}

/// One flow is all traffic, so that sharding leaves it to one core: without a word, the plan replicates. What ddos does to the flow is
/// known to the packet, and every packet is accounted.
#[test]
fn a_flow_that_is_all_traffic_is_replicated_without_being_asked() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("one.pcap").display().to_string();
    let mut command = millrace();
    command.args(["trace", "gen", "-o", &file, "--packets", "20000"]);
    command.args(["--flows", "1", "--one-way", "--no-connections"]);
    assert!(command.output().unwrap().status.success());
    let run = |options: &str, words: &[&str]| {
        let input = format!("vnic:{file}?{options}");
        let mut command = millrace();
        command.args(["run", "ddos", "--in", &input, "--cores", "2"]);
        let account = success(command.args(["--loops", "5"]).args(words));
        let field = |name: &str| account[name].as_u64();
        assert_eq!(field("read"), Some(100_000), "{account}");
        // The limit of a source.
        assert_eq!(field("forwarded"), Some(1000), "{account}");
        assert_eq!(field("dropped"), Some(99_000));
        assert_eq!(field("aborted"), Some(0));
        account
    };
    // With a NIC that costs so much, no reading of the clock makes one core the better of the two.
    let chosen = run("measure=on&dispatch=500", &[]);
    assert_eq!(chosen["predicted"]["strategy"], "replicate", "{chosen}");
    assert!(chosen["predicted"]["mpps"].as_f64() > Some(0.0));
    // Each row was applied by the worker that had not its packet, and the table is counted once.
    assert_eq!(chosen["replayed"], 100_000);
    assert!(chosen["rows"].as_u64() >= Some(100_000), "{chosen}");
    assert_eq!(chosen["relaxations"]["order"], 1000);
    let workers = chosen["workers"].as_array().unwrap();
    for worker in workers {
        assert_eq!(worker["behind"], 0, "{chosen}");
        assert!(worker["packets"].as_u64() > Some(30_000), "{chosen}");
    }
    let sources =
        |account: &Value| common::named(&account["objects"], "sources")["entries"].clone();
    assert_eq!(sources(&chosen), 1);
    // Who says that nothing may be measured has what the plan says without.
    let left = run("measure=off", &[]);
    assert_eq!(
        (&left["predicted"], &left["replayed"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(sources(&left), 1);
}

/// A load balancer's flows are sharded and its backends replicated: packets of flows have no row, those of backends have one.
#[test]
fn backends_are_replicated_and_flows_sharded() {
    let dir = tempfile::tempdir().unwrap();
    {
        let mut command = millrace();
        command.args(common::words(&format!(
            "verify lb --in {} --split lan=10.0.0.0/24",
            talk()
        )));
        command.args(common::words(
            "--strategy hybrid --cores 3 --schedule seeded",
        ));
        let said = success(&mut command);
        assert_eq!(said["equal"], json!(true), "{said}");
        for run in said["runs"].as_array().unwrap() {
            assert_eq!(run["strategy"], "hybrid");
            // Not every packet has a row: most of the 1619 are of flows.
            let rows = run["rows"].as_u64().unwrap();
            assert!((1..1200).contains(&rows), "{run}");
        }
    }
    let one = run(dir.path(), "lb", "one.pcap", &[]);
    let words = ["--strategy", "hybrid", "--cores", "3"];
    let several = run(dir.path(), "lb", "several.pcap", &words);
    let bytes = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    assert!(bytes("one.pcap") == bytes("several.pcap"));
    let entries = |account: &Value| {
        let objects = account["objects"].as_array().unwrap().iter();
        let each = objects.map(|o| (o["name"].clone(), o["entries"].clone()));
        each.collect::<Vec<_>>()
    };
    assert_eq!(entries(&one), entries(&several));
    let input = format!("vnic:{}?measure=off&rate=20k&split=lan=10.0.0.0/24", talk());
    let words = ["--in", &input, "--out", "null:", "--seconds", "60"];
    let more = ["--strategy", "hybrid", "--cores", "3"];
    let live = Live::of(dir.path(), &["lb"], &[&words[..], &more].concat());
    live.until(|stats| stats["replayed"].as_u64() > Some(0));
    let read = || {
        let stats = live.ask(&["ctl", "stats"]);
        let accounts = stats["accounts"].as_array().unwrap().clone();
        let read = accounts.iter().map(|a| a["read"].as_u64().unwrap());
        read.sum::<u64>()
    };
    while read() < 4_000 {
        crate::common::pause();
    }
    // All parts of what is sharded are seen as one, and what is replicated once.
    let count = |name: &str| live.ask(&["map", "export", name]).as_array().unwrap().len() as u64;
    for (name, entries) in entries(&one) {
        if ["flows", "backends"].contains(&name.as_str().unwrap()) {
            assert_eq!(
                Some(count(name.as_str().unwrap())),
                entries.as_u64(),
                "{name}"
            );
        }
    }
    // One place for all replicas; what is sharded belongs to packets.
    live.ask(&["map", "set", "unhealthy", "10.0.0.250", "1"]);
    assert_eq!(count("unhealthy"), 1);
    let shown = live.ask(&["map", "export", "flows"]);
    let key = match &shown[0]["key"] {
        Value::String(key) => key.clone(),
        other => other.to_string(),
    };
    let delete = ["map", "delete", "flows", &key];
    let said = live.command(&delete).output().unwrap();
    let said = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
    assert!(said.contains("nothing was changed"), "{said}");
    assert_eq!(live.ask(&["ctl", "stop"])["state"], "stopping");
    let (account, status) = live.end();
    assert_eq!((status, &account["errors"]), (0, &json!([])), "{account}");
    assert_eq!(account["aborted"], 0);
    // Flows stay with their owners.
    assert_eq!(account["relaxations"]["order"], Value::Null);
}

/// Of a chain the first function is replicated, and others are under a lock: entries, fates and records are those of one core. Where
/// packets come to it through another one, no sequencer knows its rows.
#[test]
fn the_first_function_of_a_chain_is_replicated() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("skewed.pcap").display().to_string();
    let mut command = millrace();
    command.args(["trace", "gen", "-o", &file, "--packets", "20000"]);
    command.args(common::words(
        "--flows 60 --zipf 2 --one-way --no-connections",
    ));
    assert!(command.output().unwrap().status.success());
    let of = |chain: &[&str], input: &str, words: &[&str]| {
        let mut command = millrace();
        command.arg("run").args(chain).args(["--in", input]);
        json(command.args(["--out", "null:"]).args(words))
    };
    let input = format!("vnic:{file}?measure=off&rate=50k");
    let how = ["--strategy", "replicate", "--cores", "3"];
    for chain in [["conntrack", "firewall"], ["firewall", "policer"]] {
        let (one, status) = of(&chain, &file, &[]);
        assert_eq!(status, 0, "{one}");
        let (several, status) = of(&chain, &input, &how);
        assert_eq!((status, &several["errors"]), (0, &json!([])), "{several}");
        assert!(several["rows"].as_u64() > Some(10_000), "{several}");
        for field in ["read", "forwarded", "dropped", "reasons", "aborted"] {
            assert_eq!(one[field], several[field], "{chain:?}, {field}: {several}");
        }
        let entries = |account: &Value| {
            let all = account["objects"].as_array().unwrap().iter();
            all.map(|o| o["entries"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(entries(&one), entries(&several), "{chain:?}: {several}");
    }
    // Both directions: packets of the second port come to it through the other function.
    let both = format!("{input}&split=lan=198.18.0.0/16");
    let mut command = millrace();
    command.args(["run", "heavyhitter", "nop", "--in", &both, "--out", "null:"]);
    let said = refused(command.args(how), 1);
    assert!(
        said.contains("heavyhitter cannot be replicated in this chain")
            && said.contains("through nop"),
        "{said}"
    );
}

/// What packets of heavy keys would add beside their replicas is in no sum, so that a function that counts so is refused.
#[test]
fn heavy_keys_are_not_replicated_beside_sums() {
    let mut command = millrace();
    command.args(["run", "tests/programs/heavy.c", "--in", &talk()]);
    command.args(["--cores", "3", "--strategy", "hybrid", "--control", "none"]);
    let run = command.output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(said.contains("packets: packets of heavy keys"), "{said}");
}
