//! Pages that list what the code knows. A part between `<!-- generated: NAME -->` and `<!-- end -->` is written by
//! MILLRACE_BLESS=1; the last column of its table, where it is headed *what for*, is written by hand and kept.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use millrace_check::Rule;
use millrace_object::contract::Act;
use millrace_object::helper::{self, Arg, HELPERS, Helper, Return};
use millrace_object::program::StateObject;
use millrace_object::state::{self, Addressing, KINDS, StateKind};

use super::hold;
use super::markdown::split;
use crate::common::{output, root};

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// Fills the generated parts of a page.
fn fill(name: &str, parts: &[(&str, String)]) {
    let mut text = page(name);
    for (part, filling) in parts {
        let begin = format!("<!-- generated: {part} -->\n");
        let from = text
            .find(&begin)
            .unwrap_or_else(|| panic!("{name}: {begin}"))
            + begin.len();
        let to = from + text[from..].find("<!-- end -->").unwrap();
        text.replace_range(from..to, filling);
    }
    hold(name, &text);
}

/// What stands by hand in the last column of the row that begins with this cell.
fn kept(name: &str, cell: &str) -> String {
    let row = format!("| {cell} |");
    let text = page(name);
    let found = text.lines().find(|l| l.starts_with(&row));
    let last = found.and_then(|l| l.trim_end_matches('|').rsplit('|').next());
    let last = last.unwrap_or_default().trim().to_owned();
    let blessing = std::env::var_os("MILLRACE_BLESS").is_some();
    assert!(
        blessing || !last.is_empty(),
        "docs/{name}: say in the last column what `{cell}` is for"
    );
    last
}

/// Bytes as people read them, with a space that does not break.
fn size(bytes: u64) -> String {
    match bytes {
        0..=1023 => format!("{bytes}\u{a0}B"),
        1024..=1_048_575 => format!("{:.1}\u{a0}KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1}\u{a0}MiB", bytes as f64 / 1_048_576.0),
    }
}

/// What 65,536 entries take, with keys of 16 and values of 8 bytes, or the next sizes that the kind admits.
fn memory(kind: &'static StateKind) -> String {
    let sizes = [
        (16, 8),
        (16, 4),
        (8, 8),
        (4, 8),
        (4, 4),
        (0, 8),
        (0, 0),
        (0, 4),
    ];
    for (key_bytes, value_bytes) in sizes {
        let object = StateObject {
            flags: u32::from(*kind == state::lpm_trie::KIND),
            rows: if kind.estimates() { 4 } else { 0 },
            settable: true,
            ..StateObject::new("o", kind, key_bytes, value_bytes, 65536)
        };
        if (kind.validate)(&object).is_ok() {
            let bytes = (kind.bytes)(&object);
            return format!("{key_bytes}\u{a0}+\u{a0}{value_bytes}: {}", size(bytes));
        }
    }
    "by its declaration".into()
}

fn found_by(kind: &StateKind) -> &'static str {
    match kind.addressing {
        Addressing::Key => "key",
        Addressing::Prefix => "longest prefix",
        Addressing::Index => "index",
        Addressing::Lease => "number that it leases",
        Addressing::None => "order",
    }
}

#[test]
fn state_kinds() {
    const NAME: &str = "state-kinds.md";
    const HEAD: &str = "| kind | declared as | found by | when full | 65,536 entries | what for |\n\
         | --- | --- | --- | --- | --- | --- |\n";
    let table = |declared: &dyn Fn(&StateKind) -> Option<String>| {
        let mut text = HEAD.to_owned();
        for kind in KINDS {
            let Some(declared) = declared(kind) else {
                continue;
            };
            let cell = format!("`{}`", kind.name);
            writeln!(
                text,
                "| {cell} | {declared} | {} | {} | {} | {} |",
                found_by(kind),
                kind.at_capacity,
                memory(kind),
                kept(NAME, &cell)
            )
            .unwrap();
        }
        text
    };
    let handlers = |k: &StateKind| {
        k.handler_kind
            .map(|_| format!("`{}`", k.name.to_uppercase()))
    };
    let xdp = |k: &StateKind| k.bpf_type.map(|n| format!("`{}`", state::bpf_type_name(n)));
    let neither = |k: &StateKind| {
        (k.handler_kind.is_none() && k.bpf_type.is_none()).then(|| "nothing".to_owned())
    };
    fill(
        NAME,
        &[
            ("handlers", table(&handlers)),
            ("xdp", table(&xdp)),
            ("implied", table(&neither)),
        ],
    );
}

