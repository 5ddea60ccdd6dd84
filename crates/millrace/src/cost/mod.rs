//! Measures what `millrace_plan::cost` asks for: what a function costs on this machine, with a trace, alone and
//! under the lock, what the lock and the port cost, and how the plan's keys divide the trace.

mod line;
mod lock;
mod met;
mod replay;
mod replicas;
pub mod row;
pub mod together;
mod trace;

use std::sync::Arc;

use millrace_dataplane::port::vnic::{self, Settings};
use millrace_dataplane::{Module, place};
use millrace_model::Model;
use millrace_object::Program;
use millrace_object::program::{ObjectId, StateObject};
use millrace_place::{Held, Placement, Strategy, Treatment};
use millrace_plan::cost::{self, HeavyShare, HeavyWork, Measured, Share, Unmeasured, Work};
use millrace_plan::{Fingerprints, Grounds, Plan, Wanted};
use millrace_steer::Steering;
use millrace_steer::hybrid::{Key, divide};

use crate::find::{Found, Source};
use crate::place as places;
use crate::place::hybrid;
use crate::ports::{NEVER, Ports};
use crate::written::Proved;
use crate::{Error, Function, Make, seed};
pub use replay::Subject;
use replay::{Turn, turn};
pub use trace::Frames;

/// How often the trace is replayed, modules in turns; medians count.
const TURNS: usize = 5;

/// The function that is measured, and the trace.
pub struct Traced<'a> {
    /// the function
    pub found: &'a Found,
    /// how it is made
    pub make: &'a Make,
    /// captures: one for each port, or one with a split
    pub ports: &'a Ports,
    /// what a simulation charges for receiving and sending a packet beside what it costs, ns
    pub charged_ns: f64,
}

/// A strategy, its plan, and the module that runs it.
struct Candidate {
    plan: Plan,
    subject: Subject,
}

