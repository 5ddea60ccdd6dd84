//! `millrace plan`: what is planned for the bundled functions and for programs of others, as a document and in
//! words, and what it refuses.

use crate::common;

use std::path::Path;

use common::{json, millrace, named, output, refused, success};
use serde_json::Value;

const FROM: &str = "source-address";
const TO: &str = "destination-address";
const FROM_PORT: &str = "source-port";
const TO_PORT: &str = "destination-port";

/// One that is pinned: function, strategy, state (object, treatment, rule), steering (port, fields of TCP).
type Pinned = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str, &'static str)],
    &'static [(&'static str, &'static [&'static str])],
);

const PINNED: &[Pinned] = &[
    ("nop", "spread", &[], &[]),
    ("sbridge", "spread", &[("stations", "spread", "none")], &[]),
    ("bridge", "lock", &[("stations", "lock", "R4")], &[]),
    (
        "policer",
        "shard",
        &[("buckets", "shard", "R1")],
        &[("WAN", &[TO])],
    ),
    (
        "firewall",
        "shard",
        &[("flows", "shard", "R1")],
        &[
            ("LAN", &[FROM, TO, FROM_PORT, TO_PORT]),
            ("WAN", &[FROM, TO, FROM_PORT, TO_PORT]),
        ],
    ),
    (
        "nat",
        "shard",
        &[("leases", "shard", "R6"), ("flows", "shard", "R2")],
        &[
            ("LAN", &[FROM, TO, FROM_PORT, TO_PORT]),
            ("WAN", &[TO_PORT]),
        ],
    ),
    (
        "einat",
        "shard",
        &[
            ("udp_mappings", "shard", "R1"),
            ("tcp_mappings", "shard", "R2"),
            ("udp_leases0", "shard", "R6"),
            ("udp_leases3", "shard", "R6"),
            ("tcp_leases0", "shard", "R6"),
            ("tcp_leases3", "shard", "R6"),
        ],
        &[("LAN", &[FROM, FROM_PORT]), ("WAN", &[TO_PORT])],
    ),
    (
        "cl",
        "shard",
        &[("opened", "shard", "R1"), ("flows", "shard", "R2")],
        &[("LAN", &[FROM, TO])],
    ),
    ("psd", "shard", &[], &[("WAN", &[FROM])]),
    (
        "hhh",
        "shard",
        &[
            ("large", "shard", "R1"),
            ("middling", "shard", "R2"),
            ("small", "shard", "R2"),
        ],
        &[("WAN", &[FROM])],
    ),
    (
        "portknock",
        "shard",
        &[("sources", "shard", "R1")],
        &[("*", &[FROM])],
    ),
];

fn planned(nf: &str) -> Value {
    success(millrace().args(["plan", nf, "--time", "120"]))
}

#[test]
fn the_bundled_functions_are_planned_as_they_are_pinned() {
    for (nf, strategy, objects, ports) in PINNED {
        let d = planned(nf);
        assert_eq!(
            (&d["name"], &d["exhaustive"]),
            (&Value::from(*nf), &Value::from(true))
        );
        assert_eq!(d["strategy"], *strategy, "{nf}");
        for (name, treatment, rule) in *objects {
            let o = named(&d["objects"], name);
            assert_eq!(o["treatment"], *treatment, "{nf} {name}: {o}");
            assert_eq!(o["rule"], *rule, "{nf} {name}: {o}");
            assert!(!o["reason"].as_str().unwrap().is_empty());
        }
        for (port, fields) in *ports {
            let kinds = &named(&d["ports"], port)["kinds"];
            let mut kinds = kinds.as_array().unwrap().iter();
            let tcp = kinds.find(|k| k["kind"] == "ipv4-tcp").unwrap();
            assert_eq!(tcp["fields"], Value::from(fields.to_vec()), "{nf} {port}");
            assert_eq!(
                (&tcp["by"], &tcp["bound"]),
                (&Value::from("nic"), &Value::from(true))
            );
            assert_eq!(tcp["table_rank"], 7, "{nf} {port}");
            assert!(
                tcp["guess"]["entry_bits"].as_u64().unwrap() >= 1,
                "{nf} {port}"
            );
        }
    }
}

