//! The connections of a run to the outside besides packets: its control socket and its pinned maps.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use millrace_control::elements::Element;
use millrace_control::server::{Limits, Server};
use millrace_control::{Elements, Exposed, Trouble, contents, pins::Pins, rules, socket};
use millrace_dataplane::Mailbox;
use millrace_dataplane::account::{self as accounts, Account};
use millrace_dataplane::mailbox::Job;
use millrace_dataplane::module::Entry;

use crate::failure::Failure;
use crate::log;

/// The flags.
#[derive(Args, Clone)]
pub struct Outside {
    /// What a map holds before the first packet, from a file: a JSON array of objects with `key` and
    /// `value`, or lines of KEY,VALUE; of several functions, NF:NAME=FILE
    #[arg(long = "map", value_name = "NAME=FILE")]
    maps: Vec<String>,

    /// Where to listen for `millrace map` and `millrace ctl`, or `none`; else in
    /// $XDG_RUNTIME_DIR/millrace or /run/millrace
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,

    /// The run's name for `--run`; else the function's and the process's number
    #[arg(long, value_name = "NAME", conflicts_with = "control")]
    name: Option<String>,

    /// Keep maps that are declared pinned by name in this folder, from run to run
    #[arg(long, value_name = "FOLDER")]
    pin: Option<PathBuf>,

    /// Keep all maps there
    #[arg(long, requires = "pin")]
    pin_all: bool,
}

/// Resources that are open for a run.
#[derive(Default)]
pub struct Opened {
    /// what is there at start
    pub entries: Vec<Entry>,
    /// where requests wait, one for each worker; none where nobody listens
    pub mailboxes: Vec<Arc<Mailbox>>,
    /// what requests see
    pub elements: Option<Arc<Elements>>,
    /// what is to be done at the end
    pub at_end: Option<Job>,
    /// what went wrong there
    pub failures: Arc<Mutex<Vec<Trouble>>>,
    /// ends with this
    server: Option<Server>,
}

impl Opened {
    /// The run has ended; what could not be kept goes into its account.
    pub fn close(self, account: Result<Account, Failure>) -> Result<Account, Failure> {
        drop(self.server);
        let mut account = account?;
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = std::mem::take(&mut *failures).into_iter();
        account.errors.extend(failed.map(|t| accounts::Failure {
            error: t.what,
            help: t.help.unwrap_or_default(),
        }));
        Ok(account)
    }
}

impl Outside {
    /// Whether others find the run by a name or a place that was given, or its maps.
    pub fn is_named(&self) -> bool {
        let none = self.control.as_deref().is_none_or(|c| c == "none");
        !none || self.name.is_some() || self.pin.is_some() || !self.maps.is_empty()
    }

    /// Reads what is to be there at start, and opens the socket, of a run and its only element with these names.
    ///
    /// # Errors
    /// A file or folder is wrong, or a socket that was asked for cannot be made.
    pub fn open(
        &self,
        (run, element): (&str, &str),
        exposed: &Arc<Exposed>,
        ports: &[String],
        workers: usize,
    ) -> Result<Opened, Failure> {
        let failures = Arc::new(Mutex::new(Vec::new()));
        let (mut entries, mut at_end) = (Vec::new(), None);
        if let Some(folder) = &self.pin {
            let pins = self.pins(folder, exposed)?;
            entries = pins.entries(exposed)?;
            at_end = Some(pins.keep(exposed.clone(), failures.clone()));
        }
        // After what is pinned: what is named now counts.
        entries.extend(Self::entries(&self.maps, exposed)?);
        let elements = Arc::new(Elements::new(
            run,
            vec![Element {
                id: 0,
                name: element.to_owned(),
                ports: ports.to_vec(),
                exposed: Some(exposed.clone()),
                guests: Vec::new(),
                recipe: None,
                alone: None,
                successor: None,
            }],
        ));
        let (server, mailboxes) = self.listen(&elements, workers)?;
        Ok(Opened {
            entries,
            mailboxes,
            elements: Some(elements),
            at_end,
            failures,
            server,
        })
    }

