//! Files of routing tables.

use std::collections::BTreeSet;

use millrace_routes::Table;

/// Reads `data` as a document. The entries that a table becomes differ in their keys (but for neighbours), and are no more than it asks
/// room for.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let table = match Table::parse(text) {
        Ok(table) => table,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let entries = table.entries();
    let of = |what: u8| {
        entries
            .iter()
            .filter(|e| e.0.first() == Some(&what))
            .count()
    };
    let (ports, hops, neighbours) = (of(1), of(2), of(3));
    assert_eq!(ports + hops + neighbours, entries.len());
    assert!(ports <= millrace_routes::MOST_PORTS);
    assert!(hops.max(neighbours) as u64 <= table.capacity());
    let mut keys = BTreeSet::new();
    for (key, _) in &entries {
        // Of several neighbours with one address the last one counts.
        let twice = !keys.insert(key) && key.first() != Some(&3);
        assert!(!twice, "twice: {key:?}");
    }
}
