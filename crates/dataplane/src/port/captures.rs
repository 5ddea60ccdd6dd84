//! Capture files as queues, so that workers serve them as they serve any port.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use millrace_traffic::capture::Written;

use super::buffers::Buffers;
use super::{Departure, Frame, Output, PortError, Queue, QueueCounts};
use crate::packet::{Layout, MAX_FRAME};
use crate::runner::Sources;

/// The inputs of a run, merged by time stamp, as one queue that feeds all ports of the function.
pub struct CaptureIn {
    sources: Sources,
    buffers: Buffers,
    counts: QueueCounts,
}

impl CaptureIn {
    /// A queue that lends at most `burst` packets at a time.
    #[must_use]
    pub fn new(sources: Sources, burst: usize, layout: Layout) -> Self {
        Self {
            sources,
            buffers: Buffers::new(burst, 0, layout),
            counts: QueueCounts::default(),
        }
    }
}

// SAFETY: frames come from `Buffers`, which leaves a lent buffer alone until it is released.
unsafe impl Queue for CaptureIn {
    fn receive(
        &mut self,
        into: &mut Vec<Frame>,
        most: usize,
        before: u64,
    ) -> Result<usize, PortError> {
        let start = into.len();
        while into.len() - start < most && self.buffers.free() > 0 {
            // A pipe's sender may not have sent it yet.
            if !self.sources.ready(Duration::ZERO) {
                break;
            }
            let Some((record, port)) = self.sources.next() else {
                break;
            };
            if record.time_ns >= before {
                break;
            }
            if record.data.len() > MAX_FRAME {
                self.counts.unfit += 1;
            } else if let Some(frame) = self.buffers.copy(record.data) {
                into.push(Frame {
                    stamp: record.time_ns,
                    wire: record.original_length,
                    port,
                    ..frame
                });
            }
            self.sources.advance();
        }
        Ok(into.len() - start)
    }

    fn transmit(&mut self, _packets: &mut [Departure]) -> Result<usize, PortError> {
        Ok(0)
    }

    fn release(&mut self, frames: &[Frame]) {
        self.buffers.release(frames);
    }

    fn close(&mut self) {
        self.sources.drain();
    }

    fn ended(&self) -> bool {
        self.sources.is_known() && self.sources.next().is_none()
    }

    fn keeps_time(&self) -> bool {
        true
    }

    fn ready(&mut self, patience: Duration) -> bool {
        self.sources.ready(patience)
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.sources.descriptor()
    }

    fn next_stamp(&self) -> Option<u64> {
        self.sources.next().map(|(record, _)| record.time_ns)
    }

    fn finish(&mut self) -> Result<(), PortError> {
        self.sources.failures.drain(..).next().map_or(Ok(()), Err)
    }

    fn counts(&self) -> QueueCounts {
        self.counts
    }

    fn memory(&self) -> u64 {
        self.sources.bytes() + self.buffers.memory()
    }
}

/// An output that packets are written to, as a queue that gives nothing.
pub struct CaptureOut {
    output: Option<Box<dyn Output>>,
    kept: Written,
    /// how it stands with what the output has gathered
    gathered: Gathered,
}

/// What an output has gathered must not wait for more when no more comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gathered {
    /// all has been handed on
    Nothing,
    /// something since the last turn
    Now,
    /// nothing in the last turn
    Before,
}

impl CaptureOut {
    /// A queue into `output`.
    #[must_use]
    pub fn new(output: Box<dyn Output>) -> Self {
        Self {
            output: Some(output),
            kept: Written::default(),
            gathered: Gathered::Nothing,
        }
    }
}

// SAFETY: it lends no frames.
unsafe impl Queue for CaptureOut {
    fn receive(&mut self, _: &mut Vec<Frame>, _: usize, _: u64) -> Result<usize, PortError> {
        Ok(0)
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        let Some(output) = &mut self.output else {
            return Ok(0);
        };
        for packet in &*packets {
            output.write(packet.port, packet.stamp, packet.wire, packet.bytes())?;
            self.gathered = Gathered::Now;
        }
        Ok(packets.len())
    }

    fn flush(&mut self) -> Result<(), PortError> {
        match (self.gathered, &mut self.output) {
            (Gathered::Now, _) => self.gathered = Gathered::Before,
            (Gathered::Before, Some(output)) => {
                self.gathered = Gathered::Nothing;
                output.flush()?;
            }
            _ => {}
        }
        Ok(())
    }

    fn release(&mut self, _frames: &[Frame]) {}

    fn ended(&self) -> bool {
        true
    }

    fn finish(&mut self) -> Result<(), PortError> {
        match self.output.take() {
            Some(output) => {
                self.kept = output.written();
                self.kept = output.finish()?;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn kept(&self) -> Option<Written> {
        Some(self.output.as_ref().map_or(self.kept, |o| o.written()))
    }

    fn memory(&self) -> u64 {
        self.output.as_ref().map_or(0, |o| o.bytes())
    }
}

/// An output that several workers write to: packets of one worker stay in order, and so do those of a flow,
/// which one worker has.
pub struct SharedOut {
    /// the first says what the output kept
    first: bool,
    /// queues that may still write; the last completes the output
    open: Arc<AtomicUsize>,
    output: Arc<Mutex<CaptureOut>>,
}

impl SharedOut {
    /// A queue into `output` for each of this many workers.
    #[must_use]
    pub fn all(output: Box<dyn Output>, workers: usize) -> Vec<Box<dyn Queue>> {
        let output = Arc::new(Mutex::new(CaptureOut::new(output)));
        let open = Arc::new(AtomicUsize::new(workers));
        let of = |worker| {
            Box::new(Self {
                first: worker == 0,
                open: open.clone(),
                output: output.clone(),
            }) as Box<dyn Queue>
        };
        (0..workers).map(of).collect()
    }

    fn locked(&self) -> MutexGuard<'_, CaptureOut> {
        // What a worker that died was writing is a packet cut short, which the output's end shows.
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: it lends no frames.
unsafe impl Queue for SharedOut {
    fn receive(&mut self, _: &mut Vec<Frame>, _: usize, _: u64) -> Result<usize, PortError> {
        Ok(0)
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        if packets.is_empty() {
            return Ok(0);
        }
        self.locked().transmit(packets)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        // Another worker is at it: then it has more to write than to hand on.
        match self.output.try_lock() {
            Ok(mut output) => output.flush(),
            Err(_) => Ok(()),
        }
    }

    fn release(&mut self, _frames: &[Frame]) {}

    fn ended(&self) -> bool {
        true
    }

    fn finish(&mut self) -> Result<(), PortError> {
        match self.open.fetch_sub(1, Ordering::AcqRel) {
            1 => self.locked().finish(),
            _ => Ok(()),
        }
    }

    fn kept(&self) -> Option<Written> {
        self.first.then(|| self.locked().kept()).flatten()
    }

    fn memory(&self) -> u64 {
        if self.first {
            self.locked().memory()
        } else {
            0
        }
    }
}
