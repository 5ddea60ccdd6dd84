//! Observable behaviour of a path: the one list behind every rule that says that nothing depends on an object. A path, an access, a place and what they are made of are taken apart here field by field, so that a field
//! that is added does not compile before somebody has said whether it shows.
//!
//! State shows where any of this is made of it: whether a path is taken at all, its verdict and where that leads, bytes of
//! the packet and where they are written, the packet's borders, keys, what is stored in other objects or put into records,
//! what calls are told whose answer is a symbol of its own, and all that a loop touches whose turns are not followed.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use millrace_object::program::{ObjectId, Program};

use crate::exec::{Access, Borders, Place, Target, Written};
use crate::expr::given::{Facts, Given};
use crate::expr::ids::IdSet;
use crate::expr::support::Support;
use crate::expr::walk::each_child;
use crate::expr::{Arena, ExprId, Node, Origin, Rel, SymId};
use crate::model::{Effect, Entry, Path, Verdict};
use crate::weaken::weak;

/// Observable parts of an object as it was before a packet, in that packet's results.
#[derive(Clone, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct Observed {
    /// bits of its values, whichever entry they are of: byte n has those from 8 n on, its lowest first
    pub bits: BTreeSet<u32>,
    /// whether an entry is there
    pub presence: bool,
    /// whether there is room for one more
    pub room: bool,
    /// anything else: an estimate, a leased number, the next value of a queue, how full a ring is
    pub other: bool,
}

impl Observed {
    fn nothing_hidden() -> Self {
        Self {
            other: true,
            ..Self::default()
        }
    }

    pub(crate) fn absorb(&mut self, more: Self) {
        self.bits.extend(more.bits);
        self.presence |= more.presence;
        self.room |= more.room;
        self.other |= more.other;
    }

