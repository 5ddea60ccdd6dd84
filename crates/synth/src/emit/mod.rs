//! The diagram as C in the handler dialect.
//!
//! A field is read once, at the branch that tests it, and written once, at the end of a class. Branches that several paths share
//! are labels. Lines are those of the configuration: of a branch, the element that made its first value of interest; of a class,
//! the element where its packets leave.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use millrace_click::meaning::Meaning;

use crate::Synthesis;
use crate::action::{Action, Verdict};
use crate::diagram::{Id, Node};
use crate::field::{Base, Var};

mod choice;
mod condition;
mod finish;
mod flow;
mod graded;
mod read;
mod stamps;

/// Comparisons of one branch above which it is searched by halves.
const MOST_COMPARED: usize = 12;

/// What is known at a place of the code: which pointers lead to how many bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Known {
    /// bytes from the frame's first on
    frame: u32,
    /// where the IP header begins that `ip` leads to, 20 bytes
    ip: Option<u16>,
    /// bytes of the transport header that `upper` leads to
    upper: u32,
}

impl Known {
    fn meet(self, other: Self) -> Self {
        Self {
            frame: self.frame.min(other.frame),
            ip: self.ip.filter(|at| other.ip == Some(*at)),
            upper: self.upper.min(other.upper),
        }
    }
}

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

    /// What is known at each node, whichever path leads there.
    fn prove(&mut self, root: Id, known: Known) {
        self.known.insert(root, known);
        for id in self.of.store.reachable(root) {
            let known = self.known.get(&id).copied().unwrap_or_default();
            if let Node::Branch { var, kids } = self.of.store.node(id) {
                for (first, kid) in kids {
                    let after = Self::after(known, *var, *first);
                    let old = self.known.get(kid).copied();
                    let both = old.map_or(after, |old| old.meet(after));
                    self.known.insert(*kid, both);
                }
            }
        }
    }

    /// What is known behind a branch, for the interval that begins at a value.
    fn after(mut known: Known, var: Var, first: u64) -> Known {
        match var {
            Var::Length => known.frame = known.frame.max(first as u32),
            Var::Checked(at, _) if first == 1 => {
                known.frame = known.frame.max(u32::from(at) + 20);
                known.ip = Some(at);
            }
            Var::Room(at, _) => {
                known.upper = known.upper.max(first as u32);
                if known.frame >= u32::from(at) + 20 {
                    known.ip = Some(at);
                }
            }
            Var::Bits(Base::Frame, bit, _) if bit >= 112 => {
                known.ip = Self::header(known, bit).or(known.ip);
            }
            _ => {}
        }
        known
    }

    /// Where the IP header begins that a bit of the frame is in, if it may be read as one.
    fn header(known: Known, bit: u32) -> Option<u16> {
        let inside = |at: u16| {
            let start = u32::from(at) * 8;
            bit >= start && bit < start + 160
        };
        known.ip.filter(|at| inside(*at)).or_else(|| {
            [14, 18, 22]
                .into_iter()
                .find(|at| inside(*at) && known.frame >= u32::from(*at) + 20)
        })
    }

    /// Several paths meet here. Each proved that the transport header is there, at a place of its own: what follows needs one
    /// proof.
    fn again(&mut self, known: Known) {
        let (Some(at), bytes) = (known.ip, known.upper) else {
            return;
        };
        if bytes > 0 {
            self.say(1, &format!("ip = packet_at(p, {at}, struct ipv4);"));
            self.say(1, "if (!ip)\n\t\treturn DROP;");
            self.say(
                1,
                &format!("upper = packet_bytes(p, {at} + ipv4_header_bytes(ip), {bytes});"),
            );
            self.say(1, "if (!upper)\n\t\treturn DROP;");
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
                .is_none_or(|a| !matches!(a.verdict, Verdict::Leave { .. })),
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

    fn branch(&mut self, var: Var, kids: &[(u64, Id)], known: Known, depth: usize) {
        let origin = kids
            .iter()
            .skip(1)
            .chain(kids.first())
            .find_map(|k| self.of.origins.get(&(var, k.0)).copied());
        if let Some(element) = origin {
            self.at(element);
        }
        match var {
            Var::Length => return self.lengths(kids, depth),
            Var::Checked(at, sum) => return self.checked(at, sum, kids, known, depth),
            Var::Room(at, cut) => return self.rooms((at, cut), kids, known, depth),
            _ => {}
        }
        let (ranges, held) = self.graded(var, kids, known, depth);
        let left: Vec<(u64, Id)> = ranges.iter().map(|r| (r.0, r.2)).collect();
        let kids = left.as_slice();
        let value = match &held {
            Some(name) => name.clone(),
            None => self.read(var, known, depth),
        };
        if kids.len() > MOST_COMPARED {
            let name = held.unwrap_or_else(|| self.local(var, &value, depth));
            return self.halves(&name, var, kids, depth);
        }
        // The default is what most intervals lead to, and of these what needs most code.
        let mut groups: BTreeMap<Id, Vec<(u64, u64)>> = BTreeMap::new();
        for (first, last, id) in ranges {
            groups.entry(id).or_default().push((first, last));
        }
        let weight = |id: &Id| self.of.store.reachable(*id).len();
        let default = groups
            .iter()
            .max_by_key(|(id, ranges)| (ranges.len(), weight(id)))
            .map(|g| *g.0);
        let Some(default) = default else {
            return;
        };
        let tests: usize = groups
            .iter()
            .filter(|g| *g.0 != default)
            .map(|g| g.1.len())
            .sum();
        let value = match held.is_none() && (tests > 1 || groups.values().flatten().count() > 3) {
            true => self.local(var, &value, depth),
            false => value,
        };
        let mut rest: Vec<_> = groups.into_iter().filter(|g| g.0 != default).collect();
        rest.sort_by_key(|g| g.1.first().copied());
        for (id, ranges) in rest {
            let test = condition::any(var, &value, &ranges);
            self.say(depth, &format!("if ({test}) {{"));
            self.block(id, depth + 1, false);
            self.say(depth, "}");
        }
        self.block(default, depth, false);
    }

    /// A search by halves.
    fn halves(&mut self, name: &str, var: Var, kids: &[(u64, Id)], depth: usize) {
        if kids.iter().all(|k| Some(k.1) == kids.first().map(|f| f.1)) {
            if let Some((_, id)) = kids.first() {
                self.block(*id, depth, false);
            }
            return;
        }
        let (below, above) = kids.split_at(kids.len() / 2);
        let cut = above.first().map_or(0, |k| k.0);
        let cut = condition::number(var, cut);
        self.say(depth, &format!("if ({name} < {cut}) {{"));
        self.halves(name, var, below, depth + 1);
        self.say(depth, "}");
        self.halves(name, var, above, depth);
    }

    /// A variable with a field's value.
    fn local(&mut self, var: Var, value: &str, depth: usize) -> String {
        let name = condition::name(var);
        let kind = if var.most() > u64::from(u32::MAX) {
            "__u64"
        } else {
            "__u32"
        };
        self.locals.insert(name.clone(), kind);
        self.say(depth, &format!("{name} = {value};"));
        name
    }

    fn lengths(&mut self, kids: &[(u64, Id)], depth: usize) {
        for pair in kids.windows(2) {
            let [(_, shorter), (bytes, _)] = pair else {
                continue;
            };
            self.locals.insert("*longer".into(), "__u8");
            self.say(depth, &format!("longer = packet_bytes(p, 0, {bytes});"));
            self.say(depth, "if (!longer) {");
            self.block(*shorter, depth + 1, false);
            self.say(depth, "}");
            self.say(depth, "frame = longer;");
            self.locals.insert("*frame".into(), "__u8");
        }
        if let Some((_, last)) = kids.last() {
            self.block(*last, depth, false);
        }
    }

    fn checked(&mut self, at: u16, sum: bool, kids: &[(u64, Id)], known: Known, depth: usize) {
        let [(_, wrong), (_, right)] = kids else {
            return;
        };
        self.locals.insert("*frame".into(), "__u8");
        self.locals.insert("*ip".into(), "struct ipv4");
        let bytes = u32::from(at) + 20;
        let function = if sum { "ipv4_at" } else { "ipv4_without_sum" };
        self.needs.loose |= !sum;
        let check = format!("ip = {function}(p, {at});");
        if known.frame < bytes {
            self.say(depth, &format!("longer = packet_bytes(p, 0, {bytes});"));
            self.locals.insert("*longer".into(), "__u8");
            self.say(depth, "if (!longer) {");
            self.block(*wrong, depth + 1, false);
            self.say(depth, "}");
            self.say(depth, &check);
            self.say(depth, "if (!ip) {");
            self.block(*wrong, depth + 1, false);
            self.say(depth, "}");
            self.say(depth, "frame = longer;");
        } else {
            self.say(depth, &check);
            self.say(depth, "if (!ip) {");
            self.block(*wrong, depth + 1, false);
            self.say(depth, "}");
        }
        self.block(*right, depth, false);
    }

    fn rooms(&mut self, (at, cut): (u16, bool), kids: &[(u64, Id)], known: Known, depth: usize) {
        self.locals.insert("*upper".into(), "__u8");
        self.locals.insert("*more".into(), "__u8");
        let whole = known.ip == Some(at) || known.frame >= u32::from(at) + 20;
        if whole {
            self.lead_to_header(at, known, depth);
        }
        let header = match whole {
            true => "ipv4_header_bytes(ip)".to_owned(),
            // The frame ends within the header; its length is that of a shorter one, or nothing follows.
            false => format!("(frame[{at}] & 15) * 4u"),
        };
        self.needs.cut_room |= cut;
        for pair in kids.windows(2) {
            let [(_, fewer), (bytes, _)] = pair else {
                continue;
            };
            self.say(
                depth,
                &match cut {
                    true => format!("more = transport_within(p, ip, {at}, {bytes});"),
                    false => format!("more = packet_bytes(p, {at} + {header}, {bytes});"),
                },
            );
            self.say(depth, "if (!more) {");
            self.block(*fewer, depth + 1, false);
            self.say(depth, "}");
            self.say(depth, "upper = more;");
        }
        if let Some((_, last)) = kids.last() {
            self.block(*last, depth, false);
        }
    }

    /// Lets `ip` lead to the IP header at a byte.
    fn lead_to_header(&mut self, at: u16, known: Known, depth: usize) {
        if known.ip != Some(at) {
            self.locals.insert("*ip".into(), "struct ipv4");
            self.say(depth, &format!("ip = (struct ipv4 *)(frame + {at});"));
        }
    }

    fn finish(&mut self, action: &Action, known: Known, depth: usize) {
        match action.verdict {
            Verdict::Drop(element) | Verdict::Again(element) => {
                self.at(element);
                let reason = reason(self.of, element);
                self.say(depth, &format!("return DROP_BECAUSE({reason});"));
            }
            Verdict::Hand(element) => {
                self.at(element);
                let code = match self.of.number(element) {
                    Some(number) => format!("return HAND_OVER({number});"),
                    None => "return PASS;".into(),
                };
                self.say(depth, &code);
            }
            Verdict::Leave { element, port } => {
                self.at(element);
                self.writes(action, known, depth);
                self.say(depth, &format!("return FORWARD({port});"));
            }
            Verdict::State(_) => self.say(depth, "return PASS;"),
        }
    }

    /// The whole file around the function's code.
    fn frame(self) -> String {
        let mut text = String::new();
        let graph = self.of.router.graph();
        let _ = writeln!(
            text,
            "/* {}: {} elements, synthesised. */\n#include <millrace/nf.h>",
            self.of.name,
            graph.elements.len()
        );
        if self.needs.adjust {
            text.push_str("#include <millrace/adjust.h>\n");
        }
        if !self.of.flows.openings.is_empty() {
            text.push_str("#include <millrace/ipv4.h>\n");
        }
        let names: Vec<String> = self.of.ports.iter().map(|p| condition::word(p)).collect();
        let _ = writeln!(text, "\nPORTS({});", names.join(", "));
        for (needed, helper) in [(self.needs.loose, LOOSE), (self.needs.cut_room, CUT_ROOM)] {
            if needed {
                text.push('\n');
                text.push_str(helper);
            }
        }
        text.push_str(&self.choices.declared());
        text.push_str(&self.state());
        text.push_str("\nON_PACKET(p)\n{\n");
        let mut by_type: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, kind) in &self.locals {
            by_type.entry(kind).or_default().push(name);
        }
        for (kind, names) in by_type {
            let _ = writeln!(text, "\t{kind} {};", names.join(", "));
        }
        text.push('\n');
        text.push_str(&self.out);
        text.push_str("}\n");
        text.push_str(&self.choices.data(&self.of.store));
        text
    }
}

