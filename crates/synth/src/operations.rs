//! Operations of a packet: those of the elements that it passes, and those of the function that they become (Katsikas et al.,
//! SNF, PeerJ Computer Science 2:e98, 2016, "A motivating use case").
//!
//! Elements on a class's way are those that a packet of the class passes in the reference interpreter.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use millrace_click::filter::{Condition, Test};
use millrace_click::function::{self, Decided, Guard};
use millrace_click::meaning::Meaning;
use millrace_click::rewriter::Specification;
use serde::Serialize;

use crate::Synthesis;
use crate::action::{Action, Verdict};
use crate::classes;
use crate::diagram::{Id, Node};
use crate::field::{Base, Var};
use crate::reference::{Became, Passed, Reference};

/// Counts of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Operations {
    /// fields that are read to decide something
    pub reads: usize,
    /// fields that are written
    pub writes: usize,
    /// sums that are verified, computed or updated
    pub checksums: usize,
    /// tables that are asked: routes, and flows
    pub lookups: usize,
}

/// A class whose packets leave, and what one of them takes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cost {
    /// the device by which its packets leave
    pub device: String,
    /// rewriters that they pass
    pub behind: Vec<String>,
    /// elements that a packet passes
    pub elements: usize,
    /// what these do
    pub before: Operations,
    /// what the function does; of a flow that is known
    pub after: Operations,
}

impl Cost {
    /// Whose it is, in words.
    #[must_use]
    pub fn whose(&self) -> String {
        match self.behind.as_slice() {
            [] => format!("to {}", self.device),
            names => format!("to {}, behind {}", self.device, names.join(", ")),
        }
    }
}

impl Operations {
    fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            checksums: self.checksums + other.checksums,
            lookups: self.lookups + other.lookups,
        }
    }
}

/// Fields that a condition tests.
fn tested(condition: &Condition, fields: &mut BTreeSet<(u8, usize, usize)>) {
    match condition {
        Condition::Constant(_) => {}
        Condition::Test(Test {
            base,
            offset,
            bytes,
            ..
        }) => {
            fields.insert((*base as u8, *offset, *bytes));
        }
        Condition::All(all) | Condition::Any(all) => all.iter().for_each(|c| tested(c, fields)),
        Condition::Not(inner) => tested(inner, fields),
        Condition::If(three) => three.iter().for_each(|c| tested(c, fields)),
    }
}

/// Operations of a function: what its longest way reads and writes.
fn of_function(decided: &Decided) -> Operations {
    let ways = decided.inputs.iter().flatten();
    let each = ways.map(|way| {
        let (mut fields, mut checksums) = (BTreeSet::new(), 0);
        asked(
            &way.guard,
            &mut fields,
            &mut checksums,
            &mut BTreeSet::new(),
        );
        let lowered = { way.writes.iter() }.filter(|w| matches!(w, function::Write::Ttl(_)));
        Operations {
            reads: fields.len(),
            writes: way.writes.len(),
            checksums: checksums + lowered.count(),
            lookups: 0,
        }
    });
    each.max_by_key(|o| o.reads + o.writes + o.checksums)
        .unwrap_or_default()
}

/// Numbers that a guard asks for, and whether it verifies a sum. Parts that are shared are looked at once.
fn asked(
    guard: &Guard,
    fields: &mut BTreeSet<function::Field>,
    checksums: &mut usize,
    seen: &mut BTreeSet<usize>,
) {
    let parts = match guard {
        Guard::Within(field, _) => {
            fields.insert(*field);
            return;
        }
        Guard::Right(_, sum) => {
            *checksums = (*checksums).max(usize::from(*sum));
            return;
        }
        Guard::If(parts) => &parts[..],
        Guard::All(parts) | Guard::Any(parts) => parts,
        Guard::Constant(_) | Guard::Room(..) | Guard::Unknown => return,
    };
    if seen.insert(parts.as_ptr() as usize) {
        { parts.iter() }.for_each(|part| asked(part, fields, checksums, seen));
    }
}

