//! Every access of a path to state, as one of the packets that take the path sees it: which packets, which
//! entry, what is done.

use std::collections::BTreeSet;

use millrace_model::Model;
use millrace_model::exec::Access;
use millrace_model::expr::walk::cone;
use millrace_model::expr::{Arena, ExprId, Node, Origin};
use millrace_model::known::{Memory, Of};
use millrace_model::model::{Effect, Path};
use millrace_model::names::{self, What};
use millrace_object::program::{Line, Program, Role};
use millrace_steer::{Field, Kind};

use crate::key::{Bit, Key, Resolver, Whose, is_carried};
use crate::packets::{FRAGMENT, Family, Packets, TRANSPORTS, View, Way, kinds_of, views};

/// What a key is made of, beside fields and constants.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Source {
    /// nothing else
    Fields,
    /// nothing at all: one place for all packets
    Constant,
    /// bytes of a value of another object, or of another entry
    Value { object: usize, bytes: Vec<Option<u32>> },
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
    pub key: Key,
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
    pub views: Vec<(At, Vec<Seen>)>,
}

impl Touches {
    /// How the packets of a path are seen, those that are steered.
    pub fn seen(&self, at: At) -> Vec<Seen> {
        let is = |(other, _): &&(At, Vec<Seen>)| (other.entry, other.path) == (at.entry, at.path);
        let all = self.views.iter().find(is).map(|v| v.1.as_slice());
        let live = |s: &&Seen| match s.way {
            Way::Plain => true,
            Way::Answer | Way::Whole => self.inside.contains(&s.packets.port),
            Way::Rough => !self.inside.contains(&s.packets.port),
        };
        all.unwrap_or_default().iter().filter(live).cloned().collect()
    }
}

/// A view of a path for one class of packets.
#[derive(Clone, Debug)]
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
fn ports(model: &Model, program: &Program, memory: &Memory, at: At) -> Vec<usize> {
    let count = program.ports.len();
    if count == 0 {
        return vec![0];
    }
    let entry = model.entries.get(at.entry);
    let known = entry
        .zip(at.path_of(model))
        .map(|(entry, path)| memory.all(&entry.arena, &path.guard));
    let set = known.and_then(|k| k.get(&Of::Port).cloned());
    let is = |p: &usize| {
        set.as_ref()
            .is_none_or(|s| s.values().any(|v| usize::from(v) == *p))
    };
    (0..count).filter(is).collect()
}

/// The classes of packets that take a path.
fn seen(arena: &mut Arena, guard: &[ExprId], memory: &Memory, ports: &[usize]) -> Vec<Seen> {
    let mut out = Vec::new();
    for view in views(arena, guard, memory) {
        for (kind, way) in view.kinds(arena) {
            let mut add = |kind: Kind, view: View| {
                out.extend(ports.iter().map(|port| Seen {
                    packets: Packets { port: *port, kind },
                    way,
                    view: view.clone(),
                }));
            };
            if way == Way::Answer {
                carried(arena, &view).into_iter().for_each(|(k, v)| add(k, v));
            } else {
                add(kind, fixed(&view, kind, None));
            }
        }
    }
    out
}

/// The view with the protocol that the kind says.
fn fixed(view: &View, kind: Kind, inner: Option<(Option<ExprId>, i64)>) -> View {
    let protocol = match kind {
        Kind::Ipv4Tcp | Kind::Ipv6Tcp => 6,
        Kind::Ipv4Udp | Kind::Ipv6Udp => 17,
        Kind::Ipv4Sctp | Kind::Ipv6Sctp => 132,
        _ => return view.clone(),
    };
    let (base, at) = inner.unwrap_or((None, view.at));
    match view.family {
        Some(Family::V4) => view.with(&[((base, at + 9), protocol)]),
        Some(Family::V6) if inner.is_some() || !view.extended => {
            view.with(&[((base, at + 6), protocol)])
        }
        _ => view.clone(),
    }
}

/// What the packet that an ICMP error carries can be: behind eight bytes of ICMP.
fn carried(arena: &Arena, view: &View) -> Vec<(Kind, View)> {
    let Some((base, at)) = view.transport(arena) else {
        return Vec::new();
    };
    let inner = (base, at + 8);
    let family = view.family.unwrap_or(Family::V4);
    let place = match family {
        Family::V4 => (inner.0, inner.1 + 9),
        Family::V6 => (inner.0, inner.1 + 6),
    };
    let set = view.set(place);
    let later = family == Family::V6 || view.pieces(inner).later;
    let mut kinds = kinds_of(family).into_iter().enumerate();
    let admitted = kinds.by_ref().filter(|(i, _)| match i {
        0..3 => set.values().any(|v| v == TRANSPORTS[*i]),
        &FRAGMENT => later,
        _ => true,
    });
    admitted
                .map(|(_, kind)| (kind, fixed(view, kind, Some(inner))))
        .collect()
}

