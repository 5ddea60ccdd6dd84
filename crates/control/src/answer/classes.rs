//! Packet classes: which worker has which, and moving one.

use millrace_dataplane::classes::MoveError;
use serde_json::{Value, json};

use super::{Result, Session};
use crate::elements::Parted;
use crate::protocol::Request;
use crate::trouble::Trouble;

impl Session {
    pub(super) fn class(&self, request: &Request) -> Result<Value> {
        let wanted = request.class.as_ref();
        let wanted = wanted.ok_or_else(|| Trouble::new("malformed", "class needs a `class`"))?;
        let parted = self.context.elements.classes.get().ok_or_else(none)?;
        match wanted.op.as_str() {
            "show" => Ok(shown(parted)),
            "move" => {
                let (Some(class), Some(worker)) = (wanted.class, wanted.worker) else {
                    return Err(Trouble::new(
                        "malformed",
                        "to move needs a `class` and a `worker`, both by number",
                    ));
                };
                let moved = parted.classes.assign(class, worker).map_err(refused)?;
                Ok(json!({
                    "class": moved.class,
                    "from": moved.from,
                    "to": moved.to,
                    "held_us": moved.held.as_secs_f64() * 1e6,
                }))
            }
            other => Err(Trouble::new(
                "unknown",
                format!("there is nothing `{other}` to do with a class"),
            )
            .help("there are show and move")),
        }
    }
}

fn shown(parted: &Parted) -> Value {
    let classes = (0..parted.classes.count()).map(|class| {
        let of_class = u16::try_from(class).unwrap_or(u16::MAX);
        let guests = parted
            .guests()
            .iter()
            .map(|(name, guests)| json!({ "name": name, "packets": guests.packets(class) }));
        json!({
            "class": class,
            "worker": parted.classes.worker(of_class),
            "guests": guests.collect::<Vec<_>>(),
        })
    });
    json!({ "classes": classes.collect::<Vec<_>>() })
}

fn refused(error: MoveError) -> Trouble {
    let code = match error {
        MoveError::NoClass { .. } => "no-such-class",
        MoveError::NoWorker { .. } => "no-such-worker",
        MoveError::Busy | MoveError::Late => "busy",
        MoveError::Ends => "ended",
    };
    Trouble::new(code, error).help("`millrace ctl class show` lists classes and their workers")
}

fn none() -> Trouble {
    Trouble::new("no-such-class", "the run has no packet classes")
        .help("a chain with guests has them with --cores above 1 (docs/guests.md)")
}
