//! From the assignment that a path ends with to an execution that should take it.

use std::collections::BTreeMap;
use std::rc::Rc;

use millrace_model::expr::eval::Assignment;
use millrace_model::expr::{Origin, SymId};
use millrace_object::program::{Dialect, ObjectId, Program, Role, StateObject};
use millrace_object::state::distributed;

use crate::chart::{Chart, stored_key};
use crate::stands::Stands;
use crate::trial::{Case, Seed, Trial, content};

/// The time of an execution that does not depend on it: some moment in 2001.
pub const START: u64 = 1_000_000_000_000_000_000;

/// The length of a packet that nothing depends on.
const LENGTH: usize = 60;

/// The case of a path of the entry at this index of the program.
///
/// # Errors
/// Why no execution can be made of the path's assignment.
pub fn case(program: &Program, at: usize, chart: &Chart<'_>, path: usize) -> Result<Case, String> {
    if at >= program.entries.len() {
        let what = match chart.entry.role {
            Role::Expiry => "an entry that expires runs it",
            _ => "a timer in a map's value fires it",
        };
        return Err(format!("{what}, which is not driven here"));
    }
    let entry = chart.entry;
    let arena = &entry.arena;
    let (Some(p), Some(charted)) = (entry.paths.get(path), chart.charted.get(path)) else {
        return Err("there is no such path".into());
    };
    let witness: Rc<Assignment> = match &p.witness {
        Some(w) => w.clone(),
        None => return Err("the solver did not say whether it is possible".into()),
    };
    let own = crate::chart::symbols(arena, &crate::chart::roots(p));
    let value = |s: &SymId| witness.symbols.get(s).copied().unwrap_or(0);
    let named = |origin: Origin, name: &str| {
        let found = own.iter().find(|s| {
            let symbol = arena.symbol(**s);
            symbol.origin == origin && (name.is_empty() || symbol.name == name)
        });
        found.map(value)
    };
    let length = named(Origin::Length, "").map_or(LENGTH, |n| n as usize);
    let mut packet = vec![0; length];
    for (at, byte) in &witness.packet {
        if let Some(slot) = packet.get_mut(*at as usize) {
            *slot = *byte;
        }
    }
    let port = named(Origin::Port, "port").unwrap_or(u64::from(program.dialect == Dialect::Xdp));
    let port = match program.dialect {
        Dialect::Handlers => Some(port as u32),
        Dialect::Xdp => (port as u32).checked_sub(1),
    };
    let port = port.ok_or("it is of a packet from interface 0, which there is not")?;
    if named(Origin::Port, "queue").is_some_and(|q| q != 0) {
        return Err("it is of a packet from another queue than the first".into());
    }
    let names = program.ports.len() as u32;
    let ports = match named(Origin::Port, "ports") {
        Some(n) => n as u32,
        None if names > 0 => names,
        None => port.saturating_add(1).max(2),
    };
    let mut contents: BTreeMap<ObjectId, Vec<u8>> = BTreeMap::new();
    for s in &own {
        let symbol = arena.symbol(*s);
        let param = program.params.iter().find(|p| p.name == symbol.name);
        if let (Origin::Param, Some(p)) = (symbol.origin, param) {
            let whole = contents
                .entry(p.object)
                .or_insert_with(|| content(program, p.object));
            put(
                whole,
                p.offset as usize,
                &value(s).to_le_bytes(),
                p.bytes as usize,
            );
        }
    }
    let mut entries = Vec::new();
    let mut full = Vec::new();
    let mut keys: BTreeMap<ObjectId, Vec<Vec<u8>>> = BTreeMap::new();
    for (i, place) in p.places.iter().enumerate() {
        if place.slot.is_some() && place.key.is_empty() {
            // A record is none before it is reserved.
            continue;
        }
        let Some(object) = program.objects.get(place.object.0) else {
            continue;
        };
        let Some(key) = stored_key(program, arena, place, &witness) else {
            continue;
        };
        let mut there = None;
        let mut words = Vec::new();
        for (s, stands) in &charted.symbols {
            match stands {
                Stands::Present(at) if *at == i => there = Some(value(s) == 1),
                Stands::Full(at) if *at == i && value(s) == 1 => full.push(place.object),
                Stands::Bytes(at, from, to) if *at == i => words.push((*from, *to, value(s))),
                _ => {}
            }
        }
        let length = object.value_bytes as usize;
        let mut bytes = vec![0; length];
        if object.kind.is_global() {
            bytes = contents
                .get(&place.object)
                .cloned()
                .unwrap_or_else(|| content(program, place.object));
        }
        for (from, to, word) in &words {
            put(&mut bytes, *from, &word.to_le_bytes(), to - from);
        }
        if object.kind.is_global() {
            if !words.is_empty() {
                contents.insert(place.object, bytes);
            }
            continue;
        }
        if there == Some(true) && !object.holds(&bytes) {
            let number = onward(object, &key, port);
            put(&mut bytes, 0, &number.to_le_bytes(), 4);
        }
        let elements = object.kind.has_all();
        let index = crate::trial::number(&key);
        if there == Some(true) || (elements && !words.is_empty() && index < object.capacity) {
            entries.push(Seed::Entry {
                object: place.object,
                key: key.clone(),
                value: bytes,
            });
        }
        keys.entry(place.object).or_default().push(key);
    }
    for (s, stands) in &charted.symbols {
        let Stands::Estimate(object, n) = stands else {
            continue;
        };
        let mut accesses = p
            .accesses
            .iter()
            .filter(|a| a.object == *object && a.answer.is_some());
        if let Some(access) = accesses.nth(*n) {
            let key = access.key.iter().map(|e| witness.value(arena, *e) as u8);
            let declared = program.objects.get(object.0);
            if declared.is_some_and(|o| *o.kind == distributed::KIND) {
                entries.push(Seed::Member {
                    object: *object,
                    member: crate::trial::number(&key.collect::<Vec<_>>()),
                    value: value(s),
                });
                continue;
            }
            entries.push(Seed::Estimate {
                object: *object,
                key: key.collect(),
                sum: u32::try_from(value(s))
                    .map_err(|_| "sketches count to 2^32 - 1, and so do classes")?,
            });
        }
    }
    // A number that is leased before others is the lowest: those below count as given back.
    entries.sort_by_key(|seed| match seed {
        Seed::Entry { object, key, .. } => (object.0, key.iter().rev().copied().collect()),
        _ => (usize::MAX, Vec::new()),
    });
    for (s, stands) in &charted.symbols {
        match stands {
            Stands::Leased(object, 0) => entries.push(Seed::Next {
                object: *object,
                number: value(s),
            }),
            Stands::NoRoom(object, 0) | Stands::NoneFree(object) if value(s) == 1 => {
                full.push(*object);
            }
            _ => {}
        }
    }
    full.sort_unstable();
    full.dedup();
    let full = full.into_iter().map(|object| Seed::Full {
        object,
        but: keys.get(&object).cloned().unwrap_or_default(),
    });
    entries.extend(full);
    let time = own
        .iter()
        .find(|s| arena.symbol(**s).origin == Origin::Time);
    let time = time.map_or(START, value);
    Ok(Case {
        path,
        trial: Trial {
            entry: at,
            packet,
            port,
            ports,
            time,
        },
        contents: contents.into_iter().collect(),
        seeds: entries,
    })
}

/// A number that something is under in an entry that leads on: what the program declares there, else its first
/// program, or the interface of another port.
fn onward(object: &StateObject, key: &[u8], port: u32) -> u32 {
    let declared = object.initial.as_ref().and_then(|initial| {
        let at = usize::try_from(crate::trial::number(key)).ok()?;
        let value = initial.chunks(object.value_bytes.max(1) as usize).nth(at)?;
        Some(u32::from_le_bytes(*value.first_chunk()?))
    });
    match declared {
        Some(n @ 1..) => n,
        _ if object.kind.holds_interfaces() && port == 0 => 2,
        _ => 1,
    }
}

fn put(bytes: &mut [u8], at: usize, from: &[u8], length: usize) {
    let to = bytes.get_mut(at..).unwrap_or_default();
    for (slot, byte) in to.iter_mut().zip(from.iter().take(length)) {
        *slot = *byte;
    }
}
