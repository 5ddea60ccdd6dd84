//! The indirection table: which queue each index leads to.

mod balance;
mod even;

pub use balance::{balanced, drift, imbalance, loads};
pub use even::{even, repeated};

#[cfg(test)]
mod tests;
