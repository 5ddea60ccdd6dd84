//! What decides over an object, one file a rule. R1 to R5 are those of Pereira et al., "Automatic Parallelization
//! of Software Network Functions" (NSDI 2024, section 3.4); R6 is ours.

pub(crate) mod derived;
pub(crate) mod disjoint;
pub(crate) mod equality;
pub(crate) mod homing;
pub(crate) mod incompatible;
pub(crate) mod interchangeable;
pub(crate) mod nothing;
pub(crate) mod per_cpu;
pub(crate) mod subsumption;

use crate::plan::Rule;
use millrace_place::Treatment;

/// What is done with an object, and why.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub treatment: Treatment,
    pub rule: Rule,
    pub reason: String,
    pub remedy: Option<String>,
    pub line: Option<String>,
    pub infeasible: bool,
}
