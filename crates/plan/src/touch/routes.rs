//! The courses of packets through an entry: paths that differ in what they found in state only are taken by the same
//! packets, and their accesses are seen alike.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use millrace_model::Model;
use millrace_model::exec::Access;
use millrace_model::expr::given::Facts;
use millrace_model::expr::ids::{IdMap, IdSet};
use millrace_model::expr::sets::Set;
use millrace_model::expr::{Arena, ExprId, Node, Origin, SymId};
use millrace_model::known::Of;
use millrace_model::model::{Effect, Entry};
use millrace_object::program::{Program, Role};
use millrace_steer::Odd;

use super::common::{Common, OfEntry};
use super::seen::ports;
use super::{At, Place, Touch, Touches};
use crate::memo::{Memo, Parts};
use crate::packets::of_packet;

/// Operations that change an entry, or take it away, and make none: what they find was made under the same key.
const STAYS: [&str; 9] = [
    "allocator_free",
    "allocator_refresh",
    "atomic",
    "map_delete",
    "map_delete_elem",
    "map_lookup_elem",
    "map_refresh",
    "store",
    "load",
];

/// Facts that the paths of all entries have in common.
#[derive(Default)]
pub(super) struct Routes {
    /// which of the courses packet paths are that touch any of the objects
    of: Rc<IdMap<Place, Vec<usize>>>,
    /// the courses by their numbers in `Common`, with the ports at which packets take them
    courses: Vec<(usize, Vec<usize>)>,
    /// by course: what symbols are taken for there
    symbols: Vec<Rc<Facts>>,
    /// what the program reads of packets that a NIC reads otherwise
    odd: Option<Odd>,
    /// the program names its ports
    named: bool,
    /// what no packet starts: object and where
    others: Vec<(usize, At)>,
}

/// Meaning of a condition of a guard.
pub(super) struct Part {
    /// of the packet
    of_packet: Vec<ExprId>,
    /// of the port by which it came
    port: Option<Set>,
    /// what it says of the packet depends on the port
    by_port: bool,
}

impl Part {
    fn of(arena: &Arena, memo: &Memo, condition: ExprId) -> Self {
        let known = memo.known.of(arena, condition, true);
        let of_packet = of_packet(arena, memo, &[condition]);
        let by_port = of_packet.iter().any(|e| {
            let parts = memo.parts(arena, *e);
            let looks = parts.chooses || parts.looks_behind(0);
            looks && parts.speaks_of_any(|s| is_port(arena, *s))
        });
        Self {
            of_packet,
            port: known.get(&Of::Port).cloned(),
            by_port,
        }
    }
}

/// The port by which a packet came.
fn is_port(arena: &Arena, s: SymId) -> bool {
    let symbol = arena.symbol(s);
    symbol.origin == Origin::Port && symbol.name == "port"
}

/// The symbols of an arena that are parameters, with these values.
pub(crate) fn parameters(arena: &Arena, values: &BTreeMap<String, u64>) -> BTreeMap<SymId, u64> {
    let all = (0..arena.len()).filter_map(|at| match *arena.node(ExprId(at as u32)) {
        Node::Sym(s) if arena.symbol(s).origin == Origin::Param => {
            let value = values.get(&arena.symbol(s).name)?;
            Some((s, *value))
        }
        _ => None,
    });
    match values.is_empty() {
        true => BTreeMap::new(),
        false => all.collect(),
    }
}

/// The symbol of the port, where the program has ports.
fn port(arena: &Arena, program: &Program) -> Option<SymId> {
    if program.ports.is_empty() {
        return None;
    }
    (0..arena.len()).find_map(|at| match *arena.node(ExprId(at as u32)) {
        Node::Sym(s) if is_port(arena, s) => Some(s),
        _ => None,
    })
}

/// Properties that distinguish the courses of an entry: guard, keys and ports.
type Same = (Vec<ExprId>, Vec<ExprId>, Vec<usize>);

/// The conditions of guards that say nothing of packets and decide nothing in what does, nor in any key: what they
/// speak of beside the packet comes together nowhere else.
fn silent(arena: &Arena, memo: &Memo, all: &[Taken]) -> IdSet<ExprId> {
    // Most are in many guards.
    let each = |of: fn(&Same) -> &Vec<ExprId>| -> IdMap<ExprId, Rc<Parts>> {
        let all = all.iter().flat_map(|(_, same, _)| of(same));
        let all: IdSet<ExprId> = all.copied().collect();
        all.into_iter().map(|e| (e, memo.parts(arena, e))).collect()
    };
    let (guards, keys) = (each(|s| &s.0), each(|s| &s.1));
    let heard = guards.values().filter(|p| p.silent().is_none());
    let speaking: Vec<&Rc<Parts>> = heard.chain(keys.values()).collect();
    let mute = |parts: &Rc<Parts>| {
        let symbols = parts.silent();
        symbols.is_some_and(|s| !speaking.iter().any(|other| other.speaks_of(s)))
    };
    let all = guards.iter().filter(|(_, parts)| mute(parts));
    all.map(|(e, _)| *e).collect()
}

