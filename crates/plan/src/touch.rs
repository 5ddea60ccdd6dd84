//! Every access of a path to state, as one of the packets that take the path sees it: which packets, which
//! entry, what is done.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use millrace_model::Model;
use millrace_model::exec::Access;
use millrace_model::expr::{Arena, ExprId, Node, Origin};
use millrace_model::known::Of;
use millrace_model::model::{Effect, Path};
use millrace_model::names::{self, What};
use millrace_object::program::{Line, Program, Role};
use millrace_steer::{Field, Kind};

use crate::key::{Bit, Key, Resolver, Whose, is_carried};
use crate::memo::Memo;
use crate::offset::Offset;
use crate::packets::{
    Course, FRAGMENT, Family, Packets, TRANSPORTS, View, Way, kinds_of, of_packet, views,
};

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

/// A view of a path for one class of packets.
#[derive(Clone)]
pub(crate) struct Seen {
    pub packets: Packets,
    pub way: Way,
    pub view: View,
}

impl Seen {
    pub fn resolver(&self) -> Resolver<'_> {
        let whose = match self.way {
            Way::Answer => Whose::Answer,
            Way::Plain | Way::Whole | Way::Rough => Whose::Own,
        };
        Resolver::new(&self.view, whose)
    }
}

/// The ports that a path's packets can come from.
fn ports(model: &Model, program: &Program, memo: &Memo, at: At) -> Vec<usize> {
    let count = program.ports.len();
    if count == 0 {
        return vec![0];
    }
    let entry = model.entries.get(at.entry);
    let known = entry
        .zip(at.path_of(model))
        .map(|(entry, path)| memo.known.all(&entry.arena, &path.guard));
    let set = known.and_then(|k| k.get(&Of::Port).cloned());
    let is = |p: &usize| {
        set.as_ref()
            .is_none_or(|s| s.values().any(|v| usize::from(v) == *p))
    };
    (0..count).filter(is).collect()
}

/// The classes of packets that take a path.
fn seen(arena: &mut Arena, path: &Course, ports: &[usize], echoes: bool) -> Vec<Seen> {
    let mut out: Vec<Seen> = Vec::new();
    for view in views(arena, path) {
        for (kind, way) in view.kinds(arena) {
            // Rough are errors and first fragments, of which there may be either.
            if way != Way::Rough && !view.has(arena, kind, way) {
                continue;
            }
            let mut add = |kind: Kind, view: View| {
                out.extend(ports.iter().map(|port| Seen {
                    packets: Packets { port: *port, kind },
                    way,
                    view: view.clone(),
                }));
            };
            let short = matches!(kind, Kind::Ipv4 | Kind::Ipv6) && view.short(arena);
            if way == Way::Answer {
                for error in view.errors(arena, path) {
                    let header = error.transport(arena).map(|t| t.plus(8).behind_ipv4());
                    for (k, v) in carried(arena, &error) {
                        let all = identified(arena, k, v, header.as_ref().filter(|_| echoes));
                        all.into_iter().for_each(|(k, v)| add(k, v));
                    }
                }
            } else {
                // A transport header that is cut short is none, whatever the protocol says.
                let own = match way {
                    Way::Plain | Way::Whole if short => vec![(kind, view.clone())],
                    _ => kinds(arena, &view, kind, &view.network()),
                };
                let looked = echoes && !short && matches!(way, Way::Plain | Way::Whole);
                for (k, v) in own {
                    let header = v.transport(arena).filter(|_| looked);
                    let all = identified(arena, k, v, header.as_ref());
                    all.into_iter().for_each(|(k, v)| add(k, v));
                }
            }
        }
    }
    out
}

