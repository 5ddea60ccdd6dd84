//! The first line of a profile, and its page.

use millrace_profile::{Cause, Change, Imbalance, Recipe, Report, Sources, page, text};

fn recipe(to: &str, gain: f64) -> Recipe {
    Recipe {
        object: None,
        file: "a.c".into(),
        line: 3,
        from: "x".into(),
        to: to.into(),
        why: String::new(),
        gain,
        tried: None,
        change: Change::Source,
    }
}

/// A report with a cause, where recipes have these predictions.
fn report(gains: &[(&str, f64)]) -> Report {
    Report {
        name: "a".into(),
        strategy: "lock".into(),
        cores: 2,
        packets: 1,
        ns_per_packet: 1.0,
        lost: 0.5,
        aborts: Vec::new(),
        causes: vec![Cause {
            object: "o".into(),
            line: "a.c:3".into(),
            operations: Vec::new(),
            cause: "a cause".into(),
            share: 1.0,
            ns: 1.0,
        }],
        recipes: gains.iter().map(|(to, gain)| recipe(to, *gain)).collect(),
        imbalance: Imbalance {
            factor: 1.0,
            workers: Vec::new(),
            cause: None,
            remedy: None,
            flow: None,
        },
        elements: Vec::new(),
        times: Vec::new(),
        caches: None,
        prefetch: None,
        notes: Vec::new(),
    }
}

/// The first line of its text.
fn first(gains: &[(&str, f64)]) -> String {
    text(&report(gains)).lines().next().unwrap().to_owned()
}

#[test]
fn only_what_is_expected_to_gain_is_recommended() {
    assert_eq!(
        first(&[("y", 1.2), ("z", 0.9)]),
        "a.c:3: a cause; try x → y"
    );
    assert_eq!(first(&[("z", 0.9)]), "a.c:3: a cause");
    // What is printed as 1.00 is no gain.
    assert_eq!(first(&[("z", 1.004)]), "a.c:3: a cause");
}

/// Lines and tabs are what a browser shows of a source; other control characters it is not given.
#[test]
fn the_page_has_the_source_as_it_is_written() {
    let source = "int x;\n{\n\tif (a < b)\u{1}\n\t\treturn;\n";
    let page = page(&report(&[("y", 1.2)]), &Sources::of(&[("a.c", source)]));
    assert!(
        page.contains("<td>\tif (a &lt; b)\u{fffd}</td>") && page.contains("<td>\t\treturn;</td>"),
        "{page}"
    );
    assert!(
        page.contains("a.c:3: a cause; try x → y\n\na, lock on 2 workers"),
        "{page}"
    );
    // The line of the cause, and the cause beside it.
    assert_eq!(page.matches("<td class=\"w\">a cause</td>").count(), 1);
    assert_eq!(page.matches('\u{fffd}').count(), 1);
}
