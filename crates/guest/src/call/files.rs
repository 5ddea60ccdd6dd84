//! Descriptors: a guest has a table of its own, from 0 up, in front of the host's.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use super::paths::Rights;
use super::sockets::Socket;
use super::{Arg, Call, Entry, How, Way, entry, interface, kernel};
use crate::command::Spec;
use crate::error::GuestError;
use crate::memory::Errno;
use crate::preload::Preloads;

/// The most descriptors of a guest.
const MOST: i32 = 1024;

/// The calls.
pub const CALLS: &[Entry] = &[
    entry(
        libc::SYS_read,
        "read",
        How::Kernel(&[Arg::Fd, Arg::Memory, Arg::Value]),
    ),
    entry(
        libc::SYS_write,
        "write",
        How::Kernel(&[Arg::Fd, Arg::Data(2), Arg::Value]),
    ),
    entry(
        libc::SYS_pread64,
        "pread64",
        How::Kernel(&[Arg::Fd, Arg::Memory, Arg::Value, Arg::Value]),
    ),
    entry(
        libc::SYS_pwrite64,
        "pwrite64",
        How::Kernel(&[Arg::Fd, Arg::Data(2), Arg::Value, Arg::Value]),
    ),
    entry(libc::SYS_readv, "readv", How::Here(vectored)),
    entry(libc::SYS_writev, "writev", How::Here(vectored)),
    entry(
        libc::SYS_lseek,
        "lseek",
        How::Kernel(&[Arg::Fd, Arg::Value, Arg::Value]),
    ),
    entry(
        libc::SYS_fstat,
        "fstat",
        How::Kernel(&[Arg::Fd, Arg::Memory]),
    ),
    entry(
        libc::SYS_fstatfs,
        "fstatfs",
        How::Kernel(&[Arg::Fd, Arg::Memory]),
    ),
    entry(
        libc::SYS_flock,
        "flock",
        How::Kernel(&[Arg::Fd, Arg::Value]),
    ),
    entry(libc::SYS_fsync, "fsync", How::Kernel(&[Arg::Fd])),
    entry(libc::SYS_fdatasync, "fdatasync", How::Kernel(&[Arg::Fd])),
    entry(
        libc::SYS_ftruncate,
        "ftruncate",
        How::Kernel(&[Arg::Fd, Arg::Value]),
    ),
    entry(
        libc::SYS_fallocate,
        "fallocate",
        How::Kernel(&[Arg::Fd, Arg::Value, Arg::Value, Arg::Value]),
    ),
    entry(
        libc::SYS_fadvise64,
        "fadvise64",
        How::Kernel(&[Arg::Fd, Arg::Value, Arg::Value, Arg::Value]),
    ),
    entry(
        libc::SYS_getdents64,
        "getdents64",
        How::Kernel(&[Arg::Fd, Arg::Memory, Arg::Value]),
    ),
    entry(
        libc::SYS_fchmod,
        "fchmod",
        How::Kernel(&[Arg::Fd, Arg::Value]),
    ),
    entry(libc::SYS_fchown, "fchown", How::Accept),
    entry(libc::SYS_close, "close", How::Here(close)),
    entry(libc::SYS_close_range, "close_range", How::Here(close_range)),
    entry(libc::SYS_dup, "dup", How::Here(dup)),
    entry(libc::SYS_dup2, "dup2", How::Here(dup_to)),
    entry(libc::SYS_dup3, "dup3", How::Here(dup_to)),
    entry(libc::SYS_fcntl, "fcntl", How::Here(fcntl)),
    entry(libc::SYS_ioctl, "ioctl", How::Here(ioctl)),
    entry(libc::SYS_pipe, "pipe", How::Here(pipe)),
    entry(libc::SYS_pipe2, "pipe2", How::Here(pipe)),
    entry(libc::SYS_eventfd2, "eventfd2", How::Here(new)),
    entry(libc::SYS_epoll_create1, "epoll_create1", How::Here(new)),
    entry(libc::SYS_epoll_create, "epoll_create", How::Here(new)),
    entry(libc::SYS_timerfd_create, "timerfd_create", How::Here(new)),
    entry(
        libc::SYS_timerfd_settime,
        "timerfd_settime",
        How::Kernel(&[Arg::Fd, Arg::Value, Arg::Memory, Arg::Memory]),
    ),
    entry(
        libc::SYS_timerfd_gettime,
        "timerfd_gettime",
        How::Kernel(&[Arg::Fd, Arg::Memory]),
    ),
    // Shared with nobody, and named by a descriptor: EAL's way to memory, which has others.
    entry(
        libc::SYS_memfd_create,
        "memfd_create",
        How::Absent(libc::ENOSYS),
    ),
];

