//! Meaning of calls on state that no packet decides: what is known afterwards, and what is not.

use crate::support;

use std::collections::BTreeSet;

use millrace_model::expr::Node;
use millrace_model::expr::walk::cone;
use millrace_model::model::{Outcome, Path, Verdict};
use millrace_model::{Model, writers};
use millrace_object::program::ObjectId;

/// The verdicts that an entry's paths have.
fn verdicts(model: &Model, name: &str) -> BTreeSet<u64> {
    let entry = support::entry(model, name);
    let number = |p: &Path| match p.verdict {
        Verdict::Number(e) => entry.arena.constant(e),
        _ => None,
    };
    entry.paths.iter().filter_map(number).collect()
}

fn outcome<'m>(model: &'m Model, name: &str) -> &'m Outcome {
    &support::entry(model, name).outcome
}

fn bounded(model: &Model, name: &str) -> String {
    match outcome(model, name) {
        Outcome::Exhaustive => "exhaustive".to_owned(),
        Outcome::Covering { why } | Outcome::Bounded { why } => why.clone(),
    }
}

const ABORTED: u64 = 0;
const DROP: u64 = 1;
const PASS: u64 = 2;
const TX: u64 = 3;

#[test]
fn calls_on_state() {
    let Some(loaded) = support::load("stateful") else {
        return;
    };
    let model = loaded.model();
    let all = |name: &str| {
        assert_eq!(bounded(&model, name), "exhaustive", "{name}");
        verdicts(&model, name)
    };

    // Two keys may have one map, and then the second finds what the first stored; or two maps.
    assert_eq!(all("nested"), BTreeSet::from([ABORTED, DROP, PASS, TX]));
    let nested = support::entry(&model, "nested");
    let same_key = nested.paths.iter().any(|p| {
        let inner = p.accesses.iter().filter(|a| a.key.len() == 8);
        let numbers: BTreeSet<_> = inner.map(|a| a.key[..4].to_vec()).collect();
        numbers.len() == 2
    });
    assert!(
        same_key,
        "maps under different keys have numbers of their own"
    );

    // One call may be on a map that was found or on one that the program names.
    assert_eq!(all("spared"), BTreeSet::from([ABORTED, DROP, PASS]));
    let spared = support::entry(&model, "spared");
    let keys = spared.paths.iter().flat_map(|p| &p.accesses);
    let keys: BTreeSet<usize> = keys
        .filter(|a| a.offset.is_none())
        .map(|a| a.key.len())
        .collect();
    assert_eq!(
        keys,
        BTreeSet::from([4, 8]),
        "with the map's number and without"
    );

    // They may be one map, and then what is deleted by one name is gone by the other.
    assert_eq!(all("shared"), BTreeSet::from([DROP, PASS, TX]));

    // A record holds what was written to it.
    assert_eq!(all("record"), BTreeSet::from([ABORTED, DROP, PASS]));
    let record = support::entry(&model, "record");
    let mut submit = record.paths.iter().flat_map(|p| &p.accesses);
    let submit = submit.find(|a| a.operation == "ringbuf_submit").unwrap();
    let tail: Vec<_> = submit.value[4..]
        .iter()
        .map(|e| record.arena.constant(*e))
        .collect();
    assert_eq!(tail, [5, 0, 0, 0].map(Some));

    // So does a sample, with the packet's first bytes behind it.
    assert_eq!(all("sample"), BTreeSet::from([DROP, PASS]));
    let sample = support::entry(&model, "sample");
    let record = sample.paths.iter().flat_map(|p| &p.accesses);
    assert_eq!(record.map(|a| a.value.len()).max(), Some(4 + 16));

    // A stack gives back what was pushed last; a queue only if nothing was there before.
    assert_eq!(all("pushed"), BTreeSet::from([ABORTED, DROP, PASS]),);
    assert_eq!(all("queued"), BTreeSet::from([ABORTED, DROP, PASS]));
    let pushed = support::entry(&model, "pushed");
    assert_eq!(
        pushed.paths.len(),
        3,
        "short, full, or the value that was pushed"
    );

    // What was put into a Bloom filter is found; anything else may be.
    assert_eq!(all("filtered"), BTreeSet::from([DROP, PASS]));

    // A deleted entry's value can be read until another may have taken its place.
    assert_eq!(all("deleted"), BTreeSet::from([DROP, PASS, TX]));

    // Values of entries that are gone are not looked at.
    let gone = "a value of `recent` is used after its entry may have been evicted, at stateful.c:";
    let why = bounded(&model, "evicted");
    assert!(why.starts_with(gone), "{why}");
    let gone = "a value of `table` is used after its entry was deleted and another may have taken its place, at stateful.c:";
    let why = bounded(&model, "replaced");
    assert!(why.starts_with(gone), "{why}");

    // Two addresses may be in one prefix, so the second value may be the one just written.
    assert_eq!(all("aliased"), BTreeSet::from([DROP, PASS, TX]));
    let aliased = support::entry(&model, "aliased");
    let through_the_first = aliased.paths.iter().filter(|p| {
        let number = match p.verdict {
            Verdict::Number(e) => aliased.arena.constant(e),
            _ => None,
        };
        number == Some(TX) && p.places.len() == 1
    });
    assert!(through_the_first.count() >= 1);

    // Each of two slots holds an entry or none, and the two have different keys.
    assert_eq!(all("visits"), BTreeSet::from([PASS, TX]));

    // Where there is a program the path ends.
    let on = support::entry(&model, "goes_on");
    assert_eq!(on.outcome, Outcome::Exhaustive);
    let ends: Vec<bool> = on
        .paths
        .iter()
        .map(|p| matches!(p.verdict, Verdict::GoesOn(..)))
        .collect();
    assert_eq!(ends.iter().filter(|e| **e).count(), 1);
    assert_eq!(ends.len(), 2);
}

#[test]
fn what_is_read_is_what_something_wrote() {
    let Some(loaded) = support::load("calls") else {
        return;
    };
    let model = loaded.model();
    let object = |name: &str| {
        let at = loaded.program.objects.iter().position(|o| o.name == name);
        ObjectId(at.unwrap())
    };
    // The value that a packet finds in `table`, which `updates` reads and no other program.
    let updates = support::entry(&model, "updates");
    let mut read = BTreeSet::new();
    for path in &updates.paths {
        let bytes: Vec<_> = path.rewrites.iter().map(|w| w.byte).collect();
        for e in cone(&updates.arena, &bytes, |_| false) {
            if let Node::Sym(s) = updates.arena.node(e) {
                let found = writers::read_by(&loaded.program, &updates.arena, *s);
                read.extend(found.map(|(o, r)| (o, r.start, r.end)));
            }
        }
    }
    assert_eq!(read, BTreeSet::from([(object("table"), 0, 8)]));
    let made: BTreeSet<&str> = model
        .writers(object("table"), &(0..8))
        .into_iter()
        .map(|w| {
            let (entry, path) = w.path_of(&model).unwrap();
            assert_eq!(entry.function, "updates");
            assert_eq!(w.bytes(), 0..8);
            path.accesses[w.access].operation
        })
        .collect();
    assert_eq!(made, BTreeSet::from(["map_update_elem", "store"]));
    assert!(model.writers(object("table"), &(8..9)).is_empty());
    // Targets are set by the host alone.
    assert!(model.writers(object("ports"), &(0..4)).is_empty());
}
