//! A whole object file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace_readers::elf::run(data));
