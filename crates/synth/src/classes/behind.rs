//! Classes of flows: what becomes of packets behind the rewriters that they pass, as it is decided when a flow is opened.

use std::collections::BTreeMap;

use super::{Class, cubes, outcome, show, writes};
use crate::Synthesis;
use crate::action::{Action, Value, Verdict};
use crate::backward::WORDS;
use crate::diagram::{Id, Node};
use crate::field::{Var, Word};
use crate::flows::{Becomes, FLOW, Way};

/// Combinations of packets that open a flow, and of what its own packets have, that are listed of a class.
const MOST: usize = 64;

/// What is found of a class, over all patterns that may be drawn.
#[derive(Default)]
struct Found {
    packets: Vec<String>,
    more: u64,
    /// words behind the last rewriter
    words: Vec<[Becomes; 4]>,
}

/// A class: where its flows are opened, its action, the rewriters, whether it is of answers.
type Key = (Id, u32, Vec<usize>, bool);

/// All of them.
pub(super) fn classes(of: &Synthesis) -> Vec<(Verdict, Class)> {
    let mut all: BTreeMap<Key, Found> = BTreeMap::new();
    for (border, opening) in &of.flows.openings {
        let (came, _) = cubes(of, of.root, &|id| stop(of, id, *border));
        for variant in &opening.variants {
            for (program, way) in &variant.ways {
                let (flows, _) = cubes(of, variant.root, &|id| match id == *program {
                    true => Some(true),
                    false => ended(of, id),
                });
                let before: Vec<String> = came
                    .iter()
                    .flat_map(|came| flows.iter().map(move |flow| joined(came, flow)))
                    .collect();
                leaves(of, (*border, *program), way, &before, &mut all);
                let back = way.back.map(|back| crate::flows::programs(&of.store, back));
                for answer in back.unwrap_or_default() {
                    let before = answered(of, way, opening.protocol);
                    answers(of, (*border, answer), way, &before, &mut all);
                }
            }
        }
    }
    all.into_iter()
        .filter_map(|((_, number, rewriters, answer), found)| {
            let action = of.actions.get(number)?;
            Some((action.verdict, class(of, action, &rewriters, answer, found)))
        })
        .collect()
}

fn leaves(
    of: &Synthesis,
    (border, program): (Id, Id),
    way: &Way,
    before: &[String],
    all: &mut BTreeMap<Key, Found>,
) {
    for id in of.store.reachable(program) {
        let Node::Leaf(number) = of.store.node(id) else {
            continue;
        };
        let passed = of.actions.get(*number).map_or(0, |a| usize::from(a.hops));
        let hops = way.hops.get(..passed).unwrap_or(&way.hops);
        let key = (
            border,
            *number,
            hops.iter().map(|h| h.rewriter).collect(),
            false,
        );
        let words = hops.last().map_or(WORDS.map(Becomes::Word), |h| h.words);
        note(
            of,
            all.entry(key).or_default(),
            words,
            (program, *number),
            before,
        );
    }
}

fn answers(
    of: &Synthesis,
    (border, program): (Id, Id),
    way: &Way,
    before: &[String],
    all: &mut BTreeMap<Key, Found>,
) {
    let rewriters: Vec<usize> = way.hops.iter().rev().map(|h| h.rewriter).collect();
    let [source, destination, sport, dport] = WORDS;
    let words = [destination, source, dport, sport].map(Becomes::Word);
    for id in of.store.reachable(program) {
        let Node::Leaf(number) = of.store.node(id) else {
            continue;
        };
        let key = (border, *number, rewriters.clone(), true);
        note(
            of,
            all.entry(key).or_default(),
            words,
            (program, *number),
            before,
        );
    }
}

/// Notes the packets of one program that come to an action.
fn note(
    of: &Synthesis,
    found: &mut Found,
    words: [Becomes; 4],
    (program, number): (Id, u32),
    before: &[String],
) {
    if !found.words.contains(&words) {
        found.words.push(words);
    }
    let (own, more) = cubes(of, program, &|id| match of.store.node(id) {
        Node::Leaf(leaf) => Some(*leaf == number),
        Node::Branch { .. } => None,
    });
    found.more = found
        .more
        .saturating_add(more.saturating_mul(before.len() as u64));
    for packets in before
        .iter()
        .flat_map(|b| own.iter().map(move |o| joined(b, o)))
    {
        if found.packets.contains(&packets) {
            continue;
        }
        match found.packets.len() < MOST {
            true => found.packets.push(packets),
            false => found.more = found.more.saturating_add(1),
        }
    }
}

fn class(
    of: &Synthesis,
    action: &Action,
    rewriters: &[usize],
    answer: bool,
    found: Found,
) -> Class {
    let known = |var: Var, value: Value| match value {
        Value::Field(Var::Entry(FLOW, word), 0) => Some(becomes(var, word, answer, &found.words)),
        _ => None,
    };
    let elements = &of.router.graph().elements;
    let names = rewriters.iter().filter_map(|id| elements.get(*id));
    Class {
        behind: names.map(|e| e.name.clone()).collect(),
        answer,
        writes: writes(action, &known),
        packets: found.packets,
        more: found.more,
        ..outcome(of, action)
    }
}

/// By which packets the flows of a way are answered.
fn answered(of: &Synthesis, way: &Way, protocol: u8) -> Vec<String> {
    let last = way.hops.last().map(|hop| hop.rewriter);
    let mut borders = of.flows.answers.iter();
    let border = borders.find(|(_, a)| Some(a.rewriter) == last && a.protocol == protocol);
    let came = border.map(|(border, _)| cubes(of, of.root, &|id| stop(of, id, *border)).0);
    let said = came.unwrap_or_default().into_iter();
    said.map(|came| format!("{came}, to a flow")).collect()
}

/// What a word of the flow becomes; nothing if it stays what it is.
fn becomes(var: Var, word: Word, answer: bool, all: &[[Becomes; 4]]) -> Option<String> {
    let place = WORDS.iter().position(|w| *w == word)?;
    let mut values: Vec<String> = Vec::new();
    for one in all.iter().filter_map(|words| words.get(place)) {
        let value = match *one {
            Becomes::Word(from) if from == word && !answer => continue,
            Becomes::Word(from) => format!("the flow's {}", named(from)),
            Becomes::Constant(number) => show(var, number),
            Becomes::Range(low, count) => {
                format!("one of {}-{}", show(var, low), show(var, low + count - 1))
            }
        };
        if !values.contains(&value) {
            values.push(value);
        }
    }
    match values.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("one of {}", several.join(", "))),
    }
}

fn named(word: Word) -> &'static str {
    match word {
        Word::Source => "src",
        Word::Destination => "dst",
        Word::Sport => "src port",
        Word::Dport => "dst port",
    }
}

/// Two conjunctions as one.
fn joined(one: &str, other: &str) -> String {
    match (one, other) {
        ("all", other) => other.to_owned(),
        (one, "all") => one.to_owned(),
        (one, other) => format!("{one}, {other}"),
    }
}

/// Whether a node ends the search for a border: it is one, or no branch.
fn stop(of: &Synthesis, id: Id, border: Id) -> Option<bool> {
    if id == border {
        return Some(true);
    }
    let other = of.flows.openings.contains_key(&id) || of.flows.answers.contains_key(&id);
    other.then_some(false).or_else(|| ended(of, id))
}

fn ended(of: &Synthesis, id: Id) -> Option<bool> {
    matches!(of.store.node(id), Node::Leaf(_)).then_some(false)
}
