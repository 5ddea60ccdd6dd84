//! The diagram as C in the handler dialect.
//!
//! A field is read once, at the branch that tests it, and written once, at the end of a class. Branches that several paths share
//! are labels. Lines are those of the configuration: of a branch, the element that made its first value of interest; of a class,
//! the element where its packets leave.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use millrace_click::meaning::Meaning;

use crate::Synthesis;
use crate::action::Verdict;
use crate::diagram::{Id, Node};

mod branch;
mod choice;
pub(crate) mod condition;
mod file;
mod finish;
mod flow;
mod graded;
mod known;
mod listed;
mod program;
mod read;
mod stamps;

pub use condition::word;
pub use file::reason;
use known::Known;

/// Comparisons of one branch above which it is searched by halves.
const MOST_COMPARED: usize = 12;

/// Helpers of the generated code that it may need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Needs {
    adjust: bool,
    loose: bool,
    cut_room: bool,
}

pub(crate) struct Emitter<'a> {
    of: &'a Synthesis,
    out: String,
    /// edges that lead to each node
    edges: HashMap<Id, usize>,
    known: HashMap<Id, Known>,
    labels: BTreeMap<Id, usize>,
    /// labels whose code is to be written
    waiting: Vec<Id>,
    /// variables of the function
    locals: BTreeMap<String, &'static str>,
    needs: Needs,
    line: Option<(String, u32)>,
    /// where the code of a branch ends in other code than its own: by its number
    stops: HashMap<Id, flow::End>,
    /// labels that were given
    named: usize,
    /// actions of flows that are done behind the entry's update
    leaves: Vec<(u32, Known)>,
    /// rewriters on the way of the program that is written
    way: usize,
    /// that program
    program: Option<crate::flows::Program>,
    /// what is data
    choices: choice::Choices,
    /// lists of rules that are asked
    lists: BTreeSet<usize>,
}

/// The function's C.
#[must_use]
pub fn c(of: &Synthesis) -> String {
    let mut emitter = Emitter {
        of,
        out: String::new(),
        edges: HashMap::new(),
        known: HashMap::new(),
        labels: BTreeMap::new(),
        waiting: Vec::new(),
        locals: BTreeMap::new(),
        needs: Needs::default(),
        line: None,
        stops: HashMap::new(),
        named: 0,
        leaves: Vec::new(),
        way: 0,
        program: None,
        choices: choice::Choices::default(),
        lists: BTreeSet::new(),
    };
    emitter.region(of.root, Known::default());
    emitter.programs();
    emitter.frame()
}

/// The same for a compiler: each line of the function is one of the configuration, where [`c`] says so once for several lines.
#[must_use]
pub fn lined(of: &Synthesis) -> String {
    let (mut text, mut current, mut said) = (String::new(), None, false);
    for line in c(of).lines() {
        if line.starts_with("#line ") {
            (current, said) = (Some(line.to_owned()), true);
        } else if line == "}" {
            // The function ends.
            current = None;
        } else if let Some(directive) = &current
            && !said
            && !line.trim().is_empty()
        {
            text.push_str(directive);
            text.push('\n');
        } else {
            said = false;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

impl Emitter<'_> {
    /// The code of a diagram, with that of branches that several paths share behind it.
    fn region(&mut self, root: Id, known: Known) {
        self.line = None;
        let entered = (0..self.of.router.graph().elements.len())
            .find(|id| matches!(self.of.router.meaning(*id), Some(Meaning::Enter(_))));
        if let Some(element) = entered.filter(|_| root == self.of.root) {
            self.at(element);
        }
        self.within(root, known, 1);
    }

    /// The same within the code of another diagram, whose labels are others.
    fn within(&mut self, root: Id, known: Known, depth: usize) {
        let outer = (
            std::mem::take(&mut self.labels),
            std::mem::take(&mut self.waiting),
            std::mem::take(&mut self.edges),
            std::mem::take(&mut self.known),
        );
        self.count(root);
        self.prove(root, known);
        self.block(root, depth, true);
        while let Some(id) = self.waiting.pop() {
            let label = self.labels.get(&id).copied().unwrap_or(0);
            let _ = writeln!(self.out, "\nstep_{label}:");
            self.line = None;
            let known = self.known.get(&id).copied().unwrap_or_default();
            self.again(known);
            self.block(id, depth, true);
        }
        (self.labels, self.waiting, self.edges, self.known) = outer;
    }

    /// Whether a branch's code is written elsewhere.
    fn ends(&self, id: Id) -> bool {
        self.stops.contains_key(&id)
            || self.of.flows.openings.contains_key(&id)
            || self.of.flows.answers.contains_key(&id)
    }

    /// Counts the edges that lead to each node, those of one branch once unless it is searched.
    fn count(&mut self, root: Id) {
        for id in self.of.store.reachable(root) {
            if let Node::Branch { kids, .. } = self.of.store.node(id) {
                let mut to: Vec<Id> = kids.iter().map(|k| k.1).collect();
                if kids.len() <= MOST_COMPARED {
                    to.sort_unstable();
                    to.dedup();
                }
                for kid in to {
                    *self.edges.entry(kid).or_default() += 1;
                }
            }
        }
    }

    fn indent(&mut self, depth: usize) {
        self.out.extend(std::iter::repeat_n('\t', depth));
    }

    fn say(&mut self, depth: usize, text: &str) {
        self.indent(depth);
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Notes the line of an element, if it is another one.
    fn at(&mut self, element: usize) {
        let Some(element) = self.of.router.graph().elements.get(element) else {
            return;
        };
        let place = (element.place.file.to_string(), element.place.line);
        if self.line.as_ref() == Some(&place) {
            return;
        }
        let file = place.0.replace('\\', "\\\\").replace('"', "\\\"");
        let _ = writeln!(self.out, "#line {} \"{file}\"", place.1);
        self.line = Some(place);
    }

    /// Code for a node that ends in a return or a jump. `here`: its label was written.
    fn block(&mut self, id: Id, depth: usize, here: bool) {
        let simple = match self.of.store.node(id) {
            Node::Leaf(number) => self
                .of
                .actions
                .get(*number)
                .is_none_or(|a| !matches!(a.verdict, Verdict::Leave { .. } | Verdict::Pass(_))),
            Node::Branch { .. } => false,
        };
        if !here && !simple && self.edges.get(&id).copied().unwrap_or(0) > 1 {
            self.named += 1;
            let next = self.named;
            let waiting = &mut self.waiting;
            let label = *self.labels.entry(id).or_insert_with(|| {
                waiting.push(id);
                next
            });
            return self.say(depth, &format!("goto step_{label};"));
        }
        let known = self.known.get(&id).copied().unwrap_or_default();
        if self.ends(id) {
            return self.end(id, known, depth);
        }
        match self.of.store.node(id) {
            Node::Leaf(number) => {
                if let Some(action) = self.of.actions.get(*number) {
                    let passed = usize::from(action.hops);
                    match self.way > 0 && (passed == self.way || passed > 0 && self.stamped()) {
                        true => self.keep(*number, known, depth),
                        false => self.finish(action, known, depth),
                    }
                }
            }
            Node::Branch { .. } if self.choice(id, known, depth) => {}
            Node::Branch { var, kids } => self.branch(*var, kids, known, depth),
        }
    }
}
