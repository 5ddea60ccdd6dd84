//! A model that was kept is the model that was made, to whoever goes on with it.

use std::path::Path;

use millrace_model::expr::ExprId;
use millrace_model::model::Entry;
use millrace_model::{Limits, Model, kept, model};
use millrace_turns::its_turn;

use crate::support::{self, Loaded};

fn function(name: &str) -> Option<Loaded> {
    let nfs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nfs");
    support::compile(&nfs.join(name).join(name).with_extension("c"))
}

/// All that an entry says, but for the tables that find an expression again.
fn said(entry: &Entry) -> String {
    let arena = &entry.arena;
    let node = |n: usize| {
        let e = ExprId(n as u32);
        let of = (
            arena.node(e),
            arena.width(e),
            arena.bits(e),
            arena.support(e),
        );
        format!("{of:?}")
    };
    let nodes: Vec<String> = (0..arena.len()).map(node).collect();
    let paths = entry.paths.iter().map(|path| {
        // What a witness has evaluated is a table, too.
        let mut path = path.clone();
        let witness = path.witness.take();
        let witness = witness.map(|w| {
            let symbols: std::collections::BTreeMap<_, _> = w.symbols.clone().into_iter().collect();
            (symbols, w.packet.clone())
        });
        format!("{path:?} {witness:?}")
    });
    let rest = (&entry.function, entry.role, &entry.outcome, &entry.at_most);
    format!(
        "{rest:?} {} {:?}",
        nodes.join("\n"),
        paths.collect::<Vec<_>>()
    )
}

fn equal(one: &Model, other: &Model) {
    assert_eq!(one.name, other.name);
    assert_eq!(one.entries.len(), other.entries.len());
    for (one, other) in one.entries.iter().zip(&other.entries) {
        assert!(said(one) == said(other), "{}", one.function);
        // What is built of it gets the same numbers: what rules have found out counts, too.
        let (mut one, mut other) = (one.arena.clone(), other.arena.clone());
        for n in (0..one.len() as u32).step_by(7) {
            let built = |arena: &mut millrace_model::expr::Arena| {
                let low = arena.extract(ExprId(n), 0, 1);
                let more = arena.number(n.into(), arena.width(ExprId(n)));
                let sum = arena.binary(millrace_model::expr::Bin::Add, ExprId(n), more);
                (low, sum, arena.len())
            };
            assert_eq!(built(&mut one), built(&mut other));
        }
    }
    assert_eq!(format!("{:?}", one.objects), format!("{:?}", other.objects));
}

#[test]
fn a_model_that_is_read_is_the_one_that_was_made() {
    if !its_turn("models that are kept", 1, 2) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Keys of packets; sums of headers; counters, of which each core may have a part.
    for name in ["policer", "nat", "psd"] {
        let Some(of) = function(name) else { return };
        let limits = Limits::default();
        let made = model(&of.program, &of.checked, &limits);
        let (first, was) = kept::model(&of.program, &of.checked, &limits, Some(folder.path()));
        assert!(first.settled && !was, "{name}");
        let (again, was) = kept::model(&of.program, &of.checked, &limits, Some(folder.path()));
        assert!(was, "{name}");
        equal(&made, &again);
        equal(&first, &again);
    }
}

/// Another capacity, another limit of paths: another model. What stopped at a limit, or was asked of another solver, is not kept.
#[test]
fn what_a_model_depends_on_is_in_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut of) = function("policer") else {
        return;
    };
    let limits = Limits::default();
    let was = |of: &Loaded, limits: &Limits| {
        kept::model(&of.program, &of.checked, limits, Some(folder.path())).1
    };
    assert!(!was(&of, &limits) && was(&of, &limits));
    let fewer = Limits {
        paths: limits.paths - 1,
        ..limits.clone()
    };
    assert!(!was(&of, &fewer) && was(&of, &fewer));
    let one = Limits {
        paths: 1,
        ..limits.clone()
    };
    assert!(!was(&of, &one) && !was(&of, &one));
    let z3 = Limits {
        solver: Some("z3".into()),
        ..limits.clone()
    };
    assert!(!was(&of, &z3) && !was(&of, &z3));
    let object = of
        .program
        .objects
        .iter()
        .find(|o| o.kind.is_table())
        .unwrap();
    let (name, capacity) = (object.name.clone(), object.capacity);
    of.program.set_capacity(&name, capacity / 2).unwrap();
    assert!(!was(&of, &limits) && was(&of, &limits));
}
