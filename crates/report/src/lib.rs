//! A [`Model`] for people and for machines: one [`Report`], and a file for each form that it is printed in.
//!
//! Everything here is wording: paths, guards and uses of objects are the model's, and nothing else is decided by a text.

mod access;
pub mod along;
mod at_most;
mod document;
pub mod dot;
pub mod html;
pub mod layout;
pub mod names;
pub mod relation;
mod rewrite;
mod share;
pub mod text;
pub mod tree;
mod verdict;
pub mod words;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use millrace_model::exec::Target;
use millrace_model::expr::walk::cone;
use millrace_model::expr::{Arena, ExprId, Node, Origin};
use millrace_model::model::{Entry, Model, Outcome, Path, Use, Verdict};
use millrace_object::program::{Program, Role};
use millrace_object::types::EntryTypes;

use crate::layout::Layout;
use crate::names::Names;
use crate::words::{Keys, Letters, Memory, Printer};
use access::Summaries;

pub use access::place;
pub use document::{AccessReport, AtMost, ObjectReport, PathReport, Report, Rewrite, Summary};
pub use millrace_object::program::clean;

/// Names, letters and results that all words of a report share.
pub(crate) struct Context<'a> {
    pub(crate) program: &'a Program,
    pub(crate) names: Names,
    pub(crate) letters: Letters,
    pub(crate) memory: Memory,
    /// objects that packets write, other than by adding
    pub(crate) written: BTreeSet<usize>,
    /// conditions in words, by what was asked
    said: RefCell<HashMap<Asked, Vec<(Keys, Said)>>>,
}

/// An arena, the conditions before, and those that are put into words.
type Asked = (u64, Vec<ExprId>, Vec<ExprId>);

/// The words, if there is something to say, and what tells them from those of others that read alike.
type Said = (Option<String>, u64);

impl Context<'_> {
    pub(crate) fn printer<'b>(
        &'b self,
        arena: &'b Arena,
        layout: &'b Layout,
        keys: &'b Keys,
    ) -> Printer<'b> {
        Printer {
            arena,
            layout,
            names: &self.names,
            keys,
            letters: &self.letters,
            memory: &self.memory,
            depth: 0,
        }
    }

    /// The key by which a path first asked for each entry.
    pub(crate) fn keys(&self, path: &Path) -> Keys {
        let mut keys = Keys::new();
        for a in path.accesses.iter().filter(|a| !a.key.is_empty()) {
            keys.entry((a.object.0, a.entry))
                .or_insert_with(|| a.key.clone());
        }
        keys
    }
}

/// The guards of a program's paths in words, path by path. Results that paths share are computed once.
pub struct Guards<'a>(Context<'a>);

impl<'a> Guards<'a> {
    /// Of this program.
    #[must_use]
    pub fn new(program: &'a Program) -> Self {
        Self(Context {
            program,
            names: Names::of(program, &BTreeMap::new()),
            letters: Letters::default(),
            written: BTreeSet::new(),
            memory: Memory::default(),
            said: RefCell::default(),
        })
    }

    /// The conditions of a path.
    #[must_use]
    pub fn of(&self, entry: &Entry, path: &Path) -> Vec<String> {
        let layout = Layout::of(&entry.arena, &path.guard, &self.0.memory);
        let keys = self.0.keys(path);
        // Letters for long keys begin anew, as the text stands alone.
        let letters = Letters::default();
        let printer = Printer {
            letters: &letters,
            ..self.0.printer(&entry.arena, &layout, &keys)
        };
        path.guard.iter().map(|e| printer.text(*e)).collect()
    }
}

/// A list in words: `a`, `a and b`, `a, b and c`.
#[must_use]
pub fn listed(all: &[String]) -> String {
    match all {
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
        [] => String::new(),
    }
}

/// The event that runs an entry, in words.
fn role(role: Role) -> String {
    match role {
        Role::Xdp | Role::OnPacket => "a packet".to_owned(),
        Role::OnStart => "at start".to_owned(),
        Role::OnStop => "at stop".to_owned(),
        Role::Every { period } => format!("every {} ms", period as f64 / 1e6),
        Role::Timer => "a timer".to_owned(),
        Role::Expiry => "an entry that expires".to_owned(),
    }
}

/// Whether a condition is about port, state or settings.
fn state_condition(arena: &Arena, e: ExprId) -> bool {
    cone(arena, &[e], |_| false).into_iter().any(|id| {
        matches!(arena.node(id), Node::Sym(s) if matches!(
            arena.symbol(*s).origin,
            Origin::State(_) | Origin::Port | Origin::Param
        ))
    })
}

/// Inputs of a path beside its packet.
struct Dependences {
    time: bool,
    random: bool,
    order: bool,
}

