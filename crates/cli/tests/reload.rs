//! `ctl reload`: a run becomes what its chain file says now, with the least change, and no packet is lost.

use std::path::Path;

use millrace_turns::of_today;
use serde_json::Value;

use crate::common::live::Live;
use crate::common::stream::{Stream, counter, elements, numbers, receiver};
use crate::common::{json, refused, root};

/// A function that drops the packets of sources that are told it, and counts those of others from `first` on.
fn gate(folder: &Path, capacity: u32, more: &str) {
    let source = format!(
        r#"#include <millrace/nf.h>
PORTS(LAN, WAN);
PARAM(__u32, first, 0);
PARAM(__u32, spare, 5);
{more}
MAP(blocked, __be32, __u32, .capacity = {capacity});
MAP(seen, __be32, __u64, .capacity = 65536);
ON_PACKET(p)
{{
	__be32 *source = packet_at(p, 26, __be32);
	__u64 one = 1, *count;
	__be32 key;

	if (!source)
		return DROP;
	key = *source;
	if (map_get(&blocked, &key))
		return DROP_BECAUSE(blocked);
	count = map_get(&seen, &key);
	if (count)
		*count += 1;
	else if (first)
		map_put(&seen, &key, &one);
	return FORWARD(p->port == LAN ? WAN : LAN);
}}
"#
    );
    std::fs::write(folder.join("gate.c"), source).unwrap();
}

/// A chain file, with these lines at its top and these elements.
fn write(folder: &Path, top: &str, elements: &[&str]) -> String {
    let path = folder.join("edge.toml");
    let each = elements.iter().map(|e| format!("[[element]]\n{e}\n"));
    let text = format!("{top}\n{}", each.collect::<String>());
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn reload(live: &Live, words: &[&str]) -> Value {
    live.ask(&[&["ctl", "reload"], words].concat())
}

/// What a reload has replaced, added and removed.
fn told(answer: &Value) -> (Vec<&str>, Vec<&str>, Vec<&str>) {
    let named = |list: &'static str| {
        let list = answer[list].as_array().unwrap().iter();
        list.map(|e| e["element"].as_str().or(e.as_str()).unwrap())
            .collect()
    };
    (named("replaced"), named("added"), named("removed"))
}

const TOP: &str = "in = \"-\"\nout = \"out.pcap\"\n";