/// Operations of an element.
#[must_use]
pub fn of_element(meaning: &Meaning) -> Operations {
    let made = |reads, writes, checksums, lookups| Operations {
        reads,
        writes,
        checksums,
        lookups,
    };
    match meaning {
        Meaning::Check { checksum, .. } => made(3, 0, usize::from(*checksum), 0),
        Meaning::Ttl { .. } => made(1, 1, 1, 0),
        Meaning::Filter(rules) => {
            let mut fields = BTreeSet::new();
            rules.iter().for_each(|rule| tested(&rule.1, &mut fields));
            made(fields.len(), 0, 0, 0)
        }
        Meaning::Bytes(patterns) => {
            let places: BTreeSet<usize> = patterns.iter().flatten().map(|c| c.offset).collect();
            made(places.len(), 0, 0, 0)
        }
        Meaning::Function(decided) => of_function(decided),
        Meaning::Lookup(_) => made(1, 0, 0, 1),
        Meaning::Prepend(_) => made(0, 3, 0, 0),
        Meaning::OverwriteLink(_) => made(0, 1, 0, 0),
        Meaning::Broadcasts
        | Meaning::GetDestination(_)
        | Meaning::CheckPaint(..)
        | Meaning::PaintSwitch(_)
        | Meaning::Options => made(1, 0, 0, 0),
        Meaning::Fragment { .. } => made(2, 0, 0, 0),
        Meaning::StoreAddress(..) => made(0, 1, 2, 0),
        Meaning::Service { .. } => made(0, 1, 1, 0),
        Meaning::Rewrite(rewriting) => {
            let words = |s: &Specification| match s {
                Specification::Pattern(p, ..) => {
                    usize::from(p.source().is_some())
                        + usize::from(p.sport().is_some())
                        + usize::from(p.destination().is_some())
                        + usize::from(p.dport().is_some())
                }
                Specification::Mapper(_) => 1,
                _ => 0,
            };
            let writes = rewriting.inputs.iter().map(words).max().unwrap_or(0);
            made(5, writes, 2, 1)
        }
        _ => Operations::default(),
    }
}

/// What a class's packets take in the function: fields that are tested on their way, and what is written.
fn of_class(way: &[(Var, u64, u64)], action: &Action, flow: bool) -> Operations {
    let mut fields: BTreeSet<Var> = BTreeSet::new();
    let mut all = Operations::default();
    for (var, ..) in way {
        match *var {
            Var::Checked(_, sum) => {
                all.reads += 3;
                all.checksums += usize::from(sum);
            }
            // The port is no field, and lengths are those of buffers.
            Var::Port | Var::Length | Var::Room(..) | Var::Kind => {}
            // A known flow's words are not tested, but are its key.
            var if flow && var.names_flow() => {}
            var => {
                fields.insert(var);
            }
        }
    }
    if flow {
        // Addresses, ports and the protocol, which was tested on the way.
        all.reads += 4;
        all.lookups += 1;
    }
    all.reads += fields.len();
    // An address of Ethernet is one field in several parts.
    let written: BTreeSet<u32> = action
        .writes
        .keys()
        .map(|var| match *var {
            Var::Bits(Base::Frame, bit, _) if bit < 48 => 0,
            Var::Bits(Base::Frame, bit, _) => bit,
            Var::Bits(Base::Upper(_), bit, _) => 1_000_000 + bit,
            _ => u32::MAX,
        })
        .collect();
    all.writes += written.len();
    let sums = |of: fn(&crate::action::Write) -> bool| action.writes.values().any(of);
    all.checksums += usize::from(sums(|w| w.sums.header.is_some()));
    all.checksums += usize::from(sums(|w| w.sums.upper != 0));
    all
}

/// A way from a node to an end.
pub(crate) fn way(
    of: &Synthesis,
    root: Id,
    end: &dyn Fn(Id) -> bool,
) -> Option<Vec<(Var, u64, u64)>> {
    // Nodes are met before those that they lead to: the first that leads to each is enough for one way.
    let mut from: HashMap<Id, (Id, Var, u64, u64)> = HashMap::new();
    let mut found = None;
    for id in of.store.reachable(root) {
        if end(id) {
            found = Some(id);
            break;
        }
        if let Node::Branch { var, kids } = of.store.node(id) {
            for (n, (first, kid)) in kids.iter().enumerate() {
                let last = kids.get(n + 1).map_or(var.most(), |k| k.0 - 1);
                from.entry(*kid).or_insert((id, *var, *first, last));
            }
        }
    }
    let mut at = found?;
    let mut way = Vec::new();
    while at != root {
        let (before, var, first, last) = *from.get(&at)?;
        way.push((var, first, last));
        at = before;
    }
    way.reverse();
    Some(way)
}

/// The way to a class, the number of its action, the rewriters that its packets pass.
type Way = (Vec<(Var, u64, u64)>, u32, Vec<usize>);

