//! Packets, and what the interpreter makes of them.

use std::collections::BTreeMap;

use millrace_check::{Checked, Options, check};
use millrace_object::contract::Holds;
use millrace_object::insn::Insn;
use millrace_object::program::{FunctionId, Nesting, ObjectId, Program, Role, StateObject};
use millrace_reference::{End, Layout, Machine};
use rand::{Rng, RngExt};

/// Ports that a packet may go to.
const PORTS: u32 = 2;
/// The time of the first packet, ns.
pub const BEGIN: u64 = 1000;
/// From one packet to the next, ns.
pub const STEP: u64 = 50;

/// Instructions that an admitted program of these shapes never needs.
const MOST_STEPS: u64 = 2_000_000;

/// The values under each key, in ascending order: prefix tables show several by address alone.
pub type Entries = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

/// Entries of these pairs.
pub fn gather(pairs: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Entries {
    let mut all = Entries::new();
    for (key, value) in pairs {
        all.entry(key).or_default().push(value);
    }
    all.values_mut().for_each(|values| values.sort());
    all
}

/// A packet and who gets it.
#[derive(Clone, Debug)]
pub struct Packet {
    pub(super) program: usize,
    pub(super) port: u32,
    pub(super) headroom: usize,
    pub(super) bytes: Vec<u8>,
}

/// What one packet left behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub(super) fate: u32,
    pub(super) bytes: Vec<u8>,
    pub(super) trace: u64,
    pub(super) records: Vec<(u32, Vec<u8>)>,
}

/// What the interpreter made of some packets.
pub struct Interpreted {
    /// of each packet
    pub(super) outcomes: Vec<Outcome>,
    /// what the program returned for each packet, of which emitted code shows the fate alone
    returned: Vec<u64>,
    /// of each object at the end
    pub(super) entries: Vec<Entries>,
    /// timers that fired
    pub(super) fired: u64,
    /// claims of the proof that were looked at
    pub(super) claims: u64,
}

/// The global that shows what a program has computed: the last of eight bytes that can be written.
pub(super) fn trace(program: &Program) -> Option<ObjectId> {
    let shows = |o: &StateObject| o.kind.is_global() && !o.read_only && o.value_bytes == 8;
    program.objects.iter().rposition(shows).map(ObjectId)
}

/// Whether the interpreter alone sees a program that the checker, so set, admits do what no admitted program may, on so
/// many packets.
pub fn trips(insns: &[Insn], checker: &Options, random: &mut impl Rng, packets: usize) -> bool {
    let program = super::lean::program(&[insns.to_vec()]);
    let Ok(checked) = check(&program, checker) else {
        return false;
    };
    let packets: Vec<Packet> = (0..packets).map(|_| packet(random, 0)).collect();
    interpret(&program, &checked, &packets, BEGIN).is_err()
}

/// A packet for a program.
pub fn packet(random: &mut impl Rng, program: usize) -> Packet {
    let length: usize = random.random_range(0..72);
    // Small numbers as often as large ones, so that both sides of comparisons are taken.
    let most: u8 = [1, 9, 70, 255][random.random_range(0..4)];
    let mut bytes: Vec<u8> = (0..length).map(|_| random.random_range(0..=most)).collect();
    // And numbers a little below zero, or the least there are.
    let edge: i64 = match random.random_range(0..4) {
        0 | 1 => -random.random_range(0..64),
        2 => i64::MIN >> (8 * random.random_range(0..8)),
        _ => 0,
    };
    let at = [8, random.random_range(0..64)][random.random_range(0..2)];
    if let Some(word) = bytes.get_mut(at..at + 8).filter(|_| edge != 0) {
        word.copy_from_slice(&edge.to_le_bytes());
    }
    Packet {
        program,
        port: random.random_range(0..2),
        // Without headroom a sanitizer sees the first byte before the packet, too.
        headroom: [0, 24][random.random_range(0..2)],
        bytes,
    }
}

