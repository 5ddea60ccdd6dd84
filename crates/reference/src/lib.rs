//! A slow interpreter that notices every access outside of memory: the measure of what `check` promises.
//!
//! It executes one entry on numbers, after RFC 9669 and the helpers' contracts, and keeps for every
//! byte of memory whether it exists and has been written. Programs that `check` admits must never
//! give a [`Violation`]. It is meant to be obviously right, not fast, and shares no rule with the
//! checker: memory is regions at addresses far apart, and a pointer is just a number.

mod callback;
mod claimed;
mod content;
mod exact;
mod helpers;
mod iterate;
mod lock;
mod log;
mod nested;
mod print;
mod routes;
mod sequences;
mod step;
mod text;
mod timer;

use std::collections::HashMap;

use millrace_check::facts::Checked;
use millrace_object::helper;
use millrace_object::insn::{Insn, REGISTERS, STACK};
use millrace_object::program::{FunctionId, ObjectId, Program, Role, TIMER_BYTES};

pub use content::{Entry, Held};
pub use exact::Target;
pub use log::{Branched, Log, Stored, Touch, index_key};

/// A step that an admitted program never takes, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

/// Order of the regions of memory. No result of an admitted program depends on it: addresses are secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// each above the one before
    Ascending,
    /// each below the one before
    Descending,
}

/// End of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// with this verdict
    Verdict(u64),
    /// not within the steps that were allowed
    OutOfSteps,
}

/// The helper that leaves a function.
const TAIL_CALL: u32 = helper::TAIL_CALL.number;

/// Most steps kept of an execution; no comparison of two executions needs more.
const TRAIL: usize = 1 << 20;

/// Distance between two regions' addresses; a pointer that strays stays in no region.
const APART: u64 = 1 << 40;
/// Offset of a region in its distance. Of all regions but the packet's an address has more than 32 bits.
const INSET: u64 = 1 << 32 | 1 << 20;
/// Least address of a packet, the first region: of 32 bits, as the fields are that hold it, and so far from both ends
/// of these that no pointer which a program may make wraps.
const LOW: u64 = 3 << 29;
/// Distance between the addresses that a packet has before and after a call that moves it.
const STEP: u64 = 1 << 20;
/// Addresses that packets have in turn.
const STEPS: u64 = 1 << 8;

struct Memory {
    /// offset in its distance
    inset: u64,
    bytes: Vec<u8>,
    written: Vec<bool>,
    writable: bool,
    stack: bool,
    /// where the timer is that only helpers may touch
    timer: Option<usize>,
}

struct Call {
    regs: [Option<u64>; REGISTERS],
    function: usize,
    pc: usize,
    stack: u64,
    /// the helper call in the caller that goes on when this one returns
    rounds: Option<callback::Rounds>,
    whereabouts: claimed::Whereabouts,
}

/// One execution under way.
pub struct Machine<'a> {
    program: &'a Program,
    memory: HashMap<u64, Memory>,
    next: u64,
    layout: Layout,
    packet: u64,
    /// packets so far, those that were moved counted again
    packets: u64,
    context: u64,
    values: HashMap<ObjectId, u64>,
    records: Vec<u64>,
    /// the lock that is held
    lock: Option<u64>,
    /// where iterators have begun
    iterators: Vec<iterate::Iterator>,
    draws: u64,
    exact: Option<exact::Exact>,
    log: Option<Log>,
    /// function and instruction of each step, while there is a log
    trail: Vec<(usize, usize)>,
    /// the bytes of each function's frame that begin as zeros, lowest first; none: all of them
    zeroed: Option<Vec<Vec<bool>>>,
    /// what has to hold
    proof: Option<claimed::Proof<'a>>,
}

fn violation<T>(what: impl Into<String>) -> Result<T, Violation> {
    Err(Violation(what.into()))
}

impl<'a> Machine<'a> {
    /// A machine with this packet before it; `seed` decides what helpers return.
    #[must_use]
    pub fn new(program: &'a Program, packet: &[u8], seed: u64) -> Self {
        Machine::laid_out(program, packet, seed, Layout::Ascending)
    }

    /// The same, its memory laid out so.
    fn laid_out(program: &'a Program, packet: &[u8], seed: u64, layout: Layout) -> Self {
        let next = match layout {
            Layout::Ascending => 1,
            Layout::Descending => (1 << 21) - 1,
        };
        let mut m = Machine {
            program,
            memory: HashMap::new(),
            next,
            layout,
            packet: 0,
            packets: 0,
            context: 0,
            values: HashMap::new(),
            records: Vec::new(),
            lock: None,
            iterators: Vec::new(),
            draws: seed,
            exact: None,
            log: None,
            trail: Vec::new(),
            zeroed: None,
            proof: None,
        };
        m.place_packet(packet.to_vec());
        m.context = m.map(vec![0; 40], true, false);
        for (i, o) in program.objects.iter().enumerate() {
            let bytes = o
                .initial
                .clone()
                .unwrap_or_else(|| vec![0; o.value_bytes as usize]);
            let at = m.map(bytes, true, !o.read_only);
            m.values.insert(ObjectId(i), at);
            m.forbid_timer(o, at);
        }
        m
    }

