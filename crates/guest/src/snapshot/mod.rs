//! Snapshots of guests: to a file, or to another process while the guest goes on.
//!
//! A guest lives at the same addresses wherever it is ([`crate::slot`]), and all of its state is in its slot but for
//! what stands here in a document: what is mapped, its threads' registers, its descriptors, handlers and names
//! ([`image`]). A snapshot is taken of a guest at rest ([`crate::rest`]); most of its pages may be copied before,
//! while it runs, and those that it has written to since once more ([`take`], [`track`]), as Clark et al., "Live
//! Migration of Virtual Machines", NSDI 2005, section 3.2, does for machines. Pages that show an unchanged file, and
//! zeros, are not copied: the file is named, with a digest, and must be the same where the guest goes on.
//!
//! A snapshot is a program with its memory: restoring one runs what is in it.

pub mod backing;
pub mod features;
pub mod files;
pub mod format;
pub mod image;
pub mod inspect;
pub mod pages;
pub mod restore;
pub mod take;
pub mod track;

use crate::error::GuestError;

/// Why there is no snapshot, or why it cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The input is not one, or damaged.
    #[error("{0}")]
    Broken(String),
    /// It was made by a release that writes another version of the format.
    #[error(
        "version {theirs} of the format of guests' snapshots, not {ours}: made by another release"
    )]
    Release {
        /// the version that it has
        theirs: u32,
        /// the version that this program reads
        ours: u32,
    },
    /// It cannot be gone on with here.
    #[error("{what}")]
    Here {
        /// why not
        what: String,
        /// what to do
        help: &'static str,
    },
    /// The guest is such that no snapshot can be taken.
    #[error("{0}")]
    Guest(String),
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The guest cannot be set up.
    #[error("{0}")]
    Start(#[from] GuestError),
}

impl SnapshotError {
    pub(crate) fn broken(what: impl Into<String>) -> Self {
        Self::Broken(what.into())
    }

    /// The fix.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Broken(_) => "take the snapshot again, with this release of millrace".into(),
            Self::Release { .. } => {
                "run the same release of millrace where it was taken and where it is gone on with"
                    .into()
            }
            Self::Here { help, .. } => (*help).into(),
            Self::Guest(_) => "docs/guests.md says which guests can be moved".into(),
            Self::Io(_) => "is there room, and may it be read and written?".into(),
            Self::Start(error) => error.help(),
        }
    }
}
