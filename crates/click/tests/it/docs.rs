//! The pages of docs/ that list elements and tests; MILLRACE_BLESS=1 writes what the code says.

use std::fmt::Write;
use std::path::Path;

use millrace_click::elements::{classes, find};

use crate::clicktest::THEIRS;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn hold(page: &str, text: &str) {
    let path = root().join("docs").join(page);
    if std::env::var_os("MILLRACE_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    for (number, (found, expected)) in found.lines().zip(text.lines()).enumerate() {
        let number = number + 1;
        assert_eq!(
            found, expected,
            "docs/{page} line {number}; MILLRACE_BLESS=1 writes what the code says"
        );
    }
    assert_eq!(
        found.len(),
        text.len(),
        "docs/{page}; MILLRACE_BLESS=1 writes what the code says"
    );
}

/// Inputs or outputs in words.
fn kinds(codes: &str) -> String {
    let word = |c: char| match c {
        'h' => "push",
        'l' => "pull",
        _ => "agnostic",
    };
    let mut words: Vec<_> = codes.chars().map(word).collect();
    words.dedup();
    words.join(", then ")
}

#[test]
fn elements() {
    let mut page = String::from(
        "# Click elements\n\nAfter this page you know which elements of [Click configurations](click.md) Millrace runs, and what each does.\n\n\
         The list is written by the elements' own comments (`MILLRACE_BLESS=1 cargo test -p millrace-click --test it docs::`). Arguments\n\
         stand in brackets where they may be left out, and in capitals where they may be given by that word.\n",
    );
    let folder = root().join("crates/click/src/elements");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    let mut listed = 0;
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        if path.file_stem().is_some_and(|s| s == "mod") {
            continue;
        }
        let names: Vec<_> = text
            .split("Class::new(\"")
            .skip(1)
            .filter_map(|l| Some(l.split_once('"')?.0))
            .collect();
        listed += names.len();
        let comment: Vec<_> = text
            .lines()
            .map_while(|l| l.strip_prefix("//!"))
            .map(str::trim_start)
            .collect();
        assert!(!comment.is_empty(), "{}", path.display());
        let _ = write!(page, "\n## {}\n\n{}\n\n", names[0], comment.join("\n"));
        page += "| class | inputs, outputs | processing |\n| --- | --- | --- |\n";
        for class in names.iter().map(|n| find(n).expect(n)) {
            let (inputs, outputs) = class.ports.split_once('/').unwrap();
            let (from, to) = class.processing.split_once('/').unwrap();
            let processing = if from == to {
                kinds(from)
            } else {
                format!("{} to {}", kinds(from), kinds(to))
            };
            let many = |ports: &str| {
                if ports == "-" {
                    "any".to_owned()
                } else {
                    ports.to_owned()
                }
            };
            let _ = writeln!(
                page,
                "| `{}` | {}, {} | {processing} |",
                class.name,
                many(inputs),
                many(outputs)
            );
        }
    }
    assert_eq!(listed, classes().count(), "a class in no file, or twice");
    hold("click-elements.md", &page);
}

#[test]
fn tests_of_others() {
    let path = root().join("docs/click.md");
    let page = std::fs::read_to_string(path).unwrap();
    const BEGIN: &str = "<!-- tests of others -->\n";
    let (before, _) = page.split_once(BEGIN).expect("the mark of the list");
    let mut list = format!(
        "{before}{BEGIN}\n{} tests of FastClick pass with the outputs that they expect:\n",
        THEIRS.len()
    );
    let mut line = String::new();
    for (number, name) in THEIRS.iter().enumerate() {
        let end = if number + 1 == THEIRS.len() { "." } else { "," };
        let word = format!("{name}{end}");
        if line.len() + word.len() > 120 {
            list += &format!("{}\n", line.trim_end());
            line.clear();
        }
        line += &format!("{word} ");
    }
    list += &format!("{}\n", line.trim_end());
    hold("click.md", &list);
}