/// Flows meet their packets on one core; backends and the table that spreads over them are changed by a timer.
#[test]
fn the_load_balancer_shards_its_flows_and_locks_its_backends() {
    let d = planned("lb");
    assert_eq!(d["strategy"], "mixed");
    let flows = named(&d["objects"], "flows");
    assert_eq!(
        (&flows["treatment"], &flows["rule"]),
        (&"shard".into(), &"R1".into())
    );
    for name in ["backends", "slots", "progress", "table", "walks"] {
        let o = named(&d["objects"], name);
        assert_eq!(
            (&o["treatment"], &o["rule"]),
            (&"lock".into(), &"R4".into()),
            "{name}"
        );
        assert!(
            o["reason"]
                .as_str()
                .unwrap()
                .contains("which no packet starts"),
            "{o}"
        );
    }
    success(millrace().args(common::words(
        "verify lb --in captures/talk.pcap --cores 1,2,4",
    )));
}

#[test]
fn the_document_has_the_fields_that_are_promised() {
    let d = planned("policer");
    for (at, fields) in [
        (
            "",
            &[
                "name",
                "strategy",
                "cores",
                "nic",
                "exhaustive",
                "relaxations",
                "assumptions",
                "took_ms",
                "keys_ms",
            ][..],
        ),
        (
            "/objects/0",
            &["name", "treatment", "rule", "reason", "line", "infeasible"],
        ),
        ("/ports/0", &["name", "kinds", "inside", "key_space"]),
        (
            "/ports/1/kinds/0",
            &[
                "kind",
                "by",
                "bound",
                "fields",
                "cancelled",
                "rank",
                "table_rank",
            ],
        ),
        ("/relaxations/0", &["name", "object", "meaning"]),
    ] {
        let there = d.pointer(at).unwrap().as_object().unwrap();
        for f in fields {
            assert!(there.contains_key(*f), "{at}: no {f}");
        }
    }
}