/// Classes whose packets leave: of flows, from where they are opened.
fn ways(of: &Synthesis) -> Vec<Way> {
    let leaves = |number: u32| {
        let action = of.actions.get(number);
        action.is_some_and(|a| matches!(a.verdict, Verdict::Leave { .. }))
    };
    let mut all = Vec::new();
    let mut known: BTreeSet<u32> = BTreeSet::new();
    let mut each = |root: Id, before: &[(Var, u64, u64)], hops: &[usize]| {
        for id in of.store.reachable(root) {
            if let Node::Leaf(number) = of.store.node(id)
                && leaves(*number)
                && known.insert(*number)
                && let Some(rest) = way(of, root, &|at| at == id)
            {
                let whole = before.iter().copied().chain(rest).collect();
                all.push((whole, *number, hops.to_vec()));
            }
        }
    };
    each(of.root, &[], &[]);
    let openings: BTreeMap<_, _> = of.flows.openings.iter().collect();
    for (border, opening) in openings {
        let Some(came) = way(of, of.root, &|at| at == *border) else {
            continue;
        };
        for variant in &opening.variants {
            for (program, chosen) in &variant.ways {
                let Some(words) = way(of, variant.root, &|at| at == *program) else {
                    continue;
                };
                let before: Vec<_> = came.iter().copied().chain(words).collect();
                let hops: Vec<usize> = chosen.hops.iter().map(|h| h.rewriter).collect();
                each(*program, &before, &hops);
            }
        }
    }
    all
}

/// What a packet of each class takes that leaves, in the order of devices.
#[must_use]
pub fn costs(of: &Synthesis) -> Vec<Cost> {
    let reference = Reference::new(of);
    let elements = &of.router.graph().elements;
    let mut costs = Vec::new();
    for (way, number, hops) in ways(of) {
        let Some(action) = &crate::flows::lean(of, number) else {
            continue;
        };
        let Verdict::Leave { port, .. } = action.verdict else {
            continue;
        };
        // Fields that are right anyhow stay what they are, so that frames are ordinary ones.
        let (_, usual) = crate::witness::frame(&[]);
        let odd = |(var, first, last): &(Var, u64, u64)| {
            let value = crate::packet::value(&usual, 0, *var);
            (!(*first..=*last).contains(&value)).then_some((*var, *first))
        };
        let values: Vec<(Var, u64)> = way.iter().filter_map(odd).collect();
        let (came, frame) = crate::witness::frame(&values);
        let inputs = || -> Vec<u64> {
            let counts = of.router.counts();
            counts.iter().map(|c| c.inputs.iter().sum()).collect()
        };
        let before = inputs();
        let Some(Passed { became, .. }) = reference.pass(came, 0, &frame) else {
            continue;
        };
        if !matches!(became, Became::Left(by, _) if by == port) {
            continue;
        }
        let after = inputs();
        let passed: Vec<usize> = (0..elements.len())
            .filter(|id| after.get(*id) > before.get(*id))
            .collect();
        let meanings = passed.iter().filter_map(|id| of.router.meaning(*id));
        let names = hops.iter().filter_map(|id| elements.get(*id));
        costs.push(Cost {
            device: of.ports.get(usize::from(port)).cloned().unwrap_or_default(),
            behind: names.map(|e| e.name.clone()).collect(),
            elements: passed.len(),
            before: meanings.fold(Operations::default(), |sum, m| sum.and(of_element(&m))),
            after: of_class(&way, action, !hops.is_empty()),
        });
    }
    costs.sort_by(|a, b| (&a.device, &a.behind).cmp(&(&b.device, &b.behind)));
    costs
}

/// The fields that a function reads, in words.
#[must_use]
pub fn fields(of: &Synthesis) -> Vec<String> {
    let mut vars: BTreeSet<Var> = BTreeSet::new();
    for id in of.store.reachable(of.root) {
        vars.extend(of.store.top(id));
    }
    let mut words: Vec<String> = vars.iter().map(ToString::to_string).collect();
    words.dedup();
    words
}

/// The costs as a table for people.
#[must_use]
pub fn table(costs: &[Cost]) -> String {
    let mut text = String::from("operations a packet, elements one by one → synthesised\n");
    for cost in costs {
        let (b, a) = (cost.before, cost.after);
        text.push_str(&format!(
            "    {}: {} elements; reads {} → {}, writes {} → {}, checksums {} → {}, lookups {} → {}\n",
            cost.whose(),
            cost.elements,
            b.reads,
            a.reads,
            b.writes,
            a.writes,
            b.checksums,
            a.checksums,
            b.lookups,
            a.lookups
        ));
    }
    text
}

/// Classes that a picture shows: those that leave or are handed over.
#[must_use]
pub fn shown(all: &[classes::Class]) -> Vec<&classes::Class> {
    let kinds = ["forward", "hand-over"];
    all.iter().filter(|c| kinds.contains(&c.verdict)).collect()
}