/// A descriptor of a guest's.
#[derive(Clone, Debug)]
pub struct File {
    /// the host's; copies share it, as they share position and flags
    pub host: Arc<OwnedFd>,
    /// what it was opened as
    pub path: PathBuf,
    /// what it is besides, if it is a socket
    pub socket: Option<Arc<Socket>>,
}

/// A guest's descriptors, and what it may open.
#[derive(Debug)]
pub struct Files {
    /// by the guest's numbers
    pub open: BTreeMap<i32, File>,
    /// what it may open
    pub rights: Rights,
    /// its working directory
    pub directory: PathBuf,
    /// permissions that its new files do not get
    pub umask: u32,
}

impl Files {
    /// Standard input is what is given, or empty; output and errors are the host's, or pipes of the specification's.
    ///
    /// # Errors
    /// [`GuestError::System`] when descriptors are short.
    pub fn new(
        spec: &Spec,
        preloads: Preloads,
        input: Option<OwnedFd>,
    ) -> Result<Self, GuestError> {
        let system = |source| GuestError::System {
            what: "a guest's standard descriptors",
            source,
        };
        let input = match input {
            Some(input) => input,
            None => std::fs::File::open("/dev/null").map_err(system)?.into(),
        };
        let errors = match &spec.pipes {
            Some(pipes) => pipes.errors.as_fd().try_clone_to_owned(),
            None => std::io::stderr().as_fd().try_clone_to_owned(),
        };
        let errors = errors.map_err(system)?;
        let output = match (&spec.pipes, spec.output) {
            (Some(pipes), _) => pipes.output.as_fd().try_clone_to_owned().map_err(system)?,
            (None, 2) => errors.try_clone().map_err(system)?,
            (None, 1) => std::io::stdout()
                .as_fd()
                .try_clone_to_owned()
                .map_err(system)?,
            // SAFETY: a copy of a descriptor that the caller keeps open.
            (None, other) => unsafe {
                let copy = libc::fcntl(other, libc::F_DUPFD_CLOEXEC, 3);
                if copy < 0 {
                    return Err(system(std::io::Error::last_os_error()));
                }
                OwnedFd::from_raw_fd(copy)
            },
        };
        let file = |host, path: &str| File {
            host: Arc::new(host),
            path: path.into(),
            socket: None,
        };
        let open = [
            (0, file(input, "/dev/stdin")),
            (1, file(output, "/dev/stdout")),
            (2, file(errors, "/dev/stderr")),
        ];
        Ok(Self {
            open: open.into_iter().collect(),
            rights: Rights::new(spec, preloads),
            directory: spec.directory.clone(),
            umask: 0o022,
        })
    }

    /// The host's descriptor.
    ///
    /// # Errors
    /// EBADF.
    pub fn host(&self, fd: i32) -> Result<i32, Errno> {
        self.open
            .get(&fd)
            .map(|f| f.host.as_raw_fd())
            .ok_or(libc::EBADF)
    }

    /// The path as which it was opened.
    #[must_use]
    pub fn path(&self, fd: i32) -> Option<PathBuf> {
        self.open.get(&fd).map(|f| f.path.clone())
    }

    /// The same for reports.
    #[must_use]
    pub fn name(&self, fd: i32) -> Arc<str> {
        self.path(fd)
            .unwrap_or_default()
            .display()
            .to_string()
            .into()
    }

    /// Gives a descriptor of the host's the lowest number from `least`.
    ///
    /// # Errors
    /// EMFILE; then it is closed.
    pub fn add(&mut self, host: OwnedFd, path: PathBuf, least: i32) -> Result<i64, Errno> {
        let host = Arc::new(host);
        let socket = None;
        self.lowest(File { host, path, socket }, least)
    }

    /// Gives a file the lowest number from `least`.
    ///
    /// # Errors
    /// EMFILE; then it is closed, unless there are copies.
    pub fn lowest(&mut self, file: File, least: i32) -> Result<i64, Errno> {
        let free = (least.max(0)..MOST).find(|n| !self.open.contains_key(n));
        let number = free.ok_or(libc::EMFILE)?;
        self.open.insert(number, file);
        Ok(i64::from(number))
    }

    fn copy(&self, fd: i32) -> Result<File, Errno> {
        self.open.get(&fd).cloned().ok_or(libc::EBADF)
    }
}

/// A descriptor that the kernel has just made for us.
pub fn made(number: i64) -> OwnedFd {
    // SAFETY: new, and nobody else's.
    unsafe { OwnedFd::from_raw_fd(number as i32) }
}

