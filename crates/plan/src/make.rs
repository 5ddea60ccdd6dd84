//! From a model to a plan.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use millrace_check::Budget;
use millrace_history::History;
use millrace_model::{Limits, Model};
use millrace_object::program::Program;
use millrace_steer::Ports;
use millrace_steer::keys::Unsolved;
use millrace_steer::nic::{NicError, named};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::assumed::decided;
use crate::choose::Choice;
use crate::computed::Computed;
use crate::constraints::Cases;
use crate::degenerate::{Sets, degenerate, sets};
use crate::expiring;
use crate::plan::{
    By, CarriedPlan, Grounds, Guess, HomePlan, KindPlan, ObjectPlan, Plan, PortPlan, SetPlan,
};
use crate::relaxed::relaxations;
use crate::rules::homing::Home;
use crate::solved::{Device, Solved, is_six, slot, why};
use crate::treatments::asked_for;
use crate::words;
use millrace_place::{Strategy, Treatment};

/// The input of a plan.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// cores, at least 1
    pub cores: u32,
    /// the NIC's model, as in crates/steer/nics
    pub nic: String,
    /// how the whole shall run, where that is given
    pub strategy: Option<Strategy>,
    /// which rule is tried first for leased numbers that packets carry
    pub carried: Carried,
    /// most time for all questions about keys that are computed
    pub solver_time: Duration,
    /// another solver for them than ours: the command of Z3
    pub solver: Option<PathBuf>,
    /// what of a packet reaches state; without it nothing is replicated
    pub history: Option<Arc<History>>,
    /// what is left of the object's time and memory; none: [`Budget::default`] begins with the plan
    pub budget: Option<Budget>,
}

/// How packets that carry a leased number find their entry where two rules serve. The other one is tried where the
/// first does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Carried {
    /// by the number, R6: spread by the program itself, whatever the traffic
    #[default]
    Home,
    /// by the fields that the author compares, R5: for traces in which these are spread better
    Compared,
}

/// Default limit of questions about computed keys.
pub const SOLVER_TIME: Duration = Duration::from_secs(2);

impl Default for Wanted {
    fn default() -> Self {
        Self {
            cores: 1,
            nic: "generic".to_owned(),
            strategy: None,
            carried: Carried::default(),
            solver_time: SOLVER_TIME,
            solver: None,
            history: None,
            budget: None,
        }
    }
}

/// Obstacles to any plan.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlanError {
    /// No model of this NIC.
    #[error(transparent)]
    Nic(#[from] NicError),
    /// More cores than the NIC has queues, or its table entries, or none.
    #[error("{nic} cannot spread packets over {cores} cores: {what}")]
    Cores {
        /// the NIC
        nic: String,
        /// the cores
        cores: u32,
        /// what it can
        what: String,
    },
    /// The strategy that was asked for does not fit the program.
    #[error("{name} cannot run as `{wanted}`: {reason}")]
    Strategy {
        /// the program
        name: String,
        /// what was asked for
        wanted: &'static str,
        /// why not, with the line
        reason: String,
    },
}

/// Makes it. The model's expressions may grow; what they mean stays.
///
/// # Errors
/// [`PlanError`], when the question is none, or its answer no.
pub fn plan(model: &mut Model, program: &Program, wanted: &Wanted) -> Result<Plan, PlanError> {
    let began = Instant::now();
    let budget = wanted.budget.unwrap_or_default();
    for entry in &mut model.entries {
        entry.arena.simplify_until(Some(budget.until()));
    }
    let joined = expiring::join(model);
    let plan = joined_plan(model, program, wanted, (began, budget));
    joined.part(model);
    plan
}

