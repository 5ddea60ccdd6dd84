//! Conditions in words: negations, alternatives without what the others imply, sets of values.

use std::collections::BTreeSet;

use millrace_model::expr::sets::{Place, Set};
use millrace_model::expr::{Bin, ExprId, Node, Rel};

use super::compare::field_value;
use super::{Printer, What};
use crate::layout::fields;

/// Most parts into which a condition is taken apart.
const PARTS: usize = 600;
/// Beyond this many nodes only what a condition depends on is shown.
const MOST: usize = 240;

/// Beyond this many characters, too.
const LONGEST: usize = 160;

/// A condition, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Shape {
    /// an expression of width 1, or its contrary
    Plain(ExprId, bool),
    All(Vec<Shape>),
    Any(Vec<Shape>),
}

impl Shape {
    /// The expressions that it is made of.
    fn leaves(&self) -> Vec<ExprId> {
        match self {
            Shape::Plain(e, _) => vec![*e],
            Shape::All(parts) | Shape::Any(parts) => parts.iter().flat_map(Shape::leaves).collect(),
        }
    }
}

impl Printer<'_> {
    /// A condition, or several about one byte, on a path where that byte has one of these values. None where
    /// they then say nothing.
    #[must_use]
    pub fn given(&self, all: &[ExprId], known: &dyn Fn(Place) -> Set) -> Option<String> {
        let sets = all.iter().map(|e| self.memory.set(self.arena, *e));
        let sets: Option<Vec<(Place, Set)>> = sets.collect();
        if let Some((at, first)) = sets.as_ref().and_then(|s| s.first()) {
            let rest = sets.iter().flatten().skip(1);
            let set = rest.fold(first.clone(), |all, s| all.both(&s.1));
            if let Some(text) = self.values(*at, &known(*at), &set) {
                return text;
            }
        }
        let texts: Vec<String> = all.iter().map(|e| self.condition(*e, true)).collect();
        Some(texts.join(" and "))
    }

    /// A condition, or its contrary.
    #[must_use]
    pub fn condition(&self, e: ExprId, holds: bool) -> String {
        if let Some(text) = self.holds(e, holds) {
            return text;
        }
        let mut budget = PARTS;
        let Some(shape) = self.shape(e, holds, &mut budget) else {
            return self.elided(&[e]);
        };
        let shape = factored(lean(shape));
        let parts = match &shape {
            Shape::All(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        // Of the conditions that all hold those that are too long are put together.
        let (mut texts, mut long) = (Vec::new(), Vec::new());
        for p in parts {
            let of = p.leaves();
            let heavy = of.len() > 24 || of.iter().any(|e| self.weight(*e) > MOST);
            let text = if heavy {
                None
            } else {
                Some(self.shown(p, parts.len() > 1)).filter(|t| t.chars().count() <= LONGEST)
            };
            match text {
                Some(text) => texts.push(text),
                None => long.extend(of),
            }
        }
        if !long.is_empty() {
            texts.push(self.elided(&long));
        }
        texts.join(" and ")
    }

    fn shape(&self, e: ExprId, holds: bool, budget: &mut usize) -> Option<Shape> {
        *budget = budget.checked_sub(1)?;
        let a = self.arena;
        if let Node::Bin(op, x, y) = *a.node(e)
            && a.width(e) == 1
        {
            match op {
                Bin::Xor => {
                    let (one, other) = if a.constant(x).is_some() {
                        (x, y)
                    } else {
                        (y, x)
                    };
                    if a.constant(one) == Some(1) {
                        return self.shape(other, !holds, budget);
                    }
                }
                Bin::And | Bin::Or => {
                    let (p, q) = (self.shape(x, holds, budget)?, self.shape(y, holds, budget)?);
                    let all = (op == Bin::And) == holds;
                    let mut parts = Vec::new();
                    for s in [p, q] {
                        match s {
                            // What always holds adds nothing to others that must hold.
                            Shape::Plain(e, h) if self.always(e, h) == Some(all) => {}
                            Shape::All(inner) if all => parts.extend(inner),
                            Shape::Any(inner) if !all => parts.extend(inner),
                            other => parts.push(other),
                        }
                    }
                    return Some(if all {
                        Shape::All(parts)
                    } else {
                        Shape::Any(parts)
                    });
                }
                _ => {}
            }
        }
        Some(Shape::Plain(e, holds))
    }

    /// Whether a condition that is about two numbers holds.
    fn always(&self, e: ExprId, holds: bool) -> Option<bool> {
        match *self.arena.node(e) {
            Node::Cmp(Rel::Eq, x, y) => {
                let (x, y) = (self.arena.constant(x)?, self.arena.constant(y)?);
                Some((x == y) == holds)
            }
            _ => None,
        }
    }

    fn shown(&self, shape: &Shape, inside: bool) -> String {
        let (parts, word) = match shape {
            Shape::Plain(e, holds) => return self.plain(*e, *holds),
            Shape::All(parts) => (parts, " and "),
            Shape::Any(parts) => (parts, " or "),
        };
        let any = word == " or ";
        let mut texts: Vec<String> = Vec::new();
        let mut sets: Vec<(ExprId, Vec<u64>)> = Vec::new();
        for p in parts {
            if let Shape::Plain(e, holds) = p
                && let Node::Cmp(Rel::Eq, x, c) = *self.arena.node(*e)
                && let Some(c) = self.arena.constant(c)
                && *holds == any
            {
                match sets.iter_mut().find(|s| s.0 == x) {
                    Some(s) => s.1.push(c),
                    None => sets.push((x, vec![c])),
                }
                continue;
            }
            texts.push(self.shown(p, true));
        }
        for (x, values) in sets {
            texts.push(self.one_of(x, &values, any));
        }
        texts.dedup();
        match texts.as_slice() {
            [one] => one.clone(),
            _ if inside => format!("({})", texts.join(word)),
            _ => texts.join(word),
        }
    }

    /// That a number is one of several, or none of them.
    fn one_of(&self, x: ExprId, values: &[u64], is: bool) -> String {
        let one = |c: u64| {
            let rel = Rel::Eq;
            // The constant is in the arena: the condition was made of it.
            let width = self.arena.width(x);
            self.arena
                .find_constant(c, width)
                .map(|c| self.comparison(rel, x, c, is))
        };
        let texts: Vec<String> = values.iter().filter_map(|c| one(*c)).collect();
        let sign = if is { " == " } else { " != " };
        let split: Option<Vec<(&str, &str)>> = texts.iter().map(|t| t.split_once(sign)).collect();
        match split.as_deref() {
            Some([(name, first), rest @ ..])
                if !rest.is_empty() && rest.iter().all(|r| r.0 == *name) =>
            {
                let mut all = vec![*first];
                all.extend(rest.iter().map(|r| r.1));
                all.dedup();
                let word = if is { "in" } else { "not in" };
                format!("{name} {word} {{{}}}", all.join(", "))
            }
            _ => texts.join(if is { " or " } else { " and " }),
        }
    }

    fn plain(&self, e: ExprId, holds: bool) -> String {
        let a = self.arena;
        if let Some((object, name)) = self.state(e) {
            let entry = self.entry(object, name.entry);
            match name.what {
                What::Present if holds => return format!("{entry} there"),
                What::Present => return format!("{entry} absent"),
                What::Full if holds => return format!("{} full", self.object(object)),
                What::Full => return format!("{} has room", self.object(object)),
                _ => {}
            }
        }
        match *a.node(e) {
            Node::Cmp(rel, x, y) => self.comparison(rel, x, y, holds),
            Node::Extract { of, low } => {
                let text = self.term(e);
                let group = match *a.node(of) {
                    Node::Byte { base, at } => self
                        .field(base, at)
                        .and_then(|f| fields::part(&f.0, f.1, low, 1))
                        .and_then(|p| p.strip_suffix(".group").map(str::to_owned)),
                    _ => None,
                };
                match (group, holds) {
                    (Some(field), true) => format!("{field} is a group address"),
                    (Some(field), false) => format!("{field} is no group address"),
                    (None, true) => format!("{text} == 1"),
                    (None, false) => format!("{text} == 0"),
                }
            }
            Node::Bin(op, x, y) => {
                let not = if holds { "" } else { "not " };
                format!("{not}({})", self.binary(op, x, y))
            }
            Node::Ite(..) | Node::Sym(_) if !holds => format!("not {}", self.term(e)),
            _ if holds => self.term(e),
            _ => format!("not ({})", self.term(e)),
        }
    }

    /// That a byte has one of these values, of those that it can have. None where nothing short says so;
    /// within, none where it says nothing.
    fn values(&self, (base, at): Place, known: &Set, set: &Set) -> Option<Option<String>> {
        let set = set.both(known);
        let other = known.without(&set);
        if other.values().next().is_none() {
            return Some(None);
        }
        let (name, byte, all) = self.field(base, at)?;
        // Part of the byte: all of what it does not say may be anything.
        for (low, width) in [(4, 4), (0, 4), (0, 1)] {
            let Some(part) = fields::part(&name, byte, low, width) else {
                continue;
            };
            let of = |s: &Set| -> Vec<u64> {
                let mut v: Vec<u64> = s
                    .values()
                    .map(|v| u64::from(v) >> low & millrace_model::expr::mask(width))
                    .collect();
                v.sort_unstable();
                v.dedup();
                v
            };
            let (yes, no) = (of(&set), of(&other));
            if yes.iter().all(|v| !no.contains(v)) {
                if let Some(field) = part.strip_suffix(".group") {
                    let is = yes.first() == Some(&1);
                    let word = if is { "is a" } else { "is no" };
                    return Some(Some(format!("{field} {word} group address")));
                }
                return Some(Some(listed(&part, &yes, &no)));
            }
        }
        if all != 1 {
            return None;
        }
        if let Some(text) = halves(&name, byte, &set, known) {
            return Some(Some(text));
        }
        let of = |s: &Set| -> Vec<u64> { s.values().map(u64::from).collect() };
        let text = listed(&name, &of(&set), &of(&other));
        (text.len() < 64).then_some(Some(text))
    }
}

/// That a byte of two fields has one of these values, of those that it can have, field by field, if that says the
/// same.
fn halves(name: &str, byte: i64, set: &Set, known: &Set) -> Option<String> {
    let (upper, lower) = (
        fields::part(name, byte, 4, 4)?,
        fields::part(name, byte, 0, 4)?,
    );
    let of = |s: &Set, low: u32| -> Vec<u64> {
        let all: BTreeSet<u64> = s.values().map(|v| u64::from(v) >> low & 15).collect();
        all.into_iter().collect()
    };
    let (high, low) = (of(set, 4), of(set, 0));
    let both = known
        .values()
        .filter(|v| high.contains(&u64::from(v >> 4)) && low.contains(&u64::from(v & 15)));
    if both.count() != set.values().count() {
        return None;
    }
    let without = |all: Vec<u64>, some: &[u64]| -> Vec<u64> {
        all.into_iter().filter(|v| !some.contains(v)).collect()
    };
    let (not_high, not_low) = (without(of(known, 4), &high), without(of(known, 0), &low));
    let mut texts = Vec::new();
    if !not_high.is_empty() {
        texts.push(listed(&upper, &high, &not_high));
    }
    if !not_low.is_empty() {
        texts.push(listed(&lower, &low, &not_low));
    }
    (!texts.is_empty()).then(|| texts.join(" and "))
}

/// That a field has one of the values `yes`, and none of `no`.
fn listed(name: &str, yes: &[u64], no: &[u64]) -> String {
    let value = |v: &u64| field_value(name, *v);
    match (yes, no) {
        ([], _) => format!("never: {name}"),
        ([one], _) => format!("{name} == {}", value(one)),
        (_, [one]) => format!("{name} != {}", value(one)),
        ([.., last], [first, ..]) if last < first => format!("{name} <= {}", value(last)),
        ([first, ..], [.., last]) if first > last => format!("{name} >= {}", value(first)),
        _ => {
            let (word, list) = if yes.len() <= no.len() {
                ("in", yes)
            } else {
                ("not in", no)
            };
            let all: Vec<String> = list.iter().map(value).collect();
            format!("{name} {word} {{{}}}", all.join(", "))
        }
    }
}

/// Without what the other parts imply: `a or (not a and b)` is `a or b`.
fn lean(shape: Shape) -> Shape {
    let (parts, any) = match shape {
        Shape::Plain(..) => return shape,
        Shape::All(parts) => (parts, false),
        Shape::Any(parts) => (parts, true),
    };
    let parts: Vec<Shape> = parts.into_iter().map(lean).collect();
    let plain: Vec<(ExprId, bool)> = parts
        .iter()
        .filter_map(|p| match p {
            Shape::Plain(e, holds) => Some((*e, *holds)),
            _ => None,
        })
        .collect();
    let mut out: Vec<Shape> = Vec::new();
    for p in parts {
        let p = match p {
            // Where `a` holds already, `not a` within is told.
            Shape::All(inner) if any => rest(inner, &plain, true),
            Shape::Any(inner) if !any => rest(inner, &plain, false),
            other => other,
        };
        match p {
            Shape::Any(inner) if any => out.extend(inner),
            Shape::All(inner) if !any => out.extend(inner),
            other => out.push(other),
        }
    }
    let mut seen: Vec<Shape> = Vec::new();
    for s in out {
        if !seen.contains(&s) {
            seen.push(s);
        }
    }
    match seen.len() {
        1 => seen.remove(0),
        _ if any => Shape::Any(seen),
        _ => Shape::All(seen),
    }
}

/// The conditions that all alternatives have in common, once.
fn factored(shape: Shape) -> Shape {
    let Shape::Any(parts) = shape else {
        return shape;
    };
    let list = |s: &Shape| match s {
        Shape::All(inner) => inner.clone(),
        other => vec![other.clone()],
    };
    let common: Vec<Shape> = match parts.as_slice() {
        [first, rest @ ..] => list(first)
            .into_iter()
            .filter(|s| rest.iter().all(|r| list(r).contains(s)))
            .collect(),
        [] => Vec::new(),
    };
    if common.is_empty() {
        return Shape::Any(parts);
    }
    let left = parts.iter().map(|p| {
        let mut own: Vec<Shape> = list(p)
            .into_iter()
            .filter(|s| !common.contains(s))
            .collect();
        match own.len() {
            1 => own.remove(0),
            _ => Shape::All(own),
        }
    });
    let left: Vec<Shape> = left.collect();
    // What was asked last stands first.
    let mut all: Vec<Shape> = common.into_iter().rev().collect();
    // An alternative that asks for no more makes the others say nothing.
    if !left
        .iter()
        .any(|s| matches!(s, Shape::All(own) if own.is_empty()))
    {
        all.push(lean(Shape::Any(left)));
    }
    lean(Shape::All(all))
}

fn rest(inner: Vec<Shape>, told: &[(ExprId, bool)], all: bool) -> Shape {
    let kept: Vec<Shape> = inner
        .into_iter()
        .filter(|s| !matches!(s, Shape::Plain(e, holds) if told.contains(&(*e, !holds))))
        .collect();
    match (kept.len(), all) {
        (1, _) => kept.into_iter().next().unwrap_or(Shape::All(Vec::new())),
        (_, true) => Shape::All(kept),
        (_, false) => Shape::Any(kept),
    }
}