    /// For a function whose state the kernel has: what is to be there at start, what is to be kept at the
    /// end, and a socket for counts and orders, through which no objects are seen.
    ///
    /// # Errors
    /// A file or folder is wrong, or a socket that was asked for cannot be made.
    pub fn in_kernel(
        &self,
        exposed: &Exposed,
    ) -> Result<(Vec<Entry>, Option<Pins>, Opened), Failure> {
        let pins = self
            .pin
            .as_ref()
            .map(|folder| self.pins(folder, exposed))
            .transpose()?;
        let kept = pins.as_ref().map(|p| p.entries(exposed)).transpose();
        let mut entries = kept?.unwrap_or_default();
        entries.extend(Self::entries(&self.maps, exposed)?);
        Ok((
            entries,
            pins,
            self.open_row(Elements::none(&exposed.name), 1)?,
        ))
    }

    /// The folder of pinned maps; what was meant and is not kept is told.
    fn pins(&self, folder: &Path, exposed: &Exposed) -> Result<Pins, Failure> {
        let pins = Pins::open(folder, exposed, self.pin_all)?;
        for left_out in &pins.left_out {
            log::note(format!("--pin does not keep {left_out}"));
        }
        Ok(pins)
    }

    /// The values of `--map`.
    pub fn maps(&self) -> &[String] {
        &self.maps
    }

    /// The entries that words of `--map` name.
    ///
    /// # Errors
    /// A file is wrong.
    pub fn entries(words: &[String], exposed: &Exposed) -> Result<Vec<Entry>, Failure> {
        let entries = contents::entries(words, exposed).map_err(Failure::from)?;
        for entry in &entries {
            if let (Some(made), Ok(object)) = (&entry.rules, exposed.info(entry.object)) {
                log::note(rules::summary(&object.name, made));
            }
        }
        Ok(entries)
    }

    /// Opens a socket for a chain of elements; of one that the kernel runs, for counts and orders alone.
    ///
    /// # Errors
    /// A socket that was asked for cannot be made.
    pub fn open_row(&self, elements: Elements, workers: usize) -> Result<Opened, Failure> {
        let elements = Arc::new(elements);
        let (server, mailboxes) = self.listen(&elements, workers)?;
        Ok(Opened {
            mailboxes,
            elements: Some(elements),
            server,
            ..Opened::default()
        })
    }

    /// A flag that was given and that is for a run of one function.
    pub fn of_one(&self) -> Option<&'static str> {
        self.pin.as_ref().map(|_| "--pin")
    }

    fn listen(
        &self,
        elements: &Arc<Elements>,
        workers: usize,
    ) -> Result<(Option<Server>, Vec<Arc<Mailbox>>), Failure> {
        if self
            .control
            .as_ref()
            .is_some_and(|p| p.as_os_str() == "none")
        {
            return Ok((None, Vec::new()));
        }
        let path = match (&self.control, &self.name) {
            (Some(path), _) => Ok(path.clone()),
            (None, Some(name)) => socket::in_folder(name),
            (None, None) => socket::in_folder(&socket::run_name(&elements.name)).inspect(|_| {
                socket::sweep();
            }),
        };
        let mailboxes: Vec<_> = (0..workers).map(|_| Arc::new(Mailbox::default())).collect();
        let server = path.and_then(|path| {
            Server::start(
                &path,
                elements.clone(),
                mailboxes.clone(),
                Limits::default(),
            )
        });
        match server {
            Ok(server) => Ok((Some(server), mailboxes)),
            // Nobody asked for it, and the packets do not need it.
            Err(trouble) if self.control.is_none() && self.name.is_none() => {
                log::note(format!("no control socket: {trouble}"));
                Ok((None, Vec::new()))
            }
            Err(trouble) => Err(Failure::from(trouble)),
        }
    }
}
