//! The state of a run in a folder, from which the next goes on (docs/operate.md).
//!
//! The folder holds one file, `state`. It is replaced whole: written beside, brought to the disk, and renamed over the
//! old one (rename(2)), so that a process that is killed at any moment, or a disk that is full, leaves the old state or
//! the new one, never a part.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use millrace_dataplane::module::Keeping;
use millrace_dataplane::worker::keep::{Part, StagePart};
use millrace_place::Held;
use millrace_state::{Element, Front, Identity, Object, State, Wrong};
use rustix::fs::{FlockOperation, flock};

use crate::exposed::Exposed;
use crate::joined::{self, COPIED};
use crate::trouble::Trouble;

/// The file in the folder.
const FILE: &str = "state";

/// An element of a run: its name and what it is.
pub type Named<'a> = (&'a str, &'a Exposed);

/// The folder of a run's state, held so that no other run has it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// the folder itself, locked
    lock: File,
}

impl Folder {
    /// Takes a folder, which is made if it is not there.
    ///
    /// # Errors
    /// It cannot be made, or another run has it.
    pub fn open(path: &Path) -> Result<Self, Trouble> {
        let failed = |e: std::io::Error| {
            Trouble::new("folder", format!("--state {}: {e}", path.display()))
                .help("choose another folder")
        };
        fs::create_dir_all(path).map_err(failed)?;
        let lock = File::open(path).map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|e| match e {
            rustix::io::Errno::WOULDBLOCK => Trouble::new(
                "live",
                format!(
                    "--state {}: another run keeps its state there",
                    path.display()
                ),
            )
            .help("end it first, or choose another folder"),
            e => failed(e.into()),
        })?;
        Ok(Self {
            path: path.to_owned(),
            lock,
        })
    }

    fn file(&self) -> PathBuf {
        self.path.join(FILE)
    }

    /// The state that the last run left, of which no more than the front is read; none where there is none.
    ///
    /// # Errors
    /// There is a file that is no state of this version, or cannot be read.
    pub fn find(&self) -> Result<Option<Found>, Trouble> {
        let path = self.file();
        let unread = |e: std::io::Error| unreadable(&path, &e);
        let mut file = match File::open(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(unread)?,
        };
        let bytes = file.metadata().map_err(unread)?.len();
        let mut first = Vec::new();
        let read = (&mut file).take(Front::MOST as u64).read_to_end(&mut first);
        read.map_err(unread)?;
        let front = Front::read(&first, bytes).map_err(|e| unsound(&path, &e))?;
        Ok(Some(Found {
            path,
            file,
            bytes,
            first,
            front,
        }))
    }

    /// Replaces the state that is there.
    ///
    /// # Errors
    /// It cannot be written. What was there is there still.
    pub fn write(&self, state: &State) -> Result<(), Trouble> {
        let path = self.file();
        self.replace(&path, state).map_err(|e| {
            Trouble::new("state", format!("{}: {e}", path.display()))
                .help("the state that was saved before is still there; make room")
        })
    }

    fn replace(&self, path: &Path, state: &State) -> std::io::Result<()> {
        // One run has the folder, so one name is enough; what a killed run has left there goes.
        let beside = path.with_extension("new");
        match fs::remove_file(&beside) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let file = File::create_new(&beside)?;
        let written = (|| {
            let mut out = BufWriter::new(&file);
            state.write(&mut out)?;
            out.flush()?;
            drop(out);
            file.sync_all()?;
            fs::rename(&beside, path)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written?;
        // The new name is on the disk once the folder is.
        self.lock.sync_all()
    }
}

/// A state that is there. Its size is compared with what the objects of a run can need before it is read.
#[derive(Debug)]
pub struct Found {
    path: PathBuf,
    file: File,
    bytes: u64,
    first: Vec<u8>,
    front: Front,
}

impl Found {
    /// What is in front of the elements.
    #[must_use]
    pub fn front(&self) -> &Front {
        &self.front
    }

    /// All of it, for a run of these elements.
    ///
    /// # Errors
    /// It is larger than any state of them, it is no state of this version, or it cannot be read.
    pub fn read(self, elements: &[Named<'_>], workers: usize) -> Result<State, Trouble> {
        // Whoever wrote the file says how many workers there were, too.
        let most = most(elements, workers.max(self.front.workers.min(MOST_WORKERS)));
        if self.bytes > most {
            let what = format!(
                "--state: what was saved does not fit this run: {} has {} bytes, and its objects need at most {most}",
                self.path.display(),
                self.bytes
            );
            return Err(unfit(what));
        }
        // What has been appended since is not read, and found missing or too long.
        let mut bytes = self.first;
        let rest = self.bytes.saturating_sub(bytes.len() as u64);
        let read = self.file.take(rest).read_to_end(&mut bytes);
        read.map_err(|e| unreadable(&self.path, &e))?;
        State::read(&bytes).map_err(|e| unsound(&self.path, &e))
    }
}

fn unreadable(path: &Path, e: &std::io::Error) -> Trouble {
    Trouble::new("state", format!("{}: {e}", path.display()))
        .help("make it readable, or begin without it (--anew)")
}

/// An answer, which is no other at the next attempt.
fn unsound(path: &Path, e: &Wrong) -> Trouble {
    Trouble::new("refused", format!("{}: {e}", path.display())).help(
        "put back the file as the run wrote it, or begin without it: --anew replaces it at the end",
    )
}

/// The same of a state that is sound.
fn unfit(what: String) -> Trouble {
    Trouble::new("refused", what)
        .help("run what the state was saved by, or begin without it: --anew replaces it at the end")
}

/// The most workers of a run that left a state: what others would need is not read.
const MOST_WORKERS: usize = 1024;
/// Bytes of a piece without key and value: what it is, which numbers it has, and 7 numbers.
const PIECE: u64 = 2 + 7 * 10;
/// Bytes for the front, for each element, and for its timers on each worker.
const BESIDES: u64 = 1 << 16;

/// The most bytes that a state of these elements takes: each place of each object as an entry, free in between, and as an
/// element that held something at start; what is saved as bytes has no more than the object maps.
fn most(elements: &[Named<'_>], workers: usize) -> u64 {
    let workers = (workers as u64).max(1);
    let object = |exposed: &Exposed, at: usize| {
        let Ok(info) = exposed.info(at) else { return 0 };
        let entry = (info.key_bytes as u64 + info.value_bytes as u64).saturating_add(PIECE);
        let entries = info.capacity.saturating_add(2).saturating_mul(2);
        let part = entries
            .saturating_mul(entry)
            .saturating_add(info.bytes.saturating_mul(2));
        part.saturating_mul(workers.saturating_add(1))
            .saturating_add(identity(exposed, at).detail.len() as u64 + BESIDES)
    };
    let element = |exposed: &Exposed| {
        let objects = (0..exposed.objects.len()).map(|at| object(exposed, at));
        objects.fold(BESIDES.saturating_mul(workers + 1), u64::saturating_add)
    };
    let all = elements.iter().map(|(_, exposed)| element(exposed));
    all.fold(Front::MOST as u64, u64::saturating_add)
}

/// Refuses a run whose state cannot be kept.
///
/// # Errors
/// An object cannot be, with the reason.
pub fn keepable(elements: &[Named<'_>]) -> Result<(), Trouble> {
    let mut never = Vec::new();
    for (name, exposed) in elements {
        for (at, (info, _)) in exposed.objects.iter().enumerate() {
            if let Keeping::Never(why) = exposed.keeping(at) {
                never.push(format!("{name}: {}: {why}", info.name));
            }
        }
    }
    match never.is_empty() {
        true => Ok(()),
        false => Err(Trouble::new(
            "refused",
            format!("--state: it cannot be kept: {}", never.join("; ")),
        )
        .help("leave --state out")),
    }
}

/// The state that the parts of all workers are.
#[must_use]
pub fn state(parts: Vec<Part>, elements: &[Named<'_>], seed: u64, steering: Vec<u8>) -> State {
    let mut state = State {
        time: parts.iter().map(|p| p.time).max().unwrap_or(0),
        seed,
        numbers: parts.iter().map(|p| p.packets).collect(),
        steering,
        elements: Vec::new(),
    };
    let last = parts.iter().map(|p| p.order).max().unwrap_or(0);
    for (worker, part) in parts.into_iter().enumerate() {
        for stage in part.stages {
            // A run over captures has one element, which needs no name there.
            let named = match elements {
                [one] => Some(one),
                _ => elements.iter().find(|(name, _)| *name == stage.name),
            };
            let Some((name, exposed)) = named else {
                continue;
            };
            if worker == 0 {
                state.elements.push(Element {
                    name: (*name).to_owned(),
                    timers: Vec::new(),
                    objects: objects(exposed, &stage),
                });
            }
            let Some(element) = state.elements.iter_mut().find(|e| e.name == *name) else {
                continue;
            };
            element.timers.push(stage.timers);
            let contents = stage.contents.into_iter().flatten();
            for (object, content) in element.objects.iter_mut().zip(contents) {
                // What all share is as the last worker has it; what all have alike, as any.
                let held = object.identity.held.as_str();
                if held == LOCKED && part.order != last || held == REPLICATED && worker > 0 {
                    continue;
                }
                object.parts.push(content);
            }
        }
    }
    state
}

/// What is said of an object that all workers share.
pub(crate) const LOCKED: &str = "locked";
/// What is said of one that all workers have alike.
pub(crate) const REPLICATED: &str = "replicated";

/// The objects of an element that are kept, without their contents.
fn objects(exposed: &Exposed, stage: &StagePart) -> Vec<Object> {
    let kept = stage.contents.iter().enumerate();
    kept.filter(|(_, content)| content.is_some())
        .map(|(at, _)| Object {
            identity: identity(exposed, at),
            parts: Vec::new(),
            before: stage.before.get(at).cloned().unwrap_or_default(),
        })
        .collect()
}

fn identity(exposed: &Exposed, at: usize) -> Identity {
    let Ok(info) = exposed.info(at) else {
        return Identity::default();
    };
    let held = match &exposed.share(at).held {
        Held::Copied => "copied",
        Held::Alone => "alone",
        // One for all workers, with the same content whether they lock it or not.
        Held::Locked | Held::Transacted => LOCKED,
        Held::Own { .. } => "own",
        Held::Replicated => REPLICATED,
        Held::Divided => "divided",
        Held::Merged { .. } => "merged",
    };
    let types = exposed.types.get(&info.name);
    let types = types.map_or_else(String::new, |t| format!("{:?} {:?}", t.key, t.value));
    Identity {
        name: info.name.clone(),
        kind: info.kind.name.to_owned(),
        key_bytes: info.key_bytes as u64,
        value_bytes: info.value_bytes as u64,
        capacity: info.capacity,
        held: held.to_owned(),
        detail: [exposed.detail(at), &types].join("; "),
    }
}

/// What each worker takes up of a state. On another number of workers than before, all state is made one, for one worker or
/// for several that share it.
///
/// # Errors
/// The state is that of other elements or objects, or cannot be that of so many workers; all that differs is named.
pub fn parts(state: State, elements: &[Named<'_>], workers: usize) -> Result<Vec<Part>, Trouble> {
    let differs = |what: String| {
        unfit(format!(
            "--state: what was saved does not fit this run: {what}"
        ))
    };
    let before = state.numbers.len();
    // No two packets have one number: those of new workers begin behind all.
    let all = state
        .numbers
        .iter()
        .fold(0_u64, |n, m| n.saturating_add(*m));
    let packets = |worker: usize| match state.numbers.get(worker) {
        Some(own) if before == workers => *own,
        _ => all,
    };
    let mut parts: Vec<_> = (0..workers)
        .map(|worker| Part {
            time: state.time,
            packets: packets(worker),
            ..Part::default()
        })
        .collect();
    let mut wrong = Vec::new();
    for saved in &state.elements {
        if !elements.iter().any(|(name, _)| *name == saved.name) {
            wrong.push(format!("there is no element `{}`", saved.name));
        }
    }
    let mut saved = state.elements;
    for (name, exposed) in elements {
        let found = saved.iter().position(|e| e.name == *name);
        let element = found.map(|at| saved.swap_remove(at));
        let Some(mut element) = element else {
            wrong.push(format!("element `{name}` is new"));
            continue;
        };
        let mut timers = std::mem::take(&mut element.timers);
        if timers.len() != before {
            return Err(differs(format!("timers of {} workers", timers.len())));
        }
        // Each worker's fire at the same moments of the packets' time.
        if before != workers {
            let first = timers.first().cloned().unwrap_or_default();
            timers = vec![first; workers];
        }
        for (part, timers) in parts.iter_mut().zip(timers) {
            part.stages.push(StagePart {
                name: (*name).to_owned(),
                timers,
                ..StagePart::default()
            });
        }
        let mut missing = fits(&mut element, exposed, before, &mut parts);
        wrong.extend(missing.drain(..).map(|why| format!("{name}: {why}")));
    }
    match wrong.is_empty() {
        true => Ok(parts),
        false if before != workers => Err(differs(format!(
            "{before} cores before, {workers} now: {}",
            wrong.join("; ")
        ))
        .help(format!(
            "run it on --cores {before}, as it was saved; what workers had parts of, one core can take up, or several with \
             --strategy lock; or begin without it: --anew replaces it at the end"
        ))),
        false => Err(differs(wrong.join("; "))),
    }
}

/// Puts the objects of an element into the last stage of each part; why that cannot be.
fn fits(
    element: &mut Element,
    exposed: &Exposed,
    before: usize,
    parts: &mut [Part],
) -> Vec<String> {
    let mut wrong = Vec::new();
    let workers = parts.len();
    let objects: Vec<_> = (0..exposed.objects.len())
        .filter(|at| exposed.keeping(*at) != Keeping::Nothing)
        .map(|at| identity(exposed, at))
        .collect();
    for saved in &mut element.objects {
        let of = &saved.identity;
        let Some(now) = objects.iter().find(|o| o.name == of.name) else {
            wrong.push(format!("{}: there is no such object", of.name));
            continue;
        };
        // What is one for all workers, or alike on all, stays so.
        let one = |held: &str| held == LOCKED || held == REPLICATED;
        let alike = |held: &str| one(held) || held == COPIED;
        if before != workers || of.held != now.held && alike(&of.held) && alike(&now.held) {
            let same = Identity {
                held: now.held.clone(),
                ..of.clone()
            };
            let fits = unlike(&same, now).map_or(Ok(()), Err);
            match fits.and_then(|()| joined::contents(saved, now, workers)) {
                Ok(contents) => saved.parts = contents,
                Err(why) => wrong.push(format!("{}: {why}", now.name)),
            }
            continue;
        }
        if let Some(why) = unlike(of, now) {
            wrong.push(format!("{}: {why}", of.name));
        }
        let there = if one(&now.held) { 1 } else { workers };
        if saved.parts.len() != there {
            wrong.push(format!(
                "{}: {} parts, and not {there}",
                of.name,
                saved.parts.len()
            ));
        }
    }
    for now in &objects {
        if !element.objects.iter().any(|o| o.identity.name == now.name) {
            wrong.push(format!("{}: this object is new", now.name));
        }
    }
    if !wrong.is_empty() {
        return wrong;
    }
    for at in 0..exposed.objects.len() {
        let name = exposed.info(at).map_or("", |o| o.name.as_str());
        let saved = element.objects.iter_mut().find(|o| o.identity.name == name);
        let saved = saved.filter(|_| exposed.keeping(at) != Keeping::Nothing);
        let (mut contents, before) = match saved {
            Some(saved) => (
                std::mem::take(&mut saved.parts),
                std::mem::take(&mut saved.before),
            ),
            None => (Vec::new(), Vec::new()),
        };
        contents.reverse();
        let one = contents.len() == 1 && workers > 1;
        let copies = exposed.share(at).held == Held::Replicated;
        for (worker, part) in parts.iter_mut().enumerate() {
            let Some(stage) = part.stages.last_mut() else {
                continue;
            };
            // What all share is loaded once, by the first.
            let content = match () {
                () if one && copies => contents.first().cloned(),
                () if one && worker > 0 => None,
                () => contents.pop(),
            };
            stage.contents.push(content);
            stage.before.push(before.clone());
            stage.whole = true;
        }
    }
    Vec::new()
}

/// Why an object is not what another one was; none where it is.
fn unlike(saved: &Identity, now: &Identity) -> Option<String> {
    if saved.kind != now.kind {
        return Some(format!("{} before, {} now", saved.kind, now.kind));
    }
    if (saved.key_bytes, saved.value_bytes) != (now.key_bytes, now.value_bytes) {
        return Some(format!(
            "entries of {} + {} bytes before, {} + {} now",
            saved.key_bytes, saved.value_bytes, now.key_bytes, now.value_bytes
        ));
    }
    if now.capacity < saved.capacity {
        return Some(format!(
            "{} entries fit, {} did before",
            now.capacity, saved.capacity
        ));
    }
    if saved.held != now.held {
        return Some(format!(
            "{} on the workers before, {} now",
            saved.held, now.held
        ));
    }
    (saved.detail != now.detail).then(|| match now.kind.as_str() {
        "global" => "variables may lie elsewhere, as the code is another".to_owned(),
        _ => "what its keys, values or functions are is declared differently".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use millrace_dataplane::module::ObjectInfo;
    use millrace_dataplane::share::Share;
    use millrace_object::state;
    use millrace_state::{Content, Piece, What};

    use super::*;

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
        assert!(
            refused(&locked, "f", 2).contains("own: divided on the workers before, locked now")
        );
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
}
