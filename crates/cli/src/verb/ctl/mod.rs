//! `millrace ctl`: statistics and orders for what runs, changes of its chain, and a shell for all of them.

mod chain;
mod classes;
mod complete;
mod profile;
mod reload;
mod shell;
mod terminal;
mod text;
mod trace;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use millrace_control::client::request;
use millrace_control::protocol::Request;
use millrace_control::socket;
use serde_json::{Value, json};

use crate::failure::{DONE, Failure};
use crate::screen;
use crate::target::Target;

/// Ask what runs for its counts, change its chain, or tell it to end; without a command, a shell.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 done, 1 the state refuses, 2 wrong use or nothing that answers.")]
pub struct Ctl {
    #[command(subcommand)]
    what: Option<What>,

    #[command(flatten)]
    target: Target,

    /// Print one JSON document
    #[arg(long, global = true)]
    pub json: bool,
}

/// What can be asked.
#[derive(Subcommand)]
pub enum What {
    /// The runs that can be asked
    Runs,
    /// What has happened so far, without holding up packets
    Stats,
    /// The parameters, with their values
    Params,
    /// Set a parameter from the next burst on; what ON_START made of it stays as it is
    Set {
        /// As `run` takes it; of several functions, ELEMENT:NAME=VALUE
        #[arg(value_name = "NAME=VALUE")]
        setting: String,
    },
    /// Look at the chain, and change it between two bursts
    Chain {
        #[command(subcommand)]
        what: chain::What,
    },
    /// Have the run become what its chain file says now, with the least change, between two bursts
    Reload {
        /// Say what would change, and change nothing
        #[arg(long)]
        check: bool,
    },
    /// Explain packets of the run as they come: the lines that each went through, and the state that it met
    Trace {
        #[command(flatten)]
        what: trace::What,
    },
    /// What holds the run back, as counted in so many seconds: conflicts by source line, causes, how packets are shared out
    Profile {
        #[command(flatten)]
        what: profile::What,
    },
    /// Packet classes of guests, and buckets of a function, on several cores: which worker has which, and moving one
    Class {
        #[command(subcommand)]
        what: classes::What,
    },
    /// Let the first so many workers have all buckets of a function that runs with --balance
    Cores {
        /// How many, of those that the run has
        count: usize,
    },
    /// Draw another secret key for the hash of a function that runs with --balance
    Rotate,
    /// The guests of the run, which can be moved
    Guests,
    /// Move a guest, and its packets with it, to a process that waits for one with `millrace receive`
    Migrate {
        /// Its name, or its slot's number
        guest: String,
        /// The other's socket
        #[arg(long, value_name = "SOCKET")]
        to: PathBuf,
    },
    /// Write a snapshot of a guest, which goes on; run it later as guest,restore=FILE:
    Snapshot {
        /// Its name, or its slot's number
        guest: String,
        /// Where to
        file: PathBuf,
    },
    /// End after the packets that the ports have taken already
    Drain,
    /// End before the next burst
    Stop,
}

impl Ctl {
    /// Asks the run, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        match &self.what {
            Some(what) => what.perform(&self.target, self.json),
            None => shell::run(&self.target, self.json),
        }
    }
}

impl What {
    /// Asks the run, and gives the exit status; with `json` the answer is one document.
    pub fn perform(&self, target: &Target, json: bool) -> Result<u8, Failure> {
        if let Self::Trace { what } = self {
            return what.perform(target, json);
        }
        if let Self::Profile { what } = self {
            return what.perform(target, json);
        }
        let ask = |request: Request| {
            let answer = target.connect()?.ask(request);
            answer.map_err(Failure::from)
        };
        let answer = match self {
            Self::Runs => {
                let runs = socket::runs(None);
                let list = runs.iter().map(|(n, p)| json!({ "name": n, "socket": p }));
                json!({ "runs": list.collect::<Vec<_>>() })
            }
            Self::Stats => ask(request("stats"))?,
            // Answered above.
            Self::Trace { .. } | Self::Profile { .. } => Value::Null,
            Self::Params => ask(request("params"))?,
            Self::Set { setting } => ask(Request {
                setting: Some(setting.clone()),
                ..request("set")
            })?,
            Self::Chain { what } => what.ask(target)?,
            Self::Reload { check } => reload::ask(target, *check)?,
            Self::Class { what } => what.ask(target)?,
            Self::Cores { count } => classes::cores(target, *count)?,
            Self::Rotate => classes::rotate(target)?,
            Self::Guests => ask(request("guests"))?,
            Self::Migrate { guest, to } => ask(of_guest("migrate", guest, to)?)?,
            Self::Snapshot { guest, file } => ask(of_guest("snapshot", guest, file)?)?,
            Self::Drain => ask(request("drain"))?,
            Self::Stop => ask(request("stop"))?,
        };
        if json {
            screen::document(&answer);
            return Ok(DONE);
        }
        screen::out(&match self {
            Self::Runs => text::names(&answer),
            Self::Stats => text::stats(&answer),
            Self::Params => text::params(&answer),
            Self::Set { .. } => text::changed(&answer),
            Self::Chain { .. } => chain::text(&answer),
            Self::Reload { .. } => reload::text(&answer),
            Self::Class { .. } | Self::Cores { .. } | Self::Rotate => classes::text(&answer),
            Self::Guests => text::guests(&answer),
            Self::Migrate { .. } | Self::Snapshot { .. } => text::moved(&answer),
            Self::Trace { .. } | Self::Profile { .. } => String::new(),
            Self::Drain | Self::Stop => Value::as_str(&answer["state"])
                .unwrap_or_default()
                .to_owned(),
        });
        Ok(DONE)
    }
}

/// A request about a guest; the run has another working directory than this process.
fn of_guest(verb: &str, guest: &str, to: &Path) -> Result<Request, Failure> {
    let path = std::path::absolute(to).map_err(Failure::wrong)?;
    Ok(Request {
        object: Some(guest.to_owned()),
        to: Some(path.display().to_string()),
        ..request(verb)
    })
}
