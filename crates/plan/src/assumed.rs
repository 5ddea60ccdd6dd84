//! Assumptions of a plan that shards more with them: parameters as they are set, and steering that examines the
//! identifiers of ICMP echoes.

use std::collections::BTreeMap;

use millrace_model::Model;
use millrace_model::expr::given::{Facts, Given};
use millrace_model::expr::ids::IdMap;
use millrace_model::expr::support::Support;
use millrace_model::expr::{Arena, ExprId, SymId};
use millrace_model::model::Path;
use millrace_object::program::Program;

use crate::choose::{Choice, Draft, draft};
use crate::make::Carried;
use crate::plan::Assumption;
use crate::solved::Device;
use crate::touch::{Gathered, Held, Software, parameters};
use crate::treatments;
use millrace_steer::{Odd, Ports};

/// Differences of what programs and NICs read of packets, those that cost software least first.
const ODD: [(Ports, bool); 3] = [
    (Ports::Behind, false),
    (Ports::Fixed, true),
    (Ports::Behind, true),
];

/// Questions about one model: how much of it shards with this taken for given.
struct Asker<'a> {
    model: &'a mut Model,
    program: &'a Program,
    device: &'a Device<'a>,
    gathered: Gathered,
}

/// A choice, and more of it than a draft only where somebody asked for that.
enum Chosen {
    Draft(Box<Draft>),
    Settled(Box<Choice>),
}

impl Chosen {
    fn is_free(&self) -> bool {
        match self {
            Self::Draft(draft) => draft.is_free(),
            Self::Settled(choice) => choice.is_free(),
        }
    }
}

impl Asker<'_> {
    fn draft(&mut self, held: &Held, software: Software) -> Draft {
        let gathered = (&mut self.gathered, software);
        draft(self.model, self.program, self.device, held, gathered)
    }

    fn settle(&self, draft: Draft) -> Choice {
        draft.settle(self.model, self.program, self.device)
    }

    fn choose(&mut self, held: &Held, software: Software) -> Choice {
        let draft = self.draft(held, software);
        self.settle(draft)
    }

    fn settled(&self, chosen: Chosen) -> Choice {
        match chosen {
            Chosen::Draft(draft) => self.settle(*draft),
            Chosen::Settled(choice) => *choice,
        }
    }

    /// With software that looks at more where it asks for that.
    fn best(&mut self, held: &Held) -> Chosen {
        let chosen = self.with_echoes(held);
        if let Chosen::Draft(draft) = &chosen
            && !draft.may_want_odd()
            && !treatments::any_weak()
        {
            return chosen;
        }
        let mut best = self.settled(chosen);
        for (ports, every) in ODD {
            if !best.wants_odd {
                break;
            }
            let odd = Software {
                echoes: false,
                odd: Some(Odd { ports, every }),
            };
            let read = self.choose(held, odd);
            if read.rank() < best.rank() && read.carried() >= best.carried() {
                best = read;
            }
        }
        Chosen::Settled(Box::new(best))
    }

    /// With echoes looked for where an object asks for that.
    fn with_echoes(&mut self, held: &Held) -> Chosen {
        let echoes = Software {
            echoes: true,
            odd: None,
        };
        // Numbers that echoes carry are an allocator's. Where looking for them pays at all, that is known at once, and
        // what a plan without it would be need not be asked.
        let first = self.program.objects.iter().any(|o| o.kind.leases());
        let looked = first.then(|| self.draft(held, echoes));
        if let Some(looked) = looked.filter(|l| l.beside.by_echoes) {
            return Chosen::Draft(Box::new(looked));
        }
        let plain = self.draft(held, Software::default());
        if !plain.beside.wants_echoes {
            return Chosen::Draft(Box::new(plain));
        }
        let (plain, looked) = (self.settle(plain), self.choose(held, echoes));
        let better = looked.is_better(&plain);
        Chosen::Settled(Box::new(if better { looked } else { plain }))
    }
}

