//! Treatment `alone`: one thread owns an instance. The reference for all others, and the fastest on
//! one core.
//!
//! A checked program becomes C with two typed locals a register (`demand`), a stack split into
//! independent objects (`stack`), calls of state objects that inline (`call`), and, where the
//! program begins with keyed operations, a scout that fetches their state ahead (`scout`). What it
//! costs against code by hand, `make bench` measures.

mod arithmetic;
mod body;
mod branch;
mod call;
mod claims;
mod context;
mod demand;
mod forms;
mod memory;
mod module;
mod nested;
mod objects;
mod operand;
mod origin;
mod reads;
mod resume;
mod scout;
mod slice;
mod stack;
mod statement;
mod store_order;
mod tail;
mod text;
mod timers;

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::Checked;
use millrace_check::facts::{Flow, Op};
use millrace_object::helper::{self, REDIRECT, REDIRECT_MAP};
use millrace_object::insn::Insn;
use millrace_object::{Program, program};

use body::{Body, Purpose};
use module::{Prefetch, takes_packets};
use resume::Resume;
use text::Text;
pub use text::identifier;

pub(crate) use module::{Entry, Gate};
pub(crate) use objects::{Names, offers};
pub(crate) use slice::Slice;

use crate::error::Error;
use crate::headers;
use crate::lock::{self, Reader, Sharing};

/// Above this many steps a program is emitted once, for both passes, and not twice, specialised:
/// the instruction cache is worth more than a branch saved.
const SPECIALISE_UP_TO: usize = 3000;

/// The most steps that are emitted for one entry: above this clang takes minutes.
const MOST_STEPS: usize = 200_000;

/// C source of a module with the interface of fastpath/abi.h.
///
/// `file` is the name that the source will have, for its own line numbers.
///
/// # Errors
/// [`Error::Unsupported`] for constructs this treatment has no code for; [`Error::Facts`] when the
/// facts do not fit the program.
pub fn emit(program: &Program, checked: &Checked, file: &str) -> Result<String, Error> {
    emit_shared(program, checked, &Sharing::default(), file)
}

