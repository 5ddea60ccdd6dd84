//! Rules of long filters that cannot change what becomes of a packet: one other rule makes each of them so
//! (`millrace_classify::reduce`), or several together (`millrace_classify::together`).
//!
//! A rule is a box over addresses, ports, the protocol, and whether a packet is a later fragment, which has no ports. Protocols are
//! numbered so that TCP and UDP stand together: a test of ports is one of both.

use millrace_classify::{Budget, Field, Key, Order, Rules, Why, redundant, together};
use millrace_click::filter::{Base, Compare, Condition, Test};
use millrace_click::meaning::Meaning;
use serde::Serialize;

use crate::Synthesis;

/// Rules below which a filter is not looked at.
const FEW: usize = 16;
/// Words of a key: source, destination, ports, protocol, later fragment.
const WORDS: [&str; 6] = ["src", "dst", "sport", "dport", "proto", "later"];

/// The highest number of each word.
const MOST: [u32; 6] = [u32::MAX, u32::MAX, 65_535, 65_535, 255, 1];

type Box6 = [(u32, u32); 6];

/// A rule that can go.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Gone {
    /// its number, from 1
    pub rule: usize,
    /// `shadowed` by an earlier rule, `repeated` by a later one, what the filter does without it (`default`), or of several others
    /// each a part of these (`together`)
    pub why: &'static str,
    /// the other rule's number
    pub by: Option<usize>,
    /// numbers of several others
    pub among: Vec<usize>,
}

/// A long filter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Filter {
    /// the element
    pub element: String,
    /// its file
    pub file: String,
    /// its line
    pub line: u32,
    /// how many rules it has
    pub rules: usize,
    /// those that can go, all together
    pub redundant: Vec<Gone>,
    /// whether all rules were compared: each tests addresses, ports and protocols alone, and the budget was enough
    pub compared: bool,
}

/// All long filters of a configuration.
#[must_use]
pub fn filters(of: &Synthesis) -> Vec<Filter> {
    let elements = of.router.graph().elements.iter().enumerate();
    elements
        .filter_map(|(id, element)| {
            let Some(Meaning::Filter(rules)) = of.router.meaning(id) else {
                return None;
            };
            if rules.len() <= FEW {
                return None;
            }
            let found = compared(&rules);
            Some(Filter {
                element: element.title(),
                file: element.place.file.to_string(),
                line: element.place.line,
                rules: rules.len(),
                compared: found.as_ref().is_some_and(|f| f.1),
                redundant: found.map_or(Vec::new(), |f| f.0),
            })
        })
        .collect()
}

/// The rules that can go, and whether the budget was enough; none where a rule is no box.
fn compared(rules: &[(Option<usize>, Condition)]) -> Option<(Vec<Gone>, bool)> {
    let fields = (0_u32..).zip(WORDS).map(|(n, name)| Field {
        name: name.into(),
        offset: 4 * n,
        bytes: 4,
        order: Order::Host,
    });
    let key = Key::new(4 * WORDS.len() as u32, fields.collect()).ok()?;
    // What the filter drops has class 0, as what no rule matches.
    let outputs = rules.iter().filter_map(|r| r.0).max().unwrap_or(0);
    let mut boxes = Rules::new(key, outputs as u32 + 2, rules.len());
    for (n, (output, condition)) in (0_u32..).zip(rules) {
        let mut ranges: Box6 = MOST.map(|most| (0, most));
        within(condition, &mut ranges)?;
        let class = output.map_or(0, |o| o as u32 + 1);
        boxes.push_box(&ranges, class, n + 1).ok()?;
    }
    let (found, enough) = redundant(&boxes, &Budget::default());
    let (several, all) = together(&boxes, &found, &Budget::default());
    let several = several.into_iter().map(|r| Gone {
        rule: r.index + 1,
        why: "together",
        by: None,
        among: r.among.into_iter().map(|other| other + 1).collect(),
    });
    let gone = found.into_iter().map(|r| {
        let (why, by) = match r.why {
            Why::Shadowed(by) => ("shadowed", Some(by + 1)),
            Why::Repeated(by) => ("repeated", Some(by + 1)),
            Why::Default => ("default", None),
        };
        Gone {
            rule: r.index + 1,
            why,
            by,
            among: Vec::new(),
        }
    });
    let mut gone: Vec<Gone> = gone.chain(several).collect();
    gone.sort_by_key(|g| g.rule);
    Some((gone, enough && all))
}