#[test]
fn words_say_what_the_document_says() {
    let (out, _) = output(millrace().args(["plan", "policer", "--time", "120"]));
    assert_eq!(out.status.code(), Some(0));
    let text = String::from_utf8(out.stdout).unwrap();
    for says in [
        "policer: shard on 16 cores (generic)",
        "buckets: shard (R1)",
        "policer.c:",
        "by destination address; the key cancels source address",
        "rank 7 of the table's index, ",
        "to guess for an entry",
        "capacity of buckets:",
    ] {
        assert!(text.contains(says), "no `{says}` in\n{text}");
    }
    let (out, _) = output(millrace().args(["plan", "bridge"]));
    let text = String::from_utf8(out.stdout).unwrap();
    let help = "help: make the table static";
    assert!(
        text.contains("stations: lock (R4)") && text.contains(help),
        "{text}"
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let no = refused(
        millrace().args(["plan", "bridge", "--strategy", "shard"]),
        1,
    );
    assert!(no.contains("MAC address"), "{no}");
    let no = refused(
        millrace().args(["plan", "nop", "--cores", "17", "--nic", "82599"]),
        2,
    );
    assert!(no.contains("16 queues"), "{no}");
    let no = refused(millrace().args(["plan", "nop", "--cores", "129"]), 2);
    assert!(no.contains("128"), "{no}");
    for wrong in [
        &["plan", "nop", "--nic", "e1000"][..],
        &["plan", "nop", "--cores", "0"],
        &["plan", "nop", "--cores", "many"],
        &["plan", "nop", "--strategy", "fast"],
        &["plan", "nowhere"],
        &["plan"],
    ] {
        let (out, text) = output(millrace().args(wrong));
        assert_eq!(out.status.code(), Some(2), "{wrong:?}: {text}");
        assert!(text.contains("error"), "{wrong:?}: {text}");
    }
}

#[test]
fn a_model_that_is_cut_short_shards_nothing() {
    // What others have followed takes no time.
    let own = tempfile::tempdir().unwrap();
    let mut command = millrace();
    command.env("MILLRACE_CACHE", own.path().join("cache"));
    let d = success(command.args(["plan", "policer", "--time", "0"]));
    assert_eq!(
        (&d["exhaustive"], &d["strategy"]),
        (&Value::from(false), &Value::from("lock"))
    );
    let reason = named(&d["objects"], "buckets")["reason"].as_str().unwrap();
    assert!(reason.contains("not all paths"), "{reason}");
}

#[test]
fn objects_of_others_are_planned() {
    let Some(folder) = std::env::var_os("MILLRACE_OBJECTS") else {
        println!("skipped: plans of public objects, MILLRACE_OBJECTS names no folder of them");
        return;
    };
    let folder = Path::new(&folder);
    let shape = ["--capacity", "*=64"];
    let (found, _) = json(millrace().arg("check").arg(folder).args(shape));
    let mut strategies = std::collections::BTreeMap::new();
    for o in found["objects"].as_array().unwrap() {
        if o["packets"] == false || o["admitted"] == false {
            continue;
        }
        let file = folder.join(o["file"].as_str().unwrap());
        let (check, _) = json(millrace().arg("check").arg(&file).args(shape));
        for entry in check["entries"].as_array().unwrap() {
            if entry["role"] != "xdp" {
                continue;
            }
            let program = entry["function"].as_str().unwrap();
            let mut command = millrace();
            command.arg("plan").arg(&file).args(shape);
            let d = success(command.args(["--program", program]));
            for o in d["objects"].as_array().unwrap() {
                assert!(!o["reason"].as_str().unwrap().is_empty(), "{o}");
                // Nothing is divided of which the paths do not cover all executions.
                assert!(d["covers"] == true || o["treatment"] != "shard", "{o}");
            }
            let strategy = d["strategy"].as_str().unwrap().to_owned();
            *strategies.entry(strategy).or_insert(0) += 1;
        }
    }
    println!("{strategies:?}");
    assert!(
        strategies.values().sum::<u32>() > 0,
        "no program in {}",
        folder.display()
    );
}

#[test]
fn what_a_plan_means_on_several_machines() {
    let of = |nf: &str, words: &[&str]| {
        let mut command = millrace();
        command.args(["plan", nf, "--nodes", "3"]).args(words);
        json(&mut command).0["nodes"].take()
    };
    let room = |nodes: &Value, object: &str| {
        let rooms = nodes["capacity"].as_array().unwrap();
        let room = rooms.iter().find(|r| r["object"] == object).unwrap();
        [&room["each"], &room["all"]].map(|n| n.as_u64().unwrap())
    };
    // With one core each, too.
    for cores in ["1", "4"] {
        let nat = of("nfs/nat", &["--cores", cores]);
        let (all, most) = (nat["buckets"][0].as_u64(), nat["buckets"][1].as_u64());
        assert_eq!(nat["divided"], "buckets", "{nat:#}");
        assert_eq!(most, all.map(|all| all.div_ceil(3)), "{nat:#}");
        assert!((nat["forwarded"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9);
        // A machine may have all flows, and all machines one set of numbers.
        assert_eq!(room(&nat, "flows"), [64512, 3 * 64512]);
        let [each, all] = room(&nat, "leases");
        assert!(all == 64512 && each > all / 4 && each < all / 2, "{nat:#}");
    }
    let nop = of("nfs/nop", &[]);
    assert_eq!(
        (&nop["divided"], &nop["forwarded"]),
        (&"anywhere".into(), &0.0.into())
    );
    let bridge = of("nfs/bridge", &[]);
    assert_eq!(bridge["divided"], "no");
    let why = bridge["why"].as_str().unwrap();
    assert!(why.contains("`stations` is lock"), "{why}");
    let mut command = millrace();
    command.args(["plan", "nfs/firewall", "--nodes", "2"]);
    let said = output(&mut command).0.stdout;
    let said = String::from_utf8(said).unwrap();
    assert!(
        said.contains("50 % of packets come to another machine"),
        "{said}"
    );
}
