//! Facts about the memory layout of a packet.

use std::collections::BTreeMap;
use std::rc::Rc;

use millrace_model::expr::sets::{Place, Set};
use millrace_model::expr::{Arena, ExprId};
use millrace_model::known::Of;
use millrace_steer::Ports;

use super::{Course, EXTENSIONS, Family, TRANSPORTS, View};
use crate::memo::{Bytes, Parts};
use crate::offset::Offset;

impl View {
    /// The values that the byte at a place can have, as far as they are known.
    fn known(&self, place: Place) -> Option<&Set> {
        let told = self.told.iter().rev().find(|(p, _)| *p == place);
        told.map(|(_, set)| set)
            .or_else(|| self.known.get(&Of::Byte(place)))
    }

    /// Takes over what is known of the bytes at these places.
    pub(super) fn tell(&mut self, all: impl IntoIterator<Item = (Place, Set)>) {
        for (place, set) in all {
            match set.only() {
                Some(v) if self.fixed.get(&place) == Some(&v) => {}
                Some(v) => drop(Rc::make_mut(&mut self.fixed).insert(place, v)),
                None if self.fixed.contains_key(&place) => {
                    Rc::make_mut(&mut self.fixed).remove(&place);
                }
                None => {}
            }
            Rc::make_mut(&mut self.told).push((place, set));
        }
    }

    /// Those whose byte has one of these values.
    pub(super) fn where_it_is(&self, arena: &Arena, place: &Offset, set: &Set) -> Self {
        let mut view = self.clone();
        // What the EtherTypes were taken for is known of bytes that nobody looks at, too.
        let itself = place.terms.is_empty().then_some((None, place.at));
        self.memo.at(arena, place, |places| {
            let all = places.iter().copied().chain(itself);
            view.tell(all.map(|place| (place, set.clone())));
        });
        view
    }

    /// The values that a byte can have.
    pub fn set(&self, arena: &Arena, place: &Offset) -> Set {
        let itself = place.terms.is_empty().then_some((None, place.at));
        self.memo.at(arena, place, |places| {
            let all = places.iter().copied().chain(itself);
            all.filter_map(|place| self.known(place))
                .fold(Set::all(), |set, known| set.both(known))
        })
    }

    /// The same of packets with this byte.
    pub fn with(&self, arena: &Arena, place: &Offset, value: u8) -> Self {
        self.where_it_is(arena, place, &Set::one(value))
    }

    /// The same, where the guard leaves such packets.
    pub(super) fn having(&self, arena: &mut Arena, place: &Offset, value: u8) -> Option<Self> {
        let there = self.set(arena, place).values().any(|v| v == value);
        let view = there.then(|| self.with(arena, place, value))?;
        view.possible(arena).then_some(view)
    }

    /// Those whose byte is, or is not, the number of an IPv6 extension header.
    pub fn extends(&self, arena: &Arena, place: &Offset, extension: bool) -> Option<Self> {
        let set = self.set(arena, place);
        let set = set.filtered(|v| EXTENSIONS.contains(v) == extension);
        set.values().next()?;
        Some(self.where_it_is(arena, place, &set))
    }

    /// Whether an IPv4 header here can be that of a later fragment: where the guard is about several layouts, it
    /// is asked.
    pub fn later(&self, arena: &mut Arena, header: &Offset) -> bool {
        if !self.pieces(arena, header).later {
            return false;
        }
        self.none_holds(arena, |parts| &parts.whole, header)
    }

    /// Whether the guard leaves packets of which none of its conditions on a place holds that are among these.
    fn none_holds(
        &self,
        arena: &mut Arena,
        of: fn(&Parts) -> &Vec<(ExprId, Offset)>,
        place: &Offset,
    ) -> bool {
        let mut conditions = BTreeMap::new();
        for e in self.guard.iter() {
            let parts = self.memo.parts(arena, *e);
            let here = of(&parts).iter().filter(|c| c.1 == *place);
            conditions.extend(here.map(|c| (c.0, false)));
        }
        let guard = self.memo.decided(arena, &self.guard, &conditions);
        !guard.iter().any(|e| arena.constant(*e) == Some(0))
    }

    /// Whether nothing that the path does depends on what kind of packet it is.
    pub fn is_any(&self) -> bool {
        self.any
    }

    /// Where the network header begins.
    pub fn network(&self) -> Offset {
        Offset::number(self.at)
    }

