//! Taking a snapshot: all pages once, then those that were written to, and at last all else.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::backing::{self, Digests};
use super::format::{self, Kind, RUN};
use super::image::{Head, Maps, Rest};
use super::pages::{self, Memory, Run, push, total};
use super::track::Tracker;
use super::{SnapshotError, features, files};
use crate::rest;
use crate::shared::{Shared, monotonic};
use crate::slot::PAGE;
use crate::thread::Context;

/// The most rounds before the guest is stopped, whatever it writes.
const ROUNDS: usize = 10;
/// So few pages are left to the last round.
const FEW: usize = 64;

/// A round: how many pages it copied, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// pages
    pub pages: usize,
    /// from the question which they are to the last byte
    pub took: Duration,
}

/// A snapshot that is being taken.
pub struct Taker<'a> {
    guest: Arc<Shared>,
    out: &'a mut dyn Write,
    memory: Memory,
    tracker: Tracker,
    digests: Digests,
    /// as it was written last
    maps: Maps,
    /// pages of ranges whose file is gone, as far as there are any
    whole: Vec<Run>,
    /// what was done so far
    pub rounds: Vec<Round>,
    buffer: Vec<u8>,
}

impl<'a> Taker<'a> {
    /// Writes who the guest is; no page yet.
    ///
    /// # Errors
    /// The output's, and the system's.
    pub fn begin(guest: &Arc<Shared>, out: &'a mut dyn Write) -> Result<Self, SnapshotError> {
        if guest.slot.has_fixed() {
            return Err(SnapshotError::Guest(
                "it is linked to fixed addresses (no PIE), which another process may have something else at: such ones are neither moved nor saved".into(),
            ));
        }
        if guest.arrivals.polling.load(Ordering::Relaxed) {
            return Err(SnapshotError::Guest(
                "it is a program of DPDK, whose threads take turns on the worker: such ones are neither moved nor saved".into(),
            ));
        }
        format::begin(out)?;
        let mut spec = guest.spec.clone();
        spec.slot = Some(guest.slot.number());
        let head = Head {
            spec,
            slot: guest.slot.number(),
            places: guest.places,
            features: features::here(),
        };
        format::put_document(out, Kind::Head, &head)?;
        let memory = Memory::open()?;
        Ok(Self {
            guest: guest.clone(),
            tracker: Tracker::new(&memory),
            memory,
            out,
            digests: Digests::default(),
            maps: Maps::default(),
            whole: Vec::new(),
            rounds: Vec::new(),
            buffer: vec![0; RUN * PAGE],
        })
    }

    /// Finds what was written to by comparing, whatever the kernel could do.
    pub fn compare(&mut self) {
        self.tracker = Tracker::Compare(std::collections::BTreeMap::new());
    }

