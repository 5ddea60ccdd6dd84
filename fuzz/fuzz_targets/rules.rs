//! Files of rules.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace_readers::rules::run(data));
