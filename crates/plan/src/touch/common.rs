//! Results computed once, independent of assumptions and steering: the courses that packets can take, the
//! classes of packets on each, and what keys are for them. Most of it is the same with and without what is held.

use std::rc::Rc;

use millrace_model::Model;
use millrace_model::expr::ids::IdMap;
use millrace_model::expr::{Arena, ExprId};
use millrace_object::program::Program;
use millrace_steer::Odd;

use super::found::{found, source};
use super::read::{Look, Reader};
use super::routes::Part;
use super::seen::{Class, classes, seen};
use super::{Found, Seen};
use crate::key::Key;
use crate::memo::Memo;
use crate::packets::Course;

/// Memoized facts of one entry, whose expressions belong to no other.
#[derive(Default)]
pub(super) struct OfEntry {
    pub memo: Rc<Memo>,
    pub reader: Reader,
    /// what the conditions of guards say
    pub parts: IdMap<ExprId, Rc<Part>>,
    /// courses by guard and keys
    courses: IdMap<GuardAndKeys, usize>,
}

/// Properties that distinguish the courses of an entry.
type GuardAndKeys = (Rc<Vec<ExprId>>, Rc<Vec<ExprId>>);

/// How packets see a course.
pub(super) struct Views {
    pub seen: Rc<Vec<Seen>>,
    looks: Vec<Look>,
}

/// A course, the ports at which packets take it, what is read of odd ones, and whether echoes are looked for, where
/// that makes a difference.
type Asked = (usize, Vec<usize>, Option<Odd>, bool);

/// Facts common to all.
#[derive(Default)]
pub(super) struct Common {
    entries: Vec<OfEntry>,
    /// with the entry of each
    courses: Vec<(usize, Course)>,
    /// the classes of packets that take a course
    classes: IdMap<(usize, Option<Odd>), Rc<Vec<Class>>>,
    views: Vec<Views>,
    asked: IdMap<Asked, usize>,
    /// what views make of the keys of objects
    alike: IdMap<(usize, usize, u32), Rc<Vec<Found>>>,
    /// keys of packets, each once
    keys: IdMap<Rc<Key>, ()>,
}

impl Common {
    /// The memoized facts of an entry.
    pub fn entry(&mut self, number: usize) -> &mut OfEntry {
        while self.entries.len() <= number {
            self.entries.push(OfEntry::default());
        }
        &mut self.entries[number]
    }

    /// The number of a course.
    pub fn course(&mut self, entry: usize, guard: Vec<ExprId>, done: Vec<ExprId>) -> usize {
        let next = self.courses.len();
        let of = self.entry(entry);
        let same = (Rc::new(guard), Rc::new(done));
        if let Some(number) = of.courses.get(&same) {
            return *number;
        }
        of.courses.insert(same.clone(), next);
        let course = Course {
            guard: same.0,
            done: same.1,
            memo: of.memo.clone(),
        };
        self.courses.push((entry, course));
        next
    }

    /// The number of the views of a course.
    pub fn views(
        &mut self,
        model: &mut Model,
        (course, ports): (usize, &[usize]),
        (odd, named, echoes): (Option<Odd>, bool, bool),
    ) -> usize {
        let (entry, of) = &self.courses[course];
        let arena = &mut model.entries[*entry].arena;
        let known = self.classes.entry((course, odd));
        let classes = known.or_insert_with(|| Rc::new(classes(arena, of, odd)));
        let echoes = echoes && classes.iter().any(Class::has_icmp);
        let asked = (course, ports.to_vec(), odd, echoes);
        if let Some(number) = self.asked.get(&asked) {
            return *number;
        }
        let seen = Rc::new(seen(arena, classes, (ports, named), echoes));
        let looks = self.entries[*entry].reader.looks(arena, &seen);
        self.views.push(Views { seen, looks });
        self.asked.insert(asked, self.views.len() - 1);
        self.views.len() - 1
    }

    /// The packets of views.
    pub fn seen(&self, views: usize) -> Rc<Vec<Seen>> {
        self.views[views].seen.clone()
    }

    /// The key of an object as packets of these views compute it, under this number.
    pub fn found(
        &mut self,
        program: &Program,
        (entry, arena): (usize, &mut Arena),
        views: usize,
        (object, number, key): (usize, u32, &[ExprId]),
    ) -> Rc<Vec<Found>> {
        if let Some(known) = self.alike.get(&(views, object, number)) {
            return known.clone();
        }
        let of = &mut self.entries[entry];
        let source = source(program, arena, &of.memo, (object, key));
        let Views { seen, looks } = &self.views[views];
        let (reader, keys) = (&mut of.reader, &mut self.keys);
        let read =
            |arena: &mut _, seen: &_, look| reader.read(arena, (seen, look), (number, key), keys);
        let found = Rc::new(found(arena, seen, looks, &source, read));
        self.alike.insert((views, object, number), found.clone());
        found
    }
}
