//! Edits of state objects, together: all of them or none.

use std::sync::Arc;

use millrace_classify::Classifier;
use millrace_dataplane::Instance;
use millrace_dataplane::module::{Entry, ModuleError};
use millrace_dataplane::share::cleared;
use millrace_object::state::Addressing;
use millrace_place::{Held, Word};
use millrace_state::Content;
use serde_json::Value;

use crate::exposed::Exposed;
use crate::protocol;
use crate::trouble::Trouble;

/// One change, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// an entry is written, over an older one if there is one
    Set {
        object: usize,
        key: Vec<u8>,
        value: Vec<u8>,
    },
    /// an entry is written at one worker, which has it or is to have it
    Put {
        object: usize,
        key: Vec<u8>,
        value: Vec<u8>,
        worker: usize,
    },
    /// an entry goes; whether there was one is counted
    Delete { object: usize, key: Vec<u8> },
    /// all entries go; those of arrays, which always exist, become zero
    Clear { object: usize },
    /// a classifier has these rules; none: every key has class 0
    Rules {
        object: usize,
        rules: Option<Arc<Classifier>>,
    },
    /// a part of rules as text, which waits for the rest of it
    Text { object: usize, text: String },
    /// an object holds this and nothing else, as it was at that time, ns; later times in it are now
    Load {
        object: usize,
        content: Arc<Content>,
        time: u64,
    },
}

impl Change {
    /// The object that changes.
    pub fn object(&self) -> usize {
        match self {
            Self::Set { object, .. }
            | Self::Put { object, .. }
            | Self::Delete { object, .. }
            | Self::Clear { object }
            | Self::Rules { object, .. }
            | Self::Text { object, .. }
            | Self::Load { object, .. } => *object,
        }
    }

    /// The same for a worker other than the first, which begins with these numbers of a value at zero.
    fn cleared(&self, words: &[Word]) -> Self {
        match self {
            Self::Set { object, key, value } => Self::Set {
                object: *object,
                key: key.clone(),
                value: cleared(words, value),
            },
            other => other.clone(),
        }
    }

    /// Bytes that it takes while it waits.
    pub fn bytes(&self) -> usize {
        let content = match self {
            Self::Set { key, value, .. } | Self::Put { key, value, .. } => key.len() + value.len(),
            Self::Delete { key, .. } => key.len(),
            Self::Clear { .. } | Self::Rules { .. } => 0,
            Self::Text { text, .. } => text.len(),
            Self::Load { content, .. } => content.as_bytes().len(),
        };
        size_of::<Self>() + content
    }

    /// From what somebody wrote.
    pub fn of(edit: &protocol::Edit, exposed: &Exposed) -> Result<Vec<Self>, Trouble> {
        if let Ok(object) = exposed.index(&edit.object)
            && exposed.takes_rules(object)
            && edit.op != "set"
            && edit.op != "delete"
        {
            return match (
                edit.op.as_str(),
                edit.value.as_ref().and_then(Value::as_str),
            ) {
                ("clear", _) => Ok(vec![Self::Rules {
                    object,
                    rules: None,
                }]),
                ("rules", Some(text)) => Ok(vec![Self::Text {
                    object,
                    text: text.to_owned(),
                }]),
                _ => Err(Trouble::new(
                    "malformed",
                    format!(
                        "{}: a classifier takes `rules`, a text, or `clear`",
                        edit.object
                    ),
                )),
            };
        }
        let object = exposed.settable(&edit.object).map_err(|t| Trouble {
            what: format!("{}: {}", edit.object, t.what),
            ..t
        })?;
        let malformed = |what: String| {
            Trouble::new("malformed", format!("{}: {what}", edit.object))
                .help(crate::contents::FORMS)
        };
        let none = |what: &str| malformed(format!("{} needs a {what}", edit.op));
        let key = || {
            let key = edit.key.as_ref().ok_or_else(|| none("key"))?;
            let key = exposed.key(object, key);
            key.map_err(|e| malformed(format!("key: {e}")))
        };
        match edit.op.as_str() {
            "set" => {
                let value = edit.value.as_ref().ok_or_else(|| none("value"))?;
                let entries = exposed.entries(object, edit.key.as_ref(), value);
                let set = |entry: Entry| Self::Set {
                    object: entry.object,
                    key: entry.key,
                    value: entry.value,
                };
                Ok(entries.map_err(malformed)?.into_iter().map(set).collect())
            }
            "delete" => Ok(vec![Self::Delete {
                object,
                key: key()?,
            }]),
            "clear" => Ok(vec![Self::Clear { object }]),
            other => Err(malformed(format!("`{other}` is not set, delete or clear"))),
        }
    }
}

/// Makes rules of the texts among some changes: of each object all of them, one behind the other. It may take seconds, and
/// no worker waits for it.
///
/// # Errors
/// The first line that is no rule.
pub fn compiled(changes: Vec<Change>, exposed: &Exposed) -> Result<Vec<Change>, Trouble> {
    let mut texts = std::collections::BTreeMap::<usize, String>::new();
    let mut rest = Vec::new();
    for change in changes {
        match change {
            Change::Text { object, text } => texts.entry(object).or_default().push_str(&text),
            other => rest.push(other),
        }
    }
    for (object, text) in texts {
        let rules = exposed.rules(object, text.as_bytes())?;
        rest.push(Change::Rules {
            object,
            rules: Some(rules),
        });
    }
    Ok(rest)
}

/// Result of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// entries written
    pub set: u64,
    /// entries that were there and are gone, or are zero in an array
    pub deleted: u64,
}

