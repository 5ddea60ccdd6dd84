//! The abstract value of a register or an 8-byte stack slot: nothing, a number, or a pointer.

use millrace_object::program::{FunctionId, ObjectId};

use super::scalar::Scalar;
use crate::ids::{FrameId, StepId};
use crate::planted::{self, Planted};

/// A name shared by values that are known to be the same unknown thing; 0 means none.
pub type Id = u32;

/// A number's relation to others: it is the number named `id`, plus `by` (modulo 2^64).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// the name; 0: no relation is known
    pub id: Id,
    /// the distance
    pub by: i64,
    /// only so modulo 2^32
    pub low: bool,
    /// it is that number times 2^32: half of the pair of shifts by which compilers without 32-bit
    /// arithmetic (`-mcpu=v2` and before) cut a number to its lower half
    pub up: bool,
}

impl Link {
    /// No relation.
    pub const NONE: Link = Link {
        id: 0,
        by: 0,
        low: false,
        up: false,
    };

    /// By the name alone.
    #[must_use]
    pub fn named(id: Id) -> Link {
        Link { id, ..Link::NONE }
    }

    /// The same, modulo 2^32.
    #[must_use]
    pub fn halved(self) -> Link {
        if self.id == 0 || self.up {
            Link::NONE
        } else {
            Link { low: true, ..self }
        }
    }

    /// Of the number shifted left by 32.
    #[must_use]
    pub fn shifted(self) -> Link {
        if self.id == 0 || self.up {
            Link::NONE
        } else {
            Link { up: true, ..self }
        }
    }

    /// Of a number that was shifted left by 32 and is shifted back: its lower half is the same again.
    #[must_use]
    pub fn back(self) -> Link {
        if self.id == 0 || !self.up {
            Link::NONE
        } else {
            Link {
                up: false,
                low: true,
                ..self
            }
        }
    }

    /// The relation of a number that is greater by `c`.
    #[must_use]
    pub fn plus(self, c: i64) -> Link {
        if self.id == 0 || self.up {
            Link::NONE
        } else {
            Link {
                by: self.by.wrapping_add(c),
                ..self
            }
        }
    }
}

/// What is held.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// nothing that may be read
    Gone(Gone),
    /// a number, and how it is related to others in every execution
    Scalar(Scalar, Link),
    /// a pointer
    Pointer(Pointer),
}

/// Why a register may not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gone {
    /// never written
    Never,
    /// overwritten by a call (`r1` to `r5`)
    Call(StepId),
    /// a packet pointer of before a call that may move the packet, and of before another one
    PacketMoved(StepId),
    /// a record that was given back
    GivenBack(StepId),
    /// loaded from bytes of a frame's stack that had not been written: the first byte of the load from `r10`,
    /// one bit for each of its bytes that is meant, and the load
    Stack(FrameId, i16, u8, StepId),
    /// different kinds of value met at the head of a loop
    Join,
}

/// What memory a pointer points into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Region {
    /// the context
    Context,
    /// the packet: `off` counts from the position named by this id, see `Base`
    Packet(Id),
    /// metadata before the packet: `off` counts likewise, from the start of the metadata
    Meta(Id),
    /// one past the packet's last byte
    PacketEnd,
    /// the packet, its metadata or its end as they were before this call, which may have moved them: good for a
    /// difference, and for nothing else. All such pointers are of before the same call, the last that moved the packet
    Moved(StepId),
    /// a frame's stack, counted from its `r10`
    Stack(FrameId),
    /// a state object itself
    Object(ObjectId),
    /// a function of the program
    Function(FunctionId),
    /// a map that was found in another one; the object says what it is like
    Inner(ObjectId),
    /// a value of a state object
    Value(ObjectId),
    /// a reserved record
    Record {
        /// the ring buffer
        object: ObjectId,
        /// how many bytes were reserved
        bytes: u32,
    },
}

/// A pointer. Its offset into the region is `off` plus something in `lo..=hi`; for packet regions
/// `lo` and `hi` are 0 and the base carries what varies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pointer {
    /// into what
    pub region: Region,
    /// fixed part of the offset
    pub off: i64,
    /// least variable part
    pub lo: i64,
    /// greatest variable part
    pub hi: i64,
    /// log2 of the alignment of the variable part
    pub align: u8,
    /// only the lower 32 bits are there: good for a difference, and for nothing else. Never set of a pointer into the
    /// packet as it is ([`Pointer::narrow`])
    pub half: bool,
    /// may be null; pointers with the same id are null together
    pub nullable: bool,
    /// is not null all the same, because of what was looked up: it may be followed, and comparing it with null says nothing
    /// new
    pub sure: bool,
    /// who is null together, or which record it is
    pub id: Id,
}

impl Pointer {
    /// A pointer to the region's start that is not null.
    #[must_use]
    pub fn to(region: Region) -> Self {
        Pointer {
            region,
            off: 0,
            lo: 0,
            hi: 0,
            align: 63,
            half: false,
            nullable: false,
            sure: false,
            id: 0,
        }
    }

    /// The offset, if it is the same in all executions.
    #[must_use]
    pub fn fixed(&self) -> Option<i64> {
        (self.lo == self.hi).then_some(self.off + self.lo)
    }

    /// Least offset.
    #[must_use]
    pub fn least(&self) -> i64 {
        self.off + self.lo
    }

    /// Greatest offset.
    #[must_use]
    pub fn most(&self) -> i64 {
        self.off + self.hi
    }

    /// The call that may have moved the packet since this pointer was made.
    #[must_use]
    pub fn moved(&self) -> Option<StepId> {
        match self.region {
            Region::Moved(at) => Some(at),
            _ => None,
        }
    }

    /// Whether its lower 32 bits are all of it: the addresses of a packet are fields of 32 bits in the context, and the
    /// packet lies so that nothing wraps within twice [`REACH`](crate::rules::alu::REACH) of its start.
    #[must_use]
    pub fn narrow(&self) -> bool {
        (self.of_packet() || planted::is(Planted::HalfForWhole)) && !self.nullable
    }

    /// Whether it moves with the packet.
    #[must_use]
    pub fn of_packet(&self) -> bool {
        matches!(
            self.region,
            Region::Packet(_) | Region::Meta(_) | Region::PacketEnd
        )
    }
}

impl Value {
    /// A number that is the same in all executions.
    #[must_use]
    pub fn constant(x: u64) -> Self {
        Value::Scalar(Scalar::constant(x), Link::NONE)
    }

    /// A number with no known relation to another.
    #[must_use]
    pub fn number(s: Scalar) -> Self {
        Value::Scalar(s, Link::NONE)
    }

    /// The number, if it is one and always the same.
    #[must_use]
    pub fn as_constant(&self) -> Option<u64> {
        match self {
            Value::Scalar(s, _) => s.as_constant(),
            _ => None,
        }
    }
}
