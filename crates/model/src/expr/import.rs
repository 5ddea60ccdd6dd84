//! Expressions of one arena in another one.

use super::ids::{IdMap, IdSet};
use super::walk::{again, each_child};
use super::{Arena, ExprId, Node};

/// Builds expressions once more in another arena. What symbols and bytes of the packet are there, `leaf` says; nobody
/// looks at what the place of a byte is computed from.
pub fn imported(
    from: &Arena,
    to: &mut Arena,
    roots: &[ExprId],
    leaf: &mut dyn FnMut(&mut Arena, ExprId) -> ExprId,
) -> Vec<ExprId> {
    let mut made: IdMap<ExprId, ExprId> = IdMap::default();
    for id in above_leaves(from, roots) {
        let get = |e: &ExprId| made.get(e).copied().unwrap_or(*e);
        let (node, width) = (from.node(id), from.width(id));
        let new = match node {
            Node::Const(c) => to.number(*c, width),
            Node::Sym(_) | Node::Byte { .. } => leaf(to, id),
            node => again(to, id, node, width, &get),
        };
        made.insert(id, new);
    }
    let of = |e: &ExprId| made.get(e).copied().unwrap_or(*e);
    roots.iter().map(of).collect()
}

/// Everything that these are made of, themselves included, operands first; nothing that the place of a byte is
/// computed from.
#[must_use]
pub fn above_leaves(arena: &Arena, roots: &[ExprId]) -> Vec<ExprId> {
    let mut seen: IdSet<ExprId> = IdSet::default();
    let mut todo: Vec<ExprId> = roots.to_vec();
    while let Some(e) = todo.pop() {
        if seen.insert(e) && !matches!(arena.node(e), Node::Byte { .. }) {
            each_child(arena.node(e), |c| todo.push(c));
        }
    }
    let mut all: Vec<ExprId> = seen.into_iter().collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::super::eval::Assignment;
    use super::super::{Bin, Origin, Rel};
    use super::*;

    #[test]
    fn an_expression_means_the_same_elsewhere() {
        let mut from = Arena::new();
        let zero = from.number(0, 64);
        let length = from.byte(zero);
        let zeros = from.number(0, 56);
        let offset = from.concat(&[zeros, length]);
        let far = from.byte(offset);
        let count = from.sym("count", 8, Origin::Param);
        let sum = from.binary(Bin::Add, far, count);
        let three = from.number(3, 8);
        let product = from.binary(Bin::Mul, sum, three);
        let less = from.compare(Rel::Less, product, three);
        let whole = from.ite(less, sum, product);

        let mut to = Arena::new();
        // Other numbers than there.
        for n in 0..5 {
            to.number(n, 8);
        }
        let mut leaves = Vec::new();
        let made = imported(&from, &mut to, &[whole], &mut |to, leaf| {
            leaves.push(leaf);
            let at = to.number(leaves.len() as u64, 64);
            to.byte(at)
        });
        assert_eq!(leaves, [far, count]);
        for (x, y) in [(0_u8, 0_u8), (1, 0), (85, 1), (200, 57)] {
            let packet = [(1, x), (2, y)].into();
            let found = Assignment::new(IdMap::default(), packet).value(&to, made[0]);
            let sum = x.wrapping_add(y);
            let product = sum.wrapping_mul(3);
            let wanted = if product < 3 { sum } else { product };
            assert_eq!(found, u64::from(wanted), "{x} {y}");
        }
    }
}
