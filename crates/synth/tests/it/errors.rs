//! Configurations of chains/ with a word too few, twice, or in another's place: refused with its place or synthesised, never anything else.

use std::path::{Path, PathBuf};

use millrace_click::language::{Limits, flatten, parse};
use millrace_synth::{Options, synthesise};

/// Words of a text: runs of letters and digits, other signs one by one, with the space behind them.
fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let inside = |c: char| c.is_alphanumeric() || c == '_';
        let word = match inside(first) {
            true => rest.find(|c| !inside(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let space = rest.get(word..).unwrap_or("");
        let end = word + (space.len() - space.trim_start().len());
        let (one, other) = rest.split_at(end);
        found.push(one);
        rest = other;
    }
    found
}

/// The texts with one thing changed: `every` so many places, from a first one on.
fn changed(text: &str, first: usize, every: usize) -> Vec<String> {
    let all = words(text);
    let mut found = Vec::new();
    for at in (first % every..all.len()).step_by(every) {
        let (before, after) = all.split_at(at);
        let (one, rest) = after.split_at(1);
        found.push([before, rest].concat().concat());
        found.push([before, one, one, rest].concat().concat());
        if let [next, rest @ ..] = rest {
            found.push([before, &[*next], one, rest].concat().concat());
        }
    }
    found
}

/// Files of a folder with an ending, sorted.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == ending))
        .collect();
    found.sort();
    found
}

/// Reads, flattens and synthesises a text that stands for a file; how many errors there are, each with a place in a file.
fn tried(path: &Path, text: &str, replaced: Option<(&str, &str)>) -> bool {
    let folder = path.parent().unwrap();
    let mut library = |_: &str, name: &str| {
        let text = match replaced {
            Some((changed, text)) if changed == name => text.to_owned(),
            _ => std::fs::read_to_string(folder.join(name)).map_err(|e| e.to_string())?,
        };
        Ok((name.to_owned(), text))
    };
    let limits = Limits::default();
    let done = parse(text, &path.display().to_string(), &limits, &mut library)
        .and_then(|file| flatten(&file, &limits))
        .and_then(|graph| synthesise("changed", graph, folder, Options::default()));
    match done {
        Ok(of) => !millrace_synth::emit::c(&of).is_empty(),
        Err(errors) => {
            assert!(!errors.is_empty(), "{text}");
            for error in errors {
                assert!(!error.what.is_empty() && !error.help.is_empty(), "{text}");
            }
            false
        }
    }
}

/// `MILLRACE_CLICK_WORDS=1` changes every word of every configuration; else one in 23.
#[test]
fn every_word_may_be_wrong() {
    let chains = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../chains");
    let every = if std::env::var_os("MILLRACE_CLICK_WORDS").is_some() {
        1
    } else {
        23
    };
    let (mut made, mut refused) = (0, 0);
    let mut note = |done: bool| match done {
        true => made += 1,
        false => refused += 1,
    };
    for folder in ["example", "routers", "napts", "firewall-router", "acl"] {
        let all = files(&chains.join(folder), "click");
        // Those that differ by length alone are one, and long lists of rules are text of another reader.
        let all: Vec<&PathBuf> = { all.iter() }
            .filter(|path| {
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                let copy = name.ends_with(|c: char| ('3'..='9').contains(&c)) || name == "acl-8550";
                !copy && name != "acl-713" && name != "acl-251"
            })
            .collect();
        for (number, path) in all.iter().enumerate() {
            let text = std::fs::read_to_string(path).unwrap();
            assert!(tried(path, &text, None), "{}", path.display());
            for text in changed(&text, number * 7, every) {
                note(tried(path, &text, None));
            }
        }
        let Some(first) = all.first() else {
            continue;
        };
        let text = std::fs::read_to_string(first).unwrap();
        for library in files(&chains.join(folder), "clickinc") {
            let name = library.file_name().unwrap().to_string_lossy().into_owned();
            let own = std::fs::read_to_string(&library).unwrap();
            if text.contains(&name) {
                for changed in changed(&own, 5, every) {
                    note(tried(first, &text, Some((&name, &changed))));
                }
            }
        }
    }
    println!("{made} synthesised, {refused} refused");
    assert!(
        made > 20 && refused > 100,
        "{made} synthesised, {refused} refused"
    );
}
