//! Click configurations.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace_readers::click::run(data));
