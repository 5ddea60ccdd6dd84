//! A synthesised chain as a configuration of Click: one classifier, and one write for each class.
//!
//! Each branch of the diagram becomes an element that Click has: Ethernet's fields a `Classifier`, the check of an IP header
//! `CheckIPHeader`, all tests of a flow's words one `IPFilter` with an output for each class, other fields of headers an `IPFilter`
//! each. A class's write is its `DecIPTTL`s and an `EtherEncap`; its rewriter is that of the chain. Elements whose text is equal are
//! one.
//!
//! # Refused
//! What a rewriter of Click cannot say: flows through several rewriters that are one in the function (a mapping there has an age for each of
//! them), and zones with one prefix, whose flows have the same words. What has no element: tests of a frame's length, or of how much of
//! a transport header there is, unless Click's elements drop what is short anyway; writes of other fields; what is handed over.

use std::collections::{HashMap, HashSet};

use millrace_click::error::Error;
use millrace_click::meaning::Meaning;

use crate::Synthesis;
use crate::action::{Action, Value, Verdict};
use crate::diagram::{Id, Node, Store};
use crate::field::{Base, Var};
use crate::refusal;
use crate::rows::{self, IP, Line, word};

mod condition;
mod write;

/// What was done to a packet so far.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    /// the frame as it came
    Frame,
    /// the same, and where its IP header is is known
    Marked,
    /// the Ethernet header is gone, the IP header is right, and padding is cut
    Checked,
}

/// The configuration.
///
/// # Errors
/// What Click has no word for, with its place where it is an element's.
pub fn configuration(of: &mut Synthesis) -> Result<String, Error> {
    let store = std::mem::take(&mut of.store);
    let mut printer = Printer {
        of,
        store,
        text: Vec::new(),
        names: HashMap::new(),
        done: HashMap::new(),
        behind: HashMap::new(),
        printed: HashSet::new(),
        numbers: HashMap::new(),
    };
    let done = printer.all();
    let store = std::mem::take(&mut printer.store);
    of.store = store;
    done
}

struct Printer<'a> {
    of: &'a Synthesis,
    store: Store,
    /// lines of the configuration
    text: Vec<String>,
    /// inputs of elements by their text
    names: HashMap<String, String>,
    done: HashMap<(Id, State), String>,
    /// what follows a rewriter's outputs: element and output, by its input
    behind: HashMap<(usize, usize), String>,
    /// rewriters that are printed
    printed: HashSet<usize>,
    /// elements of a class
    numbers: HashMap<&'static str, usize>,
}

type Made = Result<String, Error>;

fn no(why: impl Into<String>) -> Error {
    Error {
        place: None,
        what: format!("the chain cannot be printed for Click: {}", why.into()),
        help: "run the function that it becomes".into(),
    }
}

