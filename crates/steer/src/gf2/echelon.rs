//! A subspace, held as rows in echelon form, and what is orthogonal to it.

use super::row::Row;

/// The span of the rows inserted so far: one row for each leading bit.
#[derive(Clone, Debug)]
pub(crate) struct Echelon {
    bits: usize,
    rows: Vec<Row>,
    /// by leading bit, the row
    lead: Vec<Option<usize>>,
}

impl Echelon {
    /// The zero space of vectors of this many bits.
    pub fn new(bits: usize) -> Self {
        Self {
            bits,
            rows: Vec::new(),
            lead: vec![None; bits],
        }
    }

    /// Of this many bits are the vectors.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// The dimension.
    pub fn rank(&self) -> usize {
        self.rows.len()
    }

    /// Whether it is the whole space.
    pub fn is_whole(&self) -> bool {
        self.rows.len() == self.bits
    }

    /// The rows whose leading bit is `from` or later.
    pub fn led_from(&self, from: usize) -> impl Iterator<Item = &Row> {
        let places = self.lead.iter().skip(from).flatten();
        places.filter_map(|place| self.rows.get(*place))
    }

    /// Adds rows of the space to `row` until its leading bit is none of theirs; none when nothing is left.
    fn reduce(&self, row: &mut Row) -> Option<usize> {
        let mut from = 0;
        while let Some(lead) = row.first(from) {
            match self.lead.get(lead).copied().flatten() {
                Some(place) => {
                    if let Some(pivot) = self.rows.get(place) {
                        row.add(pivot);
                    }
                    from = lead + 1;
                }
                None => return Some(lead),
            }
        }
        None
    }

    /// Makes `row` one of the space's if it is not yet; says whether it was not. What is left in `row`
    /// is of no use afterwards.
    pub fn insert(&mut self, row: &mut Row) -> bool {
        let Some(lead) = self.reduce(row) else {
            return false;
        };
        if let Some(place) = self.lead.get_mut(lead) {
            *place = Some(self.rows.len());
            self.rows.push(row.clone());
        }
        true
    }

    /// Whether `row` is in the space.
    pub fn contains(&self, row: &Row) -> bool {
        self.reduce(&mut row.clone()).is_none()
    }

    /// A basis of the vectors that are orthogonal to all rows: the null space of the rows as equations.
    /// One vector for each bit that leads no row, and that bit is set in no other vector.
    pub fn orthogonal(mut self) -> Vec<Row> {
        // From the last leading bit to the first, so that a row's other leading bits are cleared by rows
        // that have none themselves.
        for lead in (0..self.bits).rev() {
            let Some(mut row) = self.take(lead) else {
                continue;
            };
            let mut from = lead + 1;
            while let Some(at) = row.first(from) {
                if let Some(other) = self.lead.get(at).copied().flatten()
                    && let Some(other) = self.rows.get(other)
                {
                    row.add(other);
                }
                from = at + 1;
            }
            self.put(lead, row);
        }
        let free: Vec<usize> = (0..self.bits)
            .filter(|at| self.lead[*at].is_none())
            .collect();
        let mut place = vec![usize::MAX; self.bits];
        let mut basis = Vec::with_capacity(free.len());
        for (number, at) in free.into_iter().enumerate() {
            place[at] = number;
            let mut vector = Row::zero(self.bits);
            vector.flip(at);
            basis.push(vector);
        }
        for lead in 0..self.bits {
            let Some(row) = self.take(lead) else {
                continue;
            };
            for at in row.ones().filter(|at| *at != lead) {
                if let Some(vector) = place.get(at).and_then(|number| basis.get_mut(*number)) {
                    vector.flip(lead);
                }
            }
        }
        basis
    }

    fn take(&mut self, lead: usize) -> Option<Row> {
        let place = self.lead.get(lead).copied().flatten()?;
        let row = self.rows.get_mut(place)?;
        Some(std::mem::replace(row, Row::zero(0)))
    }

    fn put(&mut self, lead: usize, row: Row) {
        if let Some(place) = self.lead.get(lead).copied().flatten()
            && let Some(hole) = self.rows.get_mut(place)
        {
            *hole = row;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bits: usize, value: u64) -> Row {
        let mut row = Row::zero(bits);
        (0..bits)
            .filter(|i| value >> i & 1 == 1)
            .for_each(|i| row.flip(i));
        row
    }

    proptest::proptest! {
        /// Against all vectors of so few bits.
        #[test]
        fn the_orthogonal_space_is_all_that_is_orthogonal(
            bits in 1_usize..11,
            values in proptest::collection::vec(0_u64.., 0..12),
        ) {
            let mut space = Echelon::new(bits);
            for value in &values {
                let fresh = row(bits, *value);
                let known = space.contains(&fresh);
                proptest::prop_assert_eq!(space.insert(&mut fresh.clone()), !known);
                proptest::prop_assert!(space.contains(&fresh));
            }
            let rank = space.rank();
            let orthogonal = space.orthogonal();
            proptest::prop_assert_eq!(rank + orthogonal.len(), bits);
            let mut other = Echelon::new(bits);
            for vector in &orthogonal {
                proptest::prop_assert!(other.insert(&mut vector.clone()));
            }
            for all in 0..1_u64 << bits {
                let all = row(bits, all);
                let wanted = values.iter().all(|v| !row(bits, *v).dot(&all));
                proptest::prop_assert_eq!(other.contains(&all), wanted);
            }
        }
    }
}
