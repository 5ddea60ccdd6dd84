//! The pages that a guest writes to while it runs.
//!
//! Where the kernel can (Linux 6.7), by userfaultfd's asynchronous write protection: a write to a protected page takes
//! the protection off and nothing else happens (Documentation/admin-guide/mm/userfaultfd.rst, "Write Protect
//! Notifications"), and a scan of the page table finds those without it. Else by comparing each page with what was
//! read of it before, which takes nothing of the guest's time but memory for a second copy.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::pages::{Memory, Run, push};
use crate::slot::PAGE;

const UFFDIO_API: libc::Ioctl = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::Ioctl = 0xc020_aa00;
const UFFD_API: u64 = 0xaa;
const USER_MODE_ONLY: i32 = 1;
const WP_ASYNC: u64 = 1 << 15;
const MODE_WP: u64 = 1 << 1;

/// How pages that were written to are found.
pub enum Tracker {
    /// by the kernel
    Kernel(OwnedFd),
    /// by comparing with what was read before
    Compare(BTreeMap<usize, Box<[u8]>>),
}

/// A userfaultfd with asynchronous write protection.
///
/// # Errors
/// The kernel has none, or does not let this user have one.
pub fn userfault() -> io::Result<OwnedFd> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
    // SAFETY: a new descriptor, nobody else's.
    let fd = unsafe {
        let fd = libc::syscall(libc::SYS_userfaultfd, flags);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd as i32)
    };
    // struct uffdio_api: api, features, ioctls
    let mut api = [UFFD_API, WP_ASYNC, 0];
    // SAFETY: the kernel reads and writes these three words.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), UFFDIO_API, api.as_mut_ptr()) };
    if done == 0 {
        Ok(fd)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Name of the best tracker of this machine.
#[must_use]
pub fn by() -> &'static str {
    Memory::open().map_or("comparison", |memory| Tracker::new(&memory).name())
}

impl Tracker {
    /// The best there is here.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        match userfault() {
            Ok(fd) if memory.scans() => Self::Kernel(fd),
            _ => Self::Compare(BTreeMap::new()),
        }
    }

    /// Pages from an address on were passed on with this content.
    pub fn passed(&mut self, address: usize, bytes: &[u8]) {
        if let Self::Compare(before) = self {
            let pages = bytes.chunks_exact(PAGE).enumerate();
            before.extend(pages.map(|(index, page)| (address + index * PAGE, page.into())));
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Kernel(_) => "userfaultfd",
            Self::Compare(_) => "comparison",
        }
    }

    /// The pages of `own`, which lie in `slot`, that are not as they were when this was asked before; all at
    /// the first time.
    ///
    /// # Errors
    /// The kernel's.
    pub fn changed(
        &mut self,
        memory: &Memory,
        slot: &Range<usize>,
        own: &[Run],
    ) -> io::Result<Vec<Run>> {
        match self {
            Self::Kernel(fd) => {
                // What was mapped since is registered now, and all of its pages count as written.
                let mut register = [
                    slot.start as u64,
                    (slot.end - slot.start) as u64,
                    MODE_WP,
                    0,
                ];
                // SAFETY: the kernel reads and writes these four words; write protection changes no content.
                let done =
                    unsafe { libc::ioctl(fd.as_raw_fd(), UFFDIO_REGISTER, register.as_mut_ptr()) };
                if done != 0 {
                    return Err(io::Error::last_os_error());
                }
                memory.written(slot.clone())
            }
            Self::Compare(before) => {
                let mut changed = Vec::new();
                let mut page = vec![0; PAGE];
                for (start, pages) in own {
                    for index in 0..*pages {
                        let at = start + index * PAGE;
                        let read = memory.read(at, &mut page) == 1;
                        if read && before.get(&at).is_none_or(|old| **old != *page) {
                            push(&mut changed, at, 1);
                        }
                    }
                }
                Ok(changed)
            }
        }
    }
}
