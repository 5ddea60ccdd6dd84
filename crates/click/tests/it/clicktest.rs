//! Data tests: files with a script, input files, and what is expected.
//!
//! The form is that of Click's own tests: sections `%info`, `%require`, `%script`, `%file NAME`, `%expect NAME`, `%ignore
//! [NAME]` and `%ignorex [NAME]`. In expected and ignored lines `{{…}}` is a regular expression; a line of `%ignorex` is
//! one as a whole. A script runs in a shell in an empty folder, where `click` and `click-flatten` are the interpreter.
//! tests/cases holds ours; $MILLRACE_CLICK_TESTS is a folder of others, of which those of [`THEIRS`] are run.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use millrace_click::language::{Limits, flatten, parse};

use crate::pattern::Pattern;

/// Sections of a file: the words behind the name, and the lines.
fn sections(text: &str) -> Vec<(String, Vec<String>, String)> {
    let mut all: Vec<(String, Vec<String>, String)> = Vec::new();
    for line in text.lines() {
        if let Some(head) = line
            .strip_prefix('%')
            .filter(|h| h.starts_with(|c: char| c.is_ascii_alphabetic()))
        {
            let mut words = head.split_whitespace().map(str::to_owned);
            let name = words.next().unwrap_or_default();
            if name == "eof" {
                break;
            }
            all.push((name, words.collect(), String::new()));
        } else if let Some((.., body)) = all.last_mut() {
            body.push_str(line);
            body.push('\n');
        }
    }
    all
}

/// Text in which `{{…}}` is an expression, as one expression.
fn expression(line: &str) -> Pattern {
    let mut out = String::new();
    let mut rest = line;
    let literal = |text: &str, out: &mut String| {
        for c in text.chars() {
            if !c.is_ascii_alphanumeric() && c.is_ascii() {
                out.push('\\');
            }
            out.push(c);
        }
    };
    while let Some((before, inside, after)) = rest
        .split_once("{{")
        .and_then(|(b, r)| r.split_once("}}").map(|(i, a)| (b, i, a)))
    {
        literal(before, &mut out);
        out += &format!("(?:{inside})");
        rest = after;
    }
    literal(rest, &mut out);
    Pattern::new(&out)
}

/// A folder with the commands that scripts call.
fn commands() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let binary = env!("CARGO_BIN_EXE_click-reference");
    for (name, text) in [
        ("click", format!("exec {binary} \"$@\"")),
        ("click-flatten", format!("exec {binary} --flatten \"$@\"")),
        (
            "click-buildtool",
            format!("exec {binary} --provides \"$@\""),
        ),
        ("click-provides", format!("exec {binary} --provides \"$@\"")),
        ("not", "! \"$@\"".to_owned()),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

/// Runs a test; what differs.
fn run(text: &str, bin: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let sections = sections(text);
    let mut script = String::new();
    let mut require = String::new();
    let mut stdin = String::new();
    for (name, words, body) in &sections {
        match name.as_str() {
            "script" => script.push_str(body),
            "require" => require.push_str(body),
            "file" => {
                for word in words.iter().filter(|w| !w.starts_with('-')) {
                    if word == "stdin" {
                        stdin.clone_from(body);
                        continue;
                    }
                    let path = folder.path().join(word);
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, body).unwrap();
                }
            }
            _ => {}
        }
    }
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let shell = |script: &str| {
        let mut command = Command::new("bash");
        command
            .args(["-e", "-c", script])
            .current_dir(folder.path());
        command.env_clear().env("PATH", &path).env("LC_ALL", "C");
        command
    };
    for line in require.lines() {
        let done = shell(line)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        if !done.success() {
            return Err(format!("requires {line}"));
        }
    }
    std::fs::write(folder.path().join(".stdin"), &stdin).unwrap();
    let file = std::fs::File::open(folder.path().join(".stdin")).unwrap();
    let done = shell(&script).stdin(file).output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&done.stdout).into_owned(),
        String::from_utf8_lossy(&done.stderr).into_owned(),
    );
    let mut wrong = String::new();
    if !done.status.success() {
        wrong += &format!("{}\n", done.status);
    }
    let mut checked = 0;
    let mut alternatives: BTreeMap<String, (bool, String)> = BTreeMap::new();
    for (name, words, body) in &sections {
        if name != "expect" && name != "expectx" {
            continue;
        }
        let blanks = words.iter().any(|w| w.starts_with('-') && w.contains('w'));
        for word in words.iter().filter(|w| !w.starts_with('-')) {
            let actual = match word.as_str() {
                "stdout" => out.clone(),
                "stderr" => err.clone(),
                name => std::fs::read(folder.path().join(name))
                    .map(|b| String::from_utf8_lossy(&b).into_owned())
                    .unwrap_or_default(),
            };
            checked += 1;
            let what = compare(&sections, word, body, &actual, blanks, name == "expectx");
            let what = what.map(|w| format!("{word}: {w}\n--- {word}:\n{actual}"));
            let entry = alternatives.entry(word.clone()).or_default();
            entry.0 |= what.is_none();
            entry.1 = what.unwrap_or_default();
        }
    }
    for (_, (good, what)) in alternatives {
        if !good {
            wrong += &what;
        }
    }
    if checked == 0 {
        return Err("it expects nothing".into());
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("{wrong}--- stderr:\n{err}"))
}

