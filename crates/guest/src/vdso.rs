//! A guest's own image of what the kernel offers for asking the time (preload/vdso.S), and its table.
//!
//! Addresses of the kernel's vDSO differ from process to process, and a guest's libraries keep them. What a guest
//! gets as `AT_SYSINFO_EHDR` is therefore a page in its slot, whose functions jump through the page behind it; the
//! table there is filled anew wherever the guest arrives.

use crate::memory::{self, Errno, Mapping};
use crate::slot::PAGE;
use crate::space::Space;

static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vdso.so"));
/// The functions, in the table's order.
const NAMES: [&std::ffi::CStr; 5] = [
    c"__vdso_clock_gettime",
    c"__vdso_gettimeofday",
    c"__vdso_time",
    c"__vdso_getcpu",
    c"__vdso_clock_getres",
];
/// Where the page's last words begin: the `plain` functions, then where threads thaw (preload/vdso.ld).
const WORDS: usize = PAGE - 8 * (NAMES.len() + 1);
/// Bytes of image and table.
pub const SIZE: usize = 2 * PAGE;

/// A word at the end of the image: an offset from its start.
fn word(index: usize) -> usize {
    let at = WORDS + 8 * index;
    let bytes = IMAGE.get(at..at + 8).and_then(|b| b.try_into().ok());
    bytes.map_or(0, usize::from_le_bytes)
}

/// Where a thread that comes from a snapshot begins, in an image at `base`.
#[must_use]
pub fn thaw(base: usize) -> usize {
    base + word(NAMES.len())
}

/// The table of an image at `base`, for this process.
#[must_use]
pub fn table(base: usize) -> Vec<u8> {
    // SAFETY: names of a library that is there or not; the handle is not closed, and neither does the vDSO go.
    let kernel = unsafe {
        libc::dlopen(
            c"linux-vdso.so.1".as_ptr(),
            libc::RTLD_NOLOAD | libc::RTLD_LAZY,
        )
    };
    let entry = |(index, name): (usize, &&std::ffi::CStr)| {
        let found = if kernel.is_null() {
            0
        } else {
            // SAFETY: a handle of dlopen's and a name.
            unsafe { libc::dlsym(kernel, name.as_ptr()) }.addr()
        };
        if found == 0 {
            base + word(index)
        } else {
            found
        }
    };
    let entries = NAMES.iter().enumerate().map(entry);
    entries.flat_map(usize::to_le_bytes).collect()
}

/// Maps image and table; gives where.
///
/// # Errors
/// As [`memory::map`].
pub fn map(space: &mut Space) -> Result<usize, Errno> {
    let base = space.place(SIZE).ok_or(libc::ENOMEM)?;
    let mapping = Mapping {
        start: base,
        length: SIZE,
        protection: libc::PROT_READ | libc::PROT_WRITE,
        flags: libc::MAP_PRIVATE,
        file: None,
        name: None,
    };
    memory::map(space, &mapping)?;
    let page = IMAGE.get(..PAGE).ok_or(libc::ENOEXEC)?;
    if !memory::write(base, page) || !memory::write(base + PAGE, &table(base)) {
        return Err(libc::EFAULT);
    }
    memory::protect(space, base, PAGE, libc::PROT_READ | libc::PROT_EXEC)?;
    memory::protect(space, base + PAGE, PAGE, libc::PROT_READ)?;
    Ok(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_one_page_with_its_words_at_the_end() {
        assert!(IMAGE.len() >= PAGE);
        let thaw = thaw(0);
        // syscall; ud2
        assert_eq!(IMAGE[thaw..thaw + 4], [0x0f, 0x05, 0x0f, 0x0b]);
        for index in 0..NAMES.len() {
            // mov eax, ...
            assert_eq!(IMAGE[word(index)], 0xb8);
        }
        // The kernel's are there on every machine that tests run on, and lie outside of all slots.
        let first = usize::from_le_bytes(table(0x1000_0000_0000)[..8].try_into().unwrap());
        assert!(!crate::slot::is_guest(first), "{first:#x}");
    }
}
