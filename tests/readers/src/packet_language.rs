//! The language of packet tests, in both directions.

use millrace_traffic::language::{Case, describe, packet, summarise};

/// Describes `data` as a packet, and reads it as a packet's text and as a case. The text of any bytes
/// must give those bytes again.
pub fn run(data: &[u8]) {
    // Longer frames cannot be in a capture.
    if data.len() <= millrace_traffic::capture::MAX_PACKET {
        let text = describe(data);
        assert_eq!(packet(&text).ok().as_deref(), Some(data), "{text}");
        drop(summarise(data));
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(bytes) = packet(text) {
        let again = describe(&bytes);
        assert_eq!(
            packet(&again).ok().as_deref(),
            Some(bytes.as_slice()),
            "{again}"
        );
    }
    match Case::parse("fuzz.pkt", text) {
        Ok(case) => {
            let mut last = 0;
            for step in case.steps().take(1000).flatten() {
                assert!(step.time_ns >= last, "the clock went back");
                last = step.time_ns;
            }
        }
        Err(error) => assert!(error.line > 0 && error.column > 0, "{error}"),
    }
}
