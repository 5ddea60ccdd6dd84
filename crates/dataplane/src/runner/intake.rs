//! The reading half of the sequencer: says for each packet when it came and who has it, and puts it into the window that
//! is gathered.

use std::sync::Arc;

use millrace_steer::Owners;
use millrace_traffic::capture::Record;

use super::window::{Pool, Step, Window};
use super::{Parallel, Timers};
use crate::packet::{Arrival, Burst, MAX_FRAME};
use crate::replica::{Came, Sequencing};
use crate::worker::Ingress;

/// Packets of a window of several workers: enough that handing it over costs little, so few that buffers stay small.
const WINDOW: usize = 1024;

/// Gathers windows.
pub struct Intake {
    pub(super) pool: Pool,
    /// numbers packets and sprays them, where state is replicated
    pub(super) replicas: Option<Sequencing>,
    /// packets read
    pub(super) read: u64,
    /// the latest stamp so far, ns: the program's clock never runs backwards
    pub(super) clock: u64,
    /// no packet has a number any more
    pub(super) failed: bool,
    /// what is gathered now
    window: Box<Window>,
    /// the packets of the only worker's window, which is a burst; none where there are several workers
    burst: Option<Burst>,
    timers: Timers,
    /// counts of packets that reach no worker
    ingress: Arc<Ingress>,
    owners: Vec<Owners>,
    workers: usize,
    /// packets of a window
    most: usize,
    apart: u64,
    /// stop after this many packets
    packets: u64,
    /// packets that earlier runs have read
    before: u64,
}

impl Intake {
    /// Of a run whose first packet has the time `start`, ns.
    pub(super) fn new(
        parallel: &mut Parallel,
        ingress: &Arc<Ingress>,
        start: u64,
        replicas: Option<Sequencing>,
    ) -> Self {
        let run = &parallel.run;
        let begin = run.keep.as_ref().map_or(&[][..], |keep| &keep.begin);
        let timers = begin.first().and_then(|part| {
            let (since, past) = &part.stages.first()?.timers;
            let shift = part.time.saturating_sub(start);
            let since = since.saturating_sub(shift);
            Some(Timers::resumed(run.module.timers(), since, past, start))
        });
        let timers = match &replicas {
            None => timers.unwrap_or_else(|| Timers::new(run.module.timers(), start)),
            // They fire at heartbeats.
            Some(_) => Timers::new(&[], start),
        };
        let before = begin
            .iter()
            .map(|part| part.packets)
            .fold(0, u64::wrapping_add);
        let workers = parallel.workers.max(1);
        Self {
            pool: Pool::new(workers, run.burst, ingress.ports() as u32, run.layout),
            burst: None,
            replicas,
            read: 0,
            clock: start,
            failed: false,
            window: Box::default(),
            timers,
            ingress: ingress.clone(),
            owners: std::mem::take(&mut parallel.owners),
            workers,
            most: if workers == 1 { run.burst } else { WINDOW },
            apart: parallel.apart.unwrap_or(u64::MAX),
            packets: run.packets.unwrap_or(u64::MAX),
            before,
        }
    }

    /// How far apart in the packets' time workers may be, ns.
    pub(super) fn apart(&self) -> u64 {
        self.apart
    }

    /// Begins a window; whether entries are to be counted at its end.
    pub(super) fn begin(&mut self, count: bool) {
        self.pool.begin(&mut self.window, count);
        if self.workers == 1 && self.burst.is_none() {
            // The one used last, whose memory is in the cache.
            self.burst = Some(self.pool.burst(0));
        }
        if let Some(replicas) = &mut self.replicas {
            // Edits from outside, before the next packet.
            let before = replicas.sequence();
            self.window.begin = self.clock;
            self.window.beats = replicas.edits(self.clock).is_ok_and(|now| now > before);
        }
    }

    /// The window that was gathered.
    pub(super) fn end(&mut self) -> Box<Window> {
        for batch in &mut self.window.batches {
            batch.clock = self.clock;
        }
        if let Some(batch) = self.window.batches.first_mut()
            && let Some(burst) = self.burst.take_if(|burst| !burst.is_empty())
        {
            self.window.rows.push((0, burst.len()));
            batch.steps.push(Step::Burst(burst));
        }
        self.sequence_to();
        std::mem::replace(&mut self.window, self.pool.window())
    }

