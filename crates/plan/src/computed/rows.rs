//! Sets of bits as vectors over GF(2), in echelon form: for the few that words and formulas have.

use std::collections::BTreeSet;

/// Vectors, no two of which end with the same bit.
#[derive(Debug)]
pub(super) struct Rows<T> {
    rows: Vec<BTreeSet<T>>,
}

impl<T: Ord + Copy> Rows<T> {
    pub fn new() -> Self {
        Self { rows: Vec::new() }
    }

    /// Takes one in, and says whether it is no sum of those that are there.
    pub fn insert(&mut self, row: BTreeSet<T>) -> bool {
        let row = self.reduced(row);
        let fresh = !row.is_empty();
        if fresh {
            self.rows.push(row);
        }
        fresh
    }

    /// Whether it is a sum of those that are there.
    pub fn says(&self, row: BTreeSet<T>) -> bool {
        self.reduced(row).is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &BTreeSet<T>> {
        self.rows.iter()
    }

    fn reduced(&self, mut row: BTreeSet<T>) -> BTreeSet<T> {
        let mut open = row.last().copied();
        while let Some(last) = open {
            if let Some(pivot) = self.rows.iter().find(|r| r.last() == Some(&last)) {
                row = &row ^ pivot;
            }
            open = row.range(..last).next_back().copied();
        }
        row
    }
}