    /// How pages that were written to are found.
    #[must_use]
    pub fn tracks_by(&self) -> &'static str {
        self.tracker.name()
    }

    /// Whether another round, while the guest runs, would leave less to do when it is stopped.
    #[must_use]
    pub fn again(&self) -> bool {
        match self.rounds.as_slice() {
            [] => true,
            [.., before, last] if self.rounds.len() > 2 && last.pages * 5 > before.pages * 4 => {
                false
            }
            all => all.len() < ROUNDS && all.last().is_some_and(|r| r.pages > FEW),
        }
    }

    /// Copies what has changed since the round before; at the first, all. The guest may run.
    ///
    /// # Errors
    /// The output's, the kernel's, and that the guest is such that it cannot be moved.
    pub fn round(&mut self) -> Result<Round, SnapshotError> {
        let begin = Instant::now();
        let live = self.map()?;
        let pages = live.0;
        let round = Round {
            pages,
            took: begin.elapsed(),
        };
        self.rounds.push(round);
        Ok(round)
    }

    /// Writes what is mapped and the pages that have changed: how many, and all that there are.
    fn map(&mut self) -> Result<(usize, Vec<Run>), SnapshotError> {
        let slot = self.guest.slot.range();
        let (maps, shown) = backing::mapped(&self.guest, &mut self.digests)?;
        let mapped: Vec<Range<usize>> = maps.regions.iter().map(|r| r.start..r.end).collect();
        let live = pages::within(&self.memory.own(slot.clone())?, &mapped);
        let changed = self.tracker.changed(&self.memory, &slot, &live)?;
        let fresh = backing::fresh(&maps, &self.maps);
        let runs: Vec<Run> = fresh
            .iter()
            .map(|r| (r.start, (r.end - r.start) / PAGE))
            .collect();
        let whole = pages::within(&runs, &shown);
        let wanted = pages::either(
            &pages::within(&changed, &mapped),
            &pages::either(&pages::within(&live, &fresh), &whole),
        );
        if maps != self.maps {
            format::put_document(self.out, Kind::Maps, &maps)?;
            self.maps = maps;
        }
        let there = self.copy(&wanted)?;
        // Ranges whose file is gone end before the file's end; what could be read there is the snapshot's.
        let read = pages::within(&whole, &ranges(&there));
        self.whole = pages::within(&pages::either(&self.whole, &read), &shown);
        Ok((total(&there), pages::either(&live, &self.whole)))
    }

    /// Writes pages; those that could be read.
    fn copy(&mut self, wanted: &[Run]) -> Result<Vec<Run>, SnapshotError> {
        let mut there = Vec::new();
        for (start, pages) in wanted {
            let end = start + pages * PAGE;
            let mut at = *start;
            while at < end {
                let room = self.buffer.len().min(end - at);
                let Some(bytes) = self.buffer.get_mut(..room) else {
                    break;
                };
                let got = self.memory.read(at, bytes);
                let read = self.buffer.get(..got * PAGE).unwrap_or_default();
                if got > 0 {
                    format::put(self.out, Kind::Pages, &[&at.to_le_bytes(), read])?;
                    self.tracker.passed(at, read);
                    push(&mut there, at, got);
                }
                // A page that cannot be read has gone since, or lies behind its file's end.
                at += got.max(1) * PAGE;
            }
        }
        Ok(there)
    }

    /// Brings the guest's threads to rest and writes all that is left. The packets' own thread is at rest in
    /// `context`. Threads stay at rest for as long as the result lives.
    ///
    /// # Errors
    /// As [`Self::round`]; or a thread does not come to rest.
    pub fn finish(&mut self, context: &Context) -> Result<rest::Still, SnapshotError> {
        let begin = Instant::now();
        let still = rest::still(&self.guest).map_err(|missing| {
            SnapshotError::Guest(format!("{missing} of its threads did not come to rest"))
        })?;
        let (pages, live) = self.map()?;
        let rest = self.rest(context, &still, live)?;
        format::put_document(self.out, Kind::Rest, &rest)?;
        format::put(self.out, Kind::End, &[])?;
        self.out.flush()?;
        self.rounds.push(Round {
            pages,
            took: begin.elapsed(),
        });
        Ok(still)
    }

    fn rest(
        &self,
        context: &Context,
        still: &rest::Still,
        live: Vec<Run>,
    ) -> Result<Rest, SnapshotError> {
        let state = self.guest.state();
        let (numbers, descriptions) = files::described(&state.files)?;
        let due = self.guest.alarm.load(Ordering::Relaxed);
        Ok(Rest {
            live,
            heap_end: state.space.heap_end(),
            heap_ready: state.space.heap_ready,
            peak: state.space.peak,
            context: *context,
            asking: still.asking.clone(),
            parked: still.parked.clone(),
            signals: state.signals.clone(),
            alarm: (due != 0).then(|| due.saturating_sub(monotonic())),
            ids: state.ids,
            process: state.process,
            last_thread: state.last_thread,
            directory: state.files.directory.clone(),
            umask: state.files.umask,
            numbers,
            descriptions,
            notes: state.notes.iter().map(|(n, t)| (n.clone(), *t)).collect(),
        })
    }
}

fn ranges(runs: &[Run]) -> Vec<Range<usize>> {
    runs.iter().map(|(s, p)| *s..s + p * PAGE).collect()
}
