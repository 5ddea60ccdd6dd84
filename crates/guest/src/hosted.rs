//! A guest: from its program to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::call::files::Files;
use crate::call::signals::Signals;
use crate::command::Spec;
use crate::error::GuestError;
use crate::load;
use crate::memory::{self, Mapping};
use crate::polling::{self, Polling};
use crate::port::{BURST, Packet, Port};
use crate::preload::Preloads;
use crate::sent::{self, Sent};
use crate::shared::{Arrivals, Over, Shared, Stage, State, describe, lock, monotonic, over, own_number};
use crate::slot::{PAGE, Slot};
use crate::space::Space;
use crate::stack;
use crate::thread::{self, Context, Stop};
use crate::trap::Left;
use crate::watch::{self, Watch};

/// Bytes of a guest's first stack, and of the gap below it.
const STACK: usize = 8 << 20;
const GUARD: usize = 1 << 20;
/// How long threads of an ended guest may take to leave it.
const LEAVE: Duration = Duration::from_secs(5);
/// How long a guest that has been told that no packets will come may work on.
pub(crate) const END: Duration = Duration::from_secs(10);
/// How often a guest may ask for packets after their end before it is asked to end by a signal.
const PATIENCE: u32 = 4;

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
    /// Loads a program, starts it and waits until it asks for packets.
    ///
    /// # Errors
    /// When it cannot be loaded, or ends or takes too long before it asks.
    pub fn start(spec: Spec) -> Result<Self, GuestError> {
        let begin = Instant::now();
        let slot = Slot::reserve(spec.slot)?;
        let range = slot.range();
        let mut space = Space::new(range.clone(), spec.budget, spec.jit);
        let refused = |what| {
            move |e: i32| GuestError::System {
                what,
                source: std::io::Error::from_raw_os_error(e),
            }
        };
        let memory = |start, length| Mapping {
            start,
            length,
            protection: libc::PROT_READ | libc::PROT_WRITE,
            flags: libc::MAP_PRIVATE,
            file: None,
            name: None,
        };
        let port = space.place(size_of::<Port>()).unwrap_or(range.start);
        memory::map(&mut space, &memory(port, size_of::<Port>()))
            .map_err(refused("a guest's port"))?;
        let top = range.end;
        let bottom = top - STACK;
        memory::map(&mut space, &memory(bottom, STACK)).map_err(refused("a guest's stack"))?;
        space.add(bottom - GUARD, GUARD, libc::PROT_NONE, None);
        let (program, interpreter) = load::load(&spec.program, &mut space)?;
        let mut environment = spec.environment.clone();
        let preloads = Preloads::of(&spec.program)?;
        environment.push(preloads.variable());
        if preloads.dpdk() {
            environment.extend(polling::environment(&spec));
        }
        let mut random = [0; 16];
        // SAFETY: writes at most as many bytes as there are.
        unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
        let file = spec.program.display().to_string();
        let (rsp, image) = stack::image(
            &stack::Start {
                arguments: &spec.arguments,
                environment: &environment,
                file: &file,
                program,
                interpreter,
                random,
            },
            top,
        );
        if image.len() > STACK / 4 || !memory::write(rsp, &image) {
            return Err(refused("a guest's arguments")(libc::E2BIG));
        }
        // SAFETY: below `rsp` lies the rest of the stack, which was mapped above.
        let frame = unsafe { thread::first_frame(rsp, interpreter.entry, [0; 6]) };
        // SAFETY: plain questions.
        let (number, ids) = unsafe {
            (
                libc::getpid(),
                [
                    libc::getuid(),
                    libc::geteuid(),
                    libc::getgid(),
                    libc::getegid(),
                ],
            )
        };
        // Programs of DPDK often run until their input ends, or somebody presses a key.
        let input = preloads.dpdk().then(std::io::pipe).transpose();
        let input = input.map_err(|source| GuestError::System {
            what: "a guest's standard input",
            source,
        })?;
        let (reads, input) = input.map_or((None, None), |(reads, writes)| {
            (Some(OwnedFd::from(reads)), Some(OwnedFd::from(writes)))
        });
        let files = Files::new(&spec, preloads, reads)?;
        let shared = Arc::new(Shared {
            name: spec.name.clone(),
            watch: Watch::new(spec.limit),
            state: Mutex::new(State {
                space,
                files,
                signals: Signals::default(),
                ids,
                last_thread: number,
                notes: BTreeMap::new(),
            }),
            alarm: AtomicU64::new(0),
            stage: Mutex::new(Stage::Starting),
            changed: Condvar::new(),
            dead: AtomicBool::new(false),
            living: AtomicUsize::new(0),
            arrivals: Arrivals::default(),
            threads: Mutex::new(BTreeSet::new()),
            port,
            slot,
            spec,
        });
        watch::watch(Arc::downgrade(&shared));
        let context = Context {
            rsp: frame,
            fs: 0,
            number,
            clear: 0,
        };
        let mut hosted = Self {
            shared,
            context: None,
            over: None,
            took: Duration::ZERO,
            sent: Vec::new(),
            polling: None,
            input,
        };
        hosted
            .shared
            .spawn(context)
            .map_err(|source| GuestError::System {
                what: "a thread for a guest",
                source,
            })?;
        hosted.wait_ready()?;
        hosted.settle_polling()?;
        hosted.took = begin.elapsed();
        Ok(hosted)
    }

    /// Waits until it asks for packets.
    fn wait_ready(&mut self) -> Result<(), GuestError> {
        let limit = self.shared.spec.ready;
        let deadline = Instant::now() + limit;
        let mut stage = lock(&self.shared.stage);
        let what = loop {
            match &mut *stage {
                Stage::Ready(_) => {
                    if let Stage::Ready(context) = std::mem::replace(&mut *stage, Stage::Running) {
                        self.context = Some(context);
                    }
                    return Ok(());
                }
                Stage::Over(over) => break describe(over),
                Stage::Starting | Stage::Running => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break format!("it has not asked within {} s", limit.as_secs_f64());
            }
            stage = self
                .shared
                .changed
                .wait_timeout(stage, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        };
        drop(stage);
        Err(self.not_started(what))
    }

    /// Why it did not come to ask for packets, with what it was denied.
    pub(crate) fn not_started(&self, what: String) -> GuestError {
        let notes = self
            .notes()
            .into_iter()
            .map(|(what, _)| format!("; {what}"))
            .collect::<String>();
        GuestError::Start {
            name: self.shared.name.clone(),
            what: what + &notes,
        }
    }

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
    fn resume(&mut self) -> bool {
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

    /// Waits until the guest is over or has no threads of its own left.
    fn wait_threads(&self, deadline: Instant) {
        let mut stage = lock(&self.shared.stage);
        while !matches!(*stage, Stage::Over(_)) && self.shared.living.load(Ordering::Acquire) > 0 {
            let left = deadline
                .saturating_duration_since(Instant::now())
                .min(Duration::from_millis(50));
            if left.is_zero() {
                return;
            }
            stage = self
                .shared
                .changed
                .wait_timeout(stage, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Tells it that no packets will come any more, and lets it end: first by that, then by the signals that a
    /// user would end it with, and at last by force.
    pub fn finish(&mut self) {
        if self.polling.is_some() {
            self.finish_polling();
            self.clear();
            return;
        }
        let port = self.shared.port as *mut Port;
        let deadline = Instant::now() + END;
        for (signal, ended) in [(0, 1), (libc::SIGINT, 1), (libc::SIGTERM, 1), (0, 2)] {
            if self.context.is_none() || signal != 0 && !self.signal_due(signal) {
                continue;
            }
            // SAFETY: as in `burst`.
            unsafe { (&raw mut (*port).ended).write(ended) };
            let mut asked = 0;
            while asked < PATIENCE && self.context.is_some() && Instant::now() < deadline {
                self.idle();
                asked += 1;
            }
        }
        if self.over.is_none() {
            self.shared.end(Over::Removed);
            self.settle();
        }
        self.clear();
    }

    /// Waits until no thread is in the guest any more.
    fn clear(&mut self) {
        self.shared.dead.store(true, Ordering::Relaxed);
        self.context = None;
        let deadline = Instant::now() + LEAVE;
        loop {
            let threads: Vec<i32> = lock(&self.shared.threads).iter().copied().collect();
            if self.shared.living.load(Ordering::Acquire) == 0 || Instant::now() >= deadline {
                return;
            }
            self.shared.changed.notify_all();
            for thread in threads {
                watch::signal(thread);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        self.shared.end(Over::Removed);
        self.clear();
    }
}

const _: () = assert!(STACK.is_multiple_of(PAGE) && GUARD.is_multiple_of(PAGE));