fn argument(arg: &Arg) -> String {
    match arg {
        Arg::Context => "context".into(),
        Arg::Object => "object".into(),
        Arg::Timer => "timer".into(),
        Arg::Callback | Arg::Function => "function".into(),
        Arg::Key => "key".into(),
        Arg::Value => "value".into(),
        Arg::Scalar => "number".into(),
        Arg::Read { nullable: false } => "bytes".into(),
        Arg::Read { nullable: true } => "bytes or null".into(),
        Arg::In(n) => format!("{n} bytes"),
        Arg::Text => "constant text".into(),
        Arg::Write { nullable: false } => "buffer".into(),
        Arg::Write { nullable: true } => "buffer or null".into(),
        Arg::Update => "bytes in and out".into(),
        Arg::Bytes { .. } => "size".into(),
        Arg::Record => "record".into(),
        Arg::Out(n) => format!("{n} bytes out"),
        Arg::InOut(n) => format!("{n} bytes in and out"),
        Arg::KeyOut => "key out".into(),
        Arg::Any => "anything".into(),
        Arg::Iterator => "iterator".into(),
        Arg::ValueOut => "value out".into(),
    }
}

fn result(helper: &Helper) -> String {
    match helper.returns {
        Return::Scalar { min, max } if min == max => format!("{min}"),
        Return::Scalar {
            min: i64::MIN,
            max: i64::MAX,
        } => "number".into(),
        Return::Scalar { min, max } if max == i64::MAX => format!("number from {min}"),
        Return::Scalar { min, max } => format!("{min} to {max}"),
        Return::ValueOrNull => "value or null".into(),
        Return::RecordOrNull => "record or null".into(),
    }
}

fn effects(helper: &Helper) -> String {
    let e = helper.effects;
    let writes = helper
        .kinds()
        .any(|k| k.does(helper).is_some_and(|d| d.act > Act::Look));
    let all = [
        (e.moves_packet, "moves the packet"),
        (e.writes_packet, "writes the packet"),
        (writes, "state"),
        (e.time, "time"),
        (e.random, "random"),
        (e.other, "other"),
    ];
    let held = all.iter().filter(|(there, _)| *there);
    let held: Vec<&str> = held.map(|(_, name)| *name).collect();
    if held.is_empty() {
        "none".into()
    } else {
        held.join(", ")
    }
}

/// The kinds that a helper works on; those of six that stand together often have a word.
fn kinds(helper: &Helper) -> String {
    const TABLES: [&str; 6] = [
        "hash",
        "lru_hash",
        "array",
        "percpu_array",
        "percpu_hash",
        "lru_percpu_hash",
    ];
    let names: Vec<&str> = helper.kinds().map(|k| k.name).collect();
    let all = TABLES.iter().all(|t| names.contains(t));
    let others = names.into_iter().filter(|k| !all || !TABLES.contains(k));
    let tables = all.then_some("*tables*");
    let shown: Vec<&str> = tables.into_iter().chain(others).collect();
    shown.join(", ")
}

#[test]
fn helpers() {
    const NAME: &str = "helpers.md";
    const HEAD: &str = "| helper | number | arguments | result | of kinds | effects | what for |\n\
                        | --- | --- | --- | --- | --- | --- | --- |\n";
    let table = |wanted: &dyn Fn(u32) -> bool, prefix: &str| {
        let mut text = HEAD.to_owned();
        for helper in HELPERS.iter().filter(|h| wanted(h.number)) {
            let cell = format!("`{prefix}{}`", helper.name);
            let arguments: Vec<String> = helper.args.iter().map(argument).collect();
            writeln!(
                text,
                "| {cell} | {} | {} | {} | {} | {} | {} |",
                match helper.number {
                    n if n >= 0x10000 => format!("{n:#x}"),
                    n => n.to_string(),
                },
                arguments.join(", "),
                result(helper),
                kinds(helper),
                effects(helper),
                kept(NAME, &cell)
            )
            .unwrap();
        }
        text
    };
    let first = helper::kernel_functions::FIRST;
    fill(
        NAME,
        &[
            ("handlers", table(&|n| (0x10000..first).contains(&n), "")),
            ("kernel", table(&|n| n < 0x10000, "bpf_")),
            (
                "functions",
                table(&|n| (first..helper::EXPANSION).contains(&n), "bpf_"),
            ),
        ],
    );
}

