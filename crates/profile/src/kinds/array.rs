//! Elements by number: BPF's arrays, and `VECTOR` under the lock and in transactions.

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
    if met.what.is_some() && *met.object.kind == vector::KIND {
        return format!(
            "packets of several cores write one element of {name}, {}",
            met.of_keys()
        );
    }
    format!(
        "elements of {name} are written while packets of other cores read them: who stores something else runs alone"
    )
}

fn ideas(met: &Met<'_>) -> Vec<Idea> {
    let name = &met.object.name;
    // In transactions elements of a vector have a version each: what two packets write is one element.
    if *met.object.kind == vector::KIND {
        return vec![Idea::source(
            format!("VECTOR({name}, …)"),
            format!("DISTRIBUTED({name}, …)"),
            0.9,
            "numbers that are only added to have a part on each core",
        )];
    }
    vec![Idea::source(
        format!("ARRAY {name}"),
        format!("MAP({name}, …) by the same number"),
        0.5,
        "another object: entries of a map have a version each, so that packets that write different ones run beside each other",
    )]
}
