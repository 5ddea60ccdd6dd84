//! Mapping in a slot, and reading what a guest points to.

use std::os::fd::RawFd;
use std::sync::Arc;

use crate::protect;
use crate::slot::PAGE;
use crate::space::{Space, pages};

/// Errors are the kernel's numbers, as a guest gets them.
pub type Errno = i32;

/// A mapping to be made.
pub struct Mapping {
    /// where; in the slot
    pub start: usize,
    /// bytes
    pub length: usize,
    /// `PROT_*`
    pub protection: i32,
    /// `MAP_SHARED` or `MAP_PRIVATE`, and what else does not concern the place
    pub flags: i32,
    /// a file of the host's, and from where in it
    pub file: Option<(RawFd, u64)>,
    /// what the file is called
    pub name: Option<Arc<str>>,
}

fn last() -> Errno {
    std::io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}

/// Maps something in a slot, over whatever was there.
///
/// # Errors
/// EINVAL outside of the slot, EACCES for memory both writable and executable, ENOMEM beyond the budget, and what
/// the kernel says.
pub fn map(space: &mut Space, mapping: &Mapping) -> Result<usize, Errno> {
    let length = pages(mapping.length)
        .filter(|l| *l > 0)
        .ok_or(libc::EINVAL)?;
    if !mapping.start.is_multiple_of(PAGE) || !space.holds(mapping.start, length) {
        return Err(libc::EINVAL);
    }
    if !space.jit {
        sane(mapping.protection)?;
    }
    let end = mapping.start + length;
    let more = if mapping.protection & libc::PROT_WRITE == 0 {
        0
    } else {
        length
    };
    if !space.affords(more.saturating_sub(space.writable_in(mapping.start, end))) {
        return Err(libc::ENOMEM);
    }
    if space.crowded() {
        return Err(libc::ENOMEM);
    }
    let (fd, offset, anonymous) = match mapping.file {
        Some((fd, offset)) => (fd, offset, 0),
        None => (-1, 0, libc::MAP_ANONYMOUS),
    };
    let flags = mapping.flags | libc::MAP_FIXED | libc::MAP_NORESERVE | anonymous;
    // SAFETY: the range lies in the guest's slot, whose memory is the guest's alone.
    let at = unsafe {
        libc::mmap(
            mapping.start as *mut libc::c_void,
            length,
            mapping.protection,
            flags,
            fd,
            offset as libc::off_t,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(last());
    }
    if let Err(errno) = protect::tag(mapping.start, length, mapping.protection, space.key) {
        unmap(space, mapping.start, length)?;
        return Err(errno);
    }
    let file = mapping
        .name
        .clone()
        .zip(mapping.file)
        .map(|(name, (_, offset))| (name, offset));
    space.add(mapping.start, length, mapping.protection, file);
    Ok(mapping.start)
}

/// Refuses memory that is both writable and executable.
///
/// # Errors
/// EACCES.
pub fn sane(protection: i32) -> Result<(), Errno> {
    let both = libc::PROT_WRITE | libc::PROT_EXEC;
    if protection & both == both {
        Err(libc::EACCES)
    } else {
        Ok(())
    }
}

/// Gives a range of a slot back: it stays reserved, without access.
///
/// # Errors
/// EINVAL outside of the slot, and what the kernel says.
pub fn unmap(space: &mut Space, start: usize, length: usize) -> Result<(), Errno> {
    let length = pages(length).filter(|l| *l > 0).ok_or(libc::EINVAL)?;
    if !start.is_multiple_of(PAGE) || !space.holds(start, length) {
        return Err(libc::EINVAL);
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: the range lies in the guest's slot, whose memory is the guest's alone.
    let at = unsafe {
        libc::mmap(
            start as *mut libc::c_void,
            length,
            libc::PROT_NONE,
            flags,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(last());
    }
    space.remove(start, length);
    Ok(())
}

/// Changes the protection of a range of a slot.
///
/// # Errors
/// EINVAL outside of the slot, ENOMEM where nothing is mapped or beyond the budget, EACCES for memory both writable
/// and executable, and what the kernel says.
pub fn protect(
    space: &mut Space,
    start: usize,
    length: usize,
    protection: i32,
) -> Result<(), Errno> {
    let length = pages(length).ok_or(libc::ENOMEM)?;
    if !start.is_multiple_of(PAGE) || !space.holds(start, length) {
        return Err(libc::EINVAL);
    }
    if !space.jit {
        sane(protection)?;
    }
    if !space.mapped(start, length) || space.crowded() {
        return Err(libc::ENOMEM);
    }
    if protection & libc::PROT_WRITE != 0 {
        let more = length.saturating_sub(space.writable_in(start, start + length));
        if !space.affords(more) {
            return Err(libc::ENOMEM);
        }
    }
    // SAFETY: the range lies in the guest's slot and is mapped.
    unsafe { change(start, length, protection, space.key)? };
    space.protect(start, length, protection);
    Ok(())
}

/// By `mprotect`, or with a key by the call that keeps it: the kernel gives memory that is only executable a key of
/// its own, and key 0 when it is more than that again.
///
/// # Safety
/// The range is a guest's.
unsafe fn change(start: usize, length: usize, protection: i32, key: i32) -> Result<(), Errno> {
    if key > 0 {
        return protect::tag(start, length, protection, key);
    }
    // SAFETY: as the caller promises.
    if unsafe { libc::mprotect(start as *mut libc::c_void, length, protection) } != 0 {
        return Err(last());
    }
    Ok(())
}

/// Moves a mapping within a slot, growing or shrinking it; gives its new place.
///
/// # Errors
/// EINVAL outside of the slot, EFAULT where nothing is mapped, ENOMEM without room or beyond the budget.
pub fn remap(
    space: &mut Space,
    old: usize,
    from: usize,
    to: usize,
    may_move: bool,
) -> Result<usize, Errno> {
    let (from, to) = (
        pages(from).ok_or(libc::EINVAL)?,
        pages(to).ok_or(libc::EINVAL)?,
    );
    if !old.is_multiple_of(PAGE) || from == 0 || to == 0 || !space.holds(old, from) {
        return Err(libc::EINVAL);
    }
    if to <= from {
        if to < from {
            unmap(space, old + to, from - to)?;
        }
        return Ok(old);
    }
    let Some((_, area)) = space.find(old) else {
        return Err(libc::EFAULT);
    };
    let (protection, file) = (area.protection, space.file_at(old));
    if protection & libc::PROT_WRITE != 0 && !space.affords(to - from) {
        return Err(libc::ENOMEM);
    }
    let place = space.place(to).filter(|_| may_move).ok_or(libc::ENOMEM)?;
    let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: both ranges lie in the guest's slot; the new one holds nothing.
    let at = unsafe {
        libc::mremap(
            old as *mut libc::c_void,
            from,
            to,
            how,
            place as *mut libc::c_void,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(last());
    }
    // The kernel has unmapped the old range, which must stay reserved.
    unmap(space, old, from)?;
    space.add(place, to, protection, file);
    Ok(place)
}

/// Copies from an address that a guest has named, as many bytes as are readable there, at most `bytes.len()`.
/// A wrong address gives fewer, never a fault.
pub fn read(address: usize, bytes: &mut [u8]) -> usize {
    let local = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // In pieces of a page, because a transfer that runs into unmapped memory may give less than there is.
    let mut remote = Vec::new();
    let mut at = address;
    let end = address.saturating_add(bytes.len());
    while at < end && remote.len() < 1024 {
        let next = ((at | (PAGE - 1)).saturating_add(1)).min(end);
        remote.push(libc::iovec {
            iov_base: at as *mut libc::c_void,
            iov_len: next - at,
        });
        at = next;
    }
    // SAFETY: writes to `bytes` only; the kernel checks the addresses that it reads.
    let got = unsafe {
        libc::process_vm_readv(
            libc::getpid(),
            &raw const local,
            1,
            remote.as_ptr(),
            remote.len() as u64,
            0,
        )
    };
    usize::try_from(got).unwrap_or(0)
}

/// Copies to an address that a guest has named; false when that is not writable.
#[must_use]
pub fn write(address: usize, bytes: &[u8]) -> bool {
    let local = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: bytes.len(),
    };
    // SAFETY: reads `bytes` only; callers pass addresses in the guest's slot, and the kernel checks them.
    let put = unsafe {
        libc::process_vm_writev(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    usize::try_from(put) == Ok(bytes.len())
}

/// A string that a guest points to, without its end.
///
/// # Errors
/// EFAULT where there is none, ENAMETOOLONG beyond `PATH_MAX`.
pub fn text(address: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; libc::PATH_MAX as usize];
    let got = read(address, &mut bytes);
    bytes.truncate(got);
    match bytes.iter().position(|b| *b == 0) {
        Some(end) => {
            bytes.truncate(end);
            Ok(bytes)
        }
        None if got == libc::PATH_MAX as usize => Err(libc::ENAMETOOLONG),
        None => Err(libc::EFAULT),
    }
}