    /// Where the network header names the protocol behind it.
    pub(super) fn protocol(&self) -> Offset {
        let family = self.family.unwrap_or(Family::V6);
        self.network().plus(family.protocol())
    }

    /// The bytes of which one value only is possible.
    pub fn fixed(&self) -> &Rc<Bytes> {
        &self.fixed
    }

    /// Whether all packets have bytes up to this one.
    pub(super) fn reaches(&self, last: &Offset) -> bool {
        let behind = |read: &Offset| read.from(last).is_some_and(|d| d >= 0);
        (last.terms.is_empty() && self.length > last.at) || self.read.iter().any(behind)
    }

    /// Where the transport header begins.
    pub fn transport(&self, arena: &Arena) -> Option<Offset> {
        match self.family? {
            Family::V4 if self.odd == Some(Ports::Fixed) => Some(self.network().plus(20)),
            Family::V6 => (!self.extended).then(|| self.network().plus(40)),
            Family::V4 => Some(match self.set(arena, &self.network()).only() {
                Some(first) => self.network().plus(4 * i64::from(first & 15)),
                None => self.network().behind_ipv4(),
            }),
        }
    }

    /// Whether some of the packets name a protocol with ports, and are too short to have them.
    pub fn short(&self, arena: &mut Arena, course: &Course) -> bool {
        let mut named = self.protocols(arena);
        named.retain(|p| TRANSPORTS.contains(p));
        !self.extended && named.iter().any(|p| self.cut(arena, course, *p))
    }

    /// Whether some of those with this protocol are too short to have ports: where the guard is about several
    /// protocols, what it says of this one.
    pub(super) fn cut(&self, arena: &mut Arena, course: &Course, protocol: u8) -> bool {
        if self.ports_there(arena) {
            return false;
        }
        let bytes = self.with(arena, &self.protocol(), protocol).fixed;
        self.narrowed(arena, course, &bytes)
            .is_some_and(|narrowed| {
                let view = narrowed.view(arena, self.family, self.at, &bytes);
                !view.ports_there(arena)
            })
    }

    /// The course of those that have these bytes; none if there are none on it.
    pub(super) fn narrowed(
        &self,
        arena: &mut Arena,
        course: &Course,
        bytes: &Bytes,
    ) -> Option<Course> {
        let own = Course {
            guard: self.guard.clone(),
            ..course.clone()
        };
        own.with(arena, bytes)
    }

    pub(super) fn ports_there(&self, arena: &Arena) -> bool {
        self.transport(arena)
            .is_some_and(|t| self.reaches(&t.plus(3)))
    }

    /// Whether the guard leaves packets whose byte equals nothing that it is compared with.
    pub(super) fn unnamed(&self, arena: &mut Arena, place: &Offset) -> bool {
        self.none_holds(arena, |parts| &parts.compared, place)
    }

    /// Whether the guard leaves any packet with these bytes that has one of these values there. What the guard says
    /// without looking there is asked once, and the rest once for all views of which it says the same.
    pub(super) fn any_possible(&self, arena: &mut Arena, place: &Offset, values: &Set) -> bool {
        let memo = &self.memo;
        let mut bytes = Bytes::clone(&self.fixed);
        let mut places = memo.at(arena, place, <[Place]>::to_vec);
        if place.terms.is_empty() {
            places.push((None, place.at));
        }
        bytes.retain(|p, _| !places.contains(p));
        let looks = |e: &ExprId| memo.parts(arena, *e).depends(&places, &bytes);
        let (there, elsewhere): (Vec<ExprId>, _) = self.guard.iter().partition(|e| looks(e));
        if !memo.possible(arena, &elsewhere, &bytes) {
            return false;
        }
        let matter = memo.matter(arena, &there, &bytes);
        let question = (there, places, matter, values.values().collect());
        if let Some(known) = memo.leaves.borrow().get(&question) {
            return *known;
        }
        let (there, places, matter, values): &(_, _, _, Vec<u8>) = &question;
        let any = values.iter().any(|v| {
            let mut bytes = matter.clone();
            bytes.extend(places.iter().map(|p| (*p, *v)));
            memo.possible(arena, there, &bytes)
        });
        memo.leaves.borrow_mut().insert(question, any);
        any
    }

    /// Whether the guard leaves any packet with these bytes.
    pub fn possible(&self, arena: &mut Arena) -> bool {
        self.memo.possible(arena, &self.guard, &self.fixed)
    }
}
