//! Every access of a path to state, as one of the packets that take the path sees it: which packets, which
//! entry, what is done.

mod common;
mod found;
mod read;
mod routes;
mod seen;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use millrace_model::Model;
use millrace_model::exec::Access;
use millrace_model::expr::ids::{IdMap, IdSet};
use millrace_model::model::Path;
use millrace_object::program::{Line, Program};
use millrace_steer::Odd;

use crate::packets::Way;
use crate::rules::derived::Derived;
use crate::words;

use common::Common;
use routes::Routes;

pub(crate) use found::{Found, OTHER, value_byte, value_of};
pub(crate) use routes::parameters;
pub(crate) use seen::Seen;

/// Composition of a key, beside fields and constants.
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

/// One access of a path.
#[derive(Clone, Debug)]
pub(crate) struct Touch {
    pub object: usize,
    pub writes: bool,
    /// an entry may be there afterwards that was not before
    pub makes: bool,
    pub at: At,
    /// which entry it is of, as each class of packets sees it that takes the path: one list for all accesses that
    /// are seen alike, and never empty
    pub by: Rc<Vec<Found>>,
}

impl Touch {
    /// Whether some packets see the key come from there.
    pub fn any(&self, from: impl Fn(&Source) -> bool) -> bool {
        self.by.iter().any(|f| from(&f.source))
    }
}

/// The distinct accesses in the order of their first occurrence: many paths do the same.
pub(crate) fn distinct<'a>(
    touches: impl IntoIterator<Item = &'a Touch>,
) -> impl Iterator<Item = (&'a Touch, &'a Found)> {
    let mut seen = IdSet::default();
    let touches = touches.into_iter();
    let fresh = touches.filter(move |t| seen.insert((Rc::as_ptr(&t.by), t.writes)));
    fresh.flat_map(|t| t.by.iter().map(move |f| (t, f)))
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

    /// Line and column, by which accesses are put in the order of the source.
    pub fn spot(&self, model: &Model) -> Option<(u32, u32)> {
        self.line(model).map(|l| (l.line, l.column))
    }

    /// The line as it is printed, FILE:LINE.
    pub fn place(&self, model: &Model) -> Option<String> {
        self.line(model).map(words::place)
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
    /// the views of each course, for whoever asks for more of a path's expressions
    views: Rc<Vec<Rc<Vec<Seen>>>>,
    /// of which course each packet path is, by entry and path
    courses: Rc<IdMap<Place, Vec<usize>>>,
    excluded: BTreeSet<Place>,
}

/// A path of an entry.
type Place = (usize, usize);

impl Touches {
    /// How the packets of a path are seen, those that are steered.
    pub fn seen(&self, at: At) -> Vec<&Seen> {
        let place = (at.entry, at.path);
        let course = self.courses.get(&place);
        let course = course.filter(|_| !self.excluded.contains(&place));
        let all = course.into_iter().flatten();
        let all = all.filter_map(|c| self.views.get(*c));
        let live = |s: &&Seen| live(&self.inside, s.way, s.packets.port);
        all.flat_map(|all| all.iter()).filter(live).collect()
    }
}

/// A packet is looked into or not.
fn live(inside: &BTreeSet<usize>, way: Way, port: usize) -> bool {
    match way {
        Way::Plain => true,
        Way::Answer | Way::Whole => inside.contains(&port),
        Way::Rough => !inside.contains(&port),
    }
}

/// Fields that software steering examines beside those that a NIC hashes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Software {
    /// the identifiers of ICMP echoes
    pub echoes: bool,
    /// what the program reads of packets that a NIC reads otherwise
    pub odd: Option<Odd>,
}

/// Assumptions.
#[derive(Clone, Default)]
pub(crate) struct Held {
    /// parameters by name, with their values
    pub values: BTreeMap<String, u64>,
    /// paths that they exclude
    pub excluded: BTreeSet<Place>,
    /// keys of packets, or what guards that are left say, depend on them
    pub in_keys: bool,
}

impl Held {
    /// Whether anything follows from it.
    pub fn says(&self) -> bool {
        self.in_keys || !self.excluded.is_empty()
    }
}

/// Parameters that are taken to have a value, and what is read of odd packets. Which paths these values exclude follows
/// from them.
type Given = (BTreeMap<String, u64>, Option<Odd>);

/// Facts gathered from all paths: asked for with one or another path excluded, and for software that looks at
/// more and less.
#[derive(Default)]
pub(crate) struct Gathered {
    /// what was found out of keys that are read from state, which no exclusion changes
    pub derived: Derived,
    common: Common,
    routes: BTreeMap<Given, Routes>,
    touches: BTreeMap<(Given, bool), Touches>,
}

/// Gathers them of all paths but the excluded ones.
pub(crate) fn touches(
    model: &mut Model,
    program: &Program,
    objects: &BTreeSet<usize>,
    held: &Held,
    (gathered, software): (&mut Gathered, Software),
) -> Touches {
    let Gathered {
        common,
        routes,
        touches,
        ..
    } = gathered;
    let values = match held.in_keys {
        true => held.values.clone(),
        false => BTreeMap::new(),
    };
    let (given, echoes) = ((values, software.odd), software.echoes);
    let gone: IdSet<Place> = held.excluded.iter().copied().collect();
    // What is gathered without values serves whatever they exclude.
    let none = IdSet::default();
    let never = if held.in_keys { &gone } else { &none };
    let all = touches
        .entry((given, echoes))
        .or_insert_with_key(|(given, _)| {
            let routes = routes.entry(given.clone());
            let routes = routes.or_insert_with(|| {
                let given = (&given.0, given.1);
                Routes::of((&mut *model, program), objects, given, (common, never))
            });
            routes.touches(model, program, objects, (common, echoes))
        });
    let taken = |at: &At| !gone.contains(&(at.entry, at.path));
    let mut out = Touches {
        all: all.all.iter().filter(|t| taken(&t.at)).cloned().collect(),
        others: all.others.iter().filter(|o| taken(&o.1)).copied().collect(),
        inside: BTreeSet::new(),
        views: all.views.clone(),
        courses: all.courses.clone(),
        excluded: held.excluded.clone(),
    };
    // Who reads every packet as the program does looks into none.
    if software.odd.is_none_or(|odd| !odd.every) {
        let inside = distinct(&out.all).filter(|(_, f)| f.inside);
        out.inside = inside.map(|(_, f)| f.packets.port).collect();
    }
    // Each list once, as what is alike stays alike.
    let mut lists: IdMap<*const Vec<Found>, Rc<Vec<Found>>> = IdMap::default();
    for t in &mut out.all {
        let left = lists.entry(Rc::as_ptr(&t.by)).or_insert_with(|| {
            let live = |f: &&Found| live(&out.inside, f.way, f.packets.port);
            match t.by.iter().filter(live).count() == t.by.len() {
                true => t.by.clone(),
                false => Rc::new(t.by.iter().filter(live).cloned().collect()),
            }
        });
        t.by = left.clone();
    }
    out.all.retain(|t| !t.by.is_empty());
    out
}
