//! The table of mappings.

use std::collections::{BTreeMap, HashMap};

use super::{Key, Specification};
use crate::arguments::{SECOND, dots};

/// Ages of mappings, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// TCP, both sides have spoken
    pub tcp: i64,
    /// TCP, ended
    pub tcp_done: i64,
    /// TCP, one side alone has sent data
    pub tcp_nodata: i64,
    /// others
    pub other: i64,
    /// others that have had several packets in both directions
    pub streaming: i64,
    /// how long a mapping is kept in any case after a packet
    pub guarantee: i64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            tcp: 86_400 * SECOND,
            tcp_done: 240 * SECOND,
            tcp_nodata: 300 * SECOND,
            other: 300 * SECOND,
            streaming: 300 * SECOND,
            guarantee: 5 * SECOND,
        }
    }
}

/// The way of a packet in its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// as the first packet
    Forward,
    /// an answer
    Reply,
}

/// A mapping.
#[derive(Clone, Debug)]
pub struct Flow {
    /// words of its packets as they come
    pub from: Key,
    /// as they leave
    pub to: Key,
    /// outputs of both directions
    pub outputs: (usize, usize),
    /// the input by which it came
    pub input: usize,
    /// its number, from 0
    pub number: u32,
    /// an annotation's byte that answers get
    pub annotation: u8,
    expires: i64,
    guaranteed: i64,
    /// data in both directions, and ends of both
    spoke: [bool; 2],
    ended: [bool; 2],
    packets: [u32; 2],
}

/// What a new mapping is made of.
pub struct New {
    /// words of its packets as they come
    pub from: Key,
    /// as they leave
    pub to: Key,
    /// outputs of both directions
    pub outputs: (usize, usize),
    /// the input by which it came
    pub input: usize,
    /// an annotation's byte that answers get
    pub annotation: u8,
}

/// Mappings of a rewriter, and the specifications of its inputs.
pub struct Rewriter {
    /// by input
    pub inputs: Vec<Specification>,
    /// ages
    pub timeouts: Timeouts,
    /// mappings, at most
    pub capacity: usize,
    /// elements that share the capacity
    pub sharers: Vec<usize>,
    /// new flows that were refused
    pub failures: u64,
    /// whether keys have ports, and patterns
    pub ports: bool,
    flows: BTreeMap<u64, Flow>,
    keys: HashMap<Key, (u64, Direction)>,
    made: u64,
    /// what was before each change since [`Rewriter::begin`], in their order
    before: Option<Vec<Before>>,
}

/// What a change of the table replaced.
enum Before {
    Flow(u64, Option<Flow>),
    Key(Key, Option<(u64, Direction)>),
}

impl Rewriter {
    /// Notes from now on what changes, so that [`Rewriter::undo`] can take it back.
    pub fn begin(&mut self) {
        self.before = Some(Vec::new());
    }

    /// Notes nothing any more.
    pub fn keep(&mut self) {
        self.before = None;
    }

    /// Takes back what has changed of the mappings since [`Rewriter::begin`].
    pub fn undo(&mut self) {
        for before in self.before.take().into_iter().flatten().rev() {
            match before {
                Before::Flow(id, Some(flow)) => drop(self.flows.insert(id, flow)),
                Before::Flow(id, None) => drop(self.flows.remove(&id)),
                Before::Key(key, Some(of)) => drop(self.keys.insert(key, of)),
                Before::Key(key, None) => drop(self.keys.remove(&key)),
            }
        }
    }

    fn note_flow(&mut self, id: u64) {
        if let Some(before) = &mut self.before {
            before.push(Before::Flow(id, self.flows.get(&id).cloned()));
        }
    }

    fn note_key(&mut self, key: Key) {
        if let Some(before) = &mut self.before {
            before.push(Before::Key(key, self.keys.get(&key).copied()));
        }
    }

    /// An empty table.
    #[must_use]
    pub fn new(inputs: Vec<Specification>, ports: bool) -> Self {
        Self {
            inputs,
            timeouts: Timeouts::default(),
            capacity: 1 << 20,
            sharers: Vec::new(),
            failures: 0,
            ports,
            flows: BTreeMap::new(),
            keys: HashMap::new(),
            made: 0,
            before: None,
        }
    }

    /// How many mappings there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// The mapping of a key that is not expired.
    pub fn find(&mut self, key: Key, now: i64) -> Option<(&mut Flow, Direction)> {
        let (id, direction) = *self.keys.get(&key)?;
        let expired = self
            .flows
            .get(&id)
            .is_some_and(|f| f.expires <= now && f.guaranteed <= now);
        if expired {
            self.remove(id);
            return None;
        }
        self.note_flow(id);
        self.flows.get_mut(&id).map(|flow| (flow, direction))
    }

    /// Whether a flow with these words could have its answers told from all others.
    #[must_use]
    pub fn free(&self, to: Key, now: i64) -> bool {
        let taken = self
            .keys
            .get(&to.reverse())
            .and_then(|(id, _)| self.flows.get(id));
        taken.is_none_or(|f| f.expires <= now && f.guaranteed <= now)
    }

    /// Takes a mapping away.
    pub fn remove(&mut self, id: u64) {
        self.note_flow(id);
        if let Some(flow) = self.flows.remove(&id) {
            for key in [flow.from, flow.to.reverse()] {
                if self.keys.get(&key).is_some_and(|k| k.0 == id) {
                    self.note_key(key);
                    self.keys.remove(&key);
                }
            }
        }
    }

