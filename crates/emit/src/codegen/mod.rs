//! Code generation: C from a checked program, as one thread runs it.
//!
//! A program becomes C with two typed locals a register (`demand`), a stack split into
//! independent objects (`stack`), calls of state objects that inline (`call`), and, where the
//! program begins with keyed operations, a prefetch pass that fetches their state ahead (`prefetch`). What it
//! costs against code by hand, `make bench` measures. Where several workers share state, a treatment adds to it
//! ([`crate::sync`]).

mod apart;
mod arithmetic;
mod body;
mod branch;
mod c;
mod call;
mod claims;
mod context;
mod demand;
mod entries;
mod forms;
mod gate;
mod key;
mod known;
mod later;
mod lifetime;
mod memory;
mod module;
mod nested;
mod objects;
mod operand;
pub mod operators;
mod origin;
mod parts;
mod prefetch;
mod reads;
mod resume;
mod slice;
mod stack;
mod stack_live;
mod statement;
mod store_order;
mod straight;
mod tail;
mod text;
mod timers;
mod unit;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::Checked;
use millrace_check::facts::{Flow, Op};
use millrace_check::members::operators;
use millrace_object::helper::{self, REDIRECT, REDIRECT_MAP};
use millrace_object::insn::Insn;
use millrace_object::program::Dialect;
use millrace_object::{Program, program};

pub use body::{Body, Purpose};
pub use c::{Code, Local, Part, Statement};
pub use context::number as context_number;
pub use demand::{Cut, Live};
pub use entries::{OUTLINED, PARAMETERS, function_text};
pub use forms::Forms;
pub use gate::{Gate, slot};
pub use key::words as key_words;
pub use module::{Burst, Entry, takes_packets};
pub use objects::offers;
pub use operand::memory_type;
pub use prefetch::prefetched;
pub use slice::{Role, Slice};
pub(crate) use text::comment_text;
pub use text::{Text, identifier, string, unsigned as number};
pub use unit::Unit;

use crate::error::Error;
use crate::headers;
use crate::sync::{Input, Make, Sharing, TREATMENTS};

/// The most steps that are emitted for one entry: above this clang takes minutes.
const MOST_STEPS: usize = 200_000;

/// C source of a module with the interface of fastpath/abi.h.
///
/// `file` is the name that the source will have, for its own line numbers.
///
/// # Errors
/// [`Error::Unsupported`] for constructs that there is no code for, objects that cannot be shared, and handlers that work
/// both on shared state and on each worker's own; [`Error::Facts`] when the facts do not fit the program.
pub fn emit(
    program: &Program,
    checked: &Checked,
    sharing: &Sharing,
    file: &str,
) -> Result<String, Error> {
    emit_as(TREATMENTS, program, checked, sharing, file)
}

/// The same with other treatments to choose from.
///
/// # Errors
/// Those of [`emit`]; [`Error::Unsupported`] where no treatment fits.
pub fn emit_as(
    treatments: &[Make],
    program: &Program,
    checked: &Checked,
    sharing: &Sharing,
    file: &str,
) -> Result<String, Error> {
    fits(program, checked)?;
    let helpers = helpers(program, checked)?;
    let wholes = whole(program, checked)?;
    let tails = tail::among(&helpers);
    let input = Input {
        program,
        checked,
        wholes: &wholes,
        tails,
        sharing,
    };
    let mut found = treatments.iter().map(|make| make(&input));
    let treatment = found.find_map(Result::transpose);
    let treatment = treatment.unwrap_or_else(|| {
        Err(Error::Unsupported {
            place: program.name.clone(),
            what: "how its objects are placed: no treatment is for that".into(),
        })
    })?;
    let apart = match treatment.takes_up() {
        true => apart::of(program, checked, &wholes),
        false => None,
    };
    let (checked, wholes) = match &apart {
        Some(apart) => (apart, whole(program, apart)?),
        None => (checked, wholes),
    };
    let random = helpers.iter().any(|h| h.effects.random);
    let mut unit = Unit::new(program, &*treatment, sharing)?;
    unit.tails = tails;
    unit.verdicts = tail::away_among(&helpers);
    let targets = [&REDIRECT, &REDIRECT_MAP];
    unit.targets = helpers.iter().any(|h| targets.contains(h));
    unit.timers = !checked.timers.is_empty();
    unit.random = random;
    unit.noted = sharing.test.is_some_and(|t| t.log) && program.objects.iter().any(parts::is);
    unit.operators = (0..program.objects.len())
        .map(|at| operators(program, checked, program::ObjectId(at)))
        .collect();

    let mut out = Text::default();
    out.lines(&module::header(&unit, &describe(program)));
    out.lines(parts::defines(unit.noted));
    if program.dialect == Dialect::Xdp && !unit.targets {
        out.lines("#define MR_NO_TARGETS 1\n");
    }
    out.lines(&includes(program, &helpers));
    out.lines(&treatment.includes(&unit));
    out.lines(&objects::declarations(&unit));
    out.lines(&parts::publish(&unit));
    let entries = entries::write(&mut out, &unit, &wholes, file)?;
    if unit.tails {
        out.lines(&tail::dispatch(&entries, unit.verdicts));
    }
    let timers = timers::write(&mut out, &unit, &checked.timers, file)?;
    out.lines(&timers);
    treatment.parts(&mut out, &unit, &wholes, file)?;
    out.lines(&lifetime::functions(&unit));
    let ageing = module::ageing(&unit);
    out.lines(&ageing);
    out.lines(&treatment.functions(&unit));
    let moments = timers::begin(&unit);
    let begin: Vec<&str> = [
        (unit.timers, &*moments),
        (unit.targets, "mr_packet_begin(packets[i]);"),
        (unit.tails, tail::BEGIN),
    ]
    .into_iter()
    .filter_map(|(there, statement)| there.then_some(statement))
    .collect();
    for (index, entry) in entries.iter().filter(|e| takes_packets(e.role)).enumerate() {
        out.lines(&treatment.burst(&Burst {
            unit: &unit,
            index,
            entry,
            ages: !ageing.is_empty(),
            begin: &begin,
        }));
    }
    out.lines(&objects::control(&unit));
    out.lines(&module::table(&unit, &entries));
    Ok(out.finish())
}

