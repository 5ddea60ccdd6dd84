//! docs/json.md against the documents themselves: every field that a verb prints stands there with its type, and
//! every field that stands there is printed, but for those that are there *sometimes*.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::markdown::split;
use crate::common::{millrace, root};

/// Objects whose members have names that are not fixed.
const FREE: [&str; 6] = [
    "reasons",
    "letters",
    "records",
    "relaxations",
    "took",
    "mix",
];

/// Paths whose inside is described elsewhere, by section.
const ELSEWHERE: [(&str, &str); 11] = [
    ("verify", "runs[].differences[]"),
    ("check FOLDER", "objects[].refusals[]"),
    ("map list", "objects[].key"),
    ("map list", "objects[].value"),
    ("map export", "[].key"),
    ("map export", "[].value"),
    ("model", "objects[].at_most[]"),
    ("bench", "limit[]"),
    ("model", "check"),
    ("ctl trace", "packets[]"),
    ("ctl profile", "profiles[]"),
];

type Types = BTreeMap<String, BTreeSet<&'static str>>;

/// Gathers the paths of what is neither object nor list, with their types.
fn gather(value: &Value, path: &str, types: &mut Types) {
    let kind = match value {
        Value::Object(members) => {
            let free = FREE.contains(&path.rsplit('.').next().unwrap());
            for (name, member) in members {
                let path = match (free, path.is_empty()) {
                    (true, _) => format!("{path}{{}}"),
                    (false, true) => name.clone(),
                    (false, false) => format!("{path}.{name}"),
                };
                gather(member, &path, types);
            }
            return;
        }
        Value::Array(members) => {
            for member in members {
                gather(member, &format!("{path}[]"), types);
            }
            return;
        }
        Value::String(_) => "text",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Null => "null",
    };
    types.entry(path.to_owned()).or_default().insert(kind);
}

/// Runs a command with `--json`, and gives its document.
fn document(words: &str) -> Value {
    let words = shell_words::split(words).unwrap();
    let output = millrace().args(&words).arg("--json").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{words:?}: {e}\n{said}"))
}

/// The tables of the page: by section, the type of each field.
fn described() -> BTreeMap<String, BTreeMap<String, String>> {
    let text = std::fs::read_to_string(root().join("docs/json.md")).unwrap();
    let mut sections: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut section = String::new();
    for (number, line) in split(&text).1 {
        if let Some(name) = line.strip_prefix("## ") {
            section = name.to_owned();
            sections.insert(section.clone(), BTreeMap::new());
        }
        let mut cells = line.split('|').map(str::trim).skip(1);
        if let (Some(field), Some(kind)) = (cells.next(), cells.next())
            && let Some(field) = field.strip_prefix('`').and_then(|f| f.strip_suffix('`'))
        {
            let fields = sections.get_mut(&section).unwrap();
            let before = fields.insert(field.to_owned(), kind.to_owned());
            assert!(before.is_none(), "line {number}: {field} stands twice");
        }
    }
    sections
}

/// What differs between documents and the table of a section.
fn compare(section: &str, documents: &[Value], table: &BTreeMap<String, String>) -> Vec<String> {
    let mut types = Types::new();
    for document in documents {
        gather(document, "", &mut types);
    }
    let elsewhere = |path: &str| {
        let all = ELSEWHERE.iter().filter(|(s, _)| *s == section);
        { all }.any(|(_, prefix)| path.starts_with(prefix))
    };
    let mut wrong = Vec::new();
    for (path, kinds) in &types {
        if elsewhere(path) {
            continue;
        }
        let Some(kind) = table.get(path) else {
            wrong.push(format!("{section}: `{path}` ({kinds:?}) is not described"));
            continue;
        };
        let kind = kind.strip_prefix("sometimes ").unwrap_or(kind);
        let told: BTreeSet<&str> = kind.split(" or ").collect();
        if !kinds.is_subset(&told) {
            wrong.push(format!("{section}: `{path}` is {kinds:?}, not {kind}"));
        }
    }
    for (path, kind) in table {
        let there = types.contains_key(path) || elsewhere(path);
        if !there && !kind.starts_with("sometimes ") {
            wrong.push(format!("{section}: `{path}` is not printed"));
        }
    }
    wrong
}

