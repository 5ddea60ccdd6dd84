//! The beginning of a guest: its slot, its program, its first stack, until it asks for packets.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::call::files::Files;
use crate::call::signals::Signals;
use crate::command::Spec;
use crate::error::GuestError;
use crate::heap;
use crate::hosted::Hosted;
use crate::load;
use crate::memory::{self, Mapping};
use crate::polling;
use crate::port::Port;
use crate::preload::Preloads;
use crate::protect::{self, Domain};
use crate::room::{ROOM, Room};
use crate::shared::{Over, Places, Shared, Stage, State, describe, lock};
use crate::slot::{PAGE, Slot};
use crate::snapshot::restore;
use crate::space::Space;
use crate::stack;
use crate::thread::{self, Context};
use crate::vdso;
use crate::watch;

/// Bytes of a guest's first stack, and of the gap below it.
const STACK: usize = 8 << 20;
const GUARD: usize = 1 << 20;
const _: () = assert!(STACK.is_multiple_of(PAGE) && GUARD.is_multiple_of(PAGE));

/// The most denied requests that a refusal names.
const NOTES: usize = 6;

/// Bytes that a guest's port and stack are moved by. A place within a page is a set of the first-level cache, and what
/// guests in a row use for each burst would all compete for the same few: a port's header and 32 packets are 18 lines.
fn colour(slot: u32) -> usize {
    const LINES: usize = 18 * 64;
    slot as usize * LINES % PAGE
}

impl Hosted {
    /// Loads a program, starts it and waits until it asks for packets.
    ///
    /// # Errors
    /// When it cannot be loaded, or ends or takes too long before it asks.
    pub fn start(spec: Spec) -> Result<Self, GuestError> {
        if let Some(file) = &spec.restore {
            return restore::file(file, &spec).map_err(|e| GuestError::Snapshot {
                path: file.clone(),
                help: e.help(),
                what: e.to_string(),
            });
        }
        let begin = Instant::now();
        // Before the slot, so that it goes after it.
        let domain = Domain::take();
        protect::open();
        let slot = Slot::reserve(spec.slot)?;
        let range = slot.range();
        let mut space = Space::new(range.clone(), spec.budget, spec.jit);
        space.key = domain.key();
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
        let colour = colour(slot.number());
        let around = size_of::<Port>() + colour;
        let port = space.place(around).unwrap_or(range.start);
        memory::map(&mut space, &memory(port, around)).map_err(refused("a guest's port"))?;
        let port = port + colour;
        let room = if spec.isolate || domain.key() > 0 {
            let start = space.place(ROOM).unwrap_or(range.start);
            memory::map(&mut space, &memory(start, ROOM))
                .map_err(refused("room for a guest's packets"))?;
            Some(Room::new(start))
        } else {
            None
        };
        let top = range.end;
        let bottom = top - STACK;
        memory::map(&mut space, &memory(bottom, STACK)).map_err(refused("a guest's stack"))?;
        space.add(bottom - GUARD, GUARD, libc::PROT_NONE, None);
        let vdso = vdso::map(&mut space).map_err(refused("a guest's vDSO"))?;
        if spec.heap > 0 {
            heap::prepare(&mut space, spec.heap).map_err(refused("a guest's heap"))?;
        }
        let (program, interpreter) = load::load(&spec.program, &slot, &mut space)?;
        let mut environment = spec.environment.clone();
        let preloads = Preloads::of(&spec.program)?;
        environment.push(preloads.variable());
        if preloads.dpdk() {
            environment.extend(polling::environment(&spec));
        }
        if spec.heap > 0 {
            environment.push(heap::tunables(spec.heap));
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
                vdso,
            },
            top - colour,
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
        let state = State {
            space,
            files,
            signals: Signals::default(),
            ids,
            process: number,
            last_thread: number,
            forks: false,
            notes: BTreeMap::new(),
        };
        let places = Places {
            port,
            vdso,
            room: room.as_ref().map(Room::start),
        };
        let shared = Shared::new(spec, slot, domain, state, Stage::Starting, places);
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
            running: None,
            over: None,
            mapped: begin.elapsed(),
            took: Duration::ZERO,
            room,
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
                Stage::Ready(_) if self.shared.state().forks => {
                    break "it works in several processes (fork), and a guest is one".into();
                }
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
        // What a dynamic loader, or a shell, ends with that has said why.
        let hint = match &*stage {
            Stage::Over(Over::Exit(127)) => " (a library is missing: its loader has said which)",
            _ => "",
        };
        drop(stage);
        Err(self.not_started(what + hint))
    }

    /// Why it did not come to ask for packets, with what it was denied.
    pub(crate) fn not_started(&self, what: String) -> GuestError {
        let mut notes = self.notes();
        // What programs look for and can do without comes last.
        notes.sort_by_key(|(what, _)| {
            ["reading", "connecting"]
                .iter()
                .any(|w| what.starts_with(w))
        });
        let more = notes.len().saturating_sub(NOTES);
        let notes = notes.into_iter().take(NOTES);
        let mut notes: String = notes.map(|(what, _)| format!("; {what}")).collect();
        if more > 0 {
            notes += &format!("; and {more} other things");
        }
        GuestError::Start {
            name: self.shared.name.clone(),
            what: what + &notes,
        }
    }
}
