//! Packets of several workers as transactions: `run`, `verify`, `plan`, `bench --memory`.

use crate::common;

use common::{Faulty, SPLIT, capture, json, millrace, over, refused, success, udp};
use millrace_turns::its_turn;
use serde_json::Value;

const TRANSACT: [&str; 2] = ["--strategy", "transact"];

fn number(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or_else(|| panic!("{name}: {of}"))
}

/// What versions say of the order is what one core repeats, with more workers than processors and threads switched where they touch
/// shared state.
#[test]
fn the_order_of_versions_is_repeated() {
    for nf in ["bridge", "policer", "einat", "dummy"] {
        let cores = if nf == "policer" { "1,2,8" } else { "1,4" };
        let words = [&TRANSACT[..], &["--cores", cores]].concat();
        let found = success(&mut over("verify", nf, &words));
        assert_eq!(found["equal"], true, "{nf}: {found}");
        let runs = found["runs"].as_array().unwrap();
        assert_eq!(runs[0].get("transactions"), None);
        for run in &runs[1..] {
            assert_eq!(run["strategy"], "transact");
            assert_eq!(run.get("writers"), None);
            let of = &run["transactions"];
            assert_eq!(number(of, "committed") + number(of, "alone"), 1619, "{run}");
            assert!(number(of, "alone") < 50, "{nf}: {run}");
            assert!(number(of, "dependencies") > 5, "{nf}: {run}");
            // Numbers are leased of each worker's own pool: which, the plan announces.
            let leases = run["relaxations"].to_string().contains("lease");
            assert_eq!(leases, nf == "einat", "{run}");
        }
    }
}

/// Every function of nfs/ on 1 to 8 workers: most take seconds, einat, hhh and nat minutes.
#[test]
fn every_function_is_repeated() {
    if std::env::var_os("MILLRACE_LONG").is_none() {
        println!(
            "skipped: MILLRACE_LONG=1 runs all functions; four are in the_order_of_versions_is_repeated"
        );
        return;
    }
    let folders = std::fs::read_dir(common::root().join("nfs")).unwrap();
    let folders = folders.map(|f| f.unwrap().path());
    let mut names: Vec<String> = folders
        .filter(|f| f.is_dir())
        .map(|f| f.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert!(names.len() > 20);
    for nf in &names {
        let words = [&TRANSACT[..], &["--cores", "1,2,3,4,5,6,7,8", "--json"]].concat();
        let split = match nf.as_str() {
            "webfront" => "clients=10.0.0.0/24,fd00::/8",
            _ => SPLIT,
        };
        let mut command = millrace();
        command
            .args(["verify", nf.as_str(), "--in", "captures/talk.pcap"])
            .args(["--split", split])
            .args(&words);
        let (output, said) = common::output(&mut command);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert_eq!(
            (output.status.code(), &found["equal"]),
            (Some(0), &true.into()),
            "{nf}: {said}{found}"
        );
        let runs = found["runs"].as_array().unwrap();
        let of = |run: &Value, what: &str| run["transactions"][what].as_u64().unwrap_or(0);
        let sum = |what: &str| runs.iter().map(|run| of(run, what)).sum::<u64>();
        println!(
            "{nf}: {} runs equal; {} committed, {} alone, {} dependencies",
            runs.len(),
            sum("committed"),
            sum("alone"),
            sum("dependencies")
        );
    }
}

/// In each module: the 300th packet that has taken what it writes and not shown it yet is the last.
const DIES: &str = r"
#ifndef __bpf__
#include <signal.h>
#include <unistd.h>
static unsigned long dies_held;
static void dies(void)
{
	if (__atomic_add_fetch(&dies_held, 1, __ATOMIC_RELAXED) == 300)
		kill(getpid(), SIGKILL);
}
#define TRANSACT_HELD() dies()
#endif
";

/// The files of a folder.
fn content(folder: &std::path::Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().path());
    let files = files.filter(|f| f.is_file());
    files
        .map(|f| (f.display().to_string(), std::fs::read(&f).unwrap()))
        .collect()
}

/// A worker that dies while it has words ends the run with it, as all of them are in one process. What was kept has none of
/// these words, and another run goes on with it.
#[test]
fn a_worker_that_dies_with_words_leaves_what_was_kept() {
    use std::os::unix::process::ExitStatusExt;

    let Some(faulty) = Faulty::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (state, header) = (dir.path().join("dummy.state"), dir.path().join("dies.h"));
    std::fs::write(&header, DIES).unwrap();
    let run = || {
        let words = ["--cores", "4", "--control", "none", "--state"];
        let words = [&TRANSACT[..], &words, &[state.to_str().unwrap()]].concat();
        over("run", "dummy", &words)
    };
    let whole = || {
        let (account, status) = json(&mut run());
        assert_eq!(status, 0, "{account}");
        let of = &account["transactions"];
        assert_eq!(
            number(of, "commits") + number(of, "alone"),
            1619,
            "{account}"
        );
        assert!(number(of, "commits") > 1500, "{account}");
    };
    whole();
    let kept = content(&state);
    assert!(!kept.is_empty());
    let mut dying = run();
    faulty.compiles(
        &mut dying,
        "dies",
        &format!("-include {}", header.display()),
    );
    let output = dying.output().unwrap();
    assert_eq!(output.status.signal(), Some(9), "{output:?}");
    let left = content(&state);
    for (file, bytes) in &kept {
        assert!(
            left.get(file) == Some(bytes),
            "{file}: a run that died has left something"
        );
    }
    whole();
}

