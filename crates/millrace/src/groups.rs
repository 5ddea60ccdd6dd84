//! Groups of connected elements of a chain that become one: each as large as it can be.

use std::collections::BTreeSet;

use millrace_chain::Description;

/// Which group each element is in: elements of one group have one number.
pub(crate) type Groups = Vec<usize>;

/// The group of an element.
pub(crate) fn of(groups: &[usize], at: usize) -> Option<usize> {
    groups.get(at).copied()
}

/// The elements of a group.
pub(crate) fn members(groups: &[usize], of: usize) -> Vec<usize> {
    let all = groups.iter().enumerate();
    all.filter(|(_, g)| **g == of).map(|(at, _)| at).collect()
}

/// The groups of pairs of connected elements, as far as they fit, and for each pair that stays apart why. `fits` says of groups whether
/// one of them can be one element.
pub(crate) fn grown(
    (mut groups, pairs): (Groups, &[(usize, usize)]),
    line: bool,
    never: impl Fn(usize) -> Option<String>,
    fits: impl Fn(&[usize], usize) -> Result<(), String>,
) -> (Groups, Vec<Option<String>>) {
    let mut apart: Vec<Option<String>>;
    loop {
        apart = vec![None; pairs.len()];
        let before = groups.clone();
        for ((one, other), apart) in pairs.iter().zip(&mut apart) {
            let (Some(a), Some(b)) = (of(&groups, *one), of(&groups, *other)) else {
                continue;
            };
            if a == b {
                continue;
            }
            let joined = groups.iter().map(|g| if *g == b { a } else { *g });
            let joined: Groups = joined.collect();
            let never = [*one, *other].into_iter().find_map(&never);
            match never.map_or_else(|| fits(&joined, a), Err) {
                Ok(()) => groups = joined,
                Err(why) => *apart = Some(why),
            }
        }
        // Along a row what did not fit cannot later. In a graph another way round may have been joined since.
        if groups == before || line {
            break;
        }
    }
    for ((one, other), apart) in pairs.iter().zip(&mut apart) {
        if of(&groups, *one) == of(&groups, *other) {
            *apart = None;
        }
    }
    (groups, apart)
}

/// Whether a chain has a cycle once each group is one element: packets would leave one and come back to it.
pub(crate) fn cycle(description: &Description, groups: &[usize]) -> bool {
    let edges: BTreeSet<(usize, usize)> = { description.neighbours().into_iter() }
        .filter_map(|(one, other)| Some((of(groups, one)?, of(groups, other)?)))
        .filter(|(one, other)| one != other)
        .collect();
    let mut left: BTreeSet<usize> = groups.iter().copied().collect();
    // What nothing leads to goes first, until nothing is left, or a cycle.
    loop {
        let entered = |group: &usize| {
            let from = edges.iter().filter(|(_, to)| to == group);
            from.map(|e| e.0).any(|from| left.contains(&from))
        };
        let free: Vec<usize> = left.iter().copied().filter(|g| !entered(g)).collect();
        if free.is_empty() {
            return !left.is_empty();
        }
        free.iter().for_each(|group| {
            left.remove(group);
        });
    }
}
