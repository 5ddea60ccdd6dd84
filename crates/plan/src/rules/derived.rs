//! Keys that a path reads from an entry of another object which it has found: where the two entries were made
//! together, they lie on the same core, and the key asks for nothing of its own.
//!
//! Let a path find entry `e` of object A by a key that the steering knows, read bytes of its value, and look
//! object B up with them. If every write to those bytes of A stands on a path that touches B under the very
//! bytes that it writes, then B's entry is of the core of the packet that wrote, which is that of `e`.
//!
//! Where several objects take turns (the ports of several addresses), the value says which of them it is, and the
//! path goes on with B only for one such value. A write that stores another one has not made `e`.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

use millrace_model::Model;
use millrace_model::expr::ids::IdMap;
use millrace_model::expr::{Arena, ExprId, Node, Rel};
use millrace_model::weaken::weak;
use millrace_model::writers::Writer;
use millrace_object::program::{ObjectId, Program};

use crate::key::{DEEPEST, followed};
use crate::packets::{conjuncts, stated};
use crate::touch::{Source, Touch, value_byte, value_of};

/// Facts about bits of a value: that they are these, or, with `false`, that they are not. What one condition of a
/// guard says is there once for all paths.
type Condition = Rc<(BTreeMap<u32, bool>, bool)>;

/// Inputs that decide a question: the object that is touched, and the one whose value has the key; its bytes in the
/// key, and the key's other bytes; the conditions on the value.
type Question = (
    (usize, usize),
    Vec<Option<u32>>,
    Vec<Option<u64>>,
    Vec<Condition>,
);

/// Answers, with what was found out on the way: many paths ask the same. Of one model only.
#[derive(Default)]
pub(crate) struct Derived {
    /// of accesses that were asked about
    held: IdMap<(usize, usize, usize), bool>,
    stored: IdMap<(usize, usize, usize), Rc<Vec<Condition>>>,
    answers: HashMap<Question, bool>,
    /// who writes these bytes of an object
    writers: IdMap<(usize, u32, u32), Rc<Vec<Writer>>>,
    /// by entry, object and which of its entries: what conditions of guards say of that entry's value
    said: IdMap<(usize, usize, u32), IdMap<ExprId, Vec<Condition>>>,
}

impl Derived {
    /// The object that holds the key of an access, if that holds of it; then it depends on that object being sharded,
    /// too.
    pub fn holds(&mut self, model: &Model, program: &Program, touch: &Touch) -> Option<usize> {
        // What packets see has no say where a key is read from.
        let Source::Value { object, bytes } = &touch.by.first()?.source else {
            return None;
        };
        let at = (touch.at.entry, touch.at.path, touch.at.access);
        let held = match self.held.get(&at) {
            Some(held) => *held,
            None => {
                let found = self.found(model, program, touch, (*object, bytes));
                let held = found.unwrap_or(false) || weak("derived");
                self.held.insert(at, held);
                held
            }
        };
        held.then_some(*object)
    }

    fn found(
        &mut self,
        model: &Model,
        program: &Program,
        touch: &Touch,
        (object, bytes): (usize, &[Option<u32>]),
    ) -> Option<bool> {
        // Elements of arrays are there without having been written.
        let declared = program.objects.get(object)?;
        let put = declared.kind.is_table() || declared.kind.leases();
        if !put || declared.kind.per_cpu {
            return None;
        }
        let own = &touch.at.access_of(model)?.key;
        let own_arena = &model.entries.get(touch.at.entry)?.arena;
        let first = bytes.iter().flatten().min().copied()?;
        let last = bytes.iter().flatten().max().copied()?;
        let writers = self.writers(model, object, first..last + 1);
        let mut read = self.read(model, program, touch, object);
        read.sort();
        read.dedup();
        // What is said of a value holds of the write of the key's bytes only if nobody writes the one without the other.
        read.retain(|condition| {
            let bytes = condition.0.keys().map(|at| at / 8);
            let span = bytes.clone().min().unwrap_or(0)..bytes.max().unwrap_or(0) + 1;
            let all = self.writers(model, object, span);
            all.iter()
                .all(|w| w.bytes().contains(&first) && w.bytes().contains(&last))
        });
        let constants: Vec<Option<u64>> = own.iter().map(|e| own_arena.constant(*e)).collect();
        let question = (
            (touch.object, object),
            bytes.to_vec(),
            constants.clone(),
            read.clone(),
        );
        if let Some(answer) = self.answers.get(&question) {
            return Some(*answer);
        }
        let mut made = writers.iter().filter(|w| {
            let covers = |at: &u32| w.bytes().contains(&(at / 8));
            let known = |condition: &&Condition| condition.0.keys().all(covers);
            let read: Vec<&Condition> = read.iter().filter(known).collect();
            read.is_empty() || !contradict(&read, &self.stored(model, w))
        });
        let together = made.all(|w| {
            let Some((entry, path)) = w.path_of(model) else {
                return false;
            };
            path.accesses.iter().any(|a| {
                a.object.0 == touch.object
                    && a.key.len() == bytes.len()
                    && a.key
                        .iter()
                        .zip(bytes)
                        .enumerate()
                        .all(|(i, (e, byte))| match byte {
                            Some(byte) => {
                                let at = byte.checked_sub(w.from).map(|at| at as usize);
                                at.and_then(|at| w.value.get(at)) == Some(e)
                            }
                            None => {
                                let mine = constants.get(i).copied().flatten();
                                mine.is_some()
                                    && constant(program, &entry.arena, (touch.object, *e), i)
                                        == mine
                            }
                        })
            })
        });
        let answer = !writers.is_empty() && together;
        self.answers.insert(question, answer);
        Some(answer)
    }

