//! What is emitted for a few NFs, to be read: tests/golden/NAME.c. Set MILLRACE_BLESS=1 to write them
//! anew after a change that is meant.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::path::Path;

use millrace_emit::Sharing;
use millrace_object::Program;
use millrace_place::{Held, Placement};
use support::{Bench, facts, nf};

/// The clang that the files were made with: another chooses other instructions.
const MAJOR: u32 = 19;

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
        };
        millrace_emit::emit(program, &facts(program), &sharing, "portknock-lock.c").unwrap()
    });
}
