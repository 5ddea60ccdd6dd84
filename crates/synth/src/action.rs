//! Leaves of diagrams: what becomes of a packet, and which fields are written.

use std::collections::{BTreeMap, HashMap};

use millrace_click::language::Port;

use crate::diagram::Id;
use crate::field::Var;

/// What a field becomes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Value {
    /// a number
    Constant(u64),
    /// a field of the packet as it came, and a number added to it
    Field(Var, i64),
}

/// Which sums follow a write by a difference (RFC 1624). A sum that was wrong stays wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sums {
    /// the byte where the IP header begins whose sum covers the field
    pub header: Option<u16>,
    /// the protocol whose sum covers it: 6 (TCP), 17 (UDP), or 0
    pub upper: u8,
}

/// A written field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Write {
    /// what it becomes
    pub value: Value,
    /// which sums follow
    pub sums: Sums,
    /// whether more than one element of the chain writes it
    pub again: bool,
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// it leaves by the port of a device
    Leave {
        /// the element where it leaves
        element: usize,
        /// the port's number
        port: u8,
    },
    /// it is given to the host by an element, with what was written into it
    Pass(usize),
    /// it is dropped by an element, by whichever (`usize::MAX`), or for a reason of a function's ([`crate::Synthesis::drops`])
    Drop(usize),
    /// it comes to an element again; in no diagram that is complete
    Again(usize),
    /// what the element does makes, copies or holds packets: it is handed to the host as it came
    Hand(usize),
    /// a rewriter's table is asked ([`Stateful`])
    State(u32),
}

/// An action.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Action {
    /// what becomes of the packet
    pub verdict: Verdict,
    /// fields that differ from those of the packet as it came
    pub writes: BTreeMap<Var, Write>,
    /// bytes that go from the front, or come there if negative
    pub head: i32,
    /// the byte of the IP header whose length the frame is cut to
    pub cut: Option<u16>,
    /// rewriters that the packet has passed, of those of its flow ([`crate::flows`])
    pub hops: u8,
}

/// A rewriter that is asked, and what follows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Stateful {
    /// the rewriter and the input by which the packet came
    pub at: Port,
    /// number of the rewriter: names the words of its entry
    pub hop: u8,
    /// where the IP header begins
    pub header: u16,
    /// whether the frame is cut to the IP packet's length
    pub cut: bool,
    /// the protocol whose sum covers addresses and ports: 6, 17, or 0 where the packet does not have all of that header
    pub upper: u8,
    /// words of the flow as the rewriter sees them: source, destination, source port, destination port
    pub key: [Value; 4],
    /// what follows by the rewriter's outputs, words of the flow replaced by those of the entry
    pub then: Vec<(usize, Id)>,
}

/// All actions of a synthesis, numbered.
#[derive(Default)]
pub struct Actions {
    all: Vec<Action>,
    numbers: HashMap<Action, u32>,
    states: Vec<Stateful>,
    /// lists of rules that diagrams ask
    pub lists: crate::listed::Lists,
}

impl Actions {
    /// The number of an action.
    pub fn number(&mut self, action: Action) -> u32 {
        if let Some(number) = self.numbers.get(&action) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(action.clone());
        self.numbers.insert(action, number);
        number
    }

    /// The number of an action that writes nothing.
    pub fn plain(&mut self, verdict: Verdict) -> u32 {
        self.number(Action {
            verdict,
            writes: BTreeMap::new(),
            head: 0,
            cut: None,
            hops: 0,
        })
    }

    /// An action by its number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Action> {
        self.all.get(number as usize)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Action> {
        self.all.iter()
    }

    /// All askings.
    pub fn all_asked(&self) -> impl Iterator<Item = &Stateful> {
        self.states.iter()
    }

    /// The number of an asking.
    pub fn state(&mut self, state: Stateful) -> u32 {
        let found = self.states.iter().position(|s| *s == state);
        found.unwrap_or_else(|| {
            self.states.push(state);
            self.states.len() - 1
        }) as u32
    }

    /// An asking by its number.
    #[must_use]
    pub fn asked(&self, number: u32) -> Option<&Stateful> {
        self.states.get(number as usize)
    }
}

impl Value {
    /// The value for a packet before a field becomes another one.
    #[must_use]
    pub fn before(self, var: Var, new: Self) -> Self {
        match (self, new) {
            (Self::Field(read, more), Self::Constant(number)) if read == var => {
                Self::Constant(number.wrapping_add_signed(more) & var.most())
            }
            (Self::Field(read, more), Self::Field(first, before)) if read == var => {
                Self::Field(first, before + more)
            }
            _ => self,
        }
    }
}

impl Action {
    /// The action for a packet before a write, given the one for the packet behind it. Packets that are dropped or handed
    /// over are written by nobody.
    #[must_use]
    pub fn before(&self, var: Var, write: Write) -> Self {
        let mut action = self.clone();
        if matches!(
            self.verdict,
            Verdict::Drop(_) | Verdict::Hand(_) | Verdict::Again(_)
        ) {
            return action;
        }
        for later in action.writes.values_mut() {
            later.value = later.value.before(var, write.value);
        }
        match action.writes.get_mut(&var) {
            Some(later) => later.again = true,
            None => {
                // A field that only annotations hold is in no packet.
                if !matches!(var, Var::Destination | Var::Anno(_) | Var::Kind) {
                    action.writes.insert(var, write);
                }
            }
        }
        action
    }
}
