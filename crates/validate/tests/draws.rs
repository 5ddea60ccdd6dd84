//! Random draws are as they come, and a model's are those of its calls.

use crate::common;

use common::{built_from, root};
use millrace_model::Limits;
use millrace_validate::{Options, validate};

#[test]
fn a_draw_is_that_of_its_call() {
    let source = root().join("crates/validate/tests/programs/draws.c");
    let (program, model, module) = built_from(&source, &Limits::default());
    let options = Options {
        packets: 400,
        ..Options::default()
    };
    let findings = validate(&program, &model, &module, &options);
    assert_eq!(findings.differing, 0, "{:?}", findings.differences);
}
