//! The slow path: elements whose packets the function hands over, for the reference interpreter to run.
//!
//! What makes, copies or holds packets is no function of one packet ([`Meaning::Outside`]), and what else a diagram cannot say is left
//! out of it, too. The packet is handed over as it came, so that it enters the interpreter where it entered the function: on its way to
//! the element it passes only what has no state, and comes there with the same bytes and annotations. What the element gives out goes on
//! in the interpreter up to a device.
//!
//! State is in one place. A rewriter whose flows cannot be merged is on the slow path, with all others. Else flows are the function's, and
//! packets that are handed over behind a rewriter, or that could come to one from the slow path, have nobody who knows their flow: they are
//! passed to the host; or ([`crate::Options::whole`]) the rewriters are on the slow path, too, and nothing is passed. [`Synthesis::slow`]
//! says why.

use std::collections::{BTreeMap, BTreeSet};

use millrace_click::interpreter::Router;
use millrace_click::language::Port;
use millrace_click::meaning::Meaning;

use crate::Synthesis;
use crate::action::{Actions, Verdict};
use crate::diagram::{Id, Node, Store};

/// An element whose packets are handed over. Its number, from 1, is that by which the function hands them over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slow {
    /// the element
    pub element: usize,
    /// why
    pub why: String,
    /// whether the interpreter runs its packets; else they are passed to the host, since their flow is the function's
    pub run: bool,
}

/// Elements at which packets of a diagram are handed over: those of the packets as they come, and those behind rewriters.
fn handed(store: &Store, actions: &Actions, root: Id) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let (mut before, mut behind) = (BTreeSet::new(), BTreeSet::new());
    let mut roots = vec![(root, false)];
    let mut seen = BTreeSet::new();
    while let Some((root, inner)) = roots.pop() {
        if !seen.insert((root, inner)) {
            continue;
        }
        for id in store.reachable(root) {
            let Node::Leaf(number) = store.node(id) else {
                continue;
            };
            match actions.get(*number).map(|a| a.verdict) {
                Some(Verdict::Hand(element)) => {
                    match inner {
                        true => behind.insert(element),
                        false => before.insert(element),
                    };
                }
                Some(Verdict::State(asked)) => {
                    let then = actions.asked(asked).map_or(&[][..], |s| &s.then);
                    roots.extend(then.iter().map(|t| (t.1, true)));
                }
                _ => {}
            }
        }
    }
    (before, behind)
}

/// An element behind a rewriter that gives packets to the host.
pub(crate) fn given_behind((store, actions): (&Store, &Actions)) -> Option<usize> {
    let then = actions.all_asked().flat_map(|asked| &asked.then);
    let mut all = then.flat_map(|(_, root)| store.reachable(*root));
    all.find_map(|id| match store.node(id) {
        Node::Leaf(number) => match actions.get(*number)?.verdict {
            Verdict::Pass(element) => Some(element),
            _ => None,
        },
        Node::Branch { .. } => None,
    })
}

/// Elements that packets may come to which an element gives out, of those that may be TCP or UDP.
fn reached(router: &Router, from: usize) -> BTreeSet<usize> {
    let outputs = router.graph().ports().get(from).map_or(0, |p| p.1);
    // Errors are ICMP, which no rewriter of flows looks for; of an ARP responder only what it does not answer is a packet of others.
    let class = router.graph().elements.get(from);
    let first = match class.map(|e| e.class.as_str()) {
        Some("ICMPError") => outputs,
        Some("ARPResponder") => 1,
        _ => 0,
    };
    let mut found = BTreeSet::new();
    let mut stack: Vec<Port> = (first..outputs)
        .map(|port| Port {
            element: from,
            port,
        })
        .collect();
    while let Some(output) = stack.pop() {
        let Some(to) = router.target(output) else {
            continue;
        };
        if found.insert(to.element) {
            let outputs = router.graph().ports().get(to.element).map_or(0, |p| p.1);
            stack.extend((0..outputs).map(|port| Port {
                element: to.element,
                port,
            }));
        }
    }
    found
}

/// Elements whose packets the interpreter cannot run while the flows of rewriters are the function's, and why: a rewriter, and the
/// reason as one of the rewriter's, and as one of the element's.
pub(crate) fn conflicts(
    (store, actions, root): (&Store, &Actions, Id),
    rewriters: &[usize],
    router: &Router,
) -> BTreeMap<usize, (usize, String, String)> {
    let Some(first) = rewriters.first().copied() else {
        return BTreeMap::new();
    };
    let (before, behind) = handed(store, actions, root);
    let title = |id: usize| {
        let element = router.graph().elements.get(id);
        element.map_or_else(String::new, |e| e.title())
    };
    let own = |id: &usize| rewriters.contains(id);
    let mut found = BTreeMap::new();
    for element in before.into_iter().filter(|id| !own(id)) {
        if let Some(rewriter) = reached(router, element).into_iter().find(own) {
            let why = format!("packets that {} gives out may come to it", title(element));
            let other = format!("what it gives out may come to {}", title(rewriter));
            found.insert(element, (rewriter, why, other));
        }
    }
    for element in behind.into_iter().filter(|id| !own(id)) {
        let why = format!("packets behind it are handed over by {}", title(element));
        let other = "it is behind a rewriter".to_owned();
        found.insert(element, (first, why, other));
    }
    found
}

/// All elements at which packets are handed over, in the order of the text.
pub(crate) fn all(
    router: &Router,
    (store, actions, root): (&Store, &Actions, Id),
    rewriters: &[usize],
    outside: &BTreeMap<usize, String>,
) -> Vec<Slow> {
    let conflicts = conflicts((store, actions, root), rewriters, router);
    let (mut found, behind) = handed(store, actions, root);
    found.extend(behind);
    let why = |id: usize| match (outside.get(&id), router.meaning(id)) {
        (Some(why), _) => why.clone(),
        (None, Some(Meaning::Outside(why))) => why.to_owned(),
        (None, Some(Meaning::Options)) => "it handles IP options".into(),
        (None, Some(Meaning::Fragment { .. })) => "it cuts packets to pieces".into(),
        (None, Some(Meaning::PaintTee(..))) => "it copies packets".into(),
        (None, _) => "the packet ends within a header that it reads or writes".into(),
    };
    found
        .into_iter()
        .map(|element| match conflicts.get(&element) {
            Some((_, _, other)) => Slow {
                element,
                why: format!("{}; {other}, whose flows are the function's", why(element)),
                run: false,
            },
            None => Slow {
                element,
                why: why(element),
                run: !rewriters.contains(&element),
            },
        })
        .collect()
}

impl Synthesis {
    /// The number by which an element's packets are handed over; none where they are passed to the host.
    #[must_use]
    pub fn number(&self, element: usize) -> Option<usize> {
        let place = self
            .slow
            .iter()
            .position(|s| s.element == element && s.run)?;
        Some(place + 1)
    }

    /// Names of elements on the slow path, by their numbers.
    #[must_use]
    pub fn titles(&self) -> Vec<String> {
        let elements = &self.router.graph().elements;
        let title = |s: &Slow| {
            elements
                .get(s.element)
                .map_or_else(String::new, |e| e.title())
        };
        self.slow.iter().map(title).collect()
    }
}
