//! One receive and one transmit queue of a device.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::device::Device;
use super::hub::Share;
use super::tap::Taps;
use super::unfinished::present;
use super::{eal, raw};
use crate::packet::MAX_BURST;
use crate::port::device::Watch;
use crate::port::{Departure, Frame, LiveOptions, PortError, Queue, QueueCounts};

/// Looks at an empty queue between two looks at the clock.
const LOOKS: u32 = 1024;
/// Time between two looks at a link.
const EVERY: Duration = Duration::from_millis(200);

/// How it is noticed that the device goes away.
pub enum Link {
    /// it cannot go, or nobody can tell
    None,
    /// an interface of the kernel
    Kernel(Watch),
    /// an interface that the driver has made
    Tap(Taps),
    /// a device with a link of its own
    Card,
}

/// The queues of one worker.
pub struct Pair {
    number: u16,
    /// where all workers share the device's queues; none where each has its own
    share: Option<Share>,
    /// whether the worker's thread is known to DPDK
    joined: bool,
    link: Link,
    /// finish checksums that local senders left to the device
    checksums: bool,
    /// the function's port
    port: u32,
    /// received, and not yet lent: only of devices that keep time
    ahead: VecDeque<raw::Frame>,
    received: Vec<raw::Frame>,
    packets: Vec<raw::Packet>,
    back: Vec<*mut c_void>,
    unfit: u64,
    refused: u64,
    /// packets that may still be taken, once nothing more is received
    left: Option<usize>,
    ended: bool,
    looks: u32,
    next: Instant,
    // Last, so that buffers are given back before the device may go.
    device: Arc<Device>,
}

// SAFETY: addresses of buffers that DPDK gave to this queue; they move with it.
unsafe impl Send for Pair {}

/// No frame.
pub const NOTHING: raw::Frame = raw::Frame {
    mbuf: std::ptr::null_mut(),
    data: std::ptr::null_mut(),
    end: std::ptr::null_mut(),
    floor: std::ptr::null_mut(),
    ceiling: std::ptr::null_mut(),
    stamp: 0,
};

impl Pair {
    /// Queue `number` of a device.
    pub fn new(
        device: Arc<Device>,
        number: u16,
        share: Option<Share>,
        link: Link,
        checksums: bool,
        options: &LiveOptions,
    ) -> Self {
        let mut pair = Self {
            device,
            number,
            share,
            joined: false,
            link,
            checksums,
            port: options.port,
            ahead: VecDeque::new(),
            received: vec![NOTHING; options.burst.clamp(1, MAX_BURST)],
            packets: Vec::new(),
            back: Vec::new(),
            unfit: 0,
            refused: 0,
            left: None,
            ended: false,
            looks: 0,
            next: Instant::now(),
        };
        // The time of the first packet is when the run begins.
        if pair.device.ends() {
            pair.read_ahead();
        }
        pair
    }

    /// Takes at most `most` packets from the device into `received`; how many.
    fn take(&mut self, most: usize) -> usize {
        let most = most
            .min(self.received.len())
            .min(self.left.unwrap_or(usize::MAX));
        if most == 0 {
            return 0;
        }
        if let Some(share) = &mut self.share {
            let places = self.received.get_mut(..most).unwrap_or_default();
            return share.take(places);
        }
        let stamps = self.device.stamps();
        // SAFETY: `received` has room for `most` frames; queue `number` is this worker's alone.
        let count = unsafe {
            raw::mr_receive(
                self.device.port(),
                self.number,
                self.device.pool(),
                &raw const stamps,
                self.received.as_mut_ptr(),
                most as u32,
                &raw mut self.unfit,
            )
        };
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(count as usize);
        }
        count as usize
    }

    fn frame(&self, raw: &raw::Frame) -> Frame {
        Frame {
            data: raw.data,
            end: raw.end,
            floor: raw.floor,
            ceiling: raw.ceiling,
            stamp: raw.stamp,
            wire: (raw.end.addr() - raw.data.addr()) as u32,
            port: self.port,
            class: 0,
            hops: 0,
            hash: 0,
            pool: eal::pool(),
            buffer: raw.mbuf.expose_provenance() as u64,
        }
    }

    /// Reads on in a device of files, as far as a burst; at its end it says so.
    fn read_ahead(&mut self) {
        if !self.ahead.is_empty() || self.ended || self.left.is_some() {
            return;
        }
        loop {
            let (unfit, missed) = (self.unfit, self.device.stats().missed);
            let count = self.take(MAX_BURST);
            if count > 0 {
                self.ahead.extend(self.received.iter().take(count).copied());
                return;
            }
            if let Some(share) = &self.share {
                self.ended = share.ended();
                return;
            }
            if self.device.stats().missed != missed {
                // No buffer was free; the reader goes on when some are.
                return;
            }
            if self.unfit == unfit {
                self.ended = true;
                return;
            }
        }
    }

    fn look(&mut self) -> Result<(), PortError> {
        match &mut self.link {
            Link::None => return Ok(()),
            Link::Kernel(watch) => return watch.look(),
            Link::Tap(_) | Link::Card => (),
        }
        self.looks = self.looks.wrapping_add(1);
        if !self.looks.is_multiple_of(LOOKS) || Instant::now() < self.next {
            return Ok(());
        }
        self.next = Instant::now() + EVERY;
        let (what, help) = match &self.link {
            Link::Tap(taps) if taps.gone() => ("the interface went away", "run again"),
            Link::Card if self.device.link(false) == Some(false) => {
                ("the link went down", "look at the cable and run again")
            }
            _ => return Ok(()),
        };
        Err(PortError::Live {
            word: self.device.word().to_owned(),
            what: format!("{what} while it was in use"),
            help: format!("what was received before is accounted; {help}"),
        })
    }
}

