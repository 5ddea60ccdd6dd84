//! RSS keys by linear algebra: the keys under which packets that must meet do, and all others spread.
//!
//! The Toeplitz hash is linear over GF(2) in its input under one key, and in the key for one input. A
//! constraint names pairs of packets that must reach one core; two packets do when the index bits of
//! their hashes are equal, so that the other bits of the hash are free. If the pairs are those that
//! satisfy linear equations, "all pairs meet" is the same as "the vectors that span the pairs meet",
//! and each such vector is one homogeneous equation over the key bits for each index bit. The null space
//! of these equations, over the keys of all ports together, is exactly the set of keys that obey the
//! constraints. (Pedrosa et al., "Automatic Parallelization of Software Network Functions", NSDI 2024,
//! section 3.5, asks an SMT solver for one key, with all 32 bits equal.)
//!
//! [`solve`] takes [`Class`]es (the packets of one kind at one port, and what the NIC hashes of them) and
//! [`Constraint`]s, and gives a [`Space`] of keys, or says why there are none ([`Infeasible`]).
//! [`Space::draw`] draws secret keys that spread well. What a class must hash because the NIC takes its
//! fields together, and no constraint keeps, the key cancels.

mod apply;
mod attack;
mod case;
mod class;
mod draw;
mod equations;
mod generic;
mod mixer;
mod score;
mod software;
mod solve;
mod space;
mod spans;
mod unsolved;
mod witness;

pub use attack::{Difference, Exposure};
pub use case::{Bit, Bits, Case, Constraint, Equation, Part, Side};
pub use class::{Class, ClassId};
pub use draw::{Keys, Rank};
pub use software::{Checked, Pair, pairs};
pub use solve::{Target, solve, solve_again, solve_for, solve_otherwise};
pub use space::{Reach, Space};
pub use spans::Remembered;
pub use unsolved::{Barred, Infeasible, Invalid, No, Unsolved};
pub use witness::{Answer, Asking, Witness, narrowed};

#[cfg(test)]
mod tests;
