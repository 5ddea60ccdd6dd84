//! Numbers of the places that hold values: registers and stack bytes of each frame, the packet, its borders, the count
//! of random draws.

use millrace_check::facts::{Flow, FrameId};
use millrace_object::insn::{REGISTERS, Reg};

/// A place.
pub type Place = usize;

/// The places of a flow.
#[derive(Debug)]
pub struct Places {
    /// by frame: its first stack byte, and how many it has
    stacks: Vec<(Place, i32)>,
    registers: Place,
    /// how many there are
    pub count: usize,
}

/// What a place is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Which {
    /// a register
    Register(FrameId, Reg),
    /// a byte of a frame's stack, by its offset from `r10`
    Stack(FrameId, i32),
    /// the packet's bytes
    Packet,
    /// where the packet begins and ends
    Borders,
    /// how many random draws there were
    Draws,
}

impl Places {
    /// Those of a flow.
    #[must_use]
    pub fn of(flow: &Flow) -> Self {
        let registers = flow.frames.len() * REGISTERS;
        let mut at = registers;
        let stacks = flow.frames.iter().map(|f| {
            let bytes = i32::try_from(f.stack_bytes).unwrap_or(i32::MAX);
            let first = at;
            at += f.stack_bytes as usize;
            (first, bytes)
        });
        let stacks = stacks.collect();
        Self {
            stacks,
            registers,
            count: at + 3,
        }
    }

    /// A register.
    #[must_use]
    pub fn register(&self, frame: FrameId, reg: Reg) -> Place {
        frame.0 * REGISTERS + usize::from(reg.0)
    }

    /// The stack bytes `from..to` that the frame has.
    pub fn stack(&self, frame: FrameId, from: i32, to: i32) -> impl Iterator<Item = Place> + use<> {
        let (first, bytes) = self.stacks.get(frame.0).copied().unwrap_or((0, 0));
        let (from, to) = (from.max(-bytes), to.min(0));
        (from..to).map(move |at| first + (at + bytes) as usize)
    }

    /// All stack bytes of all frames.
    #[must_use]
    pub fn all_stacks(&self) -> std::ops::Range<Place> {
        self.registers..self.packet()
    }

    /// The packet's bytes.
    #[must_use]
    pub fn packet(&self) -> Place {
        self.count - 3
    }

    /// The packet's borders.
    #[must_use]
    pub fn borders(&self) -> Place {
        self.count - 2
    }

    /// The count of random draws.
    #[must_use]
    pub fn draws(&self) -> Place {
        self.count - 1
    }

    /// What a place is.
    #[must_use]
    pub fn which(&self, place: Place) -> Which {
        if place < self.registers {
            let (frame, reg) = (place / REGISTERS, place % REGISTERS);
            return Which::Register(FrameId(frame), Reg(reg as u8));
        }
        match self.count - place {
            3 => return Which::Packet,
            2 => return Which::Borders,
            1 => return Which::Draws,
            _ => {}
        }
        let frame = self.stacks.partition_point(|(first, _)| *first <= place);
        // Frames without a stack begin where the next one does.
        let frame = frame.saturating_sub(1);
        let (first, bytes) = self.stacks.get(frame).copied().unwrap_or((place, 0));
        Which::Stack(FrameId(frame), (place - first) as i32 - bytes)
    }
}
