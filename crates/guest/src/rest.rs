//! A guest at rest: its threads kept where they are, their registers known.
//!
//! The packets' own thread is at rest whenever it asks for packets. Any other is interrupted (by the kick of
//! `trap.rs`) and stays in the handler of that signal, whose frame holds all of its registers; one that was in a
//! system call that waits makes the call again when it goes on. A thread that asks for packets which another one
//! gets is at rest already.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::shared::{Shared, lock, own_number};
use crate::thread::Context;
use crate::trap::Frame;
use crate::watch;

/// How long threads may take to come to rest: a call that writes to a disk is not interrupted.
const LIMIT: Duration = Duration::from_secs(2);
/// How often one that has not come is interrupted again: a kick between its look at the flag and its wait is lost.
const AGAIN: Duration = Duration::from_millis(1);

/// A thread that was interrupted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    /// thread number, as the guest knows it
    pub number: i32,
    /// as `Context::clear`
    pub clear: usize,
    /// FS base
    pub fs: usize,
    /// in the order of `libc::REG_*`
    pub registers: Vec<i64>,
    /// x87, SSE and what lies behind (`struct _fpstate` of the signal frame)
    pub extended: Vec<u8>,
}

/// State that threads read, and where they leave their registers.
#[derive(Default)]
pub struct Rest {
    wanted: AtomicBool,
    threads: Mutex<Threads>,
    changed: Condvar,
}

#[derive(Default)]
struct Threads {
    /// by the kernel's number
    parked: BTreeMap<i32, Parked>,
    /// by the kernel's number: those that wait for packets which another one gets
    asking: BTreeMap<i32, Context>,
    /// by the guest's number: those that come from elsewhere and have not begun
    thawing: BTreeMap<i32, Parked>,
}

impl Rest {
    /// Whether threads are to come to rest.
    pub fn wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// This thread waits for packets for ever.
    pub fn asks(&self, context: Context) {
        lock(&self.threads).asking.insert(own_number(), context);
        self.changed.notify_all();
    }

    /// It has ended.
    pub fn asks_no_more(&self) {
        lock(&self.threads).asking.remove(&own_number());
    }

    /// Has a thread begin with these registers.
    pub fn thaw(&self, parked: Parked) {
        lock(&self.threads).thawing.insert(parked.number, parked);
    }

    /// The registers that a thread begins with.
    pub fn thawed(&self, number: i32) -> Option<Parked> {
        lock(&self.threads).thawing.remove(&number)
    }
}

/// Keeps this thread, which is in a handler, until the guest goes on.
pub fn park(guest: &Arc<Shared>, parked: Parked) {
    let rest = &guest.rest;
    let own = own_number();
    let mut threads = lock(&rest.threads);
    threads.parked.insert(own, parked);
    rest.changed.notify_all();
    while rest.wanted() && !guest.is_dead() {
        threads = rest
            .changed
            .wait_timeout(threads, Duration::from_millis(50))
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    }
    threads.parked.remove(&own);
}

/// The threads of a guest besides the packets' own, at rest for as long as this value lives.
pub struct Still {
    guest: Arc<Shared>,
    /// those that were interrupted
    pub parked: Vec<Parked>,
    /// those that ask for packets
    pub asking: Vec<Context>,
}

impl Drop for Still {
    fn drop(&mut self) {
        self.guest.rest.wanted.store(false, Ordering::Relaxed);
        self.guest.rest.changed.notify_all();
    }
}

