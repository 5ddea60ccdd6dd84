//! Waking a worker that waits for packets, when another one hands it some.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rustix::event::{EventfdFlags, epoll, eventfd};

/// One worker's bell. The worker waits for the bell and its queue together.
pub struct Bell {
    asleep: AtomicBool,
    /// it was rung and not silenced since
    rung: AtomicBool,
    bell: OwnedFd,
    /// both
    both: OwnedFd,
}

impl Bell {
    /// For a worker whose queue has this descriptor, if it has one.
    pub fn new(queue: Option<RawFd>) -> std::io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let both = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let readable = epoll::EventFlags::IN;
        epoll::add(&both, &bell, epoll::EventData::new_u64(0), readable)?;
        if let Some(queue) = queue {
            // SAFETY: the queue holds it open for as long as it lives, which is now.
            let queue = unsafe { std::os::fd::BorrowedFd::borrow_raw(queue) };
            epoll::add(&both, queue, epoll::EventData::new_u64(1), readable)?;
        }
        Ok(Self {
            asleep: AtomicBool::new(false),
            rung: AtomicBool::new(false),
            bell,
            both,
        })
    }

    /// Wakes the worker if it waits. What was handed over before is what it will find.
    pub fn ring(&self) {
        // With the fence of `asleep`: either this sees that the worker waits, or the worker sees what was
        // handed over before it waits.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            // A counter that is full rings too.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
            // Last: who sees this finds the bell rung.
            self.rung.store(true, Ordering::Release);
        }
    }

    /// The worker is about to wait, and looks once more for what it was handed.
    pub fn asleep(&self) -> RawFd {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.both.as_raw_fd()
    }

    /// The worker is back, or never waited: mostly this costs two loads.
    pub fn awake(&self) {
        if self.asleep.load(Ordering::Relaxed) {
            self.asleep.store(false, Ordering::Relaxed);
        }
        if self.rung.load(Ordering::Acquire) {
            self.rung.store(false, Ordering::Relaxed);
            let mut count = [0_u8; 8];
            let _ = rustix::io::read(&self.bell, &mut count);
        }
    }
}
