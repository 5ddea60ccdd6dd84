//! One error for everything that can go wrong between a name and an account.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use millrace_check::Refusal;
use millrace_control::Trouble;
use millrace_dataplane::port::PortError;
use millrace_emit::Error as Emit;
use millrace_object::LoadError;
use millrace_plan::PlanError;
use millrace_verify::VerifyError;

use crate::hints;

/// Why there is no result. What it says of options names them as the command does (`--cores`, `--set`).
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Error {
    /// what was wrong, on one line
    pub what: String,
    /// how to fix it
    pub help: Option<String>,
    /// longer text that belongs to it, such as the compiler's own messages
    pub detail: Option<String>,
    /// why the program may not run, if that is the error
    pub refused: Option<Box<Refused>>,
    /// which kind of end this is
    pub kind: Kind,
}

/// Kind of an [`Error`]: the command's exit status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// the question was answered, and the answer is no: unsafe, or impossible as asked
    No,
    /// wrong use, or an input or output that failed
    Wrong,
}

/// Refusals of a program.
#[derive(Clone, Debug)]
pub struct Refused {
    /// at least one, each with the author's line where that is known
    pub refusals: Vec<Refusal>,
    /// the folder of the function: no file outside of it may be opened to show a line, since whoever wrote the object
    /// chose the names
    pub folder: PathBuf,
}

impl Error {
    /// Wrong use, or an input or output that failed.
    pub fn wrong(what: impl Display) -> Self {
        Self {
            what: what.to_string(),
            help: None,
            detail: None,
            refused: None,
            kind: Kind::Wrong,
        }
    }

    /// The answer is no.
    pub fn no(what: impl Display) -> Self {
        Self {
            kind: Kind::No,
            ..Self::wrong(what)
        }
    }

    /// The same with how to fix it.
    #[must_use]
    pub fn help(mut self, help: impl Display) -> Self {
        self.help = Some(help.to_string());
        self
    }

    /// A program that may not run.
    #[must_use]
    pub fn refused(name: &str, folder: &Path, refusals: Vec<Refusal>) -> Self {
        let what = match refusals.len() {
            1 => format!("{name} is refused"),
            n => format!("{name} is refused for {n} reasons"),
        };
        Self {
            refused: Some(Box::new(Refused {
                refusals,
                folder: folder.to_owned(),
            })),
            ..Self::no(what).help("fix what is shown above; nothing was run")
        }
    }
}

/// A file that is not a program.
impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        let line = error
            .line
            .as_ref()
            .map_or(String::new(), |l| format!("{}:{}: ", l.file, l.line));
        let symbol = error
            .symbol
            .as_ref()
            .map_or(String::new(), |s| format!(" (`{s}`)"));
        let what = format!("{line}{}: {}{symbol}", error.file, error.problem);
        Self::wrong(what).help(&error.remedy)
    }
}

/// Something that building found.
impl From<Emit> for Error {
    fn from(error: Emit) -> Self {
        match error {
            Emit::Refused { file, refusals } => {
                let folder = file.parent().unwrap_or(Path::new(""));
                Self::refused(&file.display().to_string(), folder, refusals)
            }
            Emit::Toolchain { reason, package } => {
                Self::wrong(reason).help(format!("apt-get install {package}"))
            }
            Emit::Compile { file, diagnostics } => Self {
                kind: Kind::Wrong,
                what: format!("{}: clang does not compile it", file.display()),
                help: Some(hints::of_clang(&diagnostics).to_owned()),
                detail: Some(diagnostics),
                refused: None,
            },
            Emit::Spent {
                stage,
                ref file,
                spent,
            } => Self::wrong(format!(
                "{stage}: {spent} is used up, compiling {}",
                file.display()
            ))
            .help(format!("{}; or make the program smaller", spent.raise())),
            Emit::Setting { setting, reason } => Self::wrong(format!("--set {setting}: {reason}"))
                .help("`millrace check` lists the parameters with their types and values"),
            Emit::Cache { path, reason } => {
                Self::wrong(format!("the cache {}: {reason}", path.display()))
                    .help("set MILLRACE_CACHE to a folder of your own, which others may not enter")
            }
            Emit::Object { file, reason } => Self::wrong(format!("{}: {reason}", file.display()))
                .help("give a BPF object as clang -target bpf -g makes it, or the source"),
            Emit::Unsupported { place, what } => Self::no(format!(
                "{place}: {what} is not supported"
            ))
            .help("write it without; `millrace emit` and `run` support what docs/dialect.md lists"),
            Emit::Io { path, source } => Self::wrong(format!("{}: {source}", path.display()))
                .help("make it readable, or make room"),
            Emit::Capacity { .. } => Self::wrong(error)
                .help("declare a smaller capacity; `millrace check` shows what each object takes"),
            Emit::Shared { .. } => {
                Self::wrong(error).help("`millrace check` lists the state objects with their names")
            }
            Emit::Facts { .. } => {
                Self::wrong(error).help("nothing was run; please report it with the source")
            }
        }
    }
}

/// Something wrong with a port.
impl From<PortError> for Error {
    fn from(error: PortError) -> Self {
        let help = match &error {
            // The sentence about what was processed is for errors in the middle of a run.
            PortError::Read(_) => "give a capture (pcap or pcapng) that can be read".to_owned(),
            PortError::Write(_) => "choose an --out that can be written".to_owned(),
            other => other.help(),
        };
        Self::wrong(error).help(help)
    }
}

/// Why there is no plan.
impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        match &error {
            PlanError::Strategy { .. } => Self::no(error)
                .help("leave --strategy out: `millrace plan` says what would be done instead"),
            PlanError::Cores { .. } => {
                Self::wrong(error).help("use fewer cores, or a NIC with a larger table")
            }
            PlanError::Nic(_) => {
                Self::wrong(error).help("see crates/steer/nics for the models there are")
            }
        }
    }
}

/// Why nothing can be said about equality.
impl From<VerifyError> for Error {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Trace(e) => Self::wrong(&e).help(&e.help),
            VerifyError::Empty => Self::wrong(error).help("give a capture that has packets"),
            VerifyError::State(_) => Self::wrong(error)
                .help("declare a smaller capacity, or free memory on this machine"),
            VerifyError::Build(_) => Self::wrong(error).help("`millrace check` says more"),
        }
    }
}

/// An error that a run, or the contents of its state, reports. That there is no such entry, or that something is
/// refused, is an answer; all else is wrong use.
impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        let kind = match trouble.code.as_str() {
            "no-such-entry" | "refused" => Kind::No,
            _ => Kind::Wrong,
        };
        Self {
            help: trouble.help,
            kind,
            ..Self::wrong(trouble.what)
        }
    }
}
