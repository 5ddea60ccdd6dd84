//! The code of the fuzz targets: one module a reader, each with `run(data)`, which must return for any bytes. A target is three lines in `fuzz_targets/`.
//!
//!     cargo +nightly fuzz run elf -- -max_total_time=60

pub mod btf;
pub mod chain;
pub mod check;
pub mod control;
pub mod elf;
pub mod guest;
pub mod map_file;
pub mod packet_language;
pub mod pcap;
pub mod routes;
pub mod snapshot;
pub mod state;
