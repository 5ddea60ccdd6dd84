//! State that all threads of a guest share with the host, and the scheduling of its threads.
//!
//! Each of a guest's threads runs on a thread of the host's. The one that first asks for packets becomes the
//! packets' own: its context is kept, the thread of the host's that ran it ends, and from then on the worker runs
//! it, a burst at a time. The others go on by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::call::files::Files;
use crate::call::signals::Signals;
use crate::command::Spec;
use crate::error::GuestError;
use crate::fault::Fault;
use crate::memory::Errno;
use crate::port::{BURST, Port};
use crate::protect::{self, Domain};
use crate::rest::{Parked, Rest};
use crate::sent::Sent;
use crate::slot::Slot;
use crate::space::Space;
use crate::thread::{self, Context, Running, Stop};
use crate::trap::Left;
use crate::watch::{self, Watch};

/// The most threads of a guest, and the most different things that are noted of it.
pub(crate) const THREADS: usize = 256;
const NOTES: usize = 64;

/// Why a guest does not run any more.
#[derive(Clone, Debug)]
pub enum Over {
    /// it ended by itself, with this status
    Exit(i32),
    /// it failed
    Fault(Fault),
    /// it kept a burst for too long; where it was
    Stuck(usize),
    /// it goes on in another process; in which
    Moved(String),
    /// it was removed when it should have ended and did not
    Removed,
    /// its threads could not be run
    Host(String),
}

/// How far a guest is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// it has not asked for packets yet
    Starting,
    /// it asks for packets
    Ready(Context),
    /// the worker has its context
    Running,
    /// it does not run any more
    Over(Over),
}

/// Where the host's parts of a slot lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// the port
    pub port: usize,
    /// the image of the kernel's vDSO
    pub vdso: usize,
    /// where packets are copied to, if they are
    pub room: Option<usize>,
}

/// State that all threads of a guest share with the host.
pub struct Shared {
    /// what it is called
    pub name: String,
    /// how it was made
    pub spec: Spec,
    /// where it lives
    pub slot: Slot,
    /// the key of its memory; given back after the slot, because fields are dropped in their order
    pub domain: Domain,
    /// PKRU while it runs
    pub(crate) rights: u32,
    /// its visits by the worker
    pub watch: Watch,
    /// what its system calls change
    pub state: Mutex<State>,
    /// when its alarm is due, ns of the monotonic clock; 0: never
    pub alarm: AtomicU64,
    pub(crate) stage: Mutex<Stage>,
    pub(crate) changed: Condvar,
    pub(crate) dead: AtomicBool,
    /// threads that have been started and have not ended
    pub(crate) living: AtomicUsize,
    pub(crate) threads: Mutex<BTreeSet<i32>>,
    pub(crate) port: usize,
    /// where the host's parts of its slot lie
    pub(crate) places: Places,
    /// its own threads, when it is to rest
    pub(crate) rest: Rest,
    /// packets that it sent by sockets, and whether there are any: read once a burst, without the lock
    pub(crate) sends: Mutex<Vec<Sent>>,
    pub(crate) has_sent: AtomicBool,
    /// signals that its threads wait for and that it is sent, or that it has sent itself: a bit each, 1 is signal 1
    pub(crate) awaited: AtomicU64,
    pub(crate) pending: AtomicU64,
    /// threads that ask for packets while the worker runs others
    pub(crate) arrivals: Arrivals,
}

/// Threads of a guest that polls, on their way to the worker.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// those that ask, and are to be run by the worker
    pub(crate) asking: Mutex<Vec<Context>>,
    /// how many there are: read once a burst, without the lock
    pub(crate) count: AtomicUsize,
    /// no packets come any more: they run by themselves to their end
    pub(crate) closing: AtomicBool,
    /// it has waited for its standard input
    pub(crate) input: AtomicBool,
    /// its bursts are those of one that polls
    pub(crate) polling: AtomicBool,
}

/// State that a guest's system calls change.
pub struct State {
    /// its memory
    pub space: Space,
    /// its descriptors, and what it may open
    pub files: Files,
    /// its handlers and timers
    pub signals: Signals,
    /// what it believes to be: real and effective user, real and effective group
    pub ids: [u32; 4],
    /// its process number, as it knows it: that of the process that it began in
    pub process: i32,
    /// the last thread number given
    pub last_thread: i32,
    /// it wanted to be several processes
    pub forks: bool,
    /// what it asked for and did not get, and how often
    pub notes: BTreeMap<String, u64>,
}