#[test]
fn a_reload_changes_what_the_file_changed_and_loses_no_packet() {
    let dir = tempfile::tempdir().unwrap();
    gate(dir.path(), 16, "");
    counter(dir.path(), "count.c", 65536, "__u64");
    std::fs::write(dir.path().join("b.csv"), "192.0.2.1,1\n192.0.2.2,1\n").unwrap();
    let guest = receiver(dir.path());
    const GATE: &str = "nf = \"gate.c\"\nset = { first = 1 }\nmap = { blocked = \"b.csv\" }";
    const COUNT: &str = "nf = \"count.c\"";
    let tap = format!(
        "name = \"tap\"\nguest = [\"{}\", \"count\"]",
        guest.display()
    );
    let path = write(dir.path(), TOP, &[GATE, COUNT]);
    let mut live = Live::of(dir.path(), &[&path], &[]);
    let stream = Stream::into(&mut live);
    live.until(|s| s["read"].as_u64() > Some(100));
    let entry = |live: &Live, key: &str| {
        let (found, status) = json(&mut live.command(&["map", "get", "gate:blocked", key]));
        (status == 0).then(|| found["value"].clone())
    };

    // Nothing has changed, so nothing is.
    let same = reload(&live, &[]);
    assert_eq!(
        (&same["changed"], &same["applied"]),
        (&false.into(), &true.into()),
        "{same}"
    );

    // Entries of a file: those that it has got and lost; what was set by hand stays.
    live.ask(&["map", "set", "gate:blocked", "198.51.100.9", "1"]);
    std::fs::write(dir.path().join("b.csv"), "192.0.2.2,7\n192.0.2.3,1\n").unwrap();
    let look = reload(&live, &["--check"]);
    assert_eq!(
        (&look["changed"], &look["applied"]),
        (&true.into(), &false.into()),
        "{look}"
    );
    assert_eq!(
        (&look["entries"][0]["set"], &look["entries"][0]["deleted"]),
        (&2.into(), &1.into())
    );
    assert_eq!(entry(&live, "192.0.2.1"), Some(1.into()));
    stream.more(200);
    let done = reload(&live, &[]);
    assert_eq!(
        (told(&done), &done["connected"]),
        ((vec![], vec![], vec![]), &false.into()),
        "{done}"
    );
    assert_eq!(
        (&done["entries"][0]["set"], &done["entries"][0]["deleted"]),
        (&2.into(), &1.into())
    );
    let now = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "198.51.100.9"].map(|key| entry(&live, key));
    assert_eq!(now, [None, Some(7.into()), Some(1.into()), Some(1.into())]);

    // A parameter: set in place; one that is named no more has its declared value again.
    live.ask(&["ctl", "set", "spare=9"]);
    let set = GATE.replace("first = 1", "first = 2");
    write(dir.path(), TOP, &[&set, COUNT]);
    let done = reload(&live, &[]);
    assert_eq!(told(&done), (vec![], vec![], vec![]), "{done}");
    let params = &done["params"];
    assert_eq!(
        (
            &params[0]["name"],
            &params[0]["before"],
            &params[0]["now"],
            params.as_array().unwrap().len()
        ),
        (&"first".into(), &"1".into(), &"2".into(), 1),
        "{done}"
    );
    let all = live.ask(&["ctl", "params"]);
    assert_eq!(
        all["params"][1]["value"], "9",
        "set by hand, and not in the file: {all}"
    );

    // A source that changed: replaced, with its state, and the file's entries as they are now.
    gate(dir.path(), 32, "MAP(further, __u32, __u32, .capacity = 4);");
    std::fs::write(dir.path().join("b.csv"), "192.0.2.3,2\n").unwrap();
    stream.more(200);
    let done = reload(&live, &[]);
    assert_eq!(told(&done), (vec!["gate"], vec![], vec![]), "{done}");
    assert_eq!(done["replaced"][0]["why"], "its source changed");
    let kept = done["kept"].as_array().unwrap();
    let of = |name: &str| kept.iter().find(|k| k["object"] == name).unwrap()["entries"].as_u64();
    assert_eq!(of("blocked"), Some(3), "{done}");
    assert!(of("seen") > Some(300), "{done}");
    let now = ["192.0.2.2", "192.0.2.3", "198.51.100.9"].map(|key| entry(&live, key));
    assert_eq!(now, [None, Some(2.into()), Some(1.into())]);

    // A guest comes into the middle, elements change their places, one gets another capacity.
    let many = "name = \"count\"\nnf = \"count.c\"\ncapacity = { sources = 70_000 }";
    write(dir.path(), TOP, &[many, &tap, &set]);
    stream.more(200);
    let done = reload(&live, &[]);
    assert_eq!(elements(&done), ["count", "tap", "gate"]);
    assert_eq!(told(&done), (vec!["count"], vec!["tap"], vec![]), "{done}");
    assert_eq!(done["replaced"][0]["why"], "other capacities", "{done}");
    live.until(|s| s["stages"][1]["packets"].as_u64() > Some(300));
    // Two elements change their places; what they are made of stays.
    let gate_first = format!(
        "{TOP}connect = [[\"gate.WAN\", \"count.0\"], [\"count.1\", \"tap.0\"]]\nentry = [\"gate.LAN\", \"tap.1\"]\n"
    );
    write(dir.path(), &gate_first, &[many, &tap, &set]);
    let done = reload(&live, &[]);
    assert_eq!(
        (told(&done), &done["connected"]),
        ((vec![], vec![], vec![]), &true.into()),
        "{done}"
    );
    assert_eq!(elements(&done), ["gate", "count", "tap"]);
    // Somebody has changed the chain by hand: the file counts.
    live.ask(&["ctl", "chain", "attach", "nop", "--name", "extra"]);
    live.ask(&["ctl", "chain", "replace", "gate", "nop", "--anew"]);
    let done = reload(&live, &[]);
    assert_eq!(told(&done), (vec!["gate"], vec![], vec!["extra"]), "{done}");
    // And the guest goes.
    write(dir.path(), TOP, &[&set, many]);
    stream.more(200);
    let done = reload(&live, &[]);
    assert_eq!(told(&done), (vec![], vec![], vec!["tap"]), "{done}");
    assert!(done["facts"].to_string().contains("tap"), "{done}");
    stream.more(100);

    let sent = stream.end();
    let (account, status) = live.end();
    assert_eq!(status, 0, "{account}");
    assert_eq!(
        numbers(&dir.path().join("out.pcap")),
        (0..sent).collect::<Vec<_>>(),
        "each once, in order"
    );
}