/// Makes the changes in their order on worker `worker`, or none of them.
///
/// Of a divided object an entry is set where it is or where its packets come, and done in parts; what is done of the others, and of parts.
/// An object that is one for all workers is the first one's to change. A number to which all add is set at the first
/// and begins again at zero at the others.
///
/// What takes them back is added to `taken`, see [`undo`]. What is undone has its bytes again, but age zero; what an LRU
/// map has evicted in between is not brought back.
///
/// # Errors
/// What the first object that refuses says.
pub fn apply(
    (instance, worker): (&mut Instance, usize),
    changes: &[Change],
    exposed: &Exposed,
    now: u64,
    taken: &mut Vec<Change>,
) -> Result<(Done, Done), Trouble> {
    let (mut copies, mut parts) = (Done::default(), Done::default());
    let before = taken.len();
    for (at, change) in changes.iter().enumerate() {
        let (object, first) = (change.object(), instance.worker() == 0);
        let share = exposed.share(object);
        if matches!(share.held, Held::Locked | Held::Transacted) && !first {
            continue;
        }
        let cleared = match &share.held {
            Held::Merged { words, .. } if !first => Some(change.cleared(words)),
            _ => None,
        };
        let change = cleared.as_ref().unwrap_or(change);
        // Elements of arrays are on all workers, set or not.
        let divided = share.divided() && !exposed.indexed(object);
        if matches!(change, Change::Put { worker: of, .. } if *of != worker) {
            continue;
        }
        if let (true, Change::Set { object, key, .. }) = (divided, change)
            && !instance.get(*object, key, now).is_ok_and(|v| v.is_some())
        {
            continue;
        }
        let done = match divided {
            true => &mut parts,
            false => &mut copies,
        };
        if let Err(error) = one(instance, change, now, done, taken) {
            undo(instance, taken.split_off(before), now);
            return Err(refused(&error, at, changes.len()));
        }
    }
    Ok((copies, parts))
}

/// Takes back what [`apply`] has done.
pub fn undo(instance: &mut Instance, taken: Vec<Change>, now: u64) {
    for change in taken.into_iter().rev() {
        // What was there fits; a failure would leave the first error as the one to tell.
        let (mut done, mut again) = (Done::default(), Vec::new());
        let _ = one(instance, &change, now, &mut done, &mut again);
    }
}

/// Reports edits done on all workers: elements that are divided are alike on them again, until packets change them.
pub fn told(changes: &[Change], exposed: &Exposed) {
    for change in changes {
        let object = change.object();
        let share = exposed.share(object);
        if !share.divided() {
            continue;
        }
        let before = &share.before;
        match change {
            Change::Set { key, value, .. } if exposed.indexed(object) => before.set(key, value),
            Change::Clear { .. } => before.clear(),
            _ => {}
        }
    }
}

fn refused(error: &ModuleError, at: usize, of: usize) -> Trouble {
    let place = match of {
        1 => String::new(),
        _ => format!("edit {} of {of}: ", at + 1),
    };
    Trouble::new("refused", format!("{place}{error}")).help("nothing was changed")
}

fn one(
    instance: &mut Instance,
    change: &Change,
    now: u64,
    done: &mut Done,
    undo: &mut Vec<Change>,
) -> Result<(), ModuleError> {
    match change {
        Change::Set { object, key, value }
        | Change::Put {
            object, key, value, ..
        } => {
            let mut before = instance.get(*object, key, now).ok().flatten();
            let used = instance.used(*object);
            instance.set(*object, key, value, now)?;
            // Of prefixes a shorter one may have been found: this one is new if there is one more now.
            if by_prefix(instance, *object) && instance.used(*object) != used {
                before = None;
            }
            undo.push(back(*object, key.clone(), before));
            done.set += 1;
        }
        Change::Delete { object, key } => {
            let before = instance.get(*object, key, now)?;
            // Of prefixes a shorter one may have been found, which stays.
            if before.is_some() && instance.remove(*object, key, now)? {
                undo.push(back(*object, key.clone(), before));
                done.deleted += 1;
            }
        }
        Change::Load {
            object,
            content,
            time,
        } => {
            let before = Arc::new(instance.save(*object, now)?);
            let loaded = instance.load(*object, content, now, time.saturating_sub(now));
            if let Err(error) = loaded {
                // What was there fits.
                let _ = instance.load(*object, &before, now, 0);
                return Err(error);
            }
            undo.push(Change::Load {
                object: *object,
                content: before,
                time: 0,
            });
        }
        Change::Rules { object, rules } => {
            let before = instance.set_rules(*object, rules.clone())?;
            match rules {
                Some(rules) => done.set += rules.rules().len() as u64,
                None => done.deleted += before.as_ref().map_or(0, |b| b.rules().len() as u64),
            }
            undo.push(Change::Rules {
                object: *object,
                rules: before,
            });
        }
        // `compiled` has made rules of it.
        Change::Text { .. } => {}
        Change::Clear { object } => {
            for (key, value) in instance.entries(*object, usize::MAX, now)? {
                // Elements of arrays cannot be removed (bpf(2)).
                if instance.remove(*object, &key, now).is_err() {
                    instance.set(*object, &key, &vec![0; value.len()], now)?;
                }
                undo.push(back(*object, key, Some(value)));
                done.deleted += 1;
            }
        }
    }
    Ok(())
}

fn by_prefix(instance: &Instance, object: usize) -> bool {
    let info = instance.module().objects().get(object);
    info.is_some_and(|o| o.kind.addressing == Addressing::Prefix)
}

/// What makes it as it was.
fn back(object: usize, key: Vec<u8>, before: Option<Vec<u8>>) -> Change {
    match before {
        Some(value) => Change::Set { object, key, value },
        None => Change::Delete { object, key },
    }
}
