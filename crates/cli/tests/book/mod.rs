//! The book in docs/: its links, its commands, and the pages that list what the code knows. Without mdBook.

pub mod commands;
mod figures;
mod json;
mod lists;
pub mod markdown;
mod references;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::root;

/// Files whose names end so below a folder, in order.
fn below(folder: &Path, ending: &str) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.insert(path);
            }
        }
    }
    found
}

/// The pages of the book.
fn pages() -> BTreeSet<PathBuf> {
    let mut pages = below(&root().join("docs"), ".md");
    pages.remove(&root().join("docs/SUMMARY.md"));
    pages
}

/// The book, and all else that is written in Markdown.
fn documents() -> BTreeSet<PathBuf> {
    let mut found = pages();
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        found.insert(root().join(name));
    }
    for folder in ["nfs", "crates", "fastpath", "captures", "include"] {
        found.extend(below(&root().join(folder), ".md"));
    }
    found
}

/// A file's path from the repository's folder.
fn name(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap();
    path.to_string_lossy().into_owned()
}

/// Holds a page against what it must be; MILLRACE_BLESS=1 writes it instead.
fn hold(page: &str, expected: &str) {
    let path = root().join("docs").join(page);
    if std::env::var_os("MILLRACE_BLESS").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    for (number, (found, expected)) in (1..).zip(found.lines().zip(expected.lines())) {
        assert_eq!(
            found, expected,
            "docs/{page} line {number}; MILLRACE_BLESS=1 writes what the code says"
        );
    }
    assert_eq!(
        found.lines().count(),
        expected.lines().count(),
        "docs/{page}; MILLRACE_BLESS=1 writes what the code says"
    );
}
