//! Keys that a path reads from an entry of another object which it has found: where the two entries were made
//! together, they lie on the same core, and the key asks for nothing of its own.
//!
//! Let a path find entry `e` of object A by a key that the steering knows, read bytes of its value, and look
//! object B up with them. If every write to those bytes of A stands on a path that touches B under the very
//! bytes that it writes, then B's entry is of the core of the packet that wrote, which is that of `e`.

use millrace_model::Model;
use millrace_object::program::{ObjectId, Program};

use crate::touch::{Source, Touch};

/// Whether that holds of an access; then it depends on A being sharded, too.
pub(crate) fn holds(model: &Model, program: &Program, touch: &Touch) -> bool {
    let Source::Value { object, bytes } = &touch.source else {
        return false;
    };
    // Elements of arrays are there without having been written.
    let entries = program
        .objects
        .get(*object)
        .is_some_and(|o| matches!(o.kind.name, "map" | "hash" | "lru_hash" | "allocator"));
    if !entries {
        return false;
    }
    let own = touch
        .at
        .access_of(model)
        .map(|a| a.key.clone())
        .unwrap_or_default();
    let own_arena = model.entries.get(touch.at.entry).map(|e| &e.arena);
    let (Some(first), Some(last)) = (
        bytes.iter().flatten().min().copied(),
        bytes.iter().flatten().max().copied(),
    ) else {
        return false;
    };
    let writers = model.writers(ObjectId(*object), &(first..last + 1));
    !writers.is_empty()
        && writers.iter().all(|w| {
            let Some((entry, path)) = w.path_of(model) else {
                return false;
            };
            path.accesses.iter().any(|a| {
                a.object.0 == touch.object
                    && a.key.len() == bytes.len()
                    && a.key
                        .iter()
                        .zip(bytes)
                        .enumerate()
                        .all(|(i, (e, byte))| match byte {
                            Some(byte) => {
                                let at = byte.checked_sub(w.from).map(|at| at as usize);
                                at.and_then(|at| w.value.get(at)) == Some(e)
                            }
                            None => {
                                let mine = own.get(i).zip(own_arena);
                                let mine = mine.and_then(|(e, arena)| arena.constant(*e));
                                mine.is_some() && entry.arena.constant(*e) == mine
                            }
                        })
            })
        })
}
