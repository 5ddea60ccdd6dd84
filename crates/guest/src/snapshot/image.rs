//! The documents of a snapshot, and their validation.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::SnapshotError;
use crate::call::signals::Signals;
use crate::command::Spec;
use crate::memory;
use crate::port::Port;
use crate::rest::{MOST_EXTENDED, Parked};
use crate::room::ROOM;
use crate::shared::{Places, THREADS};
use crate::slot::{self, PAGE, SLOTS};
use crate::space::AREAS;
use crate::thread::Context;
use crate::vdso;

/// The guest's identity.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// how it was started
    pub spec: Spec,
    /// its slot: it goes on at the same addresses
    pub slot: u32,
    /// where the host's parts of it lie
    pub places: Places,
    /// what its processor could do ([`super::features`])
    pub features: Vec<u64>,
}

/// A mapped range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// its first address
    pub start: usize,
    /// behind its last
    pub end: usize,
    /// `PROT_*`
    pub protection: i32,
    /// what it was called when it was mapped, and from where in it; for reports
    pub name: Option<(String, u64)>,
    /// the file that shows where nothing was written; without one there are zeros
    pub file: Option<Backing>,
}

/// A file that a region shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backing {
    /// its path
    pub path: PathBuf,
    /// from where in it, bytes
    pub offset: u64,
    /// SHA-256 of all of it
    pub digest: String,
}

/// The mappings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Maps {
    /// in the order of addresses
    pub regions: Vec<Region>,
}

/// A descriptor: a number, and which of the descriptions it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Number {
    /// the guest's number
    pub fd: i32,
    /// an index
    pub description: usize,
}

/// The open descriptions behind descriptors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// what it was opened as
    pub name: PathBuf,
    /// what it is
    pub what: What,
}

/// Kind of an open description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum What {
    /// standard input, output or error: those of the host
    Standard(u8),
    /// a file of any kind that is found by its path
    File {
        /// its path, without links
        path: PathBuf,
        /// `O_*`
        flags: i32,
        /// where in it, bytes
        offset: u64,
        /// how long it is, bytes; of what is no regular file none
        size: Option<u64>,
    },
    /// an eventfd
    Event {
        /// its counter
        count: u64,
        /// `O_*`
        flags: i32,
        /// reads take one from it
        semaphore: bool,
    },
    /// an end of a pipe
    Pipe {
        /// which pipe
        pipe: u64,
        /// `O_*`, which says the end
        flags: i32,
        /// what is in it; at the reading end only
        content: Vec<u8>,
    },
    /// an epoll instance
    Epoll {
        /// descriptor, events, and the guest's own word
        watched: Vec<(i32, u32, u64)>,
    },
}

/// Most bytes in a pipe that is moved.
pub const MOST_PIPE: usize = 1 << 16;
/// The most descriptors.
pub const MOST_FILES: usize = 1024;

/// All else, at the moment from which the guest is to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rest {
    /// the pages whose content is not the file's or zeros: addresses and how many
    pub live: Vec<(usize, usize)>,
    /// the end of its heap
    pub heap_end: usize,
    /// the end of what of it was there before it began; 0: nothing
    pub heap_ready: usize,
    /// the most writable memory it had, bytes
    pub peak: usize,
    /// the packets' own thread
    pub context: Context,
    /// threads that wait for packets which another one gets
    pub asking: Vec<Context>,
    /// threads that were interrupted
    pub parked: Vec<Parked>,
    /// handlers and mask
    pub signals: Signals,
    /// until its alarm, ns
    pub alarm: Option<u64>,
    /// what it believes to be
    pub ids: [u32; 4],
    /// its process number
    pub process: i32,
    /// the last thread number given
    pub last_thread: i32,
    /// its working directory
    pub directory: PathBuf,
    /// permissions that its new files do not get
    pub umask: u32,
    /// its descriptors
    pub numbers: Vec<Number>,
    /// and what they name
    pub descriptions: Vec<Description>,
    /// what it asked for and did not get, and how often
    pub notes: Vec<(String, u64)>,
}

fn must(good: bool, what: &str) -> Result<(), SnapshotError> {
    if good {
        Ok(())
    } else {
        Err(SnapshotError::broken(what.to_owned()))
    }
}

impl Head {
    /// The addresses of its slot.
    #[must_use]
    pub fn range(&self) -> std::ops::Range<usize> {
        let base = slot::BASE + self.slot as usize * slot::STRIDE;
        base..base + slot::SIZE
    }

    /// The host's parts of its slot: addresses of pages, and lengths. The port may begin within its first.
    pub fn parts(&self) -> impl Iterator<Item = (usize, usize)> {
        let Places { port, vdso, room } = self.places;
        let into = port % PAGE;
        let fixed = [(port - into, into + size_of::<Port>()), (vdso, vdso::SIZE)];
        fixed.into_iter().chain(room.map(|room| (room, ROOM)))
    }

    /// Whether a range of this many bytes from a page's start lies in its slot.
    fn holds(&self, start: usize, length: usize) -> bool {
        let end = start.checked_add(length);
        start.is_multiple_of(PAGE)
            && start >= self.range().start
            && end.is_some_and(|end| end <= self.range().end)
    }

