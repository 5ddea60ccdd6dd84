//! Saved state of a run.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace_readers::state::run(data));
