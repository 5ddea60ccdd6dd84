//! From pairs that must meet to equations over the key bits, and their null space.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::class::Class;
use super::spans::Span;
use crate::gf2::{Echelon, Row};

/// Key bits that are unknowns: of each port those that reach the `index` low bits of a hash. Bit `x` of
/// an input contributes key bits `x + 32 - index` to `x + 31`, which stand from the unknown `x` of its
/// port on.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// index bits
    pub index: usize,
    /// by port, its first unknown and the longest input
    ports: BTreeMap<usize, (usize, usize)>,
    /// how many unknowns
    pub unknowns: usize,
}

impl Layout {
    pub fn new(classes: &[Class], index: usize) -> Self {
        let mut longest: BTreeMap<usize, usize> = BTreeMap::new();
        for class in classes {
            let bits = longest.entry(class.port).or_default();
            *bits = (*bits).max(class.bits());
        }
        let mut unknowns = 0;
        let place = |(port, bits): (usize, usize)| {
            let first = unknowns;
            // A port of which nothing is hashed has no unknown.
            unknowns += if bits == 0 { 0 } else { bits + index - 1 };
            (port, (first, bits))
        };
        let ports = longest.into_iter().map(place).collect();
        Self {
            index,
            ports,
            unknowns,
        }
    }

    /// The first unknown of a port.
    pub fn first(&self, port: usize) -> usize {
        self.ports.get(&port).map_or(0, |(first, _)| *first)
    }

    /// The ports, each with its unknowns.
    pub fn ports(&self) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> + '_ {
        self.ports.iter().map(|(port, (first, bits))| {
            let count = if *bits == 0 { 0 } else { bits + self.index - 1 };
            (*port, *first..first + count)
        })
    }
}

/// A span vector as the keys see it: the input bits, each with its port, whose key windows must cancel.
/// The same for all kinds of packets with the same fields.
pub(super) type Shape = Vec<(usize, usize)>;

/// The shapes of all pairs, each once.
pub(super) fn shapes(classes: &[Class], spans: &[Span]) -> Vec<Shape> {
    let mut seen = HashSet::new();
    let mut known = HashSet::new();
    for span in spans {
        let (Some(a), Some(b)) = (classes.get(span.a), classes.get(span.b)) else {
            continue;
        };
        // Kinds of packets of which the same is hashed have their vectors in common.
        if !known.insert((Arc::as_ptr(&span.vectors), span.split, a.port, b.port)) {
            continue;
        }
        for vector in span.vectors.iter() {
            let mut shape: Shape = Vec::new();
            let mut sides: Vec<(usize, usize)> = vector
                .ones()
                .map(|at| match at.checked_sub(span.split) {
                    None => (a.port, at),
                    Some(at) => (b.port, at),
                })
                .collect();
            sides.sort_unstable();
            // The same bit of the same port twice is the same key bits twice: nothing.
            for side in sides {
                if shape.last() == Some(&side) {
                    shape.pop();
                } else {
                    shape.push(side);
                }
            }
            if !shape.is_empty() {
                seen.insert(shape);
            }
        }
    }
    let mut shapes: Vec<Shape> = seen.into_iter().collect();
    // Few bits first: they make sparse rows, and the order is the same at every run.
    shapes.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    shapes
}

/// A basis of all keys' unknowns for which every shape's index is zero.
pub(super) fn keys(layout: &Layout, shapes: &[Shape]) -> Vec<Row> {
    let mut equations = Echelon::new(layout.unknowns);
    let mut row = Row::zero(layout.unknowns);
    for shape in shapes {
        for bit in 0..layout.index {
            row.clear();
            for (port, at) in shape {
                row.flip(layout.first(*port) + at + bit);
            }
            equations.insert(&mut row);
        }
        if equations.is_whole() {
            return Vec::new();
        }
    }
    equations.orthogonal()
}

/// For each class the dimension D of the linear functions of its input that no pair of the constraints
/// tells apart, whatever the hash: the constraints' equations over one free function for each class.
pub(super) fn invariants(classes: &[Class], spans: &[Span]) -> Vec<usize> {
    // Of what no constraint speaks every function is invariant, and it has no part in those of others.
    let bound: HashSet<usize> = spans.iter().flat_map(|s| [s.a, s.b]).collect();
    let mut first = Vec::with_capacity(classes.len());
    let mut unknowns = 0;
    for (id, class) in classes.iter().enumerate() {
        first.push(unknowns);
        unknowns += if bound.contains(&id) { class.bits() } else { 0 };
    }
    let mut equations = Echelon::new(unknowns);
    let mut row = Row::zero(unknowns);
    let (mut known, mut seen) = (HashSet::new(), HashSet::new());
    let (mut flips, mut free) = (Vec::new(), Row::zero(unknowns));
    for span in spans {
        let place = |class: usize| first.get(class).copied().unwrap_or(0);
        if !known.insert((Arc::as_ptr(&span.vectors), span.a, span.b)) {
            continue;
        }
        for vector in span.vectors.iter() {
            flips.clear();
            flips.extend(vector.ones().map(|at| match at.checked_sub(span.split) {
                None => place(span.a) + at,
                Some(at) => place(span.b) + at,
            }));
            // Most cases leave the same bits free: each is an equation of its own, once.
            let first = match flips.as_slice() {
                [one] => !free.get(*one),
                _ => seen.insert(flips.clone()),
            };
            if !first {
                continue;
            }
            if let [one] = flips.as_slice() {
                free.flip(*one);
            }
            row.clear();
            flips.iter().for_each(|at| row.flip(*at));
            equations.insert(&mut row);
        }
    }
    let functions = equations.orthogonal();
    let dimension = |(id, (class, first)): (usize, (&Class, &usize))| {
        if !bound.contains(&id) {
            return class.bits();
        }
        let mut space = Echelon::new(class.bits());
        let mut part = Row::zero(class.bits());
        for function in &functions {
            part.clear();
            for at in function.ones() {
                if (*first..first + class.bits()).contains(&at) {
                    part.flip(at - first);
                }
            }
            space.insert(&mut part);
        }
        space.rank()
    };
    classes
        .iter()
        .zip(&first)
        .enumerate()
        .map(dimension)
        .collect()
}
