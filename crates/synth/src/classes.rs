//! Traffic classes: what becomes of packets, and which packets these are, for people and as JSON. Classes of flows, behind the
//! rewriters that packets pass, are in `behind`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Synthesis;
use crate::action::{Action, Value, Verdict};
use crate::diagram::{Id, Node};
use crate::field::{Base, Var};

mod behind;

/// Paths of a class that are listed.
const MOST_PATHS: usize = 64;

/// A traffic class: packets of which the same becomes.
#[derive(Clone, Debug, Serialize)]
pub struct Class {
    /// `forward`, `drop`, `hand-over` or `rewrite`
    pub verdict: &'static str,
    /// the device by which they leave
    pub device: Option<String>,
    /// the element where they leave or end
    pub element: String,
    /// its file and line
    pub file: String,
    /// its line
    pub line: u32,
    /// rewriters that its packets have passed
    pub behind: Vec<String>,
    /// whether they are answers to a flow
    pub answer: bool,
    /// fields that are written, and what they become
    pub writes: Vec<String>,
    /// conditions on fields: one of these conjunctions
    pub packets: Vec<String>,
    /// conjunctions that are not listed
    pub more: u64,
}

/// A path through the diagram: intervals of fields, and the action.
pub type Path = (Vec<(Var, u64, u64)>, u32);

/// Paths of a diagram in order, as many as are asked for; and how many there are, at most 2^64 - 1.
#[must_use]
pub fn paths(of: &Synthesis, root: Id, most: usize) -> (Vec<Path>, u64) {
    let mut found = Vec::new();
    let mut at: Vec<(Var, u64, u64)> = Vec::new();
    walk(of, root, &mut at, &mut found, most);
    let mut counts: BTreeMap<Id, u64> = BTreeMap::new();
    for id in of.store.reachable(root).into_iter().rev() {
        let count = match of.store.node(id) {
            Node::Leaf(_) => 1,
            Node::Branch { kids, .. } => kids.iter().fold(0_u64, |sum, k| {
                sum.saturating_add(counts.get(&k.1).copied().unwrap_or(0))
            }),
        };
        counts.insert(id, count);
    }
    (found, counts.get(&root).copied().unwrap_or(0))
}

fn walk(of: &Synthesis, id: Id, at: &mut Vec<(Var, u64, u64)>, found: &mut Vec<Path>, most: usize) {
    if found.len() >= most {
        return;
    }
    match of.store.node(id) {
        Node::Leaf(action) => found.push((at.clone(), *action)),
        Node::Branch { var, kids } => {
            for (n, (first, kid)) in kids.iter().enumerate() {
                let last = kids.get(n + 1).map_or(var.most(), |k| k.0 - 1);
                at.push((*var, *first, last));
                walk(of, *kid, at, found, most);
                at.pop();
            }
        }
    }
}

/// All classes: those that leave first.
#[must_use]
pub fn classes(of: &Synthesis) -> Vec<Class> {
    let mut by_action: BTreeMap<u32, ()> = BTreeMap::new();
    for id in of.store.reachable(of.root) {
        if let Node::Leaf(action) = of.store.node(id) {
            by_action.insert(*action, ());
        }
    }
    let mut classes: Vec<(Verdict, Class)> = by_action
        .keys()
        .filter_map(|number| {
            let action = of.actions.get(*number)?;
            Some((action.verdict, class(of, *number, action)))
        })
        .collect();
    if of.flows.any() {
        // What becomes of a rewriter's packets is said of the flows.
        classes.retain(|c| !matches!(c.0, Verdict::State(_)));
    }
    classes.extend(behind::classes(of));
    classes.sort_by_key(|c| c.0);
    let mut listed: Vec<Class> = Vec::new();
    for (_, class) in classes {
        let same = listed.iter_mut().find(|other| other.same(&class));
        match same {
            Some(other) => {
                other.more = other.more.saturating_add(class.more);
                other.packets.extend(class.packets);
            }
            None => listed.push(class),
        }
    }
    listed
}

impl Class {
    /// Whether the same becomes of the packets of two.
    fn same(&self, other: &Self) -> bool {
        let of = |c: &Self| (c.verdict, c.line, c.answer);
        of(self) == of(other)
            && self.device == other.device
            && self.element == other.element
            && self.file == other.file
            && self.behind == other.behind
            && self.writes == other.writes
    }
}

