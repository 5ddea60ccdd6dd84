//! ClassBench's sets, where the corpora are beside the checkout: sizes, and classes against a scan.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use millrace_classify::{Budget, Classifier, Form, Key, Rules};

#[test]
fn public_sets() {
    let folder = std::env::var_os("MILLRACE_ACLS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora/acl"),
        Into::into,
    );
    if !folder.is_dir() {
        println!(
            "skipped: no sets of rules at {} (MILLRACE_ACLS)",
            folder.display()
        );
        return;
    }
    for (name, classes) in [
        ("acl1_1k", 2),
        ("fw1_1k", 2),
        ("ipc1_1k", 8),
        ("acl1_10k", 2),
        ("fw1_10k", 2),
    ] {
        let file = BufReader::new(File::open(folder.join(name)).unwrap());
        let read = Rules::read(file, &Key::flow4(), 2, 1 << 16).unwrap().rules;
        let mut rules = Rules::new(Key::flow4(), classes, 1 << 16);
        for (i, r) in (0_u32..).zip(read.iter()) {
            // Classes without a pattern.
            let x = i.wrapping_mul(2_654_435_761);
            rules
                .push_box(r.ranges, (x ^ x >> 15) % classes, r.line)
                .unwrap();
        }
        let start = std::time::Instant::now();
        let c = Classifier::build(rules.clone(), &Budget::default());
        println!(
            "{name}, {classes} classes: {} rules, {} redundant, {:?}, {} KiB, {:?}",
            rules.len(),
            c.redundant().len(),
            c.form(),
            c.table().bytes() / 1024,
            start.elapsed()
        );
        assert_eq!(c.form(), Form::Diagram);
        for (i, r) in rules.iter().enumerate().step_by(1 + rules.len() / 300) {
            let ends = [
                r.ranges.iter().map(|r| r.0).collect::<Vec<_>>(),
                r.ranges.iter().map(|r| r.1).collect(),
            ];
            for key in ends {
                assert_eq!(c.find(&key), rules.scan(&key), "{name} {i}");
            }
        }
    }
}
