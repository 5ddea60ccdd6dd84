//! `millrace receive`: waits for a guest that another process moves here.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use millrace_control::socket;
use millrace_dataplane::signal;
use millrace_guest::migrate::{
    self,
    receive::{Event, Only},
};
use millrace_guest::snapshot::SnapshotError;
use serde_json::json;

use crate::failure::{DONE, Failure, WRONG};
use crate::quantity::grouped;
use crate::screen;

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// Wait for a guest that `millrace ctl migrate` moves here, and run it until its packets end.
///
/// Its packets come from the run that it was moved from, which gets their fates back. It finds its files by
/// their paths, and its standard output is this process's.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 the guest came and ended, 2 it could not be had, or failed.")]
pub struct Receive {
    /// Where to listen: a path in a folder that nobody else may enter (mode 700)
    socket: PathBuf,

    /// Give up when none has come after so many seconds
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,

    /// Let it open nothing but what --read and --write name, whatever it might where it began
    #[arg(long)]
    only: bool,

    /// With --only: what it may read, and what is below it
    #[arg(long, value_name = "PATH", requires = "only")]
    read: Vec<PathBuf>,

    /// With --only: what it may read and write, and what is below it
    #[arg(long, value_name = "PATH", requires = "only")]
    write: Vec<PathBuf>,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

impl Receive {
    /// Receives one, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        signal::install();
        let listening = socket::listen_apart(&self.socket)?;
        screen::err(&format!(
            "waiting for a guest at {}",
            listening.path.display()
        ));
        listening
            .listener
            .set_nonblocking(true)
            .map_err(Failure::wrong)?;
        let until = self
            .seconds
            .map(|s| Instant::now() + Duration::from_secs(s));
        let stream = loop {
            match listening.listener.accept() {
                Ok((stream, _)) if socket::trusted(&stream) => break stream,
                Ok(_) => screen::err("note: another user's process was turned away"),
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(Failure::wrong(e)),
            }
            let late = until.is_some_and(|until| Instant::now() >= until);
            if late || signal::flag().load(Ordering::Relaxed) {
                return Err(Failure::wrong("no guest has come")
                    .help("move one here with `millrace ctl migrate GUEST --to SOCKET`"));
            }
            std::thread::sleep(LOOK);
        };
        // One guest is received; nobody else is to wait at this socket.
        drop(listening);
        stream.set_nonblocking(false).map_err(Failure::wrong)?;
        let output = if self.json { 2 } else { 1 };
        let only = self.only()?;
        // A thread that runs guests takes no signals: this one looks whether it is to end.
        let received = std::thread::scope(|scope| {
            let host = scope.spawn(|| {
                migrate::receive(&stream, output, only.as_ref(), &mut |event| match event {
                    Event::Arrives(head) => {
                        let (name, slot) = (&head.spec.name, head.slot);
                        screen::err(&format!("{name} arrives in slot {slot}"));
                    }
                    Event::There => screen::err("it is there, and its packets come"),
                })
            });
            while !host.is_finished() {
                if signal::flag().load(Ordering::Relaxed) {
                    // The run that it came from goes on without it.
                    let _ = stream.shutdown(std::net::Shutdown::Both);
                }
                std::thread::sleep(LOOK);
            }
            host.join()
        });
        let received =
            received.map_err(|_| Failure::wrong("the thread that ran the guest failed"))?;
        let (name, packets, told) = received.map_err(|e| failure(&e))?;
        if self.json {
            let failure = told.failure.as_ref().map(|(what, _)| what);
            screen::document(&json!({
                "guest": name, "packets": packets, "facts": told.facts, "failure": failure,
            }));
        } else {
            screen::err(&format!("{name}: {} packets came", grouped(packets)));
            for fact in &told.facts {
                screen::err(&format!("  {fact}"));
            }
        }
        match told.failure {
            None => Ok(DONE),
            Some((what, help)) => {
                screen::err(&format!("error: {name}: {what}\nhelp: {help}"));
                Ok(WRONG)
            }
        }
    }
}

impl Receive {
    /// What the guest may open, if that is said here.
    fn only(&self) -> Result<Option<Only>, Failure> {
        let full = |paths: &[PathBuf]| -> Result<Vec<PathBuf>, Failure> {
            let all = paths.iter().map(std::path::absolute);
            all.collect::<Result<_, _>>().map_err(Failure::wrong)
        };
        Ok(match self.only {
            true => Some(Only {
                read: full(&self.read)?,
                write: full(&self.write)?,
            }),
            false => None,
        })
    }
}

fn failure(error: &SnapshotError) -> Failure {
    Failure::wrong(error).help(error.help())
}
