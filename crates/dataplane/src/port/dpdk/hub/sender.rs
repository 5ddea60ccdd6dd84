//! Sending for all workers: whoever holds the sender does it.

use std::ffi::c_void;
use std::mem::forget;

use rtrb::Consumer;

use super::MOST;
use crate::port::dpdk::device::Device;
use crate::port::dpdk::raw;

/// A buffer on its way to the device. It is freed when it does not arrive.
pub struct Ready(pub(super) *mut c_void);

// SAFETY: as for `Waiting`.
unsafe impl Send for Ready {}

impl Drop for Ready {
    fn drop(&mut self) {
        // SAFETY: the device did not take it, and its worker has given it away.
        unsafe { raw::mr_free(&raw mut self.0, 1) };
    }
}

/// The end that sends by one queue: whoever holds it.
pub struct Sender {
    pub(super) from: Vec<Consumer<Ready>>,
    pub(super) queue: u16,
    /// who is first
    pub(super) next: usize,
}

impl Sender {
    /// Gives what waits to the device, as far as it takes it; how many packets.
    pub fn pump(&mut self, device: &Device) -> usize {
        let (mut total, workers) = (0, self.from.len());
        for turn in 0..workers {
            let at = (self.next + turn) % workers;
            let Some(consumer) = self.from.get_mut(at) else {
                continue;
            };
            loop {
                let count = consumer.slots().min(MOST);
                let Ok(chunk) = consumer.read_chunk(count) else {
                    break;
                };
                if count == 0 {
                    break;
                }
                let mut mbufs = [std::ptr::null_mut(); MOST];
                let (first, second) = chunk.as_slices();
                let waiting = first.iter().chain(second);
                for (to, ready) in mbufs.iter_mut().zip(waiting) {
                    *to = ready.0;
                }
                // SAFETY: `count` buffers that nobody else has; whoever holds the sender is alone with the
                // queue. Those that the device took are forgotten, the others stay in the ring.
                let sent = unsafe {
                    raw::mr_send(device.port(), self.queue, mbufs.as_mut_ptr(), count as u32)
                } as usize;
                chunk.into_iter().take(sent).for_each(forget);
                total += sent;
                if sent < count {
                    // The device is full: this worker goes on when it is not.
                    self.next = at;
                    return total;
                }
            }
        }
        self.next = (self.next + 1).checked_rem(workers).unwrap_or(0);
        total
    }
}
