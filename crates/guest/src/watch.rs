//! The watchdog: a guest that keeps a worker too long is taken out of it.
//!
//! The worker only counts its visits, which costs it two stores; a thread of the watchdog's looks now and then
//! whether a visit is still the one that it saw before, and measures the time itself.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::shared::Shared;
use crate::trap::kick;

/// How often it looks.
const LOOK: Duration = Duration::from_millis(10);

/// A guest's visits by workers.
#[derive(Debug)]
pub struct Watch {
    /// the kernel's number of the thread that is in the guest; 0: none
    thread: AtomicI32,
    /// visits so far
    visit: AtomicU64,
    /// the visit that is overdue; 0: none
    overdue: AtomicU64,
    limit: Duration,
}

impl Watch {
    /// Visits may take this long.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self {
            thread: AtomicI32::new(0),
            visit: AtomicU64::new(0),
            overdue: AtomicU64::new(0),
            limit,
        }
    }

    /// A visit begins. There is one at a time.
    pub fn enter(&self, thread: i32) {
        let visit = self.visit.load(Ordering::Relaxed);
        self.visit.store(visit + 1, Ordering::Relaxed);
        self.thread.store(thread, Ordering::Release);
    }

    /// It ends.
    pub fn leave(&self) {
        self.thread.store(0, Ordering::Release);
    }

    /// Whether the present visit takes too long.
    #[must_use]
    pub fn overdue(&self) -> bool {
        self.overdue.load(Ordering::Relaxed) == self.visit.load(Ordering::Relaxed)
    }

    /// Interrupts the worker that is in the guest, if one is.
    pub fn kick(&self) {
        signal(self.thread.load(Ordering::Acquire));
    }
}

/// Sends a thread of this process the kick; one that has ended is none.
pub fn signal(thread: i32) {
    if thread != 0 {
        // SAFETY: the handler is installed before any thread is known here; a number that is not one of ours gets
        // ESRCH.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, kick()) };
    }
}

static WATCHED: Mutex<(Vec<Weak<Shared>>, bool)> = Mutex::new((Vec::new(), false));

/// Has the watchdog look after a guest, for as long as there is one.
pub fn watch(guest: Weak<Shared>) {
    let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    watched.0.push(guest);
    if !watched.1 {
        let thread = std::thread::Builder::new().name("guest watchdog".into());
        let watching = || {
            millrace_dataplane::privilege::none_here();
            look();
        };
        watched.1 = thread.spawn(watching).is_ok();
    }
}

fn look() {
    // For each guest, by its address: the visit that was seen, and since when.
    let mut seen: Vec<(usize, u64, Instant)> = Vec::new();
    loop {
        std::thread::sleep(LOOK);
        let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        watched.0.retain(|guest| guest.strong_count() > 0);
        if watched.0.is_empty() {
            watched.1 = false;
            return;
        }
        let guests: Vec<_> = watched.0.iter().filter_map(Weak::upgrade).collect();
        drop(watched);
        let before = std::mem::take(&mut seen);
        for guest in guests {
            let watch = &guest.watch;
            if watch.thread.load(Ordering::Acquire) == 0 {
                continue;
            }
            let (key, visit) = (
                std::ptr::from_ref(&*guest).addr(),
                watch.visit.load(Ordering::Relaxed),
            );
            let since = before.iter().find(|(k, v, _)| *k == key && *v == visit);
            let since = since.map_or_else(Instant::now, |(_, _, since)| *since);
            seen.push((key, visit, since));
            if since.elapsed() >= watch.limit {
                watch.overdue.store(visit, Ordering::Relaxed);
                watch.kick();
            }
        }
    }
}
