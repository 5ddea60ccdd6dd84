//! The registries: unique, sorted, named so that C can have functions of these names.

use std::collections::HashSet;

use millrace_object::contract::{Act, Call, Does, Reach};
use millrace_object::helper::kernel_functions::FIRST;
use millrace_object::helper::{self, Arg, HELPERS, Return};
use millrace_object::state::{self, Addressing, KINDS};

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
    for helper in HELPERS.iter() {
        assert!(is_c_name(helper.name), "{}", helper.name);
        assert_eq!(helper::by_number(helper.number).unwrap().name, helper.name);
    }
    assert!(helper::by_number(0).is_none());
    assert!(helper::by_number(u32::MAX).is_none());
}

#[test]
fn helper_contracts_are_coherent() {
    for helper in HELPERS.iter() {
        let name = helper.name;
        assert!(helper.args.len() <= 5, "{name}");
        let takes_object = helper.takes_object();
        assert_eq!(takes_object, helper.kinds().next().is_some(), "{name}");
        if let Some(at) = helper.object_argument() {
            let before = &helper.args[..at];
            assert!(
                before
                    .iter()
                    .all(|a| matches!(a, Arg::Context | Arg::Timer)),
                "{name}"
            );
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
        assert!(!takes_object || helper.does.is_some(), "{name}");
    }
}

/// A helper's bound is the least upper bound of its effects on kinds, and a kind lists a helper once.
#[test]
fn what_calls_do_is_said_once_of_each_kind() {
    for kind in KINDS {
        let calls: Vec<_> = kind.calls.iter().copied().flatten().collect();
        let numbers: HashSet<_> = calls.iter().map(|c| c.helper.number).collect();
        assert_eq!(numbers.len(), calls.len(), "{}", kind.name);
        // Programs reach variables by their addresses, without a call.
        assert_eq!(calls.is_empty(), kind.is_global(), "{}", kind.name);
        for call in calls {
            let other = helper::by_number(call.helper.number).unwrap();
            assert!(std::ptr::eq(other, call.helper), "{}", call.helper.name);
        }
    }
    for helper in HELPERS.iter() {
        let of_kinds = KINDS.iter().filter_map(|k| k.does(helper));
        if let Some(most) = of_kinds.reduce(Does::or) {
            assert_eq!(helper.does, Some(most), "{}", helper.name);
        }
    }
}

/// The calls of a kind agree with what it holds.
#[test]
fn kinds_do_not_contradict_themselves() {
    for kind in KINDS {
        let name = kind.name;
        let adds = |c: &Call| c.does.act == Act::Add;
        let acts = || kind.calls.iter().copied().flatten();
        if kind.estimates() || kind.membership() {
            assert!(acts().any(adds), "{name}");
            assert!(acts().all(|c| adds(c) || c.does.looks()), "{name}");
        }
        if kind.host_only() || kind.holds_maps() || kind.holds_programs() {
            assert!(acts().all(|c| c.does.looks()), "{name}");
            assert!(
                kind.division().is_none() && kind.merging().is_none(),
                "{name}"
            );
        }
        assert!(!kind.evicts || kind.is_table(), "{name}");
        assert!(!kind.per_cpu || kind.bpf_type.is_some(), "{name}");
        // What has no entries has no places that they share.
        let reach = acts().map(|c| c.does.reach);
        if kind.addressing == Addressing::None && !kind.membership() {
            assert!(reach.clone().all(|r| r != Reach::Bucket), "{name}");
        }
    }
}

/// A function of a kind's header that has a helper's name is a call on that kind.
#[test]
fn no_call_of_a_header_is_missing() {
    let state = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fastpath/state");
    let mut found = 0;
    for kind in KINDS {
        let header = std::fs::read_to_string(format!("{state}/{}.h", kind.c)).unwrap();
        let of_header = || KINDS.iter().filter(|k| k.c == kind.c);
        for helper in HELPERS.iter() {
            let function = format!("{}_{}(struct", kind.c, helper.name);
            let defined = header.contains(&format!(" {function}"))
                || header.contains(&format!("*{function}"));
            if defined {
                let said = of_header().any(|k| k.does(helper).is_some());
                assert!(said, "{function}: no kind of this header says what it does");
                found += 1;
            }
        }
    }
    assert!(found > 60, "{found}");
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