/// Gathers them.
pub(crate) fn touches(
    model: &mut Model,
    program: &Program,
    objects: &BTreeSet<usize>,
    memory: &Memory,
    excluded: &BTreeSet<(usize, usize)>,
) -> Touches {
    let mut out = Touches::default();
    for entry in 0..model.entries.len() {
        let Some(e) = model.entries.get(entry) else {
            continue;
        };
        let (role, paths) = (e.role, e.paths.len());
        for path in 0..paths {
            if excluded.contains(&(entry, path)) {
                continue;
            }
            of_path(model, program, objects, memory, (entry, path, role), &mut out);
        }
    }
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

fn of_path(
    model: &mut Model,
    program: &Program,
    objects: &BTreeSet<usize>,
    memory: &Memory,
    (entry, path, role): (usize, usize, Role),
    out: &mut Touches,
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
    let ports = ports(model, program, memory, at);
    let Some(e) = model.entries.get_mut(entry) else {
        return;
    };
    let guard = e.paths.get(path).map(|p| p.guard.clone()).unwrap_or_default();
    let all = seen(&mut e.arena, &guard, memory, &ports);
    for (access, a) in accesses.iter().enumerate().filter(|(_, a)| mine(a)) {
        let source = source(program, &e.arena, a);
        let at = At { access, ..at };
        for s in &all {
            let keys = s.resolver().keys(&mut e.arena, &a.key);
            let inside = match s.way {
                Way::Answer => {
                    let own = Resolver::new(&s.view, Whose::Own).keys(&mut e.arena, &a.key);
                    is_carried(&own, &keys)
                }
                Way::Whole => keys.iter().flatten().any(is_port),
                Way::Plain | Way::Rough => false,
            };
            for key in keys {
                let source = match &source {
                    Source::Fields => foreign(&e.arena, &key).unwrap_or(Source::Fields),
                    other => other.clone(),
                };
                out.all.push(Touch {
                    object: a.object.0,
                    packets: s.packets,
                    way: s.way,
                    key,
                    source,
                    writes: a.effect != Effect::Read,
                    inside,
                    at,
                });
            }
        }
    }
    out.views.push((at, all));
}

fn is_port(bit: &Bit) -> bool {
    matches!(bit, Bit::Field(Field::SourcePort | Field::DestinationPort, _))
}

/// What a key is made of, before anything is said of fields.
fn source(program: &Program, arena: &Arena, a: &Access) -> Source {
    let symbols: BTreeSet<ExprId> = cone(arena, &a.key, |_| false)
        .into_iter()
        .filter(|id| matches!(arena.node(*id), Node::Sym(_)))
        .collect();
    let bytes = cone(arena, &a.key, |_| false)
        .into_iter()
        .any(|id| matches!(arena.node(id), Node::Byte { .. }));
    if !bytes && symbols.is_empty() {
        return Source::Constant;
    }
    if !bytes && symbols.iter().all(|s| parameter(arena, *s)) {
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

fn parameter(arena: &Arena, e: ExprId) -> bool {
    matches!(arena.node(e), Node::Sym(s) if arena.symbol(*s).origin == Origin::Param)
}

/// For a byte that is one of a value, or of a number that an object gave: of which object, and which byte.
pub(crate) fn value_byte(program: &Program, arena: &Arena, e: ExprId) -> Option<(usize, Option<u32>)> {
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
            Node::Byte { base: None, at: 0..6 } => "the destination's MAC address",
            Node::Byte { base: None, at: 6..12 } => "the source's MAC address",
            Node::Byte { base: None, at: 12..14 } => "the EtherType",
            _ => {
                other = Some("other bytes of the packet");
                continue;
            }
        };
        return Some(Source::Foreign(text.to_owned()));
    }
    // With any field beside it the rest may do without.
    let fields = key.iter().any(|b| matches!(b, Bit::Field(..)));
    other.filter(|_| !fields).map(|t| Source::Foreign(t.to_owned()))
}
