//! The abstract values of registers and stack slots, their operations and their order.

pub mod alu;
pub mod assume;
pub mod range;
pub mod scalar;
pub mod tnum;
pub mod value;

pub use scalar::Scalar;
pub use tnum::Tnum;
pub use value::{Gone, Link, Pointer, Region, Value};