/// What the file says now, a part of the message, the exit status. After each of them the run goes on as it was.
#[test]
fn a_reload_that_fails_leaves_the_run_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    gate(dir.path(), 16, "");
    counter(dir.path(), "count.c", 65536, "__u64");
    std::fs::write(dir.path().join("b.csv"), "192.0.2.1,1\n").unwrap();
    const GATE: &str = "nf = \"gate.c\"\nset = { first = 1 }\nmap = { blocked = \"b.csv\" }";
    const COUNT: &str = "nf = \"count.c\"";
    let path = write(dir.path(), TOP, &[GATE, COUNT]);
    let mut live = Live::of(dir.path(), &[&path], &["--seed", "3"]);
    let stream = Stream::into(&mut live);
    live.until(|s| s["stages"][0]["packets"].as_u64() > Some(100));
    let many: String = (0..40).map(|n| format!("203.0.113.{n},1\n")).collect();
    std::fs::write(dir.path().join("many.csv"), many).unwrap();
    std::fs::write(dir.path().join("wrong.c"), "int x = ;").unwrap();
    std::fs::write(
        dir.path().join("unsafe.c"),
"#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\nSEC(\"xdp\") int f(struct xdp_md *ctx)\n{\n\treturn *(char *)(long)ctx->data;\n}\n",
    )
    .unwrap();
    let before = (
        live.ask(&["ctl", "chain", "show"]),
        live.ask(&["map", "export", "gate:blocked"]),
    );
    let set = GATE.replace("first = 1", "first = 2");
    let other = |from: &str, to: &str| GATE.replace(from, to);
    let cores = format!("{TOP}cores = 2\n");
    let captures = TOP.replace("out.pcap", "other.pcap");
    let ends = format!("{TOP}connect = [[\"gate.WAN\", \"count.0\"]]\nentry = [\"gate.LAN\"]\n");
    let cases: &[(&str, &[&str], i32, &[&str])] = &[
        ("nonsense", &[GATE], 2, &["edge.toml:1"]),
        (
            &cores,
            &[&set, COUNT],
            1,
            &["edge.toml:3: ", "`cores` (workers are arranged at start)"],
        ),
        (
            &captures,
            &[&set, COUNT],
            1,
            &["edge.toml:2: ", "`out` (ports are opened at start)"],
        ),
        (
            "in = \"-\"",
            &[&set, COUNT],
            1,
            &["edge.toml: ", "`out` (ports"],
        ),
        (
            TOP,
            &[&set, "nf = \"wrong.c\""],
            2,
            &["edge.toml:9: ", "clang does not compile it", "wrong.c:1"],
        ),
        (
            TOP,
            &[&set, "nf = \"unsafe.c\""],
            1,
            &["edge.toml:9: ", "unsafe.c is refused"],
        ),
        (
            TOP,
            &[&set, "nf = \"gone.c\""],
            2,
            &["edge.toml:9: ", "no function `gone.c`"],
        ),
        (
            TOP,
            &[&set, "guest = \"gone-program @\""],
            2,
            &["edge.toml:9: ", "gone-program"],
        ),
        (
            TOP,
            &[&other("first = 1", "first = \"x\""), COUNT],
            2,
            &["edge.toml:6: ", "gate: `set.first`"],
        ),
        (
            TOP,
            &[&other("b.csv", "gone.csv"), COUNT],
            2,
            &["edge.toml:7: ", "gone.csv"],
        ),
        (
            &ends,
            &[&set, COUNT],
            2,
            &["edge.toml:11: ", "count.1 is not connected"],
        ),
        // Halfway: a parameter is set, entries are too many for the map.
        (
            TOP,
            &[&set.replace("b.csv", "many.csv"), COUNT],
            1,
            &["gate: ", "the run goes on as it was"],
        ),
        // Halfway: new elements are made, a state does not fit.
        (
            TOP,
            &[
                &set.replace("b.csv", "many.csv"),
                "nf = \"count.c\"\ncapacity = { sources = 70_000 }",
                "name = \"new\"\nnf = \"gate.c\"",
            ],
            1,
            &["gate: ", "the run goes on as it was"],
        ),
    ];
    for (top, elements, status, parts) in cases {
        write(dir.path(), top, elements);
        stream.more(20);
        let said = refused(&mut live.command(&["ctl", "reload"]), *status);
        for part in *parts {
            assert!(said.contains(part), "{part} in\n{said}");
        }
        let now = (
            live.ask(&["ctl", "chain", "show"]),
            live.ask(&["map", "export", "gate:blocked"]),
        );
        assert_eq!(now, before, "{said}");
        let params = live.ask(&["ctl", "params"]);
        assert_eq!(params["params"][0]["value"], "1", "{said}");
    }
    // And one that is right does what it says.
    write(dir.path(), TOP, &[&set, COUNT]);
    let done = reload(&live, &[]);
    assert_eq!(done["params"][0]["now"], "2", "{done}");
    let sent = stream.end();
    let (account, status) = live.end();
    assert_eq!(
        (status, &account["forwarded"]),
        (0, &sent.into()),
        "{account}"
    );
    assert_eq!(account["stages"].as_array().unwrap().len(), 2, "{account}");
}

