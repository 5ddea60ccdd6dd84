//! `millrace check` of a folder of objects: how many of them are admitted, and why not the others.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use millrace_check::Options;
use millrace_emit::alone;
use millrace_object::Program;
use serde_json::{Value, json};

use crate::failure::{DONE, Failure, NO};
use crate::{budget, function, refusal, screen};

/// Endings of object files.
const ENDINGS: [&str; 3] = ["o", "elf", "bpf"];

/// How deep folders may nest; links are not followed.
const MAX_DEPTH: usize = 8;

/// What became of one object.
struct Finding {
    /// relative to the folder
    file: String,
    verdict: Verdict,
    /// instructions of all that its programs reach
    instructions: usize,
    /// reading, proving and generating C
    seconds: f64,
}

enum Verdict {
    Admitted,
    /// one reason or more
    Refused(Vec<Reason>),
    /// none of its programs is for packets: neither admitted nor refused
    Outside,
}

struct Reason {
    rule: &'static str,
    text: String,
    document: Value,
}

/// The objects in a folder, in order of their names; none if there are none.
pub fn objects(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    walk(folder, MAX_DEPTH, &mut found)
        .map_err(|e| Failure::wrong(format!("{}: {e}", folder.display())))?;
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() && depth > 0 {
            walk(&path, depth - 1, found)?;
        } else if kind.is_file() {
            let ending = path.extension().and_then(OsStr::to_str);
            if ending.is_some_and(|e| ENDINGS.contains(&e)) {
                found.push(path);
            }
        }
    }
    Ok(())
}

/// Checks all of them, reports, and gives the exit status.
pub fn perform(
    folder: &Path,
    files: &[PathBuf],
    capacity: &[String],
    json: bool,
) -> Result<u8, Failure> {
    let capacities = function::capacities(capacity)?;
    let findings: Vec<Finding> = files
        .iter()
        .map(|file| examine(folder, file, &capacities))
        .collect();
    screen::report(json, text(&findings).trim_end());
    if json {
        screen::document(&document(&findings));
    }
    let refused = findings
        .iter()
        .any(|f| matches!(f.verdict, Verdict::Refused(_)));
    Ok(if refused { NO } else { DONE })
}

fn examine(folder: &Path, file: &Path, capacities: &[(String, u64)]) -> Finding {
    let began = Instant::now();
    let shown = file.strip_prefix(folder).unwrap_or(file);
    let (verdict, instructions) = match millrace_object::load_file_with(file, capacities) {
        Ok(program) => {
            let instructions = program.functions.iter().map(|f| f.insns.len()).sum();
            (judge(&program), instructions)
        }
        Err(error) if error.rule == "no-entry" => (Verdict::Outside, 0),
        Err(error) => {
            let reason = Reason {
                rule: error.rule,
                text: match &error.symbol {
                    Some(symbol) => format!("{} (`{symbol}`)", error.problem),
                    None => error.problem.clone(),
                },
                document: json!({
                    "instruction": error.slot,
                    "line": error.line.as_ref().map(|l| l.line),
                    "reason": error.problem,
                    "remedy": error.remedy,
                    "rule": error.rule,
                    "function": error.symbol,
                }),
            };
            (Verdict::Refused(vec![reason]), 0)
        }
    };
    Finding {
        file: shown.display().to_string(),
        verdict,
        instructions,
        seconds: began.elapsed().as_secs_f64(),
    }
}

/// Admitted is what is proved and has code.
fn judge(program: &Program) -> Verdict {
    let checked = match millrace_check::check(program, &Options::within(budget::begin())) {
        Ok(checked) => checked,
        Err(refusals) => {
            let reason = |r: &millrace_check::Refusal| Reason {
                rule: r.rule,
                text: format!("{} (`{}`)", r.reason, r.function),
                document: refusal::document(r),
            };
            return Verdict::Refused(refusals.iter().map(reason).collect());
        }
    };
    match alone::emit(program, &checked, "program.c") {
        Ok(_) => Verdict::Admitted,
        Err(error) => Verdict::Refused(vec![Reason {
            rule: "no-code",
            text: error.to_string(),
            document: json!({ "rule": "no-code", "reason": error.to_string() }),
        }]),
    }
}

/// Admitted, refused, and those that are not for packets.
fn counts(findings: &[Finding]) -> (usize, usize, usize) {
    let count =
        |wanted: fn(&Verdict) -> bool| findings.iter().filter(|f| wanted(&f.verdict)).count();
    (
        count(|v| matches!(v, Verdict::Admitted)),
        count(|v| matches!(v, Verdict::Refused(_))),
        count(|v| matches!(v, Verdict::Outside)),
    )
}

/// For each rule how many objects break it, and the first one's words.
fn rules(findings: &[Finding]) -> Vec<(&'static str, usize, &str)> {
    let mut by_rule: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for finding in findings {
        let Verdict::Refused(reasons) = &finding.verdict else {
            continue;
        };
        let mut seen: Vec<&str> = Vec::new();
        for reason in reasons {
            if !seen.contains(&reason.rule) {
                seen.push(reason.rule);
                by_rule.entry(reason.rule).or_insert((0, &reason.text)).0 += 1;
            }
        }
    }
    let mut rules: Vec<_> = by_rule.into_iter().map(|(r, (n, t))| (r, n, t)).collect();
    rules.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    rules
}

fn document(findings: &[Finding]) -> Value {
    let (admitted, refused, outside) = counts(findings);
    let object = |f: &Finding| {
        let reasons: &[Reason] = match &f.verdict {
            Verdict::Refused(reasons) => reasons,
            Verdict::Admitted | Verdict::Outside => &[],
        };
        json!({
            "file": f.file,
            "admitted": matches!(f.verdict, Verdict::Admitted),
            "packets": !matches!(f.verdict, Verdict::Outside),
            "refusals": reasons.iter().map(|r| r.document.clone()).collect::<Vec<_>>(),
            "instructions": f.instructions,
            "seconds": f.seconds,
        })
    };
    json!({
        "objects": findings.iter().map(object).collect::<Vec<_>>(),
        "admitted": admitted,
        "refused": refused,
        "without_packet_program": outside,
        "rules": rules(findings)
            .into_iter()
            .map(|(rule, objects, example)| json!({
                "rule": rule, "objects": objects, "example": example,
            }))
            .collect::<Vec<_>>(),
    })
}

fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    let width = findings.iter().map(|f| f.file.len()).max().unwrap_or(0);
    // Writing to a string cannot fail.
    for f in findings {
        let answer = match &f.verdict {
            Verdict::Admitted => format!("admitted ({} instructions)", f.instructions),
            Verdict::Outside => "no program for packets".to_owned(),
            Verdict::Refused(reasons) => {
                let first = reasons.first().map_or("", |r| &r.text);
                match reasons.len() {
                    0 | 1 => format!("refused: {first}"),
                    n => format!("refused for {n} reasons: {first}"),
                }
            }
        };
        let _ = writeln!(text, "{:<width$}  {answer}", f.file);
    }
    let (admitted, refused, outside) = counts(findings);
    let share = 100.0 * admitted as f64 / ((admitted + refused).max(1)) as f64;
    let _ = writeln!(
        text,
        "\n{admitted} of {} objects for packets admitted ({share:.0}%), {refused} refused; {outside} others",
        admitted + refused
    );
    for (rule, objects, example) in rules(findings) {
        let _ = writeln!(text, "{objects:>5}  {rule}: {example}");
    }
    text
}
