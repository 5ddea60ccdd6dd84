//! Rewriters: which packets ask their tables, and what follows for those of a flow.

use millrace_click::interpreter::Router;
use millrace_click::language::Port;
use millrace_click::meaning::{Meaning, Rewriting};
use millrace_click::rewriter::Specification;

use super::{Backward, Made, Shape, Stop, plain};
use crate::action::{Stateful, Sums, Value, Verdict, Write};
use crate::diagram::Id;
use crate::field::{Base, Var, Word, bit, ip};

impl Backward<'_> {
    pub(super) fn rewrite(&mut self, to: Port, shape: Shape, rewriting: &Rewriting) -> Made {
        let id = to.element;
        if let Some(why) = rewriting.unusual {
            return Ok(self.unsaid(id, why));
        }
        let Some(at) = shape.ip() else {
            return Ok(self.dropped(id));
        };
        let hop = match self.rewriters.iter().position(|r| *r == id) {
            Some(hop) => hop,
            None => {
                self.rewriters.push(id);
                self.rewriters.len() - 1
            }
        };
        let Ok(hop) = u8::try_from(hop) else {
            return Ok(self.unsaid(id, "there are more than 255 rewriters"));
        };
        let asked = self.by_transport(id, shape, at, &mut |work, upper| {
            if upper == 0 {
                // A TCP header that ends before its sum: the sum could not follow.
                return Ok(work.hand(id));
            }
            let then = work.behind(to, shape, at, hop, upper, rewriting)?;
            let key = WORDS.map(|word| Value::Field(word_of(at, word), 0));
            let state = work.actions.state(Stateful {
                at: to,
                hop,
                header: at,
                cut: shape.cut.is_some(),
                upper,
                key,
                then,
            });
            let asked = work.actions.plain(Verdict::State(state));
            Ok(work.store.leaf(asked))
        })?;
        let other = match rewriting.inputs.get(to.port) {
            Some(Specification::Pass(output)) => self.next(id, *output, shape)?,
            _ => self.dropped(id),
        };
        // TCP and UDP, first fragments, eight bytes of the transport header.
        let node = self.room(id, shape, 8, asked, other)?;
        let protocols: &[(u64, u64)] = match rewriting.tcp {
            true => &[(6, 6)],
            false => &[(6, 6), (17, 17)],
        };
        let node = self
            .store
            .within(ip(at, bit::PROTOCOL), protocols, node, other)?;
        let node = self
            .store
            .within(ip(at, bit::OFFSET), &[(0, 0)], node, other)?;
        self.writable(id, shape, at, node, other)
    }

    /// What follows by a rewriter's outputs for packets with a mapping: words of the flow are those of the entry.
    pub(super) fn behind(
        &mut self,
        to: Port,
        shape: Shape,
        at: u16,
        hop: u8,
        upper: u8,
        rewriting: &Rewriting,
    ) -> Result<Vec<(usize, Id)>, Stop> {
        let id = to.element;
        let mut then = Vec::new();
        for output in outputs(self.router, rewriting, to.port) {
            let node = self.next(id, output, shape)?;
            // What was tested to come here: each rewriter behind would be asked for TCP and for UDP, which doubles with each.
            let (cut, bytes) = (shape.cut.is_some(), if upper == 6 { 18 } else { 8 });
            let (protocol, room) = (u64::from(upper), Var::Room(at, cut));
            let node = self.store.known(node, ip(at, bit::OFFSET), 0, 0)?;
            let node = self
                .store
                .known(node, ip(at, bit::PROTOCOL), protocol, protocol)?;
            let mut node = self.store.known(node, room, bytes, room.most())?;
            if rewriting.destination {
                let address = Value::Field(ip(at, bit::DESTINATION), 0);
                node = self.written(id, node, Var::Destination, plain(address))?;
            }
            for word in WORDS {
                let port = matches!(word, Word::Sport | Word::Dport);
                let write = Write {
                    value: Value::Field(Var::Entry(hop, word), 0),
                    sums: Sums {
                        header: (!port).then_some(at),
                        upper,
                    },
                    again: false,
                };
                node = self.written(id, node, word_of(at, word), write)?;
            }
            then.push((output, node));
        }
        Ok(then)
    }
}

/// The words of a flow.
pub const WORDS: [Word; 4] = [Word::Source, Word::Destination, Word::Sport, Word::Dport];

/// The field of the packet that a word of its flow is.
#[must_use]
pub fn word_of(at: u16, word: Word) -> Var {
    match word {
        Word::Source => ip(at, bit::SOURCE),
        Word::Destination => ip(at, bit::DESTINATION),
        Word::Sport => Var::Bits(Base::Upper(at), 0, 16),
        Word::Dport => Var::Bits(Base::Upper(at), 16, 16),
    }
}

/// Outputs of a rewriter that packets of flows may leave by: those of the pattern of an input that opens flows, or those for
/// answers, by an input that does not.
fn outputs(router: &Router, rewriting: &Rewriting, input: usize) -> Vec<usize> {
    let mut pairs = Vec::new();
    for (number, one) in rewriting.inputs.iter().enumerate() {
        let patterns = match one {
            Specification::Mapper(id) => match router.meaning(*id) {
                Some(Meaning::Mapper(patterns)) => patterns,
                _ => Vec::new(),
            },
            one => vec![one.clone()],
        };
        for pattern in patterns {
            if let Specification::Keep(a, b) | Specification::Pattern(_, a, b) = pattern {
                pairs.push((number, a, b));
            }
        }
    }
    let opens = pairs.iter().any(|p| p.0 == input);
    let mut found: Vec<usize> = match opens {
        true => pairs.iter().filter(|p| p.0 == input).map(|p| p.1).collect(),
        false => pairs.iter().map(|p| p.2).collect(),
    };
    found.sort_unstable();
    found.dedup();
    found
}
