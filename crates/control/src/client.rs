//! The other end of the control socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::protocol::{Answer, Request, VERSION};
use crate::socket;
use crate::trouble::Trouble;

/// Longer than a worker may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// An answer holds a page of entries; one entry may be large.
const MOST_ANSWER: u64 = 64 << 20;

/// A connection.
pub struct Client {
    stream: BufReader<UnixStream>,
    next: u64,
}

impl Client {
    /// Connects to the run that listens at `path`.
    ///
    /// # Errors
    /// Nobody listens there, or somebody else's process does.
    pub fn connect(path: &Path) -> Result<Self, Trouble> {
        let shown = path.display();
        let failed = |e: std::io::Error| {
            Trouble::new("unreachable", format!("{shown}: {e}"))
                .help("is the run still there? `millrace ctl runs` lists those that are")
        };
        let stream = UnixStream::connect(path).map_err(failed)?;
        // Root asks services, which have a user of their own; that one can do no more to it than answer.
        if !socket::trusted(&stream) && !rustix::process::geteuid().is_root() {
            return Err(Trouble::new(
                "permission",
                format!("{shown}: belongs to another user's process"),
            ));
        }
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        Ok(Self {
            stream: BufReader::new(stream),
            next: 1,
        })
    }

    /// Waits so long for answers from now on. A new element of a chain may take minutes to make.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn patience(&mut self, patience: Duration) -> Result<(), Trouble> {
        let set = self.stream.get_ref().set_read_timeout(Some(patience));
        set.map_err(|e| Trouble::new("unreachable", e))
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// What the run says is wrong, or that it says nothing.
    pub fn ask(&mut self, mut request: Request) -> Result<Value, Trouble> {
        request.v = VERSION;
        request.id = Some(self.next);
        self.next += 1;
        let lost = |e: std::io::Error| {
            Trouble::new("unreachable", format!("the run does not answer: {e}"))
        };
        let mut text = serde_json::to_vec(&request).map_err(|e| lost(e.into()))?;
        text.push(b'\n');
        // A server that refuses a client answers and closes; the answer says more than the broken pipe.
        let written = self.stream.get_mut().write_all(&text);
        let mut line = Vec::new();
        let mut bounded = (&mut self.stream).take(MOST_ANSWER);
        let read = bounded.read_until(b'\n', &mut line);
        if line.last() != Some(&b'\n') {
            written.and(read).map_err(lost)?;
            return Err(Trouble::new("unreachable", "the run has ended"));
        }
        let answer: Answer = serde_json::from_slice(&line).map_err(|e| lost(e.into()))?;
        match answer {
            Answer {
                error: Some(error), ..
            } => Err(error),
            Answer { ok: Some(ok), .. } => Ok(ok),
            _ => Err(Trouble::new("unreachable", "an answer with nothing in it")),
        }
    }
}

/// A request without members.
#[must_use]
pub fn request(verb: &str) -> Request {
    Request {
        verb: verb.to_owned(),
        ..Request::default()
    }
}