/// Packets remove entries while others, some of which came before, look for them and write times.
const REMOVED: &str = r"
#include <millrace/nf.h>

PORTS(IN, OUT);

struct slot { __u64 packets; __u64 last; };
MAP(tickets, __u32, __u32, .capacity = 300);
VECTOR(slots, struct slot, .capacity = 300);

ON_PACKET(p)
{
	__u32 k = packet_length(p) & 63, n = k;
	__u32 *t = map_get(&tickets, &k);
	if (t) {
		struct slot *s = vector_at(&slots, *t);
		if (s) {
			s->packets += 1;
			s->last = p->time;
			if (s->packets % 5 == 0)
				map_delete(&tickets, &k);
		}
	} else
		map_put(&tickets, &k, &n);
	return FORWARD(peer(p));
}
";

/// Who finds nothing has read nobody's value, however late what was there was removed.
#[test]
fn what_is_absent_has_no_time() {
    let dir = tempfile::tempdir().unwrap();
    let nf = dir.path().join("removed.c");
    std::fs::write(&nf, REMOVED).unwrap();
    let mut command = millrace();
    command.args(["verify", nf.to_str().unwrap(), "--cores", "4"]);
    command.args(["--generate", "packets=3000,flows=100"]);
    let found = success(command.args(TRANSACT));
    assert_eq!(found["equal"], true, "{found}");
    let of = &found["runs"][0]["transactions"];
    assert!(number(of, "dependencies") > 100, "{found}");
}

/// Sets whose expiry runs a function: it has its place in the order, before a packet that runs alone for it.
#[test]
fn sets_that_expire_are_events_of_the_order() {
    for nf in ["portscan", "antiddos"] {
        let words =
            format!("verify {nf} --cores 4 --generate packets=3000,flows=200,rate=50,churn=50");
        let words = common::words(&words);
        let mut command = millrace();
        command.args(words).args(TRANSACT);
        let found = success(&mut command);
        assert_eq!(found["equal"], true, "{nf}: {found}");
        let of = &found["runs"][0]["transactions"];
        assert_eq!(
            number(of, "committed") + number(of, "alone"),
            3000,
            "{found}"
        );
    }
}

#[test]
fn a_run_counts_commits_and_says_what_ran_alone() {
    let words = [&TRANSACT[..], &["--cores", "4", "--control", "none"]].concat();
    let account = success(&mut over("run", "portscan", &words));
    let of = &account["transactions"];
    assert_eq!(
        number(of, "commits") + number(of, "alone"),
        1619,
        "{account}"
    );
    let reasons = of["reasons"].as_object().unwrap();
    let all: u64 = reasons.values().filter_map(Value::as_u64).sum();
    assert_eq!(all, number(of, "alone"), "{account}");
    let opens = |why: &String| why.contains("portscan.c:") && why.contains("map_put of");
    assert!(reasons.keys().any(opens), "{reasons:?}");
}

/// What a run under the lock left, one with transactions goes on with, and the other way round.
#[test]
fn state_is_kept_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("bridge.state");
    let state = state.to_str().unwrap();
    let mut entries = Vec::new();
    for strategy in ["transact", "lock", "transact"] {
        let words = ["--cores", "2", "--strategy", strategy, "--control", "none"];
        let words = [&words[..], &["--state", state]].concat();
        let account = success(&mut over("run", "bridge", &words));
        entries.push(account["objects"][0]["entries"].as_u64().unwrap());
    }
    assert!(entries[0] > 0 && entries.iter().all(|n| *n == entries[0]));
}

#[test]
fn a_plan_offers_and_counts_transactions() {
    let mut command = millrace();
    command
        .args(["plan", "bridge", "--cores", "4"])
        .args(TRANSACT);
    let plan = success(&mut command);
    assert_eq!(plan["strategy"], "transact", "{plan}");
    assert_eq!(plan["objects"][0]["treatment"], "transact");
    let plan = success(&mut over("plan", "bridge", &["--cores", "2"]));
    let works = plan["measured"]["strategies"].as_array().unwrap();
    let work = works.iter().find(|w| w["strategy"] == "transact").unwrap();
    let share = |of: &str, at: usize| work[of][at]["share"].as_f64().unwrap();
    // One core shares with nobody. Stations stay where they are: what their first frames wrote others read once.
    assert_eq!((share("foreign", 0), share("met", 0)), (0.0, 0.0), "{work}");
    assert!(share("foreign", 4) < 0.2 && share("met", 4) < 0.2, "{work}");
    assert_eq!(work["writes"], 0.0, "none of them runs alone: {work}");
}

