//! From pairs that must meet to equations over the key bits, and their null space.

use std::collections::{BTreeMap, HashSet};

use super::class::Class;
use super::spans::Span;
use crate::gf2::{Echelon, Row};

/// Which key bits are unknowns: of each port those that reach the `index` low bits of a hash. Bit `x` of
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
    for span in spans {
        let (Some(a), Some(b)) = (classes.get(span.a), classes.get(span.b)) else {
            continue;
        };
        for vector in &span.vectors {
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
    let mut first = Vec::with_capacity(classes.len());
    let mut unknowns = 0;
    for class in classes {
        first.push(unknowns);
        unknowns += class.bits();
    }
    let mut equations = Echelon::new(unknowns);
    let mut row = Row::zero(unknowns);
    for span in spans {
        let place = |class: usize| first.get(class).copied().unwrap_or(0);
        for vector in &span.vectors {
            row.clear();
            for at in vector.ones() {
                match at.checked_sub(span.split) {
                    None => row.flip(place(span.a) + at),
                    Some(at) => row.flip(place(span.b) + at),
                }
            }
            equations.insert(&mut row);
        }
    }
    let functions = equations.orthogonal();
    let dimension = |(class, first): (&Class, &usize)| {
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
    classes.iter().zip(&first).map(dimension).collect()
}