/// All steps of each entry.
fn whole<'a>(program: &'a Program, checked: &'a Checked) -> Result<Vec<Slice<'a>>, Error> {
    let all = program.entries.iter().zip(&checked.flows);
    all.map(|(entry, flow)| Slice::whole(program, flow, takes_packets(entry.role)))
        .collect()
}

/// Refuses what is too large, and facts of another program.
fn fits(program: &Program, checked: &Checked) -> Result<(), Error> {
    if program.entries.len() != checked.flows.len() {
        return Err(Error::Facts {
            place: program.name.clone(),
            what: "not one flow an entry".into(),
        });
    }
    let mut flows = checked.running(program).map(|r| r.flow);
    match flows.find(|f| f.steps.len() > MOST_STEPS) {
        None => Ok(()),
        Some(flow) => Err(Error::Unsupported {
            place: program.name.clone(),
            what: format!(
                "a program of {} instructions with its calls expanded (at most {MOST_STEPS})",
                flow.steps.len()
            ),
        }),
    }
}

/// Every helper that some execution can call.
fn helpers(program: &Program, checked: &Checked) -> Result<Vec<&'static helper::Helper>, Error> {
    let mut found: BTreeMap<u32, &'static helper::Helper> = BTreeMap::new();
    let calls = |flow: &'_ Flow| -> BTreeSet<u32> {
        let call = |s: &millrace_check::facts::Step| match s.op {
            Op::Plain(Insn::Call { helper }) if s.reached => Some(helper),
            _ => None,
        };
        flow.steps.iter().filter_map(call).collect()
    };
    for number in checked.running(program).map(|r| r.flow).flat_map(calls) {
        let unsupported = |what: String| Error::Unsupported {
            place: program.name.clone(),
            what,
        };
        let helper =
            helper::by_number(number).ok_or_else(|| unsupported(format!("helper {number}")))?;
        if is_free(helper) && headers::text(&format!("helpers/{}.h", helper.name)).is_none() {
            return Err(unsupported(format!("the helper {}", helper.name)));
        }
        found.insert(number, helper);
    }
    Ok(found.into_values().collect())
}

/// Whether a helper is a function of its own, not of a kind's header.
fn is_free(helper: &helper::Helper) -> bool {
    !helper.takes_object() && helper::implied(helper).is_none()
}

fn includes(program: &Program, helpers: &[&helper::Helper]) -> String {
    let kinds: BTreeSet<&str> = program.objects.iter().map(|o| o.kind.c).collect();
    let free = helpers.iter().filter(|h| is_free(h));
    let mut out = String::from("#include \"codegen.h\"\n");
    for name in free.map(|h| h.name).collect::<BTreeSet<_>>() {
        out.push_str(&format!("#include \"helpers/{name}.h\"\n"));
    }
    for kind in kinds {
        out.push_str(&format!("#include \"state/{kind}.h\"\n"));
    }
    out
}

fn describe(program: &Program) -> Vec<String> {
    let line = |entry: &program::Entry| {
        let name = program
            .functions
            .get(entry.function.0)
            .map_or("?", |f| f.name.as_str());
        format!("{name}: {}", describe_role(entry.role))
    };
    program.entries.iter().map(line).collect()
}

fn describe_role(role: program::Role) -> String {
    match role {
        program::Role::Xdp => "every packet, XDP".into(),
        program::Role::OnPacket => "every packet".into(),
        program::Role::OnStart => "before the first packet".into(),
        program::Role::OnStop => "after the last packet".into(),
        program::Role::Every { period } => format!("every {period} ns"),
        program::Role::Timer => "a timer in a map's value".into(),
        program::Role::Expiry => "an entry that expires".into(),
    }
}
