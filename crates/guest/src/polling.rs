//! Guests that poll for packets and say what becomes of each: programs of DPDK.
//!
//! Such a program may have several threads that poll, of which the worker runs each in turn (adoption), and one of
//! these may come to wait for something else: then it goes on on a thread of its own (demotion), until it asks for
//! packets again. A burst is over when its packets have been handed out and each was sent or freed.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::command::Spec;
use crate::end::END;
use crate::error::GuestError;
use crate::hosted::Hosted;
use crate::port::{BURST, Packet, Port};
use crate::protect;
use crate::shared::{Over, describe, lock, over, own_number};
use crate::thread::{self, Context, Running, Stop};
use crate::trap::Left;

/// Rounds in a row without anything but asking, before a guest counts as one that polls and does nothing else:
/// programs look for packets a few times before they begin, to empty their ports.
const SETTLED: u32 = 256;
/// How long rounds are to have been so, if meanwhile some of its other threads never wait: one of them may be on its
/// way to asking, and not have had the processor yet.
const CALM: Duration = Duration::from_millis(200);
/// A round that takes longer did something else.
const QUICK: Duration = Duration::from_millis(1);
/// How long it may take until a guest has settled.
const SETTLE: Duration = Duration::from_secs(10);
/// Rounds that a guest may leave packets untaken.
const UNTAKEN: u32 = 64;
/// Rounds that a guest gets to do something about packets that it has neither sent nor freed. Those that it holds
/// back longer, to gather more of them, leave later and as others.
const HOLD: u32 = 2;
/// Bytes behind a packet's copy for what a guest puts before or behind it: headers of tunnels take 20 to 70.
const GROWTH: u32 = 128;
/// How long a guest may take to notice that its input has ended.
const NOTICE: Duration = Duration::from_secs(3);

/// State of a polling guest.
#[derive(Debug, Default)]
pub(crate) struct Polling {
    /// its threads that ask for packets, in the order that they run in
    contexts: Vec<Context>,
    turn: u32,
    /// packets that no receive took
    pub(crate) untaken: u64,
}

/// What the preload is told: how much memory EAL takes, and the first port's address.
pub(crate) fn environment(spec: &Spec) -> Vec<String> {
    let mib = (spec.budget >> 20) / 2;
    let mut variables = vec![format!("MILLRACE_DPDK_MEMORY={mib}")];
    variables.extend(
        spec.mac
            .iter()
            .map(|mac| format!("MILLRACE_DPDK_MAC={mac}")),
    );
    variables
}

impl Hosted {
    /// Whether it has packets that it has neither sent nor freed: it may be waiting for more before it sends them.
    #[must_use]
    pub fn holds(&self) -> bool {
        if self.polling.is_none() || self.over.is_some() {
            return false;
        }
        protect::open();
        // SAFETY: as in `poll`.
        let held = unsafe { (&raw const (*self.port()).held).read() };
        held > 0
    }

    pub(crate) fn port(&self) -> *mut Port {
        self.shared.port_address() as *mut Port
    }

    /// After the first time that a guest has asked: if it polls, lets it come to where it does nothing else.
    pub(crate) fn settle_polling(&mut self) -> Result<(), GuestError> {
        if !self.shared.polls() {
            return Ok(());
        }
        self.shared.arrivals.polling.store(true, Ordering::Relaxed);
        if let Some(room) = &mut self.room {
            room.grow(GROWTH);
        }
        self.polling = Some(Polling {
            contexts: self.context.take().into_iter().collect(),
            ..Polling::default()
        });
        let deadline = Instant::now() + SETTLE;
        let mut quiet = 0;
        let mut since = Instant::now();
        while quiet < SETTLED || since.elapsed() < CALM && !self.others_wait() {
            let begin = Instant::now();
            if begin >= deadline {
                break;
            }
            let threads = self.threads();
            if !self.round() {
                let what = self.over.as_ref().map(describe).unwrap_or_default();
                return Err(self.not_started(what));
            }
            let same = threads == self.threads() && begin.elapsed() < QUICK;
            if !same {
                (quiet, since) = (0, Instant::now());
                continue;
            }
            quiet += 1;
        }
        Ok(())
    }

