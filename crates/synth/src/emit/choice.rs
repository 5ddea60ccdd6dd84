//! Choices by words of flows that would be too much code: one classifier for all of them, whose diagram is that of the synthesis.
//!
//! A region is what is below a branch on an address or a port, down to what tests neither. The classifier's key has the region's
//! number and the words; its classes are the ends of the region, in the order in which they are found.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use millrace_classify::{DecisionError, Decisions, Edge, Field, Key, Order, Ref, Rules};

use super::{Emitter, Known, condition};
use crate::diagram::{Id, Node, Store};
use crate::field::Var;

/// Edges of a region above which it is data.
const MOST_IN_CODE: usize = 128;
/// Ends of a region of which each is code.
const MOST_ENDS: usize = 1024;
/// Words of the key, at most, beside the region's number.
const MOST_WORDS: usize = 15;

/// Regions that are data.
#[derive(Default)]
pub(super) struct Choices {
    known: HashMap<Id, Option<usize>>,
    regions: Vec<(Id, Vec<Id>)>,
    words: BTreeSet<Var>,
}

impl Choices {
    /// The number of the region below a branch, if it is data.
    pub(super) fn region(&mut self, store: &Store, id: Id) -> Option<usize> {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let found = self.found(store, id);
        self.known.insert(id, found);
        found
    }