/// The view with the protocol that the kind says, in the header that begins there.
fn fixed(arena: &Arena, view: &View, kind: Kind, header: &Offset) -> View {
    let protocol = match kind {
        Kind::Ipv4Tcp | Kind::Ipv6Tcp => 6,
        Kind::Ipv4Udp | Kind::Ipv6Udp => 17,
        Kind::Ipv4Sctp | Kind::Ipv6Sctp => 132,
        _ => return view.clone(),
    };
    match view.family {
        Some(Family::V4) => view.with(arena, &header.plus(9), protocol),
        Some(Family::V6) if !view.extended => view.with(arena, &header.plus(6), protocol),
        _ => view.clone(),
    }
}

/// What the packet that an ICMP error carries can be: behind eight bytes of ICMP.
fn carried(arena: &mut Arena, view: &View) -> Vec<(Kind, View)> {
    let Some(inner) = view.transport(arena).map(|t| t.plus(8)) else {
        return Vec::new();
    };
    let family = view.family.unwrap_or(Family::V4);
    let next = inner.plus(match family {
        Family::V4 => 9,
        Family::V6 => 6,
    });
    let mut out = Vec::new();
    let plain = match family {
        Family::V4 => Some(view.clone()),
        Family::V6 => view.extends(arena, &next, false),
    };
    if let Some(view) = plain {
        let set = view.set(arena, &next);
        for (i, kind) in kinds_of(family).into_iter().enumerate() {
            let admitted = match TRANSPORTS.get(i) {
                Some(number) => set.values().any(|v| v == *number),
                None if i == FRAGMENT => family == Family::V4 && view.later(arena, &inner),
                None => true,
            };
            if admitted {
                out.extend(kinds(arena, &view, kind, &inner));
            }
        }
    }
    // Where its transport header is, if extension headers come before, is not known.
    if family == Family::V6
        && let Some(mut view) = view.extends(arena, &next, true)
    {
        view.carries_extended = true;
        out.extend(kinds_of(family).map(|kind| (kind, view.clone())));
    }
    out.retain(|(_, view)| view.possible(arena));
    out
}

/// ICMP echoes apart, whose header begins there, as whoever looks for their identifiers takes them: for packets of UDP
/// (crates/steer, carried.rs). Without a header all stay together.
fn identified(
    arena: &mut Arena,
    kind: Kind,
    view: View,
    header: Option<&Offset>,
) -> Vec<(Kind, View)> {
    let (Kind::Ipv4, Some(header)) = (kind, header) else {
        return vec![(kind, view)];
    };
    let mut out: Vec<(Kind, View)> = Vec::new();
    for echo in view.echoes(arena, header) {
        out.push((Kind::Ipv4Udp, echo));
    }
    out.extend(view.no_echoes(arena, header).map(|v| (kind, v)));
    out
}

/// The views of one kind: what has no ports is taken apart by protocol.
fn kinds(arena: &mut Arena, view: &View, kind: Kind, header: &Offset) -> Vec<(Kind, View)> {
    let protocol = header.plus(if kind == Kind::Ipv4 { 9 } else { 6 });
    let views = match kind {
        Kind::Ipv4 | Kind::Ipv6 if !view.extended => view.without_ports(arena, &protocol),
        _ => vec![fixed(arena, view, kind, header)],
    };
    views.into_iter().map(|v| (kind, v)).collect()
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
            writes: a.effect != Effect::Read,
            inside: f.inside,
            at,
        }));
    }
    out.views.insert((entry, path), all);
}

/// A key as packets of a class see it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Found {
    packets: Packets,
    way: Way,
    key: Rc<Key>,
    source: Source,
    /// only who looks inside finds it
    inside: bool,
}

