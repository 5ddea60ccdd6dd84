//! Going on with a guest from its snapshot.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::backing::{Digests, fresh};
use super::format::{self, Kind};
use super::image::{Head, Maps, Region, Rest};
use super::pages::{Memory, push};
use super::{SnapshotError, features, files};
use crate::call::files::Files;
use crate::command::Spec;
use crate::hosted::Hosted;
use crate::memory::{self, Mapping};
use crate::preload::Preloads;
use crate::protect::{self, Domain};
use crate::rest::Parked;
use crate::room::{ROOM, Room};
use crate::shared::{Shared, Stage, State, monotonic};
use crate::slot::{PAGE, Slot};
use crate::space::Space;
use crate::thread::{self, Context};
use crate::vdso;
use crate::watch;

/// Bytes below a stack pointer that belong to the function that runs (System V ABI for x86-64, 3.2.2).
const RED_ZONE: usize = 128;

/// A guest that is arriving: its slot fills.
pub struct Arrival {
    head: Head,
    slot: Slot,
    /// given back after the slot, because fields are dropped in their order
    domain: Domain,
    space: Space,
    memory: Memory,
    maps: Maps,
    digests: Digests,
    /// pages that came
    came: BTreeSet<usize>,
    begin: Instant,
}

fn kernel(what: &'static str) -> impl Fn(i32) -> SnapshotError {
    move |errno| SnapshotError::Here {
        what: format!("{what}: {}", std::io::Error::from_raw_os_error(errno)),
        help: "has this machine the memory that the guest needs?",
    }
}

impl Arrival {
    /// Makes room for a guest. `output` is the host's descriptor that its standard output goes to.
    ///
    /// # Errors
    /// This processor cannot do what that one could, or the slot is taken.
    pub fn new(mut head: Head, output: i32) -> Result<Self, SnapshotError> {
        head.check()?;
        let lacking = features::lacking(&head.features, &features::here());
        if lacking > 0 {
            return Err(SnapshotError::Here {
                what: format!(
                    "this processor lacks {lacking} of the abilities that the guest's libraries found where it began"
                ),
                help: "go on with it on a processor that has at least the features of the first",
            });
        }
        head.spec.output = output;
        // Before the slot, so that it goes after it.
        let domain = Domain::take();
        protect::open();
        let slot = Slot::reserve(Some(head.slot))?;
        let mut space = Space::new(slot.range(), head.spec.budget, head.spec.jit);
        space.key = domain.key();
        Ok(Self {
            slot,
            domain,
            space,
            memory: Memory::open()?,
            maps: Maps::default(),
            digests: Digests::default(),
            came: BTreeSet::new(),
            begin: Instant::now(),
            head,
        })
    }

    /// Sets the mappings from now on. Pages that came and are still mapped to the same stay.
    ///
    /// # Errors
    /// What cannot be, and files that are not as they were.
    pub fn maps(&mut self, maps: Maps) -> Result<(), SnapshotError> {
        maps.check(&self.head)?;
        let refused = kernel("its memory");
        // What is mapped no more: fresh the other way round tells more than that, so by address alone.
        for old in &self.maps.regions {
            let mut at = old.start;
            while at < old.end {
                let behind = maps.regions.partition_point(|r| r.end <= at);
                let next = maps.regions.get(behind);
                let end = next.map_or(old.end, |r| r.start.clamp(at, old.end));
                if end > at {
                    memory::unmap(&mut self.space, at, end - at).map_err(&refused)?;
                    forget(&mut self.came, at, end);
                }
                at = next.map_or(old.end, |r| r.end.min(old.end)).max(end);
            }
        }
        for range in fresh(&maps, &self.maps) {
            let mut at = range.start;
            while let Some(region) = maps.at(at).filter(|_| at < range.end) {
                let end = region.end.min(range.end);
                self.map(region, at, end - at)?;
                at = end;
            }
        }
        for region in &maps.regions {
            let length = region.end - region.start;
            let same = |r: &Region| {
                r.start <= region.start && r.end >= region.end && r.protection == region.protection
            };
            if !self.maps.at(region.start).is_some_and(same) {
                memory::protect(&mut self.space, region.start, length, region.protection)
                    .map_err(&refused)?;
            }
        }
        self.maps = maps;
        Ok(())
    }

    /// Maps a part of a region.
    fn map(&mut self, region: &Region, start: usize, length: usize) -> Result<(), SnapshotError> {
        let mut shown = None;
        if let Some(backing) = &region.file {
            let here = |why: String| SnapshotError::Here {
                what: format!("{}: {why}", backing.path.display()),
                help: "a guest goes on with the files that it has mapped: install the same version",
            };
            let digest = self.digests.of(&backing.path);
            if digest.map_err(|e| here(e.to_string()))? != backing.digest {
                return Err(here("not the file that the guest has mapped".into()));
            }
            let file = File::open(&backing.path).map_err(|e| here(e.to_string()))?;
            shown = Some((file, backing.offset + (start - region.start) as u64));
        }
        forget(&mut self.came, start, start + length);
        let mapping = Mapping {
            start,
            length,
            protection: region.protection,
            flags: libc::MAP_PRIVATE,
            file: shown.as_ref().map(|(file, at)| (file.as_raw_fd(), *at)),
            name: None,
        };
        memory::map(&mut self.space, &mapping).map_err(kernel("its memory"))?;
        Ok(())
    }