/// The first line that differs.
fn compare(
    sections: &[(String, Vec<String>, String)],
    file: &str,
    expected: &str,
    actual: &str,
    blanks: bool,
    whole: bool,
) -> Option<String> {
    let mut ignored = Vec::new();
    for (name, words, body) in sections {
        let kind = match name.as_str() {
            "ignore" => false,
            "ignorex" => true,
            _ => continue,
        };
        if words.is_empty() || words.iter().any(|w| w == file || w == "all") {
            for line in body.lines().filter(|l| !l.trim().is_empty()) {
                ignored.push(match kind {
                    true => Pattern::new(line.trim()),
                    false => expression(line),
                });
            }
        }
    }
    let kept = |line: &&str| !ignored.iter().any(|i| i.fits(line));
    let squeeze = |line: &str| match blanks {
        true => line.split_whitespace().collect::<Vec<_>>().join(" "),
        false => line.trim_end().to_owned(),
    };
    let lines = |text: &str| -> Vec<String> {
        let all = text.lines().filter(kept).map(squeeze);
        all.filter(|l| !l.is_empty()).collect()
    };
    let (expected, actual) = (lines(expected), lines(actual));
    for at in 0..expected.len().max(actual.len()) {
        match (expected.get(at), actual.get(at)) {
            (Some(e), Some(a)) if e == a => {}
            (Some(e), Some(a)) if whole && Pattern::new(e).fits(a) => {}
            (Some(e), Some(a)) if e.contains("{{") && expression(e).fits(a) => {}
            (e, a) => return Some(format!("line {}: {a:?}, expected {e:?}", at + 1)),
        }
    }
    None
}

fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut stack = vec![folder.to_owned()];
    while let Some(folder) = stack.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                stack.push(path);
            } else if path
                .extension()
                .is_some_and(|e| extensions.iter().any(|x| e == *x))
            {
                all.push(path);
            }
        }
    }
    all.sort();
    all
}

