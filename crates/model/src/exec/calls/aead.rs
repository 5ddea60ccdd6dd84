//! `aead_seal` and `aead_open`: from the first byte that they change on, any bytes; their answer is any of theirs.

use millrace_object::helper::Helper;

use super::super::state::Changed;
use super::super::{Engine, Gap, State};
use super::any;

pub fn meaning(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Result<Vec<State>, Gap> {
    let offset = engine.number_in(&s, 2)?;
    let from = engine.plus(s.borders.start, offset);
    // Of what was written before, what certainly lies before it stays; of an earlier change, all that it changed.
    let earlier = s.borders.changed;
    let from = match earlier {
        Some(earlier) if !engine.lies_before(from, earlier.from) => earlier.from,
        _ => from,
    };
    let written = std::mem::take(&mut s.packet);
    for w in written {
        let at = engine.joined(w.base, w.at);
        if engine.lies_before(at, from) {
            s.packet.push(w);
        }
    }
    s.borders.changed = Some(Changed {
        from,
        number: s.draws,
    });
    let mut ways = any::meaning(engine, s, h)?;
    for s in &mut ways {
        s.loose = Some("what is encrypted or decrypted is taken for any bytes");
    }
    Ok(ways)
}
