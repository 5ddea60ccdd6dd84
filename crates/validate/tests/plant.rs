//! Errors put into a model, each of which the check must find: a check that finds nothing says nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;

use common::{built, has_z3};
use millrace_dataplane::Module;
use millrace_model::exec::Written;
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
        let (program, model, module) = built(name, &Limits::default());
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

    /// The entry that takes packets.
    fn entry(&mut self) -> &mut Entry {
        let mut entries = self.model.entries.iter_mut();
        entries.find(|e| !e.paths.is_empty()).unwrap()
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
    if !has_z3() {
        return;
    }
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
    if !has_z3() {
        return;
    }
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
