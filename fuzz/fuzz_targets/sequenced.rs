//! A sequenced capture, and a single carrier.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace_readers::sequenced::run(data));
