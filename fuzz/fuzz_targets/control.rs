//! The language of the control socket.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace_readers::control::run(data));
