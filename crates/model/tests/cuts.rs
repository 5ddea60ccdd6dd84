//! Paths that are cut where they meet: programs of too many ways are covered all the same, and what is said of state is
//! no more than what whole paths would have said.

use crate::support;

use std::time::Duration;

use millrace_model::expr::walk::cone;
use millrace_model::expr::{ExprId, Node, Origin};
use millrace_model::model::{Model, Object, Outcome, Verdict};
use millrace_model::{Limits, model};
use millrace_turns::its_turn;
use support::{Loaded, entry};

fn object<'m>(loaded: &Loaded, model: &'m Model, name: &str) -> &'m Object {
    let at = loaded.program.objects.iter().position(|o| o.name == name);
    model.objects.get(at.unwrap()).unwrap()
}

fn cut_at(loaded: &Loaded, most: usize) -> Model {
    let limits = Limits {
        cut: Some(most),
        time: Duration::from_secs(300),
        ..Limits::default()
    };
    model(&loaded.program, &loaded.checked, &limits)
}

#[test]
fn more_ways_than_anyone_follows_are_covered() {
    let Some(loaded) = support::load("cuts") else {
        return;
    };
    let limits = Limits {
        paths: 2000,
        time: Duration::from_secs(300),
        ..Limits::default()
    };
    let model = model(&loaded.program, &loaded.checked, &limits);
    for name in ["counts", "shows", "wanders"] {
        let e = entry(&model, name);
        let Outcome::Covering { why } = &e.outcome else {
            panic!("{name}: {:?}", e.outcome);
        };
        assert!(why.contains("cut"), "{name}: {why}");
        assert!(e.paths.len() < 2000, "{name}: {}", e.paths.len());
        // Each goes on behind a cut that paths begin behind.
        for p in &e.paths {
            if let Verdict::Onward(cut) = p.verdict {
                assert!(
                    cut > 0 && e.paths.iter().any(|q| q.segment == cut),
                    "{name}: {cut}"
                );
            }
        }
    }
    // Read in one part of the packet's way, and shown in another.
    let counters = object(&loaded, &model, "counters");
    assert!(!counters.observed.nothing(), "{:?}", counters.observed);
    // Every key of `seen` is the packet's; that of `last` is not.
    let keyed = |name: &str, function: &str| {
        let e = entry(&model, function);
        let at = object(&loaded, &model, name).id;
        let accesses = e.paths.iter().flat_map(|p| &p.accesses);
        let mut keys = accesses.filter(|a| a.object == at && !a.key.is_empty());
        keys.all(|a| {
            cone(&e.arena, &a.key, |_| false).into_iter().all(|k| {
                !matches!(e.arena.node(k), Node::Sym(s)
                    if matches!(e.arena.symbol(*s).origin, Origin::Turn | Origin::State(_)))
            })
        })
    };
    assert!(keyed("seen", "counts"));
    assert!(!keyed("last", "wanders"));
}

#[test]
fn what_is_counted_between_cuts_is_a_sum() {
    let Some(mut loaded) = support::load("cuts") else {
        return;
    };
    // The one function alone.
    let at = loaded.program.entries.iter().position(|e| {
        let function = loaded.program.functions.get(e.function.0);
        function.is_some_and(|f| f.name == "counts")
    });
    let at = at.unwrap();
    loaded.program.entries = vec![loaded.program.entries.swap_remove(at)];
    loaded.checked.flows = vec![loaded.checked.flows.swap_remove(at)];
    let model = cut_at(&loaded, 16);
    let counters = object(&loaded, &model, "counters");
    assert!(
        counters.parts.as_ref().is_some_and(|p| p.additive()),
        "{counters:?}"
    );
    assert!(counters.observed.nothing());
    let seen = object(&loaded, &model, "seen");
    assert!(seen.parts.is_none(), "it decides: {seen:?}");
}

#[test]
fn records_behind_a_cut_are_as_long_as_they_were() {
    let Some(loaded) = support::load("cuts") else {
        return;
    };
    let model = cut_at(&loaded, 1);
    let paths = &entry(&model, "lengths").paths;
    let mut lengths: Vec<usize> = paths
        .iter()
        .flat_map(|p| &p.accesses)
        .filter(|a| a.operation == "ringbuf_submit")
        .map(|a| a.value.len())
        .collect();
    lengths.sort_unstable();
    lengths.dedup();
    assert_eq!(lengths, [16, 24]);
}

#[test]
fn a_place_that_a_walk_leads_to_is_any() {
    let Some(loaded) = support::load("names") else {
        return;
    };
    let model = cut_at(&loaded, 16);
    for e in &model.entries {
        assert!(e.outcome.covers(), "{}: {:?}", e.function, e.outcome);
        // No turn of the walk multiplies them.
        assert!(e.paths.len() < 400, "{}: {}", e.function, e.paths.len());
    }
    let e = entry(&model, "asks");
    let keys = |name: &str| -> Vec<(bool, bool)> {
        let at = object(&loaded, &model, name).id;
        let accesses = e.paths.iter().flat_map(|p| &p.accesses);
        let keys = accesses.filter(|a| a.object == at && !a.key.is_empty());
        let of = |k: &ExprId| match e.arena.node(*k) {
            Node::Byte { base, at } => (base.is_none(), (26..30).contains(at)),
            _ => (false, false),
        };
        keys.flat_map(|a| a.key.iter().map(of)).collect()
    };
    // What is read before the walk is where it was; what is read behind it is anywhere, but behind an empty name.
    let asked = keys("asked");
    assert!(!asked.is_empty() && asked.iter().all(|k| *k == (true, true)));
    let types = keys("types");
    assert!(
        types.iter().any(|k| !k.0) && types.iter().all(|k| !k.1),
        "{types:?}"
    );
    // What is written there may be what is read elsewhere.
    let packets = object(&loaded, &model, "packets");
    assert!(!packets.observed.nothing(), "{:?}", packets.observed);
}

/// Of every program here that all is followed of: cut, no less of it shows, and no more of it is a sum.
#[test]
fn cuts_say_no_more_than_whole_paths() {
    if !its_turn("cuts of paths", 0, 2) {
        return;
    }
    let mut held = 0;
    for name in ["calls", "merges", "stateful", "shared", "nested", "turns"] {
        let Some(loaded) = support::load(name) else {
            return;
        };
        let whole = loaded.model();
        for most in [1, 3] {
            let cut = cut_at(&loaded, most);
            for (a, b) in whole.entries.iter().zip(&cut.entries) {
                // What is bounded is reported from the proof of safety, whatever the paths say.
                assert!(
                    b.outcome.covers() || !a.outcome.covers(),
                    "{name}: {}: {:?}",
                    a.function,
                    b.outcome
                );
            }
            if !whole.covers() || !cut.covers() {
                continue;
            }
            for ((a, b), o) in whole
                .objects
                .iter()
                .zip(&cut.objects)
                .zip(&loaded.program.objects)
            {
                held += 1;
                let (x, y) = (&a.observed, &b.observed);
                assert!(
                    x.bits.is_subset(&y.bits) || y.other,
                    "{name} {most}: {}: {x:?} {y:?}",
                    o.name
                );
                assert!(
                    !x.presence || y.presence || y.other,
                    "{name} {most}: {}",
                    o.name
                );
                assert!(!x.room || y.room || y.other, "{name} {most}: {}", o.name);
                assert!(
                    a.parts.is_some() || b.parts.is_none(),
                    "{name} {most}: {}",
                    o.name
                );
            }
        }
    }
    assert!(held >= 10, "{held} objects were held against each other");
}
