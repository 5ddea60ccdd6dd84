//! The headers of a program that is to be hosted.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace_readers::guest::run(data));