    /// Leaves what a frame begins with unset, but for the bytes of which the proof says that they are zeros
    /// (`Frame::zeroed`). Reading others is a violation then, as the proof says that nobody does.
    /// From now on nothing may be otherwise than the proof claims, if it was made with `Options::claims`.
    pub fn begin_as_proved(&mut self, checked: &'a Checked) {
        self.hold_to(checked);
        let mut all = vec![vec![false; STACK as usize]; self.program.functions.len()];
        let flows = checked.running(self.program).flat_map(|r| &r.flow.frames);
        for frame in flows.filter(|f| f.expansion.is_none()) {
            for &(from, to) in &frame.zeroed {
                let bytes = (i64::from(from) + STACK) as usize..(i64::from(to) + STACK) as usize;
                if let Some(f) = all.get_mut(frame.function.0) {
                    f[bytes].fill(true);
                }
            }
        }
        self.zeroed = Some(all);
    }

    /// The first instructions executed since [`Machine::record`], in order: function, and index in it.
    #[must_use]
    pub fn trail(&self) -> &[(usize, usize)] {
        &self.trail
    }

    /// Bytes of a global now.
    #[must_use]
    pub fn value(&self, object: ObjectId) -> Option<&[u8]> {
        let at = self.values.get(&object)?;
        self.memory.get(&(at / APART)).map(|m| &*m.bytes)
    }

    fn map(&mut self, bytes: Vec<u8>, written: bool, writable: bool) -> u64 {
        let at = self.next.wrapping_mul(APART).wrapping_add(INSET);
        let key = self.next;
        self.next = match self.layout {
            Layout::Ascending => self.next.wrapping_add(1),
            Layout::Descending => self.next.wrapping_sub(1),
        };
        self.lay(key, INSET, bytes, written, writable);
        at
    }

    fn lay(&mut self, key: u64, inset: u64, bytes: Vec<u8>, written: bool, writable: bool) {
        let written = vec![written; bytes.len()];
        let memory = Memory {
            inset,
            bytes,
            written,
            writable,
            stack: false,
            timer: None,
        };
        self.memory.insert(key, memory);
    }

    /// Puts a packet in the place of the one before, at another address.
    fn place_packet(&mut self, bytes: Vec<u8>) {
        let turn = self.packets % STEPS;
        self.packets += 1;
        let step = match self.layout {
            Layout::Ascending => turn,
            Layout::Descending => STEPS - 1 - turn,
        };
        self.packet = LOW + step * STEP;
        self.lay(self.packet / APART, self.packet, bytes, true, true);
    }

    /// splitmix64 (Steele, Lea and Flood, 2014)
    fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.draws;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Address of the frame's first byte.
    fn first_byte(&self) -> u64 {
        self.packet + self.exact.as_ref().map_or(0, exact::Exact::metadata)
    }

    fn place(&mut self, at: u64, len: usize) -> Result<(&mut Memory, usize), Violation> {
        if self.iterators.iter().any(|i| i.has(at, len)) {
            return violation(format!("{len} bytes at {at:#x} are of an iterator"));
        }
        let found = self.memory.get_mut(&(at / APART));
        let found = found.map(|m| {
            let offset = (at % APART).checked_sub(m.inset);
            (m, offset.and_then(|o| usize::try_from(o).ok()))
        });
        match found {
            Some((m, Some(o))) if o.checked_add(len).is_some_and(|end| end <= m.bytes.len()) => {
                let timer = m
                    .timer
                    .filter(|t| o < t + TIMER_BYTES as usize && *t < o + len);
                if timer.is_some() {
                    return violation(format!("{len} bytes at {at:#x} are of a timer"));
                }
                Ok((m, o))
            }
            _ => violation(format!("{len} bytes at {at:#x} are in no region")),
        }
    }

    /// A number, or none if some byte has never been written.
    fn read(&mut self, at: u64, len: usize) -> Result<Option<u64>, Violation> {
        let (m, o) = self.place(at, len)?;
        if !m.written[o..o + len].iter().all(|w| *w) {
            return Ok(None);
        }
        Ok(Some(
            m.bytes[o..o + len]
                .iter()
                .rev()
                .fold(0, |n, &b| n << 8 | u64::from(b)),
        ))
    }

