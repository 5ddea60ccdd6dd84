//! The state of a run in a folder, from which the next goes on (docs/operate.md).
//!
//! The folder holds one file, `state`. It is replaced whole: written beside, brought to the disk, and renamed over the
//! old one (rename(2)), so that a process that is killed at any moment, or a disk that is full, leaves the old state or
//! the new one, never a part.

mod parts;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use millrace_state::{Front, State, Wrong};
use rustix::fs::{FlockOperation, flock};

pub(crate) use parts::{LOCKED, REPLICATED};
use parts::{MOST_WORKERS, most};
pub use parts::{keepable, parts, state};

use crate::exposed::Exposed;
use crate::trouble::Trouble;

/// The file in the folder.
const FILE: &str = "state";

/// An element of a run: its name and what it is.
pub type Named<'a> = (&'a str, &'a Exposed);

/// The folder of a run's state, held so that no other run has it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// the folder itself, locked
    lock: File,
}

impl Folder {
    /// Takes a folder, which is made if it is not there.
    ///
    /// # Errors
    /// It cannot be made, or another run has it.
    pub fn open(path: &Path) -> Result<Self, Trouble> {
        let failed = |e: std::io::Error| {
            Trouble::new("folder", format!("--state {}: {e}", path.display()))
                .help("choose another folder")
        };
        fs::create_dir_all(path).map_err(failed)?;
        let lock = File::open(path).map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|e| match e {
            rustix::io::Errno::WOULDBLOCK => Trouble::new(
                "live",
                format!(
                    "--state {}: another run keeps its state there",
                    path.display()
                ),
            )
            .help("end it first, or choose another folder"),
            e => failed(e.into()),
        })?;
        Ok(Self {
            path: path.to_owned(),
            lock,
        })
    }

    fn file(&self) -> PathBuf {
        self.path.join(FILE)
    }

    /// The state that the last run left, of which no more than the front is read; none where there is none.
    ///
    /// # Errors
    /// There is a file that is no state of this version, or cannot be read.
    pub fn find(&self) -> Result<Option<Found>, Trouble> {
        let path = self.file();
        let unread = |e: std::io::Error| unreadable(&path, &e);
        let mut file = match File::open(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(unread)?,
        };
        let bytes = file.metadata().map_err(unread)?.len();
        let mut first = Vec::new();
        let read = (&mut file).take(Front::MOST as u64).read_to_end(&mut first);
        read.map_err(unread)?;
        let front = Front::read(&first, bytes).map_err(|e| unsound(&path, &e))?;
        Ok(Some(Found {
            path,
            file,
            bytes,
            first,
            front,
        }))
    }

    /// Replaces the state that is there.
    ///
    /// # Errors
    /// It cannot be written. What was there is there still.
    pub fn write(&self, state: &State) -> Result<(), Trouble> {
        let path = self.file();
        self.replace(&path, state).map_err(|e| {
            Trouble::new("state", format!("{}: {e}", path.display()))
                .help("the state that was saved before is still there; make room")
        })
    }

    fn replace(&self, path: &Path, state: &State) -> std::io::Result<()> {
        // One run has the folder, so one name is enough; what a killed run has left there goes.
        let beside = path.with_extension("new");
        match fs::remove_file(&beside) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let file = File::create_new(&beside)?;
        let written = (|| {
            let mut out = BufWriter::new(&file);
            state.write(&mut out)?;
            out.flush()?;
            drop(out);
            file.sync_all()?;
            fs::rename(&beside, path)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written?;
        // The new name is on the disk once the folder is.
        self.lock.sync_all()
    }
}

/// A state that is there. Its size is compared with what the objects of a run can need before it is read.
#[derive(Debug)]
pub struct Found {
    path: PathBuf,
    file: File,
    bytes: u64,
    first: Vec<u8>,
    front: Front,
}

impl Found {
    /// What is in front of the elements.
    #[must_use]
    pub fn front(&self) -> &Front {
        &self.front
    }

    /// All of it, for a run of these elements.
    ///
    /// # Errors
    /// It is larger than any state of them, it is no state of this version, or it cannot be read.
    pub fn read(self, elements: &[Named<'_>], workers: usize) -> Result<State, Trouble> {
        // Whoever wrote the file says how many workers there were, too.
        let most = most(elements, workers.max(self.front.workers.min(MOST_WORKERS)));
        if self.bytes > most {
            let what = format!(
                "--state: what was saved does not fit this run: {} has {} bytes, and its objects need at most {most}",
                self.path.display(),
                self.bytes
            );
            return Err(unfit(what));
        }
        // What has been appended since is not read, and found missing or too long.
        let mut bytes = self.first;
        let rest = self.bytes.saturating_sub(bytes.len() as u64);
        let read = self.file.take(rest).read_to_end(&mut bytes);
        read.map_err(|e| unreadable(&self.path, &e))?;
        State::read(&bytes).map_err(|e| unsound(&self.path, &e))
    }
}

fn unreadable(path: &Path, e: &std::io::Error) -> Trouble {
    Trouble::new("state", format!("{}: {e}", path.display()))
        .help("make it readable, or begin without it (--anew)")
}

/// An answer, which is no other at the next attempt.
fn unsound(path: &Path, e: &Wrong) -> Trouble {
    Trouble::new("refused", format!("{}: {e}", path.display())).help(
        "put back the file as the run wrote it, or begin without it: --anew replaces it at the end",
    )
}

/// The same of a state that is sound.
fn unfit(what: String) -> Trouble {
    Trouble::new("refused", what)
        .help("run what the state was saved by, or begin without it: --anew replaces it at the end")
}
