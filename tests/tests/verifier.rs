//! The checker against the verdicts of two others: the kernel's verifier, on its own self-tests, and PREVAIL,
//! on its samples. Neither suite is part of this repository; docs/measurements/verifier-tests.md says how to get and compile
//! them.
//!
//! Every difference is explained in `tests/verifier`; one that is not, and an explanation of one that is no
//! longer there, fail.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use millrace_tests::command::root;
use millrace_tests::verifier::list::{Difference, List};
use millrace_tests::verifier::{Answer, Case, counts, run, suite, table};

/// The folder that a variable names.
fn folder(variable: &str, what: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable);
    if folder.is_none() {
        println!("skipped: {variable} names no folder ({what})");
    }
    folder.map(PathBuf::from)
}

/// Asks the checker about each case of an object, on two processors.
fn ask(cases: &[Case], file: &[u8]) -> Vec<Answer> {
    let half = cases.len().div_ceil(2).max(1);
    std::thread::scope(|scope| {
        let part = |part| scope.spawn(move || answers(part, file));
        let parts: Vec<_> = cases.chunks(half).map(part).collect();
        let answers = parts.into_iter().flat_map(|p| p.join().unwrap());
        answers.collect()
    })
}

fn answers(cases: &[Case], file: &[u8]) -> Vec<Answer> {
    cases.iter().map(|case| suite::ask(case, file)).collect()
}

/// The differences that the rule alone does not explain.
fn differences(answers: &[Answer]) -> BTreeMap<(Difference, String), String> {
    let mut found = BTreeMap::new();
    for answer in answers {
        let Some(difference) = Difference::of(answer.standing()) else {
            continue;
        };
        if difference == Difference::Narrower && answer.foreign().is_some() {
            continue;
        }
        let what = match &answer.refused {
            Some((rule, reason)) => format!("{rule}: {reason}"),
            None => "is admitted".into(),
        };
        found.insert((difference, answer.case.name()), what);
    }
    found
}

/// Compares what was found with a list, after the tables have been printed.
fn hold(list: &str, answers: &[Answer], found: &BTreeMap<(Difference, String), String>) {
    let path = root().join("tests/verifier").join(list);
    let list = List::read(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let section = |a: &Answer| a.case.section.trim_start_matches('?').to_owned();
    let kind = |a: &Answer| section(a).split('/').next().unwrap_or_default().to_owned();
    println!("{}", table("section", &counts(answers, kind)));
    println!(
        "{}",
        table("file", &counts(answers, |a| a.case.file.clone()))
    );
    let mut rules: BTreeMap<(String, String), usize> = BTreeMap::new();
    for answer in answers {
        if Difference::of(answer.standing()) == Some(Difference::Narrower) {
            let why = answer.foreign().unwrap_or("listed").to_owned();
            *rules.entry((why, answer.rule().to_owned())).or_default() += 1;
        }
    }
    println!("refused here and admitted there:");
    for ((why, rule), count) in rules {
        println!("{count:5} {rule}: {why}");
    }
    println!("explained:");
    for ((difference, reason), count) in list.counts(found) {
        println!("{count:5} {difference:?}: {reason}");
    }
    let read: BTreeSet<String> = answers.iter().map(|a| a.case.file.clone()).collect();
    let mismatches = list.mismatches(found, &read);
    assert!(
        mismatches.is_empty(),
        "{} differences that {} does not explain, or explains in vain:\n{}",
        mismatches.len(),
        path.display(),
        mismatches.join("\n")
    );
}

/// The results of the admitted programs of an object that differ, and how many agree.
fn results(
    cache: &Path,
    file: &[u8],
    answers: &[Answer],
    found: &mut BTreeMap<(Difference, String), String>,
) -> usize {
    let runs = |a: &&Answer| a.refused.is_none() && a.case.result.is_some();
    let cases: Vec<&Case> = answers.iter().filter(runs).map(|a| &a.case).collect();
    let mut agreed = 0;
    let results = match run::results(cache, file, &cases) {
        Ok(results) => results,
        Err(why) => {
            let failed = cases
                .iter()
                .map(|c| ((Difference::Result, c.name()), why.clone()));
            found.extend(failed);
            return 0;
        }
    };
    for (case, emitted, interpreted) in results {
        let expected = case.result.unwrap();
        if emitted == Ok(expected) && interpreted == Ok(expected) {
            agreed += 1;
            continue;
        }
        let what =
            format!("{expected:#x} expected, emitted {emitted:x?}, interpreted {interpreted:x?}");
        found.insert((Difference::Result, case.name()), what);
    }
    agreed
}

/// Runs all admitted programs of an object, and looks at what the proof claims of them.
fn claims(cache: &Path, file: &[u8], answers: &[Answer]) -> run::Claimed {
    let admitted = answers.iter().filter(|a| a.refused.is_none());
    let cases: Vec<&Case> = admitted.map(|a| &a.case).collect();
    if cases.is_empty() {
        return run::Claimed::default();
    }
    match run::claimed(cache, file, &cases) {
        Ok(claimed) => claimed,
        Err(why) => panic!("{}: {why}", cases[0].file),
    }
}

#[test]
fn the_kernels_self_tests_agree() {
    let what = "objects of tools/testing/selftests/bpf/progs/verifier_*.c";
    let Some(folder) = folder("MILLRACE_KERNEL_SELFTESTS", what) else {
        return;
    };
    let cache = tempfile::tempdir().unwrap();
    let (mut all, mut found, mut agreed) = (Vec::new(), BTreeMap::new(), 0);
    let mut claimed = run::Claimed::default();
    for path in suite::objects(&folder).unwrap() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let file = std::fs::read(&path).unwrap();
        let cases = suite::kernel(&name, &file).unwrap();
        let answers = ask(&cases, &file);
        agreed += results(&cache.path().join("cache"), &file, &answers, &mut found);
        let more = claims(&cache.path().join("cache"), &file, &answers);
        claimed.programs += more.programs;
        claimed.claims += more.claims;
        all.extend(answers);
    }
    println!(
        "{} programs ran, {} claims looked at",
        claimed.programs, claimed.claims
    );
    assert!(!all.is_empty(), "no tests in {}", folder.display());
    found.extend(differences(&all));
    let results = found.keys().filter(|(d, _)| *d == Difference::Result);
    let (differ, total) = (results.count(), all.len());
    println!("{total} programs; {agreed} results agree, {differ} differ");
    hold("kernel.txt", &all, &found);
}

