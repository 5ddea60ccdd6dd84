#![allow(clippy::unwrap_used, clippy::panic)]

mod known;
mod table;
