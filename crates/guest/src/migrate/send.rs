//! The sending end, and snapshots to a file of a guest that runs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::PATIENCE;
use super::away::{self, Away};
use super::desk::{Desk, Outcome};
use super::receive::Reply;
use crate::shared::{Over, Shared};
use crate::snapshot::SnapshotError;
use crate::snapshot::take::{Round, Taker};

/// How long the worker may take to come between two bursts.
const COME: Duration = Duration::from_secs(10);

/// Cost of a move or a snapshot.
#[derive(Clone, Debug)]
pub struct Report {
    /// the guest
    pub name: String,
    /// rounds; the guest was stopped during the last
    pub rounds: Vec<Round>,
    /// how pages that were written to were found
    pub by: &'static str,
    /// bytes in all
    pub bytes: u64,
    /// how long the guest was stopped
    pub stopped: Duration,
}

/// Counts what is written.
struct Counted<W>(W, u64);

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.0.write(bytes)?;
        self.1 += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Moves a guest over a connection, whose other end is known to be the user's own; `to` names it in reports.
///
/// # Errors
/// It cannot be moved, the receiver cannot have it, or the connection ends; the guest goes on here then.
#[allow(
    clippy::needless_pass_by_value,
    reason = "the connection is the guest's from here on"
)]
pub fn migrate(desk: &Arc<Desk>, stream: UnixStream, to: &str) -> Result<Report, SnapshotError> {
    go(desk, &stream, to, false)
}

/// The same as on a kernel that does not tell what is written to.
///
/// # Errors
/// As [`migrate`].
#[allow(
    clippy::needless_pass_by_value,
    reason = "the connection is the guest's from here on"
)]
pub fn migrate_by_comparison(
    desk: &Arc<Desk>,
    stream: UnixStream,
    to: &str,
) -> Result<Report, SnapshotError> {
    go(desk, &stream, to, true)
}

fn go(
    desk: &Arc<Desk>,
    stream: &UnixStream,
    to: &str,
    compare: bool,
) -> Result<Report, SnapshotError> {
    let claim = desk.claim()?;
    let guest = desk.guest();
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut out = Counted(stream.try_clone()?, 0);
    let moved = (|| {
        let mut taker = Taker::begin(&guest, &mut out)?;
        if compare {
            taker.compare();
        }
        agreed(stream)?;
        while taker.again() {
            taker.round()?;
        }
        let hold = claim.hold(COME)?;
        let still = taker.finish(&hold.context)?;
        agreed(stream)?;
        let away = Away::new(stream.try_clone()?, to.to_owned(), guest.spec.limit)?;
        // From here on the guest is there, and no longer here: the threads that are at rest go.
        guest.end(Over::Moved(to.to_owned()));
        drop(still);
        let stopped = hold.tell(Outcome::Moved(Box::new(away)));
        Ok((taker.rounds.clone(), taker.tracks_by(), stopped))
    })();
    let (rounds, by, stopped) = moved.map_err(|e| why(stream, e))?;
    leave(&guest);
    Ok(Report {
        name: desk.name.clone(),
        rounds,
        by,
        bytes: out.1,
        stopped,
    })
}

/// Waits for the receiver's answer.
fn agreed(mut stream: &UnixStream) -> Result<(), SnapshotError> {
    let reply: Reply = away::document(&mut stream)?;
    match reply.refused {
        None => Ok(()),
        Some((what, help)) => Err(SnapshotError::Guest(format!(
            "the receiver says: {what} ({help})"
        ))),
    }
}

/// A receiver that refuses says why before it closes the connection, which is what a write finds.
fn why(stream: &UnixStream, error: SnapshotError) -> SnapshotError {
    if !matches!(error, SnapshotError::Io(_)) {
        return error;
    }
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    match agreed(stream) {
        Err(refused @ SnapshotError::Guest(_)) => refused,
        _ => error,
    }
}

/// Gives back the memory and the slot of a guest that has gone, once its threads have left it.
fn leave(guest: &Arc<Shared>) {
    if guest.left() {
        guest.slot.release();
    }
}

/// Writes a snapshot of a running guest to a file, which appears when it is whole. The guest is stopped only for what
/// it has written to meanwhile.
///
/// # Errors
/// It is such that it cannot be moved, or the file cannot be written.
pub fn save(desk: &Arc<Desk>, file: &Path) -> Result<Report, SnapshotError> {
    let claim = desk.claim()?;
    let guest = desk.guest();
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    let part = Path::new(&name);
    let saved = (|| {
        use std::os::unix::fs::OpenOptionsExt;
        // What is in a guest's memory is its user's: neither a file of somebody else's nor one that a link leads to is
        // written.
        let _ = std::fs::remove_file(part);
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600);
        let mut out = Counted(BufWriter::with_capacity(1 << 18, options.open(part)?), 0);
        let mut taker = Taker::begin(&guest, &mut out)?;
        while taker.again() {
            taker.round()?;
        }
        let hold = claim.hold(COME)?;
        drop(taker.finish(&hold.context)?);
        let stopped = hold.tell(Outcome::Stay);
        let (rounds, by) = (taker.rounds.clone(), taker.tracks_by());
        out.0
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .sync_data()?;
        std::fs::rename(part, file)?;
        Ok(Report {
            name: desk.name.clone(),
            rounds,
            by,
            bytes: out.1,
            stopped,
        })
    })();
    if saved.is_err() {
        // Half a snapshot is none; that it cannot be removed is no news.
        let _ = std::fs::remove_file(part);
    }
    saved
}