#[test]
fn the_error_index_has_every_rule() {
    let text = page("errors.md");
    let (_, prose) = split(&text);
    let mut sections: Vec<(&str, bool)> = Vec::new();
    for (_, line) in prose {
        if let Some(rule) = line.strip_prefix("### ") {
            sections.push((rule, false));
        } else if line.starts_with("**Fix**") {
            sections.last_mut().unwrap().1 = true;
        }
    }
    for (rule, fixed) in &sections {
        assert!(
            fixed,
            "docs/errors.md: `{rule}` says in no line **Fix** what to do"
        );
    }
    let listed: BTreeSet<&str> = sections.iter().map(|s| s.0).collect();
    assert_eq!(listed.len(), sections.len(), "a rule stands there twice");
    let rules: BTreeSet<&str> = Rule::ALL.iter().map(|r| r.name()).collect();
    assert_eq!(listed, rules, "docs/errors.md has not the rules of `check`");
}

/// Text of a manual page as Markdown.
fn text(roff: &str) -> String {
    let plain = roff
        .replace("\\fB", "")
        .replace("\\fI", "")
        .replace("\\fR", "")
        .replace("\\*(Aq", "'")
        .replace("\\-", "-");
    // Outside of backquotes `<` would begin a tag; `|` ends a cell everywhere.
    let mut out = String::new();
    for (number, part) in plain.split('`').enumerate() {
        if number > 0 {
            out.push('`');
        }
        let part = part.replace('|', "\\|");
        match number % 2 {
            0 => out.push_str(&part.replace('<', "&lt;").replace('*', "\\*")),
            _ => out.push_str(&part),
        }
    }
    let mut linked = String::new();
    let mut rest = out.as_str();
    while let Some(at) = rest.find("docs/") {
        linked.push_str(&rest[..at]);
        rest = &rest[at + 5..];
        let end = rest.find(".md").unwrap();
        write!(linked, "[{0}]({0}.md)", &rest[..end]).unwrap();
        rest = &rest[end + 3..];
    }
    linked + rest
}

/// The head of an option in backquotes, and what stands behind it.
fn head(line: &str) -> String {
    let plain = line
        .replace("\\fB", "")
        .replace("\\fI", "")
        .replace("\\fR", "")
        .replace("\\-", "-")
        .replace('|', "\\|");
    match plain.split_once(" [default: ") {
        Some((option, default)) => format!("`{option}` (`{}`)", default.trim_end_matches(']')),
        None => format!("`{plain}`"),
    }
}

/// A manual page as a section: its sentence, its options as a table, what stands at its end; and the commands below it.
fn section(pages: &std::path::Path, command: &str, depth: usize) -> String {
    let file = pages.join(format!("{}.1", command.replace(' ', "-")));
    let roff = std::fs::read_to_string(file).unwrap();
    let mut out = format!("{} {command}\n\n", "#".repeat(depth));
    let mut part = String::new();
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut below = Vec::new();
    let mut wants_head = false;
    let mut last = Vec::new();
    for line in roff.lines() {
        if let Some(name) = line.strip_prefix(".SH ") {
            part = name.to_owned();
        } else if line == ".TP" {
            wants_head = true;
        } else if line.starts_with('.') && !line.starts_with(".IP") || line.is_empty() {
        } else if part == "DESCRIPTION" {
            writeln!(out, "{}.\n", text(line).trim_end_matches('.')).unwrap();
        } else if part == "EXTRA" {
            last.push(text(line));
        } else if part == "SUBCOMMANDS" && wants_head {
            let name = line.replace("\\-", "-");
            below.push(name.trim_end_matches("(1)").replace('-', " "));
            wants_head = false;
        } else if part == "OPTIONS" {
            if wants_head {
                rows.push((head(line), String::new()));
                wants_head = false;
            } else if line.starts_with(".IP") {
                rows.last_mut().unwrap().1.push_str("<br>");
            } else if line.contains("Possible values:") {
            } else {
                let row = &mut rows.last_mut().unwrap().1;
                if !row.is_empty() && !row.ends_with("<br>") {
                    row.push(' ');
                }
                row.push_str(&text(line));
            }
        }
    }
    rows.retain(|(head, _)| !head.contains("--help") && !head.contains("--version"));
    if !rows.is_empty() {
        out.push_str("| option | meaning |\n| --- | --- |\n");
        for (head, meaning) in rows {
            writeln!(out, "| {head} | {meaning} |").unwrap();
        }
        out.push('\n');
    }
    for line in last {
        writeln!(out, "{line}\n").unwrap();
    }
    for name in below {
        // `ctl chain attach` is `millrace-ctl-chain-attach`: of the command's own words none has a hyphen.
        out.push_str(&section(pages, &name, (depth + 1).min(4)));
    }
    out
}

