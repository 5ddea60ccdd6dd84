//! The socket of a running function: a thread that takes connections, one for each client.
//!
//! A client cannot wedge it: the number of clients and the length of a request are bounded, and reading one, writing its answer
//! and doing nothing take at most so much time. What does not keep to that is told so and closed.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::answer::{Context, Session};
use crate::elements::Elements;
use crate::exposed::Exposed;
use crate::protocol::{self, Answer, MOST_REQUEST};
use crate::socket::{self, Listening};
use crate::trouble::Trouble;
use millrace_dataplane::{Mailbox, privilege};

/// How much a server puts up with.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// clients at a time
    pub clients: usize,
    /// from the first byte of a request to its last
    pub request: Duration,
    /// between an answer and the next request
    pub idle: Duration,
    /// for writing an answer
    pub write: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 32,
            request: Duration::from_secs(5),
            idle: Duration::from_secs(30),
            write: Duration::from_secs(5),
        }
    }
}

/// How long the end of a run waits for answers that are under way.
const LINGER: Duration = Duration::from_millis(500);
/// Connection threads parse JSON of bounded depth, and nothing else that goes deep.
const STACK: usize = 512 << 10;

struct Shared {
    context: Arc<Context>,
    limits: Limits,
    clients: AtomicUsize,
    /// requests that are read and not yet answered
    busy: AtomicUsize,
}

