//! Memory: placed in the slot, counted, never both writable and executable.

use super::{Call, Entry, How, entry, kernel};
use crate::memory::{self, Errno, Mapping};
use crate::shared::State;
use crate::space::pages;

/// The calls.
pub const CALLS: &[Entry] = &[
    entry(libc::SYS_mmap, "mmap", How::Here(mmap)),
    entry(libc::SYS_munmap, "munmap", How::Here(munmap)),
    entry(libc::SYS_mprotect, "mprotect", How::Here(mprotect)),
    entry(libc::SYS_mremap, "mremap", How::Here(mremap)),
    entry(libc::SYS_brk, "brk", How::Here(brk)),
    entry(libc::SYS_madvise, "madvise", How::Here(madvise)),
    entry(libc::SYS_msync, "msync", How::Here(within)),
    entry(libc::SYS_mlock, "mlock", How::Accept),
    entry(libc::SYS_munlock, "munlock", How::Accept),
    entry(
        libc::SYS_pkey_mprotect,
        "pkey_mprotect",
        How::Refuse(libc::EPERM),
    ),
    entry(
        libc::SYS_pkey_alloc,
        "pkey_alloc",
        How::Absent(libc::ENOSPC),
    ),
    entry(
        libc::SYS_membarrier,
        "membarrier",
        How::Absent(libc::ENOSYS),
    ),
];

/// What a mapping may be besides where: the rest concerns places or locks memory.
const KINDS: i32 = libc::MAP_SHARED | libc::MAP_PRIVATE | libc::MAP_STACK | libc::MAP_POPULATE;

fn mmap(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [wish, length, protection, flags, fd, offset] = call.args;
    let (protection, flags) = (protection as i32, flags as i32);
    let fixed = flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE);
    let mut state = call.guest.state();
    let (mut file, mut name) = (None, None);
    if flags & libc::MAP_ANONYMOUS == 0 {
        let fd = fd as i32;
        file = Some((state.files.host(fd)?, offset as u64));
        name = Some(state.files.name(fd));
    }
    let mut kinds = flags & KINDS;
    if flags & libc::MAP_ANONYMOUS != 0 && kinds & libc::MAP_SHARED != 0 {
        // There is nobody to share it with, and what is private can be moved.
        kinds = kinds & !libc::MAP_SHARED | libc::MAP_PRIVATE;
    }
    let size = pages(length).filter(|l| *l > 0).ok_or(libc::EINVAL)?;
    let start = if fixed == 0 {
        state.space.place(size).ok_or(libc::ENOMEM)?
    } else {
        wish
    };
    if fixed == libc::MAP_FIXED_NOREPLACE
        && state.space.holds(start, size)
        && state.space.touched(start, size)
    {
        return Err(libc::EEXIST);
    }
    let mapping = Mapping {
        start,
        length,
        protection,
        flags: kinds,
        file,
        name,
    };
    let result = memory::map(&mut state.space, &mapping);
    told(&mut state, &result);
    result.map(|at| at as i64)
}

/// Notes what was refused.
fn told<T>(state: &mut State, result: &Result<T, Errno>) {
    match result {
        Err(libc::EACCES) => state
            .note("memory both writable and executable was denied (option jit allows it)".into()),
        Err(libc::ENOMEM) => {
            state.note("memory beyond its budget was denied (option memory raises it)".into());
        }
        _ => {}
    }
}

fn munmap(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (start, length) = (call.arg(0), call.arg(1));
    memory::unmap(&mut call.guest.state().space, start, length).map(|()| 0)
}

fn mprotect(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (start, length, protection) = (call.arg(0), call.arg(1), call.int(2));
    let mut state = call.guest.state();
    let result = memory::protect(&mut state.space, start, length, protection);
    told(&mut state, &result);
    result.map(|()| 0)
}

fn mremap(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [old, from, to, flags, ..] = call.args;
    let flags = flags as i32;
    if flags & !libc::MREMAP_MAYMOVE != 0 {
        return Err(libc::EINVAL);
    }
    let mut state = call.guest.state();
    memory::remap(&mut state.space, old, from, to, flags != 0).map(|at| at as i64)
}

/// As the kernel: the end of the heap, moved if that can be.
fn brk(call: &mut Call<'_>) -> Result<i64, Errno> {
    let wish = call.arg(0);
    let mut state = call.guest.state();
    let space = &mut state.space;
    let end = space.heap_end();
    let mut moved = || -> Option<()> {
        if !space.heap_may_end(wish) {
            return None;
        }
        // What was mapped before the program began stays.
        let (had, wants) = (
            pages(end)?.max(space.heap_ready),
            pages(wish)?.max(space.heap_ready),
        );
        if wants > had {
            let mapping = Mapping {
                start: had,
                length: wants - had,
                protection: libc::PROT_READ | libc::PROT_WRITE,
                flags: libc::MAP_PRIVATE,
                file: None,
                name: None,
            };
            memory::map(space, &mapping).ok()?;
        } else if wants < had {
            memory::unmap(space, wants, had - wants).ok()?;
        }
        space.set_heap_end(wish);
        Some(())
    };
    Ok(if moved().is_some() { wish } else { end } as i64)
}

fn madvise(call: &mut Call<'_>) -> Result<i64, Errno> {
    match call.int(2) {
        libc::MADV_NORMAL
        | libc::MADV_RANDOM
        | libc::MADV_SEQUENTIAL
        | libc::MADV_WILLNEED
        | libc::MADV_DONTNEED
        | libc::MADV_FREE
        | libc::MADV_HUGEPAGE
        | libc::MADV_NOHUGEPAGE => within(call),
        // How memory is inherited and dumped concerns the process.
        _ => Ok(0),
    }
}

/// By the kernel, on a range of the slot.
fn within(call: &mut Call<'_>) -> Result<i64, Errno> {
    if call.guest.state().space.holds(call.arg(0), call.arg(1)) {
        kernel(call.number, call.args)
    } else {
        Err(libc::ENOMEM)
    }
}
