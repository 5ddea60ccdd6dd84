//! Packet classes: which worker has which, and moving one.

use std::hash::{BuildHasher, Hasher, RandomState};

use millrace_dataplane::classes::MoveError;
use millrace_dataplane::classes::away::Whose;
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
                    "entries": moved.entries,
                }))
            }
            "cores" => {
                let wanted = wanted.worker.ok_or_else(|| {
                    Trouble::new("malformed", "cores needs a `worker`, which is how many")
                })?;
                buckets(parted)?;
                let moved = parted.classes.cores(wanted).map_err(refused)?;
                Ok(json!({ "cores": wanted, "moved": moved }))
            }
            "rotate" => {
                buckets(parted)?;
                let moved = parted.classes.rotate(secret()).map_err(refused)?;
                Ok(json!({
                    "rotated": true,
                    "entries": moved.entries,
                    "held_us": moved.held.as_secs_f64() * 1e6,
                }))
            }
            other => Err(Trouble::new(
                "unknown",
                format!("there is nothing `{other}` to do with a class"),
            )
            .help("there are show, move, cores and rotate")),
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
            "worker": match parted.classes.whose(of_class) {
                Whose::Worker(worker) => json!(worker),
                Whose::Waits => json!("waits"),
                Whose::Away => json!("away"),
            },
            "guests": guests.collect::<Vec<_>>(),
        })
    });
    let mut shown = json!({ "classes": classes.collect::<Vec<_>>() });
    if parted.classes.buckets().is_some() {
        shown["moved"] = json!(parted.classes.counts());
        shown["loads"] = json!(parted.classes.loads());
    }
    shown
}

/// Whether classes are buckets of a function.
fn buckets(parted: &Parted) -> Result<()> {
    match parted.classes.buckets() {
        Some(_) => Ok(()),
        None => Err(Trouble::new(
            "no-buckets",
            "the packet classes of this run are those of guests, which have one key and as many workers as there are",
        )
        .help("a function has buckets that move with --balance")),
    }
}

/// What a key is drawn from: numbers that nobody outside can guess, from those of the system, by which the standard library draws the keys of
/// its hash tables.
fn secret() -> [u8; 32] {
    let mut bytes = [0; 32];
    for eight in bytes.chunks_exact_mut(8) {
        let drawn = RandomState::new().build_hasher().finish();
        eight.copy_from_slice(&drawn.to_ne_bytes());
    }
    bytes
}

fn refused(error: MoveError) -> Trouble {
    let code = match error {
        MoveError::NoClass { .. } => "no-such-class",
        MoveError::NoWorker { .. } => "no-such-worker",
        MoveError::Busy | MoveError::Late => "busy",
        MoveError::Ends => "ended",
        MoveError::Full => "full",
        MoveError::Asked => "busy",
        MoveError::Changed => "changed",
        MoveError::OneKey | MoveError::Cluster => "one-key",
        MoveError::Gone => "away",
        MoveError::There => "here",
        MoveError::Workers { .. } => "no-such-worker",
    };
    Trouble::new(code, error).help("`millrace ctl class show` lists classes and their workers")
}

fn none() -> Trouble {
    Trouble::new("no-such-class", "the run has no packet classes")
        .help("a chain with guests has them with --cores above 1 (docs/guests.md), a function with --balance (docs/moving.md)")
}
