//! `Classifier(PATTERN, …)`: an output for the first pattern that the packet's bytes fit; without one it is dropped. A pattern
//! is clauses `OFFSET/VALUE[%MASK]`, in hexadecimal digits, `?` for any; `!` before a clause negates it, `-` fits all. Bytes that
//! the packet does not have fit nothing.

use super::prelude::*;
use crate::meaning::Clause;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("Classifier", "1/-", "h/h", make)];

fn make(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    let patterns = args.all();
    if patterns.len() < setup.ports.1 {
        return Err(format!(
            "{} patterns for {} outputs",
            patterns.len(),
            setup.ports.1
        ));
    }
    let patterns = patterns
        .iter()
        .map(|p| pattern(p))
        .collect::<Result<_, _>>()?;
    Ok(Box::new(Classifier(patterns)))
}

fn pattern(text: &str) -> Result<Vec<Clause>, String> {
    let mut clauses = Vec::new();
    // A blank may stand behind the sign.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.replace("! ", "!");
    for word in text.split(' ').filter(|w| !matches!(*w, "-" | "")) {
        let wrong = || format!("bad clause '{word}': write OFFSET/VALUE");
        let (negated, rest) = match word.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, word),
        };
        let (offset, digits) = rest.split_once('/').ok_or_else(wrong)?;
        let offset: u16 = offset.parse().map_err(|_| wrong())?;
        let (digits, masked) = digits.split_once('%').unwrap_or((digits, ""));
        let (mut value, mut mask) = nibbles(digits).ok_or_else(wrong)?;
        if !masked.is_empty() {
            let (extra, _) = nibbles(masked).ok_or_else(wrong)?;
            if extra.len() != mask.len() {
                return Err(format!("'{word}': value and mask have different lengths"));
            }
            mask.iter_mut().zip(&extra).for_each(|(m, e)| *m &= e);
        }
        value.iter_mut().zip(&mask).for_each(|(v, m)| *v &= m);
        clauses.push(Clause {
            offset: usize::from(offset),
            mask,
            value,
            negated,
        });
    }
    if clauses.is_empty() && text.trim() != "-" {
        return Err(format!("bad pattern '{text}'"));
    }
    Ok(clauses)
}

/// Values and masks of hexadecimal digits.
fn nibbles(digits: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let digits = digits.as_bytes();
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let nibble = |b: u8| match b {
        b'?' => Some((0, 0)),
        b => (b as char).to_digit(16).map(|d| (d as u8, 15)),
    };
    let mut all = (Vec::new(), Vec::new());
    for pair in digits.chunks(2) {
        let (high, low) = (nibble(*pair.first()?)?, nibble(*pair.get(1)?)?);
        all.0.push(high.0 << 4 | low.0);
        all.1.push(high.1 << 4 | low.1);
    }
    Some(all)
}

struct Classifier(Vec<Vec<Clause>>);

impl Element for Classifier {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Bytes(self.0.clone()))
    }

    fn push(&mut self, _: usize, packet: Packet, cx: &Context<'_>) {
        let fits = |clause: &Clause| {
            let bytes = packet
                .data()
                .get(clause.offset..clause.offset + clause.mask.len());
            let equal = bytes.is_some_and(|bytes| {
                let masked = bytes.iter().zip(&clause.mask).map(|(b, m)| b & m);
                masked.eq(clause.value.iter().copied())
            });
            equal != clause.negated
        };
        match self.0.iter().position(|p| p.iter().all(fits)) {
            Some(port) => cx.push(port, packet),
            None => cx.drop(packet),
        }
    }
}
