//! Emitted C of a few NFs, to be read: tests/golden/NAME.c. nop and portknock are whole, alone and by rows. Of the others a part (a function, a table) that
//! resembles an earlier one is the difference from it, and the middle of a long part is left out. A `#line` stands where the line of
//! the source changes. Set MILLRACE_BLESS=1 to write them anew after a change that is meant.

use crate::support;

use std::path::Path;

use millrace_emit::Sharing;
use millrace_object::Program;
use millrace_place::{Held, Placement};
use similar::TextDiff;
use support::{Bench, facts, nf};

/// The clang that the files were made with: another chooses other instructions.
const MAJOR: u32 = 19;

/// Parts of more lines are cut.
const LONG: usize = 70;

/// Lines of them that are kept at their beginning and at their end.
const KEPT: (usize, usize) = (30, 12);

/// What is emitted of a program as a file of this name, by [`lines_once`].
type Emit = fn(&Program, &str) -> String;

/// The golden files: their names, those of the functions, and how workers share their state.
const FILES: [(&str, &str, Emit); 6] = [
    ("nop", "nop", alone),
    ("portknock", "portknock", alone),
    ("portknock-replicate", "portknock", by_rows),
    ("firewall", "firewall", alone),
    ("portknock-lock", "portknock", locked),
    ("portknock-transact", "portknock", transacted),
];

/// How many of them are whole; the others may refer to their parts.
const WHOLE: usize = 3;

fn alone(program: &Program, file: &str) -> String {
    let text = millrace_emit::alone::emit(program, &facts(program), file).unwrap();
    lines_once(&text, file)
}

fn shared(program: &Program, file: &str, held: Held) -> String {
    let sharing = Sharing {
        placement: Placement::even(&program.objects, 1, vec![held]),
        test: None,
        profile: false,
    };
    emitted(program, file, &sharing)
}

fn emitted(program: &Program, file: &str, sharing: &Sharing) -> String {
    let text = millrace_emit::emit(program, &facts(program), sharing, file).unwrap();
    lines_once(&text, file)
}

fn locked(program: &Program, file: &str) -> String {
    shared(program, file, Held::Locked)
}

fn transacted(program: &Program, file: &str) -> String {
    shared(program, file, Held::Transacted)
}

/// What a packet says of state, and what state makes of it: the row, its `extract` and its `replay`.
fn by_rows(program: &Program, file: &str) -> String {
    let sharing = crate::replicate::sharing(program);
    let text = emitted(program, file, &sharing);
    let from = text.find("/* Fills a packet's row").unwrap();
    let to = text.find("static int create(").unwrap();
    let history = millrace_history::History::of(program, &facts(program));
    let row = millrace_history::text::text(&history);
    let row: String = row.lines().map(|l| format!(" * {l}\n")).collect();
    format!(
        "/* nfs/portknock/portknock.c by rows.\n{row} */\n\n{}",
        &text[from..to]
    )
}

/// The number of a `#line`, and what follows it.
fn directive(line: &str) -> Option<(usize, &str)> {
    let rest = line.strip_prefix("#line ")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = rest.split_at(digits);
    Some((number.parse().unwrap(), rest))
}

