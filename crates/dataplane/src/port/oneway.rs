//! A live port that is only sent to.

use super::{Departure, Frame, PortError, Queue, QueueCounts};

/// A queue whose packets nobody takes: what arrives is lost in the device's ring, as on any interface
/// that nobody listens to, and the run does not wait for it.
pub struct SendOnly {
    queue: Box<dyn Queue>,
}

impl SendOnly {
    /// Only the sending half of `queue`.
    #[must_use]
    pub fn new(queue: Box<dyn Queue>) -> Self {
        Self { queue }
    }
}

// SAFETY: it lends no frames.
unsafe impl Queue for SendOnly {
    fn receive(&mut self, _: &mut Vec<Frame>, _: usize, _: u64) -> Result<usize, PortError> {
        Ok(0)
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        self.queue.transmit(packets)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.queue.flush()
    }

    fn release(&mut self, frames: &[Frame]) {
        self.queue.release(frames);
    }

    fn ended(&self) -> bool {
        true
    }

    fn idle(&self) -> bool {
        self.queue.idle()
    }

    fn finish(&mut self) -> Result<(), PortError> {
        self.queue.finish()
    }

    fn counts(&self) -> QueueCounts {
        // What it missed, nobody waited for.
        QueueCounts {
            missed: 0,
            unfit: 0,
            ..self.queue.counts()
        }
    }

    fn memory(&self) -> u64 {
        self.queue.memory()
    }
}
