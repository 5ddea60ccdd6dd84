//! A guest that runs: packets in, fates out. `start.rs` has its beginning, `end.rs` its end.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::command::Spec;
use crate::end::END;
use crate::error::GuestError;
use crate::polling::Polling;
use crate::port::{BURST, DROP, ON, Packet, Port};
use crate::protect::{self, Protection};
use crate::room::Room;
use crate::sent::{self, Sent};
use crate::shared::{Over, Shared, Stage, lock, monotonic, over, own_number};
use crate::thread::{self, Context, Running, Stop};
use crate::trap::Left;

/// A hosted guest.
pub struct Hosted {
    pub(crate) shared: Arc<Shared>,
    pub(crate) context: Option<Context>,
    /// as its packets' thread is run
    pub(crate) running: Option<Running>,
    pub(crate) over: Option<Over>,
    /// time from the first mapping until its first instruction
    pub mapped: Duration,
    /// time from the first mapping until it asked for packets
    pub took: Duration,
    /// where its packets are copied to, if they are
    pub(crate) room: Option<Room>,
    /// what it sent that is none of a burst's, until somebody takes it
    pub sent: Vec<Sent>,
    /// of a guest that polls
    pub(crate) polling: Option<Polling>,
    /// the end of its standard input that it is not, if that is a pipe: it ends when this is dropped
    pub(crate) input: Option<OwnedFd>,
}

