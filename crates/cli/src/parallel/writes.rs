//! Which state packets and timers write: a function of which they write none may run on several workers that
//! each have a copy.

use std::fmt;

use millrace_check::facts::{Access, ArgFact, Checked, Op};
use millrace_object::insn::Insn;
use millrace_object::program::{Line, ObjectId, Program, Role};

/// Helpers that look at state and change none. What else works on an object changes it.
const READERS: [&str; 9] = [
    "map_lookup_elem",
    "map_get",
    "vector_at",
    "lpm_get",
    "sketch_count",
    "redirect_map",
    "tail_call",
    "ringbuf_query",
    "allocator_get",
];
/// Kinds in which looking something up makes it the latest used.
const AGEING: [&str; 2] = ["lru_hash", "lru_percpu_hash"];
/// Kinds with one instance a core by their definition.
const PER_CORE: [&str; 3] = ["percpu_array", "percpu_hash", "lru_percpu_hash"];

/// A write that a packet or a timer makes.
#[derive(Debug, PartialEq, Eq)]
pub struct Write {
    /// of this object; none where nothing says which
    pub id: Option<ObjectId>,
    /// what it is called
    pub object: String,
    /// where
    pub line: Option<Line>,
}

impl fmt::Display for Write {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "it writes `{}`", self.object)?;
        match &self.line {
            Some(l) => write!(to, " at {}:{} (`{}`)", l.file, l.line, l.text),
            None => Ok(()),
        }
    }
}

/// All writes, in the order of the program. Objects that every core has one of anyway are left out.
pub fn all(program: &Program, checked: &Checked) -> Vec<Write> {
    let mut writes = Vec::new();
    let running = checked.running(program);
    for running in running.filter(|r| !matches!(r.role, Role::OnStart | Role::OnStop)) {
        for step in running.flow.steps.iter().filter(|s| s.reached) {
            let Op::Plain(insn) = step.op else { continue };
            let written = match insn {
                Insn::Store { .. } | Insn::Atomic { .. } => {
                    match step.access {
                        Some(Access::Value(object)) => named(program, object),
                        // Nothing says which object: as good as any.
                        Some(Access::Several) => Some((None, "state".to_owned())),
                        _ => None,
                    }
                }
                Insn::Call { helper } => called(program, helper, &step.args),
                _ => None,
            };
            if let Some((id, object)) = written {
                writes.push(Write {
                    id,
                    object,
                    line: step.line.clone(),
                });
            }
        }
    }
    writes
}

/// The object that a helper call writes.
fn called(program: &Program, number: u32, args: &[ArgFact]) -> Option<(Option<ObjectId>, String)> {
    let helper = millrace_object::helper::by_number(number)?;
    if !helper.effects.state {
        return None;
    }
    let object = args.iter().find_map(|a| match a {
        ArgFact::Object(object) | ArgFact::Timer(object) => Some(*object),
        _ => None,
    });
    let kind = object
        .and_then(|o| program.objects.get(o.0))
        .map_or("", |o| o.kind.name);
    if READERS.contains(&helper.name) && !AGEING.contains(&kind) {
        return None;
    }
    match object {
        Some(object) => named(program, object),
        None => Some((None, helper.name.to_owned())),
    }
}

/// An object's name; none for those that every core has one of anyway.
fn named(program: &Program, id: ObjectId) -> Option<(Option<ObjectId>, String)> {
    let object = program.objects.get(id.0)?;
    (!PER_CORE.contains(&object.kind.name)).then(|| (Some(id), object.name.clone()))
}
