//! Rows by the words of flows: a rule of a filter, a row.
//!
//! Candidates ([`super::hints`]) get what the diagram says of a packet of theirs that no earlier row takes. The list is then made
//! a diagram again and held against the one that it came from; where they differ, rows in front set it right. So the list is exact
//! whatever the candidates are, and short where they are those of the chain.

use std::collections::HashMap;

use crate::diagram::{Full, Id, Node, Store, output};
use crate::field::Var;

use super::cubes::{Cube, FROM, PROTOCOL, TO, WORDS, word};
use super::hints::Hint;

/// Rows that set a list right, at most.
const MOST_PATCHES: usize = 1 << 17;

/// A row: packets of a cube, the diagram that decides further, and the rule that it comes from.
#[derive(Clone, Debug)]
pub struct Line {
    /// its packets
    pub cube: Cube,
    /// what decides further
    pub to: Id,
    /// the rule
    pub from: Option<String>,
}

/// Why there is no list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// the budget is spent
    Full,
    /// more rows than these would be needed
    Rows(usize),
}

impl From<Full> for Stop {
    fn from(_: Full) -> Self {
        Self::Full
    }
}

/// Rows below which no shorter list is looked for.
const SHORT: usize = 64;

/// The shortest of the lists that routes alone give, and routes with the rules of one filter or of all: rules of a filter that packets of a region
/// do not come to are a hindrance.
///
/// # Errors
/// The budget is spent, or rows would be too many.
pub fn shortest(store: &mut Store, id: Id, hints: &[Hint]) -> Result<Vec<Line>, Stop> {
    let mut filters: Vec<usize> = hints.iter().filter_map(|h| h.filter).collect();
    filters.dedup();
    let some = |wanted: &dyn Fn(usize) -> bool| -> Vec<Hint> {
        let fits = |h: &&Hint| h.filter.is_none_or(wanted);
        hints.iter().filter(fits).cloned().collect()
    };
    let mut sets = vec![some(&|_| false)];
    sets.extend(filters.iter().map(|one| some(&|f| f == *one)));
    if filters.len() > 1 {
        sets.push(some(&|_| true));
    }
    let mut best = None;
    for set in sets {
        let made = list(store, id, &set);
        let length = |m: &Result<Vec<Line>, Stop>| m.as_ref().map_or(usize::MAX, Vec::len);
        if best.as_ref().is_none_or(|b| length(&made) < length(b)) {
            best = Some(made);
        }
        if best.as_ref().is_some_and(|b| length(b) <= SHORT) {
            break;
        }
    }
    best.unwrap_or_else(|| list(store, id, &[]))
}

/// The list of a diagram whose first variables are words of flows. The last row takes all packets.
///
/// # Errors
/// The budget is spent, or rows would be too many.
pub fn list(store: &mut Store, root: Id, hints: &[Hint]) -> Result<Vec<Line>, Stop> {
    let mut targets = Targets::default();
    let root = targets.cut(store, root, &mut HashMap::new())?;
    let mut lines: Vec<(Cube, usize, Option<String>)> = Vec::new();
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    let find = |store: &Store, point: &[u64; WORDS]| {
        let value = |v: Var| word(v).and_then(|w| point.get(w).copied()).unwrap_or(0);
        targets.number(store.find(root, &value))
    };
    for hint in hints {
        let mut cubes = with_protocol(&hint.cube);
        // The last is looked at first.
        cubes.reverse();
        while let Some(cube) = cubes.pop() {
            // Few earlier rows meet a rule.
            let met: Vec<Cube> = lines
                .iter()
                .filter(|l| l.0.meets(&cube))
                .map(|l| l.0)
                .collect();
            if met.iter().any(|m| m.covers(&cube)) {
                continue;
            }
            // Corners are where single addresses differ from the rest: they count where there is nothing else.
            let mut points: Vec<_> = (0..9).map(|_| draw.point(&cube)).collect();
            points.retain(|p| !met.iter().any(|m| m.has(p)));
            if points.is_empty() {
                points.extend([cube.0.map(|i| i.0), cube.0.map(|i| i.1)]);
                points.retain(|p| !met.iter().any(|m| m.has(p)));
            }
            let mut said: Vec<usize> = points.iter().filter_map(|p| find(store, p)).collect();
            said.sort_unstable();
            said.dedup();
            match said.as_slice() {
                [to] => lines.push((cube, *to, Some(hint.from.clone()))),
                [_, _, ..] if cube.whole(PROTOCOL) => {
                    // Protocols that have ports differ from those that have none.
                    let of = |p| cube.within(PROTOCOL, p, p);
                    cubes.extend([17, 6].into_iter().filter_map(of));
                }
                _ => {}
            }
        }
    }
    // What most packets have that no candidate takes comes last.
    let mut points: Vec<_> = (0..256).map(|_| draw.point(&Cube::all())).collect();
    points.retain(|p| !lines.iter().any(|l| l.0.has(p)));
    let most = commonest(points.iter().filter_map(|p| find(store, p)));
    lines.push((Cube::all(), most.unwrap_or(0), None));
    redundant(&mut lines);
    let mut all = differences(store, root, &lines)?;
    all.extend(lines);
    Ok(all
        .into_iter()
        .filter_map(|(cube, to, from)| {
            let to = targets.all.get(to).copied()?;
            Some(Line { cube, to, from })
        })
        .collect())
}

/// The number that occurs most, the lowest of several.
fn commonest(numbers: impl Iterator<Item = usize>) -> Option<usize> {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for number in numbers {
        *counts.entry(number).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|c| (c.1, usize::MAX - c.0));
    most.map(|m| m.0)
}