impl State {
    /// Notes what was asked for and not done.
    pub fn note(&mut self, what: String) {
        let known = self.notes.len() < NOTES || self.notes.contains_key(&what);
        let what = if known {
            what
        } else {
            "other things were denied".to_owned()
        };
        *self.notes.entry(what).or_default() += 1;
    }
}

/// Locks; what a thread that panicked has left is taken as it is.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The kernel's number of this thread, which a burst is not to ask for.
    static NUMBER: i32 = {
        // SAFETY: cannot fail.
        unsafe { libc::syscall(libc::SYS_gettid) as i32 }
    };
}

/// The kernel's number of this thread.
pub(crate) fn own_number() -> i32 {
    NUMBER.with(|number| *number)
}

impl Shared {
    /// Of a guest without threads so far.
    pub(crate) fn new(
        spec: Spec,
        slot: Slot,
        domain: Domain,
        state: State,
        stage: Stage,
        places: Places,
    ) -> Arc<Self> {
        Arc::new(Self {
            name: spec.name.clone(),
            watch: Watch::new(spec.limit),
            state: Mutex::new(state),
            alarm: AtomicU64::new(0),
            stage: Mutex::new(stage),
            changed: Condvar::new(),
            dead: AtomicBool::new(false),
            living: AtomicUsize::new(0),
            threads: Mutex::new(BTreeSet::new()),
            port: places.port,
            places,
            rest: Rest::default(),
            sends: Mutex::default(),
            has_sent: AtomicBool::new(false),
            awaited: AtomicU64::new(0),
            pending: AtomicU64::new(0),
            arrivals: Arrivals::default(),
            slot,
            rights: domain.rights(),
            domain,
            spec,
        })
    }

    /// Where the preload finds its port.
    #[must_use]
    pub fn port_address(&self) -> usize {
        self.port
    }

    /// Keeps a packet that it has sent by a socket until the worker takes it.
    ///
    /// # Errors
    /// ENOBUFS when too many wait.
    pub(crate) fn send(&self, sent: Sent) -> Result<(), Errno> {
        let mut sends = lock(&self.sends);
        if sends.len() >= BURST {
            return Err(libc::ENOBUFS);
        }
        sends.push(sent);
        self.has_sent.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether it is being removed.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// Its state, to read or change.
    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Ends it, unless it has ended before.
    pub(crate) fn end(&self, over: Over) {
        let mut stage = lock(&self.stage);
        if !matches!(*stage, Stage::Over(_)) {
            *stage = Stage::Over(over);
        }
        drop(stage);
        self.dead.store(true, Ordering::Relaxed);
        self.changed.notify_all();
        self.watch.kick();
        for thread in lock(&self.threads).iter() {
            watch::signal(*thread);
        }
    }

    /// Whether it polls for packets, and says what becomes of each.
    #[must_use]
    pub fn polls(&self) -> bool {
        protect::open();
        // SAFETY: the port is mapped as long as the slot is; a guest may write there at any time, which is why no
        // reference is made.
        unsafe { (&raw const (*(self.port as *const Port)).polls).read_volatile() != 0 }
    }

    /// Starts a thread of the host's that runs a context.
    ///
    /// # Errors
    /// When the host can make no thread.
    pub fn spawn(self: &Arc<Self>, context: Context) -> std::io::Result<()> {
        self.begin(move |guest| guest.host(&context))
    }

    /// Starts one for a thread that asks for packets which another one gets.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub(crate) fn spawn_asking(self: &Arc<Self>, context: Context) -> std::io::Result<()> {
        self.begin(move |guest| {
            guest.lives(|| guest.asks(context));
        })
    }