    /// Whether all of its threads that the worker does not run wait for something, as the kernel says
    /// (`/proc/PID/task/TID/stat`: the state stands behind the name).
    fn others_wait(&self) -> bool {
        let threads = lock(&self.shared.threads);
        let begun = self.shared.living.load(Ordering::Acquire) == threads.len();
        let waits = |number: &i32| {
            let stat = std::fs::read_to_string(format!("/proc/self/task/{number}/stat"));
            // One that cannot be asked has ended.
            stat.map_or(true, |stat| {
                let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
                state.is_some_and(|rest| rest.starts_with('S'))
            })
        };
        begun && threads.iter().all(waits)
    }

    fn threads(&self) -> usize {
        self.polling.as_ref().map_or(0, |p| p.contexts.len())
    }

    /// Lets each of its threads that ask for packets run until it asks again. False when it does not run any more.
    // As `thread::run`.
    #[inline(always)]
    fn round(&mut self) -> bool {
        self.adopt();
        let port = self.port();
        let mut index = 0;
        while let Some(polling) = &mut self.polling
            && index < polling.contexts.len()
        {
            let Some(context) = polling.contexts.get(index).copied() else {
                break;
            };
            // SAFETY: the port is mapped as long as the slot is. No reference is made.
            unsafe { (&raw mut (*port).running).write(context.fs as u64) };
            self.shared.watch.enter(own_number());
            let running = self
                .running
                .get_or_insert_with(|| Running::new(&self.shared, &context, true));
            running.turn_to(&context);
            let stop = thread::run(running, &context);
            self.shared.watch.leave();
            // SAFETY: as above.
            unsafe { (&raw mut (*port).running).write(0) };
            match stop {
                Ok(Stop::Receive(context)) => {
                    if let Some(place) = polling.contexts.get_mut(index) {
                        *place = context;
                    }
                    index += 1;
                }
                stop => {
                    polling.contexts.remove(index);
                    self.gone_from(stop);
                }
            }
            if self.shared.is_dead() {
                self.settle();
                return false;
            }
        }
        true
    }

    /// One of its threads does not ask for packets any more.
    #[cold]
    fn gone_from(&self, stop: Result<Stop, GuestError>) {
        let ended = match stop {
            Ok(Stop::Blocked(saved)) => match self.shared.demote(saved) {
                Ok(()) => return,
                Err(error) => Over::Host(error.to_string()),
            },
            Ok(Stop::Receive(_) | Stop::Left(Left::Thread)) => return,
            Ok(Stop::Left(left)) => over(left),
            Err(error) => Over::Host(error.to_string()),
        };
        self.shared.end(ended);
    }

    /// Takes in threads that have asked for packets; where there is none, waits for one.
    fn adopt(&mut self) {
        // A burst asks for the time only where there is something to wait for.
        let mut deadline = None;
        loop {
            if self.shared.arrivals.count.load(Ordering::Acquire) > 0 {
                let mut asking = lock(&self.shared.arrivals.asking);
                self.shared.arrivals.count.store(0, Ordering::Relaxed);
                if let Some(polling) = &mut self.polling {
                    polling.contexts.append(&mut asking);
                }
            }
            if self.threads() > 0 || self.shared.is_dead() {
                return;
            }
            if self.shared.living.load(Ordering::Acquire) == 0 {
                self.shared.end(Over::Exit(0));
                continue;
            }
            let limit = self.shared.spec.limit;
            if Instant::now() >= *deadline.get_or_insert_with(|| Instant::now() + limit) {
                self.shared.end(Over::Stuck(0));
            }
            // It is on its way from one thread to another, which takes some tens of microseconds.
            std::thread::yield_now();
        }
    }

