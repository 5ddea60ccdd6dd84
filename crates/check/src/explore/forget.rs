//! Drops from a state what no later proof is expected to need. Forgetting is always sound: the
//! state then describes more executions.

use std::rc::Rc;

use super::plan::Plan;
use crate::domain::value::Id;
use crate::domain::{Gone, Scalar, Value};
use crate::flow::places::Level;
use crate::state::{FrameState, State};

/// Drops dead registers and stack bytes, and the bounds of numbers that are not relevant.
pub fn forget(st: &mut State, plan: &Plan<'_>, block: usize) {
    let Some(live) = plan.live.get(block) else {
        return;
    };
    let relevant = plan.relevant_at(block);
    for (i, frame) in st.frames.iter_mut().enumerate() {
        let live = live.levels.get(i).copied().unwrap_or_default();
        drop_dead(Rc::make_mut(frame), &live);
    }
    if let Some(relevant) = relevant {
        let level = |i: usize| relevant.levels.get(i).copied().unwrap_or_default();
        let mut kept: Vec<Id> = Vec::new();
        for (i, frame) in st.frames.iter().enumerate() {
            note_relevant(frame, &level(i), &mut kept);
        }
        let innermost = st.frames.len().saturating_sub(1);
        let everywhere = Level {
            regs: u16::MAX,
            bytes: [u64::MAX; 8],
        };
        for (i, frame) in st.frames.iter_mut().enumerate() {
            let pointers = if i == innermost {
                plan.pointers.get(block).copied().unwrap_or_default()
            } else {
                everywhere
            };
            drop_irrelevant(Rc::make_mut(frame), &level(i), &pointers, &kept);
        }
    }
    st.tidy();
}

fn drop_dead(frame: &mut FrameState, live: &Level) {
    for (r, v) in frame.regs.iter_mut().enumerate() {
        if r != 10 && !live.has_reg(r as u8) {
            *v = Value::Gone(Gone::Never);
        }
    }
    let mut keep = live.bytes;
    frame.spills.retain(|s| {
        let alive = live.has_any(s.at, u16::from(s.size));
        if alive {
            // A value is kept whole: its dead bytes are needed to read the others.
            for b in s.at..s.at + u16::from(s.size) {
                if let Some(w) = keep.get_mut(usize::from(b / 64)) {
                    *w |= 1 << (b % 64);
                }
            }
        }
        alive
    });
    for (init, keep) in frame.init.iter_mut().zip(keep) {
        *init &= keep;
    }
}

fn note_relevant(frame: &FrameState, relevant: &Level, kept: &mut Vec<Id>) {
    let mut note = |v: &Value| {
        if let Value::Scalar(_, link) = v
            && link.id != 0
            && !kept.contains(&link.id)
        {
            kept.push(link.id);
        }
    };
    for (r, v) in frame.regs.iter().enumerate() {
        if relevant.has_reg(r as u8) {
            note(v);
        }
    }
    for s in &frame.spills {
        if relevant.has_any(s.at, u16::from(s.size)) {
            note(&s.value);
        }
    }
}

fn drop_irrelevant(frame: &mut FrameState, relevant: &Level, pointers: &Level, kept: &[Id]) {
    // A number related to a relevant one is kept: a comparison of it teaches about the other. A zero
    // where other ways have a pointer is the null pointer, and pointers are never forgotten.
    let drop = |v: &Value, pointer: bool| match v {
        Value::Scalar(s, link) => {
            (link.id == 0 || !kept.contains(&link.id)) && !(pointer && s.as_constant() == Some(0))
        }
        _ => false,
    };
    for (r, v) in frame.regs.iter_mut().enumerate() {
        if !relevant.has_reg(r as u8) && drop(v, pointers.has_reg(r as u8)) {
            *v = Value::number(Scalar::unknown());
        }
    }
    frame.spills.retain(|s| {
        let len = u16::from(s.size);
        relevant.has_any(s.at, len) || !drop(&s.value, s.size == 8 && pointers.has_any(s.at, len))
    });
}
