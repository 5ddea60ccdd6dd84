//! Keys of packets, each worked out once for all that look at it alike: most courses differ in what the key does not
//! depend on.

use std::rc::Rc;

use millrace_model::expr::ids::IdMap;
use millrace_model::expr::{Arena, ExprId};
use millrace_steer::{Field, Ports};

use super::found::foreign;
use super::{Seen, Source};
use crate::key::{Bit, Key, Resolver, Whose, is_carried};
use crate::memo::Bytes;
use crate::offset::Offset;
use crate::packets::{Family, Way};

/// Facts that decide the value of a key, beside the guard.
#[derive(PartialEq, Eq, Hash)]
struct Sight {
    way: Way,
    family: Option<Family>,
    at: i64,
    transport: Option<Offset>,
    carries_extended: bool,
    echo: Option<Field>,
    odd: Option<Ports>,
    fixed: Rc<Bytes>,
}

/// The number of a sight, and of a guard.
#[derive(Clone, Copy)]
pub(super) struct Look {
    sight: u32,
    guard: u32,
}

/// Content of a key in the packets of a view.
pub(super) struct Read {
    /// with what is foreign in it
    pub keys: Vec<(Rc<Key>, Option<Source>)>,
    /// only who looks inside the packet finds them
    pub inside: bool,
}

/// The keys of one entry.
#[derive(Default)]
pub(super) struct Reader {
    sights: IdMap<Sight, u32>,
    guards: IdMap<Rc<Vec<ExprId>>, u32>,
    numbers: IdMap<Vec<ExprId>, u32>,
    /// by sight and key; none where the guard decides, too
    free: IdMap<(u32, u32), Option<Rc<Read>>>,
    /// by sight, guard and key
    guarded: IdMap<(u32, u32, u32), Rc<Read>>,
}

impl Reader {
    /// The number of a key.
    pub fn number(&mut self, key: &[ExprId]) -> u32 {
        match self.numbers.get(key) {
            Some(n) => *n,
            None => {
                let next = self.numbers.len() as u32;
                self.numbers.insert(key.to_vec(), next);
                next
            }
        }
    }

    /// How each of these looks at keys.
    pub fn looks(&mut self, arena: &Arena, all: &[Seen]) -> Vec<Look> {
        let mut of = |seen: &Seen| {
            let view = &seen.view;
            let next = self.sights.len() as u32;
            let sight = self.sights.entry(Sight {
                way: seen.way,
                family: view.family,
                at: view.at,
                transport: view.transport(arena),
                carries_extended: view.carries_extended,
                echo: view.echo,
                odd: view.odd,
                fixed: view.fixed().clone(),
            });
            let sight = *sight.or_insert(next);
            let next = self.guards.len() as u32;
            let guard = *self.guards.entry(view.guard.clone()).or_insert(next);
            Look { sight, guard }
        };
        all.iter().map(&mut of).collect()
    }

    /// Content of a key in the packets of a view.
    pub fn read(
        &mut self,
        arena: &mut Arena,
        (seen, look): (&Seen, Look),
        (number, key): (u32, &[ExprId]),
        known: &mut IdMap<Rc<Key>, ()>,
    ) -> Rc<Read> {
        match self.free.get(&(look.sight, number)) {
            Some(Some(read)) => return read.clone(),
            Some(None) => {
                let same = (look.sight, look.guard, number);
                if let Some(read) = self.guarded.get(&same) {
                    return read.clone();
                }
            }
            None => {}
        }
        let (read, by_guard) = worked_out(arena, seen, key, known);
        let read = Rc::new(read);
        let free = (!by_guard).then(|| read.clone());
        self.free.insert((look.sight, number), free);
        if by_guard {
            let same = (look.sight, look.guard, number);
            self.guarded.insert(same, read.clone());
        }
        read
    }
}

/// The same from the beginning, and whether the guard had a say in it.
fn worked_out(
    arena: &mut Arena,
    seen: &Seen,
    key: &[ExprId],
    known: &mut IdMap<Rc<Key>, ()>,
) -> (Read, bool) {
    let (keys, mut by_guard) = seen.resolver().read(arena, key);
    let inside = match seen.way {
        Way::Answer => {
            let own = Resolver::new(&seen.view, Whose::Own);
            let (own, also) = own.read(arena, key);
            by_guard |= also;
            is_carried(&own, &keys)
        }
        Way::Whole => keys.iter().flatten().any(is_port),
        Way::Plain | Way::Rough => false,
    };
    let mut once = |key: Key| {
        let key = match known.get_key_value(&key) {
            Some((known, ())) => known.clone(),
            None => {
                let key = Rc::new(key);
                known.insert(key.clone(), ());
                key
            }
        };
        let foreign = foreign(arena, &key);
        (key, foreign)
    };
    let keys = keys.into_iter().map(&mut once).collect();
    (Read { keys, inside }, by_guard)
}

fn is_port(bit: &Bit) -> bool {
    matches!(
        bit,
        Bit::Field(Field::SourcePort | Field::DestinationPort, _)
    )
}
