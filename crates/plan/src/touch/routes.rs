//! The courses of packets through an entry: paths that differ in what they found in state only are taken by the same
//! packets, and their accesses are seen alike.

use std::collections::BTreeSet;
use std::rc::Rc;

use millrace_model::Model;
use millrace_model::exec::Access;
use millrace_model::expr::ids::{IdMap, IdSet};
use millrace_model::expr::sets::Set;
use millrace_model::expr::{Arena, ExprId};
use millrace_model::known::Of;
use millrace_model::model::{Effect, Entry};
use millrace_object::program::{Program, Role};

use super::found::{found, source};
use super::read::{Look, Reader};
use super::seen::{Class, classes, ports, seen};
use super::{At, Found, Place, Seen, Touch, Touches};
use crate::key::Key;
use crate::memo::{Memo, Parts};
use crate::packets::{Course, of_packet};

/// What the paths of all entries have in common.
#[derive(Default)]
pub(super) struct Routes {
    /// which of the courses packet paths are that touch any of the objects
    of: Rc<IdMap<Place, usize>>,
    /// entry, course, ports
    courses: Vec<(usize, Course, Vec<usize>)>,
    /// by course: the classes of packets that take it
    classes: IdMap<usize, Vec<Class>>,
    /// by course: the views, where they are the same whether echoes are looked for or not
    lasting: Vec<Option<Views>>,
    /// what these make of keys, by course, object and key
    alike: IdMap<(usize, usize, u32), Rc<Vec<Found>>>,
    /// by entry: what keys are
    readers: Vec<Reader>,
    /// keys of packets, each once
    known: IdMap<Rc<Key>, ()>,
    /// what no packet starts: object and where
    others: Vec<(usize, At)>,
}

/// How packets see a course.
#[derive(Clone)]
struct Views {
    seen: Rc<Vec<Seen>>,
    looks: Rc<Vec<Look>>,
}

/// What a condition of a guard says.
struct Part {
    /// of the packet
    of_packet: Vec<ExprId>,
    /// of the port by which it came
    port: Option<Set>,
}

impl Part {
    fn of(arena: &Arena, memo: &Memo, condition: ExprId) -> Self {
        let known = memo.known.of(arena, condition, true);
        Self {
            of_packet: of_packet(arena, memo, &[condition]),
            port: known.get(&Of::Port).cloned(),
        }
    }
}

/// What tells the courses of an entry apart: guard, keys and ports.
type Same = (Vec<ExprId>, Vec<ExprId>, Vec<usize>);

