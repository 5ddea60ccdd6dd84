//! Objects of which each core may keep a part of its own: what packets leave in them are sums, which are proved from
//! what each path leaves in an entry against what was there before, and no packet can tell one part from another.
//!
//! A number is a run of bytes. On every path it is, at the end, what it was and something more that no other packet has left
//! in the object; a path that makes an entry leaves the same something, added to nothing. By which instructions does not
//! matter: eight stores of a byte each are one addition, and so is an update with what was looked up and one more.
//! An addition modulo 2^n commutes, so the sum of all parts is what one core would have counted.

use std::collections::{BTreeMap, BTreeSet};

use millrace_object::contract::Merging;
use millrace_object::program::{ObjectId, Program, Role, StateObject};
use millrace_object::state::StateKind;
use serde::{Deserialize, Serialize};

use crate::exec::{Place, Presence, before};
use crate::expr::{Arena, ExprId, Node};
use crate::model::{Effect, Entry, Path};
use crate::observe::{self, Leaves, Observed};
use crate::presence;
use crate::solver::Oracle;
use crate::weaken::weak;

/// A number in a value, in the machine's byte order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct Word {
    /// bytes from the value's start
    pub offset: u32,
    /// bytes that it is wide, 1 to 8
    pub bytes: u32,
    /// so many of its lowest bits are no part of the sum: no addition changes them, and all cores have the same there
    #[serde(skip)]
    pub low: u32,
}

impl Word {
    fn range(self) -> std::ops::Range<u32> {
        self.offset..self.offset + self.bytes
    }

    fn meets(self, other: Self) -> bool {
        self.offset < other.range().end && other.offset < self.range().end
    }

    fn within(self, other: Self) -> bool {
        other.offset <= self.offset && self.range().end <= other.range().end
    }
}

/// Contents that packets leave in an object of which each core may have its own part.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Parts {
    /// numbers that are only added to
    #[serde(with = "whole")]
    pub words: Vec<Word>,
    /// bytes that hold what was stored last, or what a packet keeps there for itself: of kinds that are per CPU only
    pub stored: BTreeSet<u32>,
    /// some of these hold more than a packet keeps there for itself: what no packet reads again, or what the next one goes
    /// on with, as a maximum
    pub latest: bool,
    /// packets add entries
    pub inserts: bool,
    /// results differ where there is no room for one more entry
    pub room_decides: bool,
}

/// Numbers with all that they are; what a reader is shown of them is less ([`Word::low`]).
mod whole {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Word;

