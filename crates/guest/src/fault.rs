//! The cause of a guest's failure: signal, address, where in which file, and who called whom.

use std::fmt;
use std::sync::{Arc, PoisonError};

use crate::memory;
use crate::shared::Shared;
use crate::slot::{self, PAGE};
use crate::trap::Frame;

/// The most callers that are told.
const CALLERS: usize = 16;
/// How much of the stack is looked through for them, bytes.
const DEPTH: usize = 16 << 10;

/// A place in a file that a guest has mapped, or a bare address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// in the guest's address space
    pub address: usize,
    /// the file and the offset in it
    pub file: Option<(Arc<str>, u64)>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some((file, offset)) => write!(f, "{file}+{offset:#x}"),
            None => write!(f, "{:#x}", self.address),
        }
    }
}

/// How a guest failed.
#[derive(Clone, Debug)]
pub struct Fault {
    /// the signal
    pub signal: i32,
    /// what it is about, in words
    pub what: String,
    /// where
    pub at: Place,
    /// return addresses on its stack, innermost first; found by looking for words that follow a call, so that
    /// one that is no longer in use may be among them
    pub callers: Vec<Place>,
}

impl Fault {
    /// The signal's name, as `SIGSEGV`; of a rare one its number.
    #[must_use]
    pub fn name(&self) -> String {
        let name = match self.signal {
            libc::SIGSEGV => "SIGSEGV",
            libc::SIGBUS => "SIGBUS",
            libc::SIGFPE => "SIGFPE",
            libc::SIGILL => "SIGILL",
            libc::SIGTRAP => "SIGTRAP",
            libc::SIGABRT => "SIGABRT",
            libc::SIGKILL => "SIGKILL",
            libc::SIGTERM => "SIGTERM",
            libc::SIGSYS => "SIGSYS",
            other => return format!("signal {other}"),
        };
        name.to_owned()
    }

    /// From the registers at a signal, its code and its address (sigaction(2): `si_code`, `si_addr`).
    #[must_use]
    pub fn of(
        signal: i32,
        code: i32,
        address: usize,
        frame: &Frame<'_>,
        guest: Option<&Arc<Shared>>,
    ) -> Self {
        let at = frame.get(libc::REG_RIP);
        let rsp = frame.get(libc::REG_RSP);
        let what = match signal {
            libc::SIGSEGV => segmentation(code, address, rsp, guest),
            libc::SIGBUS => format!(
                "bus error at address {address:#x}: a mapped file has shrunk, or memory ran out"
            ),
            libc::SIGFPE => "division by zero, or its result does not fit".to_owned(),
            libc::SIGILL => "illegal instruction".to_owned(),
            libc::SIGTRAP => "breakpoint".to_owned(),
            libc::SIGABRT => "it aborted".to_owned(),
            other => format!("it sent itself signal {other}"),
        };
        let place = |address: usize| {
            let state = guest.map(|g| g.state.lock().unwrap_or_else(PoisonError::into_inner));
            Place {
                address,
                file: state.and_then(|s| s.space.file_at(address)),
            }
        };
        Self {
            signal,
            what,
            at: place(at),
            callers: callers(rsp, guest).into_iter().map(place).collect(),
        }
    }
}

/// `si_code` of an access that a protection key has denied.
const SEGV_PKUERR: i32 = 4;
/// `si_code` of a fault that is about no page.
const SI_KERNEL: i32 = 0x80;

fn segmentation(code: i32, address: usize, rsp: usize, guest: Option<&Arc<Shared>>) -> String {
    // The processor tells no address that has no meaning in it (not canonical), such as text taken for a pointer.
    if code == SI_KERNEL {
        return "segmentation fault at an address that cannot be: no pointer".to_owned();
    }
    let own = guest.is_some_and(|g| g.slot.contains(address));
    let why = if address < PAGE {
        "a null pointer".to_owned()
    } else if own && address.abs_diff(rsp) < 2 * PAGE {
        "the stack is full".to_owned()
    } else if own {
        "not mapped, or not for this access".to_owned()
    } else if code == SEGV_PKUERR {
        slot::number_at(address).map_or_else(
            || "the host's memory, which is protected from it".to_owned(),
            |other| format!("memory of the guest in slot {other}, which is protected from it"),
        )
    } else {
        "not in its slot".to_owned()
    };
    format!("segmentation fault at address {address:#x} ({why})")
}

/// Words on the stack that point behind a call instruction in a mapped file.
fn callers(rsp: usize, guest: Option<&Arc<Shared>>) -> Vec<usize> {
    let Some(guest) = guest else {
        return Vec::new();
    };
    let mut stack = vec![0; DEPTH];
    let got = memory::read(rsp, &mut stack);
    stack.truncate(got);
    let words = stack
        .chunks_exact(8)
        .filter_map(|w| w.try_into().ok())
        .map(usize::from_le_bytes);
    let mut found = Vec::new();
    for word in words {
        let executable = {
            let state = guest.state.lock().unwrap_or_else(PoisonError::into_inner);
            state
                .space
                .find(word)
                .is_some_and(|(_, area)| area.protection & libc::PROT_EXEC != 0)
        };
        if executable && follows_call(word) {
            found.push(word);
            if found.len() == CALLERS {
                break;
            }
        }
    }
    found
}

/// Whether the bytes before an address are a call: E8 with a displacement of 4 bytes, or FF /2 with 0, 1 or 4.
fn follows_call(address: usize) -> bool {
    let mut bytes = [0; 7];
    if memory::read(address.wrapping_sub(7), &mut bytes) != bytes.len() {
        return false;
    }
    let indirect =
        |at: usize| matches!(bytes.get(at..), Some([0xff, modrm, ..]) if modrm >> 3 & 7 == 2);
    bytes.get(2) == Some(&0xe8) || [5, 4, 3, 1, 0].into_iter().any(indirect)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, in {}", self.what, self.at)
    }
}
