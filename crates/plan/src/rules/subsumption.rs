//! R2, subsumption: where another object's packets already meet whenever this one's must.

use super::Judged;
use crate::plan::Rule;

/// The same, but another object asks for it already.
pub(crate) fn judge(own: Judged, name: &str, by: &str) -> Judged {
    Judged {
        rule: Rule::R2,
        reason: format!(
            "packets that touch the same entry of {name} meet already because of {by}, whose key is \
             coarser or the same"
        ),
        ..own
    }
}