/// The same for workers that share some of the objects, which [`crate::lock`] found fit for it.
pub(crate) fn emit_shared(
    program: &Program,
    checked: &Checked,
    sharing: &Sharing,
    file: &str,
) -> Result<String, Error> {
    if program.entries.len() != checked.flows.len() {
        return Err(Error::Facts {
            place: program.name.clone(),
            what: "not one flow an entry".into(),
        });
    }
    let mut flows = checked.running(program).map(|r| r.flow);
    if let Some(flow) = flows.find(|f| f.steps.len() > MOST_STEPS) {
        let what = format!(
            "a program of {} instructions with its calls expanded (at most {MOST_STEPS})",
            flow.steps.len()
        );
        return Err(Error::Unsupported {
            place: program.name.clone(),
            what,
        });
    }
    let helpers = helpers(program, checked)?;
    let away = tail::away_among(&helpers);
    let mut names = Names::new(program, away, !checked.timers.is_empty())?.with(sharing);
    let random = helpers.iter().any(|h| h.effects.random);
    let tails = tail::among(&helpers);
    let redirects = helpers
        .iter()
        .any(|h| [&REDIRECT, &REDIRECT_MAP].contains(h));

    let programs: Vec<Slice> = (program.entries.iter().zip(&checked.flows))
        .map(|(entry, flow)| Slice::whole(program, flow, takes_packets(entry.role)))
        .collect::<Result<_, _>>()?;
    // Where workers share state, what packets run first is a part of the program.
    let readable = names.shares() && !tails && checked.timers.is_empty();
    let readers: Vec<Option<Reader>> = (program.entries.iter().zip(&programs))
        .map(|(entry, whole)| {
            let reads = readable && takes_packets(entry.role);
            reads.then(|| Reader::of(whole, sharing))
        })
        .collect();
    names.undo = readers.iter().flatten().any(Reader::undoes);
    let slices: Vec<Slice> = (programs.iter().zip(&readers))
        .map(|(whole, reader)| match reader {
            Some(reader) => whole.stopping(|id| reader.stops(id)),
            None => whole.clone(),
        })
        .collect();
    let scouts: Vec<Option<scout::Scout>> = (program.entries.iter().zip(&slices))
        .map(|(entry, slice)| {
            if takes_packets(entry.role) && (readable || !names.shares()) {
                scout::scout(slice)
            } else {
                None
            }
        })
        .collect();

    let none = BTreeMap::new();
    let mut out = Text::default();
    let treatment = if names.shares() {
        "treatment lock (workers share state)"
    } else {
        "treatment alone (one thread owns an instance)"
    };
    out.lines(&module::header(program, &describe(program), treatment));
    out.lines(&includes(program, &helpers));
    out.lines(&lock::text::includes(program, &names));
    out.lines(&objects::declarations(program, &names, random, tails));
    let mut wholes: Vec<Body> = (slices.iter().zip(&scouts).zip(&readers))
        .map(|((slice, scout), reader)| {
            let sites = scout.as_ref().map_or(&none, |s| &s.sites);
            let body = Body::new(slice, &names, Purpose::Program, sites)?;
            Ok::<_, Error>(body.reading(reader.as_ref()))
        })
        .collect::<Result<_, _>>()?;
    let rests: Vec<Option<Resume>> = (slices.iter().zip(&scouts).zip(&wholes))
        .map(|((slice, scout), whole)| {
            let scout = scout.as_ref().filter(|_| specialised(slice))?;
            Resume::of(slice, scout, &whole.stack, &whole.demand)
        })
        .collect();
    for (whole, _) in wholes
        .iter_mut()
        .zip(&rests)
        .filter(|(_, rest)| rest.is_some())
    {
        whole.slotted = false;
    }
    let words = scouts
        .iter()
        .flatten()
        .flat_map(|s| &s.objects)
        .map(|o| call::key_words(&program.objects[o.0]))
        .max();
    if let Some(words) = words {
        out.lines(&module::slot(words, rests.iter().flatten()));
    }

    if tails {
        out.lines(tail::DECLARATION);
    }
    let mut entries = Vec::new();
    let parts = wholes.iter().zip(scouts.iter().zip(&rests));
    for (index, (entry, (whole, (scout, rest)))) in program.entries.iter().zip(parts).enumerate() {
        let name = program
            .functions
            .get(entry.function.0)
            .map_or("entry", |f| f.name.as_str());
        let function = format!("run{index}_{}", identifier(name));
        let outlined = "static __attribute__((noinline))";
        let linkage = if specialised(whole.slice) && (whole.reader.is_some() || !names.shares()) {
            "MR_INLINE"
        } else {
            outlined
        };
        let parameters = "struct mr_instance *self, struct mr_packet *pkt";
        let slot = if whole.slotted {
            ", const struct slot *slot"
        } else {
            ""
        };
        let title = format!("{name}: {}", describe_role(entry.role));
        let mut reader = None;
        let result = if whole.reader.is_some() {
            "int"
        } else {
            "void"
        };
        if whole.reader.is_some() {
            let signature = format!("{outlined} void {function}({parameters})");
            let body = Body::new(&programs[index], &names, Purpose::Program, &none)?;
            function_text(&mut out, file, &title, &signature, &body)?;
            let as_reader = format!("reader{index}_{}", identifier(name));
            let title = format!("{name}, as long as it changes nothing that workers share.");
            let signature = format!("{linkage} int {as_reader}({parameters}{slot})");
            function_text(&mut out, file, &title, &signature, whole)?;
            reader = Some(as_reader);
        } else {
            let signature = format!("{linkage} void {function}({parameters}{slot})");
            function_text(&mut out, file, &title, &signature, whole)?;
        }
        let mut prefetch = None;
        if let Some(scout) = scout {
            let function = format!("scout{index}_{}", identifier(name));
            let signature =
                format!("static inline void {function}({parameters}, struct slot *slot)");
            let title = format!("{name} up to its first keyed operation: finds what to prefetch.");
            let body = match rest {
                None => Body::new(&scout.slice, &names, Purpose::Scout, &none)?,
                Some(rest) => {
                    let stack = &whole.stack;
                    Body::part(&scout.slice, &names, Purpose::Scout, &none, rest, stack)
                }
            };
            function_text(&mut out, file, &title, &signature, &body)?;
            prefetch = Some(Prefetch::of(scout, function));
        }
        let mut resume = None;
        if let (Some(scout), Some(rest)) = (scout, rest) {
            let function = format!("resume{index}_{}", identifier(name));
            let signature =
                format!("MR_INLINE {result} {function}({parameters}, const struct slot *slot)");
            let title = format!("{name} from its first keyed operation on.");
            let (sites, stack) = (&scout.sites, &whole.stack);
            let body = Body::part(&rest.slice, &names, Purpose::Program, sites, rest, stack)
                .reading(whole.reader);
            function_text(&mut out, file, &title, &signature, &body)?;
            resume = Some(function);
        }
        let shares = names.shares()
            && !takes_packets(entry.role)
            && lock::handler_shares(program, whole.slice.flow, sharing, name)?;
        entries.push(Entry {
            function,
            slotted: whole.slotted,
            role: entry.role,
            prefetch,
            resume,
            reader,
            shares,
        });
    }

    if tails {
        out.lines(&tail::dispatch(&entries, away));
    }
    let mut functions = Vec::new();
    for (index, timed) in checked.timers.iter().enumerate() {
        let name = program
            .functions
            .get(timed.function.0)
            .map_or("function", |f| f.name.as_str());
        let slice = Slice::whole(program, &timed.flow, false)?;
        let body = Body::new(&slice, &names, Purpose::Program, &none)?;
        let function = timers::function(index, name);
        let signature = format!(
            "static __attribute__((noinline)) void {function}(struct mr_instance *self, struct mr_packet *pkt)"
        );
        let of = program.objects.get(timed.object.0);
        let of = of.map_or("?", |o| o.name.as_str());
        let title = format!("{name}: timers in values of {of}");
        function_text(&mut out, file, &title, &signature, &body)?;
        functions.push((timed, function));
    }
    out.lines(&timers::firing(program, &names, &functions));
    out.lines(&module::lifetime(program, &names, random));
    let ageing = module::ageing(program, &names);
    out.lines(&ageing);
    let ageing_shared = lock::text::ageing(program, &names);
    out.lines(&ageing_shared);
    let mut begin = Vec::new();
    if redirects {
        begin.push("mr_packet_begin(packets[i]);");
    }
    if tails {
        begin.push(tail::BEGIN);
    }
    if !functions.is_empty() {
        begin.insert(0, timers::BEGIN);
    }
    for (index, entry) in entries.iter().filter(|e| takes_packets(e.role)).enumerate() {
        if names.shares() {
            out.lines(&lock::bursts(&lock::Burst {
                program,
                names: &names,
                index,
                entry,
                ages: (!ageing.is_empty(), !ageing_shared.is_empty()),
                begin: &begin,
                random,
                clock: program
                    .entries
                    .iter()
                    .zip(&checked.flows)
                    .any(|(_, flow)| lock::reads_clock(flow)),
            }));
            continue;
        }
        out.lines(&module::bursts(
            program,
            &names,
            index,
            entry,
            !ageing.is_empty(),
            &begin,
        ));
    }
    out.lines(&objects::control(program, &names));
    out.lines(&module::table(program, &names, &entries));
    Ok(out.finish())
}

/// Whether a program is small enough to be written more than once.
fn specialised(slice: &Slice) -> bool {
    slice.flow.steps.len() <= SPECIALISE_UP_TO
}

fn function_text(
    out: &mut Text,
    file: &str,
    title: &str,
    signature: &str,
    body: &Body,
) -> Result<(), Error> {
    out.blank();
    out.lines(&format!("/* {} */", text::comment_text(title)));
    out.lines(signature);
    out.lines("{");
    body.write(out, file)?;
    out.lines("}");
    Ok(())
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
    let mut out = String::from("#include \"alone.h\"\n");
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
    }
}
