//! Names of files: what a guest may read and write.
//!
//! It may read what programs need to start (libraries, /usr, /etc), and read and write below its working directory
//! and what its own command line names, unless it was told to open only what it was told. Nothing else is opened; that a file exists is no secret.

use std::ffi::CString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use super::files::made;
use super::{Arg, Call, Entry, How, entry, kernel};
use crate::command::Spec;
use crate::memory::{self, Errno};
use crate::preload::Preloads;

/// The calls.
pub const CALLS: &[Entry] = &[
    entry(libc::SYS_open, "open", How::Here(open)),
    entry(libc::SYS_creat, "creat", How::Here(open)),
    entry(libc::SYS_openat, "openat", How::Here(open)),
    entry(libc::SYS_stat, "stat", How::Here(stat)),
    entry(libc::SYS_lstat, "lstat", How::Here(stat)),
    entry(libc::SYS_newfstatat, "newfstatat", How::Here(stat_at)),
    entry(libc::SYS_statx, "statx", How::Here(stat_at)),
    entry(libc::SYS_statfs, "statfs", How::Here(stat)),
    entry(libc::SYS_access, "access", How::Here(access)),
    entry(libc::SYS_faccessat, "faccessat", How::Here(access)),
    entry(libc::SYS_faccessat2, "faccessat2", How::Here(access)),
    entry(libc::SYS_readlink, "readlink", How::Here(readlink)),
    entry(libc::SYS_readlinkat, "readlinkat", How::Here(readlink)),
    entry(libc::SYS_mkdir, "mkdir", How::Here(change)),
    entry(libc::SYS_rmdir, "rmdir", How::Here(change)),
    entry(libc::SYS_unlink, "unlink", How::Here(change)),
    entry(libc::SYS_truncate, "truncate", How::Here(change)),
    entry(libc::SYS_chmod, "chmod", How::Here(change)),
    entry(libc::SYS_mkdirat, "mkdirat", How::Here(change_at)),
    entry(libc::SYS_unlinkat, "unlinkat", How::Here(change_at)),
    entry(libc::SYS_fchmodat, "fchmodat", How::Here(change_at)),
    entry(libc::SYS_utimensat, "utimensat", How::Here(change_at)),
    entry(libc::SYS_rename, "rename", How::Here(rename)),
    entry(libc::SYS_renameat, "renameat", How::Here(rename)),
    entry(libc::SYS_renameat2, "renameat2", How::Here(rename)),
    entry(libc::SYS_chown, "chown", How::Accept),
    entry(libc::SYS_lchown, "lchown", How::Accept),
    entry(libc::SYS_fchownat, "fchownat", How::Accept),
    entry(libc::SYS_getcwd, "getcwd", How::Here(getcwd)),
    entry(libc::SYS_chdir, "chdir", How::Here(chdir)),
    entry(libc::SYS_umask, "umask", How::Here(umask)),
    entry(libc::SYS_chroot, "chroot", How::Here(chroot)),
    entry(libc::SYS_mount, "mount", How::Refuse(libc::EPERM)),
];

/// Folders that programs read from.
const READ: [&str; 9] = [
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/sbin",
    "/etc",
    "/run/systemd/resolve",
    "/sys/devices/system",
    "/var/lib/GeoIP",
];
/// Single files of folders that are closed otherwise.
const READ_FILES: [&str; 13] = [
    "/",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/version",
    "/proc/filesystems",
    "/proc/sys/crypto/fips_enabled",
    "/proc/sys/kernel/ngroups_max",
    "/proc/sys/vm/overcommit_memory",
    "/dev/null",
    "/dev/zero",
    "/dev/urandom",
    "/dev/random",
];
/// Files of open folders that are closed.
const SECRET: [&str; 5] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssh",
];
const WRITE_FILES: [&str; 2] = ["/dev/null", "/dev/zero"];
/// Folders in which nothing is opened but single files, whatever else is allowed.
const CLOSED: [&str; 3] = ["/proc", "/dev", "/sys"];

