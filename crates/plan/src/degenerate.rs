//! Traffic under which a key degenerates: packets that agree in every bit that decides meet on one core, however many
//! they are. Which traffic that is follows from the fields that count and from how many of their bits do.

use std::collections::BTreeMap;

use millrace_steer::Field;
use millrace_steer::keys::{ClassId, Space};

use crate::plan::{Degenerate, Held};
use crate::rules::homing::Home;

/// Sets of fields that are the same, each with the rank that it leaves.
pub(crate) type Sets = Vec<(Vec<Held>, usize)>;

/// Traffic at a port in which the fields of one of these sets are the same.
pub(crate) fn degenerate(
    sets: &Sets,
    (port, cores): (usize, u32),
    homes: &BTreeMap<usize, Home>,
) -> Vec<Degenerate> {
    let homed = |held: &[Held]| {
        let [one] = held else { return false };
        let at = |h: &Home| match h {
            Home::Carried(h) => h.packets.port == port && h.field.name() == one.field,
            Home::Dealt => false,
        };
        homes.values().any(at)
    };
    let all = sets.iter().map(|(held, left)| Degenerate {
        cores: cores.min(1_u32 << (*left).min(31)),
        traffic: match homed(held) {
            true => "packets that carry one leased number".to_owned(),
            false => traffic(held),
        },
        fields: held.clone(),
    });
    all.collect()
}

/// The least sets of fields of a class that, where they are the same in all packets, leave fewer table indexes than there
/// are cores.
pub(crate) fn sets(space: &Space, id: ClassId) -> Sets {
    let fields = space.counting(id);
    let needed = space.target().needed();
    let mut out: Vec<(u32, usize)> = Vec::new();
    let mut sets: Vec<u32> = (1..1_u32 << fields.len().min(Field::ALL.len())).collect();
    sets.sort_by_key(|set| set.count_ones());
    let class = space.classes().get(id);
    for set in sets {
        if out.iter().any(|(least, _)| least & set == *least) {
            continue;
        }
        let held = |bit: usize| {
            fields.iter().enumerate().any(|(i, field)| {
                let first = class.and_then(|c| c.offset(*field));
                let bits = class.map_or(0, |c| field.bits(c.kind));
                set >> i & 1 == 1 && first.is_some_and(|f| (f..f + bits).contains(&bit))
            })
        };
        let left = space.reachable(id, |bit| !held(bit));
        if left < needed {
            out.push((set, left));
        }
    }
    let held = |set: u32| {
        let some = fields
            .iter()
            .enumerate()
            .filter(move |(i, _)| set >> i & 1 == 1);
        some.map(|(_, field)| counted(space, id, *field)).collect()
    };
    out.into_iter()
        .map(|(set, left)| (held(set), left))
        .collect()
}

/// How much of a field counts.
fn counted(space: &Space, id: ClassId, field: Field) -> Held {
    let class = space.classes().get(id);
    let first = class.and_then(|c| c.offset(field)).unwrap_or(0);
    let width = class.map_or(0, |c| field.bits(c.kind));
    let reaching: Vec<usize> = (0..width)
        .filter(|at| space.reaches(id, first + at))
        .collect();
    let prefix = reaching
        .last()
        .is_some_and(|last| *last + 1 == reaching.len());
    Held {
        field: field.name().to_owned(),
        bits: reaching.len() as u32,
        of: width as u32,
        prefix: prefix && reaching.len() < width,
    }
}

/// Such packets in words.
fn traffic(held: &[Held]) -> String {
    let has = |name: &str| held.iter().find(|h| h.field == name);
    let (from, to) = (
        has(Field::SourceAddress.name()),
        has(Field::DestinationAddress.name()),
    );
    let (sport, dport) = (
        has(Field::SourcePort.name()),
        has(Field::DestinationPort.name()),
    );
    let part = |h: &Held, whole: &str| match (h.prefix, h.bits == h.of) {
        (true, _) => format!("one /{}", h.bits),
        (_, true) => format!("one {whole}"),
        _ => format!("{whole}es that agree in {} bits", h.bits),
    };
    let end = |address: Option<&Held>, port: Option<&Held>| match (address, port) {
        (Some(a), Some(_)) => Some(format!("{} and port", part(a, "address"))),
        (Some(a), None) => Some(part(a, "address")),
        (None, Some(_)) => Some("one port".to_owned()),
        (None, None) => None,
    };
    match (end(from, sport), end(to, dport)) {
        (Some(_), Some(_)) if held.len() == 4 => "packets of one flow".to_owned(),
        (Some(a), Some(b)) => format!("packets from {a} to {b}"),
        (Some(a), None) => format!("packets from {a}"),
        (None, Some(b)) => format!("packets to {b}"),
        (None, None) => "all packets".to_owned(),
    }
}
