use std::fs::File;

use millrace_dataplane::module::{Keeping, ObjectInfo};
use millrace_dataplane::share::Share;
use millrace_dataplane::worker::keep::{Part, StagePart};
use millrace_object::state;
use millrace_place::Held;
use millrace_state::{Content, Front, Piece, State, What};

use super::parts::BESIDES;
use super::{Folder, keepable, most, parts, state};
use crate::exposed::Exposed;

fn exposed(objects: &[(&str, u64, Held)]) -> Exposed {
    let info = |(name, capacity, _): &(&str, u64, Held)| {
        let info = ObjectInfo {
            name: (*name).to_owned(),
            kind: state::by_name("hash").unwrap(),
            key_bytes: 4,
            value_bytes: 8,
            capacity: *capacity,
            bytes: 0,
            records: false,
        };
        (info, true)
    };
    let share = |(_, capacity, held): &(&str, u64, Held)| Share::new(held.clone(), *capacity);
    Exposed {
        objects: objects.iter().map(info).collect(),
        shares: objects.iter().map(share).collect(),
        keeping: vec![Keeping::All; objects.len()],
        ..Exposed::nothing("f")
    }
}

fn content(stamp: u64) -> Option<Content> {
    let mut content = Content::default();
    content.push(&Piece {
        stamp,
        ..Piece::new(What::Head)
    });
    content.push(&Piece::new(What::End));
    Some(content)
}

/// Two workers, each with its own part of `own` and its view of `common`; the first gave its part last.
fn two() -> Vec<Part> {
    let part = |worker: u64| Part {
        time: 100 + worker,
        packets: 7 + worker,
        order: 2 - worker,
        stages: vec![StagePart {
            name: "f".into(),
            timers: (5, vec![worker]),
            contents: vec![content(10 + worker), content(20 + worker)],
            before: vec![vec![(vec![1], vec![2])], Vec::new()],
            whole: true,
        }],
    };
    vec![part(0), part(1)]
}

#[test]
fn each_worker_takes_up_its_own_part() {
    let function = exposed(&[("own", 9, Held::Divided), ("common", 9, Held::Locked)]);
    let named = [("f", &function)];
    let saved = state(two(), &named, 3, vec![1]);
    assert_eq!(
        (saved.time, saved.seed, saved.numbers.as_slice()),
        (101, 3, &[7, 8][..])
    );
    let common = &saved.elements[0].objects[1];
    assert_eq!(
        common.parts,
        [content(20).unwrap()],
        "as the last one has it"
    );
    let parts = parts(saved, &named, 2).unwrap();
    let of = |worker: usize| &parts[worker].stages[0];
    assert_eq!(of(0).contents, [content(10), content(20)]);
    assert_eq!(
        of(1).contents,
        [content(11), None],
        "what all share is loaded once"
    );
    assert_eq!(
        (of(1).timers.clone(), of(1).before[0].len()),
        ((5, vec![1]), 1)
    );
    assert_eq!((parts[1].packets, parts[1].time), (8, 101));
}

/// Replicas have one content, whichever workers take it up, and however many.
#[test]
fn what_all_have_alike_is_kept_once_and_taken_up_by_all() {
    let of = |held: Held| exposed(&[("own", 9, Held::Copied), ("common", 9, held)]);
    let before = of(Held::Replicated);
    let saved = || state(two(), &[("f", &before)], 0, Vec::new());
    let common = &saved().elements[0].objects[1];
    assert_eq!(common.parts, [content(20).unwrap()]);
    for workers in [1, 2, 5] {
        let parts = parts(saved(), &[("f", &before)], workers).unwrap();
        let of = |part: &Part| part.stages[0].contents[1].clone();
        assert!(parts.iter().all(|p| of(p) == content(20)), "{workers}");
    }
    // One for all workers is loaded by the first.
    let locked = of(Held::Locked);
    let parts = parts(saved(), &[("f", &locked)], 2).unwrap();
    let of = |worker: usize| parts[worker].stages[0].contents[1].clone();
    assert_eq!((of(0), of(1)), (content(20), None));
}