    /// As [`Hosted::burst`].
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn poll(&mut self, packets: &mut [Packet]) -> bool {
        protect::open();
        let count = packets.len().min(BURST);
        let port = self.port();
        let Some(polling) = &mut self.polling else {
            return false;
        };
        if self.over.is_some() {
            return false;
        }
        polling.turn = polling.turn.wrapping_add(1).max(1);
        // SAFETY: the port is mapped as long as the slot is, and the thread of the guest's that minds it does not
        // run now. No reference is made, because others may write to it.
        unsafe {
            std::ptr::copy_nonoverlapping(
                packets.as_ptr(),
                (&raw mut (*port).packets).cast(),
                count,
            );
            (&raw mut (*port).next).write(0);
            (&raw mut (*port).kept).write(0);
            (&raw mut (*port).cursor).write([0, 0]);
            (&raw mut (*port).turn).write(polling.turn);
            (&raw mut (*port).count).write(count as u32);
            if let Some(room) = &mut self.room {
                room.fill(packets, port);
            }
        }
        // SAFETY: as above.
        let progress = || unsafe {
            let next = (&raw const (*port).next).read();
            let kept = (&raw const (*port).kept).read();
            (next, kept)
        };
        let mut before = (0, 0);
        let mut idle = 0;
        let went = loop {
            if !self.round() {
                break false;
            }
            let now = progress();
            let (next, kept) = now;
            if next as usize >= count && kept == 0 {
                break true;
            }
            if now != before {
                (before, idle) = (now, 0);
                continue;
            }
            idle += 1;
            if idle
                >= if (next as usize) < count {
                    UNTAKEN
                } else {
                    HOLD
                }
            {
                break true;
            }
        };
        self.collect();
        // SAFETY: as above.
        unsafe { (&raw mut (*port).count).write(0) };
        if went {
            self.take_back(packets, count);
        }
        went
    }

    /// Lets it end: its threads run by themselves, its input ends, and if it does not mind that, it gets the
    /// signals that a user would end it with.
    pub(crate) fn finish_polling(&mut self) {
        let deadline = Instant::now() + END;
        if self.over.is_none() {
            self.adopt();
        }
        let contexts = match &mut self.polling {
            Some(polling) => std::mem::take(&mut polling.contexts),
            None => Vec::new(),
        };
        self.shared.arrivals.closing.store(true, Ordering::Relaxed);
        // SAFETY: as in `poll`.
        unsafe { (&raw mut (*self.port()).ended).write(1) };
        self.release(contexts);
        let reads = self.shared.arrivals.input.load(Ordering::Relaxed);
        self.input = None;
        if reads {
            self.wait_end(deadline.min(Instant::now() + NOTICE));
        }
        for signal in [libc::SIGINT, libc::SIGTERM] {
            if !self.shared.is_dead() && self.signal_due(signal) {
                self.wait_end(deadline.min(Instant::now() + NOTICE));
            }
        }
        if let Some(polling) = &self.polling {
            let mut state = self.shared.state();
            if polling.untaken > 0 {
                let count = polling.untaken;
                state.note(format!(
                    "{count} packets came in where it did not receive, and were dropped"
                ));
            }
        }
        self.shared.end(Over::Removed);
        self.settle();
    }

    /// Has threads that asked for packets run by themselves.
    fn release(&self, contexts: Vec<Context>) {
        for context in contexts {
            if let Err(error) = self.shared.spawn(context) {
                self.shared.end(Over::Host(error.to_string()));
            }
        }
    }

    fn wait_end(&self, deadline: Instant) {
        while !self.shared.is_dead() && Instant::now() < deadline {
            // One that was on its way to the worker.
            self.release(std::mem::take(&mut *lock(&self.shared.arrivals.asking)));
            let living = self.shared.living.load(Ordering::Acquire);
            if living == 0 {
                self.shared.end(Over::Exit(0));
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
