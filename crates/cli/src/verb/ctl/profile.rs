//! `millrace ctl profile`: what holds back what runs.

use std::time::{Duration, Instant};

use clap::Args;
use millrace_control::client::{Client, request};
use millrace_control::protocol::Request;
use serde_json::{Value, json};

use crate::failure::{DONE, Failure};
use crate::screen;
use crate::target::Target;

/// A worker answers between two bursts.
const PATIENCE: Duration = Duration::from_secs(30);
/// A session ends that asks for nothing for half a minute.
const ALIVE: Duration = Duration::from_secs(10);

/// Which run, and for how long.
#[derive(Args)]
pub struct What {
    /// The run, by the name of its function or of its own; not needed where there is only one
    #[arg(value_name = "NF")]
    nf: Option<String>,

    /// How long is counted
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = crate::verb::run::seconds)]
    seconds: Duration,
}

impl What {
    /// Prints what was counted in so many seconds.
    pub fn perform(&self, target: &Target, json: bool) -> Result<u8, Failure> {
        let mut client = target.connect_to(self.nf.as_deref())?;
        client.patience(PATIENCE)?;
        let ask = |client: &mut Client, op: &str| {
            client
                .ask(Request {
                    profile: Some(op.to_owned()),
                    ..request("profile")
                })
                .map_err(Failure::from)
        };
        ask(&mut client, "begin")?;
        let began = Instant::now();
        while let Some(left) = self.seconds.checked_sub(began.elapsed()) {
            std::thread::sleep(left.min(ALIVE));
            if left > ALIVE {
                client.ask(request("hello")).map_err(Failure::from)?;
            }
        }
        let answer = ask(&mut client, "end")?;
        let all = answer["profiles"].as_array().cloned().unwrap_or_default();
        if json {
            let reports: Vec<&Value> = all.iter().map(|p| &p["report"]).collect();
            screen::document(&json!({ "profiles": reports, "seconds": answer["seconds"] }));
            return Ok(DONE);
        }
        for profile in &all {
            screen::out(profile["text"].as_str().unwrap_or_default().trim_end());
        }
        Ok(DONE)
    }
}
