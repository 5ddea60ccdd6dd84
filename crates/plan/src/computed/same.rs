//! Properties shared by packets with one key, in words.

use std::collections::BTreeSet;

use millrace_model::expr::Arena;
use millrace_steer::keys::{Bit as HeaderBit, Case, Part, Side};
use millrace_steer::{Field, Kind};

use super::formula::Formula;
use super::rows::Rows;
use crate::key::{Bit, Key};
use crate::packets::Packets;
use crate::words;

/// Properties shared by packets of a port with one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Same {
    pub port: usize,
    kind: Kind,
    /// what the key is computed from
    pub of: String,
    /// what they have in common; nothing if that is empty
    pub bits: String,
}

impl Same {
    /// Of packets with this formula, two of which have the same key in this case; none if it is not computed.
    pub(super) fn of(
        arena: &Arena,
        packets: Packets,
        formula: &Formula,
        case: &Case,
    ) -> Option<Self> {
        let of = formula.computed_from(arena).into_iter();
        let of: Vec<String> = of.map(words::field).collect();
        if of.is_empty() {
            return None;
        }
        let said = said(case);
        let fields = formula.fields(arena);
        let bits: Key = fields
            .into_iter()
            .flat_map(|f| (0..f.bits(packets.kind)).map(move |at| (f, at)))
            .filter(|(f, at)| said.says(equal(*f, *at)))
            .map(|(f, at)| Bit::Field(f, at as u16))
            .collect();
        let mut parts = vec![words::key(&bits)];
        parts.retain(|p| !p.is_empty());
        match between(&said).saturating_sub(bits.len()) {
            0 => {}
            1 => parts.push("exclusive or of some bits".to_owned()),
            n => parts.push(format!("{n} exclusive ors of bits")),
        }
        Some(Self {
            port: packets.port,
            kind: packets.kind,
            of: words::listed(&of),
            bits: words::listed(&parts),
        })
    }

    /// Of the commonest kind: other kinds have fewer fields.
    pub fn is_common(&self) -> bool {
        self.kind == Kind::Ipv4Tcp
    }
}

/// A field's bit is the same in both packets.
fn equal(field: Field, at: usize) -> Row {
    let of = |side| HeaderBit {
        side,
        part: Part::Field(field),
        at,
    };
    [of(Side::A), of(Side::B)].into()
}

/// Bits whose exclusive or is 0.
type Row = BTreeSet<HeaderBit>;

/// Equations of a case without numbers.
fn said(case: &Case) -> Rows<HeaderBit> {
    let mut out = Rows::new();
    for e in case.equations.iter().filter(|e| !e.odd) {
        let mut row = Row::new();
        for bit in &e.bits {
            row = &row ^ &[*bit].into();
        }
        out.insert(row);
    }
    out
}

/// How many of them are about both packets.
fn between(said: &Rows<HeaderBit>) -> usize {
    let both = |r: &&Row| {
        let of = |side| r.iter().any(|b| b.side == side);
        of(Side::A) && of(Side::B)
    };
    said.iter().filter(both).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_steer::keys::Equation;

    #[test]
    fn what_several_equations_say_together_is_said() {
        let field = Field::SourcePort;
        let mut bits: Vec<HeaderBit> = equal(field, 3).into_iter().collect();
        let case = Case::all().and(Equation {
            bits: equal(field, 5).into_iter().collect(),
            odd: false,
        });
        bits.extend(equal(field, 5));
        let case = case.and(Equation { bits, odd: false });
        let span = said(&case);
        assert!(span.says(equal(field, 3)) && span.says(equal(field, 5)));
        assert!(!span.says(equal(field, 4)));
        assert_eq!(between(&span), 2);
    }
}
