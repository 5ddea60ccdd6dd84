//! What a service manager is told of a run, by the protocol of sd_notify(3): datagrams of lines NAME=VALUE to the socket
//! that NOTIFY_SOCKET names.
//!
//! READY=1 once the ports are open and each worker has made a poll iteration; WATCHDOG=1 while each worker goes on with
//! them, so that one which hangs in a function or a guest is noticed; STOPPING=1 when the last packet has been taken,
//! before state is written. A message that cannot be sent is left out: packets do not wait for the manager.

use std::ffi::{OsStr, OsString};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use millrace::Seen;
use millrace_dataplane::signal;

/// How long a message may wait for room in the manager's queue.
const PATIENCE: Duration = Duration::from_millis(200);
/// Between two lines of status, which `systemctl status` shows.
const STATUS: Duration = Duration::from_secs(5);

/// The service manager, if there is one.
#[derive(Default)]
pub struct Notify {
    socket: Option<UnixDatagram>,
    /// how often it wants to hear of progress: half of the time after which it acts
    every: Option<Duration>,
    told: Told,
    /// when it was told of progress or of the status
    alive: Option<Instant>,
    status: Option<Instant>,
    /// poll iterations of each worker then
    before: Vec<Option<u64>>,
}

/// How far the messages are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Default)]
enum Told {
    #[default]
    Nothing,
    Ready,
    Stopping,
}

impl Notify {
    /// The manager that started this process.
    pub fn begin() -> Self {
        Self::of(|name| std::env::var_os(name), std::process::id())
    }

    /// Whether a manager asked to be told.
    pub fn is_asked() -> bool {
        std::env::var_os("NOTIFY_SOCKET").is_some()
    }

    fn of(variable: impl Fn(&str) -> Option<OsString>, process: u32) -> Self {
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        // A watchdog that is another process's, as of a parent that is supervised, is not ours.
        let ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(process));
        let every = number("WATCHDOG_USEC").filter(|us| ours && *us > 0);
        Self {
            socket: variable("NOTIFY_SOCKET").and_then(|name| connect(&name)),
            every: every.map(|us| Duration::from_micros(us / 2)),
            ..Self::default()
        }
    }

    fn send(&self, message: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(message.as_bytes());
        }
    }

    /// Says what is done.
    pub fn status(&self, status: &str) {
        self.send(&format!("STATUS={status}\n"));
    }

    /// To be called ten times a second with what workers have counted; `words` names their ports.
    pub fn look(&mut self, words: &str, seen: &Seen<'_>) {
        if self.socket.is_none() {
            return;
        }
        // A run over captures calls this from its only worker, or from the thread that feeds the workers.
        let now = seen.counts.map_or(Vec::new(), |counts| counts.iterations());
        let status = format!("serving {words}: {} packets read", seen.read);
        self.judge(now, &status, signal::flag().load(Ordering::Relaxed));
    }

    fn judge(&mut self, now: Vec<Option<u64>>, status: &str, stopped: bool) {
        let over = !now.is_empty() && now.iter().all(Option::is_none);
        if stopped || over {
            self.end();
            return;
        }
        if self.told == Told::Nothing {
            // None is one that has ended already.
            if now.iter().all(|worker| *worker != Some(0)) {
                self.ready(status);
                self.before = now;
            }
            return;
        }
        let went_on = |(before, now): (&Option<u64>, &Option<u64>)| now.is_none() || before != now;
        if self.before.iter().zip(&now).all(went_on) && self.progress() {
            self.before = now;
        }
        self.again(status);
    }

    /// The same of a function that the kernel runs, which cannot hang.
    pub fn in_kernel(&mut self, words: &str) {
        let status = format!("serving {words} in the kernel");
        self.judge(Vec::new(), &status, signal::flag().load(Ordering::Relaxed));
    }

    fn ready(&mut self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}\n"));
        self.told = Told::Ready;
        (self.alive, self.status) = (Some(Instant::now()), Some(Instant::now()));
    }

    /// Tells of progress, if it is time for it.
    fn progress(&mut self) -> bool {
        let due = |every| self.alive.is_none_or(|told| told.elapsed() >= every);
        let due = self.every.is_some_and(due);
        if due {
            self.send("WATCHDOG=1\n");
            self.alive = Some(Instant::now());
        }
        due
    }

    fn again(&mut self, status: &str) {
        if self.status.is_none_or(|told| told.elapsed() >= STATUS) {
            self.status(status);
            self.status = Some(Instant::now());
        }
    }

    /// The last packet has been taken; of a run that was over before anybody looked, it was ready as well.
    pub fn end(&mut self) {
        if self.told == Told::Nothing {
            self.ready("done");
        }
        if self.told < Told::Stopping {
            self.send("STOPPING=1\nSTATUS=writing what is left\n");
            self.told = Told::Stopping;
        }
    }
}

