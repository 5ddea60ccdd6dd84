//! The state of a run: taken up from a folder at the start, saved there at the end and now and then (docs/operate.md).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use clap::Args;
use millrace_control::saved::{self, Folder, Found};
use millrace_control::{Elements, Exposed, Trouble};
use millrace_dataplane::Mailbox;
use millrace_dataplane::account::{Account, Failure as Failed};
use millrace_dataplane::share::Share;
use millrace_dataplane::worker::keep::{Keep, Part};
use millrace_state::digest;

use super::Run;
use super::element::Element;
use crate::failure::Failure;
use crate::screen;

/// How long the parts of all workers are waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The flags.
#[derive(Args, Clone)]
pub struct Flags {
    /// Keep all state in this folder, from run to run: what the last run left is taken up, and what is there at the end
    /// is saved before ON_STOP (docs/operate.md)
    #[arg(long, value_name = "FOLDER", conflicts_with = "pin")]
    pub state: Option<PathBuf>,

    /// Save it every so many seconds, too, for a run that is killed
    #[arg(long, value_name = "SECONDS", value_parser = period, requires = "state")]
    state_every: Option<Duration>,

    /// Begin without what the folder holds, which is replaced when the state is saved
    #[arg(long, requires = "state")]
    anew: bool,
}

impl Flags {
    /// Whether the state is saved while the run goes on.
    pub(super) fn often(&self) -> bool {
        self.state_every.is_some()
    }
}

/// The shortest time between two saves.
const SHORTEST: Duration = Duration::from_millis(10);

fn period(text: &str) -> Result<Duration, String> {
    let period = super::seconds(text)?;
    match period >= SHORTEST {
        true => Ok(period),
        false => Err(format!("at least {} seconds", SHORTEST.as_secs_f64())),
    }
}

/// A folder that is open, and what was in it.
pub struct Held {
    folder: Folder,
    found: Option<Found>,
    /// what the keys of steering are drawn from
    secret: [u8; 32],
    seed: u64,
}

/// How a run takes up its state and saves it.
pub struct Saver {
    shared: Arc<Saving>,
    every: Option<Duration>,
}

struct Saving {
    folder: Folder,
    keep: Arc<Keep>,
    elements: Arc<Elements>,
    workers: usize,
    seed: u64,
    steering: Vec<u8>,
}

/// What saves now and then, until it is told to end.
pub struct Ticking {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Run {
    /// Opens the folder, and reads what is there.
    ///
    /// # Errors
    /// Another run has it, or what is there is no state of this version.
    pub(super) fn held(&self) -> Result<Option<Held>, Failure> {
        let Some(path) = &self.state.state else {
            return Ok(None);
        };
        let folder = Folder::open(path)?;
        let found = match self.state.anew {
            true => None,
            false => folder.find()?,
        };
        let front = found.as_ref().map(Found::front);
        let secret = front.and_then(|f| f.steering.first_chunk());
        let seed = front.map_or(self.seed, |f| f.seed);
        if self.seed != 0 && seed != self.seed {
            return Err(Failure::no(format!(
                "--seed {}: the state that is taken up was made with seed {seed}",
                self.seed
            ))
            .help("leave --seed out, or begin without the state (--anew)"));
        }
        Ok(Some(Held {
            secret: secret.copied().unwrap_or_else(millrace::secret_keys),
            folder,
            found,
            seed,
        }))
    }

