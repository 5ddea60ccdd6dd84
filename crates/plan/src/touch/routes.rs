//! The courses of packets through an entry: paths that differ in what they found in state only are taken by the same
//! packets, and their accesses are seen alike.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use millrace_model::Model;
use millrace_model::exec::Access;
use millrace_model::expr::ExprId;
use millrace_model::expr::ids::IdMap;
use millrace_model::model::{Effect, Entry};
use millrace_object::program::{Program, Role};

use super::found::{found, source};
use super::read::Reader;
use super::seen::{ports, seen};
use super::{At, Found, Place, Touch, Touches};
use crate::key::Key;
use crate::memo::Memo;
use crate::packets::{Course, of_packet};

/// What the paths of all entries have in common.
#[derive(Default)]
pub(super) struct Routes {
    /// which of the courses packet paths are that touch any of the objects
    of: Rc<HashMap<Place, usize>>,
    /// entry, course, ports
    courses: Vec<(usize, Course, Vec<usize>)>,
    /// by entry: what keys are
    readers: Vec<Reader>,
    /// keys of packets, each once
    known: IdMap<Rc<Key>, ()>,
    /// what no packet starts: object and where
    others: Vec<(usize, At)>,
}

/// What tells the courses of an entry apart.
type Same = (Vec<ExprId>, Vec<ExprId>, Vec<usize>);

impl Routes {
    pub fn of(model: &Model, program: &Program, objects: &BTreeSet<usize>) -> Self {
        let mut out = Self::default();
        let mut of = HashMap::new();
        for (entry, e) in model.entries.iter().enumerate() {
            // What is remembered of expressions is of one entry's.
            let memo = Rc::new(Memo::default());
            let mut known: IdMap<Same, usize> = IdMap::default();
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
                let guard = of_packet(&e.arena, &memo, &p.guard);
                let ports = ports(&e.arena, program, &memo, &p.guard);
                let same = (guard, done, ports);
                let number = match known.get(&same) {
                    Some(number) => *number,
                    None => {
                        let (guard, done, ports) = same.clone();
                        let memo = memo.clone();
                        let course = Course { guard, done, memo };
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
        let mut views = Vec::new();
        for (entry, course, ports) in &self.courses {
            let Some(e) = model.entries.get_mut(*entry) else {
                continue;
            };
            views.push(Rc::new(seen(&mut e.arena, course, ports, echoes)));
        }
        let mut all = Vec::new();
        // By course, object and key.
        let mut alike: IdMap<(usize, usize, u32), Rc<Vec<Found>>> = IdMap::default();
        for (entry, (e, reader)) in model.entries.iter_mut().zip(&mut self.readers).enumerate() {
            let Entry { arena, paths, .. } = e;
            let looks: HashMap<usize, Vec<_>> = (0..)
                .zip(&self.courses)
                .zip(&views)
                .filter(|((_, c), _)| c.0 == entry)
                .map(|((n, _), views)| (n, reader.looks(arena, views)))
                .collect();
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
                        let looks = looks.get(course).map_or(&[][..], Vec::as_slice);
                        let seen = views.get(*course).map_or(&[][..], |v| v.as_slice());
                        let known = &mut self.known;
                        let read = |arena: &mut _, seen: &_, look| {
                            reader.read(arena, (seen, look), (key, &a.key), known)
                        };
                        Rc::new(found(arena, seen, looks, &source, read))
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
        Touches {
            all,
            others: self.others.clone(),
            views: Rc::new(views),
            courses: self.of.clone(),
            ..Touches::default()
        }
    }
}
