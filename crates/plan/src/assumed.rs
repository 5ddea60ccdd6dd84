//! What a plan takes for given, where it shards more that way: parameters as they are set, and that whoever steers
//! looks for the identifiers of ICMP echoes.

use std::collections::{BTreeMap, BTreeSet};

use millrace_model::Model;
use millrace_model::expr::given::{Facts, Given};
use millrace_model::expr::ids::IdMap;
use millrace_model::expr::{Arena, ExprId, Node, Origin};
use millrace_object::program::Program;

use crate::choose::{Choice, choose};
use crate::plan::Assumption;
use crate::solved::Device;
use crate::touch::Gathered;

/// Paths of a model's entries.
type Paths = BTreeSet<(usize, usize)>;

/// What is asked about one model: how much of it shards if this is excluded, and echoes are looked for.
struct Asker<'a> {
    model: &'a mut Model,
    program: &'a Program,
    device: &'a Device<'a>,
    gathered: Gathered,
}

impl Asker<'_> {
    fn choose(&mut self, excluded: &Paths, echoes: bool) -> Choice {
        let gathered = (&mut self.gathered, echoes);
        choose(self.model, self.program, self.device, excluded, gathered)
    }

    /// With echoes looked for where it asks for that.
    fn best(&mut self, excluded: &Paths) -> Choice {
        let plain = self.choose(excluded, false);
        if !plain.wants_echoes {
            return plain;
        }
        let looked = self.choose(excluded, true);
        if looked.locked() < plain.locked() {
            looked
        } else {
            plain
        }
    }
}

/// Decides with the parameters as they are where that shards more, else whatever they are. Of parameters it takes one
/// for given if that does.
pub(crate) fn decided(
    model: &mut Model,
    program: &Program,
    device: &Device<'_>,
) -> (Choice, Vec<Assumption>) {
    let all_paths = model.covers();
    let mut asker = Asker {
        model,
        program,
        device,
        gathered: Gathered::default(),
    };
    let any = asker.best(&Paths::new());
    if any.locked() == 0 || !all_paths {
        return (any, Vec::new());
    }
    let values = values(program);
    let all = excluded(asker.model, &values);
    if all.is_empty() {
        return (any, Vec::new());
    }
    let set = asker.best(&all);
    if set.locked() >= any.locked() {
        return (any, Vec::new());
    }
    for (name, value) in &values {
        let one = BTreeMap::from([(name.clone(), *value)]);
        let alone = excluded(asker.model, &one);
        if alone.is_empty() {
            continue;
        }
        // What looks for echoes has no need of a plan that does not.
        let choice = asker.choose(&alone, set.echoes);
        if choice.locked() <= set.locked() {
            return (choice, assumptions(one));
        }
    }
    (set, assumptions(values))
}

fn assumptions(held: BTreeMap<String, u64>) -> Vec<Assumption> {
    let of = |(parameter, value)| Assumption {
        parameter,
        value,
        because: "with other values packets reach state that this steering does not bring them to"
            .to_owned(),
    };
    held.into_iter().map(of).collect()
}

/// The parameters as they are set.
fn values(program: &Program) -> BTreeMap<String, u64> {
    let value = |p: &millrace_object::program::Param| {
        let initial = program.objects.get(p.object.0)?.initial.as_ref();
        let at = p.offset as usize;
        let bytes = initial.and_then(|i| i.get(at..at + p.bytes as usize));
        let number = |b: &[u8]| b.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
        Some((p.name.clone(), bytes.map_or(0, number)))
    };
    program.params.iter().filter_map(value).collect()
}

/// Paths that these values of parameters exclude.
fn excluded(model: &mut Model, values: &BTreeMap<String, u64>) -> Paths {
    let mut out = Paths::new();
    for (entry, e) in model.entries.iter_mut().enumerate() {
        let symbols = (0..e.arena.len()).filter_map(|at| parameter(&e.arena, at, values));
        let symbols: BTreeMap<_, _> = symbols.collect();
        if symbols.is_empty() {
            continue;
        }
        let mut given = Given::new(Facts {
            symbols,
            ..Facts::default()
        });
        // Guards are made of the same conditions.
        let mut falls: IdMap<ExprId, bool> = IdMap::default();
        for (path, p) in e.paths.iter().enumerate() {
            let arena = &mut e.arena;
            let mut fall = |condition: &ExprId| {
                *falls.entry(*condition).or_insert_with(|| {
                    let made = given.of(arena, &[*condition]);
                    made.iter().any(|g| arena.constant(*g) == Some(0))
                })
            };
            if p.guard.iter().any(&mut fall) {
                out.insert((entry, path));
            }
        }
    }
    out
}

/// The symbol of a parameter that an expression is, with its value.
fn parameter(
    arena: &Arena,
    at: usize,
    values: &BTreeMap<String, u64>,
) -> Option<(millrace_model::expr::SymId, u64)> {
    let Node::Sym(s) = *arena.node(ExprId(at as u32)) else {
        return None;
    };
    let symbol = arena.symbol(s);
    let value = values.get(&symbol.name)?;
    (symbol.origin == Origin::Param).then_some((s, *value))
}