/// What stands in place of the file: it is refused with a reason, within the wait for a pipe, and the next one is asked for
/// the file that is there then.
#[test]
fn odd_files_are_refused_and_the_run_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    counter(dir.path(), "count.c", 65536, "__u64");
    let path = write(dir.path(), TOP, &["nf = \"count.c\""]);
    let whole = std::fs::read(&path).unwrap();
    let mut live = Live::of(dir.path(), &[&path], &[]);
    let stream = Stream::into(&mut live);
    live.until(|s| s["read"].as_u64() > Some(100));
    let says = |what: &str, status: i32| {
        let said = refused(&mut live.command(&["ctl", "reload"]), status);
        assert!(said.contains(what), "{what}: {said}");
    };
    let gone = || std::fs::remove_file(&path).unwrap();
    gone();
    says("No such file", 2);
    std::fs::create_dir(&path).unwrap();
    says("Is a directory", 2);
    std::fs::remove_dir(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    says("a pipe, into which nothing was written", 2);
    gone();
    std::fs::write(&path, "").unwrap();
    says("no elements", 2);
    std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
    says("edge.toml:", 2);
    std::fs::write(&path, vec![b'['; 1_000_000]).unwrap();
    says("edge.toml:1", 2);
    std::fs::write(&path, vec![0xff; 1_000_000]).unwrap();
    says("not text in UTF-8", 2);
    std::fs::write(&path, vec![b'#'; 2_000_000]).unwrap();
    says("longer than", 2);
    std::fs::write(
        &path,
        [&whole[..], b"[[element]]\nnf = \"count.c\"\n"].concat(),
    )
    .unwrap();
    says("edge.toml:", 2);
    std::fs::write(&path, &whole).unwrap();
    let (replaced, added, removed) = {
        let answer = reload(&live, &[]);
        let (a, b, c) = told(&answer);
        (a.len(), b.len(), c.len())
    };
    assert_eq!((replaced, added, removed), (0, 0, 0));
    let read = live.stats()["read"].as_u64();
    live.until(|s| s["read"].as_u64() > read);
    // A row names each element once.
    let said = refused(
        &mut live.command(&["ctl", "chain", "reorder", "count", "count"]),
        1,
    );
    assert!(said.contains("name each element once"), "{said}");
    let sent = stream.end();
    let (account, status) = live.end();
    assert_eq!(
        (status, &account["forwarded"]),
        (0, &sent.into()),
        "{account}"
    );
}

