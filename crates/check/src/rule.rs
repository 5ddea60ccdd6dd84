//! The names of the rules. A refusal carries one; tools may depend on them.

macro_rules! rules {
    ($($(#[$doc:meta])+ $rule:ident $name:literal)+) => {
        /// A rule that a program may break.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Rule {
            $($(#[$doc])+ $rule,)+
        }

        impl Rule {
            /// Every rule. The soundness test (`/tests/tests/soundness.rs`) switches off each of them.
            pub const ALL: &'static [Rule] = &[$(Rule::$rule),+];

            /// Its stable name, in kebab case.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Rule::$rule => $name,)+
                }
            }
        }
    };
}

rules! {
    /// packet or metadata bytes that no comparison has shown to be there
    PacketBounds "packet-bounds"
    /// bytes outside a map's value or a global
    ValueBounds "value-bounds"
    /// bytes outside a reserved record
    RecordBounds "record-bounds"
    /// bytes outside a frame of the stack
    StackBounds "stack-bounds"
    /// a write to a constant
    ConstantWrite "constant-write"
    /// an access to a `struct bpf_timer`
    TimerField "timer-field"
    /// anything but a whole field of the context
    ContextField "context-field"
    /// a write to the context
    ContextWrite "context-write"
    /// a load that is of the context in some executions only
    SeveralRegions "several-regions"
    /// an atomic instruction on other memory, sizes or alignments
    Atomic "atomic"
    /// a pointer followed that may be null
    UncheckedNull "unchecked-null"
    /// a number followed as an address
    NotAPointer "not-a-pointer"
    /// the address of an object or a function followed
    OpaquePointer "opaque-pointer"
    /// use of a register that holds nothing
    UninitialisedRegister "uninitialised-register"
    /// use of stack bytes that hold no number: what is left of an address
    UninitialisedStack "uninitialised-stack"
    /// use of a pointer into the packet of before a move
    StalePacketPointer "stale-packet-pointer"
    /// use of a record that was given back
    RecordUsedAfter "record-used-after"
    /// a record kept at the end
    RecordLeak "record-leak"
    /// a pointer stored where it outlives what it points to
    PointerLeak "pointer-leak"
    /// a pointer read in parts, as a number
    PartialPointer "partial-pointer"
    /// a pointer as a result
    PointerReturn "pointer-return"
    /// a comparison of pointers into different memory
    PointerComparison "pointer-comparison"
    /// arithmetic after which a pointer's memory is not known
    PointerArithmetic "pointer-arithmetic"
    /// a pointer moved by an unbounded number
    PointerReach "pointer-reach"
    /// a write to the frame pointer
    FramePointer "frame-pointer"
    /// a call against the helper's contract
    HelperArgument "helper-argument"
    /// a call of a helper that is not supported
    UnknownHelper "unknown-helper"
    /// what needs a field, type or enumerator that is not there
    AbsentField "absent-field"
    /// a conversion of `bpf_snprintf` that reads memory
    Format "format"
    /// a function called back, or a map gone through, that is not known
    Callback "callback"
    /// iterators not begun, not ended, or elsewhere than in the stack
    Iterator "iterator"
    /// locks not given back, or another one
    LockPairing "lock-pairing"
    /// a tail call out of a function that is called back
    TailCallInFunction "tail-call-in-function"
    /// one call on maps that cannot be told apart
    SeveralObjects "several-objects"
    /// a call by address
    CallRegister "call-register"
    /// a classic packet load
    LegacyPacketLoad "legacy-packet-load"
    /// a loop not shown to end
    UnboundedLoop "unbounded-loop"
    /// loops that may make more rounds than a packet is worth
    TooManyRounds "too-many-rounds"
    /// more ways than the budget allows
    TooComplex "too-complex"
    /// a flow of too many steps
    TooLarge "too-large"
    /// a function that calls itself
    Recursion "recursion"
    /// calls that nest too deeply
    CallDepth "call-depth"
    /// execution that runs off the end
    FallsOff "falls-off"
    /// a jump out of its function
    JumpOutside "jump-outside"
    /// a function that does not exist
    UnknownFunction "unknown-function"
    /// a state object that does not exist
    UnknownObject "unknown-object"
    /// an instruction that decoding never gives
    BadInstruction "bad-instruction"
}
