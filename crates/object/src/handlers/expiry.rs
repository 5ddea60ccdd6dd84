//! Packet sets: `millrace/set`, a pointer to the state object whose entries are the sets, and `millrace/on_expiry`, the
//! function that runs when one of them expires.

use crate::btf::ext::Lines;
use crate::elf::Elf;
use crate::error::LoadError;
use crate::functions::Functions;
use crate::layout::{Content, Layout, record_at};
use crate::program::ObjectId;
use crate::reloc::pointer;

/// The section that names the set.
const SECTION: &str = "millrace/set";
/// The section of the function.
pub(crate) const FUNCTION: &str = "millrace/on_expiry";

const POINTER: usize = 8;

/// The packet set of a program, and the index of the function that its entries' expiry runs, among the spans.
pub(crate) struct PacketSet {
    pub object: ObjectId,
    pub expiry: Option<usize>,
}

/// The set that a program declares, if it does.
pub(crate) fn read(
    elf: &Elf<'_>,
    functions: &Functions<'_>,
    layout: &Layout,
    mut lines: Lines<'_>,
) -> Result<Option<PacketSet>, LoadError> {
    let mut all = functions.spans.iter().enumerate();
    let mut handlers = all
        .by_ref()
        .filter(|(_, span)| span.global && span.section_name == FUNCTION);
    let (expiry, second) = (handlers.next(), handlers.next());
    let place = |e: LoadError| e.in_section(SECTION);
    let bad = |what: &str| place(LoadError::malformed(what));
    if let Some((_, span)) = second {
        return Err(LoadError::new(
            "two-handlers",
            "a second handler `on_expiry`",
            "keep one; a handler may call as many functions as you like",
        )
        .in_section(FUNCTION)
        .at_symbol(span.name)
        .at_line(lines.first(span.section_name, span.start, span.end)));
    }
    let Some((_, section)) = elf.section_named(SECTION) else {
        return match expiry {
            None => Ok(None),
            Some((_, span)) => Err(LoadError::new(
                "unknown-handler",
                "a handler `on_expiry` without a packet set",
                "declare the set first: `PACKET_SET(name, KEY, STATE, .capacity = N, .expire_after = NS)`",
            )
            .in_section(FUNCTION)
            .at_symbol(span.name)
            .at_line(lines.first(span.section_name, span.start, span.end))),
        };
    };
    if section.data.len() != POINTER {
        return Err(bad("not one packet set"));
    }
    let set = pointer::resolve(elf, section, 0)?.ok_or_else(|| bad("it names no packet set"))?;
    let record = match layout.content(set.section) {
        Content::Objects(records) => record_at(records, set.offset),
        _ => None,
    };
    match record.map(|r| &r.object) {
        Some(Ok(object)) => Ok(Some(PacketSet {
            object: *object,
            expiry: expiry.map(|(index, _)| index),
        })),
        Some(Err(e)) => Err(e.clone()),
        None => Err(bad("its packet set is no state object")),
    }
}
