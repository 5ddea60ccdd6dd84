//! Snapshots of guests.

use millrace_guest::snapshot::format::{self, Kind};
use millrace_guest::snapshot::inspect::inspect;

const KINDS: [Kind; 5] = [Kind::Head, Kind::Maps, Kind::Pages, Kind::Rest, Kind::End];

/// Reads the bytes as they are, and then as sections with right checksums: a byte that says the kind, two their length,
/// and what is in it.
pub fn run(data: &[u8]) {
    let _ = inspect(&mut &*data);
    let mut snapshot = Vec::new();
    let mut rest = data;
    let _ = format::begin(&mut snapshot);
    while let [kind, low, high, others @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(others.len());
        let (body, behind) = others.split_at(length);
        let kind = KINDS[usize::from(*kind) % KINDS.len()];
        let _ = format::put(&mut snapshot, kind, &[body]);
        rest = behind;
    }
    let _ = inspect(&mut &*snapshot);
}
