//! The C functions of each entry: its bodies, its prefetch pass, and the rest of the program behind that.

use std::collections::BTreeMap;

use millrace_object::insn::Insn;
use millrace_object::program;

use super::body::{Body, Purpose, TakesUp};
use super::gate::{self, Prefetch};
use super::later::Later;
use super::module::{Entry, takes_packets};
use super::prefetch::{self, PrefetchPass};
use super::resume::Resume;
use super::slice::Slice;
use super::stack::Stack;
use super::text::{self, Text, identifier};
use super::unit::Unit;
use super::{describe_role, key, later, straight, tail};
use crate::error::Error;
use crate::sync::Bodies;

/// Above this many steps a program is emitted once, for both passes, and not twice, specialised:
/// the instruction cache is worth more than a branch saved. Of linked programs it is so many for each element, as each alone
/// would have: a packet runs through no more of it than of them.
const SPECIALISE_UP_TO: usize = 3000;

/// Elements of a linked program that are counted for that: clang's time grows with them.
const MOST_SPECIALISED: usize = 5;

/// Function of what seldom runs, or is too large to be written twice.
pub const OUTLINED: &str = "static __attribute__((noinline))";

/// Parameters of each function of a program.
pub const PARAMETERS: &str = "struct mr_instance *self, struct mr_packet *pkt";

/// What of an entry is written.
struct Parts<'a> {
    /// all its steps
    whole: &'a Slice<'a>,
    bodies: Bodies<'a>,
    /// the steps of the body that packets run first
    first: Slice<'a>,
}

/// Writes the functions of all entries.
pub fn write<'a>(
    out: &mut Text,
    unit: &'a Unit<'a>,
    wholes: &'a [Slice<'a>],
    file: &str,
) -> Result<Vec<Entry>, Error> {
    let parts: Vec<Parts> = (wholes.iter().enumerate())
        .map(|(entry, whole)| {
            let bodies = unit.treatment.bodies(entry);
            let first = match bodies.first.attempt() {
                Some(_) => whole.stopping(|id| bodies.first.leaves(id)),
                None => whole.clone(),
            };
            Parts {
                whole,
                bodies,
                first,
            }
        })
        .collect();
    let ahead = |(entry, parts): (&program::Entry, &Parts<'_>)| {
        takes_packets(entry.role) && parts.bodies.hot
    };
    let single = |parts: &Parts<'a>| (prefetch::pass(&parts.first), None);
    let mut passes: Vec<(Option<PrefetchPass>, Option<PrefetchPass>)> =
        (unit.program.entries.iter().zip(&parts))
            .map(|both| match (ahead(both), both.1) {
                (false, _) => (None, None),
                (true, parts) if !specialised(&parts.first) => single(parts),
                (true, parts) => match prefetch::staged(&parts.first) {
                    Some(staged) => (Some(staged.second), Some(staged.first)),
                    None => single(parts),
                },
            })
            .collect();
    // Behind two passes the rest must be taken up where the second ends.
    for (parts, passes) in parts.iter().zip(&mut passes) {
        if let (Some(second), Some(first)) = passes {
            let whole = Body::new(&parts.first, unit, Purpose::Program, &first.sites)?
                .hooked(parts.bodies.first)?;
            if Resume::of(&parts.first, second, &whole.stack, &whole.demand).is_none() {
                *passes = single(parts);
            }
        }
    }
    let (passes, earlier): (Vec<_>, Vec<_>) = passes.into_iter().unzip();
    let none = BTreeMap::new();
    let mut firsts: Vec<Body> = (parts.iter().zip(passes.iter().zip(&earlier)))
        .map(|(parts, (pass, earlier))| {
            let own = parts.bodies.sites.unwrap_or(&none);
            let pass = earlier.as_ref().or(pass.as_ref());
            let sites = pass.map_or(own, |s| &s.sites);
            let body = Body::new(&parts.first, unit, Purpose::Program, sites)?;
            body.hooked(parts.bodies.first)
        })
        .collect::<Result<_, Error>>()?;
    let rests: Vec<Option<Resume>> = (parts.iter().zip(&passes).zip(&firsts))
        .map(|((parts, pass), first)| {
            let pass = pass.as_ref().filter(|_| specialised(&parts.first))?;
            Resume::of(&parts.first, pass, &first.stack, &first.demand)
        })
        .collect();
    for (first, (rest, earlier)) in firsts.iter_mut().zip(rests.iter().zip(&earlier)) {
        first.slotted &= rest.is_none() || earlier.is_some();
    }
    // What elements behind the first of a linked program look up, where the program goes on from its prefetch pass.
    let laters: Vec<Option<Later>> = (wholes.iter().zip(&rests))
        .map(|(whole, rest)| {
            rest.as_ref()?;
            later::of(unit.program, whole.flow)
        })
        .collect();
    let behind: Vec<Option<Behind>> = (laters.iter())
        .map(|later| match later {
            Some(later) => Behind::of(later, unit),
            None => Ok(None),
        })
        .collect::<Result<_, Error>>()?;
    let sites = passes
        .iter()
        .chain(&earlier)
        .flatten()
        .chain(behind.iter().flatten().map(|b| &b.pass))
        .flat_map(|s| &s.objects);
    let words = sites.map(|o| key::words(&unit.program.objects[o.0]));
    if let Some(words) = words.max() {
        let behind = behind.iter().flatten().filter_map(|b| b.rest.as_ref());
        out.lines(&gate::slot(words, rests.iter().flatten().chain(behind)));
    }
    if unit.tails {
        out.lines(tail::DECLARATION);
    }
    let all = parts
        .iter()
        .zip(&firsts)
        .zip(passes.iter().zip(&rests).zip(earlier.iter().zip(&behind)));
    let entry = |(index, ((parts, first), ((pass, rest), (earlier, later))))| {
        let ahead = (pass as &Option<_>).as_ref().map(|pass| Ahead {
            pass,
            rest: (rest as &Option<_>).as_ref(),
            earlier: (earlier as &Option<_>).as_ref(),
            later: (later as &Option<_>).as_ref(),
        });
        entry(out, (unit, file), index, (parts, first), ahead)
    };
    all.enumerate().map(entry).collect()
}

