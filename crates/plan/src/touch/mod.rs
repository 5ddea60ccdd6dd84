//! Every access of a path to state, as one of the packets that take the path sees it: which packets, which
//! entry, what is done.

mod found;
mod seen;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use millrace_model::Model;
use millrace_model::exec::Access;
use millrace_model::expr::ExprId;
use millrace_model::model::{Effect, Path};
use millrace_object::program::{Line, Program, Role};
use millrace_steer::Field;

use crate::key::Key;
use crate::memo::Memo;
use crate::packets::{Course, Packets, Way, of_packet};

use found::{Found, found, source};
use seen::{ports, seen};

pub(crate) use found::value_byte;
pub(crate) use seen::Seen;

/// What a key is made of, beside fields and constants.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Source {
    /// nothing else
    Fields,
    /// nothing at all: one place for all packets
    Constant,
    /// bytes of a value of another object, or of another entry
    Value {
        object: usize,
        bytes: Vec<Option<u32>>,
    },
    /// a number that the object itself gave
    Leased,
    /// what NICs do not hash, in words
    Foreign(String),
}

/// One access.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Touch {
    pub object: usize,
    pub packets: Packets,
    pub way: Way,
    pub key: Rc<Key>,
    pub source: Source,
    /// a field of theirs that is 0: of ICMP echoes that count as UDP the other port
    pub zero: Option<Field>,
    pub writes: bool,
    /// only who looks inside the packet finds this key
    inside: bool,
    pub at: At,
}

/// Where in the model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct At {
    pub entry: usize,
    pub path: usize,
    pub access: usize,
}

impl At {
    pub fn path_of<'m>(&self, model: &'m Model) -> Option<&'m Path> {
        model.entries.get(self.entry)?.paths.get(self.path)
    }

    pub fn access_of<'m>(&self, model: &'m Model) -> Option<&'m Access> {
        self.path_of(model)?.accesses.get(self.access)
    }

    pub fn line<'m>(&self, model: &'m Model) -> Option<&'m Line> {
        self.access_of(model)?.line.as_ref()
    }
}

/// All that packets do to state, and who else touches it.
#[derive(Default)]
pub(crate) struct Touches {
    pub all: Vec<Touch>,
    /// objects that timers, or the end, touch: object and where
    pub others: Vec<(usize, At)>,
    /// ports at which packets are looked into
    pub inside: BTreeSet<usize>,
    /// what the views of each packet path are, by entry and path, for whoever asks for more of its expressions
    pub views: HashMap<(usize, usize), Rc<Vec<Seen>>>,
}

impl Touches {
    /// How the packets of a path are seen, those that are steered.
    pub fn seen(&self, at: At) -> Vec<&Seen> {
        let all = self.views.get(&(at.entry, at.path));
        let live = |s: &&Seen| match s.way {
            Way::Plain => true,
            Way::Answer | Way::Whole => self.inside.contains(&s.packets.port),
            Way::Rough => !self.inside.contains(&s.packets.port),
        };
        all.into_iter()
            .flat_map(|all| all.iter())
            .filter(live)
            .collect()
    }
}

/// What was gathered of all paths, without and with `echoes`: it is asked for with one and another path excluded.
#[derive(Default)]
pub(crate) struct Gathered([Option<Touches>; 2]);

/// Gathers them of all paths but the excluded ones; with `echoes` whoever steers looks for the identifiers of ICMP
/// echoes.
pub(crate) fn touches(
    model: &mut Model,
    program: &Program,
    objects: &BTreeSet<usize>,
    excluded: &BTreeSet<(usize, usize)>,
    (gathered, echoes): (&mut Gathered, bool),
) -> Touches {
    let [plain, looked] = &mut gathered.0;
    let place = if echoes { looked } else { plain };
    let all = place.get_or_insert_with(|| all(model, program, objects, echoes));
    let taken = |at: &At| !excluded.contains(&(at.entry, at.path));
    let mut out = Touches {
        all: all.all.iter().filter(|t| taken(&t.at)).cloned().collect(),
        others: all.others.iter().filter(|o| taken(&o.1)).copied().collect(),
        inside: BTreeSet::new(),
        views: all.views.clone(),
    };
    out.views.retain(|at, _| !excluded.contains(at));
    let inside = out.all.iter().filter(|t| t.inside);
    out.inside = inside.map(|t| t.packets.port).collect();
    let inside = out.inside.clone();
    // A packet is looked into or not.
    out.all.retain(|t| match t.way {
        Way::Plain => true,
        Way::Answer | Way::Whole => inside.contains(&t.packets.port),
        Way::Rough => !inside.contains(&t.packets.port),
    });
    out
}

