//! Tests of linking.

mod rows;