/// Ports are those of TCP and UDP: a cube of ports without a protocol is two.
fn with_protocol(cube: &Cube) -> Vec<Cube> {
    let ports = !cube.whole(TO) || !cube.whole(FROM);
    if !ports {
        return vec![*cube];
    }
    let of = |p| cube.within(PROTOCOL, p, p);
    [6, 17].into_iter().filter_map(of).collect()
}

/// Takes rows out that change nothing: all later ones that meet them lead to the same, the last among them.
fn redundant(lines: &mut Vec<(Cube, usize, Option<String>)>) {
    let mut kept: Vec<(Cube, usize, Option<String>)> = Vec::with_capacity(lines.len());
    while let Some(line) = lines.pop() {
        // Kept rows are later ones, the latest first.
        let same = !kept.is_empty() && kept.iter().all(|k| k.1 == line.1 || !k.0.meets(&line.0));
        if !same {
            kept.push(line);
        }
    }
    kept.reverse();
    *lines = kept;
}

/// Rows for packets of which a list says something else than a diagram.
fn differences(
    store: &mut Store,
    root: Id,
    lines: &[(Cube, usize, Option<String>)],
) -> Result<Vec<(Cube, usize, Option<String>)>, Stop> {
    let nowhere = store.nowhere();
    let mut rules = Vec::with_capacity(lines.len());
    for (cube, to, _) in lines {
        let leaf = store.leaf(output(*to));
        rules.push(cube.diagram(store, leaf, nowhere)?);
    }
    let made = store.first(&rules, nowhere)?;
    let mut found = Vec::new();
    if made != root {
        let differ = differ(store, root, made, nowhere, &mut HashMap::new())?;
        walk(store, differ, nowhere, Cube::all(), &mut found)?;
    }
    Ok(found)
}

/// The first diagram where the second is another, else nothing.
fn differ(
    store: &mut Store,
    f: Id,
    g: Id,
    nowhere: Id,
    memo: &mut HashMap<(Id, Id), Id>,
) -> Result<Id, Stop> {
    if f == g {
        return Ok(nowhere);
    }
    let Some(top) = [f, g].into_iter().filter_map(|id| store.top(id)).min() else {
        return Ok(f);
    };
    if let Some(done) = memo.get(&(f, g)) {
        return Ok(*done);
    }
    let mut cuts = vec![0];
    for id in [f, g] {
        if let Node::Branch { var, kids } = store.node(id)
            && *var == top
        {
            cuts.extend(kids.iter().map(|k| k.0));
        }
    }
    cuts.sort_unstable();
    cuts.dedup();
    let mut kids = Vec::new();
    for cut in cuts {
        let (f, g) = (store.at(f, top, cut), store.at(g, top, cut));
        kids.push((cut, differ(store, f, g, nowhere, memo)?));
    }
    let made = store.select(top, kids)?;
    memo.insert((f, g), made);
    Ok(made)
}

fn walk(
    store: &Store,
    id: Id,
    nowhere: Id,
    cube: Cube,
    found: &mut Vec<(Cube, usize, Option<String>)>,
) -> Result<(), Stop> {
    if id == nowhere {
        return Ok(());
    }
    match store.node(id) {
        Node::Leaf(leaf) => {
            if found.len() >= MOST_PATCHES {
                return Err(Stop::Rows(MOST_PATCHES));
            }
            let to = Targets::of_leaf(*leaf).unwrap_or(0);
            found.extend(with_protocol(&cube).into_iter().map(|c| (c, to, None)));
        }
        Node::Branch { var: own, kids } => {
            for (n, (first, kid)) in kids.iter().enumerate() {
                let last = kids.get(n + 1).map_or(own.most(), |k| k.0 - 1);
                let inner = word(*own).and_then(|w| cube.within(w, *first, last));
                if let Some(inner) = inner {
                    walk(store, *kid, nowhere, inner, found)?;
                }
            }
        }
    }
    Ok(())
}

/// Diagrams that rows lead to, numbered: leaves in their place.
#[derive(Default)]
struct Targets {
    all: Vec<Id>,
    numbers: HashMap<Id, usize>,
}

impl Targets {
    fn of_leaf(leaf: u32) -> Option<usize> {
        leaf.checked_sub(output(0)).map(|n| n as usize)
    }

    fn number(&self, leaf: u32) -> Option<usize> {
        Self::of_leaf(leaf).filter(|n| *n < self.all.len())
    }

    /// The diagram with numbers in place of what is below the words of flows.
    fn cut(&mut self, store: &mut Store, id: Id, memo: &mut HashMap<Id, Id>) -> Result<Id, Stop> {
        if let Some(done) = memo.get(&id) {
            return Ok(*done);
        }
        let made = match store.node(id).clone() {
            Node::Branch { var, kids } if word(var).is_some() => {
                let mut new = Vec::with_capacity(kids.len());
                for (first, kid) in &kids {
                    new.push((*first, self.cut(store, *kid, memo)?));
                }
                store.select(var, new)?
            }
            _ => {
                let next = self.all.len();
                let number = *self.numbers.entry(id).or_insert(next);
                if number == next {
                    self.all.push(id);
                }
                store.leaf(output(number))
            }
        };
        memo.insert(id, made);
        Ok(made)
    }
}

/// Points of cubes, drawn the same each time (Marsaglia, Xorshift RNGs, JSS 8(14), 2003).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn point(&mut self, cube: &Cube) -> [u64; WORDS] {
        std::array::from_fn(|w| {
            let (low, high) = cube.get(w);
            // Protocols that have ports are asked for most.
            match self.next() % 3 {
                0 if w == PROTOCOL && cube.whole(PROTOCOL) => 6,
                1 if w == PROTOCOL && cube.whole(PROTOCOL) => 17,
                _ => low + self.next() % (high - low).saturating_add(1).max(1),
            }
        })
    }
}