/// Commands that need no run beside them, by section.
const COMMANDS: [(&str, &[&str]); 23] = [
    ("Errors", &["check no-such-function"]),
    (
        "check",
        &[
            "check policer",
            "check crates/check/tests/refused/unchecked_lookup.c",
        ],
    ),
    ("check FOLDER", &["check crates/object/tests/programs"]),
    ("model", &["model nat", "model policer"]),
    (
        "plan",
        &[
            "plan nat --cores 4",
            "plan policer --cores 4",
            "plan nat --nodes 3",
            "plan bridge --nodes 3",
            "plan crates/millrace/tests/slow/everything.click --cores 4",
        ],
    ),
    (
        "run",
        &[
            "run firewall nop --in captures/talk.pcap --split lan=10.0.0.0/24 --out OUT --sample 1/2 --export ipfix:127.0.0.1:4739",
            "run crates/millrace/tests/slow/everything.click --in captures/talk.pcap --out OUT",
            "run policer --cores 2 --in captures/talk.pcap --split lan=10.0.0.0/24 --out OUT",
        ],
    ),
    (
        "chain",
        &[
            "chain chains/napts/napts-10.click",
            "chain chains/routers/routers-1.click",
            "chain chains/routers/hops-10.click",
            "chain chains/acl/acl-251.click",
        ],
    ),
    ("chain FILE.toml", &["chain chains/example/row.toml"]),
    (
        "chain --compare",
        &[
            "chain chains/routers/routers-1.click --compare --random 100",
            "chain chains/routers/hops-10.click --compare --random 100",
        ],
    ),
    (
        "chain --target openflow",
        &[
            "chain chains/acl/acl-251.click --target openflow --in captures/talk.pcap",
            "chain chains/routers/routers-1.click --target openflow --assume headers,options,padding,mtu",
            "chain chains/napts/napts-1.click --target openflow --server 11,12 --server 13,14*3",
        ],
    ),
    (
        "chain --target click",
        &["chain chains/routers/routers-1.click --target click"],
    ),
    ("test", &["test policer"]),
    (
        "verify",
        &[
            "verify policer --cores 2 --in captures/talk.pcap --split lan=10.0.0.0/24",
            "verify policer --cores 4 --in captures/talk.pcap --split lan=10.0.0.0/24 \
             --steer LAN:nic=software --steer 'WAN:nic=software&fields=source-address'",
            "verify policer+nop --cores 1 --in captures/talk.pcap --split lan=10.0.0.0/24",
        ],
    ),
    (
        "profile",
        &[
            "profile einat --in captures/talk.pcap --split lan=10.0.0.0/24 --strategy lock",
            "profile policer --in captures/talk.pcap --split lan=10.0.0.0/24 --strategy shard --try --turns 3",
        ],
    ),
    (
        "explain",
        &[
            "explain firewall --in captures/talk.pcap --split lan=10.0.0.0/24 --where 'drop no_flow'",
            "explain nat --in captures/talk.pcap --split lan=10.0.0.0/24 --where 'forward WAN and udp'",
            "explain policer --in captures/talk.pcap --split lan=10.0.0.0/24 --packet 40",
        ],
    ),
    (
        "bench",
        &["bench nop --in captures/talk.pcap --memory --repeat 1 --trial 0.01"],
    ),
    ("build", &["build nop -o FOLDER"]),
    ("emit", &["emit nop"]),
    (
        "sequence",
        &["sequence ddos --in tests/sequencer/traffic.pcap --out OUT"],
    ),
    (
        "sequence --check",
        &["sequence ddos --check tests/sequencer/ddos.pcap"],
    ),
    ("trace gen", &["trace gen --packets 100 -o OUT"]),
    ("trace acl", &["trace acl --rules 50 -o OUT"]),
    ("trace info", &["trace info captures/talk.pcap"]),
];

