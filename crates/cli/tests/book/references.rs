//! Whether every link, and every mention of a page in code and messages, leads somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::markdown::{anchors, links, split};
use super::{below, documents, name, pages};
use crate::common::root;

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(plain.pop()),
            std::path::Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[test]
fn every_link_leads_somewhere() {
    let book: BTreeSet<PathBuf> = pages().iter().map(|p| plain(p)).collect();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        let (_, prose) = split(&text);
        let document = plain(&document);
        for link in links(&prose) {
            seen += 1;
            let place = format!("{}:{}", document.display(), link.line);
            let (file, anchor) = match link.target.split_once('#') {
                Some((file, anchor)) => (file, Some(anchor)),
                None => (link.target.as_str(), None),
            };
            let target = match file {
                "" => document.clone(),
                file => plain(&document.parent().unwrap().join(file)),
            };
            if !target.exists() {
                wrong.push(format!("{place}: {}: there is no such file", link.target));
                continue;
            }
            // mdBook has what lies in docs/, and no page but those of the summary.
            let inside = !book.contains(&document)
                || book.contains(&target)
                || target.extension().is_some_and(|e| e == "svg");
            if !inside {
                wrong.push(format!(
                    "{place}: {}: leads out of the book; name the file in backquotes",
                    link.target
                ));
            }
            let Some(anchor) = anchor else { continue };
            let text = std::fs::read_to_string(&target).unwrap();
            if !anchors(&split(&text).1).iter().any(|a| a == anchor) {
                wrong.push(format!("{place}: {}: no such heading", link.target));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        seen > 100,
        "{seen} links: the reader of links sees too little"
    );
}

#[test]
fn the_summary_has_every_page_once() {
    let path = root().join("docs/SUMMARY.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut listed = Vec::new();
    for link in links(&split(&text).1) {
        listed.push(root().join("docs").join(&link.target));
    }
    let once: BTreeSet<PathBuf> = listed.iter().cloned().collect();
    assert_eq!(
        once.len(),
        listed.len(),
        "a page stands twice in the summary"
    );
    let missing: Vec<String> = pages().difference(&once).map(|p| name(p)).collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
    let gone: Vec<String> = once.difference(&pages()).map(|p| name(p)).collect();
    assert!(gone.is_empty(), "docs/SUMMARY.md names {gone:?}");
}

#[test]
fn every_page_that_code_names_is_there() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    let mut files = documents();
    for folder in [
        "crates", "tests", "bench", "fastpath", "include", "nfs", "scripts",
    ] {
        for ending in [".rs", ".h", ".c", ".sh", ".py", ".toml", ".txt"] {
            files.extend(below(&root().join(folder), ending));
        }
    }
    files.extend([root().join("Makefile"), root().join("Cargo.toml")]);
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else {
            continue;
        };
        for part in text.split("docs/").skip(1) {
            let end = part.find(|c: char| !(c.is_ascii_alphanumeric() || "-_/.".contains(c)));
            let page = part[..end.unwrap_or(part.len())].trim_end_matches('.');
            if page.ends_with(".md") || page.ends_with(".svg") {
                seen += 1;
                if !root().join("docs").join(page).exists() {
                    wrong.push(format!("{}: docs/{page}", name(&file)));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "there is no such page:\n{}",
        wrong.join("\n")
    );
    assert!(seen > 50, "{seen} mentions: too few are seen");
}
