//! Why all packets of some kinds are on one core: an access of theirs whose entry no field of a packet names. Any of
//! them can then touch any entry, and all that touch one must meet.

use std::collections::BTreeSet;

use millrace_model::Model;
use millrace_object::program::Program;
use millrace_steer::Kind;

use crate::key::Bit;
use crate::touch::{Found, Source, Touches};
use crate::words;

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
    let place = touch.at.line(model).map(words::place);
    let place = place.map_or(String::new(), |p| format!("{p}: "));
    Some(format!(
        "{place}no field of a packet{port} says for certain which entry of {object} it touches there"
    ))
}
