//! Files of rules, and saved rules.

use millrace_classify::{Budget, Classifier, Key, Rules};

/// Reads `data` as a file, and as saved rules. What is read is classified alike by every form and is what it was when it has
/// been saved.
pub fn run(data: &[u8]) {
    // Few steps: what a reader gives is at question here, and not how large a diagram becomes.
    let small = Budget {
        bytes: 1 << 20,
        steps: 100_000,
        pairs: 100_000,
    };
    let read = match Rules::read(data, &Key::flow4(), 8, 512) {
        Ok(read) => Some(read.rules),
        Err(error) => {
            assert!(!error.what.is_empty() && !error.fix.is_empty());
            None
        }
    };
    for rules in read.into_iter().chain(Rules::from_bytes(data)) {
        assert_eq!(
            Rules::from_bytes(&rules.to_bytes())
                .as_ref()
                .map(Rules::len),
            Ok(rules.len())
        );
        let some = rules
            .iter()
            .take(64)
            .map(|r| r.ranges.iter().map(|r| r.0).collect::<Vec<u32>>());
        let keys: Vec<_> = some.collect();
        let made = Classifier::build(rules.clone(), &small);
        for key in &keys {
            assert_eq!(made.find(key), rules.scan(key));
        }
    }
}
