//! Files of entries, and keys and values by their types.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace_readers::map_file::run(data));
