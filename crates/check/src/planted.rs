//! Holes that a test puts back, one at a time, to see that generated programs find them (`/tests/tests/planted.rs`).
//!
//! Each stands for a class of mistakes: the place that would make it asks [`is`]. Rules as a whole are switched off by
//! [`crate::Options::disabled`]; these are mistakes inside of one, in the domain of numbers, in the exploration, and in
//! the code that `emit` writes. A release build has none of them: there [`is`] is the constant `false`.

#[cfg(debug_assertions)]
use std::cell::Cell;

macro_rules! planted {
    ($($(#[$doc:meta])+ $name:ident)+) => {
        /// A hole.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Planted {
            $($(#[$doc])+ $name,)+
        }

        impl Planted {
            /// Every one.
            pub const ALL: &'static [Planted] = &[$(Planted::$name),+];
        }
    };
}

planted! {
    /// places that are related lie in C objects of their own (emit)
    RelatedPlacesApart
    /// two lookups in one map find one entry
    EntriesAsOne
    /// two frames' stacks are one memory
    FramesAsOne
    /// two maps lie in one memory
    MapsAsOne
    /// an iterator's bytes are the program's
    IteratorOpen
    /// a function may leave an iterator behind in its stack
    IteratorLeft
    /// known bits of a sum: no carry
    CarryForgotten
    /// bounds of a sum: it does not wrap
    SumUnwrapped
    /// sign extension extends by zeros
    SignForgotten
    /// a 32-bit result keeps the upper half
    UpperHalfKept
    /// a 32-bit comparison tells about 64 bits
    NarrowTellsWide
    /// a signed comparison is an unsigned one
    SignedAsUnsigned
    /// `<=` is `<`
    AtMostIsLess
    /// an arithmetic shift shifts in zeros
    ArithmeticShiftLogical
    /// the remainder by zero is zero
    RemainderByZero
    /// `position <= end` shows one byte more
    PacketEndOffByOne
    /// a variable offset into the packet is its least
    PacketOffsetLeast
    /// a variable offset into other memory is its least
    OffsetLeast
    /// a packet that moved keeps what was proved
    MoveKeepsProof
    /// one null test is about all lookups
    NullTestOfAll
    /// the stack keeps what a helper overwrites
    HelperWriteForgotten
    /// the stack keeps what an atomic instruction overwrites
    AtomicForgotten
    /// the stack keeps what a store overwrites in part
    StoreKeepsRest
    /// a number that was changed is still related to the ones it was
    LinkKept
    /// registers keep their values over a call
    CallKeepsRegisters
    /// the least size that a helper may get is the one it gets
    LeastSize
    /// a loop's bounds do not grow from round to round
    WidenNothing
    /// a way is like an earlier one whatever its numbers are
    AnyNumberIncluded
    /// paths that are joined go on as one of them
    JoinOfOne
    /// 32 bits of any address are taken for all of it
    HalfForWhole
    /// a lock is any lock of its map
    LockOfAnyEntry
    /// signed branches compare unsigned numbers (emit)
    EmitSignedBranch
    /// loads do not extend the sign (emit)
    EmitSignedLoad
    /// shifts are not masked (emit)
    EmitShift
    /// division by zero is C's (emit)
    EmitDivision
    /// 32-bit operands keep their upper halves (emit)
    EmitNarrow
    /// what is known of a packet's bytes stays known when they are overwritten (emit)
    EmitStoreForgotten
    /// where spilled addresses of the stack lead is forgotten (emit)
    EmitSpilledOrigin
}

#[cfg(debug_assertions)]
thread_local! {
    static ON: Cell<Option<Planted>> = const { Cell::new(None) };
}

/// Whether this thread is to make this mistake.
#[must_use]
pub fn is(hole: Planted) -> bool {
    #[cfg(debug_assertions)]
    {
        ON.get() == Some(hole)
    }
    #[cfg(not(debug_assertions))]
    {
        let _ = hole;
        false
    }
}

/// Makes a mistake in this thread while `work` runs, or none. Without effect in a release build.
pub fn with<T>(hole: Option<Planted>, work: impl FnOnce() -> T) -> T {
    #[cfg(debug_assertions)]
    {
        /// Takes the mistake away, even where `work` panics.
        struct Restore(Option<Planted>);
        impl Drop for Restore {
            fn drop(&mut self) {
                ON.set(self.0);
            }
        }
        let _restore = Restore(ON.replace(hole));
        work()
    }
    #[cfg(not(debug_assertions))]
    {
        let _ = hole;
        work()
    }
}