    /// Takes it up for these elements.
    ///
    /// # Errors
    /// It is that of others, or state that they have cannot be kept.
    pub(super) fn saver(
        &self,
        held: Held,
        parts: &[(&Element, &str)],
        shown: &Arc<Elements>,
    ) -> Result<Saver, Failure> {
        let mut named = Vec::new();
        let mut placed = String::new();
        for (element, name) in parts {
            let Some(function) = element.function() else {
                return Err(Failure::no(format!(
                    "--state: {name} is a guest, whose state is its own"
                ))
                .help("leave --state out; guests have snapshots (docs/guests.md)"));
            };
            named.push((*name, function.exposed.as_ref()));
            placed.push_str(&format!(
                "{:?}",
                function.placement.as_ref().map(|p| &p.steering)
            ));
        }
        saved::keepable(&named)?;
        let mut steering = held.secret.to_vec();
        steering.extend_from_slice(digest(placed.as_bytes()).as_bytes());
        let begin = match held.found {
            None => Vec::new(),
            Some(found) => {
                let front = found.front();
                let as_many = front.workers == self.cores;
                // What all workers have, or each has alike, they find whichever packets they get.
                let parted = named
                    .iter()
                    .any(|(_, e)| e.shares.iter().any(Share::parted));
                if self.cores > 1 && as_many && parted && front.steering != steering {
                    return Err(Failure::no(
                        "--state: workers get other packets than those whose state was saved",
                    )
                    .help(
                        "give the same --steer, --nic and --trace, or begin without it (--anew)",
                    ));
                }
                let found = found.read(&named, self.cores)?;
                saved::parts(found, &named, self.cores)?
            }
        };
        Ok(Saver {
            every: self.state.state_every,
            shared: Arc::new(Saving {
                folder: held.folder,
                keep: Arc::new(Keep::new(begin)),
                elements: shown.clone(),
                workers: self.cores,
                seed: held.seed,
                steering,
            }),
        })
    }
}

impl Held {
    /// What random draws depend on: the seed of the state, where there is one.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What the keys of steering are drawn from.
    pub fn secret(&self) -> [u8; 32] {
        self.secret
    }
}

impl Saver {
    /// What the workers take up and leave.
    pub fn keep(&self) -> Arc<Keep> {
        self.shared.keep.clone()
    }

    /// Begins to save now and then, where that is asked for; there must be a mailbox for each worker.
    pub fn begin(&self, mailboxes: &[Arc<Mailbox>]) -> Option<Ticking> {
        let every = self.every?;
        let (saving, mailboxes) = (self.shared.clone(), mailboxes.to_vec());
        let (end, ended) = channel();
        let thread = std::thread::Builder::new().name("state".into());
        let thread = thread.spawn(move || {
            let mut failed = false;
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                match saving.now(&mailboxes) {
                    Ok(()) => failed = false,
                    // Told once, and tried again: a full disk may have room later.
                    Err(trouble) if !failed => {
                        failed = true;
                        screen::err(&format!("note: {trouble}"));
                    }
                    Err(_) => {}
                }
            }
        });
        Some(Ticking {
            end,
            thread: thread.ok()?,
        })
    }

    /// The run has ended: saves what its workers had; what cannot be saved goes into its account.
    pub fn end(&self, ticking: Option<Ticking>, account: &mut Account) {
        if let Some(Ticking { end, thread }) = ticking {
            drop(end);
            let _ = thread.join();
        }
        let saved = match self.shared.keep.last(self.shared.workers) {
            Some(parts) => self.shared.write(parts),
            None => Err(
                Trouble::new("state", "--state: a worker has died, whose state is lost")
                    .help("the state that was saved before is still there"),
            ),
        };
        if let Err(trouble) = saved {
            account.errors.push(Failed {
                error: trouble.what,
                help: trouble.help.unwrap_or_default(),
            });
        }
    }
}

impl Saving {
    /// Saves what there is now.
    fn now(&self, mailboxes: &[Arc<Mailbox>]) -> Result<(), Trouble> {
        self.keep.again();
        for mailbox in mailboxes {
            if !mailbox.post(Box::new(|desk| desk.keep())) {
                // The run is ending, and saves then.
                return Ok(());
            }
        }
        match self.keep.collect(self.workers, PATIENCE) {
            Some(parts) => self.write(parts),
            None => Ok(()),
        }
    }

    fn write(
        &self,
        parts: Result<Vec<Part>, millrace_dataplane::module::ModuleError>,
    ) -> Result<(), Trouble> {
        let parts = parts.map_err(|e| Trouble::new("state", format!("--state: {e}")))?;
        // As they are now: elements come and go.
        let list = self.elements.list();
        let functions = list
            .iter()
            .filter_map(|e| Some((e.name.as_str(), e.exposed.as_deref()?)));
        let functions: Vec<(&str, &Exposed)> = functions.collect();
        let state = saved::state(parts, &functions, self.seed, self.steering.clone());
        self.folder.write(&state)
    }
}
