//! Longest prefixes: `LPM`, BPF's tries.

use millrace_object::state::{lpm, lpm_trie};

use super::{Advice, Idea, Met, word};

/// The advice.
pub const ADVICE: Advice = Advice {
    about: |object| [&lpm::KIND, &lpm_trie::KIND].contains(&object.kind),
    cause,
    ideas,
    forces: |_| false,
};

/// Puts a prefix, also one that is there.
const PUTS: [&str; 2] = ["lpm_put", "map_update_elem"];

fn cause(met: &Met<'_>) -> String {
    format!(
        "{} changes the prefixes of {}, of which one may cover many keys, so that the packet waits for all other cores and runs alone",
        word(&met.abort.operation),
        met.object.name
    )
}

fn ideas(met: &Met<'_>) -> Vec<Idea> {
    let (name, put) = (&met.object.name, met.abort.operation.as_str());
    if !PUTS.contains(&put) {
        return Vec::new();
    }
    vec![Idea::source(
        format!("{put}(&{name}, …)"),
        format!("a lookup in {name} first, and {put} only if the value differs"),
        0.9,
        "a lookup runs beside other cores, and a prefix that has its value already needs no put",
    )]
}
