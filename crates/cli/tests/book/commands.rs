//! Runs the commands that documents show. A block `sh` must end with status 0; a block `console` holds commands
//! behind `$ ` and lines of what they print, in which `…` stands for anything, as a line of its own for any lines.
//! `console,fails` is for commands that say no. Blocks `sh,no_run` need a network, root, or much time.

use std::path::Path;
use std::process::Command;

use super::markdown::{Block, split};
use super::{documents, name};
use crate::common::root;

/// Whether a line is what is shown of it.
pub fn shown(line: &str, pattern: &str) -> bool {
    let parts: Vec<&str> = pattern.split('…').collect();
    let [first, inner @ .., last] = &parts[..] else {
        return line == pattern;
    };
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    for part in inner {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Runs words of a shell in a folder, and gives whether they succeeded and what they printed.
fn shell(words: &str, folder: &Path) -> (bool, String) {
    let command = Path::new(env!("CARGO_BIN_EXE_millrace")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &format!("exec 2>&1\n{words}")])
        .env("PATH", format!("{}:{path}", command.display()))
        .env(
            "MILLRACE_CACHE",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"),
        )
        .env("MILLRACE_UNOPTIMISED", "1")
        .env("XDG_RUNTIME_DIR", folder.join("runtime"))
        .current_dir(folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text)
}

/// Runs a block; what is wrong with it.
fn run(block: &Block, folder: &Path) -> Result<(), String> {
    if let Some(file) = &block.file {
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &block.text).unwrap();
        return Ok(());
    }
    let fails = block.info == "console,fails";
    let judge = |words: &str, (success, text): (bool, String)| match success != fails {
        true => Ok(text),
        false => Err(format!("$ {words}\n{text}")),
    };
    match block.info.as_str() {
        "sh" => judge(&block.text, shell(&block.text, folder)).map(drop),
        "console" | "console,fails" => {
            let mut lines = block.text.lines().peekable();
            while let Some(line) = lines.next() {
                let words = line.strip_prefix("$ ").ok_or("a block begins with `$ `")?;
                let text = judge(words, shell(words, folder))?;
                let mut printed = text.lines();
                while let Some(line) = lines.next_if(|l| !l.starts_with("$ ")) {
                    let line = line.trim_end();
                    if !line.is_empty()
                        && line != "…"
                        && !printed.any(|p| shown(p.trim_end(), line))
                    {
                        return Err(format!("$ {words}\nprints no line\n{line}\nbut\n{text}"));
                    }
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Runs the blocks of a document one after the other in a folder of its own; how many, and what is wrong.
fn document(path: &Path) -> (usize, Vec<String>) {
    let text = std::fs::read_to_string(path).unwrap();
    let (blocks, _) = split(&text);
    let runs = |b: &&Block| ["sh", "console", "console,fails"].contains(&b.info.as_str());
    let count = blocks.iter().filter(runs).count();
    if count == 0 {
        return (0, Vec::new());
    }
    let folder = tempfile::tempdir().unwrap();
    for shared in ["captures", "chains", "crates", "nfs"] {
        let from = root().canonicalize().unwrap().join(shared);
        std::os::unix::fs::symlink(from, folder.path().join(shared)).unwrap();
    }
    let failed = |(block, what): (&Block, String)| format!("{}:{}: {what}", name(path), block.line);
    let wrong = blocks
        .iter()
        .filter_map(|b| Some((b, run(b, folder.path()).err()?)));
    (count, wrong.map(failed).collect())
}

#[test]
fn every_command_does_what_is_shown() {
    let documents: Vec<_> = documents().into_iter().collect();
    let found: Vec<(usize, Vec<String>)> = std::thread::scope(|scope| {
        let running: Vec<_> = documents
            .iter()
            .map(|path| scope.spawn(|| document(path)))
            .collect();
        running.into_iter().map(|r| r.join().unwrap()).collect()
    });
    let wrong: Vec<&str> = found
        .iter()
        .flat_map(|f| &f.1)
        .map(String::as_str)
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let count: usize = found.iter().map(|f| f.0).sum();
    assert!(count > 15, "{count} blocks: too few are seen");
}

#[test]
fn every_block_of_a_shell_says_whether_it_runs() {
    for path in documents() {
        let text = std::fs::read_to_string(&path).unwrap();
        for block in split(&text).0 {
            let known = [
                "sh",
                "sh,no_run",
                "console",
                "console,fails",
                "console,no_run",
            ];
            let shell = ["sh", "bash", "shell", "console"];
            let first = block.info.split(',').next().unwrap();
            assert!(
                !shell.contains(&first) || known.contains(&block.info.as_str()),
                "{}:{}: `{}`; one of {known:?}",
                name(&path),
                block.line,
                block.info
            );
        }
    }
}

#[test]
fn a_line_is_held_against_what_is_shown() {
    assert!(shown("firewall: 1 619 packets", "firewall: … packets"));
    assert!(shown("abc", "abc") && shown("abc", "…c") && shown("abc", "a…"));
    assert!(!shown("abc", "ab") && !shown("abc", "…b") && !shown("abc", "a…x…c"));
}
