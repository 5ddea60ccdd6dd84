//! Small diagrams as lists of rows of which the first that fits counts.
//!
//! At each branch the diagram that most values lead to comes last and has no match of its own, as in TCAM Razor (Liu, Meiners,
//! Torng: TCAM Razor: a systematic approach towards minimizing packet classifiers in TCAMs, IEEE/ACM TON 18(2), 2010).

use millrace_synth::diagram::{Id, Node, Store};
use millrace_synth::field::{Base, Var, bit, ip};
use millrace_synth::rows::prefixes;

use crate::Error;
use crate::matches::matches;
use crate::openflow::{Field, Match};
use crate::outcome::IP;

/// Rows that a diagram may become.
const MOST: usize = 1 << 18;

/// A row that has no place yet: what it matches, and the diagram that it leads to.
pub(crate) type Line = (Vec<Match>, Id);

/// The field of a packet's variable that is no word of a flow.
pub(crate) fn packet_field(var: Var) -> Option<Field> {
    match var {
        v if v == ip(IP, bit::TTL) => Some(Field::Ttl),
        v if v == ip(IP, 8) => Some(Field::IpDscp),
        v if v == ip(IP, 14) => Some(Field::IpEcn),
        _ => None,
    }
}

/// Whether a variable is of Ethernet's addresses.
pub(crate) fn of_ethernet(var: Var) -> bool {
    matches!(var, Var::Bits(Base::Frame, first, _) if first < 96)
}

/// Matches of an interval of a variable.
fn pieces(var: Var, low: u64, high: u64) -> Option<Vec<Option<Match>>> {
    if let Var::Bits(Base::Frame, first, width) = var
        && first < 96
    {
        let (field, start) = match first < 48 {
            true => (Field::EthDst, 0),
            false => (Field::EthSrc, 48),
        };
        let shift = 48 - (first - start) - u32::from(width);
        let all = prefixes(low, high, u32::from(width)).into_iter();
        let all = all.map(|(value, mask)| Match {
            field,
            value: value << shift,
            mask: mask << shift,
        });
        return Some(all.map(Some).collect());
    }
    matches(packet_field(var)?, low, high, true)
}

/// The list of a diagram above the first variables that are not within.
pub(crate) fn flatten(
    store: &Store,
    id: Id,
    within: &dyn Fn(Var) -> bool,
) -> Result<Vec<Line>, Error> {
    let Node::Branch { var, kids } = store.node(id) else {
        return Ok(vec![(Vec::new(), id)]);
    };
    if !within(*var) {
        return Ok(vec![(Vec::new(), id)]);
    }
    let last = |n: usize| kids.get(n + 1).map_or(var.most(), |k| k.0 - 1);
    let size = |to: Id| -> u128 {
        let of = kids.iter().enumerate().filter(|(_, k)| k.1 == to);
        of.map(|(n, k)| u128::from(last(n) - k.0) + 1).sum()
    };
    let Some(most) = kids.iter().map(|k| k.1).max_by_key(|to| size(*to)) else {
        return Ok(vec![(Vec::new(), id)]);
    };
    let mut list = Vec::new();
    for (n, (first, kid)) in kids.iter().enumerate().filter(|(_, k)| k.1 != most) {
        let below = flatten(store, *kid, within)?;
        let pieces = pieces(*var, *first, last(n)).ok_or_else(|| {
            Error::new(
                format!("{var} has intervals that no row of a switch can match"),
                "let a server decide: test other fields in the chain's first part",
            )
        })?;
        for piece in pieces {
            for (more, to) in &below {
                list.push((join(piece, more), *to));
            }
        }
        if list.len() > MOST {
            return Err(Error::new(
                format!("the tests of {var} and what is behind them become more than {MOST} rows"),
                "divide the chain, and let the switch have its first part",
            ));
        }
    }
    list.extend(flatten(store, most, within)?);
    Ok(list)
}

/// A match more; bits of one field become one match.
fn join(piece: Option<Match>, more: &[Match]) -> Vec<Match> {
    let mut all = more.to_vec();
    let Some(piece) = piece else {
        return all;
    };
    match all.iter_mut().find(|m| m.field == piece.field) {
        Some(same) => {
            same.value |= piece.value;
            same.mask |= piece.mask;
        }
        None => all.insert(0, piece),
    }
    all
}
