//! docs/measurements/public-models.md against the objects themselves, which are those in the folder $MILLRACE_OBJECTS; none
//! is part of this repository. MILLRACE_BLESS=1 writes the table.

use crate::common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use common::{GENERATED, generated, json, millrace};

/// What is said of one program.
struct Row {
    object: String,
    program: String,
    instructions: u64,
    exhaustive: bool,
    covers: bool,
    answer: String,
    /// from the command's start to its end
    seconds: f64,
    asked: u64,
}

/// Of a spent budget which one it was depends on the machine.
fn reason(why: &str) -> String {
    let why = why.split_once(": ").map_or(why, |w| w.1);
    let budget = "the budget is spent";
    let said = if why.starts_with(budget) { budget } else { why };
    said.replace('|', "\\|")
}

/// Seconds as a step that another run on another machine most likely takes, too.
fn step(seconds: f64) -> &'static str {
    match seconds {
        s if s < 1.0 => "< 1 s",
        s if s < 10.0 => "< 10 s",
        s if s < 60.0 => "< 60 s",
        _ => "60 s or more",
    }
}

fn calls(asked: u64) -> &'static str {
    match asked {
        0 => "none",
        1..10 => "< 10",
        10..100 => "< 100",
        100..1000 => "< 1000",
        _ => "1000 or more",
    }
}

fn model(file: &Path, object: &str, program: &str) -> Row {
    let shape = ["--capacity", "*=64", "--program", program];
    let (check, _) = json(millrace().arg("check").arg(file).args(shape));
    let began = Instant::now();
    let (m, status) = json(millrace().arg("model").arg(file).args(shape));
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!(status, 0, "{object} {program}");
    let exhaustive = m["exhaustive"].as_bool().unwrap();
    let covers = m["covers"].as_bool().unwrap();
    let paths = m["paths"].as_array().unwrap().len();
    let answer = if exhaustive {
        format!("exhaustive, {paths} paths")
    } else if covers {
        format!("covers, {paths} paths")
    } else {
        let whys = m["bounded"].as_array().unwrap();
        let whys: Vec<String> = whys.iter().map(|w| reason(w.as_str().unwrap())).collect();
        format!("fallback: {}", whys.join("; "))
    };
    // One number an entry: those of timers are entries, too.
    let took = m["took"].as_object().unwrap().values();
    Row {
        object: object.to_owned(),
        program: program.to_owned(),
        instructions: check["instructions"].as_u64().unwrap(),
        exhaustive,
        covers,
        answer,
        seconds,
        asked: took.map(|t| t["asked"].as_u64().unwrap()).sum(),
    }
}

fn table(folder: &Path) -> String {
    let (found, _) = json(
        millrace()
            .arg("check")
            .arg(folder)
            .args(["--capacity", "*=64"]),
    );
    let mut rows = Vec::new();
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for o in found["objects"].as_array().unwrap() {
        let file = o["file"].as_str().unwrap();
        let object = file.trim_end_matches(".o");
        if o["packets"] == false {
            continue;
        }
        if o["admitted"] == false {
            let rule = o["refusals"][0]["rule"].as_str().unwrap().to_owned();
            refused.entry(rule).or_default().push(object.to_owned());
            continue;
        }
        let path: PathBuf = folder.join(file);
        let (check, _) = json(
            millrace()
                .arg("check")
                .arg(&path)
                .args(["--capacity", "*=64"]),
        );
        for entry in check["entries"].as_array().unwrap() {
            if entry["role"] == "xdp" {
                rows.push(model(&path, object, entry["function"].as_str().unwrap()));
            }
        }
    }
    let exhaustive = rows.iter().filter(|r| r.exhaustive).count();
    let fall_back = rows.iter().filter(|r| !r.covers).count();
    let objects: usize = refused.values().map(Vec::len).sum();
    let mut text = format!(
        "{GENERATED}\nOf {} programs for packets in admitted objects {exhaustive} are exhaustive ({} %), of {} the paths cover all that happens, and {fall_back} fall back; {objects} objects are refused before there is a model.\n\n",
        rows.len(),
        100 * exhaustive / rows.len(),
        rows.len() - exhaustive - fall_back,
    );
    text.push_str("| object | program | instructions | model | time | questions to the solver |\n| --- | --- | --- | --- | --- | --- |\n");
    for r in &rows {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            r.object,
            r.program,
            r.instructions,
            r.answer,
            step(r.seconds),
            calls(r.asked)
        )
        .unwrap();
    }
    text.push_str("\n| refused by rule | objects |\n| --- | --- |\n");
    for (rule, objects) in &refused {
        writeln!(text, "| {rule} | {} |", objects.join(", ")).unwrap();
    }
    text
}

/// What another machine must say, too: all but the last two columns, and of what falls back only that.
fn steady(line: &str) -> String {
    let cells: Vec<&str> = line.split(" | ").collect();
    match cells.as_slice() {
        [a, b, c, d, _, _] => [*a, *b, *c, *d].join(" | "),
        _ => line.to_owned(),
    }
}

#[test]
fn the_document_says_what_is_exhaustive() {
    let Some(folder) = std::env::var_os("MILLRACE_OBJECTS") else {
        println!("skipped: models of public objects, MILLRACE_OBJECTS names no folder of them");
        return;
    };
    let expected = table(Path::new(&folder));
    generated("measurements/public-models.md", &expected, steady);
}
