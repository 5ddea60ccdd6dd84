//! Stores to the stack in the order of their addresses.
//!
//! Compilers fill a key in any order, in narrow pieces. LLVM merges neighbouring narrow accesses into
//! wide ones only when they come in order, and a wide load of a key that was stored in pieces stalls
//! on store forwarding. Within a run of instructions that touch no other stack memory, constant
//! stack stores commute if they do not overlap, so they are moved to the run's end and sorted; a
//! value whose register changes meanwhile is kept in a constant.

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::facts::{Kind, Op, StepId};
use millrace_object::insn::{Insn, Operand};

use super::body::Body;
use super::c::Statement;
use super::memory;
use super::statement;
use crate::c;
use crate::error::Error;

/// A rewritten run.
pub struct Run {
    /// how many steps of the layout it replaces
    pub length: usize,
    /// statements with the step each belongs to
    pub statements: Vec<(StepId, Vec<Statement>)>,
}

/// A store at a constant place of the stack.
struct Store {
    at: usize,
    id: StepId,
    /// frame and first byte of the stack object
    object: (usize, i32),
    from: i32,
    to: i32,
}

/// The runs of a layout that are worth rewriting, by where they begin.
pub fn runs(
    body: &Body,
    order: &[StepId],
    labels: &BTreeSet<StepId>,
) -> Result<BTreeMap<usize, Run>, Error> {
    let mut found = BTreeMap::new();
    let mut start = 0;
    while start < order.len() {
        let mut end = start;
        let mut stores = Vec::new();
        while let Some(&id) = order.get(end) {
            let joined = end > start && (labels.contains(&id) || order[end - 1].0 + 1 != id.0);
            if joined {
                break;
            }
            match store(body, end, id) {
                Some(store) => stores.push(store),
                None if body.only_computes(id) => {}
                None => break,
            }
            end += 1;
        }
        let moved = worthwhile(stores);
        if let (Some(first), Some(last)) = (moved.first(), moved.last()) {
            // A run begins where it needs to: with its first store. A label there is written before it.
            let (from, to) = (first.at, last.at + 1);
            found.insert(from, rewrite(body, &order[from..to], from, moved)?);
        }
        start = end.max(start + 1);
    }
    Ok(found)
}

fn store(body: &Body, at: usize, id: StepId) -> Option<Store> {
    let step = body.slice.step(id);
    let Op::Plain(Insn::Store {
        size, base, offset, ..
    }) = step.op
    else {
        return None;
    };
    let Kind::Stack {
        frame,
        offset: Some(place),
    } = step.before[usize::from(base.0)]
    else {
        return None;
    };
    let from = place.checked_add(i32::from(offset))?;
    Some(Store {
        at,
        id,
        object: (frame.0, body.stack.find(frame, from)?.from),
        from,
        to: from.checked_add(size.bytes() as i32)?,
    })
}

/// The stores, in the order they stand, of those objects whose stores come out of order and none over
/// another. Where an object is stored to in order, or but once, LLVM needs no help.
fn worthwhile(stores: Vec<Store>) -> Vec<Store> {
    let mut objects: BTreeMap<(usize, i32), Vec<(i32, i32)>> = BTreeMap::new();
    for s in &stores {
        objects.entry(s.object).or_default().push((s.from, s.to));
    }
    objects.retain(|_, places| {
        let unsorted = !places.is_sorted();
        places.sort_unstable();
        unsorted && places.windows(2).all(|w| w[0].1 <= w[1].0)
    });
    stores
        .into_iter()
        .filter(|s| objects.contains_key(&s.object))
        .collect()
}

fn rewrite(
    body: &Body,
    steps: &[StepId],
    first: usize,
    mut stores: Vec<Store>,
) -> Result<Run, Error> {
    let mut statements = Vec::new();
    let mut values = BTreeMap::new();
    for (position, &id) in steps.iter().enumerate() {
        let step = body.slice.step(id);
        let Op::Plain(insn) = step.op else { continue };
        let moves = stores.iter().any(|s| s.id == id);
        let (true, Insn::Store { size, src, .. }) = (moves, insn) else {
            statements.push((id, statement::whole(body, id, &insn)?));
            continue;
        };
        // What stands before a store does not move with it: where a transaction commits, say.
        statements.push((id, body.hooks.before(body, id, &insn)?));
        let (value, kind) = memory::stored(body, id, size, src)?;
        let changes = |later: &StepId| match (body.slice.step(*later).op, src) {
            (Op::Plain(later), Operand::Reg(src)) => {
                millrace_check::facts::written(&later) == Some(src)
            }
            _ => false,
        };
        let kept = if steps[position + 1..].iter().any(changes) {
            let holder = if kind == "mr_pointer" {
                "u8 *const".to_owned()
            } else {
                format!("const u{}", size.bytes() * 8)
            };
            statements.push((id, vec![c!("{} v{} = {};", holder, id.0, value).into()]));
            c!("v{}", id.0)
        } else {
            value
        };
        values.insert(first + position, (kept, kind));
    }
    stores.sort_by_key(|s| (s.object, s.from));
    for store in stores {
        let step = body.slice.step(store.id);
        let (Some((value, kind)), Op::Plain(Insn::Store { base, offset, .. })) =
            (values.get(&store.at), step.op)
        else {
            continue;
        };
        let address = body.address(store.id, base, offset)?;
        statements.push((
            store.id,
            vec![c!("*({} *){} = {};", kind, address, value).into()],
        ));
        if let Op::Plain(insn) = step.op {
            statements.push((store.id, body.hooks.behind(body, store.id, &insn)?));
        }
    }
    Ok(Run {
        length: steps.len(),
        statements,
    })
}