/// What runs ahead of an entry's packets.
#[derive(Clone, Copy)]
struct Ahead<'p, 'a> {
    /// the pass that ends where the rest begins
    pass: &'p PrefetchPass<'a>,
    rest: Option<&'p Resume<'a>>,
    /// the pass before it, whose answers are found at once
    earlier: Option<&'p PrefetchPass<'a>>,
    /// the pass of what is linked behind the first element
    later: Option<&'p Behind<'p>>,
}

/// What runs ahead for elements behind the first of a linked program.
struct Behind<'l> {
    later: &'l Later,
    pass: PrefetchPass<'l>,
    stack: Stack,
    /// from there on, where a packet may go on from what the pass found
    rest: Option<Resume<'l>>,
}

impl<'l> Behind<'l> {
    /// None where they look nothing up.
    fn of(later: &'l Later, unit: &Unit) -> Result<Option<Self>, Error> {
        let Some(flow) = later.checked.flows.first() else {
            return Ok(None);
        };
        let whole = Slice::whole(&later.program, flow, true)?;
        let Some(pass) = prefetch::pass(&whole) else {
            return Ok(None);
        };
        let body = Body::new(&whole, unit, Purpose::Program, &pass.sites)?;
        let rest = match unit.treatment.takes_up() && !later.within(&pass.sites).is_empty() {
            true => Resume::of(&whole, &pass, &body.stack, &body.demand),
            false => None,
        };
        let stack = body.stack;
        Ok(Some(Self {
            later,
            pass,
            stack,
            rest,
        }))
    }
}