impl Proved<'_> {
    /// Measures what a program makes of a trace under the strategy of `plan` and the others that are possible, writes
    /// down what is to be expected of each, and takes the fastest unless one was asked for. `told` hears what is done, in
    /// lines.
    ///
    /// # Errors
    /// The trace cannot be read, or the function cannot be built.
    pub fn measured(
        &self,
        plan: Plan,
        model: &mut Model,
        wanted: &Wanted,
        traced: &Traced<'_>,
        told: &mut dyn FnMut(&str),
    ) -> Result<Plan, Error> {
        let name = &self.program.name;
        let ports = traced.ports.names(&self.program.ports)?;
        let frames = Frames::read(traced.ports, &ports, &NEVER)?;
        let (plan, why) = self.preferred(plan, model, wanted, &frames);
        if let Some(why) = why {
            told(&format!("{name}: {why}"));
        }
        let dispatch_ns = dispatch(traced)? + traced.charged_ns;
        told(&format!(
            "{name}: measuring with {} packets",
            frames.packets()
        ));
        let function = traced.found.load(traced.make, &mut |_| {})?;
        if !function.warnings.is_empty() {
            told(function.warnings.trim_end());
        }
        let (mut candidates, mut unmeasured) = (Vec::new(), Vec::new());
        for strategy in strategies(plan.strategy) {
            let other = if strategy == plan.strategy {
                Ok(plan.clone())
            } else {
                let wanted = Wanted {
                    strategy: Some(strategy),
                    ..wanted.clone()
                };
                self.plan(model, &wanted).map_err(|e| e.to_string())
            };
            let candidate = other.and_then(|plan| {
                let subject = Subject {
                    module: module((self.program, &function), &plan, traced)?,
                    ..Subject::of(&function, ports.len() as u32)
                };
                Ok(Candidate { plan, subject })
            });
            match candidate {
                Ok(candidate) => candidates.push(candidate),
                Err(why) => unmeasured.push(Unmeasured { strategy, why }),
            }
        }
        // What is locked may be in transactions, object by object, and the rest as it is.
        if let Some(mixed) = transacted(&plan) {
            match module((self.program, &function), &mixed, traced) {
                Ok(module) => candidates.push(Candidate {
                    subject: Subject {
                        module,
                        ..Subject::of(&function, ports.len() as u32)
                    },
                    plan: mixed,
                }),
                Err(why) => unmeasured.push(Unmeasured {
                    strategy: mixed.strategy,
                    why,
                }),
            }
        }
        let mut turns: Vec<Vec<Turn>> = candidates.iter().map(|_| Vec::new()).collect();
        for _ in 0..TURNS {
            for (candidate, turns) in candidates.iter().zip(&mut turns) {
                turns.push(match candidate.plan.strategy {
                    Strategy::Replicate | Strategy::Hybrid => {
                        replicas::turn(&candidate.subject, &frames)?
                    }
                    _ => turn(&candidate.subject, &frames)?,
                });
            }
        }
        let mut cores = cost::CORES.to_vec();
        cores.push(wanted.cores);
        cores.sort_unstable();
        cores.dedup();
        let works = candidates.iter().zip(&turns);
        let mut strategies: Vec<Work> = works
            .map(|(candidate, turns)| work(&candidate.plan, turns, &frames, &ports, &cores))
            .collect::<Result<_, _>>()?;
        let mut line_ns = None;
        for (candidate, work) in candidates.iter().zip(&mut strategies) {
            if !transacts(&candidate.plan) {
                continue;
            }
            line_ns = line_ns.or_else(line::line_ns);
            let subject = Subject {
                module: noting(&candidate.plan, traced).map_err(Error::wrong)?,
                ..Subject::of(&function, ports.len() as u32)
            };
            let counts = met::counts(&subject, &frames, &anywhere(&cores, ports.len())?)?;
            (work.foreign, work.met) = (counts.foreign, counts.met);
        }
        let of = |strategy| candidates.iter().find(|c| c.plan.strategy == strategy);
        let mut mixed = None;
        if let (Some(sharded), Some(_)) = (of(Strategy::Shard), of(Strategy::Replicate)) {
            match hybrid::of_sharded(self, model, &sharded.plan) {
                Ok((plan, keys)) => {
                    strategies.extend(heavy(&strategies, &keys, &frames, (dispatch_ns, &cores)));
                    mixed = Some(plan);
                }
                Err(error) => unmeasured.push(Unmeasured {
                    strategy: Strategy::Hybrid,
                    why: error.what,
                }),
            }
        }
        let locks = strategies.iter().any(|w| w.writes > 0.0);
        let mut measured = Measured {
            line_ns,
            trace: traced.ports.inputs.join(", "),
            packets: frames.packets() as u64,
            processors: place::cpus().len() as u32,
            dispatch_ns,
            port: "vnic".to_owned(),
            lock: if locks { Some(lock::measure()?) } else { None },
            strategies,
            unmeasured,
        };
        one_of_a_name(&mut measured, &mut candidates, wanted.cores);
        let predicted = cost::predict(&measured, &cores);
        let mut taken = plan;
        if wanted.strategy.is_none() {
            let best = cost::best(&predicted, wanted.cores).map(|p| p.strategy);
            let found = candidates
                .into_iter()
                .map(|c| c.plan)
                .chain(mixed)
                .find(|p| Some(p.strategy) == best);
            if let Some(found) = found {
                taken = found;
                taken.grounds = Grounds::Measured;
            }
        }
        taken.predicted = predicted;
        taken.measured = Some(measured);
        Ok(taken)
    }
}

/// What is compared: what was found, or asked for; everything locked; one core; everything replicated, where packets leave something. In the
/// order that is preferred where figures are alike.
fn strategies(found: Strategy) -> Vec<Strategy> {
    let mut all = vec![found];
    if matches!(
        found,
        Strategy::Shard | Strategy::Mixed | Strategy::Replicate
    ) {
        all.push(Strategy::Lock);
    }
    if matches!(found, Strategy::Shard | Strategy::Mixed | Strategy::Lock) {
        all.push(Strategy::Transact);
    }
    if !matches!(found, Strategy::Spread | Strategy::Replicate) {
        all.push(Strategy::Replicate);
    }
    if found == Strategy::Mixed {
        // Some objects sharded, the others replicated.
        all.push(Strategy::Hybrid);
    }
    if found != Strategy::Alone {
        all.push(Strategy::Alone);
    }
    all
}