#[test]
fn cases() {
    let bin = commands();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut failed = Vec::new();
    let all = files(&folder, &["clicktest"]);
    assert!(!all.is_empty());
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap();
        if let Err(why) = run(&text, bin.path()) {
            failed.push(format!("{}: {why}", path.display()));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Their tests that pass, by their files' names.
pub const THEIRS: &[&str] = &[
    "AddressInfo-bcast-01",
    "AlignmentInfo-01",
    "BandwidthRatedUnqueue-01",
    "Classifier-02",
    "Duplicate-01",
    "FromIPSummaryDump-01",
    "FromIPSummaryDump-02",
    "FrontDropQueue-01",
    "FullNoteQueue-upstream-notifier-01",
    "ICMPPingRewriter-01",
    "ICMPPingRewriter-02",
    "ICMPRewriter-01",
    "ICMPRewriter-02",
    "ICMPRewriter-03",
    "IPAddrPairRewriter-01",
    "IPAddrPairRewriter-02",
    "IPAddrRewriter-01",
    "IPAddrRewriter-02",
    "IPAddrRewriter-03",
    "IPFilter-01",
    "IPFilter-02",
    "IPFilter-03",
    "IPFilter-08",
    "IPFragmenter-01",
    "IPFragmenter-02",
    "IPPrint-01",
    "IPRewriter-01",
    "IPRewriter-02",
    "IPRewriter-03",
    "IPRewriter-04",
    "IPRewriter-09",
    "IPRewriter-10",
    "IPRewriter-11",
    "IPRewriter-12",
    "IPRewriter-15",
    "IPRewriter-16",
    "IPRewriter-17",
    "IPSummaryDump-01",
    "Idle-01",
    "MarkIPCE-01",
    "MixedQueue-01",
    "MoveData-01",
    "Pad-01",
    "PaintRR-01",
    "Queue-notifiers-01",
    "Resize-01",
    "RoundRobinIPMapper-01",
    "Script-01",
    "Script-03",
    "Script-04",
    "Script-05",
    "SetIPDSCP-01",
    "StoreData-01",
    "StoreIPAddress-01",
    "StrideSched-01",
    "TCPRewriter-02",
    "Tee-01",
    "UDPRewriter-01",
    "UDPRewriter-02",
    "UDPRewriter-03",
    "UDPRewriter-04",
    "UDPRewriter-09",
    "UDPRewriter-12",
    "UDPRewriter-13",
    "Unqueue-01",
    "VLANEncap-01",
    "agg-01",
    "compact-01",
    "expansion-01",
    "handlercall-01",
    "input-01",
    "iplookups-02",
    "landmarks-01",
    "lexer-02",
    "lexer-03",
    "lexer-04",
    "lexer-05",
    "lexer-06",
    "lexer-07",
    "lexer-08",
    "lexer-09",
    "library-01",
    "notifier-02",
    "overload-01",
    "variables-01",
];

#[test]
fn theirs() {
    let Some(folder) = std::env::var_os("MILLRACE_CLICK_TESTS").map(PathBuf::from) else {
        println!("skipped: MILLRACE_CLICK_TESTS names no folder with Click's tests");
        return;
    };
    let bin = commands();
    // What others try: MILLRACE_CLICK_TRY=PART runs the tests whose names have that part, and prints what differs.
    let part = std::env::var("MILLRACE_CLICK_TRY").ok();
    let (mut failed, mut found) = (Vec::new(), 0);
    for path in files(&folder, &["clicktest", "testie"]) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let listed = THEIRS.contains(&name.as_str());
        if !listed && part.as_ref().is_none_or(|p| !name.contains(p)) {
            continue;
        }
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        found += usize::from(listed);
        match run(&text, bin.path()) {
            Ok(()) => println!("passed {name}"),
            Err(why) if listed => failed.push(format!("{name}: {why}")),
            Err(why) => println!("differs {name}: {why}"),
        }
    }
    println!(
        "{found} of {} tests that are listed were found",
        THEIRS.len()
    );
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(found, THEIRS.len());
}

/// The configurations of a test: texts of `click -e`, and the files that a command is given.
fn configurations(text: &str) -> Vec<(String, String)> {
    let sections = sections(text);
    let scripts = sections.iter().filter(|s| s.0 == "script");
    let script: String = scripts.map(|s| s.2.as_str()).collect();
    let mut all = Vec::new();
    let mut rest = script.as_str();
    while let Some((_, after)) = rest.split_once("click") {
        rest = after;
        let line = after.lines().next().unwrap_or("");
        // The option may stand behind others; the text may be in either quotes, and has no such quote in it unescaped.
        if let Some(at) = line.find("e \"").or(line.find("e '"))
            && line[..at].ends_with(['-', 'q', 'h'])
        {
            let text = &after[at + 2..];
            let quote = text.as_bytes()[0];
            let mut end = 1;
            let bytes = text.as_bytes();
            while end < bytes.len() && bytes[end] != quote {
                end += 1 + usize::from(bytes[end] == b'\\' && quote == b'"');
            }
            let inside = text.get(1..end).unwrap_or("");
            let inside = match quote {
                b'"' => inside
                    .replace("\\$", "$")
                    .replace("\\\"", "\"")
                    .replace("\\\\", "\\"),
                _ => inside.to_owned(),
            };
            all.push(("-e".to_owned(), inside));
        }
        for word in line.split_whitespace() {
            let word = word.trim_matches(|c| c == '<' || c == ';');
            let file = sections
                .iter()
                .find(|s| s.0 == "file" && s.1.iter().any(|n| n == word));
            if let Some(file) = file.filter(|f| f.2.contains("::") || f.2.contains("->")) {
                all.push((word.to_owned(), file.2.clone()));
            }
        }
    }
    all
}

/// All configurations of the folder parse and flatten: `.click` files, and those of tests but the ones whose errors the
/// test expects.
#[test]
fn theirs_flatten() {
    let Some(folder) = std::env::var_os("MILLRACE_CLICK_TESTS").map(PathBuf::from) else {
        println!("skipped: MILLRACE_CLICK_TESTS names no folder with Click's tests");
        return;
    };
    let limits = Limits::default();
    let mut all = Vec::new();
    for path in files(&folder, &["click", "clicktest", "testie"]) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let name = path.display().to_string();
        match path.extension().is_some_and(|e| e == "click") {
            true => all.push((name, text)),
            false => {
                let inner = configurations(&text).into_iter();
                all.extend(inner.map(|(part, text)| (format!("{name} {part}"), text)));
            }
        }
    }
    let mut library = |from: &str, name: &str| {
        let path = Path::new(from).parent().unwrap().join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        Ok((path.display().to_string(), text))
    };
    let (mut good, mut wrong) = (0, Vec::new());
    for (name, text) in all {
        let read = parse(&text, &name, &limits, &mut library);
        match read.and_then(|file| flatten(&file, &limits)) {
            Ok(_) => good += 1,
            Err(errors) => wrong.push((name, errors[0].to_string())),
        }
    }
    println!("{good} configurations flatten");
    for (name, why) in &wrong {
        println!("refused {name}: {why}");
    }
    // Those are refused that are no Click, or whose refusal their test expects.
    let odd = |name: &str| REFUSED.iter().any(|r| name.contains(r));
    let wrong: Vec<_> = wrong.iter().filter(|(name, _)| !odd(name)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Configurations that Click refuses, too: text for m4, and tests of its errors.
const REFUSED: &[&str] = &[
    "grid.click",
    "lexer-01",
    "lexer-04",
    "lexer-05",
    "lexer-06",
    "lexer-09",
    // What stands in the script is the shell's before it is Click's.
    "flow-dynamic",
    "flow-no-dynamic",
    "ICMPRewriter-0",
    "iplookups-01",
    "StripTCPHeader-01",
    "timewarp-01",
];
