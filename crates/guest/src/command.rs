//! From the words of a guest to what is run: `tcpdump -n -i @`.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::GuestError;

/// Writable memory that a guest may have, unless said otherwise, bytes.
pub const BUDGET: usize = 1 << 30;
/// How long a burst may keep a guest, unless said otherwise.
pub const LIMIT: Duration = Duration::from_secs(2);
/// How long a guest may take to ask for packets the first time.
pub const READY: Duration = Duration::from_secs(30);

/// How often a snapshot is taken where they are asked for, unless said otherwise.
pub const EVERY: Duration = Duration::from_secs(10);

/// Fate of packets after a guest has failed, until it is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failing {
    /// they pass it by
    Pass,
    /// they are dropped: for a guest that must see what goes on
    Drop,
}

/// The program and its options.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    /// what it is called in reports: the file's name
    pub name: String,
    /// the program
    pub program: PathBuf,
    /// its arguments, its name first
    pub arguments: Vec<String>,
    /// `NAME=VALUE`
    pub environment: Vec<String>,
    /// its working directory
    pub directory: PathBuf,
    /// writable memory that it may have, bytes
    pub budget: usize,
    /// how long a burst may keep it
    pub limit: Duration,
    /// how long it may take to ask for packets the first time
    pub ready: Duration,
    /// how often it is started again after it has failed
    pub restarts: u32,
    /// where a snapshot of it is kept, from which it goes on after it has failed
    pub snapshot: Option<PathBuf>,
    /// how often that is taken
    pub every: Duration,
    /// the snapshot that it begins with, instead of its program's start
    #[serde(skip)]
    pub restore: Option<PathBuf>,
    /// its slot; without one the lowest that is free
    pub slot: Option<u32>,
    /// what else it may read: these and what is below them
    pub read: Vec<PathBuf>,
    /// what else it may read and write
    pub write: Vec<PathBuf>,
    /// whether it may open nothing but these and what every program needs: not its working directory, and not what its
    /// command line names
    pub only: bool,
    /// whether memory may be both writable and executable, for programs that compile at run time
    pub jit: bool,
    /// whether it gets copies of the packets, and so sees those of the current burst alone
    pub isolate: bool,
    /// bytes of heap that it has before it begins; 0: none
    pub heap: usize,
    /// what becomes of packets when it has failed
    pub failing: Failing,
    /// the address of the first port of a program of DPDK, where it matters; the next port's is one more
    pub mac: Option<String>,
    /// the address of its interface, and the bits of its network's
    #[serde(default)]
    pub address: Option<(Ipv4Addr, u8)>,
    /// where it may send datagrams by UDP; no snapshot's business, because a guest with a socket has none
    #[serde(skip)]
    pub send: Vec<SocketAddr>,
    /// where its standard output goes: a descriptor of the host's, which is no snapshot's business
    #[serde(skip)]
    pub output: i32,
    /// pipes that its standard output and error go to instead: they are open as long as a guest may be started from this
    #[serde(skip)]
    pub pipes: Option<Pipes>,
}

/// The ends to write to of a guest's standard output and standard error.
#[derive(Clone, Debug)]
pub struct Pipes {
    /// standard output
    pub output: Arc<OwnedFd>,
    /// standard error
    pub errors: Arc<OwnedFd>,
}

impl Spec {
    /// From a command in the shell's quoting; the program is looked for in `PATH`.
    ///
    /// # Errors
    /// [`GuestError::Command`] when there is no such program or the quoting is wrong.
    pub fn parse(command: &str) -> Result<Self, GuestError> {
        let wrong = |what: String| GuestError::Command {
            command: command.to_owned(),
            what,
        };
        let arguments = shell_words::split(command).map_err(|e| wrong(e.to_string()))?;
        let first = arguments
            .first()
            .ok_or_else(|| wrong("no program is named".into()))?;
        let directory =
            std::env::current_dir().map_err(|e| wrong(format!("working directory: {e}")))?;
        let program =
            find(first).ok_or_else(|| wrong(format!("there is no program `{first}` in PATH")))?;
        let name = program
            .file_name()
            .map_or_else(|| first.clone(), |n| n.to_string_lossy().into_owned());
        Ok(Self {
            name,
            program,
            arguments,
            environment: environment(),
            directory,
            budget: BUDGET,
            limit: LIMIT,
            ready: READY,
            restarts: 0,
            snapshot: None,
            every: EVERY,
            restore: None,
            slot: None,
            read: Vec::new(),
            write: Vec::new(),
            only: false,
            jit: false,
            isolate: false,
            heap: 0,
            failing: Failing::Pass,
            mac: None,
            address: None,
            send: Vec::new(),
            output: 1,
            pipes: None,
        })
    }
}

/// The file that a word names: itself if it has a slash, else the first in `PATH`.
fn find(word: &str) -> Option<PathBuf> {
    let file = |path: &Path| {
        path.is_file()
            .then(|| std::fs::canonicalize(path).ok())
            .flatten()
    };
    if word.contains('/') {
        return file(Path::new(word));
    }
    // Tools of administrators' are often not in a user's PATH, and several of the programs meant here are.
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path
        .split(':')
        .chain(["/usr/sbin", "/sbin"])
        .filter(|f| !f.is_empty());
    folders
        .map(|folder| Path::new(folder).join(word))
        .find_map(|path| file(&path))
}

/// The host's environment, without what would change how the guest is loaded.
fn environment() -> Vec<String> {
    let kept = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut environment: Vec<String> = kept
        .filter(|(name, _)| !name.starts_with("LD_") && name != "GLIBC_TUNABLES")
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if !environment.iter().any(|e| e.starts_with("TZ=")) {
        // The same zone as without it, but the C library looks it up once and not at every packet's time.
        environment.push("TZ=:/etc/localtime".into());
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_words_and_a_program() {
        let spec = Spec::parse("sh -c 'a b'").unwrap();
        assert_eq!(spec.arguments, ["sh", "-c", "a b"]);
        assert!(spec.program.is_absolute());
        for (command, what) in [
            ("", "no program"),
            ("'x", "missing closing quote"),
            ("no-such-program-anywhere -i @", "no program `no-such"),
            ("/etc/no-such-file", "no program `/etc"),
        ] {
            let error = Spec::parse(command).unwrap_err().to_string();
            assert!(error.contains(what), "{command}: {error}");
        }
    }
}
