//! R2, subsumption: where another object's packets already meet whenever this one's must.

use super::Said;
use crate::plan::Rule;

/// The same, but another object asks for it already.
pub(crate) fn judge(own: &mut Said, name: &str, by: &str) {
    own.rule = Rule::R2;
    own.reason = format!(
        "packets that touch the same entry of {name} meet already because of {by}, whose key is coarser or the same"
    );
}
