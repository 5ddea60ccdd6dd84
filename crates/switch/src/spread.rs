//! The field by which packets are divided among servers.
//!
//! All packets of a flow and of its answers have to come to one server, whose rewriters know it. A rewriter changes the words of one
//! end; the other end's address is the destination of one direction and the source of the other. So each device's packets are hashed
//! by that address: Open vSwitch's `selection_method=hash` hashes a field's bytes, not its name, so both directions hash alike.

use millrace_synth::Synthesis;
use millrace_synth::diagram::Id;
use millrace_synth::field::{Var, Word};
use millrace_synth::flows::Becomes;

use crate::Error;
use crate::openflow::Field;

/// The field for each device.
pub(crate) fn fields(of: &Synthesis) -> Result<Vec<Field>, Error> {
    let refused = |why: String| {
        Error::new(
            format!("packets cannot be divided among servers: {why}"),
            "name one server",
        )
    };
    let by_device = |port: usize| -> Vec<Id> {
        let root = of.store.at(of.root, Var::Port, port as u64);
        of.store.reachable(root)
    };
    let mut fields = Vec::new();
    for (port, name) in of.ports.iter().enumerate() {
        let mut field = None;
        for id in by_device(port) {
            let wanted = if let Some(opening) = of.flows.openings.get(&id) {
                let hops = opening
                    .variants
                    .iter()
                    .flat_map(|v| v.ways.values())
                    .flat_map(|w| &w.hops);
                remote(hops.map(|h| h.words))
            } else if of.flows.answers.contains_key(&id) {
                let hops = of
                    .flows
                    .openings
                    .values()
                    .flat_map(|o| &o.variants)
                    .flat_map(|v| v.ways.values())
                    .flat_map(|w| &w.hops);
                remote(hops.map(|h| h.words)).map(|field| match field {
                    Field::Ipv4Dst => Field::Ipv4Src,
                    _ => Field::Ipv4Dst,
                })
            } else {
                continue;
            };
            let wanted = wanted.ok_or_else(|| {
                refused("rewriters write the addresses of both ends of a flow".into())
            })?;
            if field.is_some_and(|f| f != wanted) {
                return Err(refused(format!(
                    "{name} has flows of both directions, whose unchanged ends are different fields"
                )));
            }
            field = Some(wanted);
        }
        // Where no flow is looked for any server will do.
        fields.push(field.unwrap_or(Field::Ipv4Src));
    }
    Ok(fields)
}

/// The end of flows that no rewriter writes, as their first packets have it.
fn remote(hops: impl Iterator<Item = [Becomes; 4]>) -> Option<Field> {
    let (mut destination, mut source) = (true, true);
    for words in hops {
        destination &= words.get(1) == Some(&Becomes::Word(Word::Destination));
        source &= words.first() == Some(&Becomes::Word(Word::Source));
    }
    match (destination, source) {
        (true, _) => Some(Field::Ipv4Dst),
        (false, true) => Some(Field::Ipv4Src),
        (false, false) => None,
    }
}
