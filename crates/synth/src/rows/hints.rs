//! Rules of filters and routes of lookups as cubes: candidates for rows.
//!
//! What a row does is taken from the diagram, not from the rule, and rows are held against the diagram in the end (`list`). So a
//! rule that is read wrongly here costs rows, not correctness.

use crate::Synthesis;
use crate::field::{Base as Place, Var};
use crate::sets::{Part, compared, parts};
use millrace_click::filter::{Base, Compare, Condition, Test};
use millrace_click::meaning::Meaning;

use super::cubes::{Cube, IP, PROTOCOL, word};

/// Cubes of one condition, at most.
const MOST: usize = 64;

/// A candidate and the rule that it comes from.
#[derive(Clone, Debug)]
pub struct Hint {
    /// its packets
    pub cube: Cube,
    /// the rule
    pub from: String,
    /// the filter that it is of
    pub filter: Option<usize>,
}

/// Bad sources and routes, the longest first, then rules in order.
#[must_use]
pub fn all(of: &Synthesis) -> Vec<Hint> {
    let mut routes = Vec::new();
    let mut rules = Vec::new();
    for (id, element) in of.router.graph().elements.iter().enumerate() {
        match of.router.meaning(id) {
            Some(Meaning::Lookup(all)) => {
                for route in all {
                    let free = u64::from(!route.mask);
                    let low = u64::from(route.address & route.mask);
                    if free & (free + 1) == 0
                        && let Some(cube) = Cube::all().within(1, low, low | free)
                    {
                        let from = format!("{}: a route", element.title());
                        routes.push((
                            free,
                            Hint {
                                cube,
                                from,
                                filter: None,
                            },
                        ));
                    }
                }
            }
            Some(Meaning::Check { bad, .. }) => {
                for address in bad {
                    let value = u64::from(u32::from_be_bytes(address));
                    if let Some(cube) = Cube::all().within(2, value, value) {
                        let from = format!("{}: a bad source", element.title());
                        routes.push((
                            0,
                            Hint {
                                cube,
                                from,
                                filter: None,
                            },
                        ));
                    }
                }
            }
            Some(Meaning::Filter(all)) => {
                for (n, (_, condition)) in all.iter().enumerate() {
                    let from = format!("{}: rule {}", element.title(), n + 1);
                    for cube in cubes(condition, true).unwrap_or_default() {
                        let from = from.clone();
                        rules.push(Hint {
                            cube,
                            from,
                            filter: Some(id),
                        });
                    }
                }
            }
            _ => {}
        }
    }
    routes.sort_by_key(|r| r.0);
    // Last, protocols: rewriters know those that have ports.
    let protocols = [6, 17, 1].into_iter().filter_map(|protocol| {
        let cube = Cube::all().within(PROTOCOL, protocol, protocol)?;
        let from = format!("protocol {protocol}");
        Some(Hint {
            cube,
            from,
            filter: None,
        })
    });
    let routes = routes.into_iter().map(|r| r.1);
    // What takes all packets says nothing of which they are.
    let all = routes.chain(rules).chain(protocols);
    all.filter(|hint| hint.cube != Cube::all()).collect()
}

/// Cubes that a condition consists of, where it holds or does not.
fn cubes(condition: &Condition, holds: bool) -> Option<Vec<Cube>> {
    match (condition, holds) {
        (Condition::Constant(answer), _) => Some(match *answer == holds {
            true => vec![Cube::all()],
            false => Vec::new(),
        }),
        (Condition::Not(inner), _) => cubes(inner, !holds),
        (Condition::All(all), true) | (Condition::Any(all), false) => {
            all.iter().try_fold(vec![Cube::all()], |made, one| {
                let one = cubes(one, holds)?;
                let both: Vec<Cube> = made
                    .iter()
                    .flat_map(|a| one.iter().filter_map(|b| a.and(b)))
                    .collect();
                (both.len() <= MOST).then_some(both)
            })
        }
        (Condition::Any(all), true) | (Condition::All(all), false) => {
            let mut made = Vec::new();
            for one in all {
                made.extend(cubes(one, holds)?);
            }
            (made.len() <= MOST).then_some(made)
        }
        (Condition::If(_), _) => None,
        (Condition::Test(one), _) => test(one, holds),
    }
}

fn test(test: &Test, holds: bool) -> Option<Vec<Cube>> {
    let bytes = test.bytes.min(8);
    let cut = |number: u64| number.to_be_bytes().get(8 - bytes..).map(<[u8]>::to_vec);
    let (mask, value) = (cut(test.mask)?, cut(test.value)?);
    let (base, first) = match test.base {
        Base::Network => (Place::Frame, u32::from(IP) + test.offset as u32),
        Base::Transport => (Place::Upper(IP), test.offset as u32),
        Base::Link => return Some(vec![Cube::all()]),
    };
    let parts = parts(base, IP, first, &mask, &value);
    let (fields, others): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(|p| known(p.var));
    let [only] = fields.as_slice() else {
        return (fields.is_empty()).then(|| vec![Cube::all()]);
    };
    if !others.is_empty() {
        return None;
    }
    let intervals = compared(*only)?;
    let word = word(only.var)?;
    let mut made = Vec::new();
    for (n, (low, order)) in intervals.iter().enumerate() {
        let high = intervals.get(n + 1).map_or(only.var.most(), |i| i.0 - 1);
        let fits = match test.compare {
            Compare::Equal => order.is_eq(),
            Compare::Unequal => order.is_ne(),
            Compare::Less => order.is_lt(),
            Compare::AtMost => order.is_le(),
            Compare::Greater => order.is_gt(),
            Compare::AtLeast => order.is_ge(),
        };
        if fits == holds {
            made.extend(Cube::all().within(word, *low, high));
        }
    }
    (made.len() <= MOST).then_some(made)
}

fn known(var: Var) -> bool {
    word(var).is_some()
}
