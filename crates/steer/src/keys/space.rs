//! The space of keys that obey the constraints, and what they can and cannot do.

use super::class::{Class, ClassId};
use super::equations::{Layout, invariants};
use super::solve::{Reaches, Target, fixed};
use super::spans::Span;
use crate::fields::Field;
use crate::gf2::{Echelon, Row, word_rank};

/// All keys, of all ports together, under which the packets meet that must.
#[derive(Clone, Debug)]
pub struct Space {
    pub(super) classes: Vec<Class>,
    pub(super) layout: Layout,
    /// of the unknowns; the other key bits are free and reach no index
    pub(super) basis: Vec<Row>,
    pub(super) bounds: Vec<usize>,
    pub(super) target: Target,
    spans: Vec<Span>,
    /// the unknowns that are not zero in every key
    live: Row,
}

/// A field that is hashed, and how much of it any key lets through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// the field
    pub field: Field,
    /// its bits
    pub bits: usize,
    /// how many of them change the index under some key; the others under none, whether the constraints
    /// ask for that or the windows of neighbouring bits do
    pub reaching: usize,
}

impl Space {
    pub(super) fn new(
        classes: &[Class],
        layout: Layout,
        basis: Vec<Row>,
        bounds: Vec<usize>,
        target: Target,
        spans: &[Span],
    ) -> Self {
        let mut live = Row::zero(layout.unknowns);
        basis.iter().for_each(|vector| live.join(vector));
        Self {
            classes: classes.to_vec(),
            layout,
            basis,
            bounds,
            target,
            spans: spans.to_vec(),
            live,
        }
    }

    /// The classes, as they were given.
    #[must_use]
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// Purpose of the keys.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// Index bits q that are used, the low ones of the hash: the table is to repeat after 2^q entries.
    #[must_use]
    pub fn index_bits(&self) -> usize {
        self.layout.index
    }

    /// Dimension of the space: the base-2 logarithm of how many keys differ in what reaches an index.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.basis.len()
    }

    /// Dimension of what one port's key can be.
    #[must_use]
    pub fn port_dimension(&self, port: usize) -> usize {
        let mut space = Echelon::new(self.layout.unknowns);
        let range = self.layout.ports().find(|(other, _)| *other == port);
        let Some((_, range)) = range else {
            return 0;
        };
        for vector in &self.basis {
            let mut part = Row::zero(self.layout.unknowns);
            let ones = vector.ones().filter(|at| range.contains(at));
            ones.for_each(|at| part.flip(at));
            space.insert(&mut part);
        }
        space.rank()
    }

    /// The most that the rank of a class's index can be under any key, in bits: this many independent
    /// groups of its packets can be told apart. At most [`Space::index_bits`]. An upper bound, but for
    /// 2^-100; a key that meets it is proved best ([`Keys::rank`](super::Keys::rank)).
    #[must_use]
    pub fn table_rank(&self, class: ClassId) -> usize {
        self.bounds.get(class).copied().unwrap_or(0)
    }

    /// For every class the dimension D of the linear functions of its fields that the constraints leave
    /// invariant: no linear hash has a greater rank, on any NIC.
    #[must_use]
    pub fn invariants(&self) -> Vec<usize> {
        invariants(&self.classes, &self.spans)
    }

    /// The hashed fields of a class, in order, and how much of each any key lets reach the index.
    #[must_use]
    pub fn reach(&self, class: ClassId) -> Vec<Reach> {
        let Some(found) = self.classes.get(class) else {
            return Vec::new();
        };
        let reach = |field: &Field| {
            let bits = field.bits(found.kind);
            let first = found.offset(*field).unwrap_or(0);
            let alive = (first..first + bits).filter(|at| self.reaches(class, *at));
            Reach {
                field: *field,
                bits,
                reaching: alive.count(),
            }
        };
        found.fields.iter().map(reach).collect()
    }

    /// Whether a bit of a class's hash input changes the index under some key.
    #[must_use]
    pub fn reaches(&self, class: ClassId, bit: usize) -> bool {
        let Some(class) = self.classes.get(class).filter(|class| bit < class.bits()) else {
            return false;
        };
        let first = self.layout.first(class.port);
        self.live.window(first + bit, self.layout.index) != 0
    }

    /// The rank of a class's index over packets that differ only in bits of the hash input for which `differs`, under
    /// the best of a few keys: no less than what a drawn key can be expected to have, and no more than any key has.
    #[must_use]
    pub fn reachable(&self, class: ClassId, differs: impl Fn(usize) -> bool) -> usize {
        const DRAWS: usize = 8;
        let Some(class) = self.classes.get(class) else {
            return 0;
        };
        let mut random = fixed();
        let ranks = (0..DRAWS).map(|_| {
            let unknowns = self.uniform(&mut random);
            let words = self.words(class, &unknowns).enumerate();
            word_rank(words.filter(|(at, _)| differs(*at)).map(|(_, word)| word))
        });
        ranks.max().unwrap_or(0)
    }

    /// The fields of a class that count: some of their bits reach the index under some key.
    #[must_use]
    pub fn counting(&self, class: ClassId) -> Vec<Field> {
        let reach = self.reach(class).into_iter();
        reach.filter(|r| r.reaching > 0).map(|r| r.field).collect()
    }

    /// The fields of a class that the NIC hashes and every key cancels.
    #[must_use]
    pub fn cancelled(&self, class: ClassId) -> Vec<Field> {
        let reach = self.reach(class).into_iter();
        reach.filter(|r| r.reaching == 0).map(|r| r.field).collect()
    }

    /// Contribution of each bit of a class's input to the index under the unknowns of a key.
    pub(super) fn words<'a>(
        &'a self,
        class: &'a Class,
        unknowns: &'a Row,
    ) -> impl Iterator<Item = u64> + 'a {
        let first = self.layout.first(class.port);
        (0..class.bits()).map(move |at| unknowns.window(first + at, self.layout.index))
    }

    /// Whether some key reaches all cores with every class that shall. The bounds say that a point of an
    /// extension field does; over GF(2) itself keys are tried, all of them where they are few.
    pub(super) fn reaches_all(&self) -> Reaches {
        /// Base-2 logarithm.
        const FEW: usize = 12;
        const DRAWS: usize = 256;
        let needed = self.target.needed();
        let good = |unknowns: &Row| {
            let mut spread = self.classes.iter().filter(|class| class.spread);
            spread.all(|class| word_rank(self.words(class, unknowns)) >= needed)
        };
        let mut random = fixed();
        if (0..DRAWS).any(|_| good(&self.uniform(&mut random))) {
            return Reaches::Yes;
        }
        if self.basis.len() > FEW {
            return Reaches::Unknown;
        }
        // Gray code: each key differs from the one before by one vector.
        let mut unknowns = Row::zero(self.layout.unknowns);
        for step in 0..1_usize << self.basis.len() {
            if good(&unknowns) {
                return Reaches::Yes;
            }
            let next = (step + 1).trailing_zeros() as usize;
            if let Some(vector) = self.basis.get(next) {
                unknowns.add(vector);
            }
        }
        Reaches::No
    }
}
