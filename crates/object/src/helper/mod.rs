//! The helpers a program may call, one file a family.
//!
//! A helper is a contract that `check` enforces and `emit` relies on. Helpers that work on a state
//! object are emitted as `<kind.c>_<name>(…)`, a function of the object's header; all others as
//! `helper_<name>(…)` of `fastpath/helpers/<name>.h`. Adding one is a line in its family's table, a C
//! function there and, if it works on an object, a line in the calls of each kind that it works on.

mod aead;
mod clock;
mod cookies;
mod entries;
mod handlers;
pub mod kernel;
pub mod kernel_functions;
mod locks;
mod loops;
mod numbers;
mod packet;
mod programs;
mod records;
mod redirects;
pub mod refused;
mod routing;
mod sequences;
mod surroundings;
mod text;
mod timers;

use std::sync::LazyLock;

use crate::contract::Does;
use crate::state::{KINDS, StateKind, routes};

/// Declares a family: a constant a helper, and the table of them all.
macro_rules! family {
    ($($(#[$doc:meta])* $name:ident = $helper:expr;)*) => {
        $($(#[$doc])* pub static $name: $crate::helper::Helper = $helper;)*

        pub(super) static FAMILY: &[&$crate::helper::Helper] = &[$(&$name),*];
    };
}
use family;

/// The families, a line each.
static FAMILIES: &[&[&Helper]] = &[
    aead::FAMILY,
    clock::FAMILY,
    cookies::FAMILY,
    entries::FAMILY,
    handlers::FAMILY,
    locks::FAMILY,
    loops::FAMILY,
    numbers::FAMILY,
    packet::FAMILY,
    programs::FAMILY,
    records::FAMILY,
    redirects::FAMILY,
    routing::FAMILY,
    sequences::FAMILY,
    surroundings::FAMILY,
    text::FAMILY,
    timers::FAMILY,
];

pub use self::{
    aead::*, clock::*, cookies::*, entries::*, handlers::*, locks::*, loops::*, numbers::*,
    packet::*, programs::*, records::*, redirects::*, routing::*, sequences::*, surroundings::*,
    text::*, timers::*,
};

/// Requirement on an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// the context pointer (the packet)
    Context,
    /// a state object, of one of [`Helper::kinds`]; before it there may only be the context, or a timer,
    /// which is then one of this object's
    Object,
    /// pointer to the timer in a value of an object of one of [`Helper::kinds`]
    Timer,
    /// the address of a function of the program, which a timer calls later
    Callback,
    /// pointer to `key_bytes` readable, initialised bytes of the object's key
    Key,
    /// pointer to `value_bytes` readable, initialised bytes
    Value,
    /// any number
    Scalar,
    /// pointer to readable, initialised bytes; the next argument is their number
    Read {
        /// the pointer may be null when the number is zero
        nullable: bool,
    },
    /// pointer to that many readable, initialised bytes
    In(u32),
    /// pointer to a constant string: read-only, with a zero byte at its end
    Text,
    /// pointer to writable bytes; the next argument is their number; they are initialised afterwards
    Write {
        /// the pointer may be null when the number is zero
        nullable: bool,
    },
    /// pointer to readable, initialised and writable bytes; the next argument is their number
    Update,
    /// number of bytes of the argument before it, at most [`MAX_BYTES`]
    Bytes {
        /// zero is allowed
        zero: bool,
    },
    /// a pointer that this or another helper returned as [`Return::RecordOrNull`], given back by the call
    Record,
    /// pointer to that many writable bytes, initialised afterwards (e.g. an out parameter)
    Out(u32),
    /// pointer to that many readable, initialised and writable bytes
    InOut(u32),
    /// pointer to `key_bytes` writable bytes, initialised afterwards
    KeyOut,
    /// the address of a function of the program, which the call calls back
    Function,
    /// anything that may be read, handed on to that function
    Any,
    /// pointer to 8 bytes of stack that are an iterator over numbers
    Iterator,
    /// pointer to `value_bytes` writable bytes, initialised afterwards; of an object that only says
    /// whether it holds a value ([`crate::state::StateKind::membership`]), readable initialised bytes
    ValueOut,
}

impl Arg {
    /// Whether a call may write the memory that it points to.
    #[must_use]
    pub fn writes_memory(self) -> bool {
        matches!(
            self,
            Arg::Write { .. }
                | Arg::Update
                | Arg::Out(_)
                | Arg::InOut(_)
                | Arg::KeyOut
                | Arg::ValueOut
                | Arg::Record
        )
    }
}

/// From here on numbers are not the kernel's.
const OWN: u32 = 0x1_0000;

/// The most bytes an argument of kind [`Arg::Bytes`] may name.
pub const MAX_BYTES: u64 = 1 << 29;

/// Content of `r0` after the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Return {
    /// a number within these bounds, as signed 64-bit
    Scalar {
        /// smallest
        min: i64,
        /// largest
        max: i64,
    },
    /// pointer to a value of the object, or null
    ValueOrNull,
    /// pointer to a reserved record of as many bytes as the second argument says (a constant), or
    /// null; must be given back before the program ends
    RecordOrNull,
}

/// Effects of a call beyond its result and its object ([`StateKind::does`](crate::state::StateKind::does)).
/// Anything not named here has no effect: the call may be repeated or left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Effects {
    /// the packet begins or ends elsewhere: pointers into it of before the call are invalid after it
    pub moves_packet: bool,
    /// stores into the packet, whose address it is not given
    pub writes_packet: bool,
    /// depends on the clock
    pub time: bool,
    /// depends on a random draw
    pub random: bool,
    /// any other effect on the world (a trace line, a redirect target)
    pub other: bool,
}

/// The contract of a helper.
#[derive(Debug)]
pub struct Helper {
    /// the number in the call instruction; below 0x10000 the kernel's, from there on our own, from
    /// [`kernel_functions::FIRST`] on ours for a kernel function
    pub number: u32,
    /// the name without the `bpf_` prefix
    pub name: &'static str,
    /// arguments in `r1` …, at most five
    pub args: &'static [Arg],
    /// result in `r0`
    pub returns: Return,
    /// what it does to a state object, whatever the kind, at most; [`StateKind::does`] says of one kind. None for
    /// what touches no state, so that order among packets does not matter to it.
    pub does: Option<Does>,
    /// what else it does
    pub effects: Effects,
}

/// A helper that has no effect until more is said of it: number, name, arguments, result.
const fn helper(number: u32, name: &'static str, args: &'static [Arg], returns: Return) -> Helper {
    Helper {
        number,
        name,
        args,
        returns,
        does: None,
        effects: Effects {
            moves_packet: false,
            writes_packet: false,
            time: false,
            random: false,
            other: false,
        },
    }
}

/// A number within these bounds.
const fn within(min: i64, max: i64) -> Return {
    Return::Scalar { min, max }
}

/// 0, or an error below it (include/linux/err.h `MAX_ERRNO`).
const STATUS: Return = within(-4095, 0);

impl Helper {
    const fn does(mut self, does: Does) -> Self {
        self.does = Some(does);
        self
    }

    const fn moves_packet(mut self) -> Self {
        self.effects.moves_packet = true;
        self
    }

    const fn writes_packet(mut self) -> Self {
        self.effects.writes_packet = true;
        self
    }

    const fn time(mut self) -> Self {
        self.effects.time = true;
        self
    }

    const fn random(mut self) -> Self {
        self.effects.random = true;
        self
    }

    const fn other(mut self) -> Self {
        self.effects.other = true;
        self
    }
}

impl PartialEq for Helper {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Helper {
    /// Index of the argument that is a function to call back, from 0; none for helpers that call none.
    #[must_use]
    pub fn function_argument(&self) -> Option<usize> {
        self.args.iter().position(|a| *a == Arg::Function)
    }

    /// Whether `check` lays a call out as what it stands for, so that there is no C function: it calls
    /// back, or keeps its state in the caller's stack.
    #[must_use]
    pub fn is_expanded(&self) -> bool {
        self.args
            .iter()
            .any(|a| matches!(a, Arg::Function | Arg::Iterator))
    }

    /// The kinds of object that it may be given.
    pub fn kinds(&self) -> impl Iterator<Item = &'static StateKind> {
        let kinds = KINDS.iter().copied().filter(|_| self.takes_object());
        kinds.filter(|k| k.does(self).is_some())
    }

    /// Their names, for a message.
    #[must_use]
    pub fn kind_names(&self) -> String {
        let names: Vec<_> = self.kinds().map(|k| k.name).collect();
        names.join(", ")
    }

    /// Whether the kernel has it under this number.
    #[must_use]
    pub fn is_kernels(&self) -> bool {
        self.number < OWN
    }

    /// Whether it is given an object, or a timer in one.
    #[must_use]
    pub fn takes_object(&self) -> bool {
        self.args
            .iter()
            .any(|a| matches!(a, Arg::Object | Arg::Timer))
    }

    /// Index of the argument that is the state object, from 0; none for helpers that work on none.
    #[must_use]
    pub fn object_argument(&self) -> Option<usize> {
        self.args.iter().position(|a| *a == Arg::Object)
    }

    /// Index of the argument that is the address of a key, from 0; none for helpers that take none.
    #[must_use]
    pub fn key_argument(&self) -> Option<usize> {
        self.args.iter().position(|a| *a == Arg::Key)
    }
}

/// The state object that a helper works on without naming it, by its kind: a program that calls such a
/// helper has one such object, and its C function is of that kind's header.
#[must_use]
pub fn implied(helper: &Helper) -> Option<&'static StateKind> {
    routes::KIND.does(helper).map(|_| &routes::KIND)
}

/// Every helper there is, by ascending number.
pub static HELPERS: LazyLock<Vec<&'static Helper>> = LazyLock::new(|| {
    let mut all = FAMILIES.concat();
    all.sort_by_key(|h| h.number);
    all
});

/// The number of no helper: what is called where a CO-RE relocation asks for a field or value that does
/// not exist. libbpf marks such places with the same number.
pub const ABSENT: u32 = 0xbad_2310;

/// From here on a number is not an author's to call: kernel functions, which have names, and what other
/// calls are expanded into, from [`EXPANSION`] on.
pub const INTERNAL: u32 = kernel_functions::FIRST;

/// The first number of what other calls are expanded into.
pub const EXPANSION: u32 = 0x30000;

/// The helper with this number.
#[must_use]
pub fn by_number(number: u32) -> Option<&'static Helper> {
    let index = HELPERS.binary_search_by_key(&number, |h| h.number).ok()?;
    HELPERS.get(index).copied()
}
