//! Why all packets of some kinds are on one core: an access of theirs whose entry no field of a packet names. Any of
//! them can then touch any entry, and all that touch one must meet.

use std::collections::{BTreeMap, BTreeSet};

use millrace_model::Model;
use millrace_object::program::Program;
use millrace_steer::Kind;

use crate::key::Bit;
use crate::packets::Packets;
use crate::solved::named;
use crate::touch::{Found, Source, Touch, Touches, distinct};

/// The first access to one of these objects by packets of such kinds, in words; none if no access is to blame.
pub(crate) fn because(
    model: &Model,
    program: &Program,
    all: &Touches,
    objects: &BTreeSet<usize>,
    kinds: impl Fn(Kind) -> bool,
) -> Option<String> {
    let unnamed = |f: &&Found| {
        let own = matches!(f.source, Source::Fields | Source::Foreign(_));
        own && kinds(f.packets.kind) && !f.key.iter().any(|bit| matches!(bit, Bit::Field(..)))
    };
    let mut touches = all.all.iter().filter(|t| objects.contains(&t.object));
    let (touch, found) = touches.find_map(|t| Some((t, t.by.iter().find(unnamed)?)))?;
    let object = &program.objects.get(touch.object)?.name;
    let port = match program.ports.get(found.packets.port) {
        Some(port) => format!(" on {port}"),
        None => String::new(),
    };
    Some(format!(
        "{}no field of a packet{port} says for certain which entry of {object} it touches there",
        before(model, touch)
    ))
}

/// The line of an access, in front of what is said of it.
fn before(model: &Model, touch: &Touch) -> String {
    let place = touch.at.place(model);
    place.map_or_else(String::new, |p| format!("{p}: "))
}

/// Packets that are an obstacle for an object, and where: packets of which nothing that is hashed says which entry they
/// touch, or those without which the others could be told apart, as `without` says.
pub(crate) fn blocking(
    (model, program): (&Model, &Program),
    name: &str,
    own: &[&Touch],
    without: impl Fn(Packets) -> bool,
) -> Option<String> {
    let mut of: BTreeMap<Packets, (&Touch, bool)> = BTreeMap::new();
    for (t, f) in distinct(own.iter().copied()) {
        if f.source == Source::Leased {
            continue;
        }
        let kind = f.packets.kind;
        let field = |b: &Bit| matches!(b, Bit::Field(f, at) if usize::from(*at) < f.bits(kind));
        let unnamed = !f.key.iter().any(field) && !f.key.iter().all(|b| matches!(b, Bit::Const(_)));
        let first = of.entry(f.packets).or_insert((t, unnamed));
        if (unnamed, first.0.at.spot(model)) > (first.1, t.at.spot(model)) {
            *first = (t, unnamed);
        }
    }
    let unnamed: Vec<_> = of.iter().filter(|(_, (_, unnamed))| *unnamed).collect();
    // Where it is so for all kinds, that is the key's, and said of it.
    if let [(packets, (t, _)), ..] = unnamed.as_slice()
        && unnamed.len() < of.len()
    {
        return Some(format!(
            "{}no field of {} says which entry of {name} they touch there",
            before(model, t),
            named(**packets, &program.ports)
        ));
    }
    let mut each = of.iter().filter(|_| of.len() > 1);
    let (packets, (t, _)) = each.find(|(packets, _)| without(**packets))?;
    Some(format!(
        "{}without {} the others could be told apart",
        before(model, t),
        named(*packets, &program.ports)
    ))
}