impl Printer<'_> {
    fn all(&mut self) -> Made {
        if self.of.flows.most_hops > 1 {
            let several: Vec<String> = self
                .of
                .rewriters
                .iter()
                .filter_map(|id| self.of.router.graph().elements.get(*id))
                .map(|e| e.title())
                .collect();
            return Err(no(format!(
                "flows pass several rewriters ({}), which are one here: one rewriter of Click has neither an age for each of \
                 them nor keeps zones with the same addresses apart",
                several.join(", ")
            )));
        }
        // Elements that others name.
        for element in &self.of.router.graph().elements {
            const NAMED: [&str; 4] = [
                "AddressInfo",
                "PortInfo",
                "IPRewriterPatterns",
                "RoundRobinIPMapper",
            ];
            if NAMED.contains(&element.class.as_str()) {
                let name = safe(&element.name);
                self.text.push(format!(
                    "{name} :: {}({});",
                    element.class,
                    element.config.trim()
                ));
            }
        }
        // Devices in the chain's order.
        let enters: Vec<String> = (0..self.of.router.graph().elements.len())
            .filter_map(|id| match self.of.router.meaning(id) {
                Some(Meaning::Enter(name)) => Some(name),
                _ => None,
            })
            .collect();
        let ports: Vec<(usize, String)> = self.of.ports.iter().cloned().enumerate().collect();
        for (port, name) in &ports {
            match enters.contains(name) {
                true => self.text.push(format!("from{port} :: FromDevice({name});")),
                false => {
                    self.element("ToDevice", name, &[]);
                }
            }
        }
        let root = self.of.root;
        for (port, name) in ports.iter().filter(|p| enters.contains(&p.1)) {
            let entry = self.store.at(root, Var::Port, *port as u64);
            let to = self.node(entry, State::Frame)?;
            self.text.push(format!("// what {name} sends"));
            self.text.push(format!("from{port} -> {to};"));
        }
        let mut text = format!(
            "// {}, synthesised: a classifier, and a write for each class.\n",
            self.of.name
        );
        for line in &self.text {
            text.push_str(line);
            text.push('\n');
        }
        Ok(text)
    }

    /// The input of an element with this class and configuration, whose outputs lead to these inputs.
    fn element(
        &mut self,
        class: &'static str,
        config: &str,
        outputs: &[(usize, String)],
    ) -> String {
        let key = format!("{class}({config}){outputs:?}");
        if let Some(name) = self.names.get(&key) {
            return name.clone();
        }
        let number = self.numbers.entry(class).or_default();
        *number += 1;
        let name = format!("{}{number}", class.to_lowercase());
        let config = match config.is_empty() {
            true => String::new(),
            false => format!("({config})"),
        };
        self.text.push(format!("{name} :: {class}{config};"));
        for (output, to) in outputs {
            self.text.push(format!("{name} [{output}] -> {to};"));
        }
        self.names.insert(key, name.clone());
        name
    }

    fn drop(&mut self) -> String {
        self.element("Discard", "", &[])
    }

    fn action(&self, id: Id) -> Option<&Action> {
        match self.store.node(id) {
            Node::Leaf(number) => self.of.actions.get(*number),
            Node::Branch { .. } => None,
        }
    }

    fn dropped(&self, id: Id) -> bool {
        self.action(id)
            .is_some_and(|a| matches!(a.verdict, Verdict::Drop(_)))
    }

    /// The input of what does with packets as a diagram says.
    fn node(&mut self, id: Id, state: State) -> Made {
        if let Some(done) = self.done.get(&(id, state)) {
            return Ok(done.clone());
        }
        let made = match self.store.node(id).clone() {
            Node::Leaf(number) => {
                let action = self.of.actions.get(number).cloned();
                let action = action.ok_or_else(|| no("a class has no action"))?;
                self.leaf(&action, state)?
            }
            Node::Branch { var, kids } => self.branch(id, var, &kids, state)?,
        };
        self.done.insert((id, state), made.clone());
        Ok(made)
    }

    fn branch(&mut self, id: Id, var: Var, kids: &[(u64, Id)], state: State) -> Made {
        match var {
            Var::Length => match kids.split_last() {
                // What comes then drops what is shorter.
                Some((last, short))
                    if short.iter().all(|k| self.dropped(k.1)) && self.guarded(last.1, last.0) =>
                {
                    self.node(last.1, state)
                }
                _ => Err(no("it tests how long a frame is")),
            },
            Var::Checked(IP, true) => {
                let &[(0, wrong), (1, right)] = kids else {
                    return Err(no("a check of an IP header has no two outcomes"));
                };
                if state == State::Checked || !self.dropped(wrong) {
                    return Err(no("packets with a wrong IP header are not dropped"));
                }
                let right = self.node(right, State::Checked)?;
                let wrong = self.drop();
                let check = self.element("CheckIPHeader", "", &[(0, right), (1, wrong)]);
                Ok(self.element("Strip", "14", &[(0, check)]))
            }
            Var::Bits(Base::Frame, first, _) if first < 112 => {
                if state == State::Checked {
                    return Err(no(format!(
                        "it tests {var} behind the check of the IP header"
                    )));
                }
                self.frame(var, kids, state)
            }
            Var::Room(IP, _) => {
                let last = kids.last().map(|k| k.1);
                match last.filter(|last| self.short(kids) && self.only_flows(*last)) {
                    Some(last) => self.node(last, state),
                    None => Err(no("it tests how much of a transport header there is")),
                }
            }
            _ if word(var).is_some() => self.flows(id, state),
            Var::Bits(..) | Var::Entry(..) => self.fields(var, kids, state),
            _ => Err(no(format!("it tests {var}"))),
        }
    }

    /// Fields of Ethernet's header.
    fn frame(&mut self, var: Var, kids: &[(u64, Id)], state: State) -> Made {
        let (mut patterns, mut outputs) = (Vec::new(), Vec::new());
        for (n, (low, kid)) in kids.iter().enumerate() {
            let high = kids.get(n + 1).map_or(var.most(), |k| k.0 - 1);
            let to = self.node(*kid, state)?;
            for pattern in condition::bytes(var, *low, high) {
                outputs.push((patterns.len(), to.clone()));
                patterns.push(pattern);
            }
        }
        // Where many patterns lead to one place, the rest is that.
        if let Some(most) = commonest(&outputs) {
            let kept: Vec<_> = outputs
                .iter()
                .zip(&patterns)
                .filter(|(o, _)| o.1 != most)
                .map(|(o, p)| (p.clone(), o.1.clone()))
                .collect();
            patterns = kept.iter().map(|k| k.0.clone()).collect();
            outputs = kept
                .into_iter()
                .enumerate()
                .map(|(n, k)| (n, k.1))
                .collect();
            outputs.push((patterns.len(), most));
            patterns.push("-".into());
        }
        Ok(self.element("Classifier", &patterns.join(", "), &outputs))
    }

    /// Tests of a field of IP's or the transport header, one by one.
    fn fields(&mut self, var: Var, kids: &[(u64, Id)], state: State) -> Made {
        let state = if state == State::Frame {
            State::Marked
        } else {
            state
        };
        let (mut rules, mut outputs) = (Vec::new(), Vec::new());
        for (n, (low, kid)) in kids.iter().enumerate() {
            let high = kids.get(n + 1).map_or(var.most(), |k| k.0 - 1);
            let to = self.node(*kid, state)?;
            if self.dropped(*kid) {
                continue;
            }
            let condition = condition::field(var, low.to_owned(), high)
                .ok_or_else(|| no(format!("no filter tests {var}")))?;
            rules.push(format!("{} {condition}", outputs.len()));
            outputs.push((outputs.len(), to));
        }
        let filter = self.element("IPFilter", &rules.join(", "), &outputs);
        Ok(self.marked(filter, state))
    }

    /// All tests of a flow's words: one filter.
    fn flows(&mut self, id: Id, state: State) -> Made {
        let state = if state == State::Frame {
            State::Marked
        } else {
            state
        };
        let hints = rows::hints(self.of);
        let lines = rows::shortest(&mut self.store, id, &hints)
            .map_err(|_| no("classes by addresses and ports become too many rules"))?;
        let (mut rules, mut outputs): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for Line { cube, to, .. } in &lines {
            let condition = condition::cube(cube);
            if self.dropped(*to) {
                rules.push(format!("drop {condition}"));
                continue;
            }
            let to = self.node(*to, state)?;
            let known = outputs.iter().position(|o| *o == to);
            let output = known.unwrap_or(outputs.len());
            if known.is_none() {
                outputs.push(to);
            }
            rules.push(format!("{output} {condition}"));
        }
        // What no rule takes is dropped.
        while rules.last().is_some_and(|r| r.starts_with("drop ")) {
            rules.pop();
        }
        let outputs: Vec<_> = outputs.into_iter().enumerate().collect();
        // `drop` leads to output 1 where there is none lower, so it has to have a number of its own.
        let gone = outputs.len();
        let drops = rules.iter().any(|r| r.starts_with("drop "));
        let mut outputs = outputs;
        if drops {
            for rule in &mut rules {
                if let Some(condition) = rule.strip_prefix("drop ") {
                    *rule = format!("{gone} {condition}");
                }
            }
            outputs.push((gone, self.drop()));
        }
        let filter = match rules.is_empty() {
            true => self.drop(),
            false => self.element("IPFilter", &rules.join(",\n    "), &outputs),
        };
        Ok(self.marked(filter, state))
    }

    /// The mark of an IP header in front of what needs it.
    fn marked(&mut self, to: String, state: State) -> String {
        match state {
            State::Checked => to,
            _ => self.element("MarkIPHeader", "14", &[(0, to)]),
        }
    }

    fn leaf(&mut self, action: &Action, state: State) -> Made {
        let title = |of: &Synthesis, id: usize| {
            let element = of.router.graph().elements.get(id);
            element.map_or_else(|| "an element".into(), |e| e.title())
        };
        match action.verdict {
            Verdict::Drop(_) => Ok(self.drop()),
            Verdict::Leave { port, .. } => self.write(action, port, state),
            Verdict::Hand(id) | Verdict::Again(id) => {
                let why = format!("{} makes, copies or holds packets", title(self.of, id));
                Err(self.of.router.graph().elements.get(id).map_or_else(
                    || no(why.clone()),
                    |e| Error {
                        what: format!("the chain cannot be printed for Click: {why}"),
                        ..refusal::at(e, &why)
                    },
                ))
            }
            Verdict::Pass(id) => {
                let element = self.of.router.graph().elements.get(id);
                let what = "the chain cannot be printed for Click: packets are given to the host";
                Err(element.map_or_else(|| no(what), |e| refusal::at(e, what)))
            }
            Verdict::State(number) => self.rewriter(number, state),
        }
    }

    /// The input of a rewriter.
    fn rewriter(&mut self, number: u32, state: State) -> Made {
        let of = self.of;
        let asked = of
            .actions
            .asked(number)
            .ok_or_else(|| no("a rewriter is missing"))?;
        let id = asked.at.element;
        let element = of.router.graph().elements.get(id);
        let element = element.ok_or_else(|| no("a rewriter is missing"))?;
        let unwritten = asked.key.iter().zip(crate::backward::WORDS);
        for (value, word) in unwritten {
            if *value != Value::Field(crate::backward::word_of(IP, word), 0) {
                return Err(no(format!(
                    "{} sees words that were written before",
                    element.title()
                )));
            }
        }
        let name = safe(&element.name);
        if self.printed.insert(id) {
            self.text.push(format!(
                "{name} :: {}({});",
                element.class,
                element.config.trim()
            ));
        }
        for (output, then) in &asked.then {
            let to = self.node(*then, state)?;
            match self.behind.get(&(id, *output)) {
                Some(known) if *known == to => {}
                Some(_) => {
                    return Err(no(format!(
                        "packets behind {} are told apart by how they came to it",
                        element.title()
                    )));
                }
                None => {
                    self.behind.insert((id, *output), to.clone());
                    self.text.push(format!("{name} [{output}] -> {to};"));
                }
            }
        }
        Ok(self.marked(format!("[{}] {name}", asked.at.port), state))
    }

    /// Whether all packets that are not dropped have at least so many bytes, by what is tested then.
    fn guarded(&self, id: Id, least: u64) -> bool {
        if self.dropped(id) {
            return true;
        }
        match self.store.node(id) {
            Node::Leaf(_) => false,
            Node::Branch { var, kids } => match *var {
                Var::Checked(IP, _) => {
                    least <= 34 && kids.first().is_some_and(|k| k.0 == 0 && self.dropped(k.1))
                }
                // A pattern takes no packet that ends before it; what no pattern takes has to be dropped.
                Var::Bits(Base::Frame, 96, 16) if least <= 14 => {
                    let most = kids.iter().enumerate().max_by_key(|(n, k)| {
                        kids.get(n + 1).map_or(var.most(), |next| next.0 - 1) - k.0
                    });
                    most.is_some_and(|(_, k)| self.dropped(k.1))
                        || kids.iter().all(|k| self.guarded(k.1, least))
                }
                _ => kids.iter().all(|k| self.guarded(k.1, least)),
            },
        }
    }

    /// Whether packets with less room than a rewriter of Click asks for are dropped, and no others have a fate of their own.
    fn short(&self, kids: &[(u64, Id)]) -> bool {
        kids.iter().enumerate().all(|(n, (_, kid))| {
            let last = n + 1 == kids.len();
            let below = kids.get(n + 1).is_none_or(|next| next.0 <= 8);
            last || below && self.dropped(*kid) || self.only_flows(*kid)
        })
    }

    /// Whether all packets that are not dropped go to rewriters.
    fn only_flows(&self, id: Id) -> bool {
        self.store.reachable(id).into_iter().all(|id| {
            self.action(id).is_none_or(|a| match a.verdict {
                Verdict::Drop(_) | Verdict::State(_) => true,
                Verdict::Hand(id) => self.of.rewriters.contains(&id),
                _ => false,
            })
        })
    }
}

/// Where most of some outputs lead.
fn commonest(outputs: &[(usize, String)]) -> Option<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for (_, to) in outputs {
        *counts.entry(to).or_default() += 1;
    }
    let most = counts
        .into_iter()
        .max_by_key(|(to, count)| (*count, std::cmp::Reverse(*to)));
    most.map(|m| m.0.to_owned())
}

/// A name without slashes, which stand for compound elements.
fn safe(name: &str) -> String {
    let mut text: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        text.insert(0, '_');
    }
    text
}
