//! A planted conflict in each kind of object that workers can share, beside those of profile.rs: named by its line and in the kind's own
//! words, under the lock and as transactions.

use crate::common;

use common::{millrace, success};
use millrace_turns::of_today;
use serde_json::Value;

/// All packets count in one row of counters.
const SKETCH: &str = r"
#include <millrace/nf.h>

SKETCH(seen, __u32, .rows = 2, .capacity = 256);

ON_PACKET(p)
{
	__u32 key = p->port;

	return sketch_add(&seen, &key, 1) % 7 == 0 ? DROP_BECAUSE(seventh) : FLOOD; /* here */
}
";

/// Each packet puts the prefix of its port anew.
const LPM: &str = r"
#include <millrace/nf.h>

LPM(routes, __u32, __u64, .capacity = 256);

ON_PACKET(p)
{
	__u32 key = p->port;
	__u64 now = p->time;

	return lpm_put(&routes, &key, 32, &now) ? FLOOD : DROP_BECAUSE(full); /* here */
}
";

/// All packets are of one set, and change its state.
const SET: &str = r"
#include <millrace/nf.h>
#include <millrace/set.h>

PACKET_SET(flows, __u32, struct { __u64 packets; }, .capacity = 64, .expire_after = SECONDS(60));

SET_KEY(p, key)
{
	*key = 7;
	return 1;
}

ON_FIRST_PACKET(p, key)
{
	return set_open(&flows, key, &(millrace_set_state){ 1 }) ? FLOOD : DROP_BECAUSE(table_full);
}

ON_PACKET(p, key, flow)
{
	flow->packets = flow->packets * 3 + p->time; /* here */
	return FLOOD;
}

ON_ORPHAN(p)
{
	return FLOOD;
}
";

/// An XDP program whose packets all change one value of a map of this type.
fn xdp(kind: &str) -> String {
    let keyed = kind != "ARRAY";
    let (get, put) = match keyed {
        true => (
            "/* here */",
            "else\n\t\tbpf_map_update_elem(&counts, &zero, &(__u64){ 1 }, 0);",
        ),
        false => ("", ""),
    };
    let store = if keyed { "" } else { "/* here */" };
    format!(
        "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\nstruct {{\n\t__uint(type, BPF_MAP_TYPE_{kind});\n\
         \t__uint(max_entries, 4);\n\t__type(key, __u32);\n\t__type(value, __u64);\n}} counts SEC(\".maps\");\n\n\
         SEC(\"xdp\")\nint all(struct xdp_md *ctx)\n{{\n\t__u32 zero = 0;\n\
         \t__u64 *n = bpf_map_lookup_elem(&counts, &zero); {get}\n\n\
         \tif (n)\n\t\t*n = *n * 3 + 1; {store}\n\t{put}\n\treturn XDP_TX;\n}}\n\nchar _license[] SEC(\"license\") = \"GPL\";\n"
    )
}

/// What is profiled, on two workers, once.
fn profiled(file: &std::path::Path, strategy: &str) -> Value {
    let mut command = millrace();
    command.arg("profile").arg(file);
    command.args(["--in", "captures/talk.pcap", "--loops", "1", "--cores", "2"]);
    command.args(common::words(&format!(
        "--split lan=10.0.0.0/24,fd00::/8 --strategy {strategy}"
    )));
    success(&mut command)
}

/// Each of these makes a packet run alone, under either strategy: which is counted whatever else runs on the machine.
#[test]
fn a_planted_conflict_in_each_further_kind_is_named_by_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let (array, cache) = (xdp("ARRAY"), xdp("LRU_HASH"));
    let all = [
        (
            "sketch",
            SKETCH,
            "add to seen, whose counters all keys have",
            "sketch_count(&seen",
        ),
        (
            "lpm",
            LPM,
            "a put changes the prefixes of routes",
            "only if the value differs",
        ),
        (
            "array",
            &array,
            "elements of counts are written",
            "MAP(counts, …) by the same number",
        ),
        (
            "cache",
            &cache,
            "changes the order in which its entries are evicted",
            "HASH counts",
        ),
        ("set", SET, "a store changes flows", "--strategy transact"),
    ];
    for (name, source, cause, recipe) in of_today("planted conflicts of further kinds", all, 3) {
        let file = dir.path().join(format!("{name}.c"));
        std::fs::write(&file, source).unwrap();
        let at = source.lines().position(|l| l.contains("/* here */"));
        let line = format!("{name}.c:{}", at.unwrap() + 1);
        for strategy in ["lock", "transact"] {
            // Packets of a set do not run alone in transactions: whether any meet is the machine's matter.
            if name == "set" && strategy == "transact" {
                continue;
            }
            let found = profiled(&file, strategy);
            let first = &found["causes"][0];
            assert_eq!(first["line"], line.as_str(), "{name}, {strategy}: {found}");
            let said = first["cause"].as_str().unwrap();
            assert!(said.contains(cause), "{name}, {strategy}: {first}");
            let recipes = found["recipes"].as_array().unwrap();
            let helps = |r: &Value| r["to"].as_str().unwrap().contains(recipe);
            assert!(recipes.iter().any(helps), "{name}, {strategy}: {found}");
            let own = |a: &Value| a["object"].as_str().is_some_and(|o| !o.is_empty());
            let aborts = found["aborts"].as_array().unwrap();
            assert!(aborts.iter().all(own), "{name}, {strategy}: {found}");
        }
    }
}

/// Where the object says no lines, functions and instructions stand in their place, under either strategy.
#[test]
fn a_program_without_lines_is_told_by_instructions() {
    let dir = tempfile::tempdir().unwrap();
    let (source, object) = (dir.path().join("all.c"), dir.path().join("all.o"));
    std::fs::write(&source, xdp("ARRAY")).unwrap();
    let include = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let mut clang = std::process::Command::new("clang-19");
    clang.args(["-O2", "-g", "-target", "bpf", &include, "-c", "-o"]);
    assert!(clang.arg(&object).arg(&source).status().unwrap().success());
    // Types stay, lines go.
    let mut strip = std::process::Command::new("llvm-objcopy-19");
    strip.args(["--strip-debug", "--remove-section", ".BTF.ext"]);
    strip
        .args(["--remove-section", ".rel.BTF.ext"])
        .arg(&object);
    assert!(strip.status().unwrap().success());
    for strategy in ["lock", "transact"] {
        let found = profiled(&object, strategy);
        let first = &found["causes"][0];
        let line = first["line"].as_str().unwrap();
        assert!(line.starts_with("all instruction "), "{strategy}: {found}");
        assert_eq!(first["object"], "counts", "{strategy}: {found}");
        let notes = found["notes"].to_string();
        assert!(!notes.contains("run --profile"), "{strategy}: {notes}");
    }
}
