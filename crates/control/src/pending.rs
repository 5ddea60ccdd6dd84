//! Jobs that wait in a worker's mailbox, and how long their senders wait for them.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use millrace_dataplane::Mailbox;
use millrace_dataplane::mailbox::{self, Desk, Job};

use crate::trouble::Trouble;

/// How long a worker may take to come to the end of its burst. An output that takes nothing holds it up.
const PATIENCE: Duration = Duration::from_secs(5);

type Result<T> = std::result::Result<T, Trouble>;

/// That there is nobody any more to do it.
pub fn ended() -> Trouble {
    Trouble::new("ended", "the run has ended").help("its account says what happened")
}

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// A job that a worker has been given.
pub struct Pending<T> {
    state: Arc<AtomicU8>,
    result: mpsc::Receiver<T>,
}

impl<T: Send + 'static> Pending<T> {
    /// Leaves it there.
    pub fn post(
        mailbox: &Mailbox,
        job: impl FnMut(&mut Desk<'_>) -> T + Send + 'static,
    ) -> Result<Self> {
        let (job, pending) = Self::of(job);
        mailbox.post(job).then_some(pending).ok_or_else(ended)
    }

    /// Leaves one for each worker, whose jobs wait for one another: all or none of several such are in one order everywhere.
    pub fn together<J>(
        mailboxes: &[Arc<Mailbox>],
        jobs: impl Iterator<Item = J>,
    ) -> Vec<Result<Self>>
    where
        J: FnMut(&mut Desk<'_>) -> T + Send + 'static,
    {
        let (jobs, pending): (Vec<_>, Vec<_>) = jobs.map(Self::of).unzip();
        let posted = mailbox::together(mailboxes, jobs);
        let each = pending.into_iter().zip(posted);
        each.map(|(pending, posted)| posted.then_some(pending).ok_or_else(ended))
            .collect()
    }

    fn of(mut job: impl FnMut(&mut Desk<'_>) -> T + Send + 'static) -> (Job, Self) {
        let state = Arc::new(AtomicU8::new(WAITING));
        let (sender, result) = mpsc::channel();
        let mine = state.clone();
        let job: Job = Box::new(move |desk| {
            let begins = mine.compare_exchange(WAITING, BEGUN, Ordering::AcqRel, Ordering::Acquire);
            if begins.is_ok() {
                // Nobody waits any more where the client's thread is gone.
                let _ = sender.send(job(desk));
            }
        });
        (job, Self { state, result })
    }

    /// Its result. A job that is given up is never begun: what timed out has not happened.
    pub fn wait(self) -> Result<T> {
        let state = &self.state;
        match self.result.recv_timeout(PATIENCE) {
            Ok(result) => Ok(result),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(ended()),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let given_up =
                    state.compare_exchange(WAITING, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire);
                if given_up.is_ok() {
                    return Err(Trouble::new(
                        "busy",
                        format!("the worker is in a burst for {} s", PATIENCE.as_secs()),
                    )
                    .help("nothing was done; is there an output that takes no packets?"));
                }
                self.result.recv().map_err(|_| ended())
            }
        }
    }
}