    /// Pages have come.
    ///
    /// # Errors
    /// Nothing is mapped there.
    pub fn pages(&mut self, address: usize, bytes: &[u8]) -> Result<(), SnapshotError> {
        let whole = address.is_multiple_of(PAGE) && bytes.len().is_multiple_of(PAGE);
        if !whole || !self.maps.hold(address, bytes.len()) {
            return Err(SnapshotError::broken("pages where nothing is mapped"));
        }
        self.memory.write(address, bytes)?;
        let count = bytes.len() / PAGE;
        self.came
            .extend((0..count).map(|index| address + index * PAGE));
        Ok(())
    }

    /// All has come: the guest is there, and at rest until it is given packets.
    ///
    /// # Errors
    /// What cannot be, and files that cannot be opened.
    pub fn finish(mut self, rest: Rest) -> Result<Hosted, SnapshotError> {
        rest.check(&self.head, &self.maps)?;
        self.settle(&rest)?;
        let vdso = self.head.places.vdso;
        self.memory.write(vdso + PAGE, &vdso::table(vdso))?;
        for region in &self.maps.regions {
            let name = region
                .name
                .clone()
                .map(|(name, offset)| (name.into(), offset));
            let length = region.end - region.start;
            self.space
                .add(region.start, length, region.protection, name);
        }
        let room = self.room()?;
        self.space.heap_ready = rest.heap_ready;
        if rest.heap_end != 0 {
            self.space.set_heap_end(rest.heap_end);
        }
        self.space.peak = self.space.peak.max(rest.peak.min(self.head.spec.budget));
        let spec = self.head.spec.clone();
        let mut own = Files::new(&spec, Preloads::of(&spec.program)?, None)?;
        own.directory.clone_from(&rest.directory);
        own.umask = rest.umask & 0o777;
        files::open(&mut own, &rest.numbers, &rest.descriptions)?;
        let alarm = rest
            .alarm
            .map_or(0, |left| monotonic().saturating_add(left));
        let state = State {
            space: self.space,
            files: own,
            signals: rest.signals,
            ids: rest.ids,
            process: rest.process,
            last_thread: rest.last_thread,
            forks: false,
            notes: rest.notes.into_iter().collect(),
        };
        let shared = Shared::new(
            spec,
            self.slot,
            self.domain,
            state,
            Stage::Running,
            self.head.places,
        );
        shared.alarm.store(alarm, Ordering::Relaxed);
        watch::watch(Arc::downgrade(&shared));
        let hosted = Hosted {
            shared,
            context: Some(rest.context),
            running: None,
            room,
            over: None,
            mapped: self.begin.elapsed(),
            took: self.begin.elapsed(),
            sent: Vec::new(),
            polling: None,
            input: None,
        };
        for context in rest.asking {
            hosted.shared.spawn_asking(context)?;
        }
        for parked in rest.parked {
            thaw(&hosted.shared, parked)?;
        }
        Ok(hosted)
    }

    /// Where its packets are copied to, if they are, or have to be on this processor.
    fn room(&mut self) -> Result<Option<Room>, SnapshotError> {
        if self.head.places.room.is_none() && self.domain.key() > 0 {
            let refused = kernel("room for a guest's packets");
            let start = self.space.place(ROOM).ok_or(libc::ENOMEM);
            let start = start.map_err(&refused)?;
            let mapping = Mapping {
                start,
                length: ROOM,
                protection: libc::PROT_READ | libc::PROT_WRITE,
                flags: libc::MAP_PRIVATE,
                file: None,
                name: None,
            };
            memory::map(&mut self.space, &mapping).map_err(&refused)?;
            self.head.places.room = Some(start);
        }
        Ok(self.head.places.room.map(Room::new))
    }

    /// Pages that are no longer its own go; all that are must have come.
    fn settle(&mut self, rest: &Rest) -> Result<(), SnapshotError> {
        let mut stale = std::mem::take(&mut self.came);
        for (start, pages) in &rest.live {
            for index in 0..*pages {
                if !stale.remove(&(start + index * PAGE)) {
                    return Err(SnapshotError::broken("a page is missing"));
                }
            }
        }
        let mut runs = Vec::new();
        for page in stale {
            push(&mut runs, page, 1);
        }
        for (start, pages) in runs {
            let length = pages * PAGE;
            // SAFETY: in the slot, whose memory is the guest's alone; what is mapped there shows again.
            unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
        }
        Ok(())
    }
}

