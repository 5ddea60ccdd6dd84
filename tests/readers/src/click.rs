//! Click configurations.

use std::cell::RefCell;
use std::rc::Rc;

use millrace_click::interpreter::{Bounds, Memory, Router};
use millrace_click::language::{Limits, flatten, parse};
use millrace_click::packet::Packet;

/// Lines for FromIPSummaryDump.
const DUMP: &str =
    "!data timestamp ip_src sport ip_dst dport ip_proto payload tcp_opt link ip_ttl ip_frag
1 10.0.0.1 80 10.0.0.2 81 T \"PORT 1,2,3,4,5,6\" sack1-2;mss9 0 1 .
2 10.0.0.1 80 10.0.0.2 81 U - - 1 64 F
3 1.0.0.1 0 10.0.0.2 0 I - - 2 0 f
4 x y
";

/// Reads `data` as a configuration, expands it and runs it, all within small budgets: with the packets of a dump, and with
/// packets that are no packets. An error says what to do.
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
            run_graph(&graph);
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

fn run_graph(graph: &millrace_click::language::Graph) {
    let mut memory = Memory::default();
    memory.files.insert("IN".into(), DUMP.into());
    let bounds = Bounds {
        steps: 3000,
        depth: 20,
        packets: 500,
    };
    let host = Rc::new(RefCell::new(memory));
    match Router::new(graph.clone(), bounds, host) {
        Ok(mut router) => {
            router.run();
            for element in 0..graph.elements.len().min(20) {
                for bytes in [&b""[..], b"\x45", &[0x45; 20], &[0x4f; 70], &[0xff; 14]] {
                    let mut packet = Packet::new(bytes);
                    packet.mark(0, 20);
                    router.inject(element, 0, packet);
                }
            }
            for count in router.counts() {
                assert!(count.inputs.iter().sum::<u64>() <= 1 << 20);
            }
        }
        Err(errors) => assert!(
            errors
                .iter()
                .all(|e| !e.what.is_empty() && !e.help.is_empty())
        ),
    }
}