fn class(of: &Synthesis, number: u32, action: &Action) -> Class {
    let end = |id: Id| match of.store.node(id) {
        Node::Leaf(leaf) => Some(*leaf == number),
        Node::Branch { .. } => None,
    };
    let (packets, more) = cubes(of, of.root, &end);
    Class {
        writes: writes(action, &|_, _| None),
        packets,
        more,
        ..outcome(of, action)
    }
}

/// What becomes of packets by an action, and where.
fn outcome(of: &Synthesis, action: &Action) -> Class {
    let (verdict, element, device) = match action.verdict {
        Verdict::Leave { element, port } => ("forward", element, Some(port)),
        Verdict::Drop(element) | Verdict::Again(element) => ("drop", element, None),
        Verdict::Hand(element) => ("hand-over", element, None),
        Verdict::Pass(element) => ("pass", element, None),
        Verdict::State(asked) => {
            let element = of.actions.asked(asked).map_or(usize::MAX, |s| s.at.element);
            ("rewrite", element, None)
        }
    };
    let flat = of.router.graph().elements.get(element);
    Class {
        verdict,
        device: device.and_then(|p| of.ports.get(usize::from(p)).cloned()),
        element: flat.map_or_else(String::new, |e| e.title()),
        file: flat.map_or_else(String::new, |e| e.place.file.to_string()),
        line: flat.map_or(0, |e| e.place.line),
        behind: Vec::new(),
        answer: false,
        writes: Vec::new(),
        packets: Vec::new(),
        more: 0,
    }
}

/// What is written, in words. `known` says what a field becomes that a flow's entry decides; nothing if it stays what it is.
fn writes(action: &Action, known: &dyn Fn(Var, Value) -> Option<Option<String>>) -> Vec<String> {
    let link = link(action);
    let rest = action.writes.iter().filter(|(var, _)| {
        let part = matches!(**var, Var::Bits(Base::Frame, bit, _) if bit < 96);
        !part || link.is_empty()
    });
    let mut words: Vec<String> = rest
        .filter_map(|(var, write)| {
            if let Some(said) = known(*var, write.value) {
                return said.map(|value| format!("{var} = {value}"));
            }
            Some(match write.value {
                Value::Constant(number) => format!("{var} = {}", show(*var, number)),
                Value::Field(from, 0) => format!("{var} = {from}"),
                Value::Field(from, more) if from == *var && more < 0 => {
                    format!("{var} -= {}", -more)
                }
                Value::Field(from, more) => format!("{var} = {from} + {more}"),
            })
        })
        .collect();
    words.splice(0..0, link);
    if action.writes.values().any(|w| w.sums.header.is_some()) {
        words.push("ip sum by difference".into());
    }
    if action.writes.values().any(|w| w.sums.upper != 0) {
        words.push("transport sum by difference".into());
    }
    if action.cut.is_some() {
        words.push("padding cut".into());
    }
    words
}

/// The Ethernet addresses, where all of both is written.
fn link(action: &Action) -> Vec<String> {
    let mut bytes = [0_u8; 12];
    let mut bits = 0_u32;
    for (var, write) in &action.writes {
        let (Var::Bits(Base::Frame, first, width), Value::Constant(value)) = (*var, write.value)
        else {
            continue;
        };
        for n in (0..u32::from(width)).filter(|n| first + n < 96) {
            let place = first + n;
            bits += 1;
            if let Some(byte) = bytes.get_mut(place as usize / 8) {
                *byte |= ((value >> (u32::from(width) - 1 - n) & 1) as u8) << (7 - place % 8);
            }
        }
    }
    if bits < 96 {
        return Vec::new();
    }
    let (to, from) = bytes.split_at(6);
    let text = |bytes: &[u8]| {
        let words: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
        words.join(":")
    };
    vec![
        format!("ether dst = {}", text(to)),
        format!("ether src = {}", text(from)),
    ]
}

