//! Whether a function may run on several workers that each have a copy of its state: only if no packet
//! and no timer writes any.

use millrace_check::facts::{Access, ArgFact, Checked, Op};
use millrace_object::insn::Insn;
use millrace_object::program::{Line, ObjectId, Program, Role};

use crate::failure::Failure;
use crate::function::{self, Function};

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

/// Refuses several workers for a function that writes state, naming the object and the line.
pub fn allow(function: &Function, workers: usize) -> Result<(), Failure> {
    let name = &function.name;
    let refused = |why: String| {
        Failure::wrong(format!("--cores {workers}: {name} runs on one core: {why}")).help(
            "use --cores 1: until a plan divides the state, several workers are for functions \
             whose packets write none",
        )
    };
    let Some(program) = &function.program else {
        return Err(refused(
            "a module alone does not tell what it writes".into(),
        ));
    };
    let checked =
        function::prove(program).map_err(|r| crate::trouble::refused(&program.name, &r))?;
    match first_write(program, &checked) {
        None => Ok(()),
        Some(write) => {
            let place = write.line.map_or_else(String::new, |l| {
                format!(" at {}:{} (`{}`)", l.file, l.line, l.text)
            });
            Err(refused(format!("it writes `{}`{place}", write.object)))
        }
    }
}

/// A write that a packet or a timer makes.
#[derive(Debug, PartialEq, Eq)]
struct Write {
    object: String,
    line: Option<Line>,
}

fn first_write(program: &Program, checked: &Checked) -> Option<Write> {
    let running = checked.running(program);
    for running in running.filter(|r| !matches!(r.role, Role::OnStart | Role::OnStop)) {
        for step in running.flow.steps.iter().filter(|s| s.reached) {
            let Op::Plain(insn) = step.op else { continue };
            let written = match insn {
                Insn::Store { .. } | Insn::Atomic { .. } => {
                    match step.access {
                        Some(Access::Value(object)) => named(program, object),
                        // Nothing says which object: as good as any.
                        Some(Access::Several) => Some("state".to_owned()),
                        _ => None,
                    }
                }
                Insn::Call { helper } => called(program, helper, &step.args),
                _ => None,
            };
            if let Some(object) = written {
                return Some(Write {
                    object,
                    line: step.line.clone(),
                });
            }
        }
    }
    None
}

/// The object that a helper call writes.
fn called(program: &Program, number: u32, args: &[ArgFact]) -> Option<String> {
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
        None => Some(helper.name.to_owned()),
    }
}

/// An object's name; none for those that every core has one of anyway.
fn named(program: &Program, object: ObjectId) -> Option<String> {
    let object = program.objects.get(object.0)?;
    (!PER_CORE.contains(&object.kind.name)).then(|| object.name.clone())
}