/// The same of a model in which expiries stand behind the packets that make their sets.
fn joined_plan(
    model: &mut Model,
    program: &Program,
    wanted: &Wanted,
    (began, budget): (Instant, Budget),
) -> Result<Plan, PlanError> {
    let nic = named(&wanted.nic)?;
    let mut software = named("software")?;
    (software.key_bytes, software.table_sizes) = (nic.key_bytes, nic.table_sizes.clone());
    let device = Device {
        nic: &nic,
        software: &software,
        ports: program.ports.len().max(1),
        cores: wanted.cores,
        carried: Cell::new(wanted.carried),
        asked: RefCell::default(),
        cases: Cases::default(),
        budget,
        ended: Cell::default(),
        history: wanted.history.as_deref(),
        computed: RefCell::new(Computed::new(&Limits {
            time: wanted.solver_time.min(budget.left()),
            solver: wanted.solver.clone(),
            ..Limits::default()
        })),
        remembered: RefCell::default(),
    };
    if let Some(queues) = nic.queues.filter(|q| *q < wanted.cores) {
        return Err(PlanError::Cores {
            nic: nic.title,
            cores: wanted.cores,
            what: format!("it has {queues} queues for them"),
        });
    }
    let spread = device.solve(&[]).map_err(|e| PlanError::Cores {
        nic: nic.title.clone(),
        cores: wanted.cores,
        what: match &e.unsolved {
            Unsolved::Invalid(e) => e.to_string(),
            _ => why(&e, &program.ports).1,
        },
    })?;
    let (mut choice, assumptions) = decided(model, program, &device);
    let mut objects = std::mem::take(&mut choice.objects);
    let found = Strategy::of(objects.iter().map(|o| o.treatment));
    let strategy = wanted.strategy.unwrap_or(found);
    let mut solved = choice.solved.as_ref().unwrap_or(&spread);
    let steered = ports(program, solved, &choice);
    for o in &mut objects {
        let set = program.objects.get(o.id.0).is_some_and(|o| o.packet_set);
        o.set = set.then(|| set_plan(o, &steered));
    }
    if strategy != found {
        let history = wanted.history.as_deref();
        asked_for((program, model, history), (strategy, found), &mut objects)?;
        solved = &spread;
    }
    let cores = match strategy {
        Strategy::Alone => 1,
        _ => wanted.cores,
    };
    let homes = homes(program, &objects, &choice.homes, solved);
    let relaxations = relaxations((program, model), (&objects, &homes), cores, solved);
    Ok(Plan {
        name: program.name.clone(),
        strategy,
        grounds: match wanted.strategy {
            Some(_) => Grounds::Asked,
            None => Grounds::Order,
        },
        predicted: Vec::new(),
        measured: None,
        cores,
        nic: wanted.nic.clone(),
        exhaustive: model.exhaustive(),
        covers: model.covers(),
        ports: ports(program, solved, &choice),
        history: wanted.history.as_deref().map(said),
        objects,
        relaxations,
        homes,
        assumptions,
        took_ms: began.elapsed().as_secs_f64() * 1e3,
        keys_ms: solved.took.as_secs_f64() * 1e3,
        solved: Solved::clone(solved),
        device: nic.clone(),
        software: software.clone(),
        inside: choice.inside,
        echoes: choice.software.echoes,
        odd: choice.software.odd,
        placed: if strategy == found {
            choice.placed
        } else {
            Vec::new()
        },
    })
}

/// The part of a history that a plan says.
fn said(history: &History) -> History {
    History {
        fields: history.fields.clone(),
        refusals: history.refusals.clone(),
        flows: Vec::new(),
        ..*history
    }
}

/// Effort to aim packets of a class at one core.
fn guess(solved: &Solved, id: usize) -> Option<Guess> {
    let (entry_bits, core_bits) = solved.space.guess(id)?;
    Some(Guess {
        entry_bits: entry_bits as u32,
        core_bits: (core_bits * 100.0).round() / 100.0,
    })
}

