//! A whole capture of either format.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace_readers::pcap::run(data));
