//! Programs of which no model says what packets find.

use crate::common;

use common::{built_from, root};
use millrace_model::Limits;
use millrace_validate::uncompared;

#[test]
fn what_is_outside_of_the_model_is_not_compared() {
    let programs = root().join("crates/validate/tests/programs");
    let of = |name: &str| {
        let (program, model, _) = built_from(&programs.join(name), &Limits::default());
        uncompared(&program, &model).map(|o| o.name.clone())
    };
    assert_eq!(of("asked.c").as_deref(), Some("ring"));
    assert_eq!(of("draws.c"), None);
    assert_eq!(of("timed.c").as_deref(), Some("flows"));
    assert_eq!(of("routed.c").as_deref(), Some(".routes"));
}