/// A socket that is connected to the manager's: a path, or behind `@` an abstract name.
fn connect(name: &OsStr) -> Option<UnixDatagram> {
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
        [b'/', ..] => SocketAddr::from_pathname(name),
        _ => return None,
    };
    let socket = UnixDatagram::unbound().ok()?;
    socket.connect_addr(&address.ok()?).ok()?;
    socket.set_write_timeout(Some(PATIENCE)).ok()?;
    Some(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manager's socket at a path, what it has received since it was asked last, and the other end.
    fn manager(watchdog: Option<&str>) -> (UnixDatagram, Notify, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let notify = Notify::of(
            |name| match name {
                "NOTIFY_SOCKET" => Some(path.clone().into()),
                "WATCHDOG_USEC" => watchdog.map(OsString::from),
                _ => None,
            },
            7,
        );
        (socket, notify, dir)
    }

    fn heard(socket: &UnixDatagram) -> String {
        let mut all = String::new();
        let mut buffer = [0; 1024];
        while let Ok(length) = socket.recv(&mut buffer) {
            all += std::str::from_utf8(&buffer[..length]).unwrap();
        }
        all
    }

    #[test]
    fn it_is_ready_when_each_worker_has_made_an_iteration() {
        let (socket, mut notify, _dir) = manager(None);
        notify.judge(vec![Some(3), Some(0)], "s", false);
        assert_eq!(heard(&socket), "");
        notify.judge(vec![Some(4), Some(1)], "s", false);
        assert_eq!(heard(&socket), "READY=1\nSTATUS=s\n");
        notify.judge(vec![Some(5), Some(2)], "s", false);
        assert_eq!(heard(&socket), "");
    }

    #[test]
    fn a_worker_that_hangs_is_not_covered_by_one_that_does_not() {
        // Half a microsecond: always due.
        let (socket, mut notify, _dir) = manager(Some("1"));
        notify.judge(vec![Some(1), Some(1)], "s", false);
        heard(&socket);
        notify.judge(vec![Some(2), Some(2)], "s", false);
        assert_eq!(heard(&socket), "WATCHDOG=1\n");
        for first in 3..9 {
            notify.judge(vec![Some(first), Some(2)], "s", false);
            assert_eq!(heard(&socket), "");
        }
        notify.judge(vec![Some(9), Some(3)], "s", false);
        assert_eq!(heard(&socket), "WATCHDOG=1\n");
        // One that has ended is waited for by nobody.
        notify.judge(vec![Some(10), None], "s", false);
        assert_eq!(heard(&socket), "WATCHDOG=1\n");
    }

    #[test]
    fn the_end_is_told_once_before_what_follows_it() {
        let (socket, mut notify, _dir) = manager(None);
        notify.judge(vec![Some(1)], "s", false);
        heard(&socket);
        notify.judge(vec![None], "s", false);
        notify.end();
        assert_eq!(heard(&socket).matches("STOPPING=1").count(), 1);
        let (socket, mut notify, _dir) = manager(None);
        notify.end();
        let all = heard(&socket);
        assert!(
            all.starts_with("READY=1") && all.contains("STOPPING=1"),
            "{all}"
        );
    }

    #[test]
    fn another_process_watchdog_and_a_foreign_socket_are_left_alone() {
        let of = |pid: &'static str, socket: &'static str| {
            Notify::of(
                move |name| match name {
                    "WATCHDOG_PID" => Some(pid.into()),
                    "WATCHDOG_USEC" => Some("2000000".into()),
                    "NOTIFY_SOCKET" => Some(socket.into()),
                    _ => None,
                },
                7,
            )
        };
        assert_eq!(of("7", "").every, Some(Duration::from_secs(1)));
        assert_eq!(of("8", "").every, None);
        for socket in ["", "vsock:2:1", "/nowhere/at/all", "@no-such-name-here"] {
            assert!(of("7", socket).socket.is_none(), "{socket}");
        }
    }

    #[test]
    fn an_abstract_address_is_reached() {
        let name = format!("millrace-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut notify = Notify::of(
            |variable| (variable == "NOTIFY_SOCKET").then(|| format!("@{name}").into()),
            7,
        );
        notify.end();
        assert!(heard(&socket).starts_with("READY=1"));
    }
}
