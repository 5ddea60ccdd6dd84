//! A heap that is there before its program begins: mapped, backed with huge pages where the kernel has any to give,
//! and touched, so that a program that keeps more and more state neither asks the kernel for it nor faults in page
//! after page while packets wait (Li et al., NSDI 2023, section 5: memory pre-allocation).

use crate::memory::{self, Errno, Mapping};
use crate::space::Space;

/// `MADV_POPULATE_WRITE`, since Linux 5.14; an older kernel refuses it, and pages come when they are touched.
const POPULATE_WRITE: i32 = 23;

/// Maps the first `length` bytes of the heap, at most as many as it may have.
///
/// # Errors
/// ENOMEM beyond the budget, and what the kernel says.
pub fn prepare(space: &mut Space, length: usize) -> Result<(), Errno> {
    let start = space.heap_end();
    if !space.heap_may_end(start + length) {
        return Err(libc::ENOMEM);
    }
    memory::map(
        space,
        &Mapping {
            start,
            length,
            protection: libc::PROT_READ | libc::PROT_WRITE,
            flags: libc::MAP_PRIVATE,
            file: None,
            name: None,
        },
    )?;
    for advice in [libc::MADV_HUGEPAGE, POPULATE_WRITE] {
        // SAFETY: the range has just been mapped, in the guest's slot. Either may be refused, and then the heap is
        // there all the same.
        unsafe { libc::madvise(start as *mut libc::c_void, length, advice) };
    }
    space.heap_ready = start + length;
    Ok(())
}

/// Settings that make glibc's malloc take everything from that heap: no mappings of their own for large blocks, one
/// arena, and nothing given back.
#[must_use]
pub fn tunables(length: usize) -> String {
    format!(
        "GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.arena_max=1:glibc.malloc.trim_threshold={length}\
         :glibc.malloc.top_pad={}",
        length / 2
    )
}
