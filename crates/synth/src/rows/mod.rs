//! Diagrams by the words of flows as lists of rows, the first that fits counts: for targets that have no diagrams.

mod cubes;
mod hints;
mod list;

pub use cubes::{Cube, FROM, IP, PROTOCOL, TO, WORDS, prefixes, var, word};
pub use hints::{Hint, all as hints};
pub use list::{Line, Stop, list, shortest};