fn dependences(context: &Context<'_>, entry: &Entry, path: &Path) -> Dependences {
    let a = &entry.arena;
    let verdict = match path.verdict {
        Verdict::Number(e) | Verdict::GoesOn(_, e) => Some(e),
        Verdict::None | Verdict::Onward(_) => None,
    };
    let target: Vec<ExprId> = match &path.target {
        Some(Target::Interface(e)) => vec![*e],
        Some(Target::Entry(_, key)) => key.clone(),
        Some(Target::All(_)) | None => Vec::new(),
    };
    let accesses = path.accesses.iter();
    let all: Vec<ExprId> = path
        .guard
        .iter()
        .copied()
        .chain(path.rewrites.iter().map(|w| w.byte))
        .chain(accesses.flat_map(|a| a.key.iter().chain(&a.value).copied()))
        .chain(verdict)
        .chain(target)
        .collect();
    let origins: Vec<Origin> = cone(a, &all, |_| false)
        .into_iter()
        .filter_map(|e| match a.node(e) {
            Node::Sym(s) => Some(a.symbol(*s).origin),
            _ => None,
        })
        .collect();
    let expires = path.accesses.iter().any(|a| {
        let object = context.program.objects.get(a.object.0);
        object.is_some_and(|o| o.expire_after > 0 || o.window > 0)
    });
    let of_others = |o: &Origin| matches!(o, Origin::State(id) if context.written.contains(id));
    // The result of a loop depends on the inputs of every iteration.
    let drawn = |origin: Origin| {
        let turns = origins.contains(&Origin::Turn);
        origins.contains(&origin) || (turns && a.has_symbols_of(origin))
    };
    let turns = path.accesses.iter().filter(|a| a.repeated);
    let mut turns = turns.map(|a| Origin::State(a.object.0));
    Dependences {
        time: expires || drawn(Origin::Time),
        random: drawn(Origin::Random),
        order: origins.iter().any(of_others) || turns.any(|o| of_others(&o)),
    }
}

/// Puts a model into words. `types` says what the author's keys and values are made of, by the name of
/// the object; without it they are bytes.
#[must_use]
pub fn report(model: &Model, program: &Program, types: &BTreeMap<String, EntryTypes>) -> Report {
    let written = model.objects.iter().filter(|o| o.usage == Use::ReadWrite);
    let context = Context {
        program,
        names: Names::of(program, types),
        letters: Letters::default(),
        memory: Memory::default(),
        written: written.map(|o| o.id.0).collect(),
        said: RefCell::default(),
    };
    let relations = relation::all(&context, model);
    let mut paths = Vec::new();
    let mut keys: BTreeSet<(usize, String)> = BTreeSet::new();
    let mut summaries = Summaries::new();
    let mut trees = Vec::new();
    let (mut covering, mut bounded) = (Vec::new(), Vec::new());
    let mut took = BTreeMap::new();
    for (number, entry) in model.entries.iter().enumerate() {
        match &entry.outcome {
            Outcome::Exhaustive => {}
            Outcome::Covering { why } => covering.push(format!("{}: {why}", entry.function)),
            Outcome::Bounded { why } => bounded.push(format!("{}: {why}", entry.function)),
        }
        took.insert(entry.function.clone(), entry.took);
        trees.extend(tree::trees(&context, entry));
        for (i, path) in entry.paths.iter().enumerate() {
            summaries.add(&context, (number, entry), (i, path));
            paths.push(one(&context, entry, path, &mut keys));
        }
    }
    let objects = model.objects.iter().filter_map(|o| {
        let declared = program.objects.get(o.id.0)?;
        let letters = context.letters.of(o.id.0);
        // As their letters come, then the short ones.
        let mut of: Vec<String> = keys
            .iter()
            .filter(|k| k.0 == o.id.0)
            .map(|k| k.1.clone())
            .collect();
        let letter = |key: &String| letters.iter().position(|l| l.1 == *key);
        of.sort_by_key(|k| letter(k).unwrap_or(usize::MAX));
        Some(ObjectReport {
            name: declared.name.clone(),
            kind: declared.kind,
            capacity: declared.capacity,
            expire_after: declared.expire_after,
            access: o.usage,
            approximate: o.approximate,
            keys: of,
            letters: letters.into_iter().collect(),
            accesses: summaries.of(&context, o.id.0),
            at_most: if o.approximate {
                at_most::of(&context, model, o.id)
            } else {
                Vec::new()
            },
        })
    });
    Report {
        name: model.name.clone(),
        exhaustive: model.exhaustive(),
        covers: model.covers(),
        covering,
        bounded,
        objects: objects.collect(),
        relations,
        paths,
        took,
        trees,
    }
}

fn one(
    context: &Context<'_>,
    entry: &Entry,
    path: &Path,
    seen: &mut BTreeSet<(usize, String)>,
) -> PathReport {
    let layout = Layout::of(&entry.arena, &path.guard, &context.memory);
    let keys = context.keys(path);
    let printer = context.printer(&entry.arena, &layout, &keys);
    for a in path.accesses.iter().filter(|a| !a.key.is_empty()) {
        let text = printer.key_parts(a.object.0, &a.key).join(" ++ ");
        seen.insert((a.object.0, text));
    }
    let guard = path.guard.iter().enumerate().filter_map(|(i, e)| {
        let before = path.guard.get(..i).unwrap_or(&[]);
        context.condition(entry, before, &[*e], &keys).0
    });
    let behind = (path.segment > 0).then(|| format!("behind cut {}", path.segment));
    let on = dependences(context, entry, path);
    PathReport {
        entry: entry.function.clone(),
        guard: behind.into_iter().chain(guard).collect(),
        accesses: path
            .accesses
            .iter()
            .map(|a| access::one(&printer, a))
            .collect(),
        rewrites: rewrite::rewrites(&printer, &path.rewrites).0,
        verdict: verdict::verdict(&printer, path, context.program, entry.role),
        time: on.time,
        random: on.random,
        order: on.order,
        undecided: path.undecided,
    }
}
