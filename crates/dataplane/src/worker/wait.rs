//! Sleeping until a port has packets.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use super::turn::Served;

/// The most descriptors that are waited for at once.
const MOST: usize = 64;

/// How long a thread that has nothing to wait for leaves the processor to others and looks again at once: what follows
/// within that time is not kept waiting. A time and not a number of turns: threads of which each leaves the processor to
/// the other take it for a switch a turn.
const YIELDS: Duration = Duration::from_micros(100);
/// How long it sleeps between two looks behind that. With [`punctual`] about 25 us go by, in which 370 frames of 64
/// bytes come at 10 Gbit/s: a receive ring holds more.
const REST: Duration = Duration::from_micros(20);

/// Lets this thread's sleeps end within a microsecond of their time, which the kernel stretches by 50 otherwise.
pub fn punctual() {
    // Where the kernel refuses, sleeps are longer and nothing else changes.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1000));
}

thread_local! {
    /// The last look of this thread that found nothing, by its number in the row, and when the first of the row rested.
    static QUIET: Cell<Option<(u32, Instant)>> = const { Cell::new(None) };
}

/// Since when this thread has rested in a row of looks that find nothing, of which this is the `quiet`-th.
fn quiet_since(quiet: u32) -> Instant {
    let since = match QUIET.get() {
        // A count that has come to its end stays there.
        Some((last, since)) if last < quiet || quiet == u32::MAX => since,
        _ => Instant::now(),
    };
    QUIET.set(Some((quiet, since)));
    since
}

/// Between two looks for packets, the `quiet`-th in a row that finds none, at most this long.
pub fn rest(quiet: u32, most: Duration) {
    if quiet_since(quiet).elapsed() < YIELDS {
        std::thread::yield_now();
    } else {
        std::thread::sleep(REST.min(most));
    }
}

/// Waits until one of the queues may have packets, at most this long; [rests](rest) where a port has nothing to
/// wait for.
pub fn readable(queues: &[Served], quiet: u32, most: Duration) {
    let live = || queues.iter().filter(|s| !s.failed && !s.queue.ended());
    let mut polled = [libc::pollfd {
        fd: -1,
        events: 0,
        revents: 0,
    }; MOST];
    let mut used = 0;
    for (place, served) in polled.iter_mut().zip(live()) {
        let Some(fd) = served.queue.descriptor() else {
            return rest(quiet, most);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_looks_that_find_nothing_begins_once() {
        let first = quiet_since(257);
        assert_eq!(quiet_since(258), first);
        assert_eq!(quiet_since(900), first);
        // A packet came between: the count begins anew, even where each row has one look.
        let later = || std::thread::sleep(Duration::from_micros(1));
        later();
        let second = quiet_since(257);
        assert!(second > first);
        later();
        assert!(quiet_since(257) > second);
        let last = quiet_since(u32::MAX);
        assert_eq!(quiet_since(u32::MAX), last);
    }
}
