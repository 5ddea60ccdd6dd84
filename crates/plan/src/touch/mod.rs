//! Every access of a path to state, as one of the packets that take the path sees it: which packets, which
//! entry, what is done.

mod found;
mod read;
mod routes;
mod seen;

use std::collections::BTreeSet;
use std::rc::Rc;

use millrace_model::Model;
use millrace_model::exec::Access;
use millrace_model::expr::ids::{IdMap, IdSet};
use millrace_model::model::Path;
use millrace_object::program::{Line, Program};

use crate::packets::Way;
use crate::rules::derived::Derived;

use routes::Routes;

pub(crate) use found::{Found, OTHER, value_byte};
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

/// One access of a path.
#[derive(Clone, Debug)]
pub(crate) struct Touch {
    pub object: usize,
    pub writes: bool,
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

/// What different accesses are, each once, in the order of the first: many paths do the same.
pub(crate) fn distinct<'a>(
    touches: impl IntoIterator<Item = &'a Touch>,
) -> impl Iterator<Item = (&'a Touch, &'a Found)> {
    let mut seen: IdMap<_, ()> = IdMap::default();
    let fresh = touches
        .into_iter()
        .filter(move |t| seen.insert((Rc::as_ptr(&t.by), t.writes), ()).is_none());
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
    courses: Rc<IdMap<Place, usize>>,
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
        let all = course.and_then(|c| self.views.get(*c));
        let live = |s: &&Seen| live(&self.inside, s.way, s.packets.port);
        all.into_iter()
            .flat_map(|all| all.iter())
            .filter(live)
            .collect()
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

/// What was gathered of all paths: it is asked for with one and another path excluded, without and with `echoes`.
#[derive(Default)]
pub(crate) struct Gathered {
    /// what was found out of keys that are read from state, which no exclusion changes
    pub derived: Derived,
    routes: Option<Routes>,
    touches: [Option<Touches>; 2],
}

/// Gathers them of all paths but the excluded ones; with `echoes` whoever steers looks for the identifiers of ICMP
/// echoes.
pub(crate) fn touches(
    model: &mut Model,
    program: &Program,
    objects: &BTreeSet<usize>,
    excluded: &BTreeSet<Place>,
    (gathered, echoes): (&mut Gathered, bool),
) -> Touches {
    let Gathered {
        routes, touches, ..
    } = gathered;
    let routes = routes.get_or_insert_with(|| Routes::of(model, program, objects));
    let [plain, looked] = touches;
    let place = if echoes { looked } else { plain };
    let all = place.get_or_insert_with(|| routes.touches(model, program, objects, echoes));
    let gone: IdSet<Place> = excluded.iter().copied().collect();
    let taken = |at: &At| !gone.contains(&(at.entry, at.path));
    let mut out = Touches {
        all: all.all.iter().filter(|t| taken(&t.at)).cloned().collect(),
        others: all.others.iter().filter(|o| taken(&o.1)).copied().collect(),
        inside: BTreeSet::new(),
        views: all.views.clone(),
        courses: all.courses.clone(),
        excluded: excluded.clone(),
    };
    let inside = distinct(&out.all).filter(|(_, f)| f.inside);
    out.inside = inside.map(|(_, f)| f.packets.port).collect();
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
