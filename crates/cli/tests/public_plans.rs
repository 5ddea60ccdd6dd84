//! docs/measurements/strangers.md against the objects themselves, which are those in the folder $MILLRACE_OBJECTS; none
//! is part of this repository. MILLRACE_BLESS=1 writes the table.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{GENERATED, generated, json, millrace, output};
use serde_json::Value;

/// Workers that each plan is verified with.
const CORES: &str = "4";

/// What is said of one program.
struct Row {
    object: String,
    program: String,
    model: &'static str,
    strategy: String,
    /// by treatment, what is treated so; constants and settings left out
    state: String,
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

fn plan(file: &Path, object: &str, program: &str) -> Row {
    let shape = ["--capacity", "*=64", "--program", program, "--cores", CORES];
    let (plan, status) = json(millrace().arg("plan").arg(file).args(shape));
    assert_eq!(status, 0, "{object} {program}");
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
    let state = state
        .iter()
        .map(|(treatment, names)| format!("{treatment}: {}", names.join(", ")));
    Row {
        object: object.to_owned(),
        program: program.to_owned(),
        model,
        strategy: plan["strategy"].as_str().unwrap().to_owned(),
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
        .args(["--in", "captures/talk.pcap", "--json"]);
    let (output, text) = output(&mut command);
    let document: Option<Value> = serde_json::from_slice(&output.stdout).ok();
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
    let mut counts = BTreeMap::new();
    for r in &rows {
        *counts.entry(r.strategy.as_str()).or_insert(0) += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(s, n)| format!("{n} {s}")).collect();
    let differ = rows.iter().filter(|r| r.verified == "DIFFERS").count();
    let none: usize = refused.values().map(Vec::len).sum();
    let mut text = format!(
        "{GENERATED}\n{} programs for packets in {} admitted objects: {}. `verify` finds {differ} that differ; {none} objects are refused.\n\n",
        rows.len(),
        objects.len() - none,
        counts.join(", "),
    );
    text.push_str("| object | program | model | strategy | state | because | verify at 4 |\n| --- | --- | --- | --- | --- | --- | --- |\n");
    for r in &rows {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            r.object, r.program, r.model, r.strategy, r.state, r.because, r.verified
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