/// The module that runs a plan: the function's own, or one whose locked objects are shared, or whose state is replicated; or why
/// there is none.
fn module(
    (program, function): (&Program, &Function),
    plan: &Plan,
    traced: &Traced<'_>,
) -> Result<Arc<Module>, String> {
    if matches!(plan.strategy, Strategy::Replicate | Strategy::Hybrid) {
        let held = |(at, _): (usize, &StateObject)| match plan.treatment(ObjectId(at)) {
            Treatment::Replicate => Held::Replicated,
            Treatment::Shard => Held::Divided,
            _ => Held::Copied,
        };
        let held = program.objects.iter().enumerate().map(held).collect();
        let placement = Placement::even(&program.objects, 1, held);
        return made(Arc::new(placement), traced);
    }
    let shared = sharing(plan);
    if !shared.locks() {
        return Ok(function.module.clone());
    }
    made(Arc::new(shared), traced)
}

/// What a plan's workers have in common.
fn sharing(plan: &Plan) -> Placement {
    let shared = plan.objects.iter().filter_map(|o| match o.treatment {
        Treatment::Lock => Some((o.name.as_str(), Held::Locked)),
        Treatment::Transact => Some((o.name.as_str(), Held::Transacted)),
        _ => None,
    });
    Placement::holding(shared)
}

/// Whether a plan has an object in transactions.
fn transacts(plan: &Plan) -> bool {
    plan.objects
        .iter()
        .any(|o| o.treatment == Treatment::Transact)
}

/// The same plan where some objects shard and others are locked, with those in transactions that can be.
fn transacted(plan: &Plan) -> Option<Plan> {
    if plan.strategy != Strategy::Mixed || plan.grounds == Grounds::Asked {
        return None;
    }
    let mut plan = plan.clone();
    for object in &mut plan.objects {
        let possible = |o: &millrace_plan::plan::Offer| {
            o.treatment == Treatment::Transact && o.impossible.is_none()
        };
        if object.treatment == Treatment::Lock && object.offers.iter().any(possible) {
            object.treatment = Treatment::Transact;
        }
    }
    transacts(&plan).then_some(plan)
}

/// Of two plans with one strategy the one that is predicted to be faster on so many cores.
fn one_of_a_name(measured: &mut Measured, candidates: &mut Vec<Candidate>, cores: u32) {
    let mixed: Vec<usize> = (measured.strategies.iter().enumerate())
        .filter(|(_, w)| w.strategy == Strategy::Mixed)
        .map(|(at, _)| at)
        .collect();
    let [first, second] = mixed[..] else { return };
    let rate = |at: usize| {
        let only = Measured {
            strategies: measured.strategies.get(at).cloned().into_iter().collect(),
            ..measured.clone()
        };
        cost::predict(&only, &[cores])
            .first()
            .map_or(0.0, |p| p.mpps)
    };
    let slower = if rate(second) > rate(first) {
        first
    } else {
        second
    };
    measured.strategies.remove(slower);
    candidates.remove(slower);
}

/// The module that notes what packets read and wrote.
fn noting(plan: &Plan, traced: &Traced<'_>) -> Result<Arc<Module>, String> {
    let make = Make {
        placement: Some(Arc::new(sharing(plan))),
        yields: Some(0),
        ..traced.make.clone()
    };
    let function = traced.found.load(&make, &mut |_| {});
    function.map(|f| f.module).map_err(|e| e.what)
}

/// For each number of cores, whose packets are whose where any worker may have any.
fn anywhere(cores: &[u32], ports: usize) -> Result<Vec<(u32, Vec<Steering>)>, Error> {
    let steering = |cores: &u32| {
        let dispatch = places::dispatch(&Placement::default(), ports.max(1), *cores as usize);
        dispatch.map(|steering| (*cores, steering))
    };
    cores.iter().map(steering).collect()
}

