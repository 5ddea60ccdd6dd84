//! Elements by number: `VECTOR`, BPF's arrays.

use millrace_object::state::{array, vector};

use super::{Advice, Idea, Met};

/// The advice.
pub const ADVICE: Advice = Advice {
    about: |object| [&vector::KIND, &array::KIND].contains(&object.kind),
    cause,
    ideas,
    forces: |_| false,
};

fn cause(met: &Met<'_>) -> String {
    let name = &met.object.name;
    format!(
        "elements of {name} are written while packets of other cores read them: who stores something else runs alone"
    )
}

fn ideas(met: &Met<'_>) -> Vec<Idea> {
    let name = &met.object.name;
    vec![Idea::source(
        format!("VECTOR({name}, …)"),
        format!("MAP({name}, …) by the same number"),
        0.5,
        "another object: entries of a map have a version each, so that packets that write different ones run beside each other",
    )]
}