// SAFETY: a frame lies in an mbuf that DPDK gave to this queue: one segment, one reference (shim/burst.c),
// with room from its private area to its end. It goes back by `release`, or by a transmit that keeps it.
unsafe impl Queue for Pair {
    fn receive(
        &mut self,
        into: &mut Vec<Frame>,
        most: usize,
        before: u64,
    ) -> Result<usize, PortError> {
        let start = into.len();
        if !self.joined {
            self.joined = true;
            eal::join();
        }
        if self.device.ends() {
            self.read_ahead();
            while into.len() - start < most
                && let Some(next) = self.ahead.front().filter(|f| f.stamp < before)
            {
                into.push(self.frame(next));
                self.ahead.pop_front();
            }
            self.read_ahead();
            return Ok(into.len() - start);
        }
        let count = self.take(most);
        if count == 0 {
            return self.look().map(|()| 0);
        }
        self.back.clear();
        for raw in self.received.iter().take(count) {
            if self.checksums && !present(raw) {
                self.back.push(raw.mbuf);
                continue;
            }
            into.push(self.frame(raw));
        }
        if !self.back.is_empty() {
            self.unfit += self.back.len() as u64;
            // SAFETY: they were received and are lent to nobody.
            unsafe { raw::mr_free(self.back.as_mut_ptr(), self.back.len() as u32) };
        }
        Ok(into.len() - start)
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        let own = eal::pool();
        self.packets.clear();
        self.packets.extend(packets.iter().map(|p| raw::Packet {
            mbuf: if p.may_keep && p.pool == own {
                std::ptr::with_exposed_provenance_mut(p.buffer as usize)
            } else {
                std::ptr::null_mut()
            },
            data: p.data,
            length: p.length,
            kept: 0,
        }));
        let taken = match &mut self.share {
            Some(share) => share.transmit(&mut self.packets, &mut self.refused),
            // SAFETY: each packet lies in a frame that a queue lent and that is not given back meanwhile,
            // and `mbuf` is that frame's own where it is one of DPDK's and leaves here only; queue `number`
            // is this worker's alone.
            None => unsafe {
                raw::mr_transmit(
                    self.device.port(),
                    self.number,
                    self.device.pool(),
                    self.device.sizes(),
                    self.packets.as_mut_ptr(),
                    self.packets.len() as u32,
                    &raw mut self.refused,
                ) as usize
            },
        };
        for (departure, packet) in packets.iter_mut().zip(&self.packets) {
            departure.kept = packet.kept != 0;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        if let Some(share) = &mut self.share {
            share.flush();
        }
        Ok(())
    }

    fn release(&mut self, frames: &[Frame]) {
        self.back.clear();
        let mbufs = frames
            .iter()
            .map(|f| std::ptr::with_exposed_provenance_mut::<c_void>(f.buffer as usize));
        self.back.extend(mbufs);
        // SAFETY: this queue lent them, nobody kept them, and each comes back once.
        unsafe { raw::mr_free(self.back.as_mut_ptr(), self.back.len() as u32) };
    }

    fn close(&mut self) {
        // DPDK cannot tell a device to stop receiving and to hand over what it has, so a ring of packets
        // is taken, and no more; of shared queues, when all workers have closed.
        if let Some(share) = &mut self.share {
            share.close();
            if self.device.ends() {
                self.left = Some(0);
            }
        } else if self.left.is_none() {
            self.left = Some(usize::from(self.device.descriptors()));
        }
    }

    fn ended(&self) -> bool {
        self.ended && self.ahead.is_empty()
    }

    fn keeps_time(&self) -> bool {
        self.device.ends()
    }

    fn next_stamp(&self) -> Option<u64> {
        let ahead = self.ahead.front().map(|f| f.stamp);
        // Time goes no further than the packets that may still be handed over.
        let shared = self
            .share
            .as_ref()
            .filter(|_| self.device.ends() && !self.ended);
        ahead.or_else(|| shared.map(Share::next_stamp))
    }

    fn idle(&self) -> bool {
        let (handed, queue) = match &self.share {
            Some(share) => (share.idle(), share.queue()),
            None => (true, self.number),
        };
        // SAFETY: numbers only; the driver reads a descriptor.
        handed && unsafe { raw::mr_sent(self.device.port(), queue, self.device.descriptors()) } != 0
    }

    fn finish(&mut self) -> Result<(), PortError> {
        if let Some(share) = &mut self.share {
            share.finish();
        }
        Ok(())
    }

    fn counts(&self) -> QueueCounts {
        // Devices count for all queues together: the first one reports it.
        let stats = match self.number {
            0 => self.device.stats(),
            _ => raw::Stats::default(),
        };
        let (missed, unfit, failed) = self.share.as_ref().map_or((0, 0, 0), Share::counts);
        QueueCounts {
            missed: missed + stats.missed,
            unfit: unfit + self.unfit + stats.bad,
            failed: failed + self.refused + stats.refused,
            ..QueueCounts::default()
        }
    }

    fn memory(&self) -> u64 {
        match self.number {
            0 => self.device.bytes(),
            _ => 0,
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let mut ahead: Vec<*mut c_void> = self.ahead.drain(..).map(|f| f.mbuf).collect();
        // SAFETY: they were received and never lent.
        unsafe { raw::mr_free(ahead.as_mut_ptr(), ahead.len() as u32) };
    }
}
