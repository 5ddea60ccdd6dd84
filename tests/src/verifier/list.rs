//! Differences between a suite and the checker that are explained, as text:
//!
//! ```text
//! # a comment
//! + what is admitted here and refused there, because …
//! FILE/FUNCTION FILE/FUNCTION
//! - what is refused here and admitted there, because …
//! FILE/FUNCTION
//! ~ what gives another result here, because …
//! FILE/FUNCTION
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::Standing;

/// Which difference a list explains.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Difference {
    /// `+`
    Wider,
    /// `-`
    Narrower,
    /// `~`
    Result,
}

impl Difference {
    /// The difference that a standing is, if it is one.
    #[must_use]
    pub fn of(standing: Standing) -> Option<Self> {
        match standing {
            Standing::Wider => Some(Self::Wider),
            Standing::Narrower => Some(Self::Narrower),
            Standing::Admitted | Standing::Refused => None,
        }
    }

    fn mark(self) -> char {
        match self {
            Self::Wider => '+',
            Self::Narrower => '-',
            Self::Result => '~',
        }
    }
}

/// The reason of each explained difference.
#[derive(Debug, Default)]
pub struct List {
    reasons: BTreeMap<(Difference, String), String>,
}

impl List {
    /// Reads the text of a list.
    ///
    /// # Errors
    /// A name before the first reason, or one that is there twice.
    pub fn read(text: &str) -> Result<List, String> {
        let mut list = List::default();
        let mut current: Option<(Difference, String)> = None;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let marks = [Difference::Wider, Difference::Narrower, Difference::Result];
            let reason = marks.into_iter().find_map(|difference| {
                let reason = line.strip_prefix(difference.mark())?.strip_prefix(' ')?;
                Some((difference, reason.to_owned()))
            });
            if reason.is_some() {
                current = reason;
                continue;
            }
            let Some((difference, reason)) = &current else {
                return Err(format!("line {number}: a name before the first reason"));
            };
            for name in line.split_whitespace() {
                let key = (*difference, name.to_owned());
                if list.reasons.insert(key, reason.clone()).is_some() {
                    return Err(format!("line {number}: {name} is there twice"));
                }
            }
        }
        Ok(list)
    }

    /// What found and explained differences do not have in common: found ones without a reason, and reasons
    /// without a difference of those that are in a file that was `read`.
    #[must_use]
    pub fn mismatches(
        &self,
        found: &BTreeMap<(Difference, String), String>,
        read: &BTreeSet<String>,
    ) -> Vec<String> {
        let new = found
            .iter()
            .filter(|(key, _)| !self.reasons.contains_key(*key))
            .map(|((difference, name), what)| format!("new: {} {name}: {what}", difference.mark()));
        let gone = self
            .reasons
            .keys()
            .filter(|(_, name)| name.rsplit_once('/').is_some_and(|(f, _)| read.contains(f)))
            .filter(|key| !found.contains_key(*key))
            .map(|(difference, name)| format!("gone: {} {name}", difference.mark()));
        new.chain(gone).collect()
    }

    /// How many of the found differences each reason explains.
    #[must_use]
    pub fn counts(
        &self,
        found: &BTreeMap<(Difference, String), String>,
    ) -> BTreeMap<(Difference, &str), usize> {
        let mut counts = BTreeMap::new();
        for key in found.keys() {
            if let Some(reason) = self.reasons.get(key) {
                *counts.entry((key.0, reason.as_str())).or_default() += 1;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# why\n+ wider\na/one a/two\n- narrower\na/three\n";

    fn found(names: &[(Difference, &str)]) -> BTreeMap<(Difference, String), String> {
        let entry = |(d, n): &(Difference, &str)| ((*d, (*n).to_owned()), String::new());
        names.iter().map(entry).collect()
    }

    #[test]
    fn what_is_explained_is_no_mismatch() {
        let list = List::read(TEXT).unwrap();
        let read = BTreeSet::from(["a".to_owned()]);
        let all = found(&[
            (Difference::Wider, "a/one"),
            (Difference::Wider, "a/two"),
            (Difference::Narrower, "a/three"),
        ]);
        assert_eq!(list.mismatches(&all, &read), [""; 0]);
        assert_eq!(list.counts(&all)[&(Difference::Wider, "wider")], 2);
    }

    #[test]
    fn new_and_gone_differences_are_mismatches() {
        let list = List::read(TEXT).unwrap();
        let some = found(&[(Difference::Wider, "a/one"), (Difference::Wider, "a/three")]);
        let read = BTreeSet::from(["a".to_owned()]);
        let said = list.mismatches(&some, &read);
        assert_eq!(
            said,
            ["new: + a/three: ", "gone: + a/two", "gone: - a/three"]
        );
        // Of files that were not read nothing is gone.
        assert_eq!(list.mismatches(&some, &BTreeSet::new()).len(), 1);
    }

    #[test]
    fn lists_that_are_wrong_are_refused() {
        assert!(List::read("a/one\n+ why\n").is_err());
        assert!(List::read("+ why\na/one\na/one\n").is_err());
    }
}
