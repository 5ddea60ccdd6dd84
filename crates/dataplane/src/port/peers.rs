//! The port between machines: packets that peers sent on, as if they had come in here.
//!
//! The first worker receives them, and each goes to the worker that has its class, as packets of any other port do (`handover`). Nothing is sent
//! through it: packets for other machines go by [`crate::classes::away::Elsewhere`].

use std::os::fd::RawFd;
use std::sync::Arc;

use super::handover::{By, hand_over};
use super::{Buffers, Departure, Frame, LivePort, PortError, Queue, QueueCounts};
use crate::classes::Classes;
use crate::packet::Layout;

/// A packet that a peer sent on.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// the port of the function that it came in at over there
    pub port: u32,
    /// how many machines have sent it on, this peer among them; with [`crate::classes::away::MARK`] where it is a mark and no packet
    pub hops: u8,
    /// the class of a mark; that of a packet is its own hash's
    pub class: u16,
    /// its bytes
    pub frame: &'a [u8],
}

/// Where packets of peers come from.
pub trait Arrivals: Send {
    /// The next packet, if there is one now; never waits.
    ///
    /// # Errors
    /// Nothing more will come.
    fn next(&mut self) -> Result<Option<Arrival<'_>>, PortError>;

    /// Becomes readable when packets come.
    fn descriptor(&self) -> RawFd;
}

/// The port, for so many workers; `port` is a number that no port of the function has, `depth` how many packets may be lent at a time.
///
/// # Errors
/// The system gives no descriptors to wait by.
pub fn peers(
    arrivals: Box<dyn Arrivals>,
    classes: &Arc<Classes>,
    (port, workers, depth): (usize, usize, usize),
) -> Result<LivePort, PortError> {
    let mut arrivals = Some(arrivals);
    let queues = (0..workers).map(|_| {
        Box::new(Peers {
            arrivals: arrivals.take(),
            buffers: Buffers::new(depth, 0, Layout::Pooled),
            unfit: 0,
            closed: false,
        }) as Box<dyn Queue>
    });
    let by = By::Class {
        classes: classes.clone(),
        port,
    };
    Ok(LivePort {
        queues: hand_over("peers", queues.collect(), by, None)?,
        hold: None,
        facts: Vec::new(),
        told: false,
        table: None,
    })
}

struct Peers {
    arrivals: Option<Box<dyn Arrivals>>,
    buffers: Buffers,
    unfit: u64,
    closed: bool,
}

// SAFETY: frames come from `Buffers`, which leaves a lent buffer alone until it is released.
unsafe impl Queue for Peers {
    fn receive(&mut self, into: &mut Vec<Frame>, most: usize, _: u64) -> Result<usize, PortError> {
        let start = into.len();
        let Some(arrivals) = self.arrivals.as_mut().filter(|_| !self.closed) else {
            return Ok(0);
        };
        while into.len() - start < most && self.buffers.free() > 0 {
            let Some(arrival) = arrivals.next()? else {
                break;
            };
            match self.buffers.copy(arrival.frame) {
                Some(frame) => into.push(Frame {
                    port: arrival.port,
                    hops: arrival.hops,
                    class: arrival.class,
                    ..frame
                }),
                None => self.unfit += 1,
            }
        }
        Ok(into.len() - start)
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        // No port of the function leads here.
        Ok(packets.len())
    }

    fn release(&mut self, frames: &[Frame]) {
        self.buffers.release(frames);
    }

    fn close(&mut self) {
        self.closed = true;
    }

    /// Peers send as long as others come.
    fn ended(&self) -> bool {
        self.closed || self.arrivals.is_none()
    }

    fn counts(&self) -> QueueCounts {
        QueueCounts {
            unfit: self.unfit,
            ..QueueCounts::default()
        }
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.arrivals.as_ref().map(|a| a.descriptor())
    }

    fn memory(&self) -> u64 {
        self.buffers.memory()
    }
}