#[test]
fn all_that_does_not_fit_is_named() {
    let before = exposed(&[("own", 9, Held::Divided), ("common", 9, Held::Locked)]);
    let saved = || state(two(), &[("f", &before)], 0, Vec::new());
    let refused = |function: &Exposed, name: &str, workers: usize| {
        parts(saved(), &[(name, function)], workers)
            .unwrap_err()
            .what
    };
    let text = refused(&before, "f", 3);
    assert!(
        text.contains("2 cores before, 3 now: f: own: divided on the workers now"),
        "{text}"
    );
    let text = refused(&before, "g", 2);
    assert!(
        text.contains("no element `f`") && text.contains("`g` is new"),
        "{text}"
    );
    let other = exposed(&[("own", 8, Held::Divided), ("new", 9, Held::Copied)]);
    let text = refused(&other, "f", 2);
    for part in [
        "own: 8 entries fit, 9 did",
        "common: there is no such",
        "new: this object is new",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let locked = exposed(&[("own", 9, Held::Locked), ("common", 9, Held::Locked)]);
    assert!(refused(&locked, "f", 2).contains("own: divided on the workers before, locked now"));
    // A state that was made up: parts or timers are missing.
    let mut short = saved();
    short.elements[0].objects[0].parts.pop();
    assert!(parts(short, &[("f", &before)], 2).is_err());
    let mut short = saved();
    short.elements[0].timers.pop();
    assert!(parts(short, &[("f", &before)], 2).is_err());
}

/// A file that asks for more memory than any state of the objects is refused before it is read: this one has a hole
/// of 1 TiB.
#[test]
fn a_state_larger_than_the_objects_is_refused_unread() {
    let function = exposed(&[("own", 9, Held::Divided), ("common", 9, Held::Locked)]);
    let named = [("f", &function)];
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    assert!(folder.find().unwrap().is_none());
    folder.write(&state(two(), &named, 3, vec![1])).unwrap();
    let found = folder.find().unwrap().unwrap();
    assert_eq!((found.front().seed, found.front().workers), (3, 2));
    let read = found.read(&named, 2).unwrap();
    let bytes = |state: &State| {
        let mut out = Vec::new();
        state.write(&mut out).unwrap();
        out
    };
    assert!(bytes(&read) == bytes(&state(two(), &named, 3, vec![1])));
    let file = File::options().write(true).open(folder.file()).unwrap();
    file.set_len(1 << 40).unwrap();
    let told = ((1_u64 << 40) - 52).to_le_bytes();
    std::os::unix::fs::FileExt::write_all_at(&file, &told, 12).unwrap();
    let refused = folder.find().unwrap().unwrap().read(&named, 2).unwrap_err();
    assert!(
        refused
            .what
            .contains("has 1099511627776 bytes, and its objects need at most"),
        "{refused}"
    );
    assert_eq!(refused.code, "refused");
}

/// What is full in every place, with all numbers as long as they get, is within the limit.
#[test]
fn the_fullest_state_is_not_too_large() {
    let function = exposed(&[("own", 100, Held::Divided)]);
    let named = [("f", &function)];
    let mut full = Content::default();
    full.push(&Piece::new(What::Head));
    for place in 0..100 {
        let late = u64::MAX - 1;
        let (key, value) = ([1; 4], [2; 8]);
        let entry = Piece {
            callback: u32::MAX,
            stamp: late,
            bound: late,
            due: late - 1,
            order: late,
            length: 8,
            place: late - 100 + place,
            key: &key,
            value: &value,
            ..Piece::new(What::Entry)
        };
        full.push(&entry);
        full.push(&Piece {
            what: What::Free,
            key: &[],
            value: &[],
            ..entry
        });
    }
    full.push(&Piece::new(What::End));
    let parts = || {
        let stage = StagePart {
            name: "f".into(),
            timers: (u64::MAX, vec![u64::MAX; 100]),
            contents: vec![Some(full.clone())],
            before: vec![vec![(vec![1; 4], vec![2; 8]); 100]],
            whole: true,
        };
        let part = Part {
            stages: vec![stage],
            ..Part::default()
        };
        vec![part.clone(), part]
    };
    let mut bytes = Vec::new();
    let fullest = state(parts(), &named, u64::MAX, vec![1; 48]);
    fullest.write(&mut bytes).unwrap();
    // The allowance for what is no entry does not make it so.
    let besides = 4 * BESIDES + Front::MOST as u64;
    assert!(bytes.len() as u64 <= most(&named, 2) - besides + 2048);
}

#[test]
fn what_cannot_be_kept_is_refused_before_the_run() {
    let mut function = exposed(&[("maps", 9, Held::Copied)]);
    assert!(keepable(&[("f", &function)]).is_ok());
    function.keeping = vec![Keeping::Never("its values are maps")];
    let text = keepable(&[("f", &function)]).unwrap_err().what;
    assert!(text.contains("f: maps: its values are maps"), "{text}");
}