    /// The last window: replicas do what is due at the end, and have all rows then. None where there are no replicas.
    pub(super) fn last_beat(&mut self, count: bool) -> Option<Box<Window>> {
        let replicas = self.replicas.as_mut()?;
        let group = replicas.group().clone();
        // No edit gets a number behind this one.
        group.close();
        replicas.last(self.clock).ok()?;
        self.pool.begin(&mut self.window, count);
        self.window.begin = self.clock;
        self.window.beats = true;
        self.sequence_to();
        Some(std::mem::replace(&mut self.window, self.pool.window()))
    }

    /// Says in the window how far its rows go, and shows them to the replicas.
    fn sequence_to(&mut self) {
        let Some(replicas) = &self.replicas else {
            return;
        };
        replicas.publish();
        for batch in &mut self.window.batches {
            batch.clock = self.clock;
            batch.upto = replicas.sequence();
        }
    }

    /// Whether the window has no packets yet.
    pub(super) fn is_empty(&self) -> bool {
        self.window.packets == 0
    }

    /// Whether another packet belongs into the window.
    #[inline]
    pub(crate) fn wants(&self) -> bool {
        self.window.packets < self.most && self.read != self.packets
    }

    /// Takes the next packet, which came in at this port; false where it belongs into the next window.
    #[inline(always)]
    pub(crate) fn take(&mut self, record: &Record<'_>, port: u32) -> bool {
        let time = self.clock.max(record.time_ns);
        if self.window.packets == 0 {
            self.window.begin = time;
        } else if time.saturating_sub(self.window.begin) > self.apart {
            return false;
        }
        if self.timers.due(time) && !self.mark(time) {
            return false;
        }
        if record.time_ns < self.clock {
            self.ingress.late();
        }
        self.clock = time;
        let arrival = Arrival {
            number: self.before.wrapping_add(self.read),
            port,
            time,
            stamp: record.time_ns,
            wire: record.original_length,
            home: 0,
            place: 0,
        };
        let Some(burst) = &mut self.burst else {
            return self.deal(record.data, arrival);
        };
        self.read += 1;
        match burst.push(record.data, arrival) {
            true => self.window.packets += 1,
            false => self.ingress.oversize(port, record.data.len()),
        }
        true
    }

    /// Gives a packet to one of several workers; false where no number is left.
    fn deal(&mut self, frame: &[u8], mut arrival: Arrival) -> bool {
        let Some(owner) = self.owner(frame, &mut arrival) else {
            return false;
        };
        self.read += 1;
        let batch = self.window.batches.get_mut(owner);
        if batch.is_some_and(|b| self.pool.add(b, owner, frame, arrival)) {
            self.window.came(owner as u32);
        } else {
            self.ingress.oversize(arrival.port, frame.len());
        }
        true
    }

    /// Timers are due before a packet of this time (ns), whoever has it; false where they end the window.
    #[cold]
    fn mark(&mut self, time: u64) -> bool {
        // A burst of the only worker ends where a timer is due.
        if self.workers == 1 && self.window.packets > 0 {
            return false;
        }
        self.timers.pass(time);
        for batch in &mut self.window.batches {
            batch.steps.push(Step::Mark(time));
        }
        true
    }

    /// Which of several workers has a packet, and where state is replicated its place; none where no number is left.
    fn owner(&mut self, frame: &[u8], arrival: &mut Arrival) -> Option<usize> {
        // What is longer no function takes: it has no place among the packets.
        if let Some(replicas) = &mut self.replicas
            && frame.len() <= MAX_FRAME
        {
            let came = Came {
                frame,
                port: arrival.port,
                number: arrival.number,
            };
            let looked = replicas.look(&came, arrival.time);
            let placed = looked.and_then(|()| replicas.came(&came, arrival.time));
            let Ok((place, owner)) = placed else {
                self.failed = true;
                return None;
            };
            arrival.place = place.word();
            return Some(owner as usize);
        }
        let owners = self.owners.get(arrival.port as usize);
        let owner = owners.map_or(0, |o| o.owner(frame));
        Some((owner as usize).min(self.workers - 1))
    }
}
