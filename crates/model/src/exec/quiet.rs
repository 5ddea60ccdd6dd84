//! Ways out of a loop that leave nothing that another turn would not have left: behind them any turn may have been the
//! last, and they need no path of their own.

use super::Engine;
use super::merge;
use super::state::{Cell, Place, State, Value};
use super::turns::{Changes, written};

impl Engine<'_> {
    /// A way out of a loop that leaves everything that is read later as it may be at the head in any turn, but for
    /// constants, which are often the reason why somebody left; without what is not read later. `from` is the head
    /// in any turn.
    pub(super) fn quiet(&self, from: &State, out: &State, changes: &Changes) -> Option<State> {
        let mut out = out.clone();
        let block = self.blocks.of.get(out.at).copied();
        let start = block.and_then(|b| self.blocks.starts.get(b));
        let live = block.and_then(|b| self.live.get(b));
        if let (Some(live), true) = (live, start == Some(&out.at)) {
            merge::forget(&mut out, live);
        }
        let new = written(&out, from.accesses.len());
        let quiet = { new }.all(|object| from.turned.contains(&object))
            && entries(&out, from, changes)
            && packet(&out, from, changes)
            && out.globals == from.globals
            && out.target == from.target
            && out.borders == from.borders
            && out.tail_calls == from.tail_calls
            && self.registers(&mut out, from, changes)
            && self.stack(&mut out, from, changes);
        out.packet.clone_from(&from.packet);
        quiet.then_some(out)
    }

    /// Whether registers are as at the head; those that turns change become what they are there.
    fn registers(&self, out: &mut State, from: &State, changes: &Changes) -> bool {
        let frames = |s: &State| -> Vec<_> { s.frames.iter().map(|f| f.0).collect() };
        if frames(out) != frames(from) {
            return false;
        }
        for (depth, ((_, x), (_, y))) in out.frames.iter_mut().zip(&from.frames).enumerate() {
            for (reg, (v, w)) in x.iter_mut().zip(y).enumerate() {
                let bits = changes.regs.get(&(depth, reg)).copied();
                let fits = |e| bits.is_some_and(|bits| self.arena.significant(e) <= bits);
                match (*v, *w) {
                    (v, w) if v == w => {}
                    (Value::Unset, _) => {}
                    (Value::Num(e), _) if self.arena.constant(e).is_some() => {}
                    (Value::Num(e), Value::Num(_)) if fits(e) => *v = *w,
                    (Value::Ptr(r, e), Value::Ptr(q, _)) if r == q && fits(e) => *v = *w,
                    _ => return false,
                }
            }
        }
        true
    }

    /// The same for the stack.
    fn stack(&self, out: &mut State, from: &State, changes: &Changes) -> bool {
        out.stack.iter_mut().all(|(at, cell)| {
            let head = from.stack.get(at);
            match (*cell, head) {
                (c, Some(h)) if c == *h => true,
                (Cell::Byte(e), _) if self.arena.constant(e).is_some() => true,
                (Cell::Byte(_), Some(Cell::Byte(h))) if changes.stack.contains(at) => {
                    *cell = Cell::Byte(*h);
                    true
                }
                _ => false,
            }
        })
    }
}

/// Whether the entries that the path had come to before the loop are as at the head, but for what turns change.
fn entries(out: &State, from: &State, changes: &Changes) -> bool {
    out.places.len() >= from.places.len()
        && out.places.iter().zip(&from.places).all(|(p, q)| {
            let bytes = changes.bytes.get(&p.object);
            let at = |at: &u32| bytes.is_some_and(|b| b.contains(at));
            let both = p.bytes.keys().chain(q.bytes.keys());
            let written = { both }.all(|k| p.bytes.get(k) == q.bytes.get(k) || at(k));
            let lapsed = q.lapsed.is_some() && changes.upset.contains(&p.object);
            let rest = |p: &Place| Place {
                bytes: Default::default(),
                ..p.clone()
            };
            lapsed || (written && rest(p) == rest(q))
        })
}

/// Whether the packet is as at the head, but for bytes that turns change.
fn packet(out: &State, from: &State, changes: &Changes) -> bool {
    out.packet.starts_with(&from.packet)
        && out
            .packet
            .iter()
            .skip(from.packet.len())
            .all(|w| changes.packet.contains(&(w.base, w.at)))
}
