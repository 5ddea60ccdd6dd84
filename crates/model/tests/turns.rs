//! Loops that are taken for any number of turns: what is said of them covers what they do. That executions are
//! among the paths is in calls.rs.

use crate::support;

use millrace_model::model::{Effect, Outcome, Use};
use support::entry;

#[test]
fn loops_through_state_are_taken_for_any_number_of_turns() {
    let Some(loaded) = support::load("turns") else {
        return;
    };
    let model = loaded.model();
    assert!(model.covers());
    for name in ["counts", "moves", "learns", "pairs"] {
        let e = entry(&model, name);
        let Outcome::Covering { why } = &e.outcome else {
            panic!("{name}: {:?}", e.outcome);
        };
        assert!(why.contains("any number of turns"), "{name}: {why}");
        // One path's worth of turns does not multiply with their number.
        assert!(e.paths.len() < 200, "{name}: {}", e.paths.len());
        let repeated = e
            .paths
            .iter()
            .any(|p| p.accesses.iter().any(|a| a.repeated));
        assert!(repeated, "{name}");
    }
    // What is written in turns is written.
    let [slots, known] = ["slots", "known"].map(|name| {
        let at = loaded.program.objects.iter().position(|o| o.name == name);
        &model.objects[at.unwrap()]
    });
    for object in [slots, known] {
        assert_eq!(object.usage, Use::ReadWrite);
        assert!(!object.approximate);
        let written = model.entries.iter().flat_map(|e| &e.paths).any(|p| {
            (p.accesses.iter())
                .any(|a| a.object == object.id && a.repeated && a.effect == Effect::Write)
        });
        assert!(written);
    }
}

#[test]
fn what_a_turn_may_have_changed_is_not_taken_for_what_was_there() {
    let Some(loaded) = support::load("turns") else {
        return;
    };
    let model = loaded.model();
    let slots = loaded
        .program
        .objects
        .iter()
        .position(|o| o.name == "slots");
    // Behind the loop the slot that was read before it may hold anything: both verdicts are there, whatever it held.
    let moves = entry(&model, "moves");
    for path in moves
        .paths
        .iter()
        .filter(|p| p.accesses.iter().any(|a| a.repeated))
    {
        let first = path.places.iter().find(|p| p.object.0 == slots.unwrap());
        let byte = first.unwrap().bytes.get(&0).copied().unwrap();
        let arena = &moves.arena;
        let turned = millrace_model::expr::walk::cone(arena, &[byte], |_| false)
            .into_iter()
            .any(|e| {
                matches!(arena.node(e), millrace_model::expr::Node::Sym(s)
                if arena.symbol(*s).origin == millrace_model::expr::Origin::Turn)
            });
        assert!(turned);
    }
}

#[test]
fn what_counts_the_turns_stays_below_its_bound() {
    let Some(loaded) = support::load("turns") else {
        return;
    };
    let model = loaded.model();
    // There are 64 slots, and 64 turns at most.
    for name in ["counts", "pairs"] {
        let e = entry(&model, name);
        let mut accesses = e.paths.iter().flat_map(|p| &p.accesses);
        assert!(accesses.all(|a| a.outcome != Some("absent")), "{name}");
    }
}

#[test]
fn any_turn_may_be_the_last() {
    let Some(loaded) = support::load("turns") else {
        return;
    };
    let model = loaded.model();
    // A packet that is too short; else the turns are over, whatever the last of them did, and then more than two
    // were found, or not.
    let paths = &entry(&model, "counts").paths;
    assert_eq!(paths.len(), 3);
}