#[test]
fn the_command() {
    let folder = tempfile::tempdir().unwrap();
    let (made, said) = output(crate::common::millrace().arg("manual").arg(folder.path()));
    assert!(made.status.success(), "{said}");
    let pages = folder.path().join("man1");
    let all = section(&pages, "millrace", 1);
    let verbs = &all[all.find("\n## ").unwrap() + 1..];
    fill("command.md", &[("verbs", verbs.to_owned())]);
}

#[test]
fn every_kind_of_port_is_described() {
    let text = page("ports.md");
    // The first table; another one has options.
    let text = &text[..text.find("\n## ").unwrap()];
    // Captures have no scheme.
    let schemes = millrace_dataplane::port::KINDS.iter().map(|k| k.scheme);
    for scheme in schemes.filter(|s| !s.is_empty()) {
        let row = format!("| `{scheme}:");
        assert!(text.contains(&row), "docs/ports.md has no row `{scheme}:`");
    }
}

#[test]
fn every_reason_of_the_run_is_described() {
    use millrace_dataplane::account;
    let counters = include_str!("../../../dataplane/src/worker/counters.rs");
    let text = page("troubleshooting.md");
    // Reasons of the run itself stand one a line in a list of names.
    let listed = counters.lines().filter_map(|l| {
        let name = l.trim().strip_prefix('"')?.strip_suffix("\",")?;
        name.chars()
            .all(|c| c.is_ascii_lowercase() || c == '_')
            .then_some(name)
    });
    let named = [
        account::OVERSIZE,
        account::NO_SUCH_PORT,
        account::ABORTED,
        account::NO_OTHER_PORT,
    ];
    let mut seen = 0;
    for reason in listed.chain(named) {
        seen += 1;
        let there = text.contains(&format!("`{reason}`"));
        assert!(there, "docs/troubleshooting.md does not explain `{reason}`");
    }
    assert!(seen >= 8, "{seen} reasons: too few are seen");
}

#[test]
fn every_request_of_the_control_socket_is_described() {
    let source = include_str!("../../../control/src/answer/mod.rs");
    let text = page("control.md");
    let mut seen = 0;
    // An arm of the match over requests: `"name" => …` or `"name" | "name" => …`.
    for arm in source
        .lines()
        .filter_map(|l| l.split_once(" => ").map(|p| p.0.trim()))
    {
        for name in arm.split(" | ").filter_map(|n| n.strip_prefix('"')) {
            seen += 1;
            let name = name.trim_end_matches('"');
            let there =
                text.contains(&format!("| `{name}`")) || text.contains(&format!(", `{name}` |"));
            assert!(
                there,
                "docs/control.md does not describe the request `{name}`"
            );
        }
    }
    assert!(seen >= 14, "{seen} requests: too few are seen");
}

#[test]
fn the_operators_guide_has_every_metric() {
    let source = concat!(
        include_str!("../../src/metrics/families.rs"),
        include_str!("../../src/metrics/elements.rs")
    );
    let text = page("operate.md");
    let texts: Vec<&str> = source.split('"').collect();
    let mut seen = 0;
    // Between two quotation marks, and between one text and the next.
    for part in texts.windows(3).skip(1).step_by(2) {
        // A family is its name and then its help, which begins with a capital.
        let (name, between) = (part[0], part[1].trim());
        let helped = part[2].chars().next().is_some_and(char::is_uppercase);
        let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        if between == "," && helped && is_name {
            seen += 1;
            assert!(
                text.contains(&format!("`millrace_{name}")),
                "docs/operate.md does not name millrace_{name}"
            );
        }
    }
    assert!(seen >= 20, "{seen} families: too few are seen");
}
