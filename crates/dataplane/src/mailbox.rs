//! Requests from outside for a worker, done by the worker itself between two bursts.
//!
//! State objects belong to one worker and have no locks. Whoever wants to read or write them hands the
//! worker a [`Job`]; the worker looks once a burst, with one relaxed load, whether there is one. So an
//! edit lies between two packets, and a burst sees all of it or nothing.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::account::Account;
use crate::module::Instance;
use crate::replica::Group;
use crate::worker::change::Live;
use crate::worker::watch::{Observer, Purpose, Watch};

/// Something to do between two bursts. Packets wait while it runs.
pub type Job = Box<dyn FnOnce(&mut Desk<'_>) + Send>;

/// What a job works on.
pub struct Desk<'a> {
    /// the number of the worker, from 0
    pub worker: usize,
    /// the state; none before the first packet, whose time the state begins with
    pub instance: Option<&'a mut Instance>,
    /// the first worker's replica of heavy keys, where only these are replicated, of a run over captures
    pub heavy: Option<&'a mut Instance>,
    /// the elements of a run by workers, which have the states then
    pub chain: Option<Live<'a>>,
    /// what the replicas of a function have in common, where its state is replicated: they are edited together
    /// ([`Group::edit`])
    pub group: Option<Arc<Group>>,
    /// the states of the other workers, at the end of a run
    pub others: Vec<&'a mut Instance>,
    /// ns since the epoch: the latest stamp so far
    pub now: u64,
    pub(crate) account: &'a dyn Fn() -> Account,
    /// of a run over captures, whose chain does not change
    pub(crate) watch: Option<&'a mut Watch>,
    pub(crate) order: Option<Order>,
    pub(crate) keep: bool,
    pub(crate) awake: bool,
}

impl<'a> Desk<'a> {
    /// Of the first worker, before there is a state or where it is elsewhere.
    pub(crate) fn stateless(now: u64, account: &'a dyn Fn() -> Account) -> Self {
        Self {
            worker: 0,
            instance: None,
            heavy: None,
            chain: None,
            group: None,
            others: Vec::new(),
            now,
            account,
            watch: None,
            order: None,
            keep: false,
            awake: false,
        }
    }

    /// The state of an element of a run by workers; of any other run there is one state. None when there is no
    /// such element, or it is no function, or before the first packet.
    pub fn state(&mut self, element: u64) -> Option<&mut Instance> {
        match &mut self.chain {
            Some(chain) => chain.state(element),
            None => self.instance.as_deref_mut(),
        }
    }

    /// The first worker's replica of an element's heavy keys, where only these are replicated; none at other workers.
    pub fn heavy(&mut self, element: u64) -> Option<&mut Instance> {
        match &mut self.chain {
            Some(chain) => chain.heavy(element),
            None => self.heavy.as_deref_mut(),
        }
    }

    /// What has happened so far. Counts what was delivered; a packet inside of a port is not read yet.
    #[must_use]
    pub fn account(&self) -> Account {
        (self.account)()
    }

    /// Whether there is a worker whose packets can be watched.
    #[must_use]
    pub fn watchable(&self) -> bool {
        self.chain.is_some() || self.watch.is_some()
    }

    /// Has the worker's packets watched for a purpose from the next burst on, or no more. False where there is no worker to ask: no packet has
    /// come yet, or the kernel has them.
    pub fn watch(&mut self, purpose: Purpose, observer: Option<Box<dyn Observer>>) -> bool {
        let watch = match (&mut self.chain, &mut self.watch) {
            (Some(chain), _) => chain.watch(),
            (None, Some(watch)) => watch,
            (None, None) => return false,
        };
        watch.set(purpose, observer);
        true
    }

    /// Asks the worker to give its part of the state ([`crate::worker::keep`]), once the job is done.
    pub fn keep(&mut self) {
        self.keep = true;
    }

    /// Asks the worker not to sleep for a while, as other workers are about to meet it ([`crate::worker::meeting`]).
    pub fn stay_awake(&mut self) {
        self.awake = true;
    }

