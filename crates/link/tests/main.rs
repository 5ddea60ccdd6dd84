//! Tests of linking.

mod rows;
mod verdicts;