    /// # Errors
    /// What cannot be.
    pub fn check(&self) -> Result<(), SnapshotError> {
        must(self.slot < SLOTS, "there is no such slot")?;
        must(
            self.places.port.is_multiple_of(align_of::<Port>()),
            "a port that is not aligned",
        )?;
        for (start, length) in self.parts() {
            must(
                self.holds(start, length),
                "a part of the host's that is not in its slot",
            )?;
        }
        must(
            self.spec.budget <= slot::SIZE,
            "a budget larger than its slot",
        )?;
        must(self.features.len() <= 64, "too many words of abilities")
    }
}

impl Maps {
    /// # Errors
    /// What cannot be.
    pub fn check(&self, head: &Head) -> Result<(), SnapshotError> {
        must(
            self.regions.len() <= AREAS,
            "more mappings than a guest may have",
        )?;
        let mut last = 0;
        let mut writable = 0_usize;
        for region in &self.regions {
            let length = region.end.saturating_sub(region.start);
            let ordered = region.start >= last && length > 0 && length.is_multiple_of(PAGE);
            must(
                ordered && head.holds(region.start, length),
                "a mapping that is not in its slot",
            )?;
            let known = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
            let sane = head.spec.jit || memory::sane(region.protection).is_ok();
            must(
                region.protection & !known == 0 && sane,
                "a protection that is not allowed",
            )?;
            if let Some(file) = &region.file {
                let offset = file.offset.is_multiple_of(PAGE as u64) && file.offset < 1 << 62;
                must(
                    offset && file.path.is_absolute(),
                    "a file that cannot be mapped",
                )?;
            }
            if region.protection & libc::PROT_WRITE != 0 {
                writable = writable.saturating_add(length);
            }
            last = region.end;
        }
        must(
            writable <= head.spec.budget,
            "more writable memory than its budget",
        )
    }

    /// The region at an address.
    #[must_use]
    pub fn at(&self, address: usize) -> Option<&Region> {
        let behind = self.regions.partition_point(|r| r.start <= address);
        let region = self.regions.get(behind.checked_sub(1)?)?;
        (address < region.end).then_some(region)
    }

    /// Whether all of a range is mapped to be read and written.
    #[must_use]
    pub fn writable(&self, start: usize, length: usize) -> bool {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let end = start.saturating_add(length);
        let mut inside = self
            .regions
            .iter()
            .filter(|r| r.start < end && r.end > start);
        self.hold(start, length) && inside.all(|r| r.protection & both == both)
    }

    /// Whether all of a range is mapped.
    #[must_use]
    pub fn hold(&self, start: usize, length: usize) -> bool {
        let Some(end) = start.checked_add(length) else {
            return false;
        };
        let mut at = start;
        while at < end {
            match self.at(at) {
                Some(region) => at = region.end,
                None => return false,
            }
        }
        true
    }
}

impl Rest {
    /// # Errors
    /// What cannot be.
    pub fn check(&self, head: &Head, maps: &Maps) -> Result<(), SnapshotError> {
        let mut last = 0;
        for (start, pages) in &self.live {
            let length = pages.checked_mul(PAGE).unwrap_or(usize::MAX);
            let ordered = *pages > 0 && *start >= last && start.is_multiple_of(PAGE);
            must(
                ordered && maps.hold(*start, length),
                "pages that are not mapped",
            )?;
            last = start + length;
        }
        let heap = [self.heap_end, self.heap_ready];
        let in_slot = heap
            .iter()
            .all(|end| *end == 0 || head.range().contains(end));
        must(in_slot, "a heap that is not in its slot")?;
        for (start, length) in head.parts() {
            // The host writes there without asking.
            let free = maps.writable(start, length) || start == head.places.vdso;
            must(
                maps.hold(start, length) && free,
                "a part of the host's that is not mapped",
            )?;
        }
        let threads = self.parked.len() + self.asking.len();
        must(threads < THREADS, "more threads than a guest may have")?;
        for context in self.asking.iter().chain([&self.context]) {
            // The frame is read at once by whoever runs it.
            let frame = context.rsp.is_multiple_of(8) && maps.hold(context.rsp, 64);
            must(frame, "a thread whose stack is not mapped")?;
        }
        for parked in &self.parked {
            let whole = parked.registers.len() == 23 && parked.extended.len() <= MOST_EXTENDED;
            must(whole, "a thread without all of its registers")?;
        }
        must(self.signals.whole(), "signals that are none")?;
        let count = self.descriptions.len();
        let files = count <= MOST_FILES && self.numbers.len() <= MOST_FILES;
        must(files, "more descriptors than a guest may have")?;
        for number in &self.numbers {
            let known = number.description < count && (0..MOST_FILES as i32).contains(&number.fd);
            must(known, "a descriptor of nothing")?;
        }
        for description in &self.descriptions {
            let sane = match &description.what {
                What::Standard(which) => *which <= 2,
                What::File { path, offset, .. } => path.is_absolute() && *offset < 1 << 62,
                What::Event { .. } => true,
                What::Pipe { content, .. } => content.len() <= MOST_PIPE,
                What::Epoll { watched } => watched.len() <= MOST_FILES,
            };
            must(sane, "a descriptor that cannot be")?;
        }
        must(
            self.directory.is_absolute(),
            "a working directory that is no path",
        )
    }
}
