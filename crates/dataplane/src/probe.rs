//! Where the time of a worker goes: a timer of its own processor time notes which instruction it is at.
//!
//! The code that runs is the same with and without it. The places are told as numbers; which line they belong to the module's line table says
//! (`millrace_profile::times`).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// Places that one worker's probe has room for: later ones are not noted.
const MOST: usize = 1 << 14;
/// Processor time between two looks, ns; kernels look each millisecond to each ten at best.
const INTERVAL: i64 = 1_000_000;

/// The places that a timer has noted. It is never given back to the system, because a signal may be on its way when its timer ends.
struct Ring {
    noted: AtomicUsize,
    places: Vec<AtomicUsize>,
}

/// Rings that no timer has.
static FREE: Mutex<Vec<&'static Ring>> = Mutex::new(Vec::new());

impl Ring {
    fn take() -> &'static Self {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let ring = free.pop().unwrap_or_else(|| {
            let places = (0..MOST).map(|_| AtomicUsize::new(0)).collect();
            Box::leak(Box::new(Self {
                noted: AtomicUsize::new(0),
                places,
            }))
        });
        ring.noted.store(0, Ordering::Relaxed);
        ring
    }
}

/// A probe of one thread.
pub struct Probe {
    ring: &'static Ring,
    timer: libc::timer_t,
}

// SAFETY: the timer is a number of the kernel's for the process: any thread may end it.
unsafe impl Send for Probe {}

/// Notes where the thread was. Async-signal-safe: loads and stores of atomics only.
extern "C" fn note(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over a `siginfo_t` of a timer, with the value that the timer was made with: a ring, which is never freed.
    let ring = unsafe { (*info).si_value().sival_ptr.cast::<Ring>().as_ref() };
    let Some(ring) = ring else { return };
    // SAFETY: with SA_SIGINFO the third argument is the `ucontext_t` of the thread that was interrupted.
    let at = unsafe { place(&*context.cast::<libc::ucontext_t>()) };
    let next = ring.noted.fetch_add(1, Ordering::Relaxed);
    if let Some(place) = ring.places.get(next) {
        place.store(at, Ordering::Relaxed);
    }
}

#[cfg(target_arch = "x86_64")]
fn place(context: &libc::ucontext_t) -> usize {
    let registers = &context.uc_mcontext.gregs;
    registers
        .get(libc::REG_RIP as usize)
        .map_or(0, |at| *at as usize)
}

#[cfg(target_arch = "aarch64")]
fn place(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.pc as usize
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn place(_: &libc::ucontext_t) -> usize {
    0
}

/// Has the signal handled; it stays so.
fn handled() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        // SAFETY: all zeros are a value of the structure, whose mask is empty then.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = note as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        // SAFETY: the handler is async-signal-safe, and lives as long as the process.
        unsafe {
            libc::sigaction(libc::SIGPROF, &raw const action, std::ptr::null_mut());
        }
    });
}

impl Probe {
    /// Begins to look at the calling thread; none where the system gives no timer.
    #[must_use]
    pub fn begin() -> Option<Self> {
        handled();
        let ring = Ring::take();
        // SAFETY: all zeros are a value of the structure.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGPROF;
        event.sigev_value.sival_ptr = std::ptr::from_ref(ring).cast_mut().cast();
        let mut timer = std::ptr::null_mut();
        let every = libc::timespec {
            tv_sec: 0,
            tv_nsec: INTERVAL,
        };
        let times = libc::itimerspec {
            it_interval: every,
            it_value: every,
        };
        // SAFETY: both structures live through the calls; the timer is of the calling thread, and so is the clock.
        unsafe {
            event.sigev_notify_thread_id = libc::gettid();
            let clock = libc::CLOCK_THREAD_CPUTIME_ID;
            if libc::timer_create(clock, &raw mut event, &raw mut timer) != 0 {
                return None;
            }
            libc::timer_settime(timer, 0, &raw const times, std::ptr::null_mut());
        }
        Some(Self { ring, timer })
    }

    /// Ends it; the addresses at which the thread was.
    #[must_use]
    pub fn end(self) -> Vec<usize> {
        let noted = self.ring.noted.load(Ordering::Relaxed).min(MOST);
        let places = self.ring.places.iter().take(noted);
        places.map(|p| p.load(Ordering::Relaxed)).collect()
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // SAFETY: the timer was made by `begin` and is ended once.
        unsafe {
            libc::timer_delete(self.timer);
        }
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(self.ring);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_thread_that_works_is_seen_and_one_that_has_ended_no_more() {
        let worker = std::thread::spawn(|| {
            let probe = Probe::begin();
            let (mut sum, began) = (0_u64, Instant::now());
            let seen = |p: &Probe| p.ring.noted.load(Ordering::Relaxed);
            while probe.as_ref().is_some_and(|p| seen(p) < 3)
                && began.elapsed() < Duration::from_secs(30)
            {
                sum = std::hint::black_box(sum.wrapping_mul(31) + 1);
            }
            probe
        });
        let probe = worker.join().ok().flatten();
        let places = probe.map(Probe::end).unwrap_or_default();
        assert!(places.len() >= 3 && !places.contains(&0), "{places:?}");
    }
}
