//! `millrace ctl trace`: packets of a run, explained as they come.

use std::time::Duration;

use clap::Args;
use millrace_control::client::request;
use millrace_control::protocol::{Request, TraceRequest};
use serde_json::{Value, json};

use crate::failure::{DONE, Failure, NO};
use crate::screen;
use crate::target::Target;

/// The proof of a large function may have to be made first.
const PATIENCE: Duration = Duration::from_secs(120);

/// Which packets.
#[derive(Args)]
pub struct What {
    /// The run, by the name of its function or of its own; not needed where there is only one
    #[arg(value_name = "NF")]
    nf: Option<String>,

    /// Packets that fit a filter, as in 'drop no_flow and src 10.0.0.1'
    #[arg(long = "match", value_name = "FILTER", default_value = "any")]
    filter: String,

    /// End after so many
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    count: u64,
}

impl What {
    /// Prints what comes, until there were enough; ^C ends it, and the run goes on.
    pub fn perform(&self, target: &Target, json: bool) -> Result<u8, Failure> {
        let mut client = target.connect_to(self.nf.as_deref())?;
        client.patience(PATIENCE)?;
        let mut ask = |op: &str, what: TraceRequest| {
            let trace = Some(TraceRequest {
                op: op.to_owned(),
                ..what
            });
            let answer = client.ask(Request {
                trace,
                ..request("trace")
            });
            answer.map_err(Failure::from)
        };
        ask(
            "begin",
            TraceRequest {
                filter: Some(self.filter.clone()),
                count: Some(self.count),
                ..TraceRequest::default()
            },
        )?;
        let (mut told, mut all) = (0, Vec::new());
        let list = |answer: &Value, name: &str| answer[name].as_array().cloned();
        let last = loop {
            let answer = ask("next", TraceRequest::default())?;
            for packet in list(&answer, "packets").unwrap_or_default() {
                told += 1;
                match json {
                    true => all.push(packet["explanation"].clone()),
                    false => screen::out(packet["text"].as_str().unwrap_or_default()),
                }
            }
            for failure in list(&answer, "failures").unwrap_or_default() {
                told += 1;
                screen::err(&format!(
                    "not explained: {}",
                    failure.as_str().unwrap_or("")
                ));
            }
            if told >= self.count || !answer["ended"].is_null() {
                break answer;
            }
        };
        // A run that has ended needs not be told.
        let _ = ask("end", TraceRequest::default());
        let number = |name: &str| last[name].as_u64().unwrap_or(0);
        if json {
            screen::document(&json!({
                "packets": all,
                "looked": number("looked"),
                "passed": number("passed"),
                "unlike": number("unlike"),
                "ended": last["ended"],
            }));
        }
        if number("passed") > 0 {
            screen::err(&format!(
                "note: {} packets were looked at, and {} passed by, so that looking takes no more than 1 % of a worker's time",
                number("looked"),
                number("passed")
            ));
        }
        if number("unlike") > 0 {
            screen::err(&format!(
                "note: {} packets are not told, because another worker changed what they met",
                number("unlike")
            ));
        }
        match last["ended"].as_str() {
            Some(why) if told < self.count => {
                screen::err(&format!("{why}: {told} of {} packets came", self.count));
                Ok(NO)
            }
            _ => Ok(DONE),
        }
    }
}
