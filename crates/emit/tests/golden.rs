//! Emitted C of a few NFs, to be read: tests/golden/NAME.c, of long functions the beginning and the end but for
//! portknock, which is whole, alone and by rows. Set MILLRACE_BLESS=1 to write them anew after a change that is meant.

use crate::support;

use std::path::Path;

use millrace_emit::Sharing;
use millrace_object::Program;
use millrace_place::{Held, Placement};
use support::{Bench, facts, nf};

/// The clang that the files were made with: another chooses other instructions.
const MAJOR: u32 = 19;

/// Functions of more lines are cut.
const LONG: usize = 70;

/// Lines of them that are kept at their beginning and at their end.
const KEPT: (usize, usize) = (30, 12);

/// The text as far as a person reads it. That one line more or less is emitted shows all the same.
fn shortened(text: &str) -> String {
    let mut out = String::new();
    let mut function: Option<Vec<&str>> = None;
    for line in text.lines() {
        match &mut function {
            Some(inside) if line == "}" => {
                let cut = inside.len().saturating_sub(KEPT.0 + KEPT.1);
                for (at, line) in inside.iter().enumerate() {
                    if inside.len() > LONG && at == KEPT.0 {
                        out.push_str(&format!("\t/* ... {cut} lines ... */\n"));
                    }
                    if inside.len() <= LONG || !(KEPT.0..KEPT.0 + cut).contains(&at) {
                        out.push_str(line);
                        out.push('\n');
                    }
                }
                out.push_str("}\n");
                function = None;
            }
            Some(inside) => inside.push(line),
            None => {
                out.push_str(line);
                out.push('\n');
                function = (line == "{").then(Vec::new);
            }
        }
    }
    out
}

fn golden(name: &str) {
    emitted(name, name, |program| {
        millrace_emit::alone::emit(program, &facts(program), &format!("{name}.c")).unwrap()
    });
}

fn emitted(name: &str, kept: &str, emit: impl Fn(&Program) -> String) {
    let bench = Bench::new();
    if bench.toolchain.major != MAJOR {
        eprintln!(
            "skipped: the golden files are of clang {MAJOR}, this is {}",
            bench.toolchain.major
        );
        return;
    }
    let program = nf::load(&bench, name);
    let text = emit(&program);
    let found = text.replace(&format!("{}/", nf::repository().display()), "");
    let found = match ["portknock", "portknock-replicate"].contains(&kept) {
        true => found,
        false => shortened(&found),
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{kept}.c"));
    if std::env::var_os("MILLRACE_BLESS").is_some() {
        std::fs::write(&file, &found).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    for (number, (found, expected)) in (1..).zip(found.lines().zip(expected.lines())) {
        assert_eq!(
            found, expected,
            "{kept}.c line {number}; MILLRACE_BLESS=1 accepts what is emitted now"
        );
    }
    assert_eq!(
        found.lines().count(),
        expected.lines().count(),
        "{kept}.c: MILLRACE_BLESS=1 accepts what is emitted now"
    );
}

#[test]
fn nop() {
    golden("nop");
}

#[test]
fn portknock() {
    golden("portknock");
}

#[test]
fn firewall() {
    golden("firewall");
}

/// Its only object is shared.
#[test]
fn portknock_under_the_lock() {
    emitted("portknock", "portknock-lock", |program| {
        let sharing = Sharing {
            placement: Placement::even(&program.objects, 1, vec![Held::Locked]),
            test: None,
            profile: false,
        };
        millrace_emit::emit(program, &facts(program), &sharing, "portknock-lock.c").unwrap()
    });
}

/// Its only object is shared, and packets are transactions.
#[test]
fn portknock_as_transactions() {
    emitted("portknock", "portknock-transact", |program| {
        let sharing = Sharing {
            placement: Placement::even(&program.objects, 1, vec![Held::Transacted]),
            test: None,
            profile: false,
        };
        let file = "portknock-transact.c";
        millrace_emit::emit(program, &facts(program), &sharing, file).unwrap()
    });
}

/// What a packet says of state, and what state makes of it: the row, its `extract` and its `replay`.
#[test]
fn portknock_by_rows() {
    emitted("portknock", "portknock-replicate", |program| {
        let sharing = crate::replicate::sharing(program);
        let file = "portknock-replicate.c";
        let text = millrace_emit::emit(program, &facts(program), &sharing, file).unwrap();
        let from = text.find("/* Fills a packet's row").unwrap();
        let to = text.find("static int create(").unwrap();
        let history = millrace_history::History::of(program, &facts(program));
        let row = millrace_history::text::text(&history);
        let row: String = row.lines().map(|l| format!(" * {l}\n")).collect();
        format!(
            "/* nfs/portknock/portknock.c by rows.\n{row} */\n\n{}",
            &text[from..to]
        )
    });
}