/// A path, and what is taken for given on it.
type Taken = (usize, Same, Rc<Facts>);

/// The paths with parameters as they are taken to be, and those apart by port of which a key, or what is said of the
/// packet, is chosen by the port.
fn specialised(
    arena: &mut Arena,
    memo: &Memo,
    taken: Vec<(usize, Same, bool)>,
    (params, port_of): (&BTreeMap<SymId, u64>, Option<SymId>),
) -> Vec<Taken> {
    let facts = |symbols| {
        Rc::new(Facts {
            symbols,
            ..Facts::default()
        })
    };
    let plain = facts(params.clone());
    let mut of_port: BTreeMap<usize, Rc<Facts>> = BTreeMap::new();
    let mut out = Vec::new();
    for (path, same, by_port) in taken {
        if params.is_empty() && (port_of.is_none() || !by_port) {
            out.push((path, same, plain.clone()));
            continue;
        }
        let (guard, done, ports) = same;
        let each: Vec<(Vec<usize>, Rc<Facts>)> = match port_of.filter(|_| by_port) {
            None => vec![(ports, plain.clone())],
            Some(symbol) => {
                let one = |port: usize| {
                    let known = of_port.entry(port).or_insert_with(|| {
                        let mut symbols = params.clone();
                        symbols.insert(symbol, port as u64);
                        facts(symbols)
                    });
                    (vec![port], known.clone())
                };
                ports.into_iter().map(one).collect()
            }
        };
        for (ports, facts) in each {
            let mut guard = memo.put(arena, &guard, &facts);
            if guard.iter().any(|e| arena.constant(*e) == Some(0)) {
                continue;
            }
            guard.retain(|e| arena.constant(*e) != Some(1));
            let mut done = memo.put(arena, &done, &facts);
            for all in [&mut guard, &mut done] {
                all.sort_unstable();
                all.dedup();
            }
            out.push((path, (guard, done, ports), facts));
        }
    }
    out
}

impl Routes {
    /// With parameters taken for these values, of all paths but those that are excluded.
    pub fn of(
        (model, program): (&mut Model, &Program),
        objects: &BTreeSet<usize>,
        (values, odd): (&BTreeMap<String, u64>, Option<Odd>),
        (common, excluded): (&mut Common, &IdSet<Place>),
    ) -> Self {
        let mut out = Self {
            odd,
            named: !program.ports.is_empty(),
            ..Self::default()
        };
        let mut of: IdMap<Place, Vec<usize>> = IdMap::default();
        for (entry, e) in model.entries.iter_mut().enumerate() {
            let params = parameters(&e.arena, values);
            let port_of = port(&e.arena, program);
            let OfEntry { memo, parts, .. } = common.entry(entry);
            let mut taken = Vec::new();
            for (path, p) in e.paths.iter().enumerate() {
                let mine = |a: &Access| objects.contains(&a.object.0);
                let reached = !excluded.contains(&(entry, path)) && e.role != Role::OnStart;
                if !reached || !p.accesses.iter().any(mine) {
                    continue;
                }
                if !matches!(e.role, Role::Xdp | Role::OnPacket) {
                    let each = p.accesses.iter().enumerate().filter(|(_, a)| mine(a));

                    out.others.extend(each.map(|(access, a)| {
                        let at = At {
                            entry,
                            path,
                            access,
                        };
                        (a.object.0, at)
                    }));
                    continue;
                }
                let mut done: Vec<ExprId> =
                    p.accesses.iter().flat_map(|a| &a.key).copied().collect();
                done.sort_unstable();
                done.dedup();
                // Guards are made of the same conditions.
                let mut guard: Vec<ExprId> = Vec::new();
                let mut port: Option<Set> = None;
                let mut by_port = done.iter().any(|k| {
                    let parts = memo.parts(&e.arena, *k);
                    parts.speaks_of_any(|s| Some(*s) == port_of)
                });
                for condition in &p.guard {
                    let part = parts
                        .entry(*condition)
                        .or_insert_with(|| Rc::new(Part::of(&e.arena, memo, *condition)));
                    guard.extend(&part.of_packet);
                    by_port |= part.by_port && port_of.is_some();
                    if let Some(set) = &part.port {
                        port = Some(port.map_or_else(|| set.clone(), |port| port.both(set)));
                    }
                }
                guard.sort_unstable();
                guard.dedup();
                let ports = ports(program, port.as_ref());
                // A guard that leaves one port decides what is chosen by it.
                let by_port = by_port && ports.len() > 1;
                taken.push((path, (guard, done, ports), by_port));
            }
            let memo = memo.clone();
            let taken = specialised(&mut e.arena, &memo, taken, (&params, port_of));
            let silent = silent(&e.arena, &memo, &taken);
            let mut known: IdMap<(usize, Vec<usize>), usize> = IdMap::default();
            for (path, (mut guard, mut done, ports), symbols) in taken {
                guard.retain(|c| !silent.contains(c));
                done.retain(|k| !memo.parts(&e.arena, *k).reads_nothing());
                let course = (common.course(entry, guard, done), ports);
                let number = match known.get(&course) {
                    Some(number) => *number,
                    None => {
                        let next = out.courses.len();
                        out.courses.push(course.clone());
                        out.symbols.push(symbols);
                        known.insert(course, next);
                        next
                    }
                };
                of.entry((entry, path)).or_default().push(number);
            }
        }
        out.of = Rc::new(of);
        out
    }

