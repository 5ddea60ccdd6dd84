//! `ON_EXPIRY` as the packets see it that make its sets.
//!
//! A set expires where its entry is, on the core of the packet that made it. What its function does to other objects is
//! therefore done on that core, at a key that is made of the set's: it has to meet the packets that touch the same
//! place. So for each packet that makes an entry of the set the accesses of the function stand behind its own, with the key
//! that the packet has put in place of the one that has expired, and every rule looks at them as at any access of that
//! packet. An access whose key is made of anything else (the state of the set, a number) is nobody's, as one of a timer is.

use millrace_model::Model;
use millrace_model::exec::Access;
use millrace_model::expr::{Arena, ExprId};
use millrace_model::model::{Effect, Entry};
use millrace_object::program::{ObjectId, Role};

/// The access by which a function gets the entry that has expired.
const FIRED: &str = "timer_fired";
/// The access by which packets make entries of a set.
const MAKES: &str = "map_put";

/// A byte of a key: a constant, or one of the set's key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Byte {
    Const(u8),
    Key(usize),
}

/// An access of the function to the entry of an object that the set's key says.
struct Later {
    set: ObjectId,
    key: Vec<Byte>,
    access: Access,
}

/// The model as it was, but for what stands in the paths of packets and expiries.
pub(crate) struct Joined {
    /// paths of packets: entry, path, accesses that are their own
    packets: Vec<(usize, usize, usize)>,
    /// paths of expiries: entry, path, all their accesses
    expiries: Vec<(usize, usize, Vec<Access>)>,
}

/// Moves what expiries do behind the packets that make their sets.
pub(crate) fn join(model: &mut Model) -> Joined {
    let mut joined = Joined {
        packets: Vec::new(),
        expiries: Vec::new(),
    };
    let mut later: Vec<Later> = Vec::new();
    for (e, entry) in model.entries.iter_mut().enumerate() {
        if entry.role != Role::Expiry || !entry.outcome.covers() {
            continue;
        }
        for p in 0..entry.paths.len() {
            let (own, rest) = apart(entry, p);
            let Some(path) = entry.paths.get_mut(p) else {
                continue;
            };
            let all = std::mem::replace(&mut path.accesses, rest);
            joined.expiries.push((e, p, all));
            for one in own {
                let same = |l: &Later| {
                    (
                        l.set,
                        &l.key,
                        l.access.object,
                        l.access.effect,
                        l.access.operation,
                    ) == (
                        one.set,
                        &one.key,
                        one.access.object,
                        one.access.effect,
                        one.access.operation,
                    )
                };
                if !later.iter().any(same) {
                    later.push(one);
                }
            }
        }
    }
    if later.is_empty() {
        return joined;
    }
    for (e, entry) in model.entries.iter_mut().enumerate() {
        if !matches!(entry.role, Role::Xdp | Role::OnPacket) {
            continue;
        }
        let Entry { arena, paths, .. } = entry;
        for (p, path) in paths.iter_mut().enumerate() {
            let makes = |a: &&Access| a.operation == MAKES && a.effect == Effect::Write;
            let mut more = Vec::new();
            for made in path.accesses.iter().filter(makes) {
                let of = later.iter().filter(|l| l.set == made.object);
                more.extend(of.map(|l| l.of(arena, &made.key)));
            }
            if !more.is_empty() {
                joined.packets.push((e, p, path.accesses.len()));
                path.accesses.extend(more);
            }
        }
    }
    joined
}

impl Joined {
    /// Undoes it.
    pub fn part(self, model: &mut Model) {
        let mut path = |e: usize, p: usize, set: &mut dyn FnMut(&mut Vec<Access>)| {
            let path = model.entries.get_mut(e).and_then(|e| e.paths.get_mut(p));
            if let Some(path) = path {
                set(&mut path.accesses);
            }
        };
        for (e, p, own) in self.packets {
            path(e, p, &mut |accesses| accesses.truncate(own));
        }
        for (e, p, mut all) in self.expiries {
            path(e, p, &mut |accesses| *accesses = std::mem::take(&mut all));
        }
    }
}

impl Later {
    /// The access behind a packet that has put this key.
    fn of(&self, arena: &mut Arena, put: &[ExprId]) -> Access {
        let byte = |b: &Byte| match *b {
            Byte::Const(c) => arena.number(u64::from(c), 8),
            Byte::Key(at) => put[at],
        };
        Access {
            key: self.key.iter().map(byte).collect(),
            ..self.access.clone()
        }
    }
}

/// Accesses of a path at keys that are made of the set's key, and the others; without those by which the entry itself
/// ends.
fn apart(entry: &Entry, path: usize) -> (Vec<Later>, Vec<Access>) {
    let (mut own, mut rest) = (Vec::new(), Vec::new());
    let Some(path) = entry.paths.get(path) else {
        return (own, rest);
    };
    let fired = (path.accesses.iter()).find(|a| a.operation == FIRED && a.outcome == Some("there"));
    for access in &path.accesses {
        let Some(fired) = fired else {
            // Nothing has expired.
            if access.operation != FIRED {
                rest.push(access.clone());
            }
            continue;
        };
        if access.object == fired.object && access.key == fired.key {
            continue;
        }
        let byte = |e: &ExprId| match fired.key.iter().position(|k| k == e) {
            Some(at) => Some(Byte::Key(at)),
            None => entry.arena.constant(*e).map(|c| Byte::Const(c as u8)),
        };
        let key: Option<Vec<Byte>> = access.key.iter().map(byte).collect();
        match key.filter(|_| !access.key.is_empty()) {
            Some(key) => own.push(Later {
                set: fired.object,
                key,
                access: Access {
                    entry: 0,
                    // What it reads and stores is nothing that the packet knows.
                    value: Vec::new(),
                    answer: None,
                    ..access.clone()
                },
            }),
            None => rest.push(access.clone()),
        }
    }
    (own, rest)
}