#[test]
fn the_samples_of_prevail_agree() {
    let what = "github.com/vbpf/ebpf-samples, with PREVAIL's elf_inventory.json in it";
    let Some(folder) = folder("MILLRACE_PREVAIL", what) else {
        return;
    };
    let inventory = std::fs::read_to_string(folder.join("elf_inventory.json")).unwrap();
    let mut objects: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    for case in suite::prevail(&inventory).unwrap() {
        objects.entry(case.file.clone()).or_default().push(case);
    }
    let (mut all, mut absent) = (Vec::new(), 0);
    for (name, cases) in &objects {
        match std::fs::read(folder.join(name)) {
            Ok(file) => all.extend(ask(cases, &file)),
            Err(_) => absent += 1,
        }
    }
    println!(
        "{} programs of {} objects; {absent} objects are absent",
        all.len(),
        objects.len()
    );
    assert!(!all.is_empty(), "no samples in {}", folder.display());
    let found = differences(&all);
    hold("prevail.txt", &all, &found);
}

#[test]
fn programs_of_our_own_are_answered_as_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let (source, object) = (
        root().join("tests/verifier/ours.c"),
        folder.path().join("ours.o"),
    );
    let compiled = std::process::Command::new("clang-19")
        .args(["-g", "-O2", "-target", "bpf", "-mcpu=v4"])
        .args(["-I", "/usr/include/x86_64-linux-gnu", "-c", "-o"])
        .args([&object, &source])
        .status()
        .unwrap();
    assert!(compiled.success());
    let file = std::fs::read(object).unwrap();
    let cases = suite::kernel("ours", &file).unwrap();
    let answers = ask(&cases, &file);
    let mut found = differences(&answers);
    let agreed = results(&folder.path().join("cache"), &file, &answers, &mut found);
    assert_eq!(found, BTreeMap::new());
    let claimed = claims(&folder.path().join("cache"), &file, &answers);
    println!(
        "{} programs ran, {} claims looked at",
        claimed.programs, claimed.claims
    );
    for answer in answers.iter().filter(|a| !a.case.admits) {
        let (rule, reason) = answer.refused.as_ref().unwrap();
        println!("{}: {rule}: {reason}", answer.case.function);
        // By the access that each ends with, and not by something on the way to it.
        let rules = ["value-bounds", "pointer-reach", "not-a-pointer"];
        assert!(
            rules.contains(&rule.as_str()),
            "{}: {rule}",
            answer.case.function
        );
    }
    let safe = cases.iter().filter(|c| c.admits).count();
    assert!(
        safe >= 10 && cases.len() >= safe + 10,
        "{safe} of {}",
        cases.len()
    );
    assert_eq!(agreed, safe, "not every program was run");
}
