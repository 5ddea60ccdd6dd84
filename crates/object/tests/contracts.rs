//! The registries: unique, sorted, named so that C can have functions of these names.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;

use millrace_object::helper::kernel_functions::FIRST;
use millrace_object::helper::{self, Arg, HELPERS, Return};
use millrace_object::state::{self, KINDS};

fn is_c_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_lowercase())
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

#[test]
fn helpers_are_sorted_unique_and_named_for_c() {
    assert!(HELPERS.windows(2).all(|w| w[0].number < w[1].number));
    let names: HashSet<_> = HELPERS.iter().map(|h| h.name).collect();
    assert_eq!(names.len(), HELPERS.len());
    for helper in HELPERS {
        assert!(is_c_name(helper.name), "{}", helper.name);
        assert_eq!(helper::by_number(helper.number).unwrap().name, helper.name);
    }
    assert!(helper::by_number(0).is_none());
    assert!(helper::by_number(u32::MAX).is_none());
}

#[test]
fn helper_contracts_are_coherent() {
    let kinds: HashSet<_> = KINDS.iter().map(|k| k.name).collect();
    for helper in HELPERS {
        let name = helper.name;
        assert!(helper.args.len() <= 5, "{name}");
        let takes_object = helper.object_argument().is_some() || helper.args.contains(&Arg::Timer);
        assert_eq!(takes_object, !helper.kinds.is_empty(), "{name}");
        if let Some(at) = helper.object_argument() {
            let before = &helper.args[..at];
            assert!(
                before
                    .iter()
                    .all(|a| matches!(a, Arg::Context | Arg::Timer)),
                "{name}"
            );
        }
        for kind in helper.kinds {
            assert!(kinds.contains(kind), "{name}: {kind}");
        }
        for (i, arg) in helper.args.iter().enumerate() {
            match arg {
                Arg::Key | Arg::KeyOut | Arg::Value | Arg::ValueOut => {
                    assert!(takes_object, "{name}");
                }
                Arg::Function => {
                    assert_eq!(helper.args.get(i + 1), Some(&Arg::Any), "{name}");
                }
                Arg::Read { .. } | Arg::Write { .. } | Arg::Update => {
                    assert!(
                        matches!(helper.args.get(i + 1), Some(Arg::Bytes { .. })),
                        "{name}"
                    );
                }
                Arg::Bytes { zero } => match helper.args[i - 1] {
                    Arg::Read { nullable } | Arg::Write { nullable } => {
                        assert!(!nullable || *zero, "{name}");
                    }
                    Arg::Update => {}
                    _ => panic!("{name}: a size without its pointer"),
                },
                _ => {}
            }
        }
        match helper.returns {
            Return::Scalar { min, max } => assert!(min <= max, "{name}"),
            Return::ValueOrNull | Return::RecordOrNull => assert!(takes_object, "{name}"),
        }
        if takes_object {
            assert!(helper.effects.state, "{name}");
        }
    }
}

#[test]
fn every_helper_of_the_dialect_exists() {
    // docs/dialect.md, "Helpers of our own": the table's first two columns.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dialect.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut found = 0;
    for line in text.lines() {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (Some(number), Some(prototype)) = (cells.next(), cells.next()) else {
            continue;
        };
        let Some(number) = number.strip_prefix("0x") else {
            continue;
        };
        let number = u32::from_str_radix(number, 16).unwrap();
        let (name, rest) = prototype.split_once('(').unwrap();
        let helper = helper::by_number(number).unwrap_or_else(|| panic!("{number:#x} {name}"));
        assert_eq!(helper.name, name);
        let args = rest.trim_end_matches(')').split(", ").count();
        assert_eq!(helper.args.len(), args, "{name}");
        found += 1;
    }
    let ours = HELPERS
        .iter()
        .filter(|h| (0x10000..FIRST).contains(&h.number))
        .count();
    assert_eq!(found, ours);
}

#[test]
fn kinds_are_unique_and_named_for_c() {
    let names: HashSet<_> = KINDS.iter().map(|k| k.name).collect();
    assert_eq!(names.len(), KINDS.len());
    let mut bpf = HashSet::new();
    let mut handler = HashSet::new();
    for kind in KINDS {
        assert!(is_c_name(kind.name) && is_c_name(kind.c), "{}", kind.name);
        assert!(kind.bpf_type.is_none_or(|t| bpf.insert(t)), "{}", kind.name);
        assert!(
            kind.handler_kind.is_none_or(|t| handler.insert(t)),
            "{}",
            kind.name
        );
        assert_eq!(state::by_name(kind.name), Some(*kind));
    }
    assert_eq!(
        bpf.len() + handler.len() + 2,
        KINDS.len(),
        "two kinds are declared by neither: global and routes"
    );
}
