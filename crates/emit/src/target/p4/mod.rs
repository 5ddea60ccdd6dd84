//! `--target p4`: the sequencer for a switch, in P4_16 for v1model.
//!
//! The ring of rows lies in registers of 32 bits, spread over the stages behind the first, as the paper's sequencer for Tofino
//! has it (Xu et al., section 3.3.2, figure 4b): every packet reads all of them, and writes those of one slot. Rows are packed
//! without gaps, so that a register may hold the end of one row and the beginning of the next: [`Layout`]. How many rows fit is
//! printed, and more are refused.
//!
//! No compiler of P4 is asked: what is printed is run by an interpreter of this subset over the golden sequenced captures
//! (crates/emit/tests/target/p4).

mod print;

use millrace_history::circuit::{Circuit, Gate, Wire};

use super::{File, Input, Target, circuit};
use crate::error::Error;

/// The target.
pub struct P4;

/// Stages of a pipeline; in the first the packet is judged, and none of its registers holds rows.
pub const STAGES: usize = 12;
/// Registers of a stage.
pub const REGISTERS: usize = 4;
/// Bits of a register.
pub const BITS: usize = 32;

/// Where the rows of a ring lie.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// bits of a row
    pub row: usize,
    /// rows
    pub slots: usize,
}

/// A part of a row in one register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// the register, from 0
    pub word: usize,
    /// its highest bit
    pub high: usize,
    /// the highest bit of the row that is there
    pub from: usize,
    /// how many bits
    pub bits: usize,
}

impl Layout {
    /// The most rows of so many bits.
    #[must_use]
    pub fn most(row: usize) -> usize {
        (STAGES - 1) * REGISTERS * BITS / row.max(1)
    }

    /// Registers that are used.
    #[must_use]
    pub fn words(&self) -> usize {
        (self.row * self.slots).div_ceil(BITS)
    }

    /// The stage of a register, from 1.
    #[must_use]
    pub fn stage(word: usize) -> usize {
        1 + word / REGISTERS
    }

    /// The parts of a slot, the row's first bits first.
    #[must_use]
    pub fn pieces(&self, slot: usize) -> Vec<Piece> {
        let (mut at, end, mut all) = (slot * self.row, (slot + 1) * self.row, Vec::new());
        while at < end {
            let inside = at % BITS;
            let bits = (BITS - inside).min(end - at);
            all.push(Piece {
                word: at / BITS,
                high: BITS - 1 - inside,
                from: end - at - 1,
                bits,
            });
            at += bits;
        }
        all
    }
}

impl Target for P4 {
    fn name(&self) -> &'static str {
        "p4"
    }

    fn about(&self) -> &'static str {
        "a sequencer in P4_16, for v1model"
    }

    fn files(&self, input: &Input) -> Result<Vec<File>, Error> {
        let circuit = circuit(input)?;
        let layout = Layout {
            row: 8 * circuit.row_bytes(),
            slots: usize::from(input.slots),
        };
        let unsupported = |what: String| Error::Unsupported {
            place: input.program.name.clone(),
            what,
        };
        let most = Layout::most(layout.row);
        if layout.slots > most {
            return Err(unsupported(format!(
                "a ring of {} rows of {} bits in {} registers of {BITS} bits ({} stages of {REGISTERS}), in which {most} fit,",
                layout.slots,
                layout.row,
                (STAGES - 1) * REGISTERS,
                STAGES - 1
            )));
        }
        let unlisted = |wire: &Wire| match circuit.gates.gate(*wire) {
            Gate::Byte(at) => circuit.gates.values(*at).is_none(),
            _ => false,
        };
        if circuit.live().iter().any(unlisted) {
            return Err(unsupported(
                "a byte of the packet at a place that has more than 64 values, in a switch,".into(),
            ));
        }
        Ok(vec![File {
            name: "sequencer.p4".into(),
            text: print::program(input, &circuit, layout),
        }])
    }
}

/// Lengths from which on more bytes of a packet are there for sure: what its length is compared with. A byte is read only
/// where such a comparison has shown that it is there.
fn lengths(circuit: &Circuit) -> Vec<usize> {
    let gates = &circuit.gates;
    let mut all = std::collections::BTreeSet::new();
    for wire in circuit.live() {
        let Gate::Less(a, b) = gates.gate(wire) else {
            continue;
        };
        let (other, more) = match (gates.gate(*a), gates.gate(*b)) {
            (Gate::Length, _) => (*b, 0),
            (_, Gate::Length) => (*a, 1),
            _ => continue,
        };
        let values = gates.values(other).into_iter().flatten();
        all.extend(values.map(|v| (*v as usize).saturating_add(more)));
    }
    let window = circuit.window();
    // What is behind the window nobody reads.
    let mut all: Vec<usize> = all
        .into_iter()
        .map(|n| n.min(window))
        .filter(|n| *n > 0)
        .collect();
    all.dedup();
    all
}