#[test]
fn what_cannot_be_in_transactions_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("cpu.bpf.c");
    std::fs::write(&source, PER_CPU).unwrap();
    let mut command = millrace();
    command
        .arg("verify")
        .arg(&source)
        .args(["--cores", "2", "--generate", "packets=100"])
        .args(TRANSACT);
    let error = refused(&mut command, 1);
    assert!(
        error.contains("cpu.bpf.c:") && error.contains("counts") && error.contains("transact"),
        "{error}"
    );
}

/// What a packet finds in a per-CPU map decides over it.
const PER_CPU: &str = "#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(\".maps\");
SEC(\"xdp\")
int every_other(struct xdp_md *ctx)
{
	__u32 zero = 0;
	__u64 *count = bpf_map_lookup_elem(&counts, &zero);
	return count && ++*count % 2 ? XDP_PASS : XDP_DROP;
}
";

/// A module whose protocol has a fault (fastpath/sync/words.h) is not equal: an update from a version that was not seen, and time that goes
/// back from who wrote to who read.
#[test]
fn planted_faults_of_the_protocol_are_found() {
    let Some(faulty) = Faulty::new() else { return };
    for fault in ["4", "11"] {
        let words = [&TRANSACT[..], &["--cores", "8"]].concat();
        let mut command = over("verify", "policer", &words);
        faulty.is_found(&mut command, "TRANSACT_FAULT", fault);
    }
}

/// A packet either puts one number under two keys, or forwards where it finds the same under both, by two lookups whose words are in
/// places of the program (fastpath/sync/transact_few.h).
const PAIRS: &str = r"
#include <millrace/nf.h>

PORTS(IN, OUT);

MAP(pairs, __u32, __u64, .capacity = 64);

struct head { __u8 bytes[36]; };

ON_PACKET(p)
{
	struct head *head = packet_at(p, 0, struct head);
	__u32 one, other;
	__u64 n, *a, *b;

	if (!head)
		return FORWARD(peer(p));
	/* Of the source port: flows of both kinds are on each worker. */
	n = head->bytes[34] << 8 | head->bytes[35];
	one = n & 2;
	other = one | 1;
	if (n & 4) {
		map_put(&pairs, &one, &n);
		map_put(&pairs, &other, &n);
		return FORWARD(peer(p));
	}
	a = map_get(&pairs, &one);
	b = map_get(&pairs, &other);
	if (a && b && *a != *b)
		return DROP_BECAUSE(torn);
	return FORWARD(peer(p));
}
";

#[test]
fn words_in_places_are_validated() {
    let dir = tempfile::tempdir().unwrap();
    let nf = dir.path().join("pairs.c");
    std::fs::write(&nf, PAIRS).unwrap();
    let verify = || {
        let mut command = millrace();
        command.args(["verify", nf.to_str().unwrap(), "--cores", "8"]);
        command.args(["--generate", "packets=6000,flows=100"]);
        command.args(TRANSACT);
        command
    };
    let found = success(&mut verify());
    assert_eq!(found["equal"], true, "{found}");
    let of = &found["runs"][0]["transactions"];
    assert!(number(of, "dependencies") > 1000, "{found}");
    let Some(faulty) = Faulty::new() else { return };
    faulty.is_found(&mut verify(), "TRANSACT_FAULT", "12");
}

/// Hosts whose ports are those that a NAT leases, so that now and then a packet already has the number of its lease.
#[test]
fn a_number_that_a_packet_had_by_chance_is_a_lease() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in.pcap");
    let mut packets = Vec::new();
    // Leases end in between.
    for round in 0..10_u64 {
        for host in 0..64_u16 {
            let port = 1024 + (host * 37 + round as u16 * 11) % 64;
            let frame = udp(([10, 0, 0, host as u8 + 1], port), ([192, 0, 2, 9], 53));
            let at = round * 100_000_000_000 + u64::from(host) * 1_000_000;
            packets.push((1_000_000_000 + at, frame));
        }
    }
    capture(&file, &packets);
    let mut command = millrace();
    command.args(["verify", "nat", "--split", "lan=10.0.0.0/8"]);
    command.args(["--strategy", "transact", "--cores", "4,8", "--in"]);
    let found = success(command.arg(&file));
    assert_eq!(found["equal"], true, "{found:#}");
    let runs = found["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_eq!(run["compared"], 640, "{run:#}");
    }
}

/// The second one leases for a flow that has the number which the first one leased.
#[test]
fn a_lease_that_keeps_another_lease_is_one_up_to_that() {
    if !its_turn("leases that keep leases", 0, 3) {
        return;
    }
    let mut command = over("verify", "nat+nat", &["--strategy", "transact"]);
    let found = success(command.args(["--cores", "2,5"]));
    assert_eq!(found["equal"], true, "{found:#}");
    for run in found["runs"].as_array().unwrap() {
        assert_eq!(run["compared"], 1619, "{run:#}");
    }
}
