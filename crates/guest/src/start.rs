//! The beginning of a guest: its slot, its program, its first stack, until it asks for packets.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::call::files::Files;
use crate::call::signals::Signals;
use crate::command::Spec;
use crate::error::GuestError;
use crate::hosted::Hosted;
use crate::load;
use crate::memory::{self, Mapping};
use crate::polling;
use crate::port::Port;
use crate::preload::Preloads;
use crate::shared::{Arrivals, Shared, Stage, State, describe, lock};
use crate::slot::{PAGE, Slot};
use crate::space::Space;
use crate::stack;
use crate::thread::{self, Context};
use crate::watch::{self, Watch};

/// Bytes of a guest's first stack, and of the gap below it.
const STACK: usize = 8 << 20;
const GUARD: usize = 1 << 20;
const _: () = assert!(STACK.is_multiple_of(PAGE) && GUARD.is_multiple_of(PAGE));

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
}
