//! Click configurations.

use millrace_click::language::{Limits, flatten, parse};

/// Reads `data` as a configuration and expands it within a small budget. A flat graph is the same when it is written and read
/// again; an error says what to do.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let limits = Limits {
        elements: 1 << 10,
        connections: 1 << 12,
        expanded: 1 << 18,
        ..Limits::default()
    };
    let mut library = |_: &str, name: &str| match name {
        "lib" => Ok((name.to_owned(), "elementclass A { i :: Idle }".into())),
        _ => Err("no such file".to_owned()),
    };
    let read = parse(text, "data", &limits, &mut library);
    match read.and_then(|file| flatten(&file, &limits)) {
        Ok(graph) => {
            for link in &graph.links {
                for port in [link.from, link.to] {
                    assert!(port.element < graph.elements.len() && port.port <= limits.port);
                }
            }
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(!error.what.is_empty() && !error.help.is_empty());
                assert!(!error.to_string().is_empty());
            }
        }
    }
}