/// Writes those of one, whose packets may have what the prefetch pass found.
fn entry(
    out: &mut Text,
    (unit, file): (&Unit, &str),
    index: usize,
    (parts, first): (&Parts, &Body),
    ahead: Option<Ahead<'_, '_>>,
) -> Result<Entry, Error> {
    let none = BTreeMap::new();
    let declared = &unit.program.entries[index];
    let name = name(unit.program, declared.function);
    let title = format!("{name}: {}", describe_role(declared.role));
    let called = |what: &str| format!("{what}{index}_{}", identifier(name));
    let slot = match first.slotted {
        true => ", const struct slot *slot",
        false => "",
    };
    let linkage = match specialised(&parts.first) && parts.bodies.hot {
        true => "MR_INLINE",
        false => OUTLINED,
    };
    let function = called("run");
    let mut attempt = None;
    let result = if first.attempt.is_some() {
        "int"
    } else {
        "void"
    };
    if let (Some(how), Some(hooks)) = (first.attempt, parts.bodies.fallback) {
        let signature = format!("{OUTLINED} void {function}({PARAMETERS})");
        let body = Body::new(parts.whole, unit, Purpose::Program, &none)?.hooked(hooks)?;
        function_text(out, file, &title, &signature, &body)?;
        let function = called(how.prefix);
        let signature = format!("{linkage} int {function}({PARAMETERS}{slot})");
        let title = format!("{name}{}", how.title);
        function_text(out, file, &title, &signature, first)?;
        attempt = Some(function);
    } else {
        let signature = format!("{linkage} void {function}({PARAMETERS}{slot})");
        function_text(out, file, &title, &signature, first)?;
    }
    let (mut prefetch, mut resume, mut takes) = (None, None, false);
    if let Some(Ahead {
        pass,
        rest,
        earlier,
        later,
    }) = ahead
    {
        let mut before = None;
        let mut behind = None;
        let mut takes_up = None;
        let mut second = None;
        if let Some(later) = later {
            let function = called("later");
            let signature =
                format!("static inline void {function}({PARAMETERS}, struct slot *slot)");
            let title = format!("{name} without its first elements: finds what to prefetch.");
            let (pass, stack) = (&later.pass, &later.stack);
            let body = match &later.rest {
                None => Body::new(&pass.slice, unit, Purpose::Prefetch, &none)?,
                Some(rest) => Body::part(&pass.slice, unit, Purpose::Prefetch, &none, rest, stack),
            };
            function_text(out, file, &title, &signature, &body)?;
            second = Some(body);
            behind = Some(Prefetch::of(pass, function));
            if let Some(rest) = &later.rest {
                let function = called("go_on");
                let signature =
                    format!("MR_INLINE void {function}({PARAMETERS}, const struct slot *slot)");
                let title = format!("{name} from the first keyed operation of a later element on.");
                let body = Body::part(
                    &rest.slice,
                    unit,
                    Purpose::Program,
                    &pass.sites,
                    rest,
                    stack,
                );
                function_text(out, file, &title, &signature, &body)?;
                takes_up = Some(TakesUp {
                    function,
                    sites: later.later.within(&pass.sites),
                });
            }
        }
        if let Some(earlier) = earlier {
            let function = called("classify");
            let signature =
                format!("static inline void {function}({PARAMETERS}, struct slot *slot)");
            let title =
                format!("{name} up to the first operation whose answers a batch gets at once.");
            let body = Body::new(&earlier.slice, unit, Purpose::Prefetch, &none)?;
            function_text(out, file, &title, &signature, &body)?;
            before = Some(Prefetch::of(earlier, function));
        }
        let function = called("prefetch");
        let (parameter, what) = match earlier {
            None => ("", "its first keyed operation"),
            Some(_) => (", const struct slot *early", "its next keyed operation"),
        };
        let signature =
            format!("static inline void {function}({PARAMETERS}, struct slot *slot{parameter})");
        let title = format!("{name} up to {what}: finds what to prefetch.");
        let sites = earlier.map_or(&none, |e| &e.sites);
        let body = match rest {
            None => Body::new(&pass.slice, unit, Purpose::Prefetch, &none)?,
            Some(rest) => {
                let stack = &first.stack;
                Body::part(&pass.slice, unit, Purpose::Prefetch, sites, rest, stack)
            }
        };
        function_text(out, file, &title, &signature, &body)?;
        let mut in_front = None;
        if let (Some(second), None) = (&second, earlier) {
            let function = called("straight");
            let names = (function.as_str(), name);
            in_front = straight::write(out, file, names, &body, second)?.then_some(function);
        }
        prefetch = Some(Prefetch {
            straight: in_front,
            before: before.map(Box::new),
            later: behind.map(Box::new),
            ..Prefetch::of(pass, function)
        });
        if let Some(rest) = rest {
            let function = called("resume");
            let second = match takes_up {
                Some(_) => ", const struct slot *later",
                None => "",
            };
            let signature = format!(
                "MR_INLINE {result} {function}({PARAMETERS}, const struct slot *slot{second})"
            );
            let title = format!("{name} from {what} on.");
            let (sites, stack) = (&pass.sites, &first.stack);
            let mut body = Body::part(&rest.slice, unit, Purpose::Program, sites, rest, stack)
                .hooked(parts.bodies.first)?;
            body.takes_up = takes_up.as_ref();
            function_text(out, file, &title, &signature, &body)?;
            resume = Some(function);
            takes = takes_up.is_some();
        }
    }
    Ok(Entry {
        function,
        slotted: first.slotted,
        role: declared.role,
        prefetch,
        resume,
        takes_up: takes,
        attempt,
        once: unit.treatment.once(index),
    })
}

/// The name of a function of the program.
pub fn name(program: &program::Program, function: program::FunctionId) -> &str {
    let function = program.functions.get(function.0);
    function.map_or("function", |f| f.name.as_str())
}

/// Whether a program is small enough to be written more than once.
fn specialised(slice: &Slice) -> bool {
    slice.flow.steps.len() <= SPECIALISE_UP_TO * elements(slice.program).min(MOST_SPECIALISED)
}

/// How many elements were linked: the packet handler calls each once for each of its two ports; 1 of a program that was not.
fn elements(program: &program::Program) -> usize {
    let entries = program.entries.iter().filter(|e| takes_packets(e.role));
    let handlers = entries.filter_map(|e| program.functions.get(e.function.0));
    let linked = handlers.filter(|f| f.section == program::LINKED);
    let calls = linked.flat_map(|f| &f.insns);
    let calls = calls.filter(|i| matches!(i, Insn::CallLocal { .. }));
    calls.count().div_ceil(2).max(1)
}

/// Writes one function.
pub fn function_text(
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
