//! Tests of the cluster: assignment, agreement under seeded faults, and a real store.

mod assign;
mod real;
mod sim;
