//! Paths that begin alike, as one tree.

use std::collections::BTreeSet;

use crate::codegen::walk::{Path, Taken};

/// Steps that follow one another, and what comes behind them.
pub struct Tree {
    /// the steps; a branch leaves where its condition is not as it was
    pub steps: Vec<Taken>,
    /// what is behind them
    pub end: End,
}

/// What is behind steps.
pub enum End {
    /// a keyed operation, which is the last of them; the packets that come to it, by number
    Found(BTreeSet<usize>),
    /// a branch of which both outcomes go on: where its condition holds, and where it does not
    Fork(Taken, Box<[Tree; 2]>),
}

impl Tree {
    /// The tree of paths, each of a packet; none without paths. A path that leaves others without a branch between them is not in it.
    pub fn of(paths: &[(usize, &Path)]) -> Option<Tree> {
        Self::from(paths, 0)
    }

    fn from(paths: &[(usize, &Path)], begin: usize) -> Option<Tree> {
        let (_, first) = paths.first()?;
        let mut steps: Vec<Taken> = Vec::new();
        let mut together = paths.to_vec();
        for at in begin.. {
            let Some(step) = first.get(at) else { break };
            let like = |taken: &Taken| Taken {
                holds: step.holds,
                ..*taken
            };
            together.retain(|(_, path)| path.get(at).is_some_and(|t| like(t) == *step));
            let side = |holds: bool| -> Vec<(usize, &Path)> {
                let all = together.iter().copied();
                all.filter(|(_, path)| path[at].holds == Some(holds))
                    .collect()
            };
            if step.holds.is_some() {
                let (holds, not) = (side(true), side(false));
                if !holds.is_empty() && !not.is_empty() {
                    let both = [Self::from(&holds, at + 1)?, Self::from(&not, at + 1)?];
                    let end = End::Fork(*step, Box::new(both));
                    return Some(Tree { steps, end });
                }
            }
            steps.push(*step);
        }
        let packets = together.iter().map(|(packet, _)| *packet).collect();
        // A step that comes twice would have to be two.
        let different: BTreeSet<_> = steps.iter().map(|s| s.id).collect();
        let end = End::Found(packets);
        (different.len() == steps.len()).then_some(Tree { steps, end })
    }
}
