//! A guest as an element of a chain.

use std::fmt::Write;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use millrace_dataplane::worker::foreign::{Epilogue, Foreign, Given};

use crate::error::GuestError;
use crate::hosted::Hosted;
use crate::port::BURST;
use crate::shared::{Over, describe};

/// How often a guest is let run when nothing comes: as often as a program that polls an interface with a time-out.
const IDLE: Duration = Duration::from_millis(10);
/// The most notes that a report tells.
const NOTES: usize = 12;

/// A guest between other elements.
pub struct Element {
    guest: Hosted,
    /// packets that have gone past it since it failed or ended
    past: u64,
    idle: Instant,
    /// how often it may still be started again
    restarts: u32,
    /// the one that is being started
    coming: Option<Receiver<Result<Hosted, GuestError>>>,
    /// what became of those before
    former: Vec<String>,
    /// how many there were
    lives: u64,
}

impl Element {
    /// Of a guest that has been started.
    #[must_use]
    pub fn new(guest: Hosted) -> Self {
        Self {
            restarts: guest.spec().restarts,
            guest,
            past: 0,
            idle: Instant::now(),
            coming: None,
            former: Vec::new(),
            lives: 0,
        }
    }

    /// Notes what became of a guest before this one; of many, what became of the first.
    fn former(&mut self, what: String) {
        self.lives += 1;
        if self.former.len() < NOTES {
            self.former.push(what);
        }
    }

    /// Has a guest that failed started again, beside the chain, and takes it in when it is ready.
    fn revive(&mut self) {
        if let Some(coming) = &self.coming {
            let Ok(started) = coming.try_recv() else {
                return;
            };
            self.coming = None;
            let over = self.guest.over().map(describe).unwrap_or_default();
            match started {
                Ok(guest) => {
                    let past = self.past;
                    self.former(format!(
                        "{over}; {past} packets went past it until it was started again"
                    ));
                    self.past = 0;
                    self.guest = guest;
                }
                Err(error) => self.former(format!("it could not be started again: {error}")),
            }
            return;
        }
        if self.restarts == 0 || !self.guest.over().is_some_and(failed) {
            return;
        }
        self.restarts -= 1;
        let (send, receive) = channel();
        let spec = self.guest.spec().clone();
        // Whether anybody still waits for it is not its concern: a guest that nobody takes is dropped and so ends.
        let thread = std::thread::Builder::new().name("guest restart".into());
        if thread
            .spawn(move || drop(send.send(Hosted::start(spec))))
            .is_ok()
        {
            self.coming = Some(receive);
        }
    }
}

/// Whether an end is a failure.
fn failed(over: &Over) -> bool {
    match over {
        Over::Exit(status) => *status != 0,
        Over::Removed => false,
        Over::Fault(_) | Over::Stuck(_) | Over::Host(_) => true,
    }
}

impl Foreign for Element {
    unsafe fn burst(&mut self, packets: &mut [Given]) {
        if self.guest.over().is_some() {
            self.revive();
        }
        for part in packets.chunks_mut(BURST) {
            // SAFETY: as the caller promises.
            if !unsafe { self.guest.burst(part) } {
                self.past += part.len() as u64;
                // Half a decision is none.
                part.iter_mut().for_each(|p| p.fate = 0);
            }
        }
    }

    fn idle(&mut self) {
        if self.guest.holds() || self.idle.elapsed() >= IDLE {
            self.idle = Instant::now();
            if self.guest.over().is_some() {
                self.revive();
            }
            self.guest.idle();
        }
    }

    fn sent(&mut self, after: bool, each: &mut dyn FnMut(u16, &[u8])) {
        if self.guest.sent.is_empty() {
            return;
        }
        self.guest.sent.retain(|sent| {
            if sent.after == after {
                each(sent.port, &sent.bytes);
            }
            sent.after != after
        });
    }

    fn holds(&self) -> bool {
        self.guest.holds()
    }

    fn finish(&mut self) -> Epilogue {
        let early = self.guest.over().is_some();
        self.guest.finish();
        let over = self.guest.over().cloned().unwrap_or(Over::Removed);
        let mut facts = vec![format!(
            "slot {}, asked for packets after {:.1} ms, {} KiB of writable memory",
            self.guest.slot(),
            self.guest.took.as_secs_f64() * 1e3,
            self.guest.memory() >> 10
        )];
        let mut what = describe(&over);
        if early {
            // Writing to a string cannot fail.
            let _ = write!(what, "; {} packets went past it", self.past);
        }
        facts.append(&mut self.former);
        if self.lives > NOTES as u64 {
            facts.push(format!("{} lives before this one", self.lives));
        }
        let failed = failed(&over) && (early || !matches!(over, Over::Exit(_)));
        if !failed {
            facts.push(what.clone());
        }
        if let Over::Fault(fault) = &over {
            facts.extend(
                fault
                    .callers
                    .iter()
                    .map(|caller| format!("called from {caller}")),
            );
        }
        let mut notes = self.guest.notes();
        notes.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        let more = notes.len().saturating_sub(NOTES);
        for (note, times) in notes.into_iter().take(NOTES) {
            facts.push(if times == 1 {
                note
            } else {
                format!("{note}, {times} times")
            });
        }
        if more > 0 {
            facts.push(format!("and {more} other notes"));
        }
        let help = "the chain went on without it; run the program by itself over the same packets"
            .to_owned();
        Epilogue {
            facts,
            failure: failed.then_some((what, help)),
            memory: self.guest.memory() as u64,
        }
    }
}
