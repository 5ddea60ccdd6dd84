//! The pages of a slot that have content of their own; reading and writing them whatever their protection.
//!
//! `PAGEMAP_SCAN` (Linux 6.7, Documentation/admin-guide/mm/pagemap.rst) answers for a range at once, and can
//! write-protect what it reports in the same step; before it, /proc/self/pagemap has a word a page.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use crate::slot::PAGE;

/// A run of pages: address and how many.
pub type Run = (usize, usize);

/// `_IOWR('f', 16, struct pm_scan_arg)`
const PAGEMAP_SCAN: libc::Ioctl = 0xc060_6610;
const WRITTEN: u64 = 1 << 1;
const FILE: u64 = 1 << 2;
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const ZERO: u64 = 1 << 5;
const WP_MATCHING: u64 = 1;

/// `struct pm_scan_arg`
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region`
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Found {
    start: u64,
    end: u64,
    categories: u64,
}

/// The page tables of this process, and its memory.
pub struct Memory {
    pagemap: File,
    memory: File,
    scans: bool,
}

impl Memory {
    /// Opens them.
    ///
    /// # Errors
    /// /proc is not there, or closed.
    pub fn open() -> io::Result<Self> {
        let mut options = File::options();
        let mut own = Self {
            pagemap: File::open("/proc/self/pagemap")?,
            memory: options.read(true).write(true).open("/proc/self/mem")?,
            scans: true,
        };
        let at = own.pagemap.as_raw_fd() as usize & !(PAGE - 1);
        own.scans = own.scan(at..at + PAGE, 0, 0).is_ok();
        Ok(own)
    }

    /// Whether the kernel can scan.
    #[must_use]
    pub fn scans(&self) -> bool {
        self.scans
    }

    /// The pages of a range that hold something else than what is mapped there: not a file's, and not zeros that
    /// were only read.
    ///
    /// # Errors
    /// The kernel's.
    pub fn own(&self, range: Range<usize>) -> io::Result<Vec<Run>> {
        if self.scans {
            self.scan(range, 0, 0)
        } else {
            self.walk(range)
        }
    }

    /// Those of them that were written to since this was asked before. The range is registered as
    /// [`super::track`] does it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn written(&self, range: Range<usize>) -> io::Result<Vec<Run>> {
        self.scan(range, WP_MATCHING, WRITTEN)
    }

    fn scan(&self, range: Range<usize>, flags: u64, also: u64) -> io::Result<Vec<Run>> {
        let mut found = [Found::default(); 256];
        let mut runs = Vec::new();
        let mut at = range.start as u64;
        while at < range.end as u64 {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                flags,
                start: at,
                end: range.end as u64,
                vec: found.as_mut_ptr().addr() as u64,
                vec_len: found.len() as u64,
                category_inverted: FILE | ZERO,
                category_mask: FILE | ZERO | also,
                category_anyof_mask: PRESENT | SWAPPED,
                return_mask: PRESENT,
                ..Scan::default()
            };
            // SAFETY: the kernel writes to `scan` and to as many of `found` as `vec_len` says; protecting pages
            // against writing changes no content.
            let got = unsafe { libc::ioctl(self.pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut scan) };
            let count = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
            for region in found.iter().take(count) {
                let pages = region.end.saturating_sub(region.start) as usize / PAGE;
                push(&mut runs, region.start as usize, pages);
            }
            if scan.walk_end <= at {
                break;
            }
            at = scan.walk_end;
        }
        Ok(runs)
    }

    fn walk(&self, range: Range<usize>) -> io::Result<Vec<Run>> {
        /// bits 63, 62 and 61: present, swapped, a file's or shared
        const THERE: u64 = 3 << 62;
        const SHOWN: u64 = 1 << 61;
        let mut runs = Vec::new();
        let mut words = vec![0_u8; 8 << 10];
        let mut at = range.start;
        while at < range.end {
            let wanted = words.len().min((range.end - at) / PAGE * 8);
            let Some(part) = words.get_mut(..wanted).filter(|p| !p.is_empty()) else {
                break;
            };
            self.pagemap.read_exact_at(part, (at / PAGE * 8) as u64)?;
            for word in part.chunks_exact(8) {
                let word = word.try_into().map_or(0, u64::from_le_bytes);
                if word & THERE != 0 && word & SHOWN == 0 {
                    push(&mut runs, at, 1);
                }
                at += PAGE;
            }
        }
        Ok(runs)
    }

    /// Reads as many whole pages as can be read from an address on, at most what `bytes` holds.
    #[must_use]
    pub fn read(&self, address: usize, bytes: &mut [u8]) -> usize {
        let mut done = 0;
        while let Some(rest) = bytes.get_mut(done..).filter(|r| !r.is_empty()) {
            match self.memory.read_at(rest, (address + done) as u64) {
                Ok(got) if got > 0 => done += got,
                _ => break,
            }
        }
        done / PAGE
    }

    /// Writes pages, also where the process itself could not.
    ///
    /// # Errors
    /// Nothing is mapped there, or the kernel does not let a process write to its own protected pages.
    pub fn write(&self, address: usize, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, address as u64)
    }
}

/// Appends pages to runs, which stay as few as they can be.
pub fn push(runs: &mut Vec<Run>, start: usize, pages: usize) {
    match runs.last_mut() {
        Some((at, count)) if *at + *count * PAGE == start => *count += pages,
        _ if pages > 0 => runs.push((start, pages)),
        _ => {}
    }
}

/// Intersection of two ordered lists of runs.
#[must_use]
pub fn within(runs: &[Run], ranges: &[Range<usize>]) -> Vec<Run> {
    let mut common = Vec::new();
    let mut from = 0;
    for (start, pages) in runs {
        let end = start + pages * PAGE;
        while ranges.get(from).is_some_and(|r| r.end <= *start) {
            from += 1;
        }
        for range in ranges.iter().skip(from).take_while(|r| r.start < end) {
            let (low, high) = (range.start.max(*start), range.end.min(end));
            push(&mut common, low, high.saturating_sub(low) / PAGE);
        }
    }
    common
}

/// Both lists of runs, each in order, as one.
#[must_use]
pub fn either(a: &[Run], b: &[Run]) -> Vec<Run> {
    let mut all: Vec<Run> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    let mut runs: Vec<Run> = Vec::new();
    for (start, pages) in all {
        let end = start + pages * PAGE;
        let from = runs
            .last()
            .map_or(start, |(at, count)| (at + count * PAGE).max(start));
        push(&mut runs, from, end.saturating_sub(from) / PAGE);
    }
    runs
}

/// How many pages there are in all.
#[must_use]
pub fn total(runs: &[Run]) -> usize {
    runs.iter().map(|(_, pages)| pages).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: usize = PAGE;

    #[test]
    fn runs_are_cut_and_joined() {
        let runs = [(P, 4), (8 * P, 2), (20 * P, 1)];
        let ranges = [2 * P..3 * P, 4 * P..9 * P, 30 * P..40 * P];
        assert_eq!(within(&runs, &ranges), [(2 * P, 1), (4 * P, 1), (8 * P, 1)]);
        assert_eq!(
            either(&runs, &[(3 * P, 6), (21 * P, 1)]),
            [(P, 9), (20 * P, 2)]
        );
        assert_eq!((total(&runs), within(&runs, &[])), (7, vec![]));
    }

    /// Both ways of asking find the pages that were written to, and no others.
    #[test]
    fn pages_of_their_own_are_found_and_written_whatever_their_protection() {
        let memory = Memory::open().unwrap();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping of the test's own, written to within its bounds, and unmapped at the end.
        let base = unsafe {
            let at = libc::mmap(
                std::ptr::null_mut(),
                64 * P,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            );
            assert_ne!(at, libc::MAP_FAILED);
            libc::madvise(at, 64 * P, libc::MADV_NOHUGEPAGE);
            for page in [3, 4, 40] {
                at.cast::<u8>().add(page * P).write_volatile(9);
            }
            // Zeros that are only read are nothing.
            at.cast::<u8>().add(50 * P).read_volatile();
            libc::mprotect(at, 64 * P, libc::PROT_NONE);
            at.addr()
        };
        let expected = [(base + 3 * P, 2), (base + 40 * P, 1)];
        let mut walked = memory.walk(base..base + 64 * P).unwrap();
        // A page word does not tell the zero page from others.
        walked.retain(|run| *run != (base + 50 * P, 1));
        assert_eq!(walked, expected);
        if memory.scans() {
            assert_eq!(memory.own(base..base + 64 * P).unwrap(), expected);
        } else {
            println!("skipped: the kernel has no PAGEMAP_SCAN");
        }
        let mut bytes = vec![0; P];
        assert_eq!(memory.read(base + 3 * P, &mut bytes), 1);
        assert_eq!(bytes[0], 9);
        memory.write(base + 5 * P, &[7; PAGE]).unwrap();
        assert_eq!(memory.read(base + 5 * P, &mut bytes), 1);
        assert_eq!(bytes, [7; PAGE]);
        // SAFETY: as above.
        unsafe { libc::munmap(base as *mut libc::c_void, 64 * P) };
    }
}