/// Conjunctions that lead to some ends of a diagram: all other ends are one, so that what does not matter for these is not
/// listed. `end` says whether a node is an end, and one that is looked for.
fn cubes(of: &Synthesis, root: Id, end: &dyn Fn(Id) -> Option<bool>) -> (Vec<String>, u64) {
    let mut counts: BTreeMap<Id, u64> = BTreeMap::new();
    for id in of.store.reachable(root).into_iter().rev() {
        let count = match (end(id), of.store.node(id)) {
            (Some(wanted), _) => u64::from(wanted),
            (None, Node::Leaf(_)) => 0,
            (None, Node::Branch { kids, .. }) => {
                let mut to: Vec<Id> = kids.iter().map(|k| k.1).collect();
                to.sort_unstable();
                to.dedup();
                to.iter().fold(0_u64, |sum, k| {
                    sum.saturating_add(counts.get(k).copied().unwrap_or(0))
                })
            }
        };
        counts.insert(id, count);
    }
    let all = counts.get(&root).copied().unwrap_or(0);
    let mut lines = Vec::new();
    let mut stack = vec![(root, Vec::<String>::new())];
    while let Some((id, words)) = stack.pop() {
        if lines.len() >= MOST_PATHS {
            break;
        }
        match of.store.node(id) {
            Node::Branch { var, kids } if end(id).is_none() => {
                let mut to: Vec<(Id, Vec<(u64, u64)>)> = Vec::new();
                for (n, (first, kid)) in kids.iter().enumerate() {
                    let last = kids.get(n + 1).map_or(var.most(), |k| k.0 - 1);
                    match to.iter_mut().find(|t| t.0 == *kid) {
                        Some(known) => known.1.push((*first, last)),
                        None => to.push((*kid, vec![(*first, last)])),
                    }
                }
                for (kid, ranges) in to.iter().rev() {
                    if counts.get(kid).copied().unwrap_or(0) > 0 {
                        let mut words = words.clone();
                        words.push(of_ranges(of, *var, ranges));
                        stack.push((*kid, words));
                    }
                }
            }
            _ if end(id) != Some(true) => {}
            _ => lines.push(match words.is_empty() {
                true => "all".to_owned(),
                false => words.join(", "),
            }),
        }
    }
    let more = all - (lines.len() as u64).min(all);
    (lines, more)
}

fn of_ranges(of: &Synthesis, var: Var, ranges: &[(u64, u64)]) -> String {
    if var == Var::Port
        && let [(port, last)] = ranges
        && port == last
    {
        let name = of
            .ports
            .get(*port as usize)
            .map_or("another", String::as_str);
        return format!("from {name}");
    }
    if let Some((_, list)) = of.actions.lists.of(var) {
        let element = of.router.graph().elements.get(list.element);
        let name = element.map_or("?", |e| e.name.as_str());
        let numbers: Vec<String> = { ranges.iter() }
            .flat_map(|(low, high)| *low..=(*high).min(u64::from(list.rules.classes())))
            .filter_map(|class| list.outputs.get(class as usize))
            .map(|output| match output {
                Some(output) => format!("lets out by {output}"),
                None => "drops".into(),
            })
            .collect();
        return format!("{name} {}", numbers.join(" or "));
    }
    if var.most() == 1 {
        let yes = ranges.first().is_some_and(|r| r.0 == 1);
        return if yes {
            var.to_string()
        } else {
            format!("not {var}")
        };
    }
    // What is shorter: the values, or those that are excluded.
    let holes: Vec<(u64, u64)> = ranges
        .windows(2)
        .filter_map(|w| match w {
            [a, b] => Some((a.1 + 1, b.0 - 1)),
            _ => None,
        })
        .collect();
    let whole = ranges.first().is_some_and(|r| r.0 == 0)
        && ranges.last().is_some_and(|r| r.1 == var.most());
    let text = |ranges: &[(u64, u64)]| {
        let words: Vec<String> = ranges.iter().map(|(a, b)| range(var, *a, *b)).collect();
        words.join(" or ")
    };
    match whole && !holes.is_empty() {
        true => format!("{var} not {}", text(&holes)),
        false => format!("{var} {}", text(ranges)),
    }
}

fn range(var: Var, low: u64, high: u64) -> String {
    if low == high {
        return show(var, low);
    }
    let size = high - low + 1;
    if var.is_address() && size.is_power_of_two() && low.is_multiple_of(size) {
        return format!("{}/{}", show(var, low), 32 - size.trailing_zeros());
    }
    if low == 0 {
        return format!("<= {}", show(var, high));
    }
    if high == var.most() {
        return format!(">= {}", show(var, low));
    }
    format!("{}-{}", show(var, low), show(var, high))
}

fn show(var: Var, value: u64) -> String {
    if var.is_address() {
        return std::net::Ipv4Addr::from(value as u32).to_string();
    }
    match (var.to_string().as_str(), value) {
        ("ip proto", 1) => "icmp".into(),
        ("ip proto", 6) => "tcp".into(),
        ("ip proto", 17) => "udp".into(),
        ("ether type", _) => format!("{value:#06x}"),
        _ if var.most() > 65_535 => format!("{value:#x}"),
        _ => value.to_string(),
    }
}