    /// Whether nothing shows.
    #[must_use]
    pub fn nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Observations of a path by its expressions: `shown` gets those that show in any case, `held` what is stored in an
/// object, which shows unless it is that object's own.
fn channels(
    path: &Path,
    shown: &mut impl FnMut(&[ExprId]),
    held: &mut impl FnMut(ObjectId, &[ExprId]),
) {
    let Path {
        guard,
        accesses,
        places,
        rewrites,
        target,
        borders: Borders {
            meta, start, end, ..
        },
        verdict,
        segment: _,
        told,
        // Which calls were made, and how many draws, is decided by the guard, or told.
        tells: _,
        random: _,
        drawn: _,
        undecided: _,
        loose: _,
        witness: _,
    } = path;
    let mut shown_by = |rule: &str, roots: &[ExprId]| {
        if !weak(rule) {
            shown(roots);
        }
    };
    shown_by("observe-guard", guard);
    shown_by("observe-told", told);
    shown_by("observe-borders", &[*meta, *start, *end]);
    for Written { base, at: _, byte } in rewrites {
        shown_by("observe-byte", &[*byte]);
        shown_by("observe-place", base.as_slice());
    }
    match target {
        Some(Target::Interface(e)) => shown_by("observe-target", &[*e]),
        Some(Target::Entry(_, key)) => shown_by("observe-target", key),
        Some(Target::All(_)) | None => {}
    }
    match verdict {
        Verdict::Number(e) | Verdict::GoesOn(_, e) => shown_by("observe-verdict", &[*e]),
        // What goes on is told.
        Verdict::None | Verdict::Onward(_) => {}
    }
    for access in accesses {
        let Access {
            object,
            entry: _,
            operation: _,
            effect: _,
            key,
            value,
            // Constants of the path.
            offset: _,
            bytes: _,
            // A part of what is read, and of what is left in the entry.
            chosen: _,
            // A symbol, which shows where it is used.
            answer: _,
            // Decided by the guard.
            outcome: _,
            // Looked at in `of`.
            repeated: _,
            line: _,
        } = access;
        shown_by("observe-key", key);
        if !weak("observe-stored") {
            held(*object, value);
        }
    }
    for place in places {
        let Place {
            object,
            key,
            stem: _,
            bytes,
            presence: _,
            fresh: _,
            lapsed: _,
            doubts: _,
            room: _,
            slot: _,
            turned: _,
        } = place;
        shown_by("observe-key", key);
        let bytes: Vec<ExprId> = bytes.values().copied().collect();
        if !weak("observe-stored") {
            held(*object, &bytes);
        }
    }
}

/// Meaning of a symbol of state.
pub(crate) enum Part {
    /// these bytes of a value
    Bytes(u32),
    /// whether an entry is there
    Presence,
    /// whether there is room
    Room,
    /// anything else
    Other,
}

/// Meaning of an object's symbol, by its name (exec/): `OBJECT#n[from..to]`, `OBJECT#n.present`, `OBJECT.full#7` …
pub(crate) fn part(object: &str, symbol: &str) -> Part {
    let Some(rest) = symbol.strip_prefix(object) else {
        return Part::Other;
    };
    let rest = match rest.strip_prefix('#') {
        Some(r) => r.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    let word = rest.trim_end_matches(|c: char| c.is_ascii_digit() || c == '#');
    match (rest.strip_prefix('['), word) {
        (Some(r), _) => match r.split_once("..").map(|(from, _)| from.parse()) {
            Some(Ok(from)) => Part::Bytes(from),
            _ => Part::Other,
        },
        (None, ".present") => Part::Presence,
        (None, ".full") => Part::Room,
        _ => Part::Other,
    }
}

/// A walk over expressions that tells which bits of symbols they are made of, each expression once.
#[derive(Default)]
pub(crate) struct Leaves {
    seen: IdSet<ExprId>,
}

impl Leaves {
    /// Calls `f` with each symbol, its lowest bit that counts and how many do.
    pub fn of(&mut self, arena: &Arena, roots: &[ExprId], mut f: impl FnMut(SymId, u32, u32)) {
        let mut todo = roots.to_vec();
        while let Some(e) = todo.pop() {
            if !self.seen.insert(e) {
                continue;
            }
            match arena.node(e) {
                Node::Sym(s) => f(*s, 0, arena.width(e)),
                Node::Extract { of, low } => match arena.node(*of) {
                    Node::Sym(s) => f(*s, *low, arena.width(e)),
                    _ => todo.push(*of),
                },
                Node::Cmp(Rel::Less, a, b) => match upper(arena, *a, *b) {
                    Some((s, low, width)) => f(s, low, width),
                    None => todo.extend([*a, *b]),
                },
                node => each_child(node, |c| todo.push(c)),
            }
        }
    }
}

/// The bits of a symbol that say whether it is below 2^n, which are those from n on: flags above a counter in one number are
/// often asked for so.
fn upper(arena: &Arena, a: ExprId, b: ExprId) -> Option<(SymId, u32, u32)> {
    let (asked, power) = match (arena.constant(a), arena.constant(b)) {
        (None, Some(above)) => (a, above),
        (Some(below), None) => (b, below.checked_add(1)?),
        _ => return None,
    };
    let n = power.is_power_of_two().then(|| power.trailing_zeros())?;
    let (of, low) = match arena.node(asked) {
        Node::Extract { of, low } => (*of, *low),
        _ => (asked, 0),
    };
    let Node::Sym(s) = arena.node(of) else {
        return None;
    };
    let width = arena.width(asked).checked_sub(n)?;
    Some((*s, low + n, width))
}

/// Parts of objects that occur in expressions; `each` gets object and part.
pub(crate) fn parts(
    program: &Program,
    arena: &Arena,
    leaves: &mut Leaves,
    roots: &[ExprId],
    mut each: impl FnMut(usize, Observed),
) {
    leaves.of(arena, roots, |s, low, width| {
        let symbol = arena.symbol(s);
        let Origin::State(object) = symbol.origin else {
            return;
        };
        let name = program.objects.get(object).map_or("", |o| o.name.as_str());
        let mut seen = Observed::default();
        match part(name, &symbol.name) {
            Part::Bytes(from) => {
                seen.bits.extend(8 * from + low..8 * from + low + width);
            }
            Part::Presence => seen.presence = true,
            Part::Room => seen.room = true,
            Part::Other => seen.other = true,
        }
        each(object, seen);
    });
}

/// Observable parts of each object on an entry's paths, in the program's order.
pub(crate) fn of(program: &Program, entry: &Entry) -> Vec<Observed> {
    let count = program.objects.len();
    let mut all = vec![Observed::default(); count];
    let a = &entry.arena;
    let mut note = |object: usize, seen: Observed| {
        if let Some(o) = all.get_mut(object) {
            o.absorb(seen);
        }
    };
    let mut shown = Leaves::default();
    let mut held: Vec<Leaves> = (0..count).map(|_| Leaves::default()).collect();
    for path in &entry.paths {
        channels(
            path,
            &mut |roots| parts(program, a, &mut shown, roots, &mut note),
            &mut |_, _| {},
        );
    }
    // The host takes records, and so sees what they say of their own ring.
    let records: Vec<bool> = (program.objects.iter())
        .map(|o| o.kind.holds_records())
        .collect();
    for path in &entry.paths {
        channels(path, &mut |_| {}, &mut |object, roots| {
            let taken = records.get(object.0) == Some(&true);
            let Some(leaves) = held.get_mut(object.0) else {
                return;
            };
            parts(program, a, leaves, roots, |other, seen| {
                if other != object.0 || taken {
                    note(other, seen);
                }
            });
        });
        // What a loop leaves depends on all that it reads.
        for access in path.accesses.iter().filter(|a| a.repeated) {
            note(access.object.0, Observed::nothing_hidden());
        }
    }
    all
}

/// Dependence of a path on the core that runs it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Surroundings {
    /// the number of the processor
    pub processor: bool,
    /// the receive queue that the packet came in by
    pub queue: bool,
}

/// Dependence on the core in an entry's results, or in what it stores, when there are so many: a question that all of
/// them answer alike, as whether the processor's number is below a greater one, is none.
#[must_use]
pub fn surroundings(entry: &mut Entry, cores: u32) -> Surroundings {
    let Entry { arena, paths, .. } = entry;
    let processor = arena.find_symbol("cpu", 32, Origin::Helper);
    let queue = arena.find_symbol("queue", 32, Origin::Port);
    let mut found = Surroundings::default();
    if processor.is_none() && queue.is_none() {
        return found;
    }
    let mut leaves = Leaves::default();
    let mut never: IdSet<ExprId> = IdSet::default();
    if let Some(processor) = processor {
        let asked = Support::symbol(processor);
        for e in (0..arena.len() as u32).map(ExprId) {
            let question = matches!(arena.node(e), Node::Cmp(..)) && arena.support(e).meets(asked);
            let answer = question.then(|| alike(arena, e, processor, cores));
            if let Some(answer) = answer.flatten() {
                leaves.seen.insert(e);
                let not = arena.not(e);
                never.insert(if answer { not } else { e });
            }
        }
    }
    for path in paths.iter() {
        let guard = crate::solver::conjuncts(arena, &path.guard);
        if guard.iter().any(|c| never.contains(c)) {
            continue;
        }
        let mut all = Vec::new();
        channels(
            path,
            &mut |roots| all.extend_from_slice(roots),
            &mut |_, _| {},
        );
        channels(path, &mut |_| {}, &mut |_, roots| {
            all.extend_from_slice(roots);
        });
        leaves.of(arena, &all, |s, _, _| {
            found.processor |= Some(s) == processor;
            found.queue |= Some(s) == queue;
        });
    }
    found
}

/// The answer of all processors to a question about their number; none where it is another one, or they differ.
fn alike(arena: &mut Arena, condition: ExprId, processor: SymId, cores: u32) -> Option<bool> {
    let mut asks = false;
    Leaves::default().of(arena, &[condition], |s, _, _| asks |= s == processor);
    if !asks {
        return None;
    }
    let mut answer = |number: u32| {
        let facts = Facts {
            symbols: [(processor, u64::from(number))].into(),
            ..Facts::default()
        };
        let made = Given::new(facts).of(arena, &[condition]);
        made.first().and_then(|e| arena.constant(*e))
    };
    let first = answer(0)?;
    (1..cores)
        .all(|n| answer(n) == Some(first))
        .then_some(first == 1)
}

/// Whether the packet's borders are where they were.
fn unmoved(arena: &Arena, borders: &Borders) -> bool {
    let Borders {
        meta, start, end, ..
    } = borders;
    let length = match arena.node(*end) {
        Node::Concat(parts) => match parts.as_ref() {
            [zeros, low] if arena.constant(*zeros) == Some(0) => *low,
            _ => return false,
        },
        _ => *end,
    };
    let whole = matches!(arena.node(length), Node::Sym(s)
        if arena.symbol(*s).origin == Origin::Length);
    arena.constant(*meta) == Some(0) && arena.constant(*start) == Some(0) && whole
}

impl Path {
    /// The verdict of a path that does nothing but end with it: nothing else of it shows, and no state is other than
    /// before.
    #[must_use]
    pub fn inert(&self, arena: &Arena) -> Option<u64> {
        let Self {
            // Which packets take it, and what it looks at, leaves no trace.
            guard: _,
            accesses,
            places: _,
            rewrites,
            target,
            borders,
            verdict,
            segment: _,
            told: _,
            tells,
            random: _,
            drawn: _,
            undecided: _,
            loose: _,
            witness: _,
        } = self;
        let inert = rewrites.is_empty()
            && target.is_none()
            && *tells == 0
            && (unmoved(arena, borders) || weak("inert-borders"))
            && accesses.iter().all(|a| a.effect == Effect::Read);
        match verdict {
            Verdict::Number(e) if inert => arena.constant(*e),
            _ => None,
        }
    }

    /// A number of all that shows of a path but for what it does to one object: paths of an entry that show the same
    /// have the same.
    #[must_use]
    pub(crate) fn shown(&self, object: ObjectId) -> u64 {
        let Self {
            // What decides between paths is asked apart.
            guard: _,
            accesses,
            // What accesses leave.
            places: _,
            rewrites,
            target,
            borders: Borders {
                meta, start, end, ..
            },
            verdict,
            segment,
            told,
            tells,
            random,
            drawn: _,
            undecided: _,
            loose: _,
            witness: _,
        } = self;
        let mut h = DefaultHasher::new();
        (
            target, meta, start, end, verdict, segment, told, tells, random,
        )
            .hash(&mut h);
        for Written { base, at, byte } in rewrites {
            (base, at, byte).hash(&mut h);
        }
        for access in accesses.iter().filter(|a| a.object != object) {
            let Access {
                object,
                entry,
                operation,
                effect,
                key,
                value,
                offset,
                bytes,
                chosen,
                answer,
                outcome,
                repeated,
                line: _,
            } = access;
            (object, entry, operation, effect, key, value).hash(&mut h);
            (offset, bytes, chosen, answer, outcome, repeated).hash(&mut h);
        }
        h.finish()
    }
}
