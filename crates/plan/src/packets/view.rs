//! What is known of how a packet lies in memory.

use std::collections::BTreeMap;

use millrace_model::expr::sets::Set;
use millrace_model::expr::{Arena, ExprId};
use millrace_model::known::Of;

use super::{Course, EXTENSIONS, Family, TRANSPORTS, View};
use crate::memo::Bytes;
use crate::offset::Offset;

impl View {
    /// The values that a byte can have.
    pub fn set(&self, arena: &Arena, place: &Offset) -> Set {
        let mut set = Set::all();
        for at in self.memo.places(arena, place) {
            if let Some(s) = self.known.get(&Of::Byte(at)) {
                set = set.both(s);
            }
        }
        // What the EtherTypes were taken for is known of bytes that nobody looks at, too.
        match self.known.get(&Of::Byte((None, place.at))) {
            Some(s) if place.terms.is_empty() => set.both(s),
            _ => set,
        }
    }

    /// The same of packets with this byte.
    pub fn with(&self, arena: &Arena, place: &Offset, value: u8) -> Self {
        let mut view = self.clone();
        for at in self.memo.places(arena, place) {
            view.known.insert(Of::Byte(at), Set::one(value));
        }
        if place.terms.is_empty() {
            view.known
                .insert(Of::Byte((None, place.at)), Set::one(value));
        }
        view
    }

    /// Those whose byte is, or is not, the number of an IPv6 extension header.
    pub fn extends(&self, arena: &Arena, place: &Offset, extension: bool) -> Option<Self> {
        let set = self.set(arena, place);
        let set = set.filtered(|v| EXTENSIONS.contains(v) == extension);
        set.values().next()?;
        let mut view = self.clone();
        let mut places = self.memo.places(arena, place);
        if place.terms.is_empty() {
            places.push((None, place.at));
        }
        for at in places {
            view.known.insert(Of::Byte(at), set.clone());
        }
        Some(view)
    }

    /// Whether an IPv4 header here can be that of a later fragment: where the guard is about several layouts, it
    /// is asked.
    pub fn later(&self, arena: &mut Arena, header: &Offset) -> bool {
        if !self.pieces(arena, header).later {
            return false;
        }
        let mut conditions = BTreeMap::new();
        for e in self.guard.iter() {
            let parts = self.memo.parts(arena, *e);
            let here = parts.whole.iter().filter(|c| c.1 == *header);
            conditions.extend(here.map(|c| (c.0, false)));
        }
        let guard = self.memo.decided(arena, &self.guard, &conditions);
        !guard.iter().any(|e| arena.constant(*e) == Some(0))
    }

    /// Where the network header begins.
    pub fn network(&self) -> Offset {
        Offset::number(self.at)
    }

    /// The bytes of which one value only is possible.
    pub fn fixed(&self) -> Bytes {
        let single = self.known.iter().filter_map(|(of, set)| match of {
            Of::Byte(place) => Some((*place, set.only()?)),
            Of::Port => None,
        });
        single.collect()
    }

    /// Whether all packets have bytes up to this one.
    pub(super) fn reaches(&self, last: &Offset) -> bool {
        let behind = |read: &Offset| read.from(last).is_some_and(|d| d >= 0);
        (last.terms.is_empty() && self.length > last.at) || self.read.iter().any(behind)
    }

    /// Where the transport header begins.
    pub fn transport(&self, arena: &Arena) -> Option<Offset> {
        match self.family? {
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
        let at = match self.family {
            Some(Family::V4) => 9,
            _ => 6,
        };
        let place = self.network().plus(at);
        let bytes = self.with(arena, &place, protocol).fixed();
        let own = Course {
            guard: self.guard.to_vec(),
            ..course.clone()
        };
        own.with(arena, &bytes).is_some_and(|refined| {
            let view = refined.view(arena, self.family, self.at, &bytes);
            !view.ports_there(arena)
        })
    }

    pub(super) fn ports_there(&self, arena: &Arena) -> bool {
        self.transport(arena)
            .is_some_and(|t| self.reaches(&t.plus(3)))
    }

    /// Whether the guard leaves packets whose byte equals nothing that it is compared with.
    pub(super) fn unnamed(&self, arena: &mut Arena, place: &Offset) -> bool {
        let mut conditions = BTreeMap::new();
        for e in self.guard.iter() {
            let parts = self.memo.parts(arena, *e);
            let here = parts.compared.iter().filter(|c| c.1 == *place);
            conditions.extend(here.map(|c| (c.0, false)));
        }
        let guard = self.memo.decided(arena, &self.guard, &conditions);
        !guard.iter().any(|e| arena.constant(*e) == Some(0))
    }

    /// Whether the guard leaves any packet with these bytes that has one of these values there. What the guard says
    /// without looking there is asked once, and the rest once for all views of which it says the same.
    pub(super) fn any_possible(&self, arena: &mut Arena, place: &Offset, values: &Set) -> bool {
        let memo = &self.memo;
        let mut bytes = self.fixed();
        let mut places = memo.places(arena, place);
        if place.terms.is_empty() {
            places.push((None, place.at));
        }
        bytes.retain(|p, _| !places.contains(p));
        let looks = |e: &ExprId| memo.parts(arena, *e).depends(&places, &bytes);
        let (there, elsewhere): (Vec<ExprId>, _) = self.guard.iter().partition(|e| looks(e));
        let fails = |arena: &Arena, made: Vec<ExprId>| {
            let mut made = made.into_iter();
            made.any(|e| arena.constant(e) == Some(0))
        };
        let made = memo.given(arena, &elsewhere, &bytes);
        if fails(arena, made) {
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
            let made = memo.given(arena, there, &bytes);
            !fails(arena, made)
        });
        memo.leaves.borrow_mut().insert(question, any);
        any
    }

    /// Whether the guard leaves any packet with these bytes.
    pub fn possible(&self, arena: &mut Arena) -> bool {
        let guard = self.memo.given(arena, &self.guard, &self.fixed());
        !guard.iter().any(|e| arena.constant(*e) == Some(0))
    }
}
