//! Files that describe chains.

use std::collections::BTreeSet;

use millrace_chain::connect::{Named, connect};
use millrace_chain::description::MOST_ELEMENTS;
use millrace_chain::file::parse;

/// Reads `data` as a chain file and connects what it describes, as if each element had two ports, and as if none said how many.
/// A chain that is connected has each of its elements once; an error says what to do.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let chain = match parse(text, None) {
        Ok(chain) => chain,
        Err(error) => {
            assert!(!error.what.is_empty() && !error.help.is_empty());
            return;
        }
    };
    assert!((1..=MOST_ELEMENTS).contains(&chain.elements.len()));
    let names: BTreeSet<_> = chain.elements.iter().map(|e| &e.name).collect();
    assert_eq!(names.len(), chain.elements.len());
    for ports in [vec!["0".to_owned(), "1".to_owned()], Vec::new()] {
        let named = Named {
            ports,
            guest: false,
        };
        match connect(&chain, &vec![named; chain.elements.len()]) {
            Ok(Some(connected)) => {
                let order: BTreeSet<_> = connected.order.iter().collect();
                assert_eq!(order.len(), chain.elements.len());
                assert_eq!(connected.topology.elements(), chain.elements.len());
                assert_eq!(connected.ports.len(), connected.topology.entries().len());
            }
            Ok(None) => assert_eq!(chain.elements.len(), 1),
            Err(error) => assert!(!error.what.is_empty() && !error.help.is_empty()),
        }
    }
}
