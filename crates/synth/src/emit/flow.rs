//! Flows as C: two maps, what a new flow gets, and its programs.

use super::{Emitter, Known};
use crate::backward::WORDS;
use crate::diagram::Id;
use crate::flows::{Becomes, Opening, Program, Way};

/// How the code of a branch ends.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// a new flow's program is known: its way, and whether answers are noted
    Opened(Program, Way, bool),
    /// a program of answers is known
    Back(usize),
    /// the packet is of no flow: what becomes of it, by what differs between packets
    Plain,
}

impl Emitter<'_> {
    fn number(&self, program: Program) -> usize {
        let all = &self.of.flows.programs;
        all.iter().position(|p| *p == program).unwrap_or(0)
    }

    /// What a branch becomes whose code is not its own.
    pub(super) fn end(&mut self, id: Id, known: Known, depth: usize) {
        match self.stops.get(&id).cloned() {
            Some(End::Opened(program, way, probes)) => {
                if probes && !self.stamped() {
                    self.say(depth, "fresh.answered = 1;");
                }
                self.opened(program, &way, known, depth);
            }
            Some(End::Back(program)) => {
                self.say(depth, &format!("fresh.back = {program};"));
                self.say(depth, "goto run;");
            }
            Some(End::Plain) => {
                self.stops.remove(&id);
                self.block(id, depth, true);
                self.stops.insert(id, End::Plain);
            }
            None => {
                if let Some(opening) = self.of.flows.openings.get(&id) {
                    self.opening(opening, known, depth);
                } else {
                    self.answers(id, known, depth);
                }
            }
        }
    }

    fn locals_of_flows(&mut self) {
        if self.of.flows.answered() {
            for name in ["behind", "*flow", "older"] {
                self.locals.insert(name.into(), "struct words");
            }
        }
        for (name, kind) in [
            ("key", "struct words"),
            ("to", "struct new_words"),
            ("*entry", "struct entry"),
            ("fresh", "struct entry"),
            ("program", "__u32"),
            ("leaf", "__u32"),
            ("answer", "__u32"),
            ("flags", "__u8"),
            ("tcp", "_Bool"),
            ("data", "_Bool"),
            ("*upper", "__u8"),
            ("*ip", "struct ipv4"),
        ] {
            self.locals.insert(name.into(), kind);
        }
    }

    /// A packet that may open a flow.
    fn opening(&mut self, opening: &Opening, known: Known, depth: usize) {
        self.locals_of_flows();
        self.lead_to_header(opening.header, known, depth);
        let protocol = opening.protocol;
        // With a stamp for each rewriter, what is decided when a flow is opened holds on: nothing is drawn.
        let known_flow = match self.stamped() {
            true => "entry",
            false => "entry && p->time < entry->until",
        };
        for line in [
            format!(
                "key = (struct words){{ ip->src, ip->dst, load16(upper), load16(upper + 2), {protocol}, {}, 0 }};",
                opening.origin
            ),
            "entry = map_refresh(&flows, &key);".into(),
            "answer = 0;".into(),
            format!("if ({known_flow}) {{"),
            "\tprogram = entry->program;".into(),
            "\tto = entry->to;".into(),
            "\tgoto run;".into(),
            "}".into(),
            "entry = NULL;".into(),
            "fresh = (struct entry){ 0 };".into(),
        ] {
            self.say(depth, &line);
        }
        let count = opening.variants.len();
        let answered = !self.of.flows.answers.is_empty();
        if count > 1 {
            self.locals.insert("draw".into(), "__u32");
            self.say(
                depth,
                &format!("draw = (__u64)random32() * {count} >> 32; /* which pattern */"),
            );
        }
        for (n, variant) in opening.variants.iter().enumerate() {
            let last = n + 1 == count;
            if !last {
                self.say(depth, &format!("if (draw == {n}) {{"));
            }
            let mut stops = std::collections::HashMap::new();
            for program in crate::flows::programs(&self.of.store, variant.root) {
                let end = match variant.ways.get(&program) {
                    Some(way) => End::Opened(
                        self.of.flows.program(program, way),
                        way.clone(),
                        answered || way.probes(),
                    ),
                    None => End::Plain,
                };
                stops.insert(program, end);
            }
            let outer = std::mem::replace(&mut self.stops, stops);
            self.within(variant.root, known, depth + usize::from(!last));
            self.stops = outer;
            if !last {
                self.say(depth, "}");
            }
        }
    }

    /// A new flow's program and words are known.
    fn opened(&mut self, program: Program, way: &Way, known: Known, depth: usize) {
        if let Some(hop) = way.hops.last() {
            self.at(hop.rewriter);
            let own = ["key.source", "key.destination", "key.sport", "key.dport"];
            let mut ranges = Vec::new();
            for ((word, becomes), own) in WORDS.into_iter().zip(hop.words).zip(own) {
                let name = format!("{word:?}").to_lowercase();
                let port = name.ends_with("port");
                let value = match becomes {
                    Becomes::Constant(number) if port => format!("htons({number})"),
                    Becomes::Constant(number) => {
                        let [a, b, c, d] = (number as u32).to_be_bytes();
                        format!("htonl(IPV4({a}, {b}, {c}, {d}))")
                    }
                    Becomes::Word(word) => {
                        let place = WORDS.iter().position(|w| *w == word).unwrap_or(0);
                        ["key.source", "key.destination", "key.sport", "key.dport"]
                            .get(place)
                            .copied()
                            .unwrap_or(own)
                            .to_owned()
                    }
                    Becomes::Range(low, count) => {
                        ranges.push((port, low, count));
                        own.to_owned()
                    }
                };
                self.say(depth, &format!("to.{name} = {value};"));
            }
            let address = ranges.iter().find(|r| !r.0).map_or((0, 1), |r| (r.1, r.2));
            let port = ranges.iter().find(|r| r.0).map_or((0, 1), |r| (r.1, r.2));
            let preferred = hop.own && address.1 == 1;
            if !ranges.is_empty() && program.lease.is_none() {
                self.say(
                    depth,
                    &format!(
                        "fresh.range = (struct range){{ {}, {}, {}, {}, {} }};",
                        address.0,
                        address.1,
                        port.0,
                        port.1,
                        u8::from(preferred)
                    ),
                );
            }
            self.say(depth, &format!("fresh.last = {};", hop.number));
        }
        let program = self.number(program);
        self.say(depth, &format!("fresh.program = {program};"));
        self.say(depth, &format!("program = {program};"));
        match way.back {
            None => self.say(depth, "goto run;"),
            Some(back) => {
                let programs = crate::flows::programs(&self.of.store, back);
                let stops = programs
                    .into_iter()
                    .map(|root| {
                        let program = self.of.flows.answer(root, way);
                        (root, End::Back(self.number(program)))
                    })
                    .collect();
                let outer = std::mem::replace(&mut self.stops, stops);
                self.within(back, known, depth);
                self.stops = outer;
            }
        }
    }

    /// A packet that may answer.
    fn answers(&mut self, id: Id, known: Known, depth: usize) {
        let Some(answers) = self.of.flows.answers.get(&id) else {
            return;
        };
        self.locals_of_flows();
        self.at(answers.rewriter);
        self.lead_to_header(answers.header, known, depth);
        let number = self
            .of
            .rewriters
            .iter()
            .position(|r| *r == answers.rewriter)
            .unwrap_or(0);
        for line in [
            format!(
                "behind = (struct words){{ ip->src, ip->dst, load16(upper), load16(upper + 2), {}, {number}, 0 }};",
                answers.protocol
            ),
            "flow = map_refresh(&answers, &behind);".into(),
            "if (!flow)".into(),
            "\treturn DROP_BECAUSE(no_flow);".into(),
            "key = *flow;".into(),
            "entry = map_refresh(&flows, &key);".into(),
            match self.stamped() {
                true => "if (!entry)".into(),
                false => "if (!entry || p->time >= entry->until)".into(),
            },
            "\treturn DROP_BECAUSE(no_flow);".into(),
            match self.stamped() {
                true => "entry->reserved = p->time + ANSWERED_FOR;".into(),
                false => String::new(),
            },
            "answer = 1;".into(),
            "program = entry->back;".into(),
            "to = (struct new_words){ key.destination, key.source, key.dport, key.sport };".into(),
            "goto run;".into(),
        ]
        .into_iter()
        .filter(|line| !line.is_empty())
        {
            self.say(depth, &line);
        }
    }

    /// A packet that has passed rewriters of its flow: the entry is updated, and then it leaves or ends.
    pub(super) fn keep(&mut self, number: u32, known: Known, depth: usize) {
        self.passed(number, depth);
        self.leave(number, known, depth);
    }

    /// The same, where it is known which rewriters it has passed.
    pub(super) fn leave(&mut self, number: u32, known: Known, depth: usize) {
        let mut leaves = self.leaves.iter();
        let found = leaves.position(|l| l.0 == number || self.ends_alike(l.0, number));
        let leaf = match found {
            Some(leaf) => leaf,
            None => {
                self.leaves.push((number, known));
                self.leaves.len() - 1
            }
        };
        self.say(depth, &format!("leaf = {leaf};"));
        self.say(depth, "goto keep;");
    }
}
