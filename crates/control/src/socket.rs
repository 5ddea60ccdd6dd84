//! Where control sockets lie, and who may have one there.
//!
//! The guard is the file system (unix(7)): the folder has mode 0700 and belongs to the user, the socket
//! has mode 0600 from the moment that it exists, and both ends look at the other's user.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, flock};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::geteuid;

use crate::trouble::Trouble;

/// Connections that wait to be taken.
const BACKLOG: i32 = 64;
/// How long another process may hold the folder's lock, which it does for two system calls.
const LOCK: Duration = Duration::from_secs(2);

/// Where services have theirs, whatever the variables of the one who asks.
const SERVICES: &str = "/run/millrace";

/// The folder of sockets without a `--control`: `$XDG_RUNTIME_DIR/millrace`, or `/run/millrace`.
#[must_use]
pub fn folder() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let base = runtime.filter(|p| p.is_absolute());
    base.unwrap_or_else(|| PathBuf::from("/run"))
        .join("millrace")
}

/// The name of a run without one of its own: unlike that of any other process.
#[must_use]
pub fn run_name(function: &str) -> String {
    format!("{}.{}", plain(function), std::process::id())
}

/// A name as a file name.
fn plain(name: &str) -> String {
    let plain = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
        _ => '_',
    };
    name.chars().take(40).map(plain).collect()
}

/// The socket of a run of this name in the folder, which is made if it is not there.
///
/// # Errors
/// The folder cannot be made, or others may enter it.
pub fn in_folder(name: &str) -> Result<PathBuf, Trouble> {
    let folder = folder();
    let unusable = |what: String| {
        Trouble::new("folder", format!("{}: {what}", folder.display()))
            .help("set XDG_RUNTIME_DIR to a folder of your own, or give --control PATH in one")
    };
    let made = fs::DirBuilder::new().mode(0o700).create(&folder);
    if let Err(error) = made.as_ref()
        && error.kind() != ErrorKind::AlreadyExists
    {
        return Err(unusable(format!("cannot be made: {error}")));
    }
    let found = fs::symlink_metadata(&folder).map_err(|e| unusable(e.to_string()))?;
    if !found.is_dir() {
        return Err(unusable("is no folder".into()));
    }
    if found.uid() != geteuid().as_raw() {
        return Err(unusable(format!("belongs to user {}", found.uid())));
    }
    if found.mode() & 0o077 != 0 {
        let mode = found.mode() & 0o777;
        return Err(unusable(format!(
            "has mode {mode:03o}, others may enter it; it must be 700"
        )));
    }
    Ok(folder.join(format!("{name}.sock")))
}

/// A socket that is listened to, and that goes with this value.
pub struct Listening {
    /// the socket
    pub listener: UnixListener,
    /// its name
    pub path: PathBuf,
    /// device and file number, by which it is known to be still ours
    file: (u64, u64),
}

impl Drop for Listening {
    fn drop(&mut self) {
        let there = fs::symlink_metadata(&self.path);
        if there.is_ok_and(|m| (m.dev(), m.ino()) == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens at `path`. What a dead process has left there is replaced.
///
/// # Errors
/// Somebody listens there, something else is there, or the system refuses it.
pub fn listen(path: &Path) -> Result<Listening, Trouble> {
    let path = std::path::absolute(path).map_err(|e| unusable(path, &e.to_string()))?;
    let address = SocketAddrUnix::new(&path)
        .map_err(|_| unusable(&path, "longer than the name of a socket may be, 107 bytes"))?;
    let parent = path.parent().unwrap_or_else(|| Path::new("/"));
    // Between looking and binding nobody else may do the same.
    let lock = lock(parent).map_err(|e| unusable(&path, &e))?;
    vacate(&path)?;
    let failed = |e: rustix::io::Errno| unusable(&path, &std::io::Error::from(e).to_string());
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(failed)?;
    // The socket's mode becomes the file's (unix(7)); so there is no moment at which it is wider.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR).map_err(failed)?;
    rustix::net::bind(&socket, &address).map_err(failed)?;
    rustix::net::listen(&socket, BACKLOG).map_err(failed)?;
    drop(lock);
    let there = fs::symlink_metadata(&path).map_err(|e| unusable(&path, &e.to_string()))?;
    Ok(Listening {
        listener: UnixListener::from(socket),
        file: (there.dev(), there.ino()),
        path,
    })
}

/// Listens at `path` for what only this user may send: nobody else may enter its folder.
///
/// # Errors
/// As [`listen`]; or others may enter the folder.
pub fn listen_apart(path: &Path) -> Result<Listening, Trouble> {
    let path = std::path::absolute(path).map_err(|e| unusable(path, &e.to_string()))?;
    let folder = path.parent().unwrap_or_else(|| Path::new("/"));
    let found = fs::metadata(folder).map_err(|e| unusable(&path, &format!("its folder: {e}")))?;
    if found.uid() != geteuid().as_raw() || found.mode() & 0o077 != 0 {
        return Err(Trouble::new(
            "folder",
            format!("{}: others may enter this folder", folder.display()),
        )
        .help(format!(
            "make one of your own: mkdir -m 700 {}",
            folder.join("mine").display()
        )));
    }
    listen(&path)
}

fn unusable(path: &Path, what: &str) -> Trouble {
    Trouble::new("socket", format!("{}: {what}", path.display()))
        .help("give another --control PATH, in a folder that is there and yours")
}

/// Holds the folder's lock; it goes with the value.
fn lock(folder: &Path) -> Result<fs::File, String> {
    let file = fs::File::open(folder).map_err(|e| format!("its folder: {e}"))?;
    let began = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) if began.elapsed() < LOCK => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(e) => return Err(format!("its folder cannot be locked: {e}")),
        }
    }
}

