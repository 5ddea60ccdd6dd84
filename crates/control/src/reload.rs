//! What a run is to become: its chain file as it is now, beside what runs.

use std::any::Any;
use std::sync::Arc;

use millrace_dataplane::module::Entry;
use millrace_object::program::Param;
pub use millrace_state::Content;
use millrace_topology::Topology;

use crate::chain::Made;
use crate::edit::Change;
use crate::elements::Element;
use crate::exposed::Exposed;
use crate::trouble::Trouble;

/// What an element was made from, for whoever made it.
pub type Recipe = Arc<dyn Any + Send + Sync>;

/// Reads what a run was started with again.
pub trait Source: Send + Sync {
    /// The chain as it is to be, beside these elements that run. Functions are built and loaded; with `check` nothing is
    /// started.
    ///
    /// # Errors
    /// The file is wrong, an element cannot be made, or something has changed that cannot while the run goes on.
    fn wanted(&self, running: &[Element], check: bool) -> Result<Wanted, Trouble>;
}

/// A chain as it is to be.
pub struct Wanted {
    /// its elements, in the order in which they run
    pub elements: Vec<Planned>,
    /// how they are connected; none: one element, whose ports are the chain's
    pub topology: Option<Topology>,
}

/// An element as it is to be.
pub struct Planned {
    /// its name
    pub name: String,
    /// whether it is another one than runs
    pub how: How,
    /// parameters that it is to have, with their bytes
    pub params: Vec<(Param, Vec<u8>)>,
    /// the entries that its file gave it when that was read last
    pub before: Vec<Entry>,
    /// those that it gives now; of both, values with what `ON_START` fills in
    pub entries: Vec<Entry>,
    /// by object, what `ON_START` makes of them where nothing else writes
    pub made: Vec<(usize, Arc<Content>)>,
    /// ns: when that was made
    pub time: u64,
    /// what it is made from
    pub recipe: Recipe,
}

/// What becomes of an element.
pub enum How {
    /// the running one of this name stays
    Stays,
    /// it is new, or takes the place of the running one of this name
    New {
        /// why that does not do
        why: String,
        /// the new one; none where it was only looked at
        made: Option<Box<Made>>,
    },
}

/// The entries of a function's files as those of the one in its place, whose objects may have other numbers; without those of
/// objects that it has not, or has with other sizes.
#[must_use]
pub fn renumbered(entries: &[Entry], old: &Exposed, new: &Exposed) -> Vec<Entry> {
    let renumber = |entry: &Entry| {
        let before = old.info(entry.object).ok()?;
        let object = new.index(&before.name).ok()?;
        let now = new.info(object).ok()?;
        let sizes = |o: &millrace_dataplane::module::ObjectInfo| (o.key_bytes, o.value_bytes);
        (sizes(before) == sizes(now)).then(|| Entry {
            object,
            ..entry.clone()
        })
    };
    entries.iter().filter_map(renumber).collect()
}

/// The edits that turn the entries of a file into those that it has now. What is in an object besides them stays.
///
/// # Errors
/// A map of maps would change, whose entries cannot be told apart from those that packets made.
pub fn edits(
    exposed: &Exposed,
    before: &[Entry],
    entries: &[Entry],
) -> Result<Vec<Change>, Trouble> {
    // Of a key that is given twice the last counts.
    let last = |list: &[Entry]| {
        let pairs = list
            .iter()
            .filter(|e| e.rules.is_none())
            .map(|e| ((e.object, e.key.clone()), e.value.clone()));
        pairs.collect::<std::collections::BTreeMap<_, _>>()
    };
    let given = before;
    let (before, now) = (last(given), last(entries));
    let gone = before.iter().filter(|(at, _)| !now.contains_key(*at));
    let gone = gone.map(|((object, key), value)| match exposed.indexed(*object) {
        // Elements of arrays cannot be removed (bpf(2)).
        true => Change::Set {
            object: *object,
            key: key.clone(),
            value: vec![0; value.len()],
        },
        false => Change::Delete {
            object: *object,
            key: key.clone(),
        },
    });
    let set = now
        .iter()
        .filter(|(at, value)| before.get(*at) != Some(value));
    let set = set.map(|((object, key), value)| Change::Set {
        object: *object,
        key: key.clone(),
        value: value.clone(),
    });
    // Rules are all of an object's; the last file counts.
    let rules = |list: &[Entry]| {
        let all = list
            .iter()
            .filter_map(|e| Some((e.object, e.rules.clone()?)));
        all.collect::<std::collections::BTreeMap<_, _>>()
    };
    let (old, new) = (rules(given), rules(entries));
    let dropped = old.keys().filter(|o| !new.contains_key(o));
    let dropped = dropped.map(|object| Change::Rules {
        object: *object,
        rules: None,
    });
    let made = (new.iter())
        .filter(|(object, rules)| old.get(object).map(|r| r.rules()) != Some(rules.rules()));
    let made = made.map(|(object, rules)| Change::Rules {
        object: *object,
        rules: Some(rules.clone()),
    });
    let changes: Vec<_> = gone.chain(set).chain(dropped).chain(made).collect();
    let nested = changes.iter().find_map(|change| {
        let info = exposed.info(change.object()).ok()?;
        info.kind.holds_maps().then_some(info)
    });
    match nested {
        Some(info) => Err(Trouble::new(
            "refused",
            format!("{}: what a map of maps holds cannot be reloaded", info.name),
        )
        .help("change it with `millrace map`, or restart the run")),
        None => Ok(changes),
    }
}

#[cfg(test)]
mod tests {
    use millrace_dataplane::module::ObjectInfo;
    use millrace_object::state;

    use super::*;

    #[test]
    fn only_what_the_file_changed_is_edited() {
        let object = |kind: &str| ObjectInfo {
            name: kind.into(),
            kind: state::by_name(kind).unwrap(),
            key_bytes: 1,
            value_bytes: 2,
            capacity: 8,
            bytes: 0,
            records: false,
        };
        let exposed = Exposed {
            objects: ["hash", "array", "hash_of_maps"]
                .map(|k| (object(k), true))
                .into(),
            ..Exposed::nothing("f")
        };
        let entry = |object, key: u8, value: u8| Entry::new(object, vec![key], vec![value, 0]);
        let set = |object, key, value| {
            let Entry {
                object, key, value, ..
            } = entry(object, key, value);
            Change::Set { object, key, value }
        };
        let before = [
            entry(0, 1, 1),
            entry(0, 2, 2),
            entry(0, 3, 3),
            entry(1, 0, 9),
        ];
        let now = [
            entry(0, 2, 2),
            entry(0, 3, 7),
            entry(0, 3, 4),
            entry(0, 5, 5),
        ];
        let gone = Change::Delete {
            object: 0,
            key: vec![1],
        };
        let all = [gone, set(1, 0, 0), set(0, 3, 4), set(0, 5, 5)];
        assert_eq!(edits(&exposed, &before, &now).unwrap(), all);
        assert_eq!(edits(&exposed, &before, &before).unwrap(), []);
        // The same objects in another order, one of them with other sizes.
        let other = Exposed {
            objects: ["array", "hash"].map(|k| (object(k), true)).into(),
            ..Exposed::nothing("f")
        };
        let moved = renumbered(
            &[entry(0, 1, 1), entry(1, 0, 9), entry(2, 1, 1)],
            &exposed,
            &other,
        );
        assert_eq!(moved, [entry(1, 1, 1), entry(0, 0, 9)]);
        let nested = edits(&exposed, &[], &[entry(2, 1, 1)]).unwrap_err();
        assert!(nested.what.contains("map of maps"), "{nested}");
    }
}
