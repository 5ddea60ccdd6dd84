//! Names from an object file, which anybody may have chosen: they stay text in a page, in a graph and on a terminal.

use std::collections::BTreeMap;
use std::path::Path;

use millrace_model::{Limits, model};
use millrace_report::{dot, html, report, text};

use crate::models;

#[test]
fn names_that_anybody_chose_stay_text() {
    let functions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nfs");
    let Some(loaded) = models::compile(&functions.join("sbridge/sbridge.c")) else {
        return;
    };
    let mut program = loaded.program;
    let hostile = "</span><script>alert('1')</script>\"];\n} \\\u{1b}[2J#1.present[0..4]\u{202e}";
    for o in &mut program.objects {
        o.name = hostile.to_owned();
    }
    program.name = hostile.to_owned();
    for r in &mut program.reasons {
        *r = hostile.to_owned();
    }
    let checked = millrace_check::check(&program, &millrace_check::Options::default()).unwrap();
    let model = model(&program, &checked, &Limits::default());
    let report = report(&model, &program, &BTreeMap::new());
    let page = html::html(&report);
    assert!(page.contains("&lt;script&gt;"), "{page}");
    for bad in ["<script", "\u{1b}", "\u{202e}", "</span><"] {
        let of_mine = bad == "</span><" && page.contains("</span></span>");
        assert!(of_mine || !page.contains(bad), "{bad:?} in {page}");
    }
    let graph = dot::dot(&report);
    // Each line is one statement of the graph's own, with its strings closed.
    for line in graph.lines() {
        let bare = line.replace("\\\\", "").replace("\\\"", "");
        assert!(bare.matches('"').count().is_multiple_of(2), "{line}");
        let known = ["digraph ", "  rankdir=", "  n", "}"];
        assert!(known.iter().any(|k| line.starts_with(k)), "{line}");
    }
    assert!(!graph.contains('\u{1b}'));
    let text = text::text(&report, false);
    assert!(!text.contains('\u{1b}'), "{text}");
}
