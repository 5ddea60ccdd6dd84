//! What of state shows, and what is planned for it: small programs as data (programs/observed/).

use crate::support;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use millrace_place::{Strategy, Treatment};
use millrace_plan::Plan;

/// A case: its name, what is expected, the function's body.
struct Case {
    name: String,
    expected: Vec<(String, String)>,
    body: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/observed")
}

fn cases(file: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(folder().join(file)).unwrap();
    let mut all: Vec<Case> = Vec::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("## ") {
            let (name, expected) = head.split_once(':').unwrap();
            let pairs = expected.split_whitespace();
            let pairs = pairs.map(|p| p.split_once('=').unwrap());
            all.push(Case {
                name: name.to_owned(),
                expected: pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).collect(),
                body: String::new(),
            });
        } else if let Some(case) = all.last_mut() {
            writeln!(case.body, "{line}").unwrap();
        }
    }
    all
}

fn plan(case: &Case, before: &str, after: &str) -> Option<Plan> {
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("observed.c");
    let before = std::fs::read_to_string(folder().join(before)).unwrap();
    std::fs::write(&source, format!("{before}{}{after}", case.body)).unwrap();
    Some(support::modelled(&source)?.plan("generic"))
}

/// What is not as it is expected.
fn wrong(case: &Case, plan: &Plan) -> Vec<String> {
    let mut out = Vec::new();
    let mut relaxed = BTreeSet::new();
    let mut is = |what: &str, expected: &str, found: &str| {
        if expected != found {
            out.push(format!("{}: {what} is {found}, not {expected}", case.name));
        }
    };
    for (what, expected) in &case.expected {
        if what == "relaxed" {
            relaxed.extend(expected.split(',').filter(|n| !n.is_empty()));
        } else if let Some(name) = what.strip_suffix(".words") {
            let words = &support::object(plan, name).words;
            let words: Vec<String> = words
                .iter()
                .map(|w| format!("{}+{}", w.offset, w.bytes))
                .collect();
            is(what, expected, &words.join(","));
        } else {
            is(what, expected, support::object(plan, what).treatment.name());
        }
    }
    for o in &plan.objects {
        let mut open = o.offers.iter().filter(|o| o.impossible.is_none());
        let first = open.next().map_or("none", |o| o.treatment.name());
        is(&o.name, first, o.treatment.name());
        // One value for all CPUs is not what a kind per CPU says.
        let lock = open.any(|o| o.treatment == Treatment::Lock) || first == "lock";
        let per_cpu = ["stats", "heap", "cpuhash"].contains(&o.name.as_str());
        // Nor what is not yet taken of a ring with one worker.
        let told = o.name == "ring" && o.treatment == Treatment::Alone;
        is(
            &o.name,
            &format!("lock: {}", !per_cpu && !told),
            &format!("lock: {lock}"),
        );
    }
    let found: BTreeSet<&str> = plan.relaxations.iter().map(|r| r.name).collect();
    is("relaxed", &format!("{relaxed:?}"), &format!("{found:?}"));
    out
}

fn all(file: &str, before: &str, after: &str) {
    let mut out = Vec::new();
    for case in cases(file) {
        let Some(plan) = plan(&case, before, after) else {
            return;
        };
        out.extend(wrong(&case, &plan));
    }
    assert!(out.is_empty(), "{}", out.join("\n"));
}

#[test]
fn of_objects_of_the_kernel() {
    all("xdp.cases", "xdp.h", "}\n");
}

#[test]
fn of_objects_of_handlers() {
    all("handlers.cases", "handlers.h", "}\n");
}

#[test]
fn a_visit_of_all_entries_is_said_to_be_one() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/visits.c");
    let Some(mut visits) = support::modelled(&source) else {
        return;
    };
    let plan = visits.plan("generic");
    let sources = support::object(&plan, "sources");
    assert_eq!(sources.treatment, Treatment::Lock);
    assert_eq!(
        sources.reason,
        "the key of sources is that of any entry that it holds, which the NIC does not hash"
    );
    // Which entry a visit meets first is another one where each core takes places of its own.
    let why =
        "packets visit all entries of sources, in an order that depends on which core added which";
    let mut offers = sources.offers.iter();
    let transact = offers.find(|o| o.treatment == Treatment::Transact);
    let offered = transact.and_then(|o| o.impossible.as_deref());
    assert_eq!(offered, Some(why));
    let refused = visits.asked(Strategy::Transact).unwrap_err().to_string();
    assert!(refused.ends_with(why), "{refused}");
    assert!(visits.asked(Strategy::Lock).is_ok());
}