    /// Effects of all paths on the objects, however packets are steered.
    pub fn touches(
        &self,
        model: &mut Model,
        program: &Program,
        objects: &BTreeSet<usize>,
        (common, echoes): (&mut Common, bool),
    ) -> Touches {
        let whose = (self.odd, self.named, echoes);
        let courses = self.courses.iter();
        let views: Vec<usize> = courses
            .map(|(course, ports)| common.views(model, (*course, ports), whose))
            .collect();
        let mut all = Vec::new();
        for (entry, e) in model.entries.iter_mut().enumerate() {
            let Entry { arena, paths, .. } = e;
            for (path, p) in paths.iter().enumerate() {
                let Some(courses) = self.of.get(&(entry, path)) else {
                    continue;
                };
                // Where no number is free none is touched.
                let touched =
                    |a: &Access| objects.contains(&a.object.0) && a.outcome != Some("none free");
                let each = p.accesses.iter().enumerate().filter(|(_, a)| touched(a));
                for ((access, a), course) in
                    each.flat_map(|each| courses.iter().map(move |course| (each, course)))
                {
                    let facts = self.symbols.get(*course);
                    let of = common.entry(entry);
                    let own = match facts.filter(|f| !f.symbols.is_empty()) {
                        Some(facts) => Cow::from(of.memo.put(arena, &a.key, facts)),
                        None => Cow::from(&a.key),
                    };
                    let key = (a.object.0, of.reader.number(&own), &*own);
                    let by = match views.get(*course) {
                        Some(views) => common.found(program, (entry, &mut *arena), *views, key),
                        None => continue,
                    };
                    if by.is_empty() {
                        continue;
                    }
                    all.push(Touch {
                        object: a.object.0,
                        writes: a.effect != Effect::Read,
                        makes: a.effect != Effect::Read && !STAYS.contains(&a.operation),
                        at: At {
                            entry,
                            path,
                            access,
                        },
                        by,
                    });
                }
            }
        }
        Touches {
            all,
            others: self.others.clone(),
            views: Rc::new(views.into_iter().map(|v| common.seen(v)).collect()),
            courses: self.of.clone(),
            ..Touches::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use millrace_model::expr::{Bin, Origin, Rel};

    use super::*;

    /// A condition on state and time, where paths merged, beside one on a byte.
    #[test]
    fn what_a_guard_says_beside_packets_counts_where_a_key_can_have_it() {
        let mut a = Arena::new();
        let at = a.number(30, 64);
        let byte = a.byte(at);
        let four = a.number(4, 8);
        let of_byte = a.compare(Rel::Eq, byte, four);
        let time = a.sym("time", 8, Origin::Time);
        let held = a.sym("map#1[0..1]", 8, Origin::State(0));
        let (early, less) = (
            a.compare(Rel::Less, time, four),
            a.compare(Rel::Less, held, four),
        );
        let beside = a.binary(Bin::Or, early, less);
        let chosen = a.ite(beside, byte, four);
        let late = a.ite(early, byte, four);
        let silent = |keys: &[ExprId]| {
            let same = (vec![of_byte, beside], keys.to_vec(), vec![0]);
            silent(&a, &Memo::default(), &[(0, same, Rc::default())])
        };
        assert_eq!(silent(&[byte]), IdSet::from_iter([beside]));
        // Of the time alone it speaks, too, and so never has it in it.
        assert_eq!(silent(&[late]), IdSet::from_iter([beside]));
        assert!(silent(&[chosen]).is_empty());
    }
}
