//! One program of an object that holds several.

use crate::helper::{TAIL_AWAY, TAIL_CALL};
use crate::insn::{Imm64, Insn};
use crate::program::{FunctionId, Program, Role};

impl Program {
    /// Leaves out what does not run when only the program `name` gets packets, by its function's or its
    /// section's name: the other programs for packets, and the instructions of functions that are then not
    /// called. Functions and objects keep their numbers. If the program makes tail calls, the others may be
    /// put into its arrays, and all stay. False if there is no such program; then nothing is changed.
    pub fn narrow(&mut self, name: &str) -> bool {
        let packets = |role: Role| matches!(role, Role::Xdp | Role::OnPacket);
        let named = |by: &dyn Fn(&crate::program::Function) -> bool| {
            let function = |f: FunctionId| self.functions.get(f.0).is_some_and(by);
            (self.entries.iter())
                .find(|e| packets(e.role) && function(e.function))
                .map(|e| e.function)
        };
        let wanted = named(&|f| f.name == name).or_else(|| named(&|f| f.section == name));
        let Some(wanted) = wanted else {
            return false;
        };
        let mut entries = self.entries.clone();
        entries.retain(|e| !packets(e.role) || e.function == wanted);
        let reached = self.reached(entries.iter().map(|e| e.function).collect());
        let mut insns = (self.functions.iter().zip(&reached))
            .filter(|(_, reached)| **reached)
            .flat_map(|(f, _)| &f.insns);
        let tail = [TAIL_CALL.number, TAIL_AWAY.number];
        if insns.any(|i| matches!(i, Insn::Call { helper } if tail.contains(helper))) {
            return true;
        }
        self.entries = entries;
        for (function, reached) in self.functions.iter_mut().zip(reached) {
            if !reached {
                function.insns.clear();
                function.slots.clear();
                function.lines.clear();
            }
        }
        true
    }

    /// Functions that these call or name, themselves included.
    fn reached(&self, mut open: Vec<FunctionId>) -> Vec<bool> {
        let mut reached = vec![false; self.functions.len()];
        while let Some(id) = open.pop() {
            let (Some(function), Some(seen)) = (self.functions.get(id.0), reached.get_mut(id.0))
            else {
                continue;
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            open.extend(function.insns.iter().filter_map(|insn| match *insn {
                Insn::CallLocal { function }
                | Insn::LoadImm {
                    value: Imm64::Function(function),
                    ..
                } => Some(function),
                _ => None,
            }));
        }
        reached
    }
}
