//! Treatments that are wrong on purpose (`millrace_model::weaken`).

use std::collections::BTreeMap;

use millrace_model::weaken::weak;

use crate::rules::Judged;
use millrace_place::Treatment;

/// What replaces which treatment: each rule, and what is spread where it is switched off.
const TABLE: [(&str, Treatment); 3] = [
    ("lock-spread", Treatment::Lock),
    ("alone-spread", Treatment::Alone),
    ("merge-spread", Treatment::Merge),
];

/// Whether any treatment is replaced.
pub(crate) fn any() -> bool {
    TABLE.iter().any(|(rule, _)| weak(rule))
}

/// Replaces treatments, where a rule is switched off that says so.
pub(crate) fn judged(judged: &mut BTreeMap<usize, Judged>) {
    for (rule, from) in TABLE {
        if weak(rule) {
            let mut wrong = judged.values_mut();
            while let Some(j) = wrong.find(|j| j.treatment == from) {
                j.treatment = Treatment::Spread;
            }
        }
    }
}
