//! How much the rules may do. Some of them simplify the operands of what they simplify, and of these again; an
//! expression is as deep as a program makes it, and where its parts are shared it is a tree of any size. So
//! whatever one call from outside sets off is bounded in depth, which is stack, and in number, which is time.
//! Beyond that an expression is left as it is. Where many expressions are built from others, each may set off as much;
//! the builder may say when that has to end ([`Arena::simplify_until`]).

use super::super::Arena;
use millrace_check::moment::Moment;

/// Most rules within each other.
const DEPTH: u32 = 64;
/// Most rules that one call from outside sets off.
const MOST: u32 = 4096;
/// The same once all calls together have set off so many: no program that people run comes near that, and a program can
/// have any number of expressions, each of which takes the most that there is.
const LEAST: u32 = 32;
const MANY: u64 = 1 << 20;

/// Work in progress.
#[derive(Clone, Debug, Default)]
pub(in crate::expr) struct Effort {
    depth: u32,
    left: u32,
    /// rules that were one too many, so far
    refused: u64,
    /// rules, so far
    all: u64,
    until: Option<Moment>,
    asked: u32,
    over: bool,
}

impl Effort {
    /// Whether somebody outside asks, and no rule, and there is time: what is found then is what will be found.
    pub(super) fn is_settled(&self) -> bool {
        self.depth == 0 && !self.over
    }

    /// How many rules were one too many: where it stays, nothing was cut short.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// How many were set off.
    pub(in crate::expr) fn rules(&self) -> u64 {
        self.all
    }

    /// As if so many had been.
    pub(in crate::expr) fn set_rules(&mut self, all: u64) {
        self.all = all;
    }

    /// One more was.
    pub(super) fn refuse(&mut self) {
        self.refused += 1;
    }
}

/// Between two looks at the clock: rules take a microsecond or so.
const EACH: u32 = 1024;

impl Arena {
    /// Expressions are simplified until then, and afterwards left as they are built; none: always.
    pub fn simplify_until(&mut self, until: Option<Moment>) {
        self.effort.until = until;
        self.effort.over = until.is_some_and(|u| Moment::now() >= u);
    }

    /// The same until the earlier of the two moments; the one that was set.
    pub fn simplify_sooner(&mut self, until: Moment) -> Option<Moment> {
        let before = self.effort.until;
        self.simplify_until(Some(before.map_or(until, |b| b.min(until))));
        before
    }

    fn late(&mut self) -> bool {
        let Some(until) = self.effort.until else {
            return false;
        };
        self.effort.asked += 1;
        if self.effort.asked >= EACH {
            self.effort.asked = 0;
            self.effort.over |= Moment::now() >= until;
        }
        self.effort.over
    }

    /// Result of a rule; none beyond the limit.
    pub(super) fn deeper<T>(&mut self, rule: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.effort.depth == 0 {
            self.effort.left = if self.effort.all < MANY { MOST } else { LEAST };
        }
        if self.late() || self.effort.depth == DEPTH || self.effort.left == 0 {
            self.effort.refused += 1;
            return None;
        }
        self.effort.depth += 1;
        self.effort.all += 1;
        self.effort.left -= 1;
        let done = rule(self);
        self.effort.depth -= 1;
        Some(done)
    }
}
