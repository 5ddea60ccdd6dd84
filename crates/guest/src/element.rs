//! A guest as an element of a chain.

use std::fmt::Write;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use millrace_dataplane::worker::foreign::{Epilogue, Foreign, Given};

use crate::command::Failing;
use crate::hosted::Hosted;
use crate::migrate::away::Away;
use crate::migrate::desk::{Desk, Outcome};
use crate::port::BURST;
use crate::saver::Saver;
use crate::sent::Sent;
use crate::shared::{Over, Shared, describe};
use crate::snapshot::{SnapshotError, restore};

/// How often a guest is let run when nothing comes: as often as a program that polls an interface with a time-out.
const IDLE: Duration = Duration::from_millis(10);
/// The most notes that a report tells.
const NOTES: usize = 12;

/// A guest between other elements.
pub struct Element {
    guest: Hosted,
    /// packets that have gone past it since it failed or ended
    past: u64,
    /// those that were dropped since
    dropped: u64,
    idle: Instant,
    /// how often it may still be started again
    restarts: u32,
    /// the one that is being started
    coming: Option<Receiver<Result<Hosted, String>>>,
    /// where others ask for it
    desk: Arc<Desk>,
    /// it goes on in another process
    away: Option<Box<Away>>,
    /// takes snapshots now and then
    saver: Option<Saver>,
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
            desk: Desk::open(&guest.shared),
            away: None,
            saver: Saver::of(guest.spec()),
            guest,
            past: 0,
            dropped: 0,
            idle: Instant::now(),
            coming: None,
            former: Vec::new(),
            lives: 0,
        }
    }

    /// What became of packets since it does not run.
    fn became(&self) -> String {
        match (self.past, self.dropped) {
            (past, 0) => format!("{past} packets went past it"),
            (0, dropped) => format!("{dropped} packets were dropped"),
            (past, dropped) => format!("{past} packets went past it and {dropped} were dropped"),
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
                    let became = self.became();
                    self.former(format!("{over}; {became} until it was started again"));
                    (self.past, self.dropped) = (0, 0);
                    self.desk.replace(&guest.shared);
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
        let snapshot = self.saver.as_ref().and_then(Saver::last);
        self.guest.gone();
        let failed = self.guest.shared.clone();
        // Whether anybody still waits for it is not its concern: a guest that nobody takes is dropped and so ends.
        let thread = std::thread::Builder::new().name("guest restart".into());
        if thread
            .spawn(move || {
                let started = match snapshot {
                    Some(file) => again(&failed, &file).map_err(|e| e.to_string()),
                    None => Hosted::start(spec).map_err(|e| e.to_string()),
                };
                drop(send.send(started));
            })
            .is_ok()
        {
            self.coming = Some(receive);
        }
    }
}

/// Goes on from a snapshot, in the slot of the one that has failed.
fn again(failed: &Shared, file: &Path) -> Result<Hosted, SnapshotError> {
    if !failed.left() {
        return Err(SnapshotError::Guest("a thread of it did not end".into()));
    }
    failed.slot.release();
    restore::read(&mut BufReader::new(File::open(file)?), failed.spec.output)
}

impl Element {
    /// Whether its guest runs, here or elsewhere.
    #[must_use]
    pub fn runs(&self) -> bool {
        match &self.away {
            Some(away) => away.lost.is_none(),
            None => self.guest.over().is_none(),
        }
    }

    /// What its guest has sent of its own since it was last asked.
    pub(crate) fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.guest.sent)
    }

    /// Does what others ask for: between two bursts, with the guest at rest.
    fn attend(&mut self) {
        if let Some(saver) = &mut self.saver {
            saver.look(&self.desk);
        }
        if !self.desk.asked() {
            return;
        }
        if let Outcome::Moved(away) = self.desk.wait(self.guest.context) {
            self.guest.gone();
            self.away = Some(away);
            self.saver = None;
            self.desk.close("it was moved to another process");
        }
    }
}

impl Drop for Element {
    fn drop(&mut self) {
        self.desk.close("it was taken out of its chain");
    }
}

/// Whether an end is a failure.
fn failed(over: &Over) -> bool {
    match over {
        Over::Exit(status) => *status != 0,
        Over::Removed | Over::Moved(_) => false,
        Over::Fault(_) | Over::Stuck(_) | Over::Host(_) => true,
    }
}

impl Foreign for Element {
    unsafe fn burst(&mut self, packets: &mut [Given]) {
        self.attend();
        if let Some(away) = &mut self.away {
            for part in packets.chunks_mut(BURST) {
                // SAFETY: as the caller promises.
                if !unsafe { away.burst(part) } {
                    self.past += part.len() as u64;
                    part.iter_mut().for_each(|p| p.fate = 0);
                }
            }
            return;
        }
        if self.guest.over().is_some() {
            self.revive();
        }
        for part in packets.chunks_mut(BURST) {
            // SAFETY: as the caller promises.
            if !unsafe { self.guest.burst(part) } {
                let drops = self.guest.spec().failing == Failing::Drop
                    && self.guest.over().is_some_and(failed);
                let count = part.len() as u64;
                if drops {
                    self.dropped += count;
                } else {
                    self.past += count;
                }
                // Half a decision is none.
                part.iter_mut().for_each(|p| p.fate = u16::from(drops));
            }
        }
    }

    fn idle(&mut self) {
        if self.guest.holds() || self.idle.elapsed() >= IDLE {
            self.idle = Instant::now();
            self.attend();
            if let Some(away) = &mut self.away {
                // SAFETY: no packets.
                unsafe { away.burst(&mut []) };
                return;
            }
            if self.guest.over().is_some() {
                self.revive();
            }
            self.guest.idle();
        }
    }

    fn sent(&mut self, after: bool, each: &mut dyn FnMut(u16, &[u8])) {
        let waiting = match &mut self.away {
            Some(away) => &mut away.sent,
            None => &mut self.guest.sent,
        };
        if waiting.is_empty() {
            return;
        }
        waiting.retain(|sent| {
            if sent.after == after {
                each(sent.port, &sent.bytes);
            }
            sent.after != after
        });
    }

    fn holds(&self) -> bool {
        self.guest.holds()
    }

    /// A program of DPDK does. One that receives by libpcap is a tap.
    fn decides(&self) -> bool {
        self.away.is_some() || self.guest.polling.is_some()
    }

    fn finish(&mut self) -> Epilogue {
        self.desk.close("its run has ended");
        if let Some(away) = &mut self.away {
            let mut epilogue = away.finish();
            epilogue
                .facts
                .insert(0, format!("it was moved to {}", away.to));
            return epilogue;
        }
        let early = self.guest.over().is_some();
        self.guest.finish();
        let over = self.guest.over().cloned().unwrap_or(Over::Removed);
        let mut facts = vec![format!(
            "slot {}, asked for packets after {:.1} ms, {} KiB of writable memory",
            self.guest.slot(),
            self.guest.took.as_secs_f64() * 1e3,
            self.guest.memory() >> 10
        )];
        facts.push(self.guest.protection().to_string());
        let mut what = describe(&over);
        if early {
            // Writing to a string cannot fail.
            let _ = write!(what, "; {}", self.became());
        }
        facts.extend(self.saver.take().map(Saver::told));
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
