//! Programs with no more state than they use: of a module, half of the compiler's time is for state objects.

use std::collections::BTreeSet;

use millrace_object::insn::{AluOp, Imm64, Insn, Operand, Reg, Width};
use millrace_object::program::{FunctionId, ObjectId, Program};

use super::objects::{ONWARD, TRACE};

/// The program of these entries, without the objects and the functions that they do not reach. With maps of maps, or
/// tail calls, it keeps all.
#[must_use]
pub fn program(bodies: &[Vec<Insn>]) -> Program {
    let mut program = super::program(bodies);
    let mut reached = BTreeSet::new();
    let mut todo: Vec<FunctionId> = program.entries.iter().map(|e| e.function).collect();
    let mut used = BTreeSet::from([TRACE]);
    while let Some(id) = todo.pop() {
        if !reached.insert(id) {
            continue;
        }
        let function = program.functions.get(id.0);
        for insn in function.iter().flat_map(|f| &f.insns) {
            match insn {
                Insn::CallLocal { function } => todo.push(*function),
                Insn::LoadImm { value, .. } => match value {
                    Imm64::Function(function) => todo.push(*function),
                    Imm64::Object(object) | Imm64::ObjectValue { object, .. } => {
                        used.insert(*object);
                    }
                    Imm64::Number(_) => {}
                },
                _ => {}
            }
        }
    }
    let nested = |id: &ObjectId| {
        let object = program.objects.get(id.0);
        *id == ONWARD || object.is_some_and(|o| o.nesting.is_some())
    };
    if used.iter().any(nested) {
        return program;
    }
    let number = |id: &mut ObjectId| {
        // How many of those before it stay.
        *id = ObjectId(used.range(..*id).count());
    };
    for (i, function) in program.functions.iter_mut().enumerate() {
        if !reached.contains(&FunctionId(i)) {
            function.insns = nothing();
            function.slots = vec![0, 1];
            function.lines = vec![None; 2];
        }
        for insn in &mut function.insns {
            if let Insn::LoadImm {
                value: Imm64::Object(object) | Imm64::ObjectValue { object, .. },
                ..
            } = insn
            {
                number(object);
            }
        }
    }
    let objects = std::mem::take(&mut program.objects);
    let stay = |(i, _): &(usize, _)| used.contains(&ObjectId(*i));
    program.objects = objects
        .into_iter()
        .enumerate()
        .filter(stay)
        .map(|(_, o)| o)
        .collect();
    program
}

/// A function that does nothing.
fn nothing() -> Vec<Insn> {
    vec![
        Insn::Alu {
            op: AluOp::Mov,
            width: Width::W64,
            dst: Reg(0),
            src: Operand::Imm(0),
        },
        Insn::Exit,
    ]
}