    /// The mapping that is not guaranteed and would expire first: when, and its number.
    #[must_use]
    pub fn first_loose(&self, now: i64) -> Option<(i64, u64)> {
        let loose = self.flows.iter().filter(|(_, f)| f.guaranteed <= now);
        loose.map(|(id, f)| (f.expires, *id)).min()
    }

    /// Whether a mapping is there.
    #[must_use]
    pub fn holds(&self, id: u64) -> bool {
        self.flows.contains_key(&id)
    }

    /// Takes mappings away until there are no more than fit.
    pub fn shrink(&mut self, now: i64) {
        while self.flows.len() > self.capacity
            && let Some((_, first)) = self.first_loose(now)
        {
            self.remove(first);
        }
    }

    /// Takes all mappings of an input away.
    pub fn clear(&mut self, input: usize) {
        let all = self.flows.iter().filter(|(_, f)| f.input == input);
        let all: Vec<u64> = all.map(|(id, _)| *id).collect();
        all.into_iter().for_each(|id| self.remove(id));
    }

    /// Adds a mapping and notes its first packet; its number. The table may have too many then.
    pub fn add(&mut self, flow: &New, tcp: Option<(u8, bool)>, now: i64) -> u64 {
        let (from, to) = (flow.from, flow.to);
        for key in [from, to.reverse()] {
            if let Some((old, _)) = self.keys.get(&key).copied() {
                self.remove(old);
            }
        }
        let id = self.made;
        self.made += 1;
        self.note_flow(id);
        self.note_key(from);
        self.keys.insert(from, (id, Direction::Forward));
        self.note_key(to.reverse());
        // Where both are the same, a packet of the flow counts as an answer.
        self.keys.insert(to.reverse(), (id, Direction::Reply));
        let mut flow = Flow {
            from,
            to,
            outputs: flow.outputs,
            input: flow.input,
            number: id as u32,
            annotation: flow.annotation,
            expires: now,
            guaranteed: now,
            spoke: [false; 2],
            ended: [false; 2],
            packets: [0; 2],
        };
        flow.touch(Direction::Forward, tcp, &self.timeouts, now);
        self.flows.insert(id, flow);
        id
    }

    /// Lines of the table's handler.
    #[must_use]
    pub fn show(&self, protocol: u8) -> String {
        let mut lines = Vec::new();
        for flow in self
            .flows
            .values()
            .filter(|f| f.from.protocol == protocol || protocol == 0)
        {
            let key = |k: Key| {
                format!(
                    "({}, {}, {}, {})",
                    dots(k.source),
                    k.sport,
                    dots(k.destination),
                    k.dport
                )
            };
            let (forward, reply) = flow.outputs;
            lines.push(format!(
                "{} => {} [*{forward} {reply}] i{}\n",
                key(flow.from),
                key(flow.to),
                flow.input
            ));
            lines.push(format!(
                "{} => {} [{forward} *{reply}] i{}\n",
                key(flow.to.reverse()),
                key(flow.from.reverse()),
                flow.input
            ));
        }
        lines.concat()
    }

    /// Lines of the specifications.
    #[must_use]
    pub fn patterns(&self) -> String {
        let show = |input: &Specification| match input {
            Specification::Drop => "<drop>".to_owned(),
            Specification::Pass(output) => format!("pass {output}"),
            Specification::Keep(forward, reply) => format!("keep {forward} {reply}"),
            Specification::Pattern(pattern, ..) => pattern.show(),
            Specification::Mapper(_) => "<mapper>".to_owned(),
        };
        let line = |(number, input): (usize, &Specification)| {
            let flows = self.flows.values().filter(|f| f.input == number).count();
            let flows = if flows == 0 {
                String::new()
            } else {
                format!(" [{flows}]")
            };
            format!("{}{flows}\n", show(input))
        };
        self.inputs.iter().enumerate().map(line).collect()
    }
}

impl Flow {
    /// Notes a packet, with the flags of TCP and whether it has data; the mapping lives on.
    pub fn touch(
        &mut self,
        direction: Direction,
        tcp: Option<(u8, bool)>,
        timeouts: &Timeouts,
        now: i64,
    ) {
        let side = usize::from(direction == Direction::Reply);
        self.packets[side] = self.packets[side].saturating_add(1);
        let age = match tcp {
            Some((flags, data)) => {
                use millrace_wire::tcp::FIN;
                // RFC 9293, 3.1.
                const SYN: u8 = 0x02;
                const RST: u8 = 0x04;
                if flags & RST != 0 {
                    self.ended = [true; 2];
                } else if flags & FIN != 0 {
                    self.ended[side] = true;
                } else if flags & SYN != 0 {
                    self.ended[side] = false;
                }
                self.spoke[side] |= data;
                match (self.ended, self.spoke) {
                    ([true, true], _) => timeouts.tcp_done,
                    (_, [true, true]) => timeouts.tcp,
                    _ => timeouts.tcp_nodata,
                }
            }
            None if self.packets[0] > 0
                && self.packets[1] > 0
                && self.packets[0] + self.packets[1] > 2 =>
            {
                timeouts.streaming
            }
            None => timeouts.other,
        };
        self.expires = now.saturating_add(age);
        self.guaranteed = now.saturating_add(timeouts.guarantee);
    }

    /// The words that a packet gets.
    #[must_use]
    pub fn words(&self, direction: Direction) -> Key {
        match direction {
            Direction::Forward => self.to,
            Direction::Reply => self.from.reverse(),
        }
    }

    /// The output of a packet.
    #[must_use]
    pub fn output(&self, direction: Direction) -> usize {
        match direction {
            Direction::Forward => self.outputs.0,
            Direction::Reply => self.outputs.1,
        }
    }
}
