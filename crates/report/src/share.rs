//! Subtrees that occur several times in a tree, printed once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::tree::{Node, Then};

/// A number that is equal where the same follows.
pub(super) fn key(node: &Node, salt: u64) -> u64 {
    let mut h = DefaultHasher::new();
    salt.hash(&mut h);
    for a in &node.accesses {
        (&a.text, &a.line).hash(&mut h);
    }
    match &node.then {
        Then::End(end) => (&end.rewrites, &end.verdict, &end.notes).hash(&mut h),
        Then::Branches(all) => {
            for b in all {
                (&b.conditions, b.salt, b.node.key).hash(&mut h);
            }
        }
        Then::Same(label) => label.hash(&mut h),
        // What is not shown is told apart by the salt.
        Then::Deeper => {}
    }
    h.finish()
}

/// Lines that a node takes at least; one of a few is said again instead.
fn lines(node: &Node) -> usize {
    let below = match &node.then {
        Then::End(end) => 1 + end.rewrites.len(),
        Then::Branches(all) => all.iter().map(|b| 1 + lines(&b.node)).sum(),
        Then::Same(_) | Then::Deeper => 1,
    };
    node.accesses.len() + below
}

/// Says what comes more than once only the first time.
pub(super) fn share(root: &mut Node) {
    const FEW: usize = 3;
    let mut times: HashMap<u64, usize> = HashMap::new();
    fn count(node: &Node, times: &mut HashMap<u64, usize>) {
        let seen = times.entry(node.key).or_default();
        *seen += 1;
        // What is below one that came before is not said again.
        if *seen > 1 && lines(node) > FEW {
            return;
        }
        if let Then::Branches(all) = &node.then {
            all.iter().for_each(|b| count(&b.node, times));
        }
    }
    count(root, &mut times);
    let mut labels: HashMap<u64, usize> = HashMap::new();
    fn mark(node: &mut Node, times: &HashMap<u64, usize>, labels: &mut HashMap<u64, usize>) {
        if lines(node) > FEW && times.get(&node.key).is_some_and(|t| *t > 1) {
            if let Some(label) = labels.get(&node.key) {
                node.accesses.clear();
                node.then = Then::Same(*label);
                return;
            }
            let label = labels.len() + 1;
            labels.insert(node.key, label);
            node.label = Some(label);
        }
        if let Then::Branches(all) = &mut node.then {
            all.iter_mut()
                .for_each(|b| mark(&mut b.node, times, labels));
        }
    }
    mark(root, &times, &mut labels);
}
