//! Computations in C: numbers of 64 bits, as BPF computes with them.

use std::collections::BTreeMap;

use millrace_object::insn::Width;

/// Bits of a row, numbered from the lowest of the first byte.
pub fn bits(row: &str, at: u32, count: u32) -> String {
    let (mut done, mut parts) = (0, Vec::new());
    while done < count {
        let place = at + done;
        let now = (8 - place % 8).min(count - done);
        let byte = format!("(u64){row}[{}]", place / 8);
        let part = match (place % 8, now) {
            (0, 8) => byte,
            (by, now) => format!("({byte} >> {by} & {:#x})", (1u32 << now) - 1),
        };
        parts.push(format!("{part} << {done}"));
        done += now;
    }
    match parts.is_empty() {
        true => "0".into(),
        false => format!("({})", parts.join(" | ")),
    }
}

/// A field's bits at their places of the mask.
pub fn scattered(value: &str, mask: u64) -> String {
    let (mut at, mut had, mut parts) = (0, 0, Vec::new());
    while at < 64 {
        let run = (mask >> at).trailing_ones();
        if run > 0 {
            let low = u64::MAX >> (64 - run);
            parts.push(format!("({value} >> {had} & {low:#x}ull) << {at}"));
            had += run;
        }
        at += run.max(1);
    }
    match parts.is_empty() {
        true => "0".into(),
        false => parts.join(" | "),
    }
}

/// The second of the pair whose first it is; else the last pair's.
pub fn chosen(e: &str, pairs: impl Iterator<Item = (u64, u64)>) -> String {
    let pairs: BTreeMap<usize, (u64, u64)> = pairs.enumerate().collect();
    let last = pairs.values().last().map_or(0, |p| p.1);
    let mut text = format!("{last:#x}ull");
    for (from, to) in pairs.values().rev().skip(1) {
        text = format!("({e} == {from:#x}ull ? {to:#x}ull : {text})");
    }
    text
}

pub fn narrow(width: Width, value: &str) -> String {
    match width {
        Width::W64 => value.into(),
        Width::W32 => format!("(u64)(u32){value}"),
    }
}
