//! A guest as an element of a chain.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use millrace_dataplane::worker::condition::{Condition, State};
use millrace_dataplane::worker::foreign::{Epilogue, Foreign, Given, ON};

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
    /// its state, for others
    condition: Arc<Condition>,
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
            condition: Arc::new(Condition::new(guest.name(), guest.slot())),
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
                    let left = match self.restarts {
                        0 => "for the last time".into(),
                        left => format!("{left} restarts are left"),
                    };
                    let told = format!("started again, {left}");
                    self.condition.restarted(self.guest.slot(), &told);
                }
                Err(error) => {
                    let what = format!("it could not be started again: {error}");
                    self.condition
                        .failed("start", &what, &format!("{what}; {}", self.policy()));
                    self.former(what);
                }
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
            self.condition.silently(State::Restarting);
        }
    }
}

/// Goes on from a snapshot, in the slot of the one that has failed.
fn again(failed: &Shared, file: &Path) -> Result<Hosted, SnapshotError> {
    if !failed.left() {
        return Err(SnapshotError::Guest("a thread of it did not end".into()));
    }
    failed.slot.release();
    restore::file(file, &failed.spec)
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

    /// Says once that its guest does not run any more, and why.
    #[cold]
    fn ended(&mut self) {
        if self.condition.state() != State::Running {
            return;
        }
        let Some(over) = self.guest.over() else {
            return;
        };
        let what = describe(over);
        match failed(over) {
            true => {
                let again = match self.restarts {
                    0 => "",
                    _ => ", and it is started again",
                };
                let told = format!("failed: {what}; {}{again}", self.policy());
                self.condition.failed(&cause(over), &what, &told);
            }
            false => {
                let told = format!("{what}; {}", self.policy());
                self.condition.changed(State::Ended, &told);
            }
        }
    }

    /// Its state after the end of its run; `early`: it had ended before.
    fn last_words(&self, early: bool) {
        let fault = self.guest.over();
        let fault = fault.filter(|over| failed(over) && !matches!(over, Over::Exit(_)));
        match (self.condition.state(), fault) {
            (State::Failed, _) => {}
            // The one that was to come did not come in time.
            (State::Restarting, _) => self.condition.silently(State::Failed),
            (_, Some(over)) if !early => {
                let what = describe(over);
                self.condition.failed(&cause(over), &what, &what);
            }
            _ => self.condition.silently(State::Ended),
        }
    }

    /// What becomes of packets while it does not run.
    fn policy(&self) -> &'static str {
        let drops =
            self.guest.spec().failing == Failing::Drop && self.guest.over().is_some_and(failed);
        match drops {
            true => "packets are dropped",
            false => "packets pass it by",
        }
    }

    /// Counts packets that it did not see.
    fn without(&mut self, count: u64, drops: bool) {
        let (past, dropped) = match drops {
            true => (0, count),
            false => (count, 0),
        };
        self.past += past;
        self.dropped += dropped;
        self.condition.without(past, dropped);
    }

    /// Gives packets to its guest in another process.
    ///
    /// # Safety
    /// As [`Foreign::burst`].
    unsafe fn elsewhere(&mut self, packets: &mut [Given]) {
        let Some(away) = &mut self.away else {
            return;
        };
        // SAFETY: as the caller promises.
        if unsafe { away.burst(packets) } {
            return;
        }
        packets.iter_mut().for_each(|p| p.fate = ON);
        if self.condition.state() == State::Moved {
            let lost = away.lost.clone();
            let what = lost.unwrap_or_else(|| format!("it does not run any more in {}", away.to));
            let told = format!("failed: {what}; packets pass it by");
            self.condition.failed("connection", &what, &told);
        }
        self.without(packets.len() as u64, false);
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
            let told = format!("moved to {}", away.to);
            self.condition.changed(State::Moved, &told);
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

/// The cause of a failure in a word or two, of which there are few.
fn cause(over: &Over) -> String {
    match over {
        Over::Exit(status) => format!("status {status}"),
        Over::Fault(fault) => fault.name(),
        Over::Stuck(_) => "stuck".into(),
        Over::Host(_) => "host".into(),
        Over::Removed | Over::Moved(_) => "removed".into(),
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
        if self.away.is_some() {
            for part in packets.chunks_mut(BURST) {
                // SAFETY: as the caller promises.
                unsafe { self.elsewhere(part) };
            }
            return;
        }
        if self.guest.over().is_some() {
            self.revive();
        }
        for part in packets.chunks_mut(BURST) {
            // SAFETY: as the caller promises.
            if !unsafe { self.guest.burst(part) } {
                self.ended();
                let drops = self.guest.spec().failing == Failing::Drop
                    && self.guest.over().is_some_and(failed);
                self.without(part.len() as u64, drops);
                // Half a decision is none.
                part.iter_mut().for_each(|p| p.fate = u16::from(drops));
            }
        }
    }

    fn idle(&mut self) {
        if self.guest.holds() || self.idle.elapsed() >= IDLE {
            self.idle = Instant::now();
            self.attend();
            if self.away.is_some() {
                // SAFETY: no packets.
                unsafe { self.elsewhere(&mut []) };
                return;
            }
            if self.guest.over().is_some() {
                self.revive();
            }
            self.guest.idle();
            if self.guest.over().is_some() {
                self.ended();
            }
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

    fn condition(&self) -> Option<Arc<Condition>> {
        Some(self.condition.clone())
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
        self.last_words(early);
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