/// Questions to a run, in order, by section.
const QUESTIONS: [(&str, &str); 11] = [
    ("map list", "map list"),
    ("map export", "map export buckets"),
    ("ctl params", "ctl params"),
    ("ctl set", "ctl set rate=1000"),
    ("ctl trace", "ctl trace --count 2"),
    ("ctl profile", "ctl profile --seconds 0.1"),
    ("ctl stats", "ctl stats"),
    ("ctl chain show", "ctl chain show"),
    ("top", "top"),
    ("map clear", "map clear buckets"),
    ("ctl stop", "ctl stop"),
];

/// Asks a run of firewall and policer over a capture in memory.
fn asked() -> Vec<(&'static str, Value)> {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("run.sock");
    let capture = folder.path().join("in.pcap");
    // Only answers to the LAN come by, so that the policer keeps entries.
    std::fs::copy(root().join("captures/talk.pcap"), &capture).unwrap();
    let mut run: Command = millrace();
    run.args(["run", "firewall", "policer", "--split", "lan=10.0.0.0/24"])
        .args(["--seconds", "60", "--in"])
        .arg(format!("mem:{}", capture.display()))
        .arg("--control")
        .arg(&socket)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut run = run.spawn().unwrap();
    let ask = |words: &str| document(&format!("{words} --control '{}'", socket.display()));
    // Until its first packet has come state cannot be asked for.
    let begun = (0..600).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let stats = socket.exists().then(|| ask("ctl stats"));
        stats.is_some_and(|s| s["accounts"][0]["started"] == true)
    });
    assert!(begun, "the run answers");
    let answers = QUESTIONS.map(|(section, words)| (section, ask(words)));
    run.wait().unwrap();
    answers.into()
}

#[test]
fn every_field_is_described() {
    let described = described();
    let folder = tempfile::tempdir().unwrap();
    let place = |words: &str| {
        words
            .replace("OUT", &folder.path().join("out.pcapng").to_string_lossy())
            .replace("FOLDER", &folder.path().join("bundle").to_string_lossy())
    };
    let mut wrong = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (section, commands) in COMMANDS {
        seen.insert(section);
        let documents: Vec<Value> = commands.iter().map(|c| document(&place(c))).collect();
        wrong.extend(compare(section, &documents, &described[section]));
    }
    seen.insert("doctor");
    wrong.extend(compare(
        "doctor",
        &[document("doctor")],
        &described["doctor"],
    ));
    for (section, mut answer) in asked() {
        seen.insert(section);
        if section == "ctl stats" {
            // What an account has is described once.
            let run = &described["run"];
            let mut types = Types::new();
            let started = described[section].clone();
            for account in answer["accounts"].as_array_mut().unwrap() {
                account.as_object_mut().unwrap().remove("started");
                gather(account, "", &mut types);
            }
            assert!(started.contains_key("accounts[].started"));
            let missing = types.keys().filter(|p| !run.contains_key(*p));
            wrong.extend(missing.map(|p| format!("ctl stats: `{p}` is not described in run")));
            continue;
        }
        wrong.extend(compare(section, &[answer], &described[section]));
    }
    // Which other runs there are depends on the machine.
    seen.insert("ctl runs");
    let sections: BTreeSet<&str> = described.keys().map(String::as_str).collect();
    let unseen: Vec<&&str> = sections.difference(&seen).collect();
    assert!(unseen.is_empty(), "docs/json.md: no command for {unseen:?}");
    assert!(wrong.is_empty(), "docs/json.md:\n{}", wrong.join("\n"));
}