    pub fn serialize<S: Serializer>(words: &[Word], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(words.iter().map(|w| (w.offset, w.bytes, w.low)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Word>, D::Error> {
        let words = Vec::<(u32, u32, u32)>::deserialize(d)?.into_iter();
        let word = |(offset, bytes, low)| Word { offset, bytes, low };
        Ok(words.map(word).collect())
    }
}

impl Parts {
    /// Whether packets do no more than add.
    #[must_use]
    pub fn additive(&self) -> bool {
        self.stored.is_empty()
    }
}

/// Values that a path leaves in an entry.
struct Left {
    place: Place,
    /// the entry was not there before
    inserted: bool,
}

/// Additions by packets: to which entry, where, how much.
pub(crate) type Added = BTreeMap<(Vec<ExprId>, Word), ExprId>;

/// Each core's part of an object; none where parts cannot be told to be right. `observed` is what of it shows, on
/// the paths of all entries.
pub(crate) fn parts(
    program: &Program,
    entries: &mut [Entry],
    oracle: &mut Oracle,
    object: ObjectId,
    observed: &Observed,
) -> Option<Parts> {
    let declared = program.objects.get(object.0)?;
    let kind = declared.kind;
    let per_cpu = kind.per_cpu;
    let aged = declared.expire_after > 0 || declared.timer.is_some();
    if kind.merging() != Some(Merging::Values) || aged || observed.other {
        return None;
    }
    // Where it may be held by a map of maps that packets look into, they reach it under another name, too.
    let mut shapes = (0..).map(ObjectId).zip(&program.objects);
    let nested = |(id, o): (ObjectId, &StateObject)| {
        o.is_shape() && (declared.fits(o) || o.name == declared.name) && is_touched(entries, id)
    };
    if shapes.any(nested) {
        return None;
    }
    let mut left: Vec<Vec<Vec<Left>>> = Vec::new();
    let mut out = Parts::default();
    for e in entries.iter() {
        let mut paths = Vec::new();
        for p in &e.paths {
            let packet = once(e.role);
            let touched = p.accesses.iter().any(|a| a.object == object);
            // What is there before the first packet is there on every core.
            let idle = e.role == Role::OnStart
                || !p
                    .accesses
                    .iter()
                    .any(|a| a.object == object && a.effect != Effect::Read);
            paths.push(match touched && packet {
                true => of_path(p, object, kind)?,
                false if idle || !touched => Vec::new(),
                false => return None,
            });
        }
        left.push(paths);
    }
    // Which bytes change, and in which runs.
    let mut changed = BTreeSet::new();
    let mut runs = BTreeSet::new();
    for (e, paths) in entries.iter_mut().zip(&left) {
        for (p, all) in e.paths.iter().zip(paths) {
            for l in all {
                out.inserts |= l.inserted;
                let mine = differing(program, &mut e.arena, l);
                if mine.is_empty() {
                    continue;
                }
                for a in &p.accesses {
                    let stores = a.object == object
                        && matches!(a.operation, "store" | "atomic")
                        && a.effect != Effect::Read;
                    if let (true, Some(offset)) = (stores, a.offset) {
                        let word = Word {
                            offset,
                            bytes: a.bytes,
                            low: 0,
                        };
                        if (2..=8).contains(&a.bytes)
                            && mine.iter().any(|o| word.range().contains(o))
                        {
                            runs.insert(word);
                        }
                    }
                }
                for offset in &mine {
                    runs.extend(run(&mut e.arena, &l.place, *offset));
                }
                changed.extend(mine);
            }
        }
    }
    let words = words(&changed, runs)?;
    let mut wrong: BTreeSet<Word> = BTreeSet::new();
    let mut added: Vec<Vec<Added>> = Vec::new();
    // The lowest bit that additions to a number change: flags below a counter are as they were.
    let mut lowest: BTreeMap<Word, u32> = BTreeMap::new();
    // Numbers that some path makes of what an earlier packet left.
    let mut onward: BTreeSet<Word> = BTreeSet::new();
    for (e, paths) in entries.iter_mut().zip(&left) {
        let mut of_entry = Vec::new();
        for all in paths {
            let mut sum = Added::new();
            for l in all {
                for word in &words {
                    let Some(by) = increment(program, &mut e.arena, l, *word) else {
                        continue;
                    };
                    if own(program, &e.arena, by, object, &changed) {
                        wrong.insert(*word);
                    }
                    if goes_on(program, e, l, *word, (object, &changed)) {
                        onward.insert(*word);
                    }
                    let bits = e.arena.bits(by);
                    let low = lowest.entry(*word).or_insert(u32::MAX);
                    *low = (*low).min((bits.value | bits.mask).trailing_zeros());
                    if e.arena.constant(by) != Some(0) {
                        sum.insert((l.place.key.clone(), *word), by);
                    }
                }
                let same = || same_for_all(&e.arena, l, &words);
                if l.inserted && !per_cpu && !same() {
                    return None;
                }
            }
            of_entry.push(sum);
        }
        added.push(of_entry);
    }
    if !wrong.is_empty() && !per_cpu {
        return None;
    }
    let changes = |bit: &u32| {
        let byte = bit / 8;
        let word = words.iter().find(|w| w.range().contains(&byte));
        let low = word.filter(|w| !wrong.contains(w)).and_then(|w| {
            let low = lowest.get(w)?;
            Some(low.saturating_add(8 * w.offset))
        });
        changed.contains(&byte) && low.is_none_or(|low| *bit >= low)
    };
    if observed.bits.iter().any(changes) && !weak("sums-observed") {
        return None;
    }
    out.stored = wrong.iter().flat_map(|w| w.range()).collect();
    let sums = words.into_iter().filter(|w| !wrong.contains(w));
    let with_low = |w: Word| Word {
        low: lowest.get(&w).map_or(0, |low| (*low).min(8 * w.bytes)),
        ..w
    };
    out.words = sums.map(with_low).collect();
    for sums in added.iter_mut().flatten() {
        sums.retain(|k, _| !wrong.contains(&k.1));
    }
    let loads = |b: &u32| {
        let mut all = entries
            .iter()
            .flat_map(|e| &e.paths)
            .flat_map(|p| &p.accesses);
        all.any(|a| {
            let offset = a.offset.unwrap_or(0);
            a.object == object && a.operation == "load" && (offset..offset + a.bytes).contains(b)
        })
    };
    out.latest = !out.stored.iter().all(loads) || !onward.is_disjoint(&wrong);
    if out.inserts {
        for (e, added) in entries.iter_mut().zip(&added) {
            let packet = once(e.role);
            if packet {
                out.room_decides |= presence::hidden(program, e, oracle, object, added)?;
            }
        }
        // A lock, or a shard, keeps to the declared capacity; nothing else can for what is per CPU.
        if out.room_decides && !per_cpu {
            return None;
        }
    }
    Some(out)
}

/// Whether an entry runs once for each packet, or for each entry that expires, on whichever core: what it adds to a core's
/// own part is added once.
pub(crate) fn once(role: Role) -> bool {
    matches!(role, Role::Xdp | Role::OnPacket | Role::Expiry)
}

/// Whether any entry may touch an object.
fn is_touched(entries: &[Entry], object: ObjectId) -> bool {
    let on_paths = |e: &Entry| {
        e.paths
            .iter()
            .any(|p| p.accesses.iter().any(|a| a.object == object))
    };
    entries
        .iter()
        .any(|e| on_paths(e) || e.at_most.iter().any(|t| t.object == object))
}

/// Values that a path leaves in each entry of an object that it touches; none where it does something else than read,
/// store, and put entries that were not there.
fn of_path(path: &Path, object: ObjectId, kind: &StateKind) -> Option<Vec<Left>> {
    let mut inserted: BTreeMap<u32, bool> = BTreeMap::new();
    for a in path.accesses.iter().filter(|a| a.object == object) {
        if a.repeated {
            return None;
        }
        match (a.effect, a.operation, a.outcome) {
            (Effect::Read, ..)
            | (Effect::Add, "atomic", _)
            | (Effect::Write, "store" | "atomic", _) => {}
            (Effect::Refresh, ..) if kind.evicts => {}
            (Effect::Write, "map_update_elem" | "map_put", Some(outcome)) => match outcome {
                "added" => drop(inserted.entry(a.entry).or_insert(true)),
                "overwritten" => drop(inserted.entry(a.entry).or_insert(false)),
                "full" | "beyond the last" => {}
                o if o.starts_with("refused") => {}
                _ => return None,
            },
            _ => return None,
        }
    }
    let mut out = Vec::new();
    for place in path.places.iter().filter(|p| p.object == object) {
        if place.lapsed.is_some() || place.turned {
            return None;
        }
        if place.presence != Presence::There {
            continue;
        }
        let inserted = inserted.get(&place.number()) == Some(&true);
        out.push(Left {
            place: place.clone(),
            inserted,
        });
    }
    Some(out)
}

/// A byte as it was before the path.
fn was(program: &Program, arena: &mut Arena, left: &Left, offset: u32) -> ExprId {
    match left.inserted {
        true => arena.number(0, 8),
        false => before(program, arena, &left.place, offset),
    }
}

/// A byte as it is at the end.
fn is(program: &Program, arena: &mut Arena, left: &Left, offset: u32) -> ExprId {
    match left.place.bytes.get(&offset) {
        Some(e) => *e,
        None => was(program, arena, left, offset),
    }
}

/// The bytes that are not as they were.
fn differing(program: &Program, arena: &mut Arena, left: &Left) -> BTreeSet<u32> {
    let bytes = left.place.bytes.iter();
    let mut out = BTreeSet::new();
    for (offset, e) in bytes {
        if was(program, arena, left, *offset) != *e {
            out.insert(*offset);
        }
    }
    out
}

/// The number that a byte is a part of, by its expression: bytes beside it are the others.
fn run(arena: &mut Arena, place: &Place, offset: u32) -> Option<Word> {
    let byte = place.bytes.get(&offset).copied()?;
    let (whole, low) = extracted(arena, byte)?;
    let first = offset.checked_sub(low / 8)?;
    let mut bytes = 0;
    while bytes < 8 && 8 * (bytes + 1) <= arena.width(whole) {
        let at = place.bytes.get(&(first + bytes)).copied();
        let same = at.is_some_and(|at| {
            let own = arena.extract(whole, 8 * bytes, 8);
            // A choice between two sums is one of their bytes.
            own == at || extracted(arena, at) == Some((whole, 8 * bytes)) || bytes == 0
        });
        if !same {
            break;
        }
        bytes += 1;
    }
    (bytes > 1).then_some(Word {
        offset: first,
        bytes,
        low: 0,
    })
}

/// The sum that a byte is of, and its lowest bit; of a choice, that of its first.
fn extracted(arena: &Arena, mut e: ExprId) -> Option<(ExprId, u32)> {
    for _ in 0..8 {
        match *arena.node(e) {
            Node::Ite(_, a, b) => {
                e = if matches!(arena.node(a), Node::Const(_)) {
                    b
                } else {
                    a
                };
            }
            Node::Extract { of, low } if low % 8 == 0 => {
                return (!matches!(arena.node(of), Node::Sym(_))).then_some((of, low));
            }
            _ => return None,
        }
    }
    None
}

/// The numbers that bytes which change are of: runs where there are some, single bytes elsewhere; none where two runs
/// overlap and neither is a part of the other.
fn words(changed: &BTreeSet<u32>, runs: BTreeSet<Word>) -> Option<BTreeSet<Word>> {
    let mut by_width: Vec<Word> = runs.into_iter().collect();
    by_width.sort_by_key(|w| std::cmp::Reverse(w.bytes));
    let mut words: BTreeSet<Word> = BTreeSet::new();
    for w in by_width {
        if words.iter().any(|v| w.within(*v)) {
            continue;
        }
        if words.iter().any(|v| w.meets(*v)) {
            return None;
        }
        words.insert(w);
    }
    for b in changed {
        if !words.iter().any(|w| w.range().contains(b)) {
            words.insert(Word {
                offset: *b,
                bytes: 1,
                low: 0,
            });
        }
    }
    Some(words)
}

/// By how much a path changes a number; none if it does not.
fn increment(program: &Program, arena: &mut Arena, left: &Left, word: Word) -> Option<ExprId> {
    let touched = word.range().any(|o| left.place.bytes.contains_key(&o));
    if !touched {
        return None;
    }
    let mut now = Vec::new();
    let mut then = Vec::new();
    for offset in word.range().rev() {
        now.push(is(program, arena, left, offset));
        then.push(was(program, arena, left, offset));
    }
    let (now, then) = (arena.concat(&now), arena.concat(&then));
    (now != then).then(|| more(arena, now, then, 16))
}

/// `now - then`, where a sum was taken apart into bytes, or is chosen from several.
fn more(arena: &mut Arena, now: ExprId, then: ExprId, depth: u32) -> ExprId {
    if let (Node::Ite(c, a, b), Some(deeper)) = (arena.node(now).clone(), depth.checked_sub(1)) {
        let (a, b) = (more(arena, a, then, deeper), more(arena, b, then, deeper));
        return arena.ite(c, a, b);
    }
    let bits = arena.width(now);
    let top = arena.extract(now, bits - 8, 8);
    let whole = match *arena.node(top) {
        // A sum's lowest byte is a sum of lowest bytes; its highest tells the whole.
        Node::Extract { of, low } if low == bits - 8 && arena.width(of) >= bits => {
            let same = |arena: &mut Arena, i: u32| {
                arena.extract(of, 8 * i, 8) == arena.extract(now, 8 * i, 8)
            };
            let all = (0..bits / 8).all(|i| same(arena, i));
            if all { arena.extract(of, 0, bits) } else { now }
        }
        _ => now,
    };
    arena.minus(whole, then)
}

/// Whether an increment is made of what packets leave in the object itself.
fn own(
    program: &Program,
    arena: &Arena,
    by: ExprId,
    object: ObjectId,
    changed: &BTreeSet<u32>,
) -> bool {
    let mut any = false;
    if weak("sums-own") {
        return any;
    }
    observe::parts(
        program,
        arena,
        &mut Leaves::default(),
        &[by],
        |other, seen| {
            let bytes = seen.bits.iter().any(|b| changed.contains(&(b / 8)));
            any |= other == object.0 && (bytes || seen.presence || seen.room || seen.other);
        },
    );
    any
}

/// Whether a path leaves in a number something made of what packets before it left in the object.
fn goes_on(
    program: &Program,
    entry: &mut Entry,
    left: &Left,
    word: Word,
    (object, changed): (ObjectId, &BTreeSet<u32>),
) -> bool {
    let arena = &mut entry.arena;
    word.range().any(|offset| {
        let then = was(program, arena, left, offset);
        let now = is(program, arena, left, offset);
        now != then && own(program, arena, now, object, changed)
    })
}

/// Whether what an entry begins with, beside its sums, is the same whichever packet made it: constants, and bytes of
/// its key.
fn same_for_all(arena: &Arena, left: &Left, words: &BTreeSet<Word>) -> bool {
    let summed = |o: &u32| words.iter().any(|w| w.range().contains(o));
    let mut others = left.place.bytes.iter().filter(|(o, _)| !summed(o));
    others.all(|(_, e)| arena.constant(*e).is_some() || left.place.key.contains(e))
}
