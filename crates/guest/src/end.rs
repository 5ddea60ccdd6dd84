//! The end of a guest: asked for, waited for, and at last by force.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::hosted::Hosted;
use crate::port::Port;
use crate::protect;
use crate::shared::{Over, Shared, Stage, lock};
use crate::watch;

/// How long threads of an ended guest may take to leave it.
const LEAVE: Duration = Duration::from_secs(5);
/// How long a guest that has been told that no packets will come may work on.
pub const END: Duration = Duration::from_secs(10);
/// How long a thread that will wait for a signal may take to do so.
const COMES: Duration = Duration::from_secs(1);
/// How often a guest may ask for packets after their end before it is asked to end by a signal.
const PATIENCE: u32 = 4;
/// The same where a thread of its own waits for the signal, each time after 5 ms.
const WAITING: u32 = 400;

impl Hosted {
    /// Waits until the guest is over or has no threads of its own left.
    pub(crate) fn wait_threads(&self, deadline: Instant) {
        let mut stage = lock(&self.shared.stage);
        while !matches!(*stage, Stage::Over(_)) && self.shared.living.load(Ordering::Acquire) > 0 {
            let left = deadline
                .saturating_duration_since(Instant::now())
                .min(Duration::from_millis(50));
            if left.is_zero() {
                return;
            }
            stage = self
                .shared
                .changed
                .wait_timeout(stage, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Tells it that no packets will come any more, and lets it end: first by that, then by the signals that a
    /// user would end it with, and at last by force.
    pub fn finish(&mut self) {
        protect::open();
        if self.polling.is_some() {
            self.finish_polling();
            self.clear();
            return;
        }
        let port = self.shared.port as *mut Port;
        let deadline = Instant::now() + END;
        for (signal, ended) in [
            (0, 1),
            (libc::SIGINT, 1),
            (libc::SIGTERM, 1),
            (0, 2),
            (0, 3),
        ] {
            let awaited = signal != 0 && self.comes(signal, deadline);
            if self.context.is_none() || signal != 0 && !awaited && !self.signal_due(signal) {
                continue;
            }
            // SAFETY: as in `burst`.
            unsafe { (&raw mut (*port).ended).write(ended) };
            let mut asked = 0;
            let patience = if awaited { WAITING } else { PATIENCE };
            while asked < patience && self.context.is_some() && Instant::now() < deadline {
                if awaited {
                    // The thread that waits for it runs beside this one.
                    std::thread::sleep(Duration::from_millis(5));
                    self.raised();
                }
                self.idle();
                asked += 1;
            }
        }
        if self.over.is_none() {
            self.shared.end(Over::Removed);
            self.settle();
        }
        self.clear();
    }

    /// Sends a signal to threads that wait for it, or for one that soon does: a thread that is there for signals alone may have had no processor
    /// yet. False when there is none.
    fn comes(&self, signal: i32, deadline: Instant) -> bool {
        let until = deadline.min(Instant::now() + COMES);
        loop {
            let handled = || self.shared.state().signals.handler(signal).is_some();
            if self.send(signal) {
                return true;
            }
            let alone = self.shared.living.load(Ordering::Acquire) == 0;
            if alone || self.context.is_none() || handled() || Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal to threads that wait for it; false when there are none.
    fn send(&self, signal: i32) -> bool {
        let bit = 1 << (signal - 1);
        let awaited = self.shared.awaited.load(Ordering::Acquire) & bit != 0;
        if awaited {
            self.shared.pending.fetch_or(bit, Ordering::AcqRel);
        }
        awaited
    }

    /// Has the handler called of a signal that the guest has sent itself.
    fn raised(&mut self) {
        let awaited = self.shared.awaited.load(Ordering::Acquire);
        let sent = self.shared.pending.load(Ordering::Acquire) & !awaited;
        if sent != 0 {
            self.shared
                .pending
                .fetch_and(!(sent & sent.wrapping_neg()), Ordering::AcqRel);
            self.signal_due(sent.trailing_zeros() as i32 + 1);
        }
    }

    /// Waits until no thread is in the guest any more.
    fn clear(&mut self) {
        self.context = None;
        self.shared.left();
    }

    /// The guest goes on elsewhere, or its slot is needed: nothing of it is touched any more.
    pub(crate) fn gone(&mut self) {
        self.context = None;
        self.settle();
    }
}

impl Shared {
    /// Waits until no thread is in it any more; false when some did not leave.
    pub(crate) fn left(&self) -> bool {
        self.dead.store(true, Ordering::Relaxed);
        let deadline = Instant::now() + LEAVE;
        loop {
            let threads: Vec<i32> = lock(&self.threads).iter().copied().collect();
            if self.living.load(Ordering::Acquire) == 0 {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            self.changed.notify_all();
            for thread in threads {
                watch::signal(thread);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        self.shared.end(Over::Removed);
        self.context = None;
        // A thread that ran it last remembers it, and the slot must not wait for that.
        if self.shared.left() {
            self.shared.slot.release();
        }
    }
}
