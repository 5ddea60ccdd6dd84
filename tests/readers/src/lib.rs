//! Readers of bytes that somebody else wrote: one module a reader, each with `run(data)`, which must return for any bytes.
//!
//! `tests/short.rs` gives each some thousand changed seeds in every run of the tests; `make fuzz` gives them to libFuzzer,
//! through targets of three lines in `fuzz/fuzz_targets`, which need a nightly compiler.

// What a target asserts about a reader panics, as it must for a fuzzer.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod btf;
pub mod chain;
pub mod check;
pub mod click;
pub mod control;
pub mod elf;
pub mod guest;
pub mod map_file;
pub mod packet_language;
pub mod pcap;
pub mod routes;
pub mod rules;
pub mod seeds;
pub mod sequenced;
pub mod snapshot;
pub mod state;

/// A reader and its fuzz target's name.
pub struct Reader {
    /// of the target, and of the module
    pub name: &'static str,
    /// returns for any bytes; a panic is a defect of the reader
    pub run: fn(&[u8]),
}

/// All readers, in the order of their names.
pub const READERS: &[Reader] = &[
    Reader {
        name: "btf",
        run: btf::run,
    },
    Reader {
        name: "chain",
        run: chain::run,
    },
    Reader {
        name: "check",
        run: check::run,
    },
    Reader {
        name: "click",
        run: click::run,
    },
    Reader {
        name: "control",
        run: control::run,
    },
    Reader {
        name: "elf",
        run: elf::run,
    },
    Reader {
        name: "guest",
        run: guest::run,
    },
    Reader {
        name: "map_file",
        run: map_file::run,
    },
    Reader {
        name: "packet_language",
        run: packet_language::run,
    },
    Reader {
        name: "pcap",
        run: pcap::run,
    },
    Reader {
        name: "routes",
        run: routes::run,
    },
    Reader {
        name: "rules",
        run: rules::run,
    },
    Reader {
        name: "sequenced",
        run: sequenced::run,
    },
    Reader {
        name: "snapshot",
        run: snapshot::run,
    },
    Reader {
        name: "state",
        run: state::run,
    },
];