/// A key as all packets of a path see it, each look once.
fn found(
    arena: &mut Arena,
    all: &[Seen],
    key: &[ExprId],
    source: &Source,
    known: &mut HashSet<Rc<Key>>,
) -> Vec<Found> {
    let mut out = Vec::new();
    let mut there = HashSet::new();
    for seen in all {
        let keys = seen.resolver().keys(arena, key);
        let inside = match seen.way {
            Way::Answer => {
                let own = Resolver::new(&seen.view, Whose::Own).keys(arena, key);
                is_carried(&own, &keys)
            }
            Way::Whole => keys.iter().flatten().any(is_port),
            Way::Plain | Way::Rough => false,
        };
        for key in keys {
            let source = match source {
                Source::Fields => foreign(arena, &key).unwrap_or(Source::Fields),
                other => other.clone(),
            };
            let key = match known.get(&key) {
                Some(known) => known.clone(),
                None => {
                    let key = Rc::new(key);
                    known.insert(key.clone());
                    key
                }
            };
            let one = Found {
                packets: seen.packets,
                way: seen.way,
                key,
                source,
                inside,
            };
            if there.insert(one.clone()) {
                out.push(one);
            }
        }
    }
    out
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

fn is_port(bit: &Bit) -> bool {
    matches!(
        bit,
        Bit::Field(Field::SourcePort | Field::DestinationPort, _)
    )
}

/// What a key is made of, before anything is said of fields.
fn source(program: &Program, arena: &Arena, memo: &Memo, a: &Access) -> Source {
    let parts = |e: &ExprId| memo.parts(arena, *e);
    if a.key.iter().all(|e| parts(e).settled) {
        return Source::Constant;
    }
    let mut of = BTreeSet::new();
    let mut places = Vec::new();
    for e in &a.key {
        match value_byte(program, arena, *e) {
            Some((object, Some(byte))) => {
                of.insert(object);
                places.push(Some(byte));
            }
            Some((object, None)) if object == a.object.0 => {
                return Source::Leased;
            }
            _ if arena.constant(*e).is_some() => places.push(None),
            _ => return Source::Fields,
        }
    }
    match of.into_iter().collect::<Vec<_>>().as_slice() {
        [object] => Source::Value {
            object: *object,
            bytes: places,
        },
        _ => Source::Fields,
    }
}

/// For a byte that is one of a value, or of a number that an object gave: of which object, and which byte.
pub(crate) fn value_byte(
    program: &Program,
    arena: &Arena,
    e: ExprId,
) -> Option<(usize, Option<u32>)> {
    let (of, low) = match arena.node(e) {
        Node::Extract { of, low } => (*of, *low),
        _ => (e, 0),
    };
    let Node::Sym(s) = arena.node(of) else {
        return None;
    };
    let symbol = arena.symbol(*s);
    let Origin::State(object) = symbol.origin else {
        return None;
    };
    let name = &program.objects.get(object)?.name;
    match names::state(name, &symbol.name)?.what {
        What::Bytes { from } => Some((object, Some(from + low / 8))),
        What::Number => Some((object, None)),
        What::Present | What::Full => None,
    }
}

/// The first thing in a key that NICs do not hash, in words.
fn foreign(arena: &Arena, key: &Key) -> Option<Source> {
    let mut other = None;
    for bit in key {
        let Bit::Foreign(e, _) = bit else { continue };
        let text = match arena.node(*e) {
            Node::Sym(s) => match arena.symbol(*s).origin {
                Origin::Param => continue,
                Origin::State(_) => "what is read from state",
                Origin::Time => "the time",
                Origin::Random => "a random draw",
                Origin::Length => "the packet's length",
                Origin::Port => "the port",
                _ => "what a helper says",
            },
            Node::Byte {
                base: None,
                at: 0..6,
            } => "the destination's MAC address",
            Node::Byte {
                base: None,
                at: 6..12,
            } => "the source's MAC address",
            Node::Byte {
                base: None,
                at: 12..14,
            } => "the EtherType",
            _ => {
                other = Some("other bytes of the packet");
                continue;
            }
        };
        return Some(Source::Foreign(text.to_owned()));
    }
    // With any field beside it the rest may do without.
    let fields = key.iter().any(|b| matches!(b, Bit::Field(..)));
    other
        .filter(|_| !fields)
        .map(|t| Source::Foreign(t.to_owned()))
}
