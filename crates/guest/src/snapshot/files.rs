//! Descriptors: what they are, and opening them where the guest goes on.
//!
//! Descriptors that were copied from one another share position and flags; they stay one description.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use super::SnapshotError;
use super::image::{Description, MOST_PIPE, Number, What};
use crate::call::files::{self, Files};

/// Flags that matter at the first opening only.
const ONCE: i32 = libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC;

/// The descriptors of a guest at rest.
///
/// # Errors
/// [`SnapshotError::Guest`] names one that cannot be moved.
pub fn described(files: &Files) -> Result<(Vec<Number>, Vec<Description>), SnapshotError> {
    let mut known: Vec<(Arc<OwnedFd>, Description)> = Vec::new();
    let mut numbers = Vec::new();
    for (fd, file) in &files.open {
        let place = known
            .iter()
            .position(|(host, _)| Arc::ptr_eq(host, &file.host));
        let description = place.unwrap_or(known.len());
        if place.is_none() {
            let what = what(files, file).map_err(|e| match e {
                SnapshotError::Guest(what) => SnapshotError::Guest(format!(
                    "descriptor {fd} ({}): {what}",
                    file.path.display()
                )),
                other => other,
            })?;
            let name = file.path.clone();
            known.push((file.host.clone(), Description { name, what }));
        }
        numbers.push(Number {
            fd: *fd,
            description,
        });
    }
    Ok((numbers, known.into_iter().map(|(_, d)| d).collect()))
}

/// `fcntl(F_GETFL)`.
fn flags(fd: RawFd) -> Result<i32, SnapshotError> {
    // SAFETY: a question about a descriptor.
    match unsafe { libc::fcntl(fd, libc::F_GETFL) } {
        -1 => Err(io::Error::last_os_error().into()),
        flags => Ok(flags),
    }
}

/// A line `NAME: NUMBER` of a descriptor's facts.
fn fact(text: &str, name: &str, base: u32) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
    u64::from_str_radix(line?.trim(), base).ok()
}

fn what(files: &Files, file: &files::File) -> Result<What, SnapshotError> {
    let cannot = |what: &str| SnapshotError::Guest(format!("{what} cannot be moved"));
    for (name, number) in [("/dev/stdout", 1), ("/dev/stderr", 2)] {
        if file.path == Path::new(name) {
            return Ok(What::Standard(number));
        }
    }
    if file.socket.is_some() {
        return Err(cannot("a socket"));
    }
    let host = file.host.as_raw_fd();
    let flags = flags(host)?;
    let link = std::fs::read_link(format!("/proc/self/fd/{host}"))?;
    let facts = std::fs::read_to_string(format!("/proc/self/fdinfo/{host}"))?;
    let name = link.to_string_lossy();
    if name == "anon_inode:[eventfd]" {
        return Ok(What::Event {
            count: fact(&facts, "eventfd-count", 16).ok_or_else(|| cannot("an eventfd"))?,
            semaphore: fact(&facts, "eventfd-semaphore", 10) == Some(1),
            flags,
        });
    }
    if name == "anon_inode:[eventpoll]" {
        return Ok(What::Epoll {
            watched: watched(files, &facts)?,
        });
    }
    if let Some(pipe) = name
        .strip_prefix("pipe:[")
        .and_then(|n| n.strip_suffix(']'))
    {
        let reads = flags & libc::O_ACCMODE == libc::O_RDONLY;
        return Ok(What::Pipe {
            pipe: pipe.parse().unwrap_or(0),
            content: if reads { waiting(host)? } else { Vec::new() },
            flags,
        });
    }
    if !link.is_absolute() || name.starts_with("/memfd:") {
        return Err(cannot(&name));
    }
    let meta = File::from(file.host.try_clone()?).metadata()?;
    if meta.nlink() == 0 {
        return Err(cannot("a file that was removed"));
    }
    // SAFETY: asks where it stands; a descriptor that has no position says so.
    let offset = unsafe { libc::lseek(host, 0, libc::SEEK_CUR) };
    Ok(What::File {
        path: link,
        flags: flags & !ONCE,
        offset: u64::try_from(offset).unwrap_or(0),
        size: meta.is_file().then_some(meta.len()),
    })
}