/// The module of a placement.
fn made(placement: Arc<Placement>, traced: &Traced<'_>) -> Result<Arc<Module>, String> {
    if matches!(traced.found.source, Source::Bundle(_) | Source::Module(_)) {
        return Err("what was built before is as it is: give its source or its object".into());
    }
    let make = Make {
        placement: Some(placement),
        ..traced.make.clone()
    };
    let function = traced.found.load(&make, &mut |_| {});
    function.map(|f| f.module).map_err(|e| e.what)
}

/// Figures of one strategy.
fn work(
    plan: &Plan,
    turns: &[Turn],
    frames: &Frames,
    ports: &[String],
    cores: &[u32],
) -> Result<Work, Error> {
    let mut times: Vec<f64> = turns.iter().map(|t| t.packet_ns).collect();
    times.sort_by(f64::total_cmp);
    let writes = turns.iter().map(|t| t.writes).fold(0.0, f64::max);
    let (mut busiest, mut heaviest) = (Vec::new(), 0.0);
    let median = |of: fn(&Turn) -> Option<f64>| {
        let mut all: Vec<f64> = turns.iter().filter_map(of).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    };
    if !matches!(plan.strategy, Strategy::Alone | Strategy::Replicate) {
        let steering = plan
            .steering(ports.len().max(1), seed::keys())
            .map_err(|e| Error::wrong(e).help("give fewer cores, or another --nic"))?;
        let mut loads = plan.loads();
        for (frame, port) in frames.all() {
            loads.add(&steering, port as usize, frame);
        }
        heaviest = loads.heaviest();
        busiest = cores
            .iter()
            .map(|cores| Share {
                cores: *cores,
                share: loads.busiest(*cores),
            })
            .collect();
    }
    Ok(Work {
        strategy: plan.strategy,
        packet_ns: times.get(times.len() / 2).copied().unwrap_or(0.0),
        writes,
        busiest,
        heaviest,
        foreign: Vec::new(),
        met: Vec::new(),
        replay_ns: median(|t| t.replay_ns),
        sequencer_ns: median(|t| t.sequencer_ns),
        heavy: None,
    })
}

/// Figures of heavy keys that are replicated while others are sharded, from those of both: what the choice of keys makes of the trace.
fn heavy(
    measured: &[Work],
    keys: &Fingerprints,
    frames: &Frames,
    (dispatch_ns, cores): (f64, &[u32]),
) -> Option<Work> {
    let of = |strategy| measured.iter().find(|w| w.strategy == strategy);
    let (sharded, replicated) = (of(Strategy::Shard)?, of(Strategy::Replicate)?);
    let row = replicated.replay_ns? / (dispatch_ns + replicated.packet_ns).max(1.0);
    let mut bits = 0;
    let packets: Vec<(Key, u32)> = frames
        .all()
        .map(|(frame, port)| {
            let (key, index, of) = keys.read(port, frame);
            bits = of;
            (key, index)
        })
        .collect();
    let cores = cores.iter().copied().filter(|n| *n > 1);
    let shares = cores.filter_map(|cores| {
        let divided = divide(&packets, bits, u16::try_from(cores).ok()?, row);
        Some(HeavyShare {
            cores,
            sharded: divided.sharded,
            replicated: divided.replicated,
        })
    });
    Some(Work {
        strategy: Strategy::Hybrid,
        heavy: Some(HeavyWork {
            packet_ns: replicated.packet_ns,
            shares: shares.collect(),
        }),
        replay_ns: replicated.replay_ns,
        sequencer_ns: replicated.sequencer_ns,
        busiest: Vec::new(),
        ..sharded.clone()
    })
}

/// What the software NIC costs a worker, ns a packet.
fn dispatch(traced: &Traced<'_>) -> Result<f64, Error> {
    let first = traced.ports.inputs.first().map_or("", String::as_str);
    let file = first.strip_prefix("mem:").unwrap_or(first);
    let settings = Settings::parse(&format!("{file}?measure=off"), 1)?;
    Ok(vnic::dispatch_cost(&settings)?)
}
