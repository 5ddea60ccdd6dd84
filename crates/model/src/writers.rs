//! The possible writers of the bytes that a path reads from state: the writes of all paths of all entries to that
//! object, and nothing else but the host's own settings and what is there at start.
//!
//! A symbol `flows#1[0..8]` is eight bytes of some entry of `flows` as an earlier packet left them. Which
//! packet that was nobody knows; but that each of these bytes is zero, what the host set, or what one of the
//! [`Writer`]s of `flows` wrote to its place does hold, if the paths are all (`Object::approximate` says so).

use std::ops::Range;

use millrace_object::program::{ObjectId, Program};

use crate::expr::{Arena, ExprId, Origin, SymId};
use crate::model::{Effect, Entry, Model, Path};

/// A write to a value of an object.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Writer {
    /// whose path: index into `Model::entries`
    pub entry: usize,
    /// index into `Entry::paths`
    pub path: usize,
    /// index into `Path::accesses`
    pub access: usize,
    /// the first byte of the value that is written
    pub from: u32,
    /// what is written, in memory order, in the expressions of that entry
    pub value: Vec<ExprId>,
}

impl Writer {
    /// The bytes that are written.
    #[must_use]
    pub fn bytes(&self) -> Range<u32> {
        self.from..self.from + self.value.len() as u32
    }

    /// The path that writes.
    #[must_use]
    pub fn path_of<'m>(&self, model: &'m Model) -> Option<(&'m Entry, &'m Path)> {
        let entry = model.entries.get(self.entry)?;
        Some((entry, entry.paths.get(self.path)?))
    }
}

/// Outcomes of calls that have stored nothing.
const NOTHING: [&str; 4] = ["full", "none free", "absent", "beyond the last"];

/// The writes to an object's values, in the order of entries, paths and accesses. A map that may be in a map of
/// maps has those of the maps there, too.
pub(crate) fn of_object(program: &Program, entries: &[Entry], object: ObjectId) -> Vec<Writer> {
    let fits = |other: ObjectId| {
        let pair = program.object(object).zip(program.object(other));
        other == object
            || pair.is_some_and(|(a, b)| (a.is_shape() && b.fits(a)) || (b.is_shape() && a.fits(b)))
    };
    let mut all = Vec::new();
    for (entry, e) in entries.iter().enumerate() {
        for (path, p) in e.paths.iter().enumerate() {
            for (access, a) in p.accesses.iter().enumerate() {
                let stores = matches!(a.effect, Effect::Write | Effect::Add)
                    && !a.value.is_empty()
                    && a.outcome
                        .is_none_or(|o| !NOTHING.contains(&o) && !o.starts_with("refused"));
                if stores && fits(a.object) {
                    all.push(Writer {
                        entry,
                        path,
                        access,
                        from: a.offset.unwrap_or(0),
                        value: a.value.clone(),
                    });
                }
            }
        }
    }
    all
}

/// The object's bytes that a symbol stands for; none for those that are not read from a value.
#[must_use]
pub fn read_by(program: &Program, arena: &Arena, symbol: SymId) -> Option<(ObjectId, Range<u32>)> {
    let symbol = arena.symbol(symbol);
    let Origin::State(object) = symbol.origin else {
        return None;
    };
    // The object's name may hold any sign, so it is known and cut off first.
    let rest = symbol
        .name
        .strip_prefix(&program.objects.get(object)?.name)?;
    let rest = match rest.strip_prefix('#') {
        Some(r) => r.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    let (from, to) = rest
        .strip_prefix('[')?
        .strip_suffix(']')?
        .split_once("..")?;
    Some((ObjectId(object), from.parse().ok()?..to.parse().ok()?))
}

impl Model {
    /// The writes that can have made a byte of this range.
    #[must_use]
    pub fn writers(&self, object: ObjectId, bytes: &Range<u32>) -> Vec<&Writer> {
        let writers = self.objects.get(object.0).map_or(&[][..], |o| &o.writers);
        let touches = |w: &&Writer| w.bytes().start < bytes.end && bytes.start < w.bytes().end;
        writers.iter().filter(touches).collect()
    }
}
