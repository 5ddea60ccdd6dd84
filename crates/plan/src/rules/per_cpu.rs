//! Objects of which every CPU has values of its own, where what one packet leaves there decides over another.
//!
//! On one core they are objects as any other, and that is what several cores have to come to: packets that meet in an
//! entry are brought to one core, which has the values of that entry, as by R1 to R6. Where no steering does that they
//! are not locked, since whoever chose the kind wants no values that CPUs share: all packets are one core's.

use millrace_model::Model;

use super::Judged;
use crate::plan::Rule;
use crate::words;
use millrace_place::Treatment;

/// What could not be sharded.
pub(crate) fn barred(name: &str, judged: &mut Judged) {
    judged.treatment = Treatment::Alone;
    judged.reason = format!(
        "what a packet finds in {name} is what earlier packets of its CPU left there, so the result depends on which CPU \
         runs which packet: {}",
        judged.reason
    );
}

/// The model's paths are not all, so that nothing is said of its keys.
pub(crate) fn unknown(model: &Model, name: &str, object: usize, why: &str) -> Judged {
    let mut touched = model.entries.iter().flat_map(|e| &e.at_most);
    let at = touched.find(|t| t.object.0 == object);
    Judged {
        treatment: Treatment::Alone,
        rule: Rule::R4,
        reason: format!(
            "not all paths to {name} are known ({why}), so nothing says that what earlier packets of a CPU left there \
             decides over none"
        ),
        remedy: Some("give the model more time, or make the program simpler".to_owned()),
        line: at.and_then(|t| t.line.as_ref()).map(words::place),
        infeasible: false,
    }
}