    /// Starts a thread of the host's that goes on with what the worker must not wait for.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub(crate) fn demote(self: &Arc<Self>, parked: Box<Parked>) -> std::io::Result<()> {
        self.begin(move |guest| guest.lives(|| guest.goes(thread::go_on(guest, parked))))
    }

    fn begin(
        self: &Arc<Self>,
        life: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) -> std::io::Result<()> {
        if self.living.fetch_add(1, Ordering::Relaxed) >= THREADS {
            self.living.fetch_sub(1, Ordering::Relaxed);
            self.state().note("more threads were denied".into());
            return Err(std::io::Error::from_raw_os_error(libc::EAGAIN));
        }
        let guest = self.clone();
        let name: String = format!("guest {}", self.name).chars().take(15).collect();
        std::thread::Builder::new()
            .name(name)
            .spawn(move || {
                millrace_dataplane::privilege::none_here();
                life(&guest);
            })
            .map(drop)
            .inspect_err(|_| {
                self.living.fetch_sub(1, Ordering::Relaxed);
            })
    }

    /// The life of such a thread.
    fn host(self: &Arc<Self>, context: &Context) {
        self.lives(|| {
            self.goes(thread::run(
                &mut Running::new(self, context, false),
                context,
            ));
        });
    }

    /// What a thread that was not the worker's does after its guest has run.
    fn goes(self: &Arc<Self>, mut stop: Result<Stop, GuestError>) {
        while let Ok(Stop::Receive(context)) = &stop
            && self.arrivals.closing.load(Ordering::Relaxed)
            && !self.is_dead()
        {
            // There is nothing to receive; what it polls besides may still come.
            std::thread::sleep(std::time::Duration::from_micros(200));
            stop = thread::run(&mut Running::new(self, context, false), context);
        }
        match stop {
            Ok(Stop::Receive(context)) => self.asks(context),
            Ok(Stop::Left(Left::Thread | Left::Removed) | Stop::Blocked(_)) => {}
            Ok(Stop::Left(left)) => self.end(over(left)),
            Err(error) => self.end(Over::Host(error.to_string())),
        }
    }

    /// Counts this thread as one of the guest's while it does something.
    fn lives(&self, something: impl FnOnce()) {
        let number = own_number();
        lock(&self.threads).insert(number);
        something();
        let mut threads = lock(&self.threads);
        threads.remove(&number);
        drop(threads);
        let last = self.living.fetch_sub(1, Ordering::AcqRel) == 1;
        if last && matches!(*lock(&self.stage), Stage::Starting) {
            self.end(Over::Exit(0));
        }
        self.changed.notify_all();
    }

    /// A thread of the guest's asks for packets: the first one to do so gets them.
    fn asks(&self, context: Context) {
        let mut stage = lock(&self.stage);
        if matches!(*stage, Stage::Starting) {
            *stage = Stage::Ready(context);
            self.changed.notify_all();
            return;
        }
        if self.polls() {
            lock(&self.arrivals.asking).push(context);
            self.arrivals.count.fetch_add(1, Ordering::Release);
            self.changed.notify_all();
            return;
        }
        // There is one source of packets, and it is taken: this one waits for ever.
        self.rest.asks(context);
        while !self.is_dead() {
            stage = self
                .changed
                .wait(stage)
                .unwrap_or_else(PoisonError::into_inner);
        }
        self.rest.asks_no_more();
    }
}

/// Why a guest is over whose packets' thread, or any other, was left for this.
pub(crate) fn over(left: Left) -> Over {
    match left {
        Left::Thread => Over::Exit(0),
        Left::Exit(status) => Over::Exit(status),
        Left::Fault(fault) => Over::Fault(*fault),
        Left::Stuck(at) => Over::Stuck(at),
        Left::Removed => Over::Removed,
        Left::Blocked(_) => Over::Host("it waits".into()),
    }
}

/// Nanoseconds of the monotonic clock.
pub fn monotonic() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Why a guest does not run any more, in a sentence.
#[must_use]
pub fn describe(over: &Over) -> String {
    match over {
        Over::Exit(0) => "it ended".into(),
        Over::Exit(status) => format!("it ended with status {status}"),
        Over::Fault(fault) => fault.to_string(),
        Over::Stuck(at) => format!("it kept a burst for too long, and was at {at:#x}"),
        Over::Moved(to) => format!("it was moved to {to}"),
        Over::Removed => "it did not end by itself and was removed".into(),
        Over::Host(why) => why.clone(),
    }
}