/// The reason for which an element drops: its name.
#[must_use]
pub fn reason(of: &Synthesis, element: usize) -> String {
    let graph = of.router.graph();
    let name = graph.elements.get(element).map(|e| e.name.as_str());
    name.map_or_else(|| "discarded".into(), condition::word)
}

const LOOSE: &str = "/* The IP header at an offset, whatever its sum, or NULL. */
MILLRACE_INLINE struct ipv4 *ipv4_without_sum(const struct packet *p, __u32 at)
{
	struct ipv4 *ip = packet_at(p, at, struct ipv4);
	__u32 header, length;

	if (!ip || ip->version_ihl >> 4 != 4)
		return NULL;
	header = ipv4_header_bytes(ip);
	length = ntohs(ip->length);
	if (header < sizeof(struct ipv4) || length < header || at + length > packet_length(p))
		return NULL;
	return ip;
}
";

const CUT_ROOM: &str = "/* The transport header, if the IP packet has so many bytes of it. */
MILLRACE_INLINE void *transport_within(const struct packet *p, const struct ipv4 *ip, __u32 at,
				       __u32 bytes)
{
	__u32 header = ipv4_header_bytes(ip);

	if (ntohs(ip->length) < header + bytes)
		return NULL;
	return packet_bytes(p, at + header, bytes);
}
";