/// Files that a guest may open.
#[derive(Debug)]
pub struct Rights {
    /// the program itself, for /proc/self/exe
    program: PathBuf,
    /// its preloads
    preloads: Preloads,
    /// what it may read and write: these and what is below them
    own: Vec<PathBuf>,
    /// what it may read besides
    read: Vec<PathBuf>,
}

impl Rights {
    /// Of a guest with this command line.
    #[must_use]
    pub fn new(spec: &Spec, preloads: Preloads) -> Self {
        let mut own = spec.write.clone();
        let named = if spec.only { 0 } else { spec.arguments.len() };
        own.extend((!spec.only).then(|| spec.directory.clone()));
        for word in spec.arguments.iter().take(named).skip(1) {
            // As in -w/tmp/x and --log=/tmp/x, the path begins at the first slash; others are below the directory.
            let Some(at) = word.find('/') else { continue };
            let path = match word.get(at..) {
                Some(path)
                    if at == 0 || !word.starts_with(|c: char| c.is_alphanumeric() || c == '.') =>
                {
                    path.into()
                }
                _ => spec.directory.join(word),
            };
            own.push(path);
        }
        let resolved = |paths: &[PathBuf]| -> Vec<PathBuf> {
            let real = paths.iter().map(|p| real(p));
            real.filter(|p| p != Path::new("/")).collect()
        };
        Self {
            program: spec.program.clone(),
            preloads,
            own: resolved(&own),
            read: resolved(&spec.read),
        }
    }

    /// Whether a path, already resolved, may be opened.
    #[must_use]
    pub fn allow(&self, path: &Path, write: bool) -> bool {
        let is = |list: &[&str]| list.iter().any(|p| path == Path::new(p));
        let below = |list: &[&str]| list.iter().any(|p| path.starts_with(p));
        if is(&WRITE_FILES) || !write && is(&READ_FILES) {
            return true;
        }
        let open = !write && path.starts_with("/sys/devices/system");
        if below(&CLOSED) && !open || below(&SECRET) {
            return false;
        }
        let own = self.own.iter().any(|p| path.starts_with(p));
        let read = || self.read.iter().any(|p| path.starts_with(p));
        own || !write && (below(&READ) || path == self.program || read())
    }
}

/// A path without links; of a file that does not exist, its folder's without links.
fn real(path: &Path) -> PathBuf {
    if let Ok(path) = std::fs::canonicalize(path) {
        return path;
    }
    let folder = path
        .parent()
        .and_then(|folder| std::fs::canonicalize(folder).ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        // Nothing that could be opened; dots must not hide where it leads.
        _ => path
            .components()
            .filter(|c| !matches!(c, Component::ParentDir | Component::CurDir))
            .collect(),
    }
}

/// The absolute path that a guest names.
fn named(call: &Call<'_>, directory: i32, address: usize) -> Result<PathBuf, Errno> {
    let text = memory::text(call.input(address, 1)?)?;
    if text.is_empty() {
        return Err(libc::ENOENT);
    }
    let path = PathBuf::from(std::ffi::OsString::from_vec(text));
    if path.is_absolute() {
        return Ok(path);
    }
    let state = call.guest.state();
    if directory == libc::AT_FDCWD {
        return Ok(state.files.directory.join(path));
    }
    Ok(state.files.path(directory).ok_or(libc::EBADF)?.join(path))
}

fn c_string(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| libc::EINVAL)
}

/// A path that the guest may open, without links.
fn allowed(call: &Call<'_>, path: &Path, write: bool) -> Result<PathBuf, Errno> {
    let real = real(path);
    let mut state = call.guest.state();
    if state.files.rights.allow(&real, write) {
        return Ok(real);
    }
    let how = if write { "writing" } else { "reading" };
    state.note(format!("{how} {} was denied", real.display()));
    Err(libc::EACCES)
}

