//! Two runs over the same packets, side by side.

use std::collections::{BTreeMap, BTreeSet};

use super::drive::{Fate, Ran};
use super::traffic::{Packet, flow};

/// Differences that are told at most.
const TOLD: usize = 6;

/// What differs between a run on one core and another run, whose packet `i` is packet `order[i]` of the first; state of
/// objects in `beside` is not compared.
#[must_use]
pub fn differences(
    one: &Ran,
    other: &Ran,
    order: Option<&[u64]>,
    beside: &BTreeSet<String>,
) -> Vec<String> {
    let mut out = Vec::new();
    if one.fates.len() != other.fates.len() {
        out.push(format!(
            "{} packets on one core, {} on several",
            one.fates.len(),
            other.fates.len()
        ));
        return out;
    }
    let mut differing = 0_usize;
    for (i, mine) in one.fates.iter().enumerate() {
        // The replay's packet `i` is what was packet `order[i]` of the run.
        let at = order.map_or(i, |o| o.get(i).map_or(i, |n| *n as usize));
        let Some(theirs) = other.fates.get(at) else {
            continue;
        };
        if let Some(what) = packet(mine, theirs) {
            differing += 1;
            if differing <= TOLD {
                out.push(format!("packet {at}: {what}"));
            }
        }
    }
    if differing > TOLD {
        out.push(format!("{differing} packets differ"));
    }
    out.extend(records(one, other));
    let names: BTreeSet<&String> = one.state.keys().chain(other.state.keys()).collect();
    for name in names.into_iter().filter(|n| !beside.contains(*n)) {
        out.extend(state(name, one, other));
    }
    out
}

fn packet(one: &Fate, other: &Fate) -> Option<String> {
    if one.verdict != other.verdict {
        return Some(format!(
            "{} on one core, {} at worker {}",
            one.verdict, other.verdict, other.worker
        ));
    }
    if one.bytes == other.bytes {
        return None;
    }
    let none = Vec::new();
    let (a, b) = (
        one.bytes.as_ref().unwrap_or(&none),
        other.bytes.as_ref().unwrap_or(&none),
    );
    if a.len() != b.len() {
        return Some(format!(
            "{} bytes on one core, {} on several",
            a.len(),
            b.len()
        ));
    }
    let at = a.iter().zip(b).position(|(a, b)| a != b)?;
    Some(format!(
        "byte {at} is {:#x} on one core, {:#x} on several",
        a.get(at)?,
        b.get(at)?
    ))
}

fn counted(records: &[(String, String)]) -> BTreeMap<&(String, String), i64> {
    let mut out = BTreeMap::new();
    for record in records {
        *out.entry(record).or_default() += 1;
    }
    out
}

/// Records of several workers have no order; each has to be there as often.
fn records(one: &Ran, other: &Ran) -> Option<String> {
    let (a, b) = (counted(&one.records), counted(&other.records));
    if a == b {
        return None;
    }
    let all: BTreeSet<_> = a.keys().chain(b.keys()).copied().collect();
    let differs = all.into_iter().find(|r| a.get(r) != b.get(r))?;
    let times = |of: &BTreeMap<_, i64>| of.get(differs).copied().unwrap_or(0);
    Some(format!(
        "{} records on one core, {} on several; {} {} is there {} and {} times",
        one.records.len(),
        other.records.len(),
        differs.0,
        differs.1,
        times(&a),
        times(&b)
    ))
}

fn state(name: &str, one: &Ran, other: &Ran) -> Vec<String> {
    let (Some(a), Some(b)) = (one.state.get(name), other.state.get(name)) else {
        return vec![format!("`{name}` is pinned by one of the runs only")];
    };
    let mut out = Vec::new();
    // Queues and stacks have no keys, but an order.
    let keyed = a
        .iter()
        .chain(b)
        .any(|(key, _)| key != "null" && key != "\"\"");
    for (what, list) in [("one core", a), ("several", b)]
        .into_iter()
        .filter(|_| keyed)
    {
        let twice = list.windows(2).find(|w| w[0].0 == w[1].0);
        out.extend(twice.map(|w| format!("`{name}` of {what} has key {} twice", w[0].0)));
    }
    if a != b {
        let (a, b): (BTreeSet<_>, BTreeSet<_>) = (a.iter().collect(), b.iter().collect());
        let only = |x: &BTreeSet<&(String, String)>, y: &BTreeSet<&(String, String)>| {
            let first = x.difference(y).next();
            first.map_or_else(|| "nothing".to_owned(), |(k, v)| format!("{k}: {v}"))
        };
        out.push(format!(
            "`{name}`: only on one core {}; only on several {}",
            only(&a, &b),
            only(&b, &a)
        ));
    }
    out
}

/// The order in which a run on several workers says that its packets took effect, and whether that is one which keeps
/// every flow's.
///
/// # Errors
/// Packets of a flow, or of a worker, stand in another order than they came in.
pub fn commits(ran: &Ran, packets: &[Packet]) -> Result<Vec<u64>, String> {
    let mut order: Vec<&Fate> = ran.fates.iter().collect();
    order.sort_by_key(|f| (f.commit, f.number));
    let (mut by_flow, mut by_worker) = (BTreeMap::new(), BTreeMap::new());
    for fate in &order {
        let key = packets.get(fate.number as usize).and_then(flow);
        let before: Option<u64> = key.and_then(|key| by_flow.insert(key, fate.number));
        if let Some(before) = before.filter(|b| *b > fate.number) {
            return Err(format!(
                "packet {} took effect before packet {before} of its flow, which came later",
                fate.number
            ));
        }
        let before: Option<u64> = by_worker.insert(fate.worker, fate.number);
        if let Some(before) = before.filter(|b| *b > fate.number) {
            return Err(format!(
                "worker {} did packet {before} before packet {}",
                fate.worker, fate.number
            ));
        }
    }
    Ok(order.iter().map(|f| f.number).collect())
}