/// What an epoll instance watches, in the guest's numbers.
fn watched(files: &Files, facts: &str) -> Result<Vec<(i32, u32, u64)>, SnapshotError> {
    let mut all = Vec::new();
    for line in facts.lines().filter(|l| l.starts_with("tfd:")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let read = || {
            let [_, fd, _, events, _, data, ..] = words.as_slice() else {
                return None;
            };
            Some((
                fd.parse::<i32>().ok()?,
                u32::from_str_radix(events, 16).ok()?,
                u64::from_str_radix(data, 16).ok()?,
            ))
        };
        let known = read().and_then(|(host, events, data)| {
            let own = files.open.iter().find(|(_, f)| f.host.as_raw_fd() == host);
            own.map(|(fd, _)| (*fd, events, data))
        });
        all.push(known.ok_or_else(|| {
            SnapshotError::Guest("it watches a descriptor that is closed".into())
        })?);
    }
    Ok(all)
}

/// What waits in a pipe, which stays there.
fn waiting(host: RawFd) -> Result<Vec<u8>, SnapshotError> {
    let mut count = 0_i32;
    // SAFETY: writes to `count`.
    if unsafe { libc::ioctl(host, libc::FIONREAD, &raw mut count) } != 0 {
        return Err(io::Error::last_os_error().into());
    }
    let count = usize::try_from(count).unwrap_or(0);
    if count == 0 {
        return Ok(Vec::new());
    }
    let (read, write) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(io::Error::from)?;
    // SAFETY: copies within the kernel, between two pipes, without waiting.
    let copied = unsafe { libc::tee(host, write.as_raw_fd(), count, libc::SPLICE_F_NONBLOCK) };
    drop(write);
    if count > MOST_PIPE || usize::try_from(copied) != Ok(count) {
        return Err(SnapshotError::Guest(format!(
            "a pipe with {count} bytes in it cannot be moved"
        )));
    }
    let mut content = Vec::new();
    File::from(read).read_to_end(&mut content)?;
    Ok(content)
}

/// Opens all descriptors of a snapshot. `own` has the host's standard ones and the rights.
///
/// # Errors
/// A file is not there, not allowed, or shorter than it was.
pub fn open(
    own: &mut Files,
    numbers: &[Number],
    descriptions: &[Description],
) -> Result<(), SnapshotError> {
    let standard = std::mem::take(&mut own.open);
    let mut pipes = BTreeMap::new();
    let mut opened: Vec<files::File> = Vec::new();
    for description in descriptions {
        let host = match &description.what {
            What::Standard(which) => {
                let file = standard.get(&i32::from(*which));
                file.map(|f| f.host.clone())
                    .ok_or_else(|| SnapshotError::broken("no such standard descriptor"))?
            }
            What::File { .. } => Arc::new(reopen(own, &description.what)?),
            What::Event {
                count,
                flags,
                semaphore,
            } => Arc::new(event(*count, *flags, *semaphore)?),
            What::Pipe {
                pipe,
                flags,
                content,
            } => Arc::new(end(&mut pipes, *pipe, *flags, content)?),
            What::Epoll { .. } => Arc::new(
                rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC)
                    .map_err(io::Error::from)?,
            ),
        };
        opened.push(files::File {
            host,
            path: description.name.clone(),
            socket: None,
        });
    }
    for number in numbers {
        if let Some(file) = opened.get(number.description) {
            own.open.insert(number.fd, file.clone());
        }
    }
    for (description, file) in descriptions.iter().zip(&opened) {
        let What::Epoll { watched } = &description.what else {
            continue;
        };
        for (fd, events, data) in watched {
            let mut event = libc::epoll_event {
                events: *events,
                u64: *data,
            };
            let host = own.host(*fd).map_err(io::Error::from_raw_os_error)?;
            let (epoll, add) = (file.host.as_raw_fd(), libc::EPOLL_CTL_ADD);
            // SAFETY: reads `event`.
            if unsafe { libc::epoll_ctl(epoll, add, host, &raw mut event) } != 0 {
                return Err(io::Error::last_os_error().into());
            }
        }
    }
    Ok(())
}