#[test]
fn a_run_without_a_chain_file_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::looping(dir.path(), &[]);
    let said = refused(&mut live.command(&["ctl", "reload"]), 1);
    assert!(said.contains("without a chain file"), "{said}");
}

#[test]
fn several_workers_reload_all_of_it_together() {
    let dir = tempfile::tempdir().unwrap();
    let source = "#include <millrace/nf.h>\nPORTS(LAN, WAN);\nPARAM(__u32, loud, 0);\n\
                  MAP(blocked, __be32, __u32, .capacity = 8);\nON_PACKET(p)\n{\n\
                  \t__be32 *source = packet_at(p, 26, __be32);\n\t__be32 key;\n\
                  \tif (!source || loud > 1)\n\t\treturn DROP;\n\tkey = *source;\n\
                  \treturn map_get(&blocked, &key) ? DROP : FORWARD(peer(p));\n}\n";
    std::fs::write(dir.path().join("gate.c"), source).unwrap();
    std::fs::write(dir.path().join("b.csv"), "192.0.2.1,1\n192.0.2.2,1\n").unwrap();
    let capture = crate::common::root().canonicalize().unwrap();
    let capture = capture.join("captures/talk.pcap");
    let top = format!(
        "ports = [\"vnic:{}?rate=2k&depth=4096&measure=off\"]\ncores = 2\npackets = 300_000_000\nseconds = 60\n",
        capture.display()
    );
    const GATE: &str = "nf = \"gate.c\"\nset = { loud = 1 }\nmap = { blocked = \"b.csv\" }";
    let path = write(dir.path(), &top, &[GATE]);
    let live = Live::of(dir.path(), &[&path], &[]);
    live.until(|s| s["read"].as_u64() > Some(10));
    std::fs::write(
        dir.path().join("b.csv"),
        "192.0.2.2,1\n192.0.2.3,1\n192.0.2.4,1\n",
    )
    .unwrap();
    write(dir.path(), &top, &[&GATE.replace("loud = 1", "loud = 0")]);
    let done = reload(&live, &[]);
    assert_eq!(
        (
            &done["entries"][0]["set"],
            &done["entries"][0]["deleted"],
            &done["params"][0]["now"]
        ),
        (&2.into(), &1.into(), &"0".into()),
        "{done}"
    );
    let all = live.ask(&["map", "export", "blocked"]);
    assert_eq!(all.as_array().unwrap().len(), 3, "{all}");
    // Too many for the map: no worker keeps a part of it.
    let many: String = (0..20).map(|n| format!("203.0.113.{n},1\n")).collect();
    std::fs::write(dir.path().join("b.csv"), many).unwrap();
    write(dir.path(), &top, &[GATE]);
    let said = refused(&mut live.command(&["ctl", "reload"]), 1);
    assert!(said.contains("the run goes on as it was"), "{said}");
    assert_eq!(live.ask(&["map", "export", "blocked"]), all);
    assert_eq!(live.ask(&["ctl", "params"])["params"][0]["value"], "0");
    std::fs::write(dir.path().join("b.csv"), "192.0.2.2,1\n").unwrap();
    write(
        dir.path(),
        &top,
        &[GATE, "name = \"more\"\nnf = \"gate.c\""],
    );
    // An element comes and goes, with what else changes.
    let done = reload(&live, &[]);
    assert_eq!(told(&done), (vec![], vec!["more"], vec![]), "{done}");
    assert_eq!(done["elements"].as_array().unwrap().len(), 2, "{done}");
    assert_eq!(done["params"][0]["now"], "1", "{done}");
    write(dir.path(), &top, &[GATE]);
    let done = reload(&live, &[]);
    assert_eq!(told(&done), (vec![], vec![], vec!["more"]), "{done}");
    live.ask(&["ctl", "stop"]);
    let (account, status) = live.end();
    assert_eq!(status, 0, "{account}");
}