/// The conditions of guards that say nothing of packets and decide nothing in what does, nor in any key: what they
/// speak of beside the packet comes together nowhere else.
fn silent(arena: &Arena, memo: &Memo, all: &[(usize, Same)]) -> IdSet<ExprId> {
    let each = |of: fn(&Same) -> &Vec<ExprId>| -> IdMap<ExprId, Rc<Parts>> {
        let all = all.iter().flat_map(|(_, same)| of(same));
        all.map(|e| (*e, memo.parts(arena, *e))).collect()
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

impl Routes {
    pub fn of(model: &Model, program: &Program, objects: &BTreeSet<usize>) -> Self {
        let mut out = Self::default();
        let mut of = IdMap::default();
        for (entry, e) in model.entries.iter().enumerate() {
            // What is remembered of expressions is of one entry's.
            let memo = Rc::new(Memo::default());
            let mut parts: IdMap<ExprId, Rc<Part>> = IdMap::default();
            let mut taken = Vec::new();
            for (path, p) in e.paths.iter().enumerate() {
                let mine = |a: &Access| objects.contains(&a.object.0);
                if !p.accesses.iter().any(mine) || e.role == Role::OnStart {
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
                for condition in &p.guard {
                    let part = parts
                        .entry(*condition)
                        .or_insert_with(|| Rc::new(Part::of(&e.arena, &memo, *condition)));
                    guard.extend(&part.of_packet);
                    if let Some(set) = &part.port {
                        port = Some(port.map_or_else(|| set.clone(), |port| port.both(set)));
                    }
                }
                guard.sort_unstable();
                guard.dedup();
                let ports = ports(program, port.as_ref());
                taken.push((path, (guard, done, ports)));
            }
            let silent = silent(&e.arena, &memo, &taken);
            let mut known: IdMap<Same, usize> = IdMap::default();
            for (path, mut same) in taken {
                same.0.retain(|c| !silent.contains(c));
                same.1.retain(|k| !memo.parts(&e.arena, *k).reads_nothing());
                let number = match known.get(&same) {
                    Some(number) => *number,
                    None => {
                        let (guard, done, ports) = same.clone();
                        let course = Course {
                            guard: Rc::new(guard),
                            done: Rc::new(done),
                            memo: memo.clone(),
                        };
                        out.courses.push((entry, course, ports));
                        known.insert(same, out.courses.len() - 1);
                        out.courses.len() - 1
                    }
                };
                of.insert((entry, path), number);
            }
            out.readers.push(Reader::new(memo));
        }
        out.of = Rc::new(of);
        out
    }

    /// What all paths do to the objects, however packets are steered.
    pub fn touches(
        &mut self,
        model: &mut Model,
        program: &Program,
        objects: &BTreeSet<usize>,
        echoes: bool,
    ) -> Touches {
        let views = self.views(model, echoes);
        let mut all = Vec::new();
        let mut alike = std::mem::take(&mut self.alike);
        for (entry, (e, reader)) in model.entries.iter_mut().zip(&mut self.readers).enumerate() {
            let Entry { arena, paths, .. } = e;
            for (path, p) in paths.iter().enumerate() {
                let Some(course) = self.of.get(&(entry, path)) else {
                    continue;
                };
                // Where no number is free none is touched.
                let touched =
                    |a: &Access| objects.contains(&a.object.0) && a.outcome != Some("none free");
                for (access, a) in p.accesses.iter().enumerate().filter(|(_, a)| touched(a)) {
                    let key = reader.number(&a.key);
                    let by = alike.entry((*course, a.object.0, key)).or_insert_with(|| {
                        let source = source(program, arena, reader.memo(), a);
                        let Some(views) = views.get(*course) else {
                            return Rc::default();
                        };
                        let known = &mut self.known;
                        let read = |arena: &mut _, seen: &_, look| {
                            reader.read(arena, (seen, look), (key, &a.key), known)
                        };
                        Rc::new(found(arena, &views.seen, &views.looks, &source, read))
                    });
                    if by.is_empty() {
                        continue;
                    }
                    all.push(Touch {
                        object: a.object.0,
                        writes: a.effect != Effect::Read,
                        at: At {
                            entry,
                            path,
                            access,
                        },
                        by: by.clone(),
                    });
                }
            }
        }
        alike.retain(|(course, ..), _| self.lasting.get(*course).is_some_and(Option::is_some));
        self.alike = alike;
        Touches {
            all,
            others: self.others.clone(),
            views: Rc::new(views.into_iter().map(|v| v.seen).collect()),
            courses: self.of.clone(),
            ..Touches::default()
        }
    }

    /// The views of each course.
    fn views(&mut self, model: &mut Model, echoes: bool) -> Vec<Views> {
        let mut out = Vec::with_capacity(self.courses.len());
        for (number, (entry, course, ports)) in self.courses.iter().enumerate() {
            if let Some(Some(lasting)) = self.lasting.get(number) {
                out.push(lasting.clone());
                continue;
            }
            let (Some(e), Some(reader)) =
                (model.entries.get_mut(*entry), self.readers.get_mut(*entry))
            else {
                continue;
            };
            let known = self.classes.entry(number);
            let classes = known.or_insert_with(|| classes(&mut e.arena, course));
            let any_icmp = classes.iter().any(Class::has_icmp);
            let seen = Rc::new(seen(&mut e.arena, classes, ports, echoes));
            let looks = Rc::new(reader.looks(&e.arena, &seen));
            let views = Views { seen, looks };
            if number == self.lasting.len() {
                self.lasting.push((!any_icmp).then(|| views.clone()));
            }
            out.push(views);
        }
        out
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
            silent(&a, &Memo::default(), &[(0, same)])
        };
        assert_eq!(silent(&[byte]), IdSet::from_iter([beside]));
        // Of the time alone it speaks, too, and so never has it in it.
        assert_eq!(silent(&[late]), IdSet::from_iter([beside]));
        assert!(silent(&[chosen]).is_empty());
    }
}
