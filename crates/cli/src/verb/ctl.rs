//! `millrace ctl`: statistics and orders for a running function.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use millrace_control::client::request;
use millrace_control::protocol::Request;
use millrace_control::socket;
use serde_json::{Value, json};

use crate::failure::{DONE, Failure};
use crate::quantity::{grouped, percent};
use crate::screen;
use crate::target::Target;

/// Ask a running function for its counts, or tell it to end.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 done, 1 the state refuses, 2 wrong use or nothing that answers.")]
pub struct Ctl {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    target: Target,

    /// Print one JSON document
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum What {
    /// The runs that can be asked
    Runs,
    /// What has happened so far, without holding up packets
    Stats,
    /// The parameters, with their values
    Params,
    /// Set a parameter from the next burst on; what ON_START made of it stays as it is
    Set {
        /// As `run` takes it
        #[arg(value_name = "NAME=VALUE")]
        setting: String,
    },
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
    /// Whether standard output is for one JSON document.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Asks the run, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        let answer = match &self.what {
            What::Runs => {
                let runs = socket::runs(None);
                let list = runs.iter().map(|(n, p)| json!({ "name": n, "socket": p }));
                json!({ "runs": list.collect::<Vec<_>>() })
            }
            What::Stats => self.ask(request("stats"))?,
            What::Params => self.ask(request("params"))?,
            What::Set { setting } => self.ask(Request {
                setting: Some(setting.clone()),
                ..request("set")
            })?,
            What::Guests => self.ask(request("guests"))?,
            What::Migrate { guest, to } => self.ask(of_guest("migrate", guest, to)?)?,
            What::Snapshot { guest, file } => self.ask(of_guest("snapshot", guest, file)?)?,
            What::Drain => self.ask(request("drain"))?,
            What::Stop => self.ask(request("stop"))?,
        };
        if self.json {
            screen::document(&answer);
            return Ok(DONE);
        }
        screen::out(&match &self.what {
            What::Runs => names(&answer),
            What::Stats => stats(&answer),
            What::Params => params(&answer),
            What::Set { .. } => changed(&answer),
            What::Guests => guests(&answer),
            What::Migrate { .. } | What::Snapshot { .. } => moved(&answer),
            _ => answer["state"].as_str().unwrap_or_default().to_owned(),
        });
        Ok(DONE)
    }

    fn ask(&self, request: Request) -> Result<Value, Failure> {
        let mut client = self.target.connect()?;
        client.ask(request).map_err(Failure::control)
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

fn guests(answer: &Value) -> String {
    let guests = answer["guests"].as_array().into_iter().flatten();
    let lines: Vec<_> = guests
        .map(|g| {
            let name = g["name"].as_str().unwrap_or_default();
            format!("{name:<24}slot {}", g["slot"])
        })
        .collect();
    match lines.is_empty() {
        true => "there are no guests".to_owned(),
        false => lines.join("\n"),
    }
}

fn moved(answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().unwrap_or_default();
    let rounds = answer["rounds"].as_array().into_iter().flatten();
    let mut lines = vec![format!(
        "{} to {}, pages tracked by {}",
        text("guest"),
        text("to"),
        text("tracked_by")
    )];
    lines.extend(rounds.enumerate().map(|(number, round)| {
        let pages = round["pages"].as_u64().unwrap_or(0);
        let ms = round["ms"].as_f64().unwrap_or(0.0);
        format!(
            "  round {:<3}{:>10} pages {ms:>10.2} ms",
            number + 1,
            grouped(pages)
        )
    }));
    let bytes = answer["bytes"].as_u64().unwrap_or(0);
    let stopped = answer["stopped_ms"].as_f64().unwrap_or(0.0);
    lines.push(format!(
        "  {} bytes; it was stopped for {stopped:.2} ms",
        grouped(bytes)
    ));
    lines.join("\n")
}

fn names(answer: &Value) -> String {
    let runs = answer["runs"].as_array().into_iter().flatten();
    let lines: Vec<_> = runs
        .map(|r| {
            let text = |name: &str| r[name].as_str().unwrap_or_default().to_owned();
            format!("{:<30} {}", text("name"), text("socket"))
        })
        .collect();
    match lines.is_empty() {
        true => "nothing runs".to_owned(),
        false => lines.join("\n"),
    }
}

fn params(answer: &Value) -> String {
    let params = answer["params"].as_array().into_iter().flatten();
    let lines: Vec<_> = params
        .map(|p| {
            let text = |name: &str| p[name].as_str().unwrap_or("-").to_owned();
            format!("{:<24}{:<16}{}", text("name"), text("type"), text("value"))
        })
        .collect();
    match lines.is_empty() {
        true => "there are no parameters".to_owned(),
        false => lines.join("\n"),
    }
}

fn changed(answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().unwrap_or("-");
    format!(
        "{} was {}, is {}",
        text("name"),
        text("before"),
        text("now")
    )
}

fn stats(answer: &Value) -> String {
    let mut lines = Vec::new();
    let name = answer["name"].as_str().unwrap_or_default();
    for account in answer["accounts"].as_array().into_iter().flatten() {
        let number = |name: &str| account[name].as_u64().unwrap_or(0);
        let read = number("read");
        let seconds = account["seconds"].as_f64().unwrap_or(0.0);
        lines.push(format!(
            "{name}: {} packets in {seconds:.1} s",
            grouped(read)
        ));
        for fate in ["forwarded", "dropped", "passed", "consumed", "aborted"] {
            let packets = number(fate);
            if packets > 0 {
                let share = percent(packets, read);
                lines.push(format!(
                    "  {fate:<22}{:>14}  {share:5.1} %",
                    grouped(packets)
                ));
            }
        }
        for (reason, packets) in account["reasons"].as_object().into_iter().flatten() {
            let packets = packets.as_u64().unwrap_or(0);
            lines.push(format!("  because {reason:<14}{:>14}", grouped(packets)));
        }
        let ns = account["function"]["ns_per_packet"].as_f64().unwrap_or(0.0);
        lines.push(format!("  function  {ns:.1} ns a packet"));
    }
    lines.join("\n")
}
