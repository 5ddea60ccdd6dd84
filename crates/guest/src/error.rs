//! Why a guest cannot be loaded or started.

use std::path::PathBuf;

use crate::slot::STRIDE;

/// Why a guest cannot be loaded or started.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// Its slot cannot be had.
    #[error("slot {0}: {1}")]
    Slot(u32, String),
    /// The addresses of its slot are more than this process may have.
    #[error("slot {0}: {1}")]
    Addresses(u32, std::io::Error),
    /// The words that name it make no sense.
    #[error("guest `{command}`: {what}")]
    Command {
        /// as given
        command: String,
        /// what is wrong
        what: String,
    },
    /// The file is not a program that can be hosted.
    #[error("{path}: {what}")]
    Program {
        /// the file
        path: PathBuf,
        /// what is wrong with it
        what: String,
        /// what to do
        help: &'static str,
    },
    /// It cannot go on from a snapshot.
    #[error("{path}: {what}")]
    Snapshot {
        /// the file
        path: PathBuf,
        /// why not
        what: String,
        /// what to do
        help: String,
    },
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// what was asked
        what: &'static str,
        /// the answer
        source: std::io::Error,
    },
    /// It ended, or failed, before it asked for packets.
    #[error("{name} did not get as far as asking for packets: {what}")]
    Start {
        /// its name
        name: String,
        /// what happened
        what: String,
    },
}

impl GuestError {
    /// The fix.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Slot(..) => "end another guest, or choose another slot".into(),
            Self::Addresses(..) => format!(
                "a guest takes {} MiB of addresses, which cost no memory: raise the limit (`ulimit -v`, LimitAS of systemd)",
                STRIDE >> 20
            ),
            Self::Command { .. } => {
                "write guest:'PROGRAM ARGUMENTS', with @ for the interface".into()
            }
            Self::Program { help, .. } => (*help).into(),
            Self::Snapshot { help, .. } => help.clone(),
            Self::System { .. } => "hosting needs Linux 4.17 or later with seccomp filters".into(),
            Self::Start { .. } => {
                "run the program by itself to see whether it works; its interface is called @"
                    .into()
            }
        }
    }

    pub(crate) fn system(what: &'static str) -> Self {
        let source = std::io::Error::last_os_error();
        Self::System { what, source }
    }
}
