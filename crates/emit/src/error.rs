//! Errors between a checked program and its machine code.

use std::path::PathBuf;

use millrace_check::budget::Spent;
use millrace_check::facts::Refusal;

/// Why there is no module.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// no compiler, or one that is too old
    #[error("{reason}; install it with: apt-get install {package}")]
    Toolchain {
        /// what is missing
        reason: String,
        /// the Debian package that has it
        package: &'static str,
    },
    /// clang refused a source; its own words, with file and line
    #[error("{}: clang does not compile it\n{diagnostics}", file.display())]
    Compile {
        /// what was compiled
        file: PathBuf,
        /// clang's diagnostics, whole
        diagnostics: String,
    },
    /// the object's budget is used up
    #[error("{stage}: {spent} is used up, compiling {}; {}", file.display(), spent.raise())]
    Spent {
        /// what used it up
        stage: &'static str,
        /// what was compiled
        file: PathBuf,
        /// what there is no more of
        spent: Spent,
    },
    /// the object file is not one
    #[error("{}: {reason}", file.display())]
    Object {
        /// the object file, or the source it came from
        file: PathBuf,
        /// the loader's words
        reason: String,
    },
    /// the program may not run
    #[error("{}: refused, {} reason(s)", file.display(), refusals.len())]
    Refused {
        /// the object file, or the source it came from
        file: PathBuf,
        /// every reason, in the author's terms
        refusals: Vec<Refusal>,
    },
    /// a setting names no parameter, or its value does not fit
    #[error("--set {setting}: {reason}")]
    Setting {
        /// as given
        setting: String,
        /// what was wrong and what would do
        reason: String,
    },
    /// a capacity names no state object, or one that cannot have it
    #[error("--capacity {setting}: {reason}")]
    Capacity {
        /// as given
        setting: String,
        /// what was wrong and what would do
        reason: String,
    },
    /// what workers are to share names no state object
    #[error("sharing `{object}` among workers: there is no such state object; there are {known}")]
    Shared {
        /// as given
        object: String,
        /// the names that there are
        known: String,
    },
    /// a program that passed the check but that this treatment has no code for
    #[error("{place}: {what} is not supported")]
    Unsupported {
        /// file and line, or function and instruction
        place: String,
        /// the construct
        what: String,
    },
    /// the facts contradict the program: a defect of Millrace, not of the author
    #[error(
        "the facts about {place} do not fit the program ({what}); this is a defect of millrace, please report it"
    )]
    Facts {
        /// function and instruction
        place: String,
        /// the contradiction
        what: String,
    },
    /// the cache directory cannot be trusted
    #[error("{}: {reason}; set MILLRACE_CACHE to a directory of your own", path.display())]
    Cache {
        /// the directory
        path: PathBuf,
        /// what was wrong
        reason: String,
    },
    /// the file system said no
    #[error("{}: {source}", path.display())]
    Io {
        /// the file
        path: PathBuf,
        /// why
        source: std::io::Error,
    },
}

impl Error {
    /// An [`Error::Io`] about this path.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { path, source }
    }
}
