//! What packets leave in an object of which each worker has a part: numbers that they add to, so that what several workers
//! added can be summed, and what was stored last.

use millrace_model::Model;
use millrace_model::model::Use;
use millrace_object::program::{ObjectId, StateObject};
use millrace_object::state::distributed;
use millrace_place::{Held, Treatment, Word};

use super::written;

/// The words of the object's values that the model proves to be sums. How wide the instructions are that store them says
/// nothing: eight stores of a byte each can be one addition.
fn of(model: &Model, object: ObjectId) -> Vec<Word> {
    let parts = model.objects.get(object.0).and_then(|o| o.parts.as_ref());
    let words = parts.map_or(&[][..], |p| p.words.as_slice());
    let word = |w: &millrace_model::sums::Word| Word {
        offset: w.offset as usize,
        bytes: w.bytes as usize,
        low: w.low,
    };
    words.iter().map(word).collect()
}

/// Whether packets store bytes in it that none reads again: each worker keeps what its own stored last.
fn latest(model: &Model, object: ObjectId) -> bool {
    let parts = model.objects.get(object.0).and_then(|o| o.parts.as_ref());
    parts.is_some_and(|p| p.latest)
}

/// How an object is held under a treatment.
pub(super) fn held(
    model: &Model,
    id: ObjectId,
    object: &StateObject,
    treatment: Treatment,
) -> Held {
    match treatment {
        Treatment::Shard | Treatment::Hybrid => Held::Divided,
        Treatment::Merge if *object.kind == distributed::KIND => {
            let members = object.value_bytes as usize / 8;
            let word = |at: usize| Word {
                offset: 8 * at,
                bytes: 8,
                low: 0,
            };
            let read = model.objects.get(id.0).map(|o| o.usage) == Some(Use::ReadWrite);
            Held::Merged {
                words: (0..members).map(word).collect(),
                latest: false,
                staleness: Some(object.staleness).filter(|ns| read && *ns > 0),
            }
        }
        Treatment::Merge => Held::Merged {
            words: of(model, id).into(),
            latest: latest(model, id),
            staleness: None,
        },
        Treatment::Lock => Held::Locked,
        Treatment::Transact => Held::Transacted,
        Treatment::Replicate => Held::Replicated,
        Treatment::Spread if object.kind.per_cpu && written(model, id) => Held::Own {
            latest: latest(model, id),
        },
        Treatment::Spread | Treatment::Alone => Held::Copied,
    }
}