fn open(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [a, b, c, d, ..] = call.args;
    let (directory, name, flags, mode) = match call.number {
        libc::SYS_openat => (a as i32, b, c as i32, d as u32),
        libc::SYS_creat => (
            libc::AT_FDCWD,
            a,
            libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC,
            b as u32,
        ),
        _ => (libc::AT_FDCWD, a, b as i32, c as u32),
    };
    let path = named(call, directory, name)?;
    let write = flags & (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) != 0;
    let state = call.guest.state();
    let standard = [("/dev/stdin", 0), ("/dev/stdout", 1), ("/dev/stderr", 2)];
    let file = if let Some(preload) = state.files.rights.preloads.file(&path) {
        preload
    } else if path == Path::new("/proc/self/exe") {
        state.files.rights.program.clone()
    } else if let Some((_, fd)) = standard.iter().find(|(name, _)| path == Path::new(name)) {
        PathBuf::from(format!("/proc/self/fd/{}", state.files.host(*fd)?))
    } else {
        drop(state);
        let real = allowed(call, &path, write)?;
        return finish(call, &real, path, flags, mode);
    };
    drop(state);
    finish(call, &file, path, flags & !libc::O_TRUNC, mode)
}

fn finish(
    call: &Call<'_>,
    file: &Path,
    path: PathBuf,
    flags: i32,
    mode: u32,
) -> Result<i64, Errno> {
    let text = c_string(file)?;
    let mut state = call.guest.state();
    let mode = mode & !state.files.umask;
    let flags = flags | libc::O_CLOEXEC | libc::O_NOCTTY;
    let at = text.as_ptr().addr();
    let fd = kernel(
        libc::SYS_openat,
        [
            libc::AT_FDCWD as usize,
            at,
            flags as usize,
            mode as usize,
            0,
            0,
        ],
    )?;
    state.files.add(made(fd), path, 0)
}

/// Calls on a path and a buffer.
fn stat(call: &mut Call<'_>) -> Result<i64, Errno> {
    let path = c_string(&named(call, libc::AT_FDCWD, call.arg(0))?)?;
    let out = call.out(call.arg(1))?;
    kernel(call.number, [path.as_ptr().addr(), out, 0, 0, 0, 0])
}

fn stat_at(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [directory, name, c, d, e, _] = call.args;
    let statx = call.number == libc::SYS_statx;
    let (flags, out) = if statx { (c, e) } else { (d, c) };
    let out = call.out(out)?;
    let with = |directory: usize, name: usize| {
        let args = if statx {
            [directory, name, flags, d, out, 0]
        } else {
            [directory, name, out, flags, 0, 0]
        };
        kernel(call.number, args)
    };
    if flags as i32 & libc::AT_EMPTY_PATH != 0 && call.get::<1>(name).is_ok_and(|b| b == [0]) {
        let nothing = c"";
        return with(call.fd(directory as i32)? as usize, nothing.as_ptr().addr());
    }
    let path = named(call, directory as i32, name)?;
    // Its loader looks at the preload before it opens it.
    let preload = call.guest.state().files.rights.preloads.file(&path);
    let path = preload.unwrap_or(path);
    with(libc::AT_FDCWD as usize, c_string(&path)?.as_ptr().addr())
}

fn access(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (directory, name, mode) = match call.number {
        libc::SYS_access => (libc::AT_FDCWD, call.arg(0), call.arg(1)),
        _ => (call.int(0), call.arg(1), call.arg(2)),
    };
    let path = named(call, directory, name)?;
    if mode as i32 & libc::W_OK != 0 && !call.guest.state().files.rights.allow(&real(&path), true) {
        return Err(libc::EACCES);
    }
    kernel(
        libc::SYS_access,
        [c_string(&path)?.as_ptr().addr(), mode, 0, 0, 0, 0],
    )
}

