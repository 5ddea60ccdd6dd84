//! Matches of words of flows.

use millrace_synth::rows::{PROTOCOL, TO, prefixes};

use crate::openflow::{Field, Match};

/// The field of a word.
pub(crate) fn field(word: usize) -> Field {
    match word {
        PROTOCOL => Field::IpProto,
        1 => Field::Ipv4Dst,
        2 => Field::Ipv4Src,
        TO => Field::PortDst,
        _ => Field::PortSrc,
    }
}

/// The matches of a field of which an interval consists; nothing where all of it is.
pub(crate) fn matches(
    field: Field,
    low: u64,
    high: u64,
    exact: bool,
) -> Option<Vec<Option<Match>>> {
    if (low, high) == (0, field.all()) {
        return Some(vec![None]);
    }
    if exact {
        if high - low > 255 {
            return None;
        }
        return Some((low..=high).map(|v| Some(Match::exact(field, v))).collect());
    }
    let all = prefixes(low, high, field.width()).into_iter();
    Some(
        all.map(|(value, mask)| Some(Match { field, value, mask }))
            .collect(),
    )
}