/// Decides with the parameters as they are where that shards more, else whatever they are. Of parameters it takes one
/// for given if that does.
pub(crate) fn decided(
    model: &mut Model,
    program: &Program,
    device: &Device<'_>,
) -> (Choice, Vec<Assumption>) {
    let mut asker = Asker {
        model,
        program,
        device,
        gathered: Gathered::default(),
    };
    let found = assumed(&mut asker);
    let preferred = device.carried.get();
    if found.0.is_free() || !found.0.homing || preferred == Carried::Compared {
        return found;
    }
    // Numbers that come home stood in the way of other objects: by the fields that are compared all may fit.
    device.carried.set(Carried::Compared);
    let other = assumed(&mut asker);
    device.carried.set(preferred);
    if other.0.barred() < found.0.barred() {
        other
    } else {
        found
    }
}

/// The same, by the rule that is preferred for leased numbers.
fn assumed(asker: &mut Asker<'_>) -> (Choice, Vec<Assumption>) {
    let all_paths = asker.model.covers();
    let program = asker.program;
    let any = asker.best(&Held::default());
    if any.is_free() || !all_paths {
        return (asker.settled(any), Vec::new());
    }
    let values = values(program);
    // What is turned off is the likeliest to stand in the way.
    let mut order: Vec<(&String, u64)> = values.iter().map(|(n, v)| (n, *v)).collect();
    order.sort_by_key(|(_, value)| *value != 0);
    let mut order = order.into_iter();
    let mut next = |asker: &mut Asker<'_>| {
        order.find_map(|(name, value)| {
            let one = BTreeMap::from([(name.clone(), value)]);
            let alone = held(asker.model, &one);
            alone.says().then_some((alone, one))
        })
    };
    let mut single = next(asker);
    let mut tried = None;
    if let Some((alone, one)) = &single {
        let chosen = asker.best(alone);
        let free = chosen.is_free();
        let choice = asker.settled(chosen);
        // None can be better.
        if free {
            return (choice, assumptions(one.clone()));
        }
        tried = Some(choice);
    }
    let any = asker.settled(any);
    let all = held(asker.model, &values);
    if !all.says() {
        return (any, Vec::new());
    }
    let set = asker.best(&all);
    let set = asker.settled(set);
    if set.barred() >= any.barred() {
        return (any, Vec::new());
    }
    while let Some((alone, one)) = single {
        // What looks at more has no need of a plan that does not.
        let tried = tried.take();
        let choice = tried.unwrap_or_else(|| asker.choose(&alone, set.software));
        if choice.barred() <= set.barred() {
            return (choice, assumptions(one));
        }
        single = next(asker);
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

/// These values of parameters, and the paths that they exclude.
fn held(model: &mut Model, values: &BTreeMap<String, u64>) -> Held {
    let mut out = Held {
        values: values.clone(),
        ..Held::default()
    };
    for (entry, e) in model.entries.iter_mut().enumerate() {
        let symbols = parameters(&e.arena, values);
        if symbols.is_empty() {
            continue;
        }
        let mut given = Given::new(Facts {
            symbols: symbols.clone(),
            ..Facts::default()
        });
        // Guards are made of the same conditions: whether each falls, and whether it says something else then.
        let mut falls: IdMap<ExprId, (bool, bool)> = IdMap::default();
        for (path, p) in e.paths.iter().enumerate() {
            let arena = &mut e.arena;
            let mut fall = |condition: &ExprId| {
                *falls.entry(*condition).or_insert_with(|| {
                    let made = given.of(arena, &[*condition]);
                    let made = made.first().copied().unwrap_or(*condition);
                    let known = arena.constant(made);
                    (known == Some(0), known.is_none() && made != *condition)
                })
            };
            if p.guard.iter().any(|c| fall(c).0) {
                out.excluded.insert((entry, path));
                continue;
            }
            out.in_keys =
                out.in_keys || p.guard.iter().any(|c| fall(c).1) || speaks(&e.arena, p, &symbols);
        }
    }
    out
}

/// Whether a key of a path is made of any of these symbols.
fn speaks(arena: &Arena, path: &Path, symbols: &BTreeMap<SymId, u64>) -> bool {
    let told = symbols.keys().map(|s| Support::symbol(*s));
    let told = told.fold(Support::default(), Support::or);
    let mut keys = path.accesses.iter().flat_map(|a| &a.key);
    keys.any(|e| arena.support(*e).meets(told))
}
