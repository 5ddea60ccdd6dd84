//! Sockets and their options.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// A socket that closes itself.
pub struct Socket(OwnedFd);

impl Socket {
    /// Opens one; it is closed in programs that this one starts.
    ///
    /// # Errors
    /// The system's.
    pub fn open(domain: i32, kind: i32, protocol: i32) -> io::Result<Self> {
        // SAFETY: socket(2) takes no pointers.
        let fd = unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor just opened, which nobody else has.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Its number.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Sets an option to a plain value.
    ///
    /// # Errors
    /// The system's.
    pub fn set<T: Copy>(&self, level: i32, option: i32, value: T) -> io::Result<()> {
        // SAFETY: the value lives during the call and has the length given.
        let result = unsafe {
            libc::setsockopt(
                self.fd(),
                level,
                option,
                (&raw const value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        ok(result)
    }

    /// Reads an option into `value`, whose every bit pattern is valid: integers and structs of them.
    ///
    /// # Errors
    /// The system's.
    pub fn get<T: Copy>(&self, level: i32, option: i32, value: T) -> io::Result<T> {
        get(self.fd(), level, option, value)
    }

    /// Binds it to an address of a family whose C struct `T` is.
    ///
    /// # Errors
    /// The system's.
    pub fn bind<T: Copy>(&self, address: T) -> io::Result<()> {
        // SAFETY: the address lives during the call and has the length given.
        let result = unsafe {
            libc::bind(
                self.fd(),
                (&raw const address).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        ok(result)
    }

    /// Tells the kernel to look at the transmit ring.
    ///
    /// # Errors
    /// The system's, `EAGAIN` and its like among them.
    pub fn kick(&self) -> io::Result<()> {
        // SAFETY: no bytes are sent, so no memory is read.
        let result = unsafe {
            libc::sendto(
                self.fd(),
                std::ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null(),
                0,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// The error that the kernel keeps for the socket, which asking clears.
    pub fn pending_error(&self) -> Option<io::Error> {
        match self.get(libc::SOL_SOCKET, libc::SO_ERROR, 0_i32) {
            Ok(0) => None,
            Ok(error) => Some(io::Error::from_raw_os_error(error)),
            Err(error) => Some(error),
        }
    }
}

fn get<T: Copy>(fd: RawFd, level: i32, option: i32, mut value: T) -> io::Result<T> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which `value` has; callers use types of
    // integers only, so any bytes are a value.
    let result =
        unsafe { libc::getsockopt(fd, level, option, (&raw mut value).cast(), &raw mut length) };
    ok(result).map(|()| value)
}

/// Datagrams that a socket's receive buffer had no room for, since it was opened (linux/sock_diag.h, `SK_MEMINFO_DROPS`).
pub fn overflows(fd: BorrowedFd<'_>) -> u64 {
    const DROPS: usize = 8;
    let words = get(
        fd.as_raw_fd(),
        libc::SOL_SOCKET,
        libc::SO_MEMINFO,
        [0_u32; DROPS + 1],
    );
    words.map_or(0, |words| words.last().copied().unwrap_or(0).into())
}

/// The system's error where a call gave a number below zero.
pub fn ok(result: i32) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Whether an error of a kick only says that there is no room or no time now.
pub fn busy(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR)
    )
}
