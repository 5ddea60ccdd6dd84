//! docs/measurements/strangers.md against the objects themselves, which are those in the folder $MILLRACE_OBJECTS; none
//! is part of this repository. MILLRACE_BLESS=1 writes the table; what its last column says is kept.

use crate::common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{GENERATED, generated, json, millrace, root};
use serde_json::Value;

/// Workers that each plan is verified with.
const CORES: &str = "4";
/// What the command may take for one program, by its own account; in seconds.
const BUDGET: &str = "60";
/// How long it is waited for.
const PATIENCE: Duration = Duration::from_secs(240);

/// What is said of one program.
struct Row {
    object: String,
    program: String,
    model: &'static str,
    strategy: String,
    /// by treatment, what is treated so; constants and settings left out
    state: String,
    /// it keeps state by flow or address
    keeps: bool,
    /// why it is not spread or sharded, with the line
    because: String,
    verified: String,
}

/// Objects that hold settings and text rather than state.
fn is_state(object: &Value) -> bool {
    let name = object["name"].as_str().unwrap();
    !name.starts_with(".rodata")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// What a command says, its document and its text; none if it does not end. It must not end by a signal.
fn within(command: &mut Command) -> Option<(Option<Value>, String)> {
    let folder = tempfile::tempdir().unwrap();
    let (out, err) = (folder.path().join("out"), folder.path().join("err"));
    let to = |path| Stdio::from(std::fs::File::create(path).unwrap());
    let mut child = command
        .args(["--budget-time", BUDGET, "--json"])
        .stdout(to(&out))
        .stderr(to(&err))
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if begin.elapsed() > PATIENCE => {
                child.kill().unwrap();
                child.wait().unwrap();
                return None;
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let text = std::fs::read_to_string(err).unwrap();
    assert!(
        status.code().is_some() && !text.contains("panicked"),
        "{command:?}: {status}\n{text}"
    );
    let document = std::fs::read(out).unwrap();
    Some((serde_json::from_slice(&document).ok(), text))
}

/// Words for fields by which flows and addresses are told apart, as models have them.
const FIELDS: [&str; 8] = [
    "ip.src", "ip.dst", "ip6.src", "ip6.dst", ".sport", ".dport", "eth.src", "eth.dst",
];

/// Whether packets write, and do not only add to, an object under a key with fields of theirs: state by flow or address.
/// Of a model that is bounded not every key is known: tables that are found by a key count.
fn keeps_by_key(file: &Path, program: &str) -> bool {
    let shape = ["--capacity", "*=64", "--program", program];
    let said = within(millrace().arg("model").arg(file).args(shape));
    let Some((Some(model), _)) = said else {
        return true;
    };
    let covers = model["covers"] == true;
    model["objects"].as_array().unwrap().iter().any(|o| {
        let keys = o["keys"].as_array().unwrap();
        let mut keys = keys.iter().filter_map(Value::as_str);
        let kind = o["kind"].as_str().unwrap();
        let table = kind.contains("hash") || kind.contains("lpm");
        let by = |key: &str| FIELDS.iter().any(|f| key.contains(f));
        o["access"] == "read-write" && (keys.any(by) || (!covers && table))
    })
}

fn plan(file: &Path, object: &str, program: &str) -> Row {
    let shape = ["--capacity", "*=64", "--program", program, "--cores", CORES];
    let said = within(millrace().arg("plan").arg(file).args(shape));
    let Some((Some(plan), _)) =
        said.filter(|s| s.0.as_ref().is_some_and(|p| p["strategy"].is_string()))
    else {
        panic!("{object} {program}: there is no plan");
    };
    let model = match (plan["exhaustive"].as_bool(), plan["covers"].as_bool()) {
        (Some(true), _) => "exhaustive",
        (_, Some(true)) => "covers",
        _ => "bounded",
    };
    let mut state: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut because = Vec::new();
    for o in plan["objects"].as_array().unwrap() {
        let (name, treatment) = (
            o["name"].as_str().unwrap(),
            o["treatment"].as_str().unwrap(),
        );
        if is_state(o) {
            state.entry(treatment).or_default().push(name);
        }
        if matches!(treatment, "lock" | "alone") {
            let line = o["line"]
                .as_str()
                .map_or(String::new(), |l| format!("{l}: "));
            because.push(format!("{line}{}", o["reason"].as_str().unwrap()));
        }
    }
    let sharded = state.contains_key("shard");
    let state = state
        .iter()
        .map(|(treatment, names)| format!("{treatment}: {}", names.join(", ")));
    let strategy = plan["strategy"].as_str().unwrap().to_owned();
    Row {
        object: object.to_owned(),
        program: program.to_owned(),
        model,
        keeps: sharded || (strategy != "spread" && keeps_by_key(file, program)),
        strategy,
        state: cell(&state.collect::<Vec<_>>().join("; ")),
        // One reason is most often the reason of all.
        because: cell(because.first().map_or("", String::as_str)),
        verified: verify(file, program),
    }
}

fn verify(file: &Path, program: &str) -> String {
    let mut command = millrace();
    command
        .arg("verify")
        .arg(file)
        .args(["--capacity", "*=64", "--program", program, "--cores", CORES])
        .args(["--in", "captures/talk.pcap"]);
    let Some((document, text)) = within(&mut command) else {
        return "does not end".to_owned();
    };
    match document.and_then(|d| d["equal"].as_bool()) {
        Some(true) => "equal".to_owned(),
        Some(false) => "DIFFERS".to_owned(),
        None if text.contains("runs on one core") => "one core".to_owned(),
        None => {
            let said = text
                .lines()
                .find(|l| l.starts_with("error: "))
                .unwrap_or("error: ?");
            cell(said.trim_start_matches("error: "))
        }
    }
}

/// What is said of one object: a row a program, or the rule that refuses it.
fn of_object(folder: &Path, found: &Value) -> Result<Vec<Row>, (String, String)> {
    let file = found["file"].as_str().unwrap();
    let object = file.trim_end_matches(".o");
    if found["admitted"] == false {
        let rule = found["refusals"][0]["rule"]
            .as_str()
            .unwrap_or("not loaded");
        return Err((rule.to_owned(), object.to_owned()));
    }
    let path = folder.join(file);
    let (check, _) = json(
        millrace()
            .arg("check")
            .arg(&path)
            .args(["--capacity", "*=64"]),
    );
    let entries = check["entries"].as_array().unwrap().iter();
    let programs = entries.filter(|e| e["role"] == "xdp");
    let rows = programs.map(|e| plan(&path, object, e["function"].as_str().unwrap()));
    Ok(rows.collect())
}

/// What the document says in its last column, by object and program.
fn opinions() -> BTreeMap<(String, String), String> {
    let text = std::fs::read_to_string(root().join("docs/measurements/strangers.md")).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        match cells.as_slice() {
            [object, program, _, _, _, _, _, _, said] => Some((
                ((*object).to_owned(), (*program).to_owned()),
                (*said).to_owned(),
            )),
            _ => None,
        }
    };
    text.lines().filter_map(row).collect()
}

fn table(folder: &Path) -> String {
    let (found, _) = json(
        millrace()
            .arg("check")
            .arg(folder)
            .args(["--capacity", "*=64"]),
    );
    let objects = found["objects"].as_array().unwrap();
    let objects: Vec<&Value> = objects.iter().filter(|o| o["packets"] != false).collect();
    let next = AtomicUsize::new(0);
    let all = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(object) = objects.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let file = object["file"].as_str().unwrap().to_owned();
                    let rows = of_object(folder, object);
                    eprintln!(
                        "{} of {}: {file}",
                        all.lock().unwrap().len() + 1,
                        objects.len()
                    );
                    all.lock().unwrap().insert(file, rows);
                }
            });
        }
    });
    let (mut rows, mut refused) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
    for found in all.into_inner().unwrap().into_values() {
        match found {
            Ok(more) => rows.extend(more),
            Err((rule, object)) => refused.entry(rule).or_default().push(object),
        }
    }
    let count = |of: &dyn Fn(&Row) -> String| {
        let mut counts = BTreeMap::new();
        for r in &rows {
            *counts.entry(of(r)).or_insert(0) += 1;
        }
        let counts: Vec<String> = counts
            .iter()
            .filter(|(s, _)| !s.is_empty())
            .map(|(s, n)| format!("{n} {s}"))
            .collect();
        counts.join(", ")
    };
    let strategies = count(&|r| r.strategy.clone());
    let by_key = count(&|r| match (r.keeps, r.state.contains("shard: ")) {
        (false, _) => String::new(),
        (true, true) => format!("{} with a table that is sharded", r.strategy),
        (true, false) => r.strategy.clone(),
    });
    let verified = count(&|r| match r.verified.as_str() {
        "equal" | "DIFFERS" | "one core" | "does not end" => r.verified.clone(),
        _ => "cannot be run so".to_owned(),
    });
    let none: usize = refused.values().map(Vec::len).sum();
    let keeping = rows.iter().filter(|r| r.keeps).count();
    let opinions = opinions();
    let mut text = format!(
        "{GENERATED}\n{} programs for packets in {} admitted objects: {strategies}. {none} objects are refused.\n\n\
         {keeping} programs keep state by flow or address: {by_key}.\n\nVerified at {CORES}: {verified}.\n\n",
        rows.len(),
        objects.len() - none,
    );
    text.push_str("| object | program | model | strategy | state | by key | because | verify at 4 | what an expert would say |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for r in &rows {
        let opinion = opinions.get(&(r.object.clone(), r.program.clone()));
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            r.object,
            r.program,
            r.model,
            r.strategy,
            r.state,
            if r.keeps { "yes" } else { "" },
            r.because,
            r.verified,
            opinion.map_or("", String::as_str)
        )
        .unwrap();
    }
    text.push_str("\n| refused by rule | objects |\n| --- | --- |\n");
    for (rule, objects) in &refused {
        writeln!(text, "| {rule} | {} |", objects.join(", ")).unwrap();
    }
    text
}

/// What another machine must say, too: not how far a budget reached, nor what rests on that.
fn steady(line: &str) -> String {
    let cells: Vec<&str> = line.split(" | ").collect();
    match cells.as_slice() {
        [object, program, "bounded", ..] => [*object, *program, "bounded"].join(" | "),
        _ => line.to_owned(),
    }
}

#[test]
fn the_document_says_how_objects_of_others_run() {
    let Some(folder) = std::env::var_os("MILLRACE_OBJECTS") else {
        println!("skipped: plans of public objects, MILLRACE_OBJECTS names no folder of them");
        return;
    };
    let expected = table(Path::new(&folder));
    generated("measurements/strangers.md", &expected, steady);
}
