//! Executions of programs whose paths are cut are sequences of these paths.

use crate::common;

use common::{built_from, root};
use millrace_model::Limits;
use millrace_validate::{Options, validate};

#[test]
fn every_execution_is_a_sequence_of_paths() {
    let here = root().join("crates/validate/tests/programs");
    let walks = root().join("crates/model/tests/programs");
    for (source, cuts) in [
        (here.join("borders.c"), &[None, Some(1)][..]),
        (here.join("grown.c"), &[None, Some(1)]),
        (here.join("visited.c"), &[None]),
        (walks.join("names.c"), &[Some(1), Some(16)]),
    ] {
        for cut in cuts {
            let limits = Limits {
                cut: *cut,
                ..Limits::default()
            };
            let (program, model, module) = built_from(&source, &limits);
            assert!(model.covers(), "{}: {cut:?}", program.name);
            let options = Options {
                packets: 400,
                ..Options::default()
            };
            let findings = validate(&program, &model, &module, &options);
            assert_eq!(
                findings.differing, 0,
                "{}: {cut:?}: {:?}",
                program.name, findings.differences
            );
        }
    }
}