fn forget(came: &mut BTreeSet<usize>, start: usize, end: usize) {
    let gone: Vec<usize> = came.range(start..end).copied().collect();
    for page in gone {
        came.remove(&page);
    }
}

/// Has a thread go on with the registers that it was interrupted with.
fn thaw(guest: &Arc<Shared>, parked: Parked) -> Result<(), SnapshotError> {
    let rsp = parked.registers.get(libc::REG_RSP as usize).copied();
    let below = (rsp.unwrap_or(0) as usize).saturating_sub(RED_ZONE) & !15;
    if !guest.slot.range().contains(&below) || !memory::write(below.saturating_sub(128), &[0; 128])
    {
        return Err(SnapshotError::broken(
            "a thread whose stack is not writable",
        ));
    }
    // SAFETY: the 128 bytes below have just been written to.
    let frame = unsafe { thread::first_frame(below, vdso::thaw(guest.places.vdso), [0; 6]) };
    let context = Context {
        rsp: frame,
        fs: parked.fs,
        number: parked.number,
        clear: parked.clear,
    };
    guest.rest.thaw(parked);
    guest.spawn(context)?;
    Ok(())
}

/// How the guest of a snapshot was started.
///
/// # Errors
/// It is no snapshot.
pub fn spec(file: &Path) -> Result<Spec, SnapshotError> {
    let mut input = BufReader::new(File::open(file)?);
    let mut body = Vec::new();
    Ok(head(&mut input, &mut body)?.spec)
}

/// Goes on from a file. What `spec` says of times, restarts, failing and files that may be opened counts, and not what the
/// snapshot says.
///
/// # Errors
/// As [`read`].
pub fn file(file: &Path, spec: &Spec) -> Result<Hosted, SnapshotError> {
    let mut input = BufReader::new(File::open(file)?);
    let mut body = Vec::new();
    let mut head = head(&mut input, &mut body)?;
    head.spec.limit = spec.limit;
    head.spec.restarts = spec.restarts;
    head.spec.snapshot.clone_from(&spec.snapshot);
    head.spec.every = spec.every;
    head.spec.read.clone_from(&spec.read);
    head.spec.write.clone_from(&spec.write);
    head.spec.send.clone_from(&spec.send);
    head.spec.only = spec.only;
    head.spec.failing = spec.failing;
    head.spec.pipes.clone_from(&spec.pipes);
    Arrival::new(head, spec.output)?.fill(&mut input, &mut body)
}

fn head(input: &mut dyn Read, body: &mut Vec<u8>) -> Result<Head, SnapshotError> {
    format::begins(input)?;
    if format::take(input, body)? != Kind::Head {
        return Err(SnapshotError::broken("it does not begin with who it is"));
    }
    let head: Head = format::document(body)?;
    head.check()?;
    Ok(head)
}

/// Reads a whole snapshot and goes on with its guest, which is at rest until it is given packets.
///
/// # Errors
/// It is damaged, or cannot be gone on with here.
pub fn read(input: &mut dyn Read, output: i32) -> Result<Hosted, SnapshotError> {
    let mut body = Vec::new();
    let head = head(input, &mut body)?;
    let arrival = Arrival::new(head, output)?;
    arrival.fill(input, &mut body)
}

impl Arrival {
    /// Reads all that follows the head.
    ///
    /// # Errors
    /// As [`read`].
    pub fn fill(
        mut self,
        input: &mut dyn Read,
        body: &mut Vec<u8>,
    ) -> Result<Hosted, SnapshotError> {
        let rest = loop {
            match format::take(input, body)? {
                Kind::Maps => self.maps(format::document(body)?)?,
                Kind::Pages => {
                    let (address, bytes) = format::pages(body)?;
                    self.pages(address, bytes)?;
                }
                Kind::Rest => break format::document(body)?,
                Kind::Head | Kind::End => {
                    return Err(SnapshotError::broken("a section out of its order"));
                }
            }
        };
        if format::take(input, body)? != Kind::End {
            return Err(SnapshotError::broken("a section out of its order"));
        }
        self.finish(rest)
    }
}

impl Hosted {
    /// Writes a snapshot of the guest, which is at rest on this thread; it can go on after that.
    ///
    /// # Errors
    /// The output's, and that the guest is such that it cannot be moved.
    pub fn snapshot(
        &self,
        out: &mut dyn std::io::Write,
    ) -> Result<Vec<super::take::Round>, SnapshotError> {
        let over = || SnapshotError::Guest("it does not run any more".into());
        let mut taker = super::take::Taker::begin(&self.shared, out)?;
        let context = self.context.as_ref().ok_or_else(over)?;
        drop(taker.finish(context)?);
        Ok(taker.rounds)
    }
}
