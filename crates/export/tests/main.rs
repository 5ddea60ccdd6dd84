//! Flow records, read by a library that is not ours.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod messages;
mod sending;
