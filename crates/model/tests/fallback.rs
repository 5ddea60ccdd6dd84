//! Where paths are not all, the accesses that the proof of safety admits stand for them: every access of every
//! path is among them, in each program that is at hand.

use crate::support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use millrace_model::model::{Effect, Use};
use millrace_model::{Limits, model};
use millrace_turns::of_today;
use support::Loaded;

/// Whether an effect says at least as much as another.
fn covers(most: Effect, effect: Effect) -> bool {
    most == effect || most == Effect::Write || effect == Effect::Read
}

fn rank(usage: Use) -> u32 {
    match usage {
        Use::Unused => 0,
        Use::ReadOnly => 1,
        Use::WrittenAtStart => 2,
        Use::Additive => 3,
        Use::ReadWrite => 4,
    }
}

/// Compares what the paths do with what is said without them; gives how many accesses were compared, and
/// whether the paths were all.
fn compare(name: &str, loaded: &Loaded, time: Duration) -> (usize, bool) {
    let paths = loaded.within(time);
    let nothing = Limits {
        steps: 0,
        time: Duration::from_secs(2),
        ..Limits::default()
    };
    let without = model(&loaded.program, &loaded.checked, &nothing);
    let mut compared = 0;
    for entry in &paths.entries {
        for access in entry.paths.iter().flat_map(|p| &p.accesses) {
            let allowed = entry.at_most.iter().any(|t| {
                // A load has no bytes that are written; a value that is put is all of it.
                let within = access
                    .offset
                    .is_none_or(|o| t.from <= o && o + (access.value.len() as u32).max(1) <= t.to);
                t.object == access.object
                    && t.line == access.line
                    && covers(t.effect, access.effect)
                    && within
            });
            assert!(allowed, "{name}: {}: {access:?}", entry.function);
            compared += 1;
        }
    }
    for (with, without) in paths.objects.iter().zip(&without.objects) {
        assert!(
            rank(without.usage) >= rank(with.usage),
            "{name}: {with:?}, but {without:?} without paths"
        );
    }
    let all = paths.entries.iter().all(|e| e.outcome.covers());
    (compared, all)
}

fn bundled() -> Vec<(String, PathBuf)> {
    let nfs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nfs");
    let mut all: Vec<(String, PathBuf)> = std::fs::read_dir(nfs)
        .unwrap()
        .map(|e| e.unwrap())
        .filter_map(|e| {
            let name = e.file_name().to_string_lossy().into_owned();
            let source = e.path().join(format!("{name}.c"));
            source.exists().then_some((name, source))
        })
        .collect();
    all.sort();
    all
}

#[test]
fn no_path_does_more_than_the_proof_of_safety_admits() {
    let mut exhaustive = Vec::new();
    for name in ["calls", "stateful"] {
        let Some(loaded) = support::load(name) else {
            return;
        };
        let (compared, _) = compare(name, &loaded, Duration::from_secs(60));
        assert!(compared > 20, "{name}: {compared}");
    }
    let today = of_today(
        "functions of which paths are compared with a proof",
        bundled(),
        4,
    );
    for (name, source) in &today {
        let Some(loaded) = support::compile(source) else {
            return;
        };
        if compare(name, &loaded, Duration::from_secs(2)).1 {
            exhaustive.push(name.as_str());
        }
    }
    println!("paths are all of {exhaustive:?}");
    // A few that have few.
    for name in [
        "bridge",
        "ddos",
        "nop",
        "policer",
        "portknock",
        "tokenbucket",
    ] {
        let today = today.iter().any(|(other, _)| other == name);
        assert!(!today || exhaustive.contains(&name), "{exhaustive:?}");
    }
}

#[test]
fn nor_in_the_objects_of_others() {
    let Some(folder) = std::env::var_os("MILLRACE_OBJECTS") else {
        println!("skipped: public objects, MILLRACE_OBJECTS names no folder of them");
        return;
    };
    let mut compared = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.display().to_string();
        let Ok(program) = millrace_object::load_file(&path) else {
            continue;
        };
        let Ok(checked) = millrace_check::check(&program, &millrace_check::Options::default())
        else {
            continue;
        };
        let loaded = Loaded {
            program,
            checked,
            types: Default::default(),
        };
        compared += compare(&name, &loaded, Duration::from_secs(2)).0;
    }
    assert!(
        compared > 0,
        "no object in $MILLRACE_OBJECTS accesses state"
    );
}