/// Where entries of a file name networks, a table that `ON_START` makes of them; it gives each a number, too.
const NETWORKS: &str = r#"#include <millrace/nf.h>
PORTS(LAN, WAN);
PARAM(__u32, first, 7);
struct network { __be32 address; __u32 bits; __u32 number; };
VECTOR(networks, struct network, .capacity = 4);
LPM(table, __be32, __u32, .capacity = 8);
MAP(seen, __be32, __u64, .capacity = 65536);
ON_START()
{
	MILLRACE_ROLLED
	for (__u32 i = 0; i < 4; i++) {
		struct network *network = vector_at(&networks, i);

		if (!network || !network->address)
			continue;
		network->number = first + i;
		lpm_put(&table, &network->address, network->bits, &network->number);
	}
}
ON_PACKET(p)
{
	__be32 *source = packet_at(p, 26, __be32);
	__u64 one = 1;
	__be32 key;

	if (!source)
		return DROP;
	key = *source;
	map_put(&seen, &key, &one);
	return lpm_get(&table, &key) ? DROP : FORWARD(peer(p));
}
"#;

/// What `ON_START` completes in entries of a file and makes of them is the same whether they were there at start or came by a reload;
/// so the router's routes can change, and its interfaces have hardware addresses. The file is named by a path from the working folder.
#[test]
fn what_a_start_makes_of_entries_a_reload_makes_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    file("networks.c", NETWORKS);
    let root = root().canonicalize().unwrap();
    let capture = root.join("captures/talk.pcap");
    let up = "../".repeat(root.components().count() - 1);
    let element = "nf = \"networks.c\"\nset = { first = 7 }\nmap = { networks = \"n.csv\" }";
    for workers in of_today("numbers of workers of a reload", [1, 2], 2) {
        file(
            "n.csv",
            "0,198.51.100.0 u32:24 u32:0\n1,192.0.2.0 u32:24 u32:0\n",
        );
        let top = format!(
            "ports = [\"vnic:{}?rate=2k&depth=4096&measure=off\"]\ncores = {workers}\npackets = 300_000_000\nseconds = 60\n",
            capture.display()
        );
        let path = write(dir.path(), &top, &[element]);
        let path = format!("{up}{}", path.trim_start_matches('/'));
        let live = Live::of(dir.path(), &[&path], &[]);
        live.until(|s| s["read"].as_u64() > Some(10));
        let get = |object: &str, key: &str| {
            let (found, status) = json(&mut live.command(&["map", "get", object, key]));
            (status == 0).then(|| found["value"].clone())
        };
        let number = |key: &str| get("networks", key).unwrap()["number"].clone();
        assert_eq!((number("0"), number("1")), (7.into(), 8.into()));
        assert_eq!(get("table", "198.51.100.9"), Some(7.into()));

        file(
            "n.csv",
            "1,203.0.113.0 u32:24 u32:0\n2,192.0.2.0 u32:25 u32:0\n",
        );
        let done = reload(&live, &[]);
        // Elements of a vector that are named no more are zero.
        assert_eq!(done["entries"][0]["set"], 3, "{workers} workers: {done}");
        assert_eq!((number("1"), number("2")), (8.into(), 9.into()));
        let table = ["203.0.113.9", "192.0.2.1", "192.0.2.200", "198.51.100.9"];
        let table = table.map(|address| get("table", address));
        assert_eq!(
            table,
            [Some(8.into()), Some(9.into()), None, None],
            "{workers} workers"
        );
        // Nothing has changed since.
        assert_eq!(reload(&live, &[])["changed"], false);
        // One that does not fit is refused, and what was made of the others stays.
        file("n.csv", "9,203.0.113.0 u32:24 u32:0\n");
        refused(&mut live.command(&["ctl", "reload"]), 2);
        assert_eq!(get("table", "203.0.113.9"), Some(8.into()));
    }
}
