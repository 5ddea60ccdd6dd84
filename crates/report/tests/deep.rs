//! Decisions that are nested deeper than a reader's stack: every form cuts them and says so.

use std::collections::BTreeMap;
use std::path::Path;

use millrace_report::dot::dot;
use millrace_report::html::html;
use millrace_report::report;
use millrace_report::text::text;

use crate::models;

#[test]
fn deep_decisions_are_cut_in_every_form() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/programs");
    let Some(loaded) = models::compile(&programs.join("nested.c")) else {
        return;
    };
    let model = loaded.model();
    let paths = model.entries[0].paths.len();
    assert!(paths > 600, "{paths} paths, {:?}", model.entries[0].outcome);
    let report = report(&model, &loaded.program, &BTreeMap::new());
    assert_eq!(report.paths.len(), paths);
    let (text, page, graph) = (text(&report, false), html(&report), dot(&report));
    let cut = "paths, too deep to be shown here; --json lists them";
    for form in [&text, &page, &graph] {
        assert!(form.contains(cut), "{form}");
    }
    assert!(page.matches("<details").count() < 2 * paths);
    // Dropping the tree recurses as well.
    drop(report);
}
