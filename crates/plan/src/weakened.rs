//! Treatments that are wrong on purpose (`millrace_model::weaken`).

use std::collections::BTreeMap;

use millrace_model::weaken::weak;

use crate::plan::Treatment;
use crate::rules::Judged;

/// Replaces treatments, where a rule is switched off that says so.
pub(crate) fn judged(judged: &mut BTreeMap<usize, Judged>) {
    let table = [
        ("lock-spread", Treatment::Lock),
        ("alone-spread", Treatment::Alone),
        ("merge-spread", Treatment::Merge),
    ];
    for (rule, from) in table {
        if weak(rule) {
            let mut wrong = judged.values_mut();
            while let Some(j) = wrong.find(|j| j.treatment == from) {
                j.treatment = Treatment::Spread;
            }
        }
    }
}