    fn write(&mut self, at: u64, len: usize, value: Option<u64>) -> Result<(), Violation> {
        let (m, o) = self.place(at, len)?;
        if !m.writable {
            return violation(format!("{at:#x} is read-only"));
        }
        for i in 0..len {
            m.bytes[o + i] = value.map_or(0, |v| (v >> (8 * i)) as u8);
            m.written[o + i] = value.is_some();
        }
        Ok(())
    }

    /// Executes an entry.
    ///
    /// # Errors
    /// The first step that an admitted program never takes.
    pub fn run(&mut self, function: FunctionId, role: Role, steps: u64) -> Result<End, Violation> {
        let context = Some(self.context);
        let mut first = self.call(function.0, [context, None, None, None, None]);
        first.whereabouts = self.begins(function.0);
        self.execute(first, role, steps)
    }

    fn execute(&mut self, first: Call, role: Role, steps: u64) -> Result<End, Violation> {
        let mut calls = vec![first];
        for _ in 0..steps {
            self.claimed(&calls)?;
            let nested = calls.len() > 1;
            let Some(c) = calls.last_mut() else {
                return violation("no active call");
            };
            let insn = self
                .program
                .functions
                .get(c.function)
                .and_then(|f| f.insns.get(c.pc))
                .copied();
            let Some(insn) = insn else {
                return violation("ran off a function");
            };
            self.begins_step((c.function, c.pc));
            c.pc += 1;
            match insn {
                Insn::Exit => {
                    let r0 = c.regs[0];
                    let stack = c.stack;
                    let rounds = c.rounds.take();
                    calls.pop();
                    if self.iterators.iter().any(|i| i.is_in(stack)) {
                        return violation("a function returns with an iterator in its stack");
                    }
                    self.memory.remove(&(stack / APART));
                    if let Some(caller) = calls.last_mut() {
                        match rounds {
                            None => caller.regs[0] = r0,
                            Some(rounds) => {
                                let Some(r0) = r0 else {
                                    return violation("a function called back gives no number");
                                };
                                let next = self.next_round(rounds, r0, caller);
                                let next = next.map(|mut next| {
                                    next.whereabouts = self.leads(caller, next.function);
                                    next
                                });
                                calls.extend(next);
                            }
                        }
                        continue;
                    }
                    self.nothing_held()?;
                    return match (r0, role) {
                        (Some(v), _) => Ok(End::Verdict(v)),
                        (None, Role::Xdp | Role::OnPacket) => violation("ended without a verdict"),
                        (None, _) => Ok(End::Verdict(0)),
                    };
                }
                Insn::CallLocal { function } => {
                    let arguments = [c.regs[1], c.regs[2], c.regs[3], c.regs[4], c.regs[5]];
                    c.regs[1..=5].fill(None);
                    let mut callee = self.call(function.0, arguments);
                    callee.whereabouts = self.leads(c, function.0);
                    calls.push(callee);
                }
                Insn::Call { helper } if callback::calls_back(helper) => {
                    self.mind_the_lock(helper, c.regs[1])?;
                    let first = self.first_round(helper, c)?.map(|mut first| {
                        first.whereabouts = self.leads(c, first.function);
                        first
                    });
                    calls.extend(first);
                }
                Insn::Call { helper } if helper == TAIL_CALL && nested && self.leaves() => {
                    // Another program runs, and the function's caller goes on with what it gives.
                    self.move_packet();
                    let verdict = self.draw();
                    let left = calls.pop();
                    if let Some(left) = left {
                        self.memory.remove(&(left.stack / APART));
                    }
                    if let Some(caller) = calls.last_mut() {
                        caller.regs[0] = Some(verdict);
                    }
                }
                other => {
                    self.step(c, other)?;
                    if let Some(function) = self.onward(c, other) {
                        let context = c.regs[1];
                        self.memory.remove(&(c.stack / APART));
                        *c = self.call(function.0, [context, None, None, None, None]);
                        c.whereabouts = self.begins(function.0);
                    }
                }
            }
        }
        Ok(End::OutOfSteps)
    }

    /// Whether a tail call finds a program: by chance, where helpers do not do what they say.
    fn leaves(&mut self) -> bool {
        self.exact.is_none() && self.draw().is_multiple_of(2)
    }

    fn call(&mut self, function: usize, arguments: [Option<u64>; 5]) -> Call {
        let stack = self.map(vec![0; STACK as usize], true, true);
        let zeroed = self.zeroed.as_ref().and_then(|z| z.get(function)).cloned();
        if let Some(memory) = self.memory.get_mut(&(stack / APART)) {
            memory.stack = true;
            if let Some(zeroed) = zeroed {
                memory.written = zeroed;
            }
        }
        let mut regs = [None; REGISTERS];
        regs[1..=5].copy_from_slice(&arguments);
        regs[10] = Some(stack + STACK as u64);
        Call {
            regs,
            function,
            pc: 0,
            stack,
            rounds: None,
            whereabouts: claimed::Whereabouts::default(),
        }
    }
}
