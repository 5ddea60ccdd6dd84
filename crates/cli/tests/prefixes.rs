//! Prefixes of a handler's `LPM` that come from outside: from a file at the start, and while the function runs.

use crate::common;
use crate::common::live;

use std::path::Path;

use common::{capture, json, millrace, output, refused, success};
use live::{Live, from};
use serde_json::{Value, json as document};

/// Drops what no prefix covers, and counts nothing: packets only look. One table has IPv4 addresses, one those of both families.
fn program(folder: &Path) -> String {
    let source = r#"#include <millrace/nf.h>
PORTS(IN, OUT);
LPM(narrow, __be32, __u32, .capacity = 4);
LPM(wide, struct address, __u32, .capacity = 4);
ON_PACKET(p)
{
	__be32 *source = packet_at(p, 26, __be32);
	struct address address;
	__be32 key;
	__u32 *found;

	if (!source)
		return DROP;
	key = *source;
	address = address_from_ipv4(key);
	found = lpm_get(&narrow, &key);
	if (!found)
		found = lpm_get(&wide, &address);
	return found && *found ? FORWARD(peer(p)) : DROP;
}
"#;
    let path = folder.join("prefixes.c");
    std::fs::write(&path, source).unwrap();
    path.display().to_string()
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Sources in 10/8, 10.1/16, 10.1.2/24 and elsewhere.
const SOURCES: [[u8; 4]; 4] = [[10, 9, 9, 9], [10, 1, 9, 9], [10, 1, 2, 9], [192, 0, 2, 1]];

#[test]
fn prefixes_of_a_file_are_there_at_the_start_on_every_number_of_workers() {
    let dir = tempfile::tempdir().unwrap();
    let nf = program(dir.path());
    let input = dir.path().join("in.pcap");
    let packets = SOURCES.iter().zip(0..).map(|(s, i)| (1000 + i, from(*s)));
    capture(&input, &packets.collect::<Vec<_>>());
    let run = |cores: &str, maps: &[&str]| -> Value {
        let mut command = millrace();
        command.args(["run", &nf, "--out", "null:", "--control", "none"]);
        command.args(["--cores", cores]).arg("--in").arg(&input);
        for map in maps {
            command.args(["--map", map]);
        }
        let account = success(&mut command);
        account["forwarded"].clone()
    };
    let narrow = file(
        dir.path(),
        "narrow.csv",
        "10.0.0.0/8,1\n10.1.0.0/16,0\n10.1.2.0/24,1\n",
    );
    let narrow = format!("narrow={narrow}");
    let wide = file(
        dir.path(),
        "wide.json",
        r#"[{"key": "192.0.2.0/24", "value": 1}, {"key": "2001:db8::/32", "value": 1}]"#,
    );
    let wide = format!("wide={wide}");
    for cores in ["1", "3"] {
        assert_eq!(run(cores, &[]), 0);
        assert_eq!(run(cores, &[&narrow]), 2, "the longest prefix decides");
        assert_eq!(run(cores, &[&narrow, &wide]), 3);
    }
    for (text, what) in [
        (
            "10.0.0.0/33,1\n",
            "a prefix of 33 bits, where 32 are the most",
        ),
        ("10.0.0.0/x,1\n", "a number of bits"),
        (
            "1.0.0.0/8,1\n2.0.0.0/8,1\n3.0.0.0/8,1\n4.0.0.0/8,1\n5.0.0.0/8,1\n",
            "4 entries and no more",
        ),
    ] {
        let map = format!("narrow={}", file(dir.path(), "wrong.csv", text));
        let mut command = millrace();
        command.args(common::words(&format!(
            "run {nf} --out null: --control none --map {map}"
        )));
        let said = refused(command.arg("--in").arg(&input), 2);
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn prefixes_are_set_listed_and_deleted_with_their_length_while_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let nf = program(dir.path());
    let input = dir.path().join("loop.pcap");
    capture(&input, &[(1000, from([10, 1, 2, 9]))]);
    let input = format!("mem:{}", input.display());
    let words = ["--in", &input, "--out", "null:", "--seconds", "600"];
    let live = Live::of(dir.path(), &[&nf], &words);
    live.until(|stats| stats["read"].as_u64() > Some(0));
    let set = |key: &str, value: &str| live.ask(&["map", "set", "narrow", key, value]);
    let get = |key: &str| {
        let (found, status) = json(&mut live.command(&["map", "get", "narrow", key]));
        (status == 0).then(|| found["value"].clone())
    };
    let count = |name: &str| live.stats()[name].as_u64().unwrap();
    assert_eq!(set("10.1.2.3/8", "1")["set"], 1);
    let forwarded = count("forwarded");
    live.until(|stats| stats["forwarded"].as_u64() > Some(forwarded + 100));
    assert_eq!(set("10.1.0.0/16", "0")["set"], 1);
    let forwarded = count("forwarded");
    let dropped = count("dropped");
    live.until(|stats| stats["dropped"].as_u64() > Some(dropped + 100));
    assert_eq!(count("forwarded"), forwarded, "the longer prefix decides");
    // An address finds the longest prefix, a prefix none that is longer than it.
    assert_eq!(get("10.1.2.9"), Some(0.into()));
    assert_eq!(get("10.200.0.1"), Some(1.into()));
    assert_eq!(get("10.0.0.0/8"), Some(1.into()));
    assert_eq!(get("10.0.0.0/7"), None);
    // What is listed says the length, and is read again.
    let listed = live.ask(&["map", "export", "narrow"]);
    let mut keys: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["key"].clone())
        .collect();
    keys.sort_by_key(Value::to_string);
    assert_eq!(document!(keys), document!(["10.0.0.0/8", "10.1.0.0/16"]));
    // One that is covered but not there is not deleted, and nothing else is.
    let (gone, _) = output(&mut live.command(&["map", "delete", "narrow", "10.1.2.0/24"]));
    assert_eq!(gone.status.code(), Some(1));
    assert_eq!(live.ask(&["map", "show", "narrow"])["entries"], 2);
    // All of a file or none: what was set before the line that is refused is taken back.
    let five = "10.1.2.0/24,1\n11.0.0.0/8,1\n12.0.0.0/8,1\n";
    let five = file(dir.path(), "five.csv", five);
    let said = refused(&mut live.command(&["map", "import", "narrow", &five]), 1);
    assert!(said.contains("4 entries and no more"), "{said}");
    assert_eq!(live.ask(&["map", "export", "narrow"]), listed);
    assert_eq!(get("10.1.2.9"), Some(0.into()));
    assert_eq!(
        live.ask(&["map", "delete", "narrow", "10.1.0.0/16"])["deleted"],
        1
    );
    assert_eq!(get("10.1.2.9"), Some(1.into()));
    live.ask(&["map", "set", "wide", "2001:db8::/32", "7"]);
    live.ask(&["map", "set", "wide", "192.0.2.0/24", "8"]);
    let (found, _) = json(&mut live.command(&["map", "get", "wide", "192.0.2.77"]));
    assert_eq!(found["value"], 8, "{found}");
    let saved = file(
        dir.path(),
        "saved.json",
        &live.ask(&["map", "export", "wide"]).to_string(),
    );
    assert_eq!(live.ask(&["map", "clear", "wide"])["deleted"], 2);
    assert_eq!(live.ask(&["map", "import", "wide", &saved])["set"], 2);
    let (found, _) = json(&mut live.command(&["map", "get", "wide", "2001:db8:1::1"]));
    assert_eq!(found["value"], 7, "{found}");
    live.ask(&["ctl", "stop"]);
}