/// Brings all threads to rest but the packets' own, which is.
///
/// # Errors
/// How many did not come to rest.
pub fn still(guest: &Arc<Shared>) -> Result<Still, usize> {
    let rest = &guest.rest;
    let mut still = Still {
        guest: guest.clone(),
        parked: Vec::new(),
        asking: Vec::new(),
    };
    rest.wanted.store(true, Ordering::Relaxed);
    let deadline = Instant::now() + LIMIT;
    loop {
        let running: Vec<i32> = lock(&guest.threads).iter().copied().collect();
        let threads = lock(&rest.threads);
        let resting = |n: &i32| threads.parked.contains_key(n) || threads.asking.contains_key(n);
        let living = guest.living.load(Ordering::Acquire);
        let missing = living.saturating_sub(running.iter().filter(|n| resting(n)).count());
        if missing == 0 {
            still.parked = threads.parked.values().cloned().collect();
            still.asking = threads.asking.values().copied().collect();
            return Ok(still);
        }
        if Instant::now() >= deadline {
            return Err(missing);
        }
        for thread in running.iter().filter(|n| !threads.parked.contains_key(n)) {
            watch::signal(*thread);
        }
        drop(
            rest.changed
                .wait_timeout(threads, AGAIN)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }
}

/// Where `struct _fpx_sw_bytes` stands in the legacy area, and the mark that an extended area follows
/// (asm/sigcontext.h).
const SOFTWARE: usize = 464;
const LEGACY: usize = 512;
const MARK: u32 = 0x4650_5853;
/// The bit of the protection keys' rights among the states (Intel SDM volume 1, 13.1).
const KEYS: u32 = 9;
/// The largest area that is believed, bytes: AMX's tiles take 8 KiB.
pub const MOST_EXTENDED: usize = 32 << 10;

/// How long the area at `area` is, without the mark at its end.
///
/// # Safety
/// `area` is a signal frame's `fpregs`, which is at least the legacy area.
unsafe fn length(area: *const u8) -> usize {
    let word = |at: usize| {
        let mut bytes = [0; 4];
        // SAFETY: within the legacy area.
        unsafe { std::ptr::copy_nonoverlapping(area.add(SOFTWARE + at), bytes.as_mut_ptr(), 4) };
        u32::from_le_bytes(bytes)
    };
    if word(0) == MARK {
        // magic1, extended_size, xfeatures (8 bytes), xstate_size
        (word(16) as usize).clamp(LEGACY, MOST_EXTENDED)
    } else {
        LEGACY
    }
}

/// The registers of a frame.
///
/// # Safety
/// `area` is the frame's `fpregs`, or null.
pub unsafe fn registers(frame: &Frame<'_>, area: *const u8, number: i32, clear: usize) -> Parked {
    let mut extended = Vec::new();
    if !area.is_null() {
        // SAFETY: as the caller promises.
        extended = unsafe { std::slice::from_raw_parts(area, length(area)) }.to_vec();
    }
    Parked {
        number,
        clear,
        fs: *frame.fs,
        registers: frame.registers.to_vec(),
        extended,
    }
}

/// Makes a frame go on with these registers. False when they do not fit: then nothing is changed.
///
/// # Safety
/// As [`registers`].
pub unsafe fn replace(frame: &mut Frame<'_>, area: *mut u8, parked: &Parked) -> bool {
    let saved = &parked.extended;
    if !area.is_null() && !saved.is_empty() {
        // SAFETY: as the caller promises; nothing else refers to the frame's area.
        let live = unsafe { std::slice::from_raw_parts_mut(area, length(area)) };
        let mut new = saved.clone();
        if saved.len() < LEGACY || saved.len() > live.len() {
            return false;
        }
        new.resize(live.len(), 0);
        // What the kernel says of the area is of this frame.
        copy(&mut new, live, SOFTWARE, LEGACY - SOFTWARE);
        if live.len() > LEGACY + 8 {
            // Rights to memory are given by keys, which are of this process.
            let keys = std::arch::x86_64::__cpuid_count(0xd, KEYS).ebx as usize;
            let (was, had) = (word(saved, LEGACY), word(live, LEGACY));
            let bit = 1 << KEYS;
            let present = was & !bit | had & bit;
            if let Some(place) = new.get_mut(LEGACY..LEGACY + 8) {
                place.copy_from_slice(&present.to_le_bytes());
            }
            if keys >= LEGACY {
                copy(&mut new, live, keys, 8);
            }
        }
        live.copy_from_slice(&new);
    }
    /// what the kernel tells of the signal, and the segments, are of this frame
    const KEPT: [i32; 5] = [
        libc::REG_CSGSFS,
        libc::REG_ERR,
        libc::REG_TRAPNO,
        libc::REG_OLDMASK,
        libc::REG_CR2,
    ];
    for (index, value) in parked.registers.iter().enumerate() {
        if !KEPT.contains(&(index as i32)) {
            frame.set(index as i32, *value as usize);
        }
    }
    *frame.fs = parked.fs;
    true
}

fn copy(to: &mut [u8], from: &[u8], at: usize, count: usize) {
    if let (Some(to), Some(from)) = (to.get_mut(at..at + count), from.get(at..at + count)) {
        to.copy_from_slice(from);
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
    word.map_or(0, u64::from_le_bytes)
}
