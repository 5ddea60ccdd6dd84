//! Findings for people.

use std::fmt::Write;

use crate::findings::{Content, Did, Difference, Findings, Shown};

/// Bytes of a packet that are written out.
const SHOWN: usize = 64;

/// Findings as lines of text.
#[must_use]
pub fn text(found: &Findings) -> String {
    let mut text = String::new();
    let verdict = if found.equal { "equal" } else { "NOT EQUAL" };
    let workers = match found.workers {
        1 => "1 worker".to_owned(),
        n => format!("{n} workers"),
    };
    let _ = writeln!(
        text,
        "{verdict}: {} packets at {workers}, {} entries of state",
        found.compared, found.entries
    );
    let shares: Vec<String> = found.shares.iter().map(u64::to_string).collect();
    let _ = writeln!(text, "  packets by worker: {}", shares.join(", "));
    if let Some(writers) = found.writers {
        let _ = writeln!(
            text,
            "  {writers} packets wrote shared state; compared in the order of commits"
        );
    }
    if let Some(of) = found.transactions {
        let _ = writeln!(
            text,
            "  {} packets committed as transactions, {} attempts did not, {} packets ran alone",
            of.committed, of.aborted, of.alone
        );
        let _ = writeln!(
            text,
            "  {} dependencies between packets of different workers, by {} reads and writes of versions; compared in their order",
            of.dependencies, of.accesses
        );
    }
    if let Some(rows) = found.rows {
        let _ = writeln!(
            text,
            "  {rows} rows, applied by each worker; replicas were compared with each other byte for byte"
        );
    }
    if let Some(m) = &found.moved {
        let _ = writeln!(
            text,
            "  {} buckets changed their workers with {} entries at drawn moments, {} of them announced; {} moves found no room, {} entries were \
             lost; the number of workers changed {} times, and the key {} times",
            m.moves, m.entries, m.foreseen, m.refused, m.lost, m.cores, m.keys
        );
    }
    if let (Some(promotions), Some(demotions)) = (found.promotions, found.demotions) {
        let _ = writeln!(
            text,
            "  keys were promoted {promotions} times, {} of them announced, and demoted {demotions} times, at drawn moments",
            found.foreseen.unwrap_or(0)
        );
    }
    if found.found_by_index > 0 {
        let _ = writeln!(
            text,
            "  {} entries of the workers lie under the index of the table that their keys say",
            found.found_by_index
        );
    }
    if found.redirected > 0 {
        let _ = writeln!(
            text,
            "  {} answers were addressed to what the function made of their flows",
            found.redirected
        );
    }
    for relaxed in &found.relaxations {
        let _ = write!(text, "  {}: {} packets", relaxed.name, relaxed.packets);
        if relaxed.entries > 0 {
            let _ = write!(text, ", {} entries", relaxed.entries);
        }
        let _ = writeln!(text, " ({})", meaning(relaxed.name));
    }
    for not in &found.not_compared {
        let _ = writeln!(text, "  `{}` was not compared: {}", not.object, not.why);
    }
    for note in &found.notes {
        let _ = writeln!(text, "  note: {note}");
    }
    if found.differing > 0 {
        let _ = writeln!(text, "  {} differences; the first:", found.differing);
    }
    for (i, difference) in found.differences.iter().enumerate() {
        if i == 0 {
            whole(&mut text, difference);
        } else {
            let at = difference.packet.as_ref();
            let place = at.map_or(String::new(), |p| format!("packet {}: ", p.number));
            let _ = writeln!(text, "  then {place}{}", difference.what);
        }
    }
    text
}

/// Description of a relaxation.
fn meaning(name: &str) -> &'static str {
    match name {
        "lease" => "other free numbers were leased",
        "capacity" => "a worker's part of a table was full",
        "eviction" => "other entries were evicted",
        "staleness" => "numbers were read without what other workers had just done",
        _ => "a sketch confused other keys",
    }
}

fn whole(text: &mut String, difference: &Difference) {
    let _ = writeln!(text, "    {}", difference.what);
    if let Some(packet) = &difference.packet {
        let seconds = packet.time_ns as f64 / 1e9;
        let _ = writeln!(
            text,
            "    packet {} at {}, {seconds:.6} s: {}",
            packet.number, packet.port, packet.headers
        );
        let _ = writeln!(text, "      {}", cut(&packet.bytes));
    }
    for (side, did) in [
        ("sequential", &difference.sequential),
        ("parallel", &difference.parallel),
    ] {
        if let Some(did) = did {
            outcome(text, side, did, difference.packet.as_ref());
        }
    }
    if let Some(place) = &difference.parts {
        let _ = writeln!(text, "    they part at {}: {}", place.line, place.source);
    }
    for entry in &difference.state {
        let _ = writeln!(text, "    {}[{}]", entry.object, entry.key);
        let _ = writeln!(text, "      sequential: {}", held(&entry.sequential));
        if entry.parallel.is_empty() {
            let _ = writeln!(text, "      no worker has it");
        }
        for at in &entry.parallel {
            let _ = writeln!(text, "      worker {}: {}", at.worker, held(&at.entry));
        }
    }
}

fn outcome(text: &mut String, side: &str, did: &Did, packet: Option<&Shown>) {
    let place = match side {
        "parallel" => format!("worker {}", did.worker),
        _ => side.to_owned(),
    };
    let _ = writeln!(text, "    {place}: {}", did.fate);
    if packet.is_none_or(|p| p.bytes != did.bytes) {
        let _ = writeln!(text, "      {}\n      {}", did.headers, cut(&did.bytes));
    }
}

/// The first bytes of a packet in hexadecimal: its headers are in there.
fn cut(bytes: &str) -> String {
    match bytes.get(..2 * SHOWN) {
        Some(first) if bytes.len() > first.len() => {
            format!("{first}... ({} bytes)", bytes.len() / 2)
        }
        _ => bytes.to_owned(),
    }
}

fn held(held: &Content) -> String {
    let value = |v: &Option<String>| v.clone().unwrap_or_else(|| "absent".into());
    let (before, after) = (value(&held.before), value(&held.after));
    if before == after {
        before
    } else {
        format!("{before}, then {after}")
    }
}
