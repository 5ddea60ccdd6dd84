//! `millrace ctl class`, `cores` and `rotate`: packet classes of guests, and buckets of a function, on several cores.

use std::time::Duration;

use clap::Subcommand;
use millrace_control::client::request;
use millrace_control::protocol::{ClassRequest, Request};
use serde_json::Value;

use crate::failure::Failure;
use crate::quantity::grouped;
use crate::target::Target;

/// How long a move may take: longer than the run itself gives it.
const PATIENCE: Duration = Duration::from_secs(20);

/// What can be done with classes.
#[derive(Subcommand)]
pub enum What {
    /// Which worker has which class, and how many packets the guests of each have had
    Show,
    /// Move a class, and its guests or its state with it, to another worker
    Move {
        /// The number of the class
        class: usize,
        /// The number of the worker that is to have it
        worker: usize,
    },
}

impl What {
    /// The answer of the run.
    pub fn ask(&self, target: &Target) -> Result<Value, Failure> {
        let class = match self {
            Self::Show => ClassRequest {
                op: "show".into(),
                ..ClassRequest::default()
            },
            Self::Move { class, worker } => ClassRequest {
                op: "move".into(),
                class: Some(*class),
                worker: Some(*worker),
            },
        };
        ask(target, class)
    }
}

/// Another key of the hash.
pub fn rotate(target: &Target) -> Result<Value, Failure> {
    let rotate = ClassRequest {
        op: "rotate".into(),
        ..ClassRequest::default()
    };
    ask(target, rotate)
}

/// So many workers have buckets.
pub fn cores(target: &Target, count: usize) -> Result<Value, Failure> {
    let cores = ClassRequest {
        op: "cores".into(),
        worker: Some(count),
        ..ClassRequest::default()
    };
    ask(target, cores)
}

fn ask(target: &Target, class: ClassRequest) -> Result<Value, Failure> {
    let mut client = target.connect()?;
    client.patience(PATIENCE)?;
    let request = Request {
        class: Some(class),
        ..request("class")
    };
    client.ask(request).map_err(Failure::from)
}

/// An answer as people read it.
pub fn text(answer: &Value) -> String {
    let Some(classes) = answer["classes"].as_array() else {
        let held = answer["held_us"].as_f64().unwrap_or(0.0);
        if let Some(cores) = answer["cores"].as_u64() {
            return format!(
                "workers that have buckets: {cores}; buckets moved: {}",
                answer["moved"]
            );
        }
        if answer["rotated"].as_bool() == Some(true) {
            return format!(
                "the hash has another key; {} entries moved, and packets waited {held:.0} µs",
                answer["entries"]
            );
        }
        return format!(
            "class {} from worker {} to worker {}; its packets waited {held:.0} µs",
            answer["class"], answer["from"], answer["to"]
        );
    };
    let lines = classes.iter().map(|class| {
        let guests = class["guests"].as_array().into_iter().flatten();
        let guests = guests.map(|guest| {
            let name = guest["name"].as_str().unwrap_or_default();
            let packets = grouped(guest["packets"].as_u64().unwrap_or(0));
            format!("{name}: {packets} packets")
        });
        let guests = guests.collect::<Vec<_>>().join(", ");
        let (class, worker) = (class["class"].to_string(), class["worker"].to_string());
        format!("class {class:<6}worker {worker:<6}{guests}")
    });
    lines.collect::<Vec<_>>().join("\n")
}