/// A running server. It ends, and its socket goes, with this value.
pub struct Server {
    path: PathBuf,
    shared: Arc<Shared>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at `path` for what is to be done with what runs, by the workers of these mailboxes.
    ///
    /// # Errors
    /// The socket cannot be made there, or the system gives no thread.
    pub fn start(
        path: &Path,
        elements: Arc<Elements>,
        mailboxes: Vec<Arc<Mailbox>>,
        limits: Limits,
    ) -> Result<Self, Trouble> {
        let listening = socket::listen(path)?;
        let failed = |e: io::Error| Trouble::new("socket", format!("no control thread: {e}"));
        let wake = eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
        let woken = wake.try_clone().map_err(failed)?;
        let shared = Arc::new(Shared {
            context: Arc::new(Context {
                elements,
                mailboxes,
                staged: AtomicUsize::new(0),
                tracing: AtomicBool::new(false),
            }),
            limits,
            clients: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
        });
        let (path, theirs) = (listening.path.clone(), shared.clone());
        let thread = Builder::new()
            .name("control".into())
            .stack_size(STACK)
            .spawn(move || {
                privilege::none_here();
                accept(&listening, &woken, &theirs);
            })
            .map_err(failed)?;
        Ok(Self {
            path,
            shared,
            wake,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The client that asked for the end should hear that it is near.
        let began = Instant::now();
        while self.shared.busy.load(Ordering::Acquire) > 0 && began.elapsed() < LINGER {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listening: &Listening, wake: &OwnedFd, shared: &Arc<Shared>) {
    // A client that is gone again between poll and accept must not hold the thread.
    if listening.listener.set_nonblocking(true).is_err() {
        return;
    }
    loop {
        let mut fds = [
            PollFd::from_borrowed_fd(listening.listener.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        if !fds[1].revents().is_empty() {
            return;
        }
        match listening.listener.accept() {
            Ok((stream, _)) => greet(stream, shared),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // Out of descriptors, most likely: there is nobody to tell, and it may pass.
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Gives a client a thread, or tells it why not.
fn greet(stream: UnixStream, shared: &Arc<Shared>) {
    let limits = shared.limits;
    let refuse = |stream: &UnixStream, error: Trouble| {
        // The buffer of a new socket holds it; whoever cannot take it does not get it.
        let _ = stream.set_nonblocking(true);
        let _ = send(stream, &Answer::new(None, Err(error)), Instant::now());
    };
    if !socket::trusted(&stream) {
        let error = Trouble::new("permission", "the run belongs to another user");
        return refuse(&stream, error);
    }
    let first = shared.clients.fetch_add(1, Ordering::AcqRel);
    let ticket = Ticket(shared.clone());
    if first >= limits.clients {
        let error = Trouble::new("busy", format!("{} clients are connected", limits.clients))
            .help("try again when one has gone");
        return refuse(&stream, error);
    }
    let _ = stream.set_nonblocking(false);
    // Without a thread the stream is dropped, which closes it.
    let _ = Builder::new()
        .name("control-client".into())
        .stack_size(STACK)
        .spawn(move || {
            converse(&stream, &ticket.0);
            drop(ticket);
        });
}

/// A client's place among the others.
struct Ticket(Arc<Shared>);

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Requests and answers, until the client goes or does not keep to the rules.
fn converse(stream: &UnixStream, shared: &Shared) {
    let mut conversation = Conversation {
        session: Session::new(shared.context.clone()),
    };
    let mut lines = Lines {
        stream,
        buffer: Vec::new(),
        seen: 0,
    };
    loop {
        let line = match lines.next(shared.limits) {
            Ok(Some(line)) => Ok(line),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        shared.busy.fetch_add(1, Ordering::AcqRel);
        let (answer, over) = match line {
            Ok(line) => conversation.say(&line),
            Err(error) => (Answer::new(None, Err(error)), true),
        };
        let until = Instant::now().checked_add(shared.limits.write);
        let sent = send(stream, &answer, until.unwrap_or_else(Instant::now));
        shared.busy.fetch_sub(1, Ordering::AcqRel);
        if over || sent.is_err() {
            return;
        }
    }
}

/// Requests of one client and their answers, wherever the lines come from.
pub struct Conversation {
    session: Session,
}

impl Conversation {
    /// With a function that these workers run.
    #[must_use]
    pub fn new(exposed: Arc<Exposed>, mailboxes: Vec<Arc<Mailbox>>) -> Self {
        Self {
            session: Session::new(Arc::new(Context {
                elements: Arc::new(Elements::one(exposed)),
                mailboxes,
                staged: AtomicUsize::new(0),
                tracing: AtomicBool::new(false),
            })),
        }
    }

    /// The answer to a line, and whether it is the last. What cannot be read is not gone on with: the
    /// next line may be the middle of something.
    pub fn say(&mut self, line: &[u8]) -> (Answer, bool) {
        match protocol::parse(line) {
            Ok(request) => (
                Answer::new(request.id, self.session.answer(&request)),
                false,
            ),
            Err(error) => (Answer::new(None, Err(error)), true),
        }
    }
}

/// Writes an answer, all of it before `until`.
fn send(mut stream: &UnixStream, answer: &Answer, until: Instant) -> io::Result<()> {
    let mut text = serde_json::to_vec(answer)?;
    text.push(b'\n');
    let mut rest = text.as_slice();
    while !rest.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        stream.set_write_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => rest = rest.get(n..).unwrap_or(&[]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        if !rest.is_empty() && Instant::now() >= until {
            return Err(ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}

/// Lines of a client.
struct Lines<'a> {
    stream: &'a UnixStream,
    buffer: Vec<u8>,
    /// bytes of the buffer that are known to hold no line's end
    seen: usize,
}

impl Lines<'_> {
    /// The next line; none when the client has gone, or has been silent for long.
    fn next(&mut self, limits: Limits) -> Result<Option<Vec<u8>>, Trouble> {
        let begin = Instant::now();
        let mut until = begin.checked_add(limits.idle);
        let mut begun = false;
        loop {
            let fresh = self.buffer.get(self.seen..).unwrap_or(&[]);
            if let Some(at) = fresh.iter().position(|b| *b == b'\n') {
                let rest = self.buffer.split_off(self.seen + at + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                self.seen = 0;
                return Ok(Some(line));
            }
            self.seen = self.buffer.len();
            if self.seen >= MOST_REQUEST {
                return Err(Trouble::new(
                    "too-large",
                    format!("a request of more than {MOST_REQUEST} bytes"),
                )
                .help("send edits in several requests, with \"more\": true in all but the last"));
            }
            if !begun && !self.buffer.is_empty() {
                begun = true;
                until = Instant::now().checked_add(limits.request);
            }
            match self.read(until.unwrap_or(begin)) {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    let what = match begun {
                        true => "a request that does not end",
                        false => "no request for long",
                    };
                    return Err(Trouble::new("timeout", what).help("connect again"));
                }
                Err(_) => return Ok(None),
            }
        }
    }

    fn read(&mut self, until: Instant) -> io::Result<usize> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream
            .set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let mut piece = [0; 16 << 10];
        let n = (&mut &*self.stream).read(&mut piece)?;
        self.buffer.extend_from_slice(piece.get(..n).unwrap_or(&[]));
        Ok(n)
    }
}