    /// The writers of these bytes of an object.
    fn writers(&mut self, model: &Model, object: usize, bytes: Range<u32>) -> Rc<Vec<Writer>> {
        let all = self.writers.entry((object, bytes.start, bytes.end));
        let all = all.or_insert_with(|| {
            let all = model.writers(ObjectId(object), &bytes);
            Rc::new(all.into_iter().cloned().collect())
        });
        all.clone()
    }

    /// Facts on the path of an access about the entry from which it reads the key.
    fn read(
        &mut self,
        model: &Model,
        program: &Program,
        touch: &Touch,
        object: usize,
    ) -> Vec<Condition> {
        let mut found = || {
            let entry = model.entries.get(touch.at.entry)?;
            let (arena, path) = (&entry.arena, touch.at.path_of(model)?);
            let byte = |e: ExprId| value_of(program, arena, (object, e));
            let mut key = touch.at.access_of(model)?.key.iter();
            let number = key.find_map(|e| match followed(arena, *e, 0, DEEPEST) {
                Err((e, _)) => byte(e).map(|b| b.0),
                Ok(_) => None,
            })?;
            let at = |(e, bit): (ExprId, u32)| match byte(e)? {
                (entry, from) if entry == number => Some(8 * from + bit),
                _ => None,
            };
            // Guards are made of the same conditions.
            let known = self
                .said
                .entry((touch.at.entry, object, number))
                .or_default();
            let mut out = Vec::new();
            for e in &path.guard {
                let said = known.entry(*e).or_insert_with(|| said(arena, &[*e], at));
                out.extend_from_slice(said);
            }
            Some(out)
        };
        found().unwrap_or_default()
    }

    /// Facts on a writer's path about the value that it stores.
    fn stored(&mut self, model: &Model, w: &Writer) -> Rc<Vec<Condition>> {
        let key = (w.entry, w.path, w.access);
        if let Some(known) = self.stored.get(&key) {
            return known.clone();
        }
        let found = Rc::new(written(model, w).unwrap_or_default());
        self.stored.insert(key, found.clone());
        found
    }
}

/// A byte of a key that is the same for all packets: of a leased number those that all numbers share.
fn constant(
    program: &Program,
    arena: &Arena,
    (object, e): (usize, ExprId),
    byte: usize,
) -> Option<u64> {
    if let Some(c) = arena.constant(e) {
        return Some(c);
    }
    let leased = value_byte(program, arena, e) == Some((object, None));
    let declared = program.objects.get(object).filter(|_| leased)?;
    let last = declared
        .first
        .saturating_add(declared.capacity.checked_sub(1)?);
    let above = |n: u64| n.checked_shr(8 * byte as u32).unwrap_or(0);
    (above(declared.first) == above(last)).then(|| above(last) & 0xff)
}

/// Facts on a path about the value that it stores.
fn written(model: &Model, w: &Writer) -> Option<Vec<Condition>> {
    let (entry, path) = w.path_of(model)?;
    let arena = &entry.arena;
    let (mut places, mut constant) = (IdMap::default(), BTreeMap::new());
    for (byte, e) in (w.from..).zip(&w.value) {
        for bit in 0..arena.width(*e).min(8) {
            let at = 8 * byte + bit;
            match followed(arena, *e, bit, DEEPEST) {
                Ok(value) => drop(constant.insert(at, value)),
                Err(place) => drop(places.entry(place).or_insert(at)),
            }
        }
    }
    let mut out = said(arena, &path.guard, |place| places.get(&place).copied());
    out.push(Rc::new((constant, true)));
    Some(out)
}

/// The conditions of a guard that bits equal a number, or do not.
fn said(
    arena: &Arena,
    guard: &[ExprId],
    at: impl Fn((ExprId, u32)) -> Option<u32>,
) -> Vec<Condition> {
    let of = |e: ExprId| {
        let (e, equal) = stated(arena, e);
        let Node::Cmp(Rel::Eq, a, b) = *arena.node(e) else {
            return None;
        };
        let (x, number) = match (arena.constant(a), arena.constant(b)) {
            (_, Some(number)) => (a, number),
            (Some(number), None) => (b, number),
            _ => return None,
        };
        let mut bits = BTreeMap::new();
        for i in 0..arena.width(x) {
            let value = number >> i & 1 == 1;
            match followed(arena, x, i, DEEPEST) {
                Ok(known) if known == value => {}
                Ok(_) => return None,
                Err(place) => drop(bits.insert(at(place)?, value)),
            }
        }
        (!bits.is_empty()).then(|| Rc::new((bits, equal)))
    };
    conjuncts(arena, guard).into_iter().filter_map(of).collect()
}

/// Whether no value fulfils all of these.
fn contradict(read: &[&Condition], stored: &[Condition]) -> bool {
    let mut bits: IdMap<u32, bool> = IdMap::default();
    let all = || read.iter().copied().chain(stored);
    for (at, value) in all().filter(|c| c.1).flat_map(|c| &c.0) {
        if bits.insert(*at, *value).is_some_and(|v| v != *value) {
            return true;
        }
    }
    let met = |c: &Condition| c.0.iter().all(|(at, v)| bits.get(at) == Some(v));
    all().any(|c| !c.1 && met(c))
}
