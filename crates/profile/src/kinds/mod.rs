//! Causes and recipes, beside each kind of object: a file each, and a line in [`ADVICE`].

mod allocator;
mod array;
mod distributed;
mod lpm;
mod map;
mod other;
mod sketch;

use millrace_dataplane::module::What;
use millrace_object::program::StateObject;

use crate::document::Abort;

/// What was met at an object, as a kind's advice sees it.
pub struct Met<'a> {
    /// the object
    pub object: &'a StateObject,
    /// at what; none of a step that runs alone
    pub what: Option<What>,
    /// the counts
    pub abort: &'a Abort,
    /// entries at the end, where they can be counted
    pub entries: Option<u64>,
}

impl Met<'_> {
    /// The other operation, or the same one where it is not known.
    #[must_use]
    pub fn with(&self) -> &str {
        let with = self.abort.with.as_ref();
        with.map_or(self.abort.operation.as_str(), |w| w.operation.as_str())
    }

    /// Of one key, or of several.
    #[must_use]
    pub fn of_keys(&self) -> String {
        match &self.abort.key {
            Some(key) => format!("of one key ({key})"),
            None => "of the same entries".to_owned(),
        }
    }
}

/// What would help.
pub struct Idea {
    /// an option of the declaration and its new value, or none where the author changes the source
    pub option: Option<(&'static str, u64)>,
    /// what is there; empty: the option's value
    pub from: String,
    /// what would be there; empty: likewise
    pub to: String,
    /// other words for a part of the line; none where the change is more than that
    pub edit: Option<(String, String)>,
    /// why
    pub why: &'static str,
    /// the part of the time of these conflicts that it removes, 0 to 1
    pub removes: f64,
}

impl Idea {
    /// Another value of an option.
    #[must_use]
    pub fn option(name: &'static str, value: u64, removes: f64, why: &'static str) -> Self {
        Self {
            option: Some((name, value)),
            from: String::new(),
            to: String::new(),
            edit: None,
            why,
            removes,
        }
    }

    /// Another line.
    #[must_use]
    pub fn source(from: String, to: String, removes: f64, why: &'static str) -> Self {
        Self {
            option: None,
            from,
            to,
            edit: None,
            why,
            removes,
        }
    }

    /// Other words for a part of the line, which can be tried.
    #[must_use]
    pub fn edit(from: &str, to: &str, removes: f64, why: &'static str) -> Self {
        Self {
            edit: Some((from.to_owned(), to.to_owned())),
            ..Self::source(format!("{from}…)"), format!("{to}…)"), removes, why)
        }
    }
}

/// What is to be said of a kind.
pub struct Advice {
    /// whether it is about this object
    pub about: fn(&StateObject) -> bool,
    /// the cause, in the object's terms
    pub cause: fn(&Met<'_>) -> String,
    /// what helps, the best first
    pub ideas: fn(&Met<'_>) -> Vec<Idea>,
    /// whether as it is declared it keeps other objects from being divided among cores, which one of the ideas would end
    pub forces: fn(&StateObject) -> bool,
}

/// The first that is about an object is taken; the last is about any.
pub const ADVICE: &[Advice] = &[
    map::ADVICE,
    allocator::ADVICE,
    distributed::ADVICE,
    array::ADVICE,
    sketch::ADVICE,
    lpm::ADVICE,
    other::ADVICE,
];

/// The advice about an object.
#[must_use]
pub fn about(object: &StateObject) -> &'static Advice {
    let found = ADVICE.iter().find(|advice| (advice.about)(object));
    found.unwrap_or(&other::ADVICE)
}

/// Words for operations on keyed objects, as in "a get and a put".
#[must_use]
pub fn word(operation: &str) -> &str {
    match operation {
        "map_get" | "map_lookup_elem" | "lpm_get" | "allocator_get" | "vector_at" => "a get",
        "map_refresh" | "allocator_refresh" => "a refresh",
        "map_put" | "map_update_elem" | "lpm_put" => "a put",
        "map_delete" | "map_delete_elem" | "lpm_delete" => "a removal",
        "allocator_lease" => "a lease",
        "allocator_free" => "a release",
        other => other,
    }
}