/// What the interpreter makes of the packets. The error says which program did what: what no admitted program does,
/// or what depends on where memory lies.
pub fn interpret(
    program: &Program,
    checked: &Checked,
    packets: &[Packet],
    begin: u64,
) -> Result<Interpreted, (usize, String)> {
    let one = interpret_in(program, checked, (packets, begin), Layout::Ascending)?;
    let other = interpret_in(program, checked, (packets, begin), Layout::Descending)?;
    let both = |i: usize| {
        let of = |all: &Interpreted| Some((all.outcomes.get(i)?.clone(), *all.returned.get(i)?));
        (of(&one), of(&other))
    };
    for (i, p) in packets.iter().enumerate() {
        let (a, b) = both(i);
        if a != b {
            return Err((
                p.program,
                format!("where memory lies can be told:\n{a:x?}\n{b:x?}"),
            ));
        }
    }
    if one.entries != other.entries {
        return Err((0, "where memory lies can be told from the state".into()));
    }
    Ok(one)
}

fn interpret_in(
    program: &Program,
    checked: &Checked,
    (packets, begin): (&[Packet], u64),
    layout: Layout,
) -> Result<Interpreted, (usize, String)> {
    let mut machine = Machine::exact_laid_out(program, layout);
    machine.begin_as_proved(checked);
    machine.ports(PORTS);
    let (mut outcomes, mut returned, mut fired) = (Vec::new(), Vec::new(), 0);
    for (number, p) in (0..).zip(packets) {
        let now = machine.advance(begin + STEP * number, MOST_STEPS);
        fired += now.map_err(|violation| (p.program, violation.0))?;
        machine.packet(&p.bytes, p.headroom, p.port);
        let entry = program.entries.get(p.program);
        let function = entry.map_or(FunctionId(p.program), |e| e.function);
        let verdict = match machine.run(function, Role::Xdp, MOST_STEPS) {
            Ok(End::Verdict(verdict)) => verdict,
            Ok(End::OutOfSteps) => return Err((p.program, "does not end".into())),
            Err(violation) => return Err((p.program, violation.0)),
        };
        returned.push(verdict);
        let trace = trace(program).and_then(|t| machine.value(t));
        let trace = trace.unwrap_or_default();
        outcomes.push(Outcome {
            fate: match verdict as u32 {
                number @ 0..=4 => number,
                _ => 0,
            },
            bytes: machine.packet_bytes().to_vec(),
            trace: trace.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)),
            records: machine
                .take_records()
                .into_iter()
                .map(|(object, bytes)| (object.0 as u32, bytes))
                .collect(),
        });
    }
    let claims = machine.claims_looked_at();
    // Constants are compiled in: emitted code has no control functions for them, nor any that read arrays of
    // programs.
    let entries = program.objects.iter().enumerate().map(|(i, o)| {
        let id = ObjectId(i);
        match &o.nesting {
            _ if o.read_only || o.kind.holds_programs() => Entries::new(),
            Some(Nesting::Holds { .. }) => {
                let number = |map: ObjectId| (map.0 as u32 + 1).to_le_bytes().to_vec();
                let inner = machine.inner_maps(id).into_iter();
                gather(inner.map(|(key, map)| (key, number(map))))
            }
            Some(Nesting::Shape(holder)) => {
                let inner = machine.inner_maps(*holder).into_iter();
                gather(inner.flat_map(|(outer, map)| {
                    let entries = machine.entries(map).into_iter();
                    entries.map(move |(key, value)| ([&outer[..], &key[..]].concat(), value))
                }))
            }
            None if matches!(o.kind.holds, Holds::Sequence { .. }) => {
                let held = machine.held(id).into_iter();
                gather(held.map(|value| (Vec::new(), value)))
            }
            None => gather(machine.listed(id).into_iter()),
        }
    });
    Ok(Interpreted {
        outcomes,
        returned,
        entries: entries.collect(),
        fired,
        claims,
    })
}
