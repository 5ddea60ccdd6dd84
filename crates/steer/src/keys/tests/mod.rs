#![allow(clippy::unwrap_used, clippy::panic)]

mod attack;
mod complete;
mod hostile;
mod known;
mod spread;
mod table;
mod time;
mod witness;
