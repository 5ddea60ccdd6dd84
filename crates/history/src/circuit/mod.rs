//! `extract` as a circuit: the row of a packet as one expression without branches or memory, for sequencers that are no
//! processors, and for those that are and must not loop.
//!
//! [`Circuit::of`] runs the steps up to the first access to state (`Part::extract` of the row) over expressions: a branch becomes a
//! condition, and where paths meet, each place holds a selection by it. What comes out is, from the packet's bytes, its
//! length, port and time: whether it has a row, and each byte of the row. A gate knows the bounds of its number, so that hardware
//! has no more wires than it needs, and whatever has few values (an offset that a header's length decides) is known by all of
//! them.
//!
//! What is no circuit is refused with the line: a loop, a helper, a byte of the packet at no bounded place, a draw.

mod expression;
mod gate;
mod gates;
mod instruction;
mod walk;

use millrace_check::Checked;
use millrace_object::Program;
use millrace_object::program::Role;

use crate::{History, Refusal};
pub use gate::{Gate, Wire};
pub use gates::{Gates, LONGEST};

/// Most bytes of a packet from its start that rows can be taken from.
pub const WINDOW: u64 = 256;

/// The row of a packet, computed at once.
#[derive(Clone, Debug)]
pub struct Circuit {
    /// the program's name
    pub name: String,
    /// the gates
    pub gates: Gates,
    /// 1 if the packet has a row
    pub touch: Wire,
    /// the bytes of the row where it has one. Its time is not among them: the sequencer sets it
    pub row: Vec<Wire>,
    /// offset of the time in the row, where it has one
    pub time: Option<usize>,
    /// bits of the row that are in use
    pub bits: u32,
    /// fields of the row: first bit, bits, name; where rows are of one kind
    pub fields: Vec<(u32, u32, String)>,
}

impl Circuit {
    /// The circuit of a program.
    ///
    /// # Errors
    /// What cannot be replicated, or is no circuit.
    pub fn of(
        program: &Program,
        checked: &Checked,
        history: &History,
    ) -> Result<Circuit, Vec<Refusal>> {
        let refuse = |reason: &str| {
            vec![Refusal {
                object: None,
                line: None,
                reason: reason.into(),
            }]
        };
        if !history.refusals.is_empty() {
            return Err(history.refusals.clone());
        }
        if !history.touches() {
            return Err(refuse("no packet touches state, so that there are no rows"));
        }
        if history.number_bits > 0 {
            return Err(refuse(
                "rows have the packet's number, for random draws, which a sequencer of its own does not know",
            ));
        }
        let takes = |role: Role| matches!(role, Role::Xdp | Role::OnPacket);
        let mut entries = (program.entries.iter().zip(&checked.flows)).zip(&history.flows);
        let mut packets = entries.by_ref().filter(|((e, _), _)| takes(e.role));
        let (Some(((_, flow), Some(part))), None) = (packets.next(), packets.next()) else {
            return Err(refuse(
                "several programs of this object take packets; name one as FILE.o:PROGRAM",
            ));
        };
        let made = walk::walk(program, flow, part, history).map_err(|r| vec![r])?;
        let one = part.sites.len() == 1;
        let named = history.fields.iter().filter(|_| one);
        Ok(Circuit {
            name: program.name.clone(),
            gates: made.gates,
            touch: made.touch,
            row: made.row,
            time: (history.time_bits > 0).then_some(0),
            bits: history.bits,
            fields: named.map(|f| (f.at, f.bits, f.name.clone())).collect(),
        })
    }

    /// Bytes of a row.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        self.row.len()
    }

    /// The gates that `touch` and the row depend on, each behind its operands.
    #[must_use]
    pub fn live(&self) -> Vec<Wire> {
        let mut live = vec![false; self.gates.count()];
        let mut pending: Vec<Wire> = self.row.clone();
        pending.push(self.touch);
        while let Some(wire) = pending.pop() {
            if let Some(seen) = live.get_mut(wire.0 as usize)
                && !std::mem::replace(seen, true)
            {
                pending.extend(self.gates.gate(wire).operands());
            }
        }
        let all = (0..self.gates.count() as u32).map(Wire);
        all.filter(|w| live.get(w.0 as usize) == Some(&true))
            .collect()
    }

    /// How many bytes of a packet from its start it depends on, 1 to [`WINDOW`].
    #[must_use]
    pub fn window(&self) -> usize {
        let live = self.live().into_iter();
        let offsets = live.filter_map(|w| match self.gates.gate(w) {
            Gate::Byte(offset) => Some(self.gates.most(*offset) as usize + 1),
            _ => None,
        });
        offsets.max().unwrap_or(1)
    }

    /// The row of a frame, written over `row`; false if it has none.
    #[must_use]
    pub fn extract(&self, frame: &[u8], port: u16, time: u64, row: &mut [u8]) -> bool {
        let mut values = vec![0u64; self.gates.count()];
        for wire in self.live() {
            let of = |w: Wire| values.get(w.0 as usize).copied().unwrap_or(0);
            let value = match self.gates.gate(wire) {
                Gate::Number(n) => *n,
                Gate::Length => frame.len() as u64,
                Gate::Port => u64::from(port),
                Gate::Time => time,
                Gate::Byte(at) => {
                    let byte = usize::try_from(of(*at)).ok().and_then(|at| frame.get(at));
                    byte.map_or(0, |b| u64::from(*b))
                }
                Gate::Add(a, b) => of(*a).wrapping_add(of(*b)),
                Gate::Sub(a, b) => of(*a).wrapping_sub(of(*b)),
                Gate::Mul(a, b) => of(*a).wrapping_mul(of(*b)),
                Gate::And(a, b) => of(*a) & of(*b),
                Gate::Or(a, b) => of(*a) | of(*b),
                Gate::Xor(a, b) => of(*a) ^ of(*b),
                Gate::Shl(a, b) => of(*a) << (of(*b) & 63),
                Gate::Shr(a, b) => of(*a) >> (of(*b) & 63),
                Gate::Bits(a, from, bits) => {
                    of(*a).checked_shr(*from).unwrap_or(0) & gates::low(*bits)
                }
                Gate::Concat(parts) => {
                    let (mut all, mut at) = (0, 0);
                    for (part, bits) in parts {
                        all |= of(*part).checked_shl(at).unwrap_or(0);
                        at += bits;
                    }
                    all
                }
                Gate::Equal(a, b) => u64::from(of(*a) == of(*b)),
                Gate::Less(a, b) => u64::from(of(*a) < of(*b)),
                Gate::Select(c, a, b) => match of(*c) {
                    0 => of(*b),
                    _ => of(*a),
                },
            };
            if let Some(place) = values.get_mut(wire.0 as usize) {
                *place = value;
            }
        }
        let of = |w: Wire| values.get(w.0 as usize).copied().unwrap_or(0);
        let touch = of(self.touch) == 1;
        if touch {
            let each = row.iter_mut().zip(&self.row);
            each.for_each(|(to, from)| *to = of(*from) as u8);
        }
        touch
    }
}