/// Removes a socket that nobody listens to.
fn vacate(path: &Path) -> Result<(), Trouble> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(unusable(path, &e.to_string())),
    };
    if !found.file_type().is_socket() {
        let what = match found.is_symlink() {
            true => "is a symbolic link",
            false => "is there and is no socket",
        };
        return Err(unusable(path, what));
    }
    match UnixStream::connect(path) {
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|e| unusable(path, &format!("cannot be replaced: {e}")))
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(unusable(path, &e.to_string())),
        Ok(_) => Err(Trouble::new(
            "live",
            format!("{}: a running process listens there", path.display()),
        )
        .help("give this run another --name or --control, or stop the other one with `millrace ctl stop`")),
    }
}

/// Whether the other end belongs to this user, or to root.
#[must_use]
pub fn trusted(stream: &UnixStream) -> bool {
    let other = rustix::net::sockopt::socket_peercred(stream);
    other.is_ok_and(|c| c.uid == geteuid() || c.uid.is_root())
}

/// The sockets of runs, by name, this user's and services': those of this name (with or without the number of its
/// process), or all. Only such that somebody listens to.
#[must_use]
pub fn runs(name: Option<&str>) -> Vec<(String, PathBuf)> {
    let mut folders = vec![folder()];
    if folders != [Path::new(SERVICES)] {
        // Others than root and the services' user cannot read it.
        folders.push(SERVICES.into());
    }
    let entries = folders.iter().filter_map(|f| fs::read_dir(f).ok());
    let mut found: Vec<_> = entries
        .flatten()
        .flatten()
        .filter_map(|e| {
            let path = e.path();
            let run = path
                .file_name()?
                .to_str()?
                .strip_suffix(".sock")?
                .to_owned();
            let function = run.rsplit_once('.').map_or(run.as_str(), |(f, _)| f);
            let wanted = name.is_none_or(|n| n == run || n == function);
            (wanted && UnixStream::connect(&path).is_ok()).then_some((run, path))
        })
        .collect();
    found.sort();
    found
}

/// The one run that is meant.
///
/// # Errors
/// There is none, or several.
pub fn find(name: Option<&str>) -> Result<PathBuf, Trouble> {
    let found = runs(name);
    match found.as_slice() {
        [(_, path)] => Ok(path.clone()),
        [] => {
            let what = match name {
                Some(name) => format!("no run `{name}` is there"),
                None => "nothing runs".into(),
            };
            let names: Vec<_> = runs(None).into_iter().map(|(n, _)| n).collect();
            let help = match names.as_slice() {
                [] => format!(
                    "looked in {}; name its socket with --control",
                    folder().display()
                ),
                names => format!("there are {}", names.join(", ")),
            };
            Err(Trouble::new("no-such-run", what).help(help))
        }
        several => {
            let names: Vec<_> = several.iter().map(|(n, _)| n.as_str()).collect();
            let what = format!("{} runs could be meant", several.len());
            Err(Trouble::new("which-run", what)
                .help(format!("choose one with --run: {}", names.join(", "))))
        }
    }
}

/// Removes sockets in the folder whose processes are gone. Best effort: what cannot be removed is in
/// nobody's way.
pub fn sweep() {
    let folder = folder();
    let Ok(_lock) = lock(&folder) else { return };
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let socket = entry.file_type().is_ok_and(|t| t.is_socket());
        if socket && path.extension().is_some_and(|e| e == "sock") {
            let gone = UnixStream::connect(&path);
            if gone.is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused) {
                let _ = fs::remove_file(&path);
            }
        }
    }
}