fn reopen(own: &Files, what: &What) -> Result<OwnedFd, SnapshotError> {
    let What::File {
        path,
        flags,
        offset,
        size,
    } = what
    else {
        return Err(SnapshotError::broken("not a file"));
    };
    let here = |why: String| SnapshotError::Here {
        what: format!("{}: {why}", path.display()),
        help: "the guest has it open: put it back as it was, and may it be opened?",
    };
    let write = flags & libc::O_ACCMODE != libc::O_RDONLY;
    let real = std::fs::canonicalize(path).map_err(|e| here(e.to_string()))?;
    if real != *path || !own.rights.allow(path, write) {
        return Err(here("it may not open this".into()));
    }
    let mut options = File::options();
    options
        .read(flags & libc::O_ACCMODE != libc::O_WRONLY)
        .write(write)
        .custom_flags((flags & !ONCE & !libc::O_ACCMODE) | libc::O_NOCTTY);
    let file = options.open(path).map_err(|e| here(e.to_string()))?;
    if let Some(size) = size {
        let meta = file.metadata().map_err(|e| here(e.to_string()))?;
        if !meta.is_file() || meta.len() < *size {
            return Err(here(format!("it had {size} bytes, and has fewer")));
        }
        // What was written after the snapshot is not known to the guest, and would be there twice or torn.
        if write && meta.len() > *size {
            file.set_len(*size).map_err(|e| here(e.to_string()))?;
        }
    }
    // SAFETY: moves the position of a descriptor that nobody else has; devices have none, which is no failure.
    unsafe { libc::lseek(file.as_raw_fd(), *offset as libc::off_t, libc::SEEK_SET) };
    Ok(file.into())
}

fn event(count: u64, flags: i32, semaphore: bool) -> Result<OwnedFd, SnapshotError> {
    let kind = if semaphore { libc::EFD_SEMAPHORE } else { 0 };
    let flags = flags & libc::O_NONBLOCK | libc::EFD_CLOEXEC | kind;
    // SAFETY: a new descriptor, nobody else's.
    let event = unsafe {
        let fd = libc::eventfd(0, flags);
        if fd < 0 {
            return Err(io::Error::last_os_error().into());
        }
        OwnedFd::from_raw_fd(fd)
    };
    if count > 0 && count < u64::MAX {
        File::from(event.try_clone()?).write_all(&count.to_ne_bytes())?;
    }
    Ok(event)
}

/// Both ends of a pipe, made when the first is asked for.
type Pipes = BTreeMap<u64, (OwnedFd, OwnedFd)>;

fn end(pipes: &mut Pipes, pipe: u64, flags: i32, content: &[u8]) -> Result<OwnedFd, SnapshotError> {
    let (read, write) = match pipes.entry(pipe) {
        Entry::Occupied(made) => made.into_mut(),
        Entry::Vacant(place) => {
            let ends = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
            place.insert(ends.map_err(io::Error::from)?)
        }
    };
    // At most what a pipe holds, so that writing does not wait.
    File::from(write.try_clone()?).write_all(content)?;
    let reads = flags & libc::O_ACCMODE == libc::O_RDONLY;
    let own = if reads { read } else { write }
        .as_fd()
        .try_clone_to_owned()?;
    // SAFETY: flags of a descriptor of ours.
    unsafe { libc::fcntl(own.as_raw_fd(), libc::F_SETFL, flags & libc::O_NONBLOCK) };
    Ok(own)
}
