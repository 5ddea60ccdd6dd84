//! `RoundRobinIPMapper(PATTERN, …)`: a mapper for rewriters: each new flow takes the next pattern that has free words. A pattern is
//! that of a rewriter without the word: `SADDR SPORT DADDR DPORT FOUT ROUT`. `IPRewriterPatterns(NAME SADDR SPORT DADDR DPORT, …)`
//! names patterns.

use super::prelude::*;
use crate::rewriter::{Mapper, Order, Pattern, Specification};

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("RoundRobinIPMapper", "0/0", "a/a", make),
    Class::new("IPRewriterPatterns", "0/0", "a/a", patterns),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    let mut patterns = Vec::new();
    for text in args.all() {
        // The word that an input of a rewriter begins with may stand here, too.
        let text = text.trim().strip_prefix("pattern ").unwrap_or(&text);
        let text = format!("pattern {text}");
        patterns.push(Specification::read(
            &text,
            true,
            args.names,
            &|_| None,
            |_| None,
        )?);
    }
    Ok(Box::new(RoundRobin(Mapper {
        patterns,
        order: Order::InTurn(0),
    })))
}

fn patterns(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    for text in args.all() {
        let words = crate::language::args::words(&text);
        Pattern::read(words.get(1..).unwrap_or(&[]), args.names)?;
    }
    Ok(Box::new(Patterns))
}

struct RoundRobin(Mapper);

impl Element for RoundRobin {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Mapper(self.0.patterns.clone()))
    }

    fn mapper(&mut self) -> Option<&mut Mapper> {
        Some(&mut self.0)
    }
}

struct Patterns;

impl Element for Patterns {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Silent)
    }
}
