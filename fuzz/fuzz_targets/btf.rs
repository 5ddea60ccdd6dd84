//! Type and line information.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace_readers::btf::run(data));