/// The text with a `#line` where the compiler takes a statement for one of another line than the statement before, or where the
/// directive has a comment. Directives that repeat a number, and those that lead back to the emitted file, which tell the truth, are
/// left out.
fn lines_once(text: &str, file: &str) -> String {
    let back = format!(" \"{file}\"");
    let mut out = String::new();
    // What the compiler takes the next line for, the last number written, and what follows the directive's number.
    let (mut at, mut written, mut comment) = (None, None, "");
    for (place, line) in (1..).zip(text.lines()) {
        if let Some((number, rest)) = directive(line) {
            let source = rest != back;
            assert!(source || number == place + 1, "line {place}: {line}");
            at = source.then_some(number);
            comment = rest;
            continue;
        }
        if let Some(number) = &mut at {
            let label = line.starts_with('L') && line.ends_with(':');
            if !label && (written != Some(*number) || !comment.is_empty()) {
                out.push_str(&format!("#line {number}{comment}\n"));
                written = Some(*number);
                comment = "";
            }
            *number += 1;
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// Functions, types and tables, each with the comment before it: what empty lines outside of braces divide.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut open = false;
    for line in text.lines() {
        open = (open || line.ends_with('{')) && !line.starts_with('}');
        match parts.last_mut() {
            Some(part) if open || !line.is_empty() => part.push_str(&format!("{line}\n")),
            _ => parts.push(String::new()),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The first line of a part behind its comment, without parameters.
fn head(part: &str) -> &str {
    let code = |line: &&str| !line.starts_with("/*") && !line.starts_with(" *");
    let line = part.lines().find(code).unwrap_or(part);
    line.split("(struct").next().unwrap_or(line)
}

/// A part as its difference from that of the earlier ones which it resembles most, where that is shorter by a third; else by itself.
fn difference(part: &str, earlier: &[String]) -> String {
    let from = |earlier: &String| {
        let difference = TextDiff::from_lines(earlier.as_str(), part)
            .unified_diff()
            .context_radius(1)
            .header(head(earlier), head(part))
            .to_string();
        match difference.is_empty() {
            true => format!("/* {}: as before */\n", head(part)),
            false => difference,
        }
    };
    let itself = shortened(part);
    let lines = |text: &String| text.lines().count();
    match earlier.iter().map(from).min_by_key(lines) {
        Some(nearest) if 3 * lines(&nearest) <= 2 * lines(&itself) => nearest,
        _ => itself,
    }
}

/// A part as far as a person reads it. That one line more or less is emitted shows all the same.
fn shortened(part: &str) -> String {
    let lines: Vec<&str> = part.lines().collect();
    if lines.len() <= LONG {
        return part.into();
    }
    let cut = KEPT.0..lines.len() - KEPT.1;
    format!(
        "{}\n\t/* ... {} lines ... */\n{}\n",
        lines[..cut.start].join("\n"),
        cut.len(),
        lines[cut.end..].join("\n")
    )
}

/// The text of a golden file, of a whole one and of one that refers to the parts of these.
fn read(parts: &[String], whole: Option<&[String]>) -> String {
    let Some(whole) = whole else {
        return parts.join("\n");
    };
    let mut earlier = whole.to_vec();
    let mut shown = Vec::new();
    for part in parts {
        shown.push(difference(part, &earlier));
        earlier.push(part.clone());
    }
    shown.join("\n")
}

#[test]
fn emitted_c_is_that_of_the_golden_files() {
    let bench = Bench::new();
    if bench.toolchain.major != MAJOR {
        eprintln!(
            "skipped: the golden files are of clang {MAJOR}, this is {}",
            bench.toolchain.major
        );
        return;
    }
    let bless = std::env::var_os("MILLRACE_BLESS").is_some();
    let repository = format!("{}/", nf::repository().display());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut whole = Vec::new();
    let mut differences = String::new();
    for (at, (name, function, emit)) in FILES.into_iter().enumerate() {
        let file = format!("{name}.c");
        let text = emit(&nf::load(&bench, function), &file);
        let parts = parts(&text.replace(&repository, ""));
        let found = read(&parts, (at >= WHOLE).then_some(whole.as_slice()));
        if at < WHOLE {
            whole.extend(parts);
        }
        if bless {
            std::fs::write(folder.join(&file), &found).unwrap();
        }
        let expected = std::fs::read_to_string(folder.join(&file)).unwrap_or_default();
        let difference = TextDiff::from_lines(&expected, &found);
        differences += &difference
            .unified_diff()
            .header(&file, "emitted now")
            .to_string();
    }
    assert!(
        differences.is_empty(),
        "{differences}MILLRACE_BLESS=1 accepts what is emitted now"
    );
}
