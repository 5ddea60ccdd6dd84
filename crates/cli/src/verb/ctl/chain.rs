//! `millrace ctl chain`: what the chain is, and changes of it while it runs.

use std::time::Duration;

use clap::{Args, Subcommand};
use millrace_control::client::request;
use millrace_control::protocol::{ChainRequest, Request};
use serde_json::Value;

use crate::failure::Failure;
use crate::quantity::grouped;
use crate::target::Target;

/// How long a change may take: compiling a large function, or a guest that starts and one that ends.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// What can be done with a chain.
#[derive(Subcommand)]
pub enum What {
    /// The elements, and where their ports lead
    Show,
    /// Put a function or a guest into the chain: at its end, or where it is said
    Attach {
        /// As `run` takes it: a function, or guest:'PROGRAM ARGUMENTS'
        #[arg(value_name = "NF")]
        word: String,

        #[command(flatten)]
        made: Made,

        #[command(flatten)]
        place: Place,
    },
    /// Take an element of two ports out of the chain, and let it end
    Detach {
        /// Its name
        element: String,
    },
    /// Put a function or a guest in the place of another element, which ends
    Replace {
        /// The name of the one that goes
        element: String,

        /// As `run` takes it
        #[arg(value_name = "NF")]
        word: String,

        #[command(flatten)]
        made: Made,

        /// Keep nothing of the state; else all of it is kept, or the replacement is refused
        #[arg(long)]
        anew: bool,
    },
    /// Put an element of two ports somewhere else
    Move {
        /// Its name
        element: String,

        #[command(flatten)]
        place: Place,
    },
    /// Put the elements of a line into this order
    Reorder {
        /// All of them
        #[arg(required = true, value_name = "ELEMENT")]
        order: Vec<String>,
    },
}

/// How a new element is made.
#[derive(Args)]
pub struct Made {
    /// What it is called
    #[arg(long)]
    name: Option<String>,

    /// Set a parameter of the function
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Give a state object of the function room for this many entries
    #[arg(long = "capacity", value_name = "OBJECT=N")]
    capacity: Vec<String>,

    /// What a map of the function holds at start
    #[arg(long = "map", value_name = "NAME=FILE")]
    maps: Vec<String>,
}

/// Where an element is put.
#[derive(Args)]
#[group(multiple = false)]
pub struct Place {
    /// In front of this element, or ELEMENT.PORT
    #[arg(long, value_name = "ELEMENT")]
    before: Option<String>,

    /// Behind this element, or ELEMENT.PORT
    #[arg(long, value_name = "ELEMENT")]
    after: Option<String>,
}

impl What {
    /// The answer of the run.
    pub fn ask(&self, target: &Target) -> Result<Value, Failure> {
        let mut client = target.connect()?;
        client.patience(PATIENCE)?;
        let chain = Some(self.request());
        let request = Request {
            chain,
            ..request("chain")
        };
        client.ask(request).map_err(Failure::from)
    }

    fn request(&self) -> ChainRequest {
        let of = |op: &str| ChainRequest {
            op: op.to_owned(),
            ..ChainRequest::default()
        };
        let made = |op: &str, word: &str, made: &Made| {
            let directory = std::env::current_dir().ok();
            ChainRequest {
                word: Some(word.to_owned()),
                name: made.name.clone(),
                set: made.set.clone(),
                capacity: made.capacity.clone(),
                maps: made.maps.clone(),
                directory: directory.and_then(|d| d.to_str().map(str::to_owned)),
                ..of(op)
            }
        };
        match self {
            Self::Show => of("show"),
            Self::Attach {
                word,
                made: how,
                place,
            } => ChainRequest {
                before: place.before.clone(),
                after: place.after.clone(),
                ..made("attach", word, how)
            },
            Self::Detach { element } => ChainRequest {
                element: Some(element.clone()),
                ..of("detach")
            },
            Self::Replace {
                element,
                word,
                made: how,
                anew,
            } => ChainRequest {
                element: Some(element.clone()),
                anew: *anew,
                ..made("replace", word, how)
            },
            Self::Move { element, place } => ChainRequest {
                element: Some(element.clone()),
                before: place.before.clone(),
                after: place.after.clone(),
                ..of("move")
            },
            Self::Reorder { order } => ChainRequest {
                order: order.clone(),
                ..of("reorder")
            },
        }
    }
}

/// An answer as people read it.
pub fn text(answer: &Value) -> String {
    if answer.get("line").is_some() {
        return shown(answer);
    }
    let list = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let elements: Vec<_> = list("elements").iter().map(word).collect();
    let mut lines = vec![elements.join(" - ")];
    for kept in list("kept") {
        let entries = grouped(kept["entries"].as_u64().unwrap_or(0));
        lines.push(format!(
            "  kept   {}: {entries} entries",
            word(&kept["object"])
        ));
    }
    lines.extend(list("facts").iter().map(|fact| format!("  {}", word(fact))));
    let made = answer["made_ms"].as_f64();
    let made = made.map_or_else(String::new, |ms| {
        format!("made beside the chain in {ms:.0} ms; ")
    });
    let paused = answer["paused_us"].as_f64().unwrap_or(0.0);
    lines.push(format!("  {made}packets waited {paused:.0} µs"));
    lines.join("\n")
}

/// The elements, a line each, with where their ports lead.
fn shown(answer: &Value) -> String {
    let leads = |end: &Value| match end["out"].as_u64() {
        Some(port) => format!("port {port}"),
        None => {
            let word = |name: &str| end[name].as_str().unwrap_or("?").to_owned();
            format!("{}.{}", word("element"), word("port"))
        }
    };
    let elements = answer["elements"].as_array().into_iter().flatten();
    let lines = elements.map(|element| {
        let ports = element["ports"].as_array().into_iter().flatten();
        let ports = ports.map(|port| {
            let name = port["name"].as_str().unwrap_or("?");
            format!("{name} to {}", leads(&port["leads"]))
        });
        let word = |name: &str| element[name].as_str().unwrap_or_default().to_owned();
        let ports = ports.collect::<Vec<_>>().join(", ");
        let mut line = format!("{:<20}{:<10}{ports}", word("name"), word("kind"));
        for guest in element["guests"].as_array().into_iter().flatten() {
            line.push_str(&format!("\n{:<20}{}", "", super::text::condition(guest)));
        }
        line
    });
    lines.collect::<Vec<_>>().join("\n")
}