impl Hosted {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// How it was made.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.shared.spec
    }

    /// Its slot's number.
    #[must_use]
    pub fn slot(&self) -> u32 {
        self.shared.slot.number()
    }

    /// Why it does not run any more, if it does not.
    #[must_use]
    pub fn over(&self) -> Option<&Over> {
        self.over.as_ref()
    }

    /// Denied requests, and how often.
    #[must_use]
    pub fn notes(&self) -> Vec<(String, u64)> {
        self.shared
            .state()
            .notes
            .iter()
            .map(|(what, n)| (what.clone(), *n))
            .collect()
    }

    /// The most writable memory it had, bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.shared.state().space.peak
    }

    /// How it is kept from the memory of others.
    #[must_use]
    pub fn protection(&self) -> Protection {
        self.shared.domain.protection()
    }

    /// Where what it shares with the host lies: an address that is its own, for messages and tests.
    #[must_use]
    pub fn port_address(&self) -> usize {
        self.shared.port_address()
    }

    /// Gives it packets, at most [`BURST`], and lets it run until it wants more. After that `fate` of each says
    /// what it decided. False when it does not run (any more); then all packets go on.
    ///
    /// # Safety
    /// Each packet's bytes are valid, and nobody else's, during the call.
    pub unsafe fn burst(&mut self, packets: &mut [Packet]) -> bool {
        let most = packets.len().min(BURST);
        let mut rest = packets.get_mut(..most).unwrap_or(&mut []);
        loop {
            let fits = match &self.room {
                Some(room) => room.fits(rest),
                None => rest.len(),
            };
            let (part, after) = std::mem::take(&mut rest).split_at_mut(fits.min(most));
            // SAFETY: as the caller promises.
            if !unsafe { self.part(part) } {
                return false;
            }
            if after.is_empty() || fits == 0 {
                return true;
            }
            rest = after;
        }
    }

    /// A burst, or as much of it as there is room for.
    ///
    /// # Safety
    /// As [`Hosted::burst`].
    unsafe fn part(&mut self, packets: &mut [Packet]) -> bool {
        if self.polling.is_some() {
            // SAFETY: as the caller promises.
            return unsafe { self.poll(packets) };
        }
        if self.context.is_none() {
            return false;
        }
        protect::open();
        let count = packets.len();
        let port = self.shared.port as *mut Port;
        // SAFETY: the port is mapped as long as the slot is, and its guest does not run now. No reference is made,
        // because threads of the guest's may write to it.
        unsafe {
            std::ptr::copy_nonoverlapping(
                packets.as_ptr(),
                (&raw mut (*port).packets).cast(),
                count,
            );
            (&raw mut (*port).count).write(count as u32);
            (&raw mut (*port).next).write(0);
            if let Some(room) = &mut self.room {
                room.fill(packets, port);
            }
        }
        let alarm = self.shared.alarm.load(Ordering::Relaxed);
        if alarm != 0 && alarm <= monotonic() {
            self.signal_due(libc::SIGALRM);
        }
        let mut went = self.resume();
        // A handler was called first, or the program looked up before it took all: it is let on.
        let mut turns = 0;
        while went && turns < count + 2 {
            // SAFETY: as above.
            let next = unsafe { (&raw const (*port).next).read() };
            if next as usize >= count {
                break;
            }
            turns += 1;
            went = self.resume();
        }
        self.collect();
        if went {
            // SAFETY: as above.
            let decided = unsafe { (&raw const (*port).packets).cast::<Packet>() };
            for (index, packet) in packets.iter_mut().enumerate() {
                // SAFETY: as above; there are no more packets than the array has places.
                let fate = unsafe { (&raw const (*decided.add(index)).fate).read() };
                packet.fate = if fate == ON { ON } else { DROP };
            }
            if let Some(room) = &self.room {
                // SAFETY: the packets that were copied in, as long as they were.
                unsafe { room.back(packets, |_, packet| packet.length) };
            }
        }
        went
    }

    /// Takes what it has sent.
    pub(crate) fn collect(&mut self) {
        // SAFETY: the port is mapped as long as the slot is.
        unsafe { sent::take(self.shared.port as *mut Port, &mut self.sent) };
        if self.shared.has_sent.load(Ordering::Acquire) {
            self.shared.has_sent.store(false, Ordering::Relaxed);
            self.sent.append(&mut lock(&self.shared.sends));
        }
    }

    /// Lets it run without packets, as at the end of a time-out.
    pub fn idle(&mut self) {
        // SAFETY: no packets.
        unsafe { self.burst(&mut []) };
    }

    /// Has the handler of a signal called when it runs next; false when there is none.
    pub(crate) fn signal_due(&mut self, signal: i32) -> bool {
        let state = self.shared.state();
        let Some((handler, with_info)) = state.signals.handler(signal) else {
            return false;
        };
        let next = if signal == libc::SIGALRM {
            state.signals.next_alarm(monotonic())
        } else {
            None
        };
        drop(state);
        if signal == libc::SIGALRM {
            self.shared
                .alarm
                .store(next.unwrap_or(0), Ordering::Relaxed);
        }
        let port = self.shared.port as *mut Port;
        // SAFETY: as in `burst`.
        unsafe {
            (&raw mut (*port).handler).write(handler as u64);
            (&raw mut (*port).with_info).write(u32::from(with_info));
            (&raw mut (*port).signal).write(signal as u32);
        }
        true
    }

    /// Runs it on this thread until it asks again. False when it does not run any more.
    // As `thread::run`.
    #[inline]
    pub(crate) fn resume(&mut self) -> bool {
        let Some(context) = self.context.take() else {
            return false;
        };
        let running = self
            .running
            .get_or_insert_with(|| Running::new(&self.shared, &context, true));
        self.shared.watch.enter(own_number());
        let stop = thread::run(running, &context);
        self.shared.watch.leave();
        match stop {
            Ok(Stop::Receive(context)) if !self.shared.is_dead() => {
                self.context = Some(context);
                true
            }
            stop => self.stopped(stop),
        }
    }

    /// It does not run any more.
    #[cold]
    fn stopped(&mut self, stop: Result<Stop, GuestError>) -> bool {
        match stop {
            Ok(Stop::Receive(_)) => {}
            Ok(Stop::Left(Left::Thread)) => {
                // The others may have work left: what the packets' thread found is often told by the first.
                let deadline = Instant::now() + END;
                self.wait_threads(deadline);
                self.shared.end(Over::Exit(0));
            }
            Ok(Stop::Left(left)) => self.shared.end(over(left)),
            Ok(Stop::Blocked(_)) => self.shared.end(Over::Host("it waits".into())),
            Err(error) => self.shared.end(Over::Host(error.to_string())),
        }
        self.settle();
        false
    }

    /// Switches to it and back so often, without packets and without the watchdog, for as long as it asks for more:
    /// for measuring. Gives how often.
    #[doc(hidden)]
    pub fn switches(&mut self, rounds: u32) -> u32 {
        protect::open();
        for round in 0..rounds {
            let Some(context) = self.context.take() else {
                return round;
            };
            let running = self
                .running
                .get_or_insert_with(|| Running::new(&self.shared, &context, true));
            match thread::run(running, &context) {
                Ok(Stop::Receive(context)) => self.context = Some(context),
                _ => return round,
            }
        }
        rounds
    }

    /// Takes note of why it ended.
    pub(crate) fn settle(&mut self) {
        if let Stage::Over(over) = &*lock(&self.shared.stage) {
            self.over = Some(over.clone());
        }
    }
}
