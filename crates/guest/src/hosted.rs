//! A guest that runs: packets in, fates out. `start.rs` has its beginning, `end.rs` its end.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::command::Spec;
use crate::end::END;
use crate::polling::Polling;
use crate::port::{BURST, Packet, Port};
use crate::sent::{self, Sent};
use crate::shared::{Over, Shared, Stage, lock, monotonic, over, own_number};
use crate::thread::{self, Context, Stop};
use crate::trap::Left;

/// A hosted guest.
pub struct Hosted {
    pub(crate) shared: Arc<Shared>,
    pub(crate) context: Option<Context>,
    pub(crate) over: Option<Over>,
    /// time from the first mapping until it asked for packets
    pub took: Duration,
    /// what it sent that is none of a burst's, until somebody takes it
    pub sent: Vec<Sent>,
    /// of a guest that polls
    pub(crate) polling: Option<Polling>,
    /// the end of its standard input that it is not, if that is a pipe: it ends when this is dropped
    pub(crate) input: Option<OwnedFd>,
}

impl Hosted {
    /// What it is called.
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

    /// What it asked for and did not get, and how often.
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

    /// Gives it packets, at most [`BURST`], and lets it run until it wants more. After that `fate` of each says
    /// what it decided. False when it does not run (any more); then all packets go on.
    ///
    /// # Safety
    /// Each packet's bytes are valid, and nobody else's, during the call.
    pub unsafe fn burst(&mut self, packets: &mut [Packet]) -> bool {
        if self.polling.is_some() {
            // SAFETY: as the caller promises.
            return unsafe { self.poll(packets) };
        }
        if self.context.is_none() {
            return false;
        }
        let count = packets.len().min(BURST);
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
            for (index, packet) in packets.iter_mut().take(count).enumerate() {
                // SAFETY: as above; `index` is below the array's length.
                packet.fate = unsafe {
                    (&raw const (*port).packets)
                        .cast::<Packet>()
                        .add(index)
                        .read()
                        .fate
                };
            }
        }
        went
    }

    /// Takes what it has sent.
    pub(crate) fn collect(&mut self) {
        // SAFETY: the port is mapped as long as the slot is.
        unsafe { sent::take(self.shared.port as *mut Port, &mut self.sent) };
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
    pub(crate) fn resume(&mut self) -> bool {
        let Some(context) = self.context.take() else {
            return false;
        };
        self.shared.watch.enter(own_number());
        let stop = thread::run(&self.shared, &context, true);
        self.shared.watch.leave();
        match stop {
            Ok(Stop::Receive(context)) if !self.shared.is_dead() => {
                self.context = Some(context);
                return true;
            }
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

    /// Takes note of why it ended.
    pub(crate) fn settle(&mut self) {
        if let Stage::Over(over) = &*lock(&self.shared.stage) {
            self.over = Some(over.clone());
        }
    }
}
