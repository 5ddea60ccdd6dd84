//! Numbers that mean something to a program: those that it compares with, how much its tables hold, what packets
//! bring into keys.

use std::collections::BTreeSet;

use millrace_model::expr::walk::cone;
use millrace_model::expr::{Arena, Node};
use millrace_model::model::Path;
use millrace_object::program::{ObjectId, Program};
use rand::{Rng, RngExt};

/// Numbers that any program may treat in a special way.
const COMMON: [u32; 4] = [0, 1, 2, u32::MAX];

/// These numbers.
#[derive(Default)]
pub(super) struct Words {
    all: Vec<u32>,
    known: BTreeSet<u32>,
}

impl Words {
    /// The constants of a path's conditions, and what its assignment gives words of keys.
    pub(super) fn of_path(&mut self, arena: &Arena, path: &Path) {
        for e in cone(arena, &path.guard, |_| false) {
            if let Node::Const(n) = arena.node(e)
                && let Ok(n) = u32::try_from(*n)
            {
                self.near(n);
            }
        }
        let Some(witness) = &path.witness else { return };
        for a in &path.accesses {
            for word in a.key.chunks_exact(4) {
                let bytes = word.iter().rev().map(|e| witness.value(arena, *e) as u8);
                self.near(bytes.fold(0, |n, b| n << 8 | u32::from(b)));
            }
        }
    }

    /// How many entries objects have.
    pub(super) fn of_objects(&mut self, program: &Program, objects: &[ObjectId]) {
        for n in COMMON {
            self.add(n);
        }
        let all = objects.iter().filter_map(|o| program.objects.get(o.0));
        for n in all.filter_map(|o| u32::try_from(o.capacity).ok()) {
            self.near(n);
        }
    }

    fn near(&mut self, n: u32) {
        for n in [n.wrapping_sub(1), n, n.wrapping_add(1)] {
            self.add(n);
        }
    }

    fn add(&mut self, n: u32) {
        if self.known.insert(n) {
            self.all.push(n);
        }
    }

    /// One of them.
    pub(super) fn one(&self, random: &mut impl Rng) -> u32 {
        match self.all.len() {
            0 => 0,
            n => *self.all.get(random.random_range(0..n)).unwrap_or(&0),
        }
    }
}