/// Of which objects packets come home, and how many numbers each index has.
fn homes(
    program: &Program,
    objects: &[ObjectPlan],
    homes: &BTreeMap<usize, Home>,
    solved: &Solved,
) -> Vec<HomePlan> {
    let sharded = objects.iter().filter(|o| o.treatment == Treatment::Shard);
    sharded
        .filter_map(|o| {
            let (home, declared) = (homes.get(&o.id.0)?, program.objects.get(o.id.0)?);
            let bits = solved.space.index_bits();
            let carried = match home {
                Home::Carried(home) => Some(CarriedPlan {
                    port: words::port(&program.ports, home.packets.port).to_owned(),
                    field: home.field.name().to_owned(),
                }),
                Home::Dealt => None,
            };
            Some(HomePlan {
                id: o.id,
                object: o.name.clone(),
                carried,
                indexes: 1_u32 << bits.min(31),
                numbers: declared.capacity >> bits.min(63),
                first: declared.first,
                capacity: declared.capacity,
                home: home.clone(),
            })
        })
        .collect()
}

/// Where odd packets have their ports for the program, if any such packets of a port are told apart.
fn odd(solved: &Solved, choice: &Choice, port: usize) -> Option<&'static str> {
    let mut here = solved.steered.iter().map(|s| s.packets);
    here.any(|p| p.port == port && p.kind.is_odd())
        .then_some(match choice.software.odd?.ports {
            Ports::Fixed => "fixed",
            Ports::Behind => "behind-header",
        })
}

/// How the ports' packets are steered.
/// What is said of a packet set, by its own treatment and what the ports are steered by.
fn set_plan(object: &ObjectPlan, ports: &[PortPlan]) -> SetPlan {
    let steered = object.treatment == Treatment::Shard;
    let mut fields = BTreeSet::new();
    for port in ports.iter().filter(|_| steered) {
        let bound = port.kinds.iter().filter(|k| k.bound);
        let names = bound.flat_map(|k| &k.fields);
        fields.extend(names.map(|f| format!("{}: {}", port.name, words::spaced(f))));
    }
    SetPlan {
        steered,
        fields: fields.into_iter().collect(),
        prevents: (!steered).then(|| object.reason.clone()),
    }
}

fn ports(program: &Program, solved: &Solved, choice: &Choice) -> Vec<PortPlan> {
    // Any key tells the rank of the whole hash; what is drawn when it runs is another one.
    let keys = solved.space.draw(&mut ChaCha8Rng::seed_from_u64(0));
    let cores = solved.space.target().cores;
    let count = program.ports.len().max(1);
    let mut known: BTreeMap<_, (Option<Guess>, Sets)> = BTreeMap::new();
    let of = |port: usize| {
        let kinds = solved
            .steered
            .iter()
            .enumerate()
            .filter(|(_, s)| s.packets.port == port && (s.bound || !s.class.fields.is_empty()));
        let kinds = kinds.map(|(id, s)| {
            let names = |fields: Vec<millrace_steer::Field>| {
                fields.into_iter().map(|f| f.name().to_owned()).collect()
            };
            // Kinds of which the same bits are hashed under the same key are alike.
            let same = (s.class.port, s.class.fields.clone(), s.class.bits());
            let alike = s.bound.then(|| {
                let found = || (guess(solved, id), sets(&solved.space, id));
                &*known.entry(same).or_insert_with(found)
            });
            KindPlan {
                kind: s.packets.kind.name().to_owned(),
                by: s.by,
                bound: s.bound,
                fields: names(solved.space.counting(id)),
                cancelled: names(solved.space.cancelled(id)),
                rank: keys.rank(id).map_or(0, |r| r.whole as u32),
                table_rank: solved.space.table_rank(id) as u32,
                certified: keys.rank(id).is_some_and(|r| r.certified),
                guess: alike.and_then(|a| a.0),
                degenerate: alike
                    .map_or_else(Vec::new, |a| degenerate(&a.1, (port, cores), &choice.homes)),
                because: (s.bound && is_six(s.packets.kind) && s.class.fields.is_empty())
                    .then(|| choice.pinned.clone())
                    .flatten(),
            }
        });
        PortPlan {
            name: words::port(&program.ports, port).to_owned(),
            kinds: kinds.collect(),
            inside: choice.inside.contains(&port),
            echoes: choice.software.echoes,
            odd: odd(solved, choice, port),
            key_space: solved.space.port_dimension(slot(port, By::Nic)) as u32,
        }
    };
    (0..count).map(of).collect()
}