fn close(call: &mut Call<'_>) -> Result<i64, Errno> {
    call.guest
        .state()
        .files
        .open
        .remove(&call.int(0))
        .map(|_| 0)
        .ok_or(libc::EBADF)
}

fn close_range(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (first, last) = (call.arg(0) as u32, call.arg(1) as u32);
    // CLOSE_RANGE_CLOEXEC says what happens at an exec, which never does.
    if call.int(2) == 0 {
        call.guest
            .state()
            .files
            .open
            .retain(|fd, _| !(first..=last).contains(&(*fd as u32)));
    }
    Ok(0)
}

fn dup(call: &mut Call<'_>) -> Result<i64, Errno> {
    let mut state = call.guest.state();
    let file = state.files.copy(call.int(0))?;
    state.files.lowest(file, 0)
}

fn dup_to(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (old, new) = (call.int(0), call.int(1));
    if !(0..MOST).contains(&new) {
        return Err(libc::EBADF);
    }
    let mut state = call.guest.state();
    let file = state.files.copy(old)?;
    if old != new {
        state.files.open.insert(new, file);
    }
    Ok(i64::from(new))
}

fn fcntl(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (fd, command) = (call.int(0), call.int(1));
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
            let mut state = call.guest.state();
            let file = state.files.copy(fd)?;
            state.files.lowest(file, call.int(2))
        }
        // What happens at an exec never does.
        libc::F_GETFD => call.fd(fd).map(|_| 0),
        libc::F_SETFD => call.fd(fd).map(|_| 0),
        libc::F_GETLK | libc::F_SETLK | libc::F_SETLKW => {
            call.kernel(&[Arg::Fd, Arg::Value, Arg::Memory])
        }
        libc::F_GETFL => call.kernel(&[Arg::Fd, Arg::Value]),
        // Standard descriptors share their flags with the host's.
        libc::F_SETFL if fd <= 2 => Ok(0),
        libc::F_SETFL => call.kernel(&[Arg::Fd, Arg::Value, Arg::Value]),
        _ => Err(libc::EINVAL),
    }
}

fn ioctl(call: &mut Call<'_>) -> Result<i64, Errno> {
    match call.arg(1) as libc::Ioctl {
        libc::TCGETS | libc::TIOCGWINSZ | libc::FIONREAD => {
            call.kernel(&[Arg::Fd, Arg::Value, Arg::Memory])
        }
        libc::FIONBIO if call.int(0) > 2 => call.kernel(&[Arg::Fd, Arg::Value, Arg::Memory]),
        _ if is_socket(call) => interface::ioctl(call),
        _ => call.fd(call.int(0)).and(Err(libc::ENOTTY)),
    }
}

fn is_socket(call: &Call<'_>) -> bool {
    let state = call.guest.state();
    let file = state.files.open.get(&call.int(0));
    file.is_some_and(|file| file.socket.is_some())
}

/// Calls whose result is a descriptor.
fn new(call: &mut Call<'_>) -> Result<i64, Errno> {
    let fd = made(kernel(call.number, call.args)?);
    call.guest
        .state()
        .files
        .add(fd, PathBuf::from("(no file)"), 0)
}

fn pipe(call: &mut Call<'_>) -> Result<i64, Errno> {
    let flags = if call.number == libc::SYS_pipe2 {
        call.arg(1)
    } else {
        0
    };
    let mut ends = [0_i32; 2];
    kernel(
        libc::SYS_pipe2,
        [ends.as_mut_ptr().addr(), flags, 0, 0, 0, 0],
    )?;
    let mut state = call.guest.state();
    let mut numbers = Vec::new();
    for end in ends {
        numbers.extend(
            (state
                .files
                .add(made(i64::from(end)), PathBuf::from("(pipe)"), 0)? as i32)
                .to_le_bytes(),
        );
    }
    drop(state);
    call.put(call.arg(0), &numbers).map(|()| 0)
}

/// The most parts that the kernel takes (IOV_MAX).
const PARTS: usize = 1024;

/// readv and writev.
fn vectored(call: &mut Call<'_>) -> Result<i64, Errno> {
    let fd = call.fd(call.int(0))?;
    let way = match call.number {
        libc::SYS_readv => Way::In,
        _ => Way::Out,
    };
    if call.arg(2) > PARTS {
        return Err(libc::EINVAL);
    }
    let parts = call.vector(call.arg(1), call.arg(2), way)?;
    let [vector, count] = [parts.as_ptr().addr(), parts.len()];
    kernel(call.number, [fd as usize, vector, count, 0, 0, 0])
}
