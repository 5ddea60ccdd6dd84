//! The checker, on object files and on generated programs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace_readers::check::run(data));