    /// Asks the worker to end the run.
    pub fn order(&mut self, order: Order) {
        self.order = Some(order);
    }
}

/// How a run is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// after the packets that the ports hold already, taking no new ones
    Drain,
    /// before the next burst
    Stop,
}

/// Where jobs wait for one worker.
#[derive(Default)]
pub struct Mailbox {
    waiting: AtomicBool,
    queue: Mutex<Queue>,
}

/// Held while jobs of one kind are left in several mailboxes, so that those who wait for one another find each other's in one order:
/// two workers that each wait for the other one in another job would wait for long.
static TOGETHER: Mutex<()> = Mutex::new(());

/// Leaves a job in each of these mailboxes, for workers that meet in them. Says of each whether it was taken, as [`Mailbox::post`].
pub fn together(mailboxes: &[Arc<Mailbox>], jobs: impl IntoIterator<Item = Job>) -> Vec<bool> {
    let _one = TOGETHER.lock().unwrap_or_else(PoisonError::into_inner);
    let each = mailboxes.iter().zip(jobs);
    each.map(|(mailbox, job)| mailbox.post(job)).collect()
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Mailbox {
    /// Leaves a job; false when the worker has ended and will not do it.
    pub fn post(&self, job: Job) -> bool {
        let mut queue = self.lock();
        if queue.closed {
            return false;
        }
        queue.jobs.push_back(job);
        // Under the lock: a job is never there without the flag once the lock is free.
        self.waiting.store(true, Ordering::Release);
        true
    }

    /// What waits now; nothing costs one load.
    #[inline]
    pub(crate) fn take(&self) -> VecDeque<Job> {
        if self.waiting.load(Ordering::Relaxed) {
            self.take_some()
        } else {
            VecDeque::new()
        }
    }

    #[cold]
    fn take_some(&self) -> VecDeque<Job> {
        let mut queue = self.lock();
        self.waiting.store(false, Ordering::Relaxed);
        std::mem::take(&mut queue.jobs)
    }

    /// Does what waits, for a run whose state is elsewhere (in the kernel): jobs see its counts and no state. Says how
    /// the run is to end, where one asks for that.
    pub fn attend(&self, account: &dyn Fn() -> Account) -> Option<Order> {
        let mut desk = Desk::stateless(crate::clock::now(), account);
        for job in self.take() {
            job(&mut desk);
        }
        desk.order
    }

    /// Takes no more. What waits is dropped, which whoever waits for an answer notices.
    pub fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        queue.jobs.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A queue that a panicking thread has left is as whole as any.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn every_job_is_taken_once_and_none_after_closing() {
        let mailbox = Arc::new(Mailbox::default());
        let done = Arc::new(AtomicU32::new(0));
        let posters: Vec<_> = (0..4)
            .map(|_| {
                let (mailbox, done) = (mailbox.clone(), done.clone());
                std::thread::spawn(move || {
                    for _ in 0..500 {
                        let done = done.clone();
                        let job = move |_: &mut Desk<'_>| {
                            done.fetch_add(1, Ordering::Relaxed);
                        };
                        assert!(mailbox.post(Box::new(job)));
                    }
                })
            })
            .collect();
        let account = Account::default;
        let mut desk = Desk::stateless(0, &account);
        let all = |done: &AtomicU32| done.load(Ordering::Relaxed) == 2000;
        let began = std::time::Instant::now();
        while !all(&done) && began.elapsed().as_secs() < 20 {
            for job in mailbox.take() {
                job(&mut desk);
            }
        }
        let stop = |desk: &mut Desk<'_>| desk.order(Order::Stop);
        assert!(mailbox.attend(&account).is_none() && mailbox.post(Box::new(stop)));
        assert_eq!(mailbox.attend(&account), Some(Order::Stop));
        assert!(all(&done), "{done:?}");
        assert!(posters.into_iter().all(|p| p.join().is_ok()));
        mailbox.close();
        assert!(!mailbox.post(Box::new(|_| {})));
    }
}
