//! Which ports push and which pull.

use std::collections::HashMap;

use crate::element::Class;
use crate::error::Error;
use crate::language::Graph;

/// For each element its inputs and outputs: true where packets are pulled. Agnostic ports of one element are all of one
/// kind, and both ends of a connection are; what nothing decides pushes.
pub(super) fn processing(
    graph: &Graph,
    classes: &[&Class],
    ports: &[(usize, usize)],
    errors: &mut Vec<Error>,
) -> (Vec<Vec<bool>>, Vec<Vec<bool>>) {
    // A group of ports that are of one kind: all agnostic ports of an element, or one port that is not agnostic.
    let mut groups: HashMap<(usize, usize, usize), usize> = HashMap::new();
    let mut known: Vec<Option<bool>> = Vec::new();
    let code = |id: usize, side: usize, port: usize| {
        let processing = classes.get(id).map_or("a/a", |c| c.processing);
        let (inputs, outputs) = processing
            .split_once('/')
            .unwrap_or((processing, processing));
        let text = if side == 0 { inputs } else { outputs };
        let bytes = text.as_bytes();
        bytes.get(port).or(bytes.last()).copied().unwrap_or(b'a')
    };
    let mut agnostic: HashMap<usize, usize> = HashMap::new();
    for (id, (inputs, outputs)) in ports.iter().enumerate() {
        for (side, count) in [(0, *inputs), (1, *outputs)] {
            for port in 0..count {
                let kind = match code(id, side, port) {
                    b'h' => Some(false),
                    b'l' => Some(true),
                    _ => None,
                };
                let fresh = known.len();
                let group = match kind {
                    Some(_) => fresh,
                    None => *agnostic.entry(id).or_insert(fresh),
                };
                if group == fresh {
                    known.push(kind);
                }
                groups.insert((id, side, port), group);
            }
        }
    }
    let ends = |link: &crate::language::Link| {
        let from = groups.get(&(link.from.element, 1, link.from.port));
        let to = groups.get(&(link.to.element, 0, link.to.port));
        from.copied().zip(to.copied())
    };
    let mut near: Vec<Vec<usize>> = vec![Vec::new(); known.len()];
    for (from, to) in graph.links.iter().filter_map(ends) {
        for (a, b) in [(from, to), (to, from)] {
            if let Some(near) = near.get_mut(a) {
                near.push(b);
            }
        }
    }
    let mut stack: Vec<usize> = (0..known.len())
        .filter(|g| known.get(*g).is_some_and(Option::is_some))
        .collect();
    while let Some(group) = stack.pop() {
        let kind = known.get(group).copied().flatten();
        for next in near.get(group).map_or(&[][..], Vec::as_slice) {
            if let Some(slot @ None) = known.get_mut(*next) {
                *slot = kind;
                stack.push(*next);
            }
        }
    }
    for link in &graph.links {
        let kind = |group: usize| known.get(group).copied().flatten();
        if let Some((from, to)) = ends(link)
            && kind(from) != kind(to)
        {
            let title = |id: usize| {
                graph
                    .elements
                    .get(id)
                    .map_or_else(String::new, |e| e.title())
            };
            let word = |group| {
                if kind(group) == Some(true) {
                    "pull"
                } else {
                    "push"
                }
            };
            let what = format!(
                "'{}' {} output {} connected to '{}' {} input {}",
                title(link.from.element),
                word(from),
                link.from.port,
                title(link.to.element),
                word(to),
                link.to.port
            );
            let help = "put a Queue between push and pull, an Unqueue between pull and push";
            errors.push(Error::at(&link.place, what, help));
        }
    }
    let kinds = |side: usize| {
        let of = |(id, counts): (usize, &(usize, usize))| {
            let count = if side == 0 { counts.0 } else { counts.1 };
            let kind = |port| {
                let group = groups.get(&(id, side, port));
                group.and_then(|g| known.get(*g).copied().flatten()) == Some(true)
            };
            (0..count).map(kind).collect()
        };
        ports.iter().enumerate().map(of).collect()
    };
    (kinds(0), kinds(1))
}
