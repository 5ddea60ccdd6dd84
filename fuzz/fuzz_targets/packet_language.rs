//! The language of packet tests, in both directions.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace_readers::packet_language::run(data));
