//! Routing tables.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace_readers::routes::run(data));