fn readlink(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (directory, [name, out, size]) = match call.args {
        [a, b, c, ..] if call.number == libc::SYS_readlink => (libc::AT_FDCWD, [a, b, c]),
        [a, b, c, d, ..] => (a as i32, [b, c, d]),
    };
    let path = named(call, directory, name)?;
    let out = call.out(out)?;
    if path == Path::new("/proc/self/exe") {
        let program = call.guest.state().files.rights.program.clone();
        let bytes = program.as_os_str().as_bytes();
        let bytes = bytes.get(..size).unwrap_or(bytes);
        return call.put(out, bytes).map(|()| bytes.len() as i64);
    }
    kernel(
        libc::SYS_readlink,
        [c_string(&path)?.as_ptr().addr(), out, size, 0, 0, 0],
    )
}

/// Calls that change what a path names.
fn change(call: &mut Call<'_>) -> Result<i64, Errno> {
    let path = allowed(call, &named(call, libc::AT_FDCWD, call.arg(0))?, true)?;
    kernel(
        call.number,
        [c_string(&path)?.as_ptr().addr(), call.arg(1), 0, 0, 0, 0],
    )
}

fn change_at(call: &mut Call<'_>) -> Result<i64, Errno> {
    if call.number == libc::SYS_utimensat && call.arg(1) == 0 {
        // Without a path it is about the descriptor.
        return call.kernel(&[Arg::Fd]);
    }
    let path = allowed(call, &named(call, call.int(0), call.arg(1))?, true)?;
    let at = c_string(&path)?;
    kernel(
        call.number,
        [
            libc::AT_FDCWD as usize,
            at.as_ptr().addr(),
            call.arg(2),
            call.arg(3),
            0,
            0,
        ],
    )
}

fn rename(call: &mut Call<'_>) -> Result<i64, Errno> {
    let here = libc::AT_FDCWD;
    let (from, old, to, new) = match call.args {
        [a, b, ..] if call.number == libc::SYS_rename => (here, a, here, b),
        [a, b, c, d, ..] => (a as i32, b, c as i32, d),
    };
    let old = c_string(&allowed(call, &named(call, from, old)?, true)?)?;
    let new = c_string(&allowed(call, &named(call, to, new)?, true)?)?;
    kernel(
        libc::SYS_rename,
        [old.as_ptr().addr(), new.as_ptr().addr(), 0, 0, 0, 0],
    )
}

fn getcwd(call: &mut Call<'_>) -> Result<i64, Errno> {
    let directory = call.guest.state().files.directory.clone();
    let mut bytes = directory.into_os_string().into_vec();
    bytes.push(0);
    if bytes.len() > call.arg(1) {
        return Err(libc::ERANGE);
    }
    call.put(call.arg(0), &bytes).map(|()| bytes.len() as i64)
}

/// The guest's own: that of the process stays.
fn chdir(call: &mut Call<'_>) -> Result<i64, Errno> {
    let path = real(&named(call, libc::AT_FDCWD, call.arg(0))?);
    let found = std::fs::metadata(&path).map_err(|e| e.raw_os_error().unwrap_or(libc::ENOENT))?;
    if !found.is_dir() {
        return Err(libc::ENOTDIR);
    }
    call.guest.state().files.directory = path;
    Ok(0)
}

/// To where the root is already, which some programs always ask for.
fn chroot(call: &mut Call<'_>) -> Result<i64, Errno> {
    if real(&named(call, libc::AT_FDCWD, call.arg(0))?) == Path::new("/") {
        return Ok(0);
    }
    call.guest.state().note("chroot was denied".into());
    Err(libc::EPERM)
}

/// The guest's own: that of the process stays.
fn umask(call: &mut Call<'_>) -> Result<i64, Errno> {
    let mut state = call.guest.state();
    let before = state.files.umask;
    state.files.umask = call.arg(0) as u32 & 0o777;
    Ok(i64::from(before))
}
