//! `check --cores`: the memory of state that workers share, and what each of them adds, from the formulas of sizes.

use std::fmt::Write;

use millrace_object::program::{Program, StateObject};
use serde_json::{Value, json};

use crate::quantity::bytes;

/// An object that all workers share under one treatment.
struct Shared {
    /// bytes of all workers together
    all: u64,
    /// bytes that each worker adds
    each: u64,
}

impl Shared {
    fn of(one: u64, each: u64, cores: u32) -> Self {
        Self {
            all: one.saturating_add(each.saturating_mul(u64::from(cores))),
            each,
        }
    }
}

/// Under the lock, and in transactions: none of kinds without version words.
fn shared(object: &StateObject, cores: u32) -> (Shared, Option<Shared>) {
    let lock = Shared::of(object.bytes(), object.locked_bytes_per_worker(), cores);
    let transact = object.transacted_bytes(false);
    (
        lock,
        transact.map(|(one, each)| Shared::of(one, each, cores)),
    )
}

/// Objects that packets may write: constants and settings are no worker's.
fn listed(program: &Program) -> impl Iterator<Item = &StateObject> {
    program.objects.iter().filter(|o| !o.read_only)
}

/// A table of them.
pub fn text(program: &Program, cores: u32) -> String {
    let mut text = String::new();
    let width = listed(program).map(|o| o.name.len()).max().unwrap_or(0);
    let width = width.max(6);
    let s = if cores == 1 { "" } else { "s" };
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\n  shared by {cores} worker{s}: memory in all, and what each worker adds\n  {:<width$}{:>14}{:>12}{:>16}{:>12}",
        "object", "lock", "each", "transact", "each"
    );
    for object in listed(program) {
        let (lock, transact) = shared(object, cores);
        let of = |shared: Option<&Shared>| match shared {
            Some(shared) => (bytes(shared.all), bytes(shared.each)),
            None => ("as lock".to_owned(), String::new()),
        };
        let (lock, transact) = (of(Some(&lock)), of(transact.as_ref()));
        let line = format!(
            "  {:<width$}{:>14}{:>12}{:>16}{:>12}",
            object.name, lock.0, lock.1, transact.0, transact.1
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// The same as JSON.
pub fn document(program: &Program, cores: u32) -> Value {
    let of = |shared: Shared| json!({ "bytes": shared.all, "bytes_each": shared.each });
    let objects: Vec<Value> = listed(program)
        .map(|object| {
            let (lock, transact) = shared(object, cores);
            json!({ "name": object.name, "lock": of(lock), "transact": transact.map(of) })
        })
        .collect();
    json!({ "cores": cores, "objects": objects })
}
