//! `Search(PATTERN [, STRIP_AFTER, ANNO, SET_ANNO])`: takes what is in front of the first place of PATTERN, and PATTERN itself unless
//! STRIP_AFTER is false, from the packet's front; how much is added to the two bytes of the annotation ANNO unless SET_ANNO is false.
//! Packets without PATTERN go to output 1, or are dropped. `UnstripAnno([ANNO])` puts so many bytes back.

use super::prelude::*;
use crate::language::args::unquote;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("Search", "1/1-2", "h/h", make),
    Class::new("UnstripAnno", "1/1", "a/a", unstrip),
];

/// The annotation where none is named: behind those that have names.
const PLACE: usize = 36;

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("PATTERN STRIP_AFTER ANNO SET_ANNO");
    let after = args.flag("STRIP_AFTER", true)?;
    let set = args.flag("SET_ANNO", true)?;
    let at = args.annotation_word("ANNO", 2)?.unwrap_or(PLACE);
    let pattern = args.take("PATTERN").map(|p| unquote(&p));
    args.done()?;
    let pattern = pattern.filter(|p| !p.is_empty());
    Ok(Box::new(Search {
        pattern: pattern.ok_or("too few arguments: PATTERN")?,
        after,
        at: set.then_some(at),
    }))
}

fn unstrip(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("ANNO");
    let at = args.annotation("ANNO", PLACE, 2)?;
    args.done()?;
    Ok(Box::new(Unstrip(at)))
}

struct Search {
    pattern: Vec<u8>,
    /// whether the pattern is taken, too
    after: bool,
    /// where it is noted how much was taken
    at: Option<usize>,
}

/// A number of two bytes, most significant first.
fn noted(packet: &mut Packet, at: usize) -> Option<&mut [u8; 2]> {
    packet.anno.get_mut(at..at + 2)?.try_into().ok()
}

impl Element for Search {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside(
            "it looks for bytes anywhere in the packet",
        ))
    }

    fn push(&mut self, _: usize, mut packet: Packet, cx: &Context<'_>) {
        let mut places = packet.data().windows(self.pattern.len());
        let Some(found) = places.position(|bytes| bytes == self.pattern) else {
            cx.reject(1, packet);
            return;
        };
        let taken = found + if self.after { self.pattern.len() } else { 0 };
        packet.strip(taken);
        if let Some(number) = self.at.and_then(|at| noted(&mut packet, at)) {
            *number = u16::from_be_bytes(*number)
                .wrapping_add(taken as u16)
                .to_be_bytes();
        }
        cx.push(0, packet);
    }
}

struct Unstrip(usize);

impl Element for Unstrip {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("how much it puts back is an annotation"))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        let bytes = noted(&mut packet, self.0).map_or(0, |n| u16::from_be_bytes(*n));
        packet.push(usize::from(bytes));
        Some(packet)
    }
}
