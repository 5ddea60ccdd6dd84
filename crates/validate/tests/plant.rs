//! Errors put into a model, each of which the check must find: a check that finds nothing says nothing.

use crate::common;

use std::path::Path as File;
use std::sync::Arc;

use common::{built, built_from};
use millrace_dataplane::Module;
use millrace_model::exec::{Target, Written};
use millrace_model::expr::{Bin, ExprId, Rel};
use millrace_model::model::{Entry, Outcome, Path, Verdict};
use millrace_model::{Limits, Model};
use millrace_object::Program;
use millrace_validate::{Findings, Options, validate};

struct Subject {
    program: Program,
    model: Model,
    module: Arc<Module>,
}

impl Subject {
    fn new(name: &str) -> Self {
        Self::of(built(name, &Limits::default()))
    }

    fn of((program, model, module): (Program, Model, Arc<Module>)) -> Self {
        let name = &program.name;
        assert!(model.exhaustive(), "{name} has become too hard to follow");
        Self {
            program,
            model,
            module,
        }
    }

    fn check(&self) -> Findings {
        let options = Options {
            packets: 1500,
            ..Options::default()
        };
        validate(&self.program, &self.model, &self.module, &options)
    }

    /// The entry that takes packets; of several the one of most paths.
    fn entry(&mut self) -> &mut Entry {
        let entries = self.model.entries.iter_mut();
        entries.max_by_key(|e| e.paths.len()).unwrap()
    }

    /// Plants an error in a path that fits, and says what the check finds; then takes it out again.
    fn plant(
        &mut self,
        fits: impl Fn(&Path) -> bool,
        error: impl Fn(&mut Entry, &mut Path),
    ) -> Findings {
        let entry = self.entry();
        let at = entry.paths.iter().position(fits).expect("a path that fits");
        let good = entry.paths[at].clone();
        let mut bad = good.clone();
        error(entry, &mut bad);
        entry.paths[at] = bad;
        let findings = self.check();
        self.entry().paths[at] = good;
        findings
    }
}

/// What the differences are about.
fn about(findings: &Findings) -> Vec<&'static str> {
    let mut all: Vec<_> = findings.differences.iter().map(|d| d.what).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The same with its lowest bit turned over.
fn other(entry: &mut Entry, e: ExprId) -> ExprId {
    let one = entry.arena.number(1, entry.arena.width(e));
    entry.arena.binary(Bin::Xor, e, one)
}

fn writes(p: &Path) -> bool {
    p.accesses
        .iter()
        .any(|a| a.operation == "map_update_elem" && !a.value.is_empty())
}

#[test]
fn every_planted_error_is_found() {
    let mut s = Subject::new("portknock");
    let sound = s.check();
    assert!(sound.agree(), "{}", millrace_validate::text(&sound));
    assert_eq!(sound.driven, sound.paths);

    let verdict = s.plant(
        |_| true,
        |entry, p| {
            let Verdict::Number(e) = p.verdict else {
                panic!("a path without a verdict");
            };
            p.verdict = Verdict::Number(other(entry, e));
        },
    );
    assert_eq!(about(&verdict), ["verdict"]);

    // A path that writes nothing is said to write the packet's first byte.
    let rewrite = s.plant(
        |p| p.guard.len() > 1,
        |entry, p| {
            let zero = entry.arena.number(0, 64);
            let byte = entry.arena.byte(zero);
            let byte = other(entry, byte);
            p.rewrites.push(Written {
                base: None,
                at: 0,
                byte,
            });
        },
    );
    assert_eq!(about(&rewrite), ["rewrite"]);

    let key = s.plant(writes, |entry, p| {
        let access = p
            .accesses
            .iter_mut()
            .find(|a| a.operation == "map_update_elem");
        let access = access.unwrap();
        access.key[0] = other(entry, access.key[0]);
    });
    assert_eq!(about(&key), ["access"]);

    let value = s.plant(writes, |entry, p| {
        let access = p
            .accesses
            .iter_mut()
            .find(|a| a.operation == "map_update_elem");
        let access = access.unwrap();
        access.value[0] = other(entry, access.value[0]);
    });
    assert_eq!(about(&value), ["access"]);

    let order = s.plant(|p| p.accesses.len() > 1, |_, p| p.accesses.swap(0, 1));
    assert_eq!(about(&order), ["access"]);

    let missing = s.plant(
        |p| !p.accesses.is_empty(),
        |_, p| p.accesses.truncate(p.accesses.len() - 1),
    );
    assert_eq!(about(&missing), ["access"]);

    // What is left in state, the accesses being said rightly.
    let left = s.plant(
        |p| p.places.iter().any(|place| !place.bytes.is_empty()),
        |entry, p| {
            let place = p.places.iter_mut().find(|place| !place.bytes.is_empty());
            let byte = place.unwrap().bytes.values_mut().next().unwrap();
            *byte = other(entry, *byte);
        },
    );
    assert_eq!(about(&left), ["state"]);

    let forgotten = s.plant(
        |p| writes(p) && !p.places.is_empty(),
        |_, p| p.places.clear(),
    );
    assert!(
        about(&forgotten).contains(&"state"),
        "{:?}",
        about(&forgotten)
    );

    // A guard that says less also holds where another path's does.
    let weak = s.plant(
        |p| p.guard.len() > 3,
        |_, p| p.guard.truncate(p.guard.len() - 1),
    );
    assert!(about(&weak).contains(&"guards"), "{:?}", about(&weak));

    // One that says more leaves packets that no path is of.
    let strong = s.plant(
        |p| p.guard.len() > 3,
        |entry, p| {
            let at = entry.arena.number(26, 64);
            let byte = entry.arena.byte(at);
            let seven = entry.arena.number(7, 8);
            p.guard.push(entry.arena.compare(Rel::Eq, byte, seven));
        },
    );
    assert!(about(&strong).contains(&"guards"), "{:?}", about(&strong));
}

