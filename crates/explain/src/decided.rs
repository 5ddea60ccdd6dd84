//! The line that decided to drop a packet, and nothing else of its path: what records of samples say.
//!
//! The interpreter executes the packet from the state that it meets, as for an explanation; nothing is put into words.

use std::collections::HashMap;
use std::sync::Arc;

use millrace_dataplane::module::Instance;
use millrace_dataplane::packet::Fate;
use millrace_dataplane::worker::watch::Sight;
use millrace_object::insn::Insn;

use crate::execution::execute_from;
use crate::live::{Function, Running, packet_of};
use crate::steps::own_file;

/// Lines of the functions of a run that drop packets.
pub struct Decider {
    functions: Arc<Vec<Function>>,
    /// `FILE:LINE` by function and instruction: each is written once
    known: HashMap<(u64, usize, usize), Arc<str>>,
}

impl Decider {
    /// Of these functions.
    #[must_use]
    pub fn new(functions: &Arc<Vec<Function>>) -> Self {
        Self {
            functions: functions.clone(),
            known: HashMap::new(),
        }
    }

    /// `FILE:LINE` of the last decision of a packet that its element, a function of this number, will drop or abort: a branch or a
    /// call in the author's own file, as an explanation has it beside the verdict. `state` is what the packet meets; timers
    /// that are due before it fire. None of a packet that goes on, and where the interpreter cannot say.
    pub fn line(
        &mut self,
        element: u64,
        state: &mut Instance,
        sight: &Sight<'_>,
    ) -> Option<Arc<str>> {
        let function = self.functions.iter().find(|f| f.id == element)?;
        state.alarm(sight.time);
        let part = function.part();
        let mut running = Running::new(&function.program, state, sight.time);
        let done = execute_from(&part, &mut running, &packet_of(sight)).ok()?;
        if !matches!(done.fate, Fate::Dropped(_) | Fate::Aborted) {
            return None;
        }
        let own = own_file(&part);
        let functions = &function.program.functions;
        let place = done.trail.iter().rev().find_map(|(of, insn)| {
            let code = functions.get(*of)?;
            let decides = matches!(
                code.insns.get(*insn)?,
                Insn::Branch { .. } | Insn::Call { .. }
            );
            let line = code.lines.get(*insn)?.as_ref().filter(|_| decides)?;
            let library = own.as_ref().is_some_and(|own| **own != *line.file);
            (!library).then_some((*of, *insn, line))
        });
        let (of, insn, line) = place?;
        let known = self.known.entry((element, of, insn));
        Some(known.or_insert_with(|| line.place().into()).clone())
    }
}
