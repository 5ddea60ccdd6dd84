//! Sleeping until a port has packets.

use std::time::Duration;

use super::turn::Served;

/// The most descriptors that are waited for at once.
const MOST: usize = 64;

/// Waits until one of the queues may have packets, at most this long. Returns at once where a port has
/// nothing to wait for.
pub fn readable(queues: &[Served], most: Duration) {
    let live = || queues.iter().filter(|s| !s.failed && !s.queue.ended());
    let mut polled = [libc::pollfd {
        fd: -1,
        events: 0,
        revents: 0,
    }; MOST];
    let mut used = 0;
    for (place, served) in polled.iter_mut().zip(live()) {
        let Some(fd) = served.queue.descriptor() else {
            std::thread::yield_now();
            return;
        };
        *place = libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        used += 1;
    }
    // Rounded up, so that a wait for a timer does not end before it.
    let ms = most.as_micros().div_ceil(1000).min(1000) as libc::c_int;
    // SAFETY: the array has `used` initialised entries and outlives the call; poll(2) writes `revents`
    // only. An interrupted or failed wait is as good as one that ended: the caller looks again.
    unsafe {
        libc::poll(polled.as_mut_ptr(), used as libc::nfds_t, ms);
    }
}