#[test]
fn a_path_that_is_left_out_is_found() {
    for name in ["nop", "sbridge", "bridge"] {
        let mut s = Subject::new(name);
        let sound = s.check();
        assert!(sound.agree(), "{}", millrace_validate::text(&sound));
        assert_eq!(sound.driven, sound.paths, "{name}");
        // Of the paths that packets alone reach: nobody else asks for one that is not there.
        let all = sound.paths;
        let reached = (1..=all)
            .rev()
            .find(|n| sound.not_reached.iter().all(|r| r.path != *n));
        let gone = s.entry().paths.remove(reached.unwrap() - 1);
        let found = s.check();
        assert_eq!(about(&found), ["guards"], "{name}");
        // Of a model that does not claim to have all paths it is no error, and is counted.
        s.entry().outcome = Outcome::Bounded {
            why: "for the test".to_owned(),
        };
        let bounded = s.check();
        assert!(bounded.agree() && bounded.outside > 0, "{name}");
        s.entry().paths.push(gone);
    }
}

#[test]
fn errors_about_where_a_packet_goes_on_are_found() {
    let source = File::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/onward.c");
    let mut s = Subject::of(built_from(&source, &Limits::default()));
    let sound = s.check();
    assert!(sound.agree(), "{}", millrace_validate::text(&sound));
    assert_eq!(
        sound.driven,
        sound.paths,
        "{}",
        millrace_validate::text(&sound)
    );

    // Another entry of the map of devices is said to lead on.
    let device = s.plant(
        |p| matches!(p.target, Some(Target::Entry(..))),
        |entry, p| {
            let Some(Target::Entry(_, key)) = &mut p.target else {
                panic!("a path without a target");
            };
            key[0] = other(entry, key[0]);
        },
    );
    assert_eq!(about(&device), ["verdict"]);

    // A broadcast is said to be a redirect to the first device.
    let one = s.plant(
        |p| matches!(p.target, Some(Target::All(_))),
        |entry, p| p.target = Some(Target::Interface(entry.arena.number(1, 32))),
    );
    assert_eq!(about(&one), ["verdict"]);

    // Another element of the array of programs is said to go on, and then none.
    let goes_on = |p: &Path| matches!(p.verdict, Verdict::GoesOn(..));
    let element = s.plant(goes_on, |entry, p| {
        if let Verdict::GoesOn(array, index) = p.verdict {
            p.verdict = Verdict::GoesOn(array, other(entry, index));
        }
    });
    assert_eq!(about(&element), ["tail call"]);
    let ends = s.plant(goes_on, |entry, p| {
        p.verdict = Verdict::Number(entry.arena.number(2, 32));
    });
    assert!(about(&ends).contains(&"tail call"), "{:?}", about(&ends));

    // An entry that is put into a table that evicts is said to have been there.
    let evicts = |p: &Path| {
        let added = p.accesses.iter().any(|a| a.outcome == Some("added"));
        added && !p.places.is_empty()
    };
    let there = s.plant(evicts, |_, p| {
        p.accesses
            .iter_mut()
            .for_each(|a| a.outcome = Some("overwritten"));
    });
    assert!(about(&there).contains(&"eviction"), "{:?}", about(&there));
}
