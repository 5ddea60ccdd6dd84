//! Mistakes of authors, and what they are told: each file of `mistakes` is one, and says at its end, behind `//>` or `#>`,
//! the first thing that is shown for it. `MILLRACE_BLESS=1` writes what is said now.
//!
//! The sources go as far as they come: to be compiled, read, proved. The packet tests in `mistakes/packets` run against
//! the function there. Mistakes that the checker alone finds are in `crates/check/tests/refused`, too.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use millrace::packet_test::execute;
use millrace::{Error, Make};
use millrace_traffic::language::Case;

use super::of_repository;

/// The files of a folder of the mistakes, by name.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = of_repository(&format!("crates/millrace/tests/mistakes{folder}"));
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|p| p.extension().is_some_and(|e| e == extension))
        .collect();
    files.sort();
    files
}

/// What is expected of a file, and the file without it.
fn expected(file: &Path, mark: &str) -> (String, String) {
    let text = std::fs::read_to_string(file).unwrap();
    let is_said = |line: &&str| line.starts_with(mark);
    let said = text.lines().filter(is_said);
    let said = said.map(|l| {
        l[mark.len()..]
            .strip_prefix(' ')
            .unwrap_or_default()
            .to_owned()
            + "\n"
    });
    let own = text.lines().filter(|l| !is_said(l));
    (said.collect(), own.map(|l| l.to_owned() + "\n").collect())
}

/// The first thing that is wrong, and how to fix it; paths are within the folder.
fn first(error: &Error) -> String {
    let mut said = String::new();
    if let Some(refused) = &error.refused {
        let refusal = refused.refusals.first().unwrap();
        let line = refusal.line.as_ref();
        let place = line.map_or("no line".into(), |l| {
            format!("{}:{}: {}", l.file, l.line, l.text)
        });
        writeln!(said, "{place}").unwrap();
        writeln!(said, "{}: {}", refusal.rule, refusal.reason).unwrap();
        writeln!(said, "help: {}", refusal.remedy).unwrap();
        return said;
    }
    // What the compiler says first, without what stands below it.
    let detail = error.detail.iter().flat_map(|d| d.lines());
    for line in detail.take_while(|l| !l.starts_with("    ")).take(3) {
        writeln!(said, "{line}").unwrap();
    }
    writeln!(said, "{}", error.what).unwrap();
    if let Some(help) = &error.help {
        writeln!(said, "help: {help}").unwrap();
    }
    said
}

fn of_source(file: &Path) -> String {
    let found = millrace::find(file.to_str().unwrap()).unwrap();
    let written = match found.read(&Make::default()) {
        Ok(written) => written,
        Err(error) => return first(&error),
    };
    let warned = written.warnings.lines().map(str::trim);
    match written.check(Make::default().begin()) {
        // clang's warning comes first.
        Err(error) => {
            warned
                .take(1)
                .fold(String::new(), |said, l| said + l + "\n")
                + &first(&error)
        }
        Ok(_) => warned
            .take(3)
            .fold(String::new(), |said, l| said + l + "\n"),
    }
}

/// Compares what is said with what is expected, or writes it.
fn hold(file: &Path, mark: &str, said: &str, wrong: &mut String) {
    let folder = format!("{}/", file.parent().unwrap().display());
    let said = said.replace(&folder, "");
    let (expected, own) = expected(file, mark);
    assert!(!said.is_empty(), "{}: nothing is said", file.display());
    if said == expected {
        return;
    }
    if std::env::var_os("MILLRACE_BLESS").is_some() {
        let marked = said
            .lines()
            .fold(own, |all, line| all + mark + " " + line + "\n");
        std::fs::write(file, marked).unwrap();
        return;
    }
    writeln!(
        wrong,
        "{}: expected\n{expected}and it says\n{said}",
        file.display()
    )
    .unwrap();
}

#[test]
fn sources() {
    let (files, mut wrong) = (files("", "c"), String::new());
    println!("{} mistakes in sources", files.len());
    assert!(files.len() >= 60, "{}", files.len());
    for file in files {
        hold(&file, "//>", &of_source(&file), &mut wrong);
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn packet_tests() {
    let folder = of_repository("crates/millrace/tests/mistakes/packets");
    let function = millrace::find(&folder).unwrap();
    let function = function.load(&Make::default(), &mut |_| {}).unwrap();
    let (files, mut wrong) = (files("/packets", "pkt"), String::new());
    println!("{} mistakes in packet tests", files.len());
    assert!(files.len() >= 20, "{}", files.len());
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let (_, text) = expected(&file, "#>");
        let said = match Case::parse(name, &text) {
            Err(error) => format!("{}:{}: {}\n", name, error.line, error.message),
            Ok(case) => match execute(&function, &case, &[], 32) {
                Ok(()) => panic!("{name} passes"),
                Err(failed) => format!("{name}:{}: {}\n", failed.line, failed.message),
            },
        };
        hold(&file, "#>", &said, &mut wrong);
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// What is no mistake is not warned of.
#[test]
fn bundled_functions() {
    let folders = std::fs::read_dir(of_repository("nfs")).unwrap();
    let folders = folders.map(|e| e.unwrap().path()).filter(|p| p.is_dir());
    let mut count = 0;
    for folder in folders {
        let found = millrace::find(folder.to_str().unwrap()).unwrap();
        let written = found.read(&Make::default()).unwrap();
        assert_eq!(written.warnings, "", "{}", folder.display());
        count += 1;
    }
    assert!(count >= 16, "{count}");
}
