//! A path's packet writes, as updates of fields.

use millrace_model::exec::Written;
use millrace_model::expr::{ExprId, Node};

use super::document::Rewrite;
use crate::words::{Order, Printer, field_value};

/// Bytes that are written to one field.
struct Update {
    field: String,
    /// whether it is all of the field
    whole: bool,
    bytes: Vec<Written>,
}

/// The updates, each with the bytes that it is of.
pub(super) fn with_bytes(
    printer: &Printer<'_>,
    written: &[Written],
) -> Vec<(Rewrite, Vec<Written>)> {
    let bytes = updates(printer, written).into_iter().map(|u| u.bytes);
    rewrites(printer, written)
        .0
        .into_iter()
        .zip(bytes)
        .collect()
}

/// The updates, and for each a number that tells elided values apart.
pub(super) fn rewrites(printer: &Printer<'_>, written: &[Written]) -> (Vec<Rewrite>, u64) {
    let updates = updates(printer, written);
    let others: Vec<(String, Vec<Written>)> = updates
        .iter()
        .filter(|u| !u.field.ends_with("checksum"))
        .map(|u| (u.field.clone(), u.bytes.clone()))
        .collect();
    let sums: Vec<(String, Vec<Written>)> = updates
        .iter()
        .filter(|u| u.field.ends_with("checksum"))
        .map(|u| (u.field.clone(), u.bytes.clone()))
        .collect();
    let mut salt = 0_u64;
    let mut out = Vec::new();
    for u in &updates {
        let followed = match u.bytes.as_slice() {
            [a, b] if u.whole && u.field.ends_with("checksum") => {
                // Of an error's checksum those that it covers are other fields, too.
                let inner = sums
                    .iter()
                    .filter(|s| s.0 != u.field && s.0.starts_with("inner."));
                let all: Vec<_> = others.iter().chain(inner).cloned().collect();
                printer
                    .adjusted([a, b], &others)
                    .or_else(|| printer.adjusted([a, b], &all))
            }
            _ => None,
        };
        let bytes: Vec<ExprId> = u.bytes.iter().map(|w| w.byte).collect();
        let value = match followed {
            Some(f) => {
                let unless = if f.unless_zero {
                    ", unless it is 0"
                } else {
                    ""
                };
                format!("adjusted for {}{unless}", f.fields.join(", "))
            }
            None => {
                let constants: Option<Vec<u64>> =
                    bytes.iter().map(|b| printer.arena.constant(*b)).collect();
                let parts = match constants {
                    Some(all) if u.whole && all.len() <= 8 => {
                        let value = all.iter().fold(0, |n, b| n << 8 | b);
                        vec![field_value(&u.field, value)]
                    }
                    _ => printer.bytes(&bytes, Order::Wire),
                };
                // The same bits of one number many times: only what it depends on.
                match parts.as_slice() {
                    [first, rest @ ..]
                        if first.starts_with("f(") && rest.iter().all(|p| p == first) =>
                    {
                        first.clone()
                    }
                    _ => parts.join(" ++ "),
                }
            }
        };
        for b in &bytes {
            salt = salt.rotate_left(7) ^ printer.salt(&value, *b);
        }
        out.push(Rewrite {
            field: u.field.clone(),
            value,
        });
    }
    (out, salt)
}

/// The last write of each byte, by field.
fn updates(printer: &Printer<'_>, written: &[Written]) -> Vec<Update> {
    let mut last: Vec<Written> = Vec::new();
    for w in written {
        last.retain(|o| (o.base, o.at) != (w.base, w.at));
        last.push(*w);
    }
    // What is written back as it was is no change.
    last.retain(|w| {
        *printer.arena.node(w.byte)
            != Node::Byte {
                base: w.base,
                at: w.at,
            }
    });
    last.sort_by_key(|w| (w.base, w.at));
    let mut out = Vec::new();
    let mut i = 0;
    while let Some(first) = last.get(i) {
        let field = printer.field(first.base, first.at);
        let most = field.as_ref().map_or(usize::MAX, |f| (f.2 - f.1) as usize);
        let follows = |n: usize| {
            last.get(i + n).is_some_and(|w| {
                let named = printer.field(w.base, w.at).is_some();
                w.base == first.base && w.at == first.at + n as i64 && (field.is_some() || !named)
            })
        };
        let n = (1..most).take_while(|n| follows(*n)).count() + 1;
        let end = n as i64;
        let (name, whole) = match &field {
            Some((name, 0, all)) if *all == end => (name.clone(), true),
            Some((name, at, _)) => (format!("{name}[{at}..{}]", at + end), false),
            None => {
                let from = first
                    .base
                    .map_or(String::new(), |b| format!("{} + ", printer.text(b)));
                let place = printer.offset(first.at);
                (format!("pkt[{from}{place}; {n}]"), false)
            }
        };
        out.push(Update {
            field: name,
            whole,
            bytes: last.iter().skip(i).take(n).copied().collect(),
        });
        i += n;
    }
    out
}