/// Those of all paths, however packets are steered.
fn all(model: &mut Model, program: &Program, objects: &BTreeSet<usize>, echoes: bool) -> Touches {
    let (mut out, mut cache) = (Touches::default(), Cache::default());
    cache.echoes = echoes;
    for entry in 0..model.entries.len() {
        let Some(e) = model.entries.get(entry) else {
            continue;
        };
        let (role, paths) = (e.role, e.paths.len());
        // What is remembered of expressions is of one entry's.
        let memo = Rc::new(Memo::default());
        for path in 0..paths {
            of_path(
                model,
                program,
                objects,
                &memo,
                (entry, path, role),
                (&mut out, &mut cache),
            );
        }
    }
    out
}

fn of_path(
    model: &mut Model,
    program: &Program,
    objects: &BTreeSet<usize>,
    memo: &Rc<Memo>,
    (entry, path, role): (usize, usize, Role),
    (out, cache): (&mut Touches, &mut Cache),
) {
    let at = At {
        entry,
        path,
        access: 0,
    };
    let Some(accesses) = at.path_of(model).map(|p| p.accesses.clone()) else {
        return;
    };
    let mine = |a: &&Access| objects.contains(&a.object.0);
    if !accesses.iter().any(|a| mine(&a)) || role == Role::OnStart {
        return;
    }
    if !matches!(role, Role::Xdp | Role::OnPacket) {
        let each = accesses.iter().enumerate().filter(|(_, a)| mine(a));
        out.others
            .extend(each.map(|(access, a)| (a.object.0, At { access, ..at })));
        return;
    }
    let ports = ports(model, program, memo, at);
    let Some(e) = model.entries.get_mut(entry) else {
        return;
    };
    let guard = e
        .paths
        .get(path)
        .map(|p| p.guard.clone())
        .unwrap_or_default();
    let done: BTreeSet<ExprId> = accesses.iter().flat_map(|a| a.key.clone()).collect();
    let course = Course {
        guard: of_packet(&e.arena, memo, &guard),
        done: done.into_iter().collect(),
        memo: memo.clone(),
    };
    // Paths that differ in what they found in state only are taken by the same packets.
    let same = (
        entry,
        course.guard.clone(),
        course.done.clone(),
        ports.clone(),
    );
    let number = match cache.courses.get(&same) {
        Some(n) => *n,
        None => {
            let all = Rc::new(seen(&mut e.arena, &course, &ports, cache.echoes));
            cache.views.push(all);
            cache.courses.insert(same, cache.views.len() - 1);
            cache.views.len() - 1
        }
    };
    let Some(all) = cache.views.get(number).cloned() else {
        return;
    };
    // Where no number is free none is touched.
    let touched = |a: &Access| mine(&a) && a.outcome != Some("none free");
    for (access, a) in accesses.iter().enumerate().filter(|(_, a)| touched(a)) {
        let at = At { access, ..at };
        let same = (number, a.object.0, a.key.clone());
        let found = match cache.found.get(&same) {
            Some(found) => found.clone(),
            None => {
                let source = source(program, &e.arena, memo, a);
                let found = Rc::new(found(&mut e.arena, &all, &a.key, &source, &mut cache.keys));
                cache.found.insert(same, found.clone());
                found
            }
        };
        out.all.extend(found.iter().map(|f| Touch {
            object: a.object.0,
            packets: f.packets,
            way: f.way,
            key: f.key.clone(),
            source: f.source.clone(),
            zero: f.zero,
            writes: a.effect != Effect::Read,
            inside: f.inside,
            at,
        }));
    }
    out.views.insert((entry, path), all);
}

/// What was worked out before.
#[derive(Default)]
struct Cache {
    /// whoever steers looks for the identifiers of ICMP echoes
    echoes: bool,
    /// which of the views are those of an entry's paths with this guard, these keys and these ports
    courses: HashMap<Same, usize>,
    views: Vec<Rc<Vec<Seen>>>,
    /// what each of the views makes of an object's key
    found: HashMap<(usize, usize, Vec<ExprId>), Rc<Vec<Found>>>,
    /// each once
    keys: HashSet<Rc<Key>>,
}

type Same = (usize, Vec<ExprId>, Vec<ExprId>, Vec<usize>);