    fn found(&mut self, store: &Store, id: Id) -> Option<usize> {
        store.top(id).filter(|var| var.names_flow())?;
        let mut words = self.words.clone();
        let mut edges = 0;
        for inner in inside(store, id) {
            if let Node::Branch { var, kids } = store.node(inner) {
                words.insert(*var);
                edges += kids.len();
            }
        }
        let ends = store.below(id, Var::names_flow);
        if edges <= MOST_IN_CODE || ends.len() > MOST_ENDS || words.len() > MOST_WORDS {
            return None;
        }
        self.words = words;
        self.regions.push((id, ends));
        Some(self.regions.len() - 1)
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    fn classes(&self) -> usize {
        let ends = self.regions.iter().map(|r| r.1.len());
        ends.max().unwrap_or(0).max(2)
    }

    /// The classifier: its key, and the diagram as rules.
    fn rules(&self, store: &Store) -> Result<Rules, DecisionError> {
        let mut names = vec!["region".to_owned()];
        names.extend(self.words.iter().map(|var| condition::name(*var)));
        let fields = (0_u32..).zip(&names).map(|(n, name)| Field {
            name: name.clone(),
            offset: 4 * n,
            bytes: 4,
            order: Order::Host,
        });
        let key = Key::new(4 * names.len() as u32, fields.collect());
        let key = key.map_err(|_| DecisionError::Order)?;
        let classes = self.classes() as u32;
        let order: Vec<usize> = (0..names.len()).collect();
        let mut made = Decisions::new(order, names.len(), classes)?;
        let mut roots = Vec::new();
        for (root, ends) in &self.regions {
            let mut placed: HashMap<Id, Ref> = HashMap::new();
            for (class, end) in (0..).zip(ends) {
                placed.insert(*end, Ref::terminal(class));
            }
            for id in inside(store, *root) {
                let Node::Branch { var, kids } = store.node(id) else {
                    continue;
                };
                let level = 1 + self.words.iter().take_while(|w| *w < var).count();
                let mut edges = Vec::with_capacity(kids.len());
                for (n, (_, kid)) in kids.iter().enumerate() {
                    let last = kids.get(n + 1).map_or(u32::MAX, |k| (k.0 - 1) as u32);
                    let to = placed.get(kid).copied().ok_or(DecisionError::Target)?;
                    edges.push(Edge { last, to });
                }
                placed.insert(id, made.push(level as u8, edges)?);
            }
            let root = placed.get(root).copied().ok_or(DecisionError::Target)?;
            let last = roots.len() as u32;
            roots.push(Edge { last, to: root });
        }
        if let Some(last) = roots.last_mut() {
            last.last = u32::MAX;
        }
        made.push(0, roots)?;
        Ok(Rules::decided(key, classes, made))
    }

    /// Declares the classifier.
    pub(super) fn declared(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut text = String::from(
            "\n/* Words by which packets are told apart, host order, and which of the choices is made. */\nstruct place {\n\t__u32 region;\n",
        );
        for var in &self.words {
            let _ = writeln!(text, "\t__u32 {};", condition::name(*var));
        }
        let _ = writeln!(
            text,
            "}};\n\nCLASSIFIER(choices, struct place, .classes = {});",
            self.classes()
        );
        text
    }

    /// The diagram as data.
    pub(super) fn data(&self, store: &Store) -> String {
        if self.is_empty() {
            return String::new();
        }
        let bytes = match self.rules(store) {
            Ok(rules) => rules.to_bytes(),
            Err(why) => return format!("\n#error \"choices: {why}\"\n"),
        };
        format!(
            "\n/* {} choices as a diagram. */{}",
            self.regions.len(),
            data("choices", &bytes)
        )
    }
}

/// Rules that a classifier begins with, as saved.
pub(super) fn data(object: &str, bytes: &[u8]) -> String {
    let mut text = format!(
        "\n__attribute__((section(\"millrace/rules\"), used)) static const unsigned char\nmillrace_rules_{object}[{}] =",
        bytes.len()
    );
    for line in bytes.chunks(32) {
        text.push_str("\n\t\"");
        for byte in line {
            let _ = match byte {
                b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b' ' => {
                    write!(text, "{}", *byte as char)
                }
                byte => write!(text, "\\{byte:03o}"),
            };
        }
        text.push('"');
    }
    text.push_str(";\n");
    text
}

/// Branches of a region, each behind those that it leads to.
fn inside(store: &Store, root: Id) -> Vec<Id> {
    let mut order = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let mut stack = vec![(root, false)];
    while let Some((id, done)) = stack.pop() {
        if done {
            order.push(id);
            continue;
        }
        let Node::Branch { var, kids } = store.node(id) else {
            continue;
        };
        if !var.names_flow() || !seen.insert(id) {
            continue;
        }
        stack.push((id, true));
        stack.extend(kids.iter().rev().map(|k| (k.1, false)));
    }
    order
}

impl Emitter<'_> {
    /// The code of a region that is data: its class, and what each class becomes. False: it is code.
    pub(super) fn choice(&mut self, id: Id, known: Known, depth: usize) -> bool {
        let store = &self.of.store;
        let Some(region) = self.choices.region(store, id) else {
            return false;
        };
        let Some((_, ends)) = self.choices.regions.get(region).cloned() else {
            return false;
        };
        let mut words = BTreeSet::new();
        for inner in inside(store, id) {
            words.extend(store.top(inner));
        }
        let origin = words.iter().find_map(|var| {
            let all = self.of.origins.iter().filter(|((v, _), _)| v == var);
            all.map(|(_, element)| *element).min()
        });
        if let Some(element) = origin {
            self.at(element);
        }
        let mut members = vec![format!(".region = {region}")];
        for var in words {
            let value = self.read(var, known, depth);
            members.push(format!(".{} = {value}", condition::name(var)));
        }
        self.locals.insert("place".into(), "struct place");
        self.locals.insert("chosen".into(), "__u32");
        let members = members.join(", ");
        self.say(depth, &format!("place = (struct place){{ {members} }};"));
        self.say(depth, "chosen = classify(&choices, &place);");
        for (class, end) in ends.iter().enumerate() {
            if class + 1 == ends.len() {
                self.block(*end, depth, false);
            } else {
                self.say(depth, &format!("if (chosen == {class}) {{"));
                self.block(*end, depth + 1, false);
                self.say(depth, "}");
            }
        }
        true
    }
}