/// Narrows a box to where a condition holds; none if that is no box.
fn within(condition: &Condition, ranges: &mut Box6) -> Option<()> {
    match condition {
        Condition::Constant(true) => Some(()),
        Condition::All(all) => all.iter().try_for_each(|c| within(c, ranges)),
        Condition::Any(any) => {
            // Protocols alone.
            let mut numbers: Vec<u32> = any.iter().map(protocol).collect::<Option<_>>()?;
            numbers.sort_unstable();
            numbers.dedup();
            let (first, last) = (*numbers.first()?, *numbers.last()?);
            (last - first + 1 == numbers.len() as u32).then(|| narrow(ranges, 4, (first, last)))?
        }
        Condition::Test(test) => one(test, ranges),
        _ => None,
    }
}

fn protocol(condition: &Condition) -> Option<u32> {
    match condition {
        Condition::Test(Test {
            base: Base::Network,
            offset: 9,
            bytes: 1,
            mask: 0xff,
            compare: Compare::Equal,
            value,
        }) => Some(numbered(*value as u32)),
        _ => None,
    }
}

/// A protocol's number among those of which TCP and UDP come first.
fn numbered(protocol: u32) -> u32 {
    match protocol {
        6 => 0,
        17 => 1,
        below if below < 6 => below + 2,
        below if below < 17 => below + 1,
        other => other,
    }
}

fn narrow(ranges: &mut Box6, word: usize, (low, high): (u32, u32)) -> Option<()> {
    let range = ranges.get_mut(word)?;
    *range = (range.0.max(low), range.1.min(high));
    // A rule that contradicts itself is no box.
    (range.0 <= range.1).then_some(())
}

fn one(test: &Test, ranges: &mut Box6) -> Option<()> {
    let (word, most) = match (test.base, test.offset, test.bytes) {
        (Base::Network, 12, 4) => (0, u32::MAX),
        (Base::Network, 16, 4) => (1, u32::MAX),
        (Base::Transport, 0, 2) => (2, 65_535),
        (Base::Transport, 2, 2) => (3, 65_535),
        (Base::Network, 9, 1) => {
            let number = protocol(&Condition::Test(*test))?;
            return narrow(ranges, 4, (number, number));
        }
        // First fragments alone.
        (Base::Network, 6, 2) if test.mask == 0x1fff && test.value == 0 => {
            return match test.compare {
                Compare::Equal => narrow(ranges, 5, (0, 0)),
                _ => None,
            };
        }
        _ => return None,
    };
    let (mask, value) = (
        u32::try_from(test.mask).ok()?,
        u32::try_from(test.value).ok()?,
    );
    if test.base == Base::Transport {
        narrow(ranges, 5, (0, 0))?;
    }
    let free = most & !mask;
    let prefix = free & free.wrapping_add(1) == 0 && value & free == 0;
    match test.compare {
        Compare::Equal if prefix => narrow(ranges, word, (value, value | free)),
        _ if free != 0 => None,
        Compare::Less => narrow(ranges, word, (0, value.checked_sub(1)?)),
        Compare::AtMost => narrow(ranges, word, (0, value)),
        Compare::Greater => narrow(ranges, word, (value.checked_add(1)?, most)),
        Compare::AtLeast => narrow(ranges, word, (value, most)),
        Compare::Equal | Compare::Unequal => None,
    }
}

/// What people read of them.
#[must_use]
pub fn text(filters: &[Filter]) -> String {
    let mut text = String::new();
    for filter in filters {
        text.push_str(&format!(
            "\nrules that change nothing: {} of {} of {} ({}:{})\n",
            filter.redundant.len(),
            filter.rules,
            filter.element,
            filter.file,
            filter.line
        ));
        if !filter.compared {
            text.push_str("    not all were compared\n");
        }
        for gone in &filter.redundant {
            let by = match gone.among.as_slice() {
                [] => gone.by.map_or(String::new(), |by| format!(" by {by}")),
                among => several(among),
            };
            text.push_str(&format!("    {}: {}{by}\n", gone.rule, gone.why));
        }
    }
    text
}

/// Numbers of rules, the first of many.
fn several(among: &[usize]) -> String {
    let first: Vec<String> = among.iter().take(FEW).map(usize::to_string).collect();
    let more = match among.len().saturating_sub(FEW) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(" by {}{more}", first.join(", "))
}
