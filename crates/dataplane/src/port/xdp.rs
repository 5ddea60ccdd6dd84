//! `xdp:IF`: an interface whose packets a function in the XDP dialect takes in the kernel, where they come
//! in. No worker serves it: the packets never leave the kernel. This is the interface's side; who loads
//! the function is the room `kernel`.
//!
//! Options: `mode=native|generic` (who runs the program, the driver or the stack; without it the driver
//! where it can), `promisc=off`.

use std::ffi::CString;
use std::io;
use std::os::fd::BorrowedFd;

use super::device::{Interface, Link, Mode, Promiscuous, attach, failed, is_up};
pub use super::device::{Like, XdpProgram};
use super::{Kind, PortError, Query};

/// Interfaces on which the kernel runs the function.
pub const KIND: Kind = Kind {
    scheme: "xdp",
    form: "xdp:IF",
    what: "an interface on which the kernel runs the function, with --ports",
    input: None,
    output: None,
    live: None,
    spelled: |rest| asked(rest).map(drop),
};

/// An interface that a program may be attached to.
pub struct Place {
    /// the port's word
    pub word: String,
    /// the interface's name
    pub name: String,
    interface: Interface,
    mode: Option<Mode>,
    promiscuous: bool,
}

/// A program attached to an interface, as long as this lives; it goes with the process, also by a kill.
pub struct Attached {
    _link: Link,
    _promiscuous: Option<Promiscuous>,
    /// what a reader of the account should know
    pub fact: String,
}

/// Whether a word names such a port.
#[must_use]
pub fn names(word: &str) -> bool {
    word.split_once(':').is_some_and(|(s, _)| s == KIND.scheme)
}

/// What a word asks for: its options, who runs the program, and whether all frames are received.
fn asked(rest: &str) -> Result<(Query, Option<Mode>, bool), PortError> {
    let mut query = Query::parse(KIND.scheme, rest)?;
    let mode = Mode::take(&mut query)?;
    let promiscuous = query.switch("promisc", true)?;
    query.finish("mode and promisc")?;
    Ok((query, mode, promiscuous))
}

impl Place {
    /// Finds the interface that a word names.
    ///
    /// # Errors
    /// An option is wrong, or the interface is missing or down.
    pub fn find(word: &str) -> Result<Self, PortError> {
        let rest = word.split_once(':').map_or(word, |(_, rest)| rest);
        let (query, mode, promiscuous) = asked(rest)?;
        Ok(Self {
            interface: Interface::find(query.word(), &query.name)?,
            word: query.word().to_owned(),
            name: query.name,
            mode,
            promiscuous,
        })
    }

    /// The interface's number in this network namespace.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.interface.index
    }

    /// Attaches a loaded XDP program.
    ///
    /// # Errors
    /// [`PortError::Live`] with what the system said.
    pub fn attach(&self, program: BorrowedFd<'_>) -> Result<Attached, PortError> {
        let (link, mode) = attach(&self.word, &self.name, program, &self.interface, self.mode)?;
        let promiscuous = match self.promiscuous {
            true => Some(Promiscuous::enter(&self.word, &self.interface)?),
            false => None,
        };
        Ok(Attached {
            _link: link,
            _promiscuous: promiscuous,
            fact: format!(
                "{}: in the kernel, {mode:?} mode, MTU {}",
                self.word, self.interface.mtu
            ),
        })
    }

    /// Whether the interface is still there and up.
    ///
    /// # Errors
    /// [`PortError::Live`] when it is not.
    pub fn look(&self) -> Result<(), PortError> {
        let name = CString::new(self.name.as_str()).unwrap_or_default();
        let error = match is_up(&name) {
            Ok(true) => return Ok(()),
            Ok(false) => io::Error::from_raw_os_error(libc::ENETDOWN),
            Err(error) => error,
        };
        Err(failed(
            &self.word,
            "the interface went down or away while it was in use",
            &error,
            "what was received before is accounted; bring the interface up and run again",
        ))
    }
}
