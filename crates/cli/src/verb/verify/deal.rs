//! What the plan says of a number of cores, or the user by hand, as `verify` takes it.

use std::sync::Arc;

use millrace_check::Checked;
use millrace_dataplane::module::Homes;
use millrace_dataplane::share;
use millrace_emit::lock;
use millrace_model::Model;
use millrace_object::program::{ObjectId, Program};
use millrace_plan::{Plan, PlanError, Strategy, Wanted, plan};
use millrace_steer::Steering;
use millrace_verify::{Deal, Findings, Held};

use super::Verify;
use crate::failure::{Failure, NO};
use crate::parallel::homes::ComingHome;
use crate::parallel::{TABLES, by_hand, planned, writes};

/// How a function is dealt out to workers.
pub struct Planned {
    /// none where the user says who gets which packet
    plan: Option<Plan>,
    workers: u32,
    steering: Vec<Steering>,
    held: Vec<Held>,
    parts: Vec<(String, u64)>,
    /// how far apart in time packets may be that workers do at the same moment, ns
    pub apart: Option<u64>,
    home: Option<ComingHome>,
}

/// Makes the plan for a number of cores, and draws its keys.
///
/// # Errors
/// There is no plan, or none for the strategy that was asked for.
pub fn planned(
    of: &Verify,
    model: &mut Model,
    program: &Program,
    checked: &Checked,
    ports: &[String],
    cores: u32,
) -> Result<Planned, Failure> {
    let wanted = Wanted {
        cores,
        nic: of.nic.clone(),
        strategy: match (cores, of.strategy) {
            (1, _) => Some(Strategy::Alone),
            (_, asked) => asked.of_plan(),
        },
        ..Wanted::default()
    };
    let plan = plan(model, program, &wanted).map_err(|e| refused(&e))?;
    let mut secret = [0; 32];
    for (place, byte) in secret.iter_mut().zip(of.seed.to_le_bytes()) {
        *place = byte;
    }
    let steering = plan.steering(ports.len(), secret).map_err(|e| {
        Failure::wrong(format!("{cores} cores: {e}")).help("give fewer cores, or another --nic")
    })?;
    let shared = planned::shared(&plan, program, checked);
    let obstacles = plan.objects.iter().filter(|o| shared.contains(&o.id));
    let mut obstacles = obstacles.filter_map(|o| Some((o, planned::held(program, o)?)));
    if let Some((object, why)) = obstacles.next() {
        return Err(Failure {
            code: NO,
            ..Failure::wrong(format!(
                "{} on {cores} cores: the plan locks `{}`, which no lock can guard: {why}",
                program.name, object.name
            ))
            .help("`millrace plan` says what stands in the way of sharding; --steer says by hand who gets which packet")
        });
    }
    let held = millrace_verify::held(&plan, program, &shared);
    let workers = plan.cores;
    let home = ComingHome::of(&plan, program, &steering);
    Ok(Planned {
        apart: lock::apart(program, checked, &shared),
        home,
        ..Planned::new(Some(plan), workers, steering, held, program)
    })
}

/// What the words of `--steer` say, with every object divided that packets write.
///
/// # Errors
/// A word makes no sense, or there are more workers than entries of a table.
pub fn by_hand(
    of: &Verify,
    program: &Program,
    checked: &Checked,
    cores: u32,
) -> Result<Planned, Failure> {
    let steering = by_hand::steering(&of.steer, &program.ports, cores as usize)?;
    let written = writes::all(program, checked);
    let held = program.objects.iter().enumerate().map(|(i, object)| {
        let is_written = written.iter().any(|w| w.id == Some(ObjectId(i)));
        if is_written {
            Held::divided(object)
        } else {
            Held::Replicated
        }
    });
    Ok(Planned::new(None, cores, steering, held.collect(), program))
}

fn refused(error: &PlanError) -> Failure {
    let failure = Failure::wrong(error);
    match error {
        PlanError::Nic(_) => failure.help("see crates/steer/nics for the models there are"),
        PlanError::Cores { .. } => failure.help("give fewer cores, or another --nic"),
        PlanError::Strategy { .. } => Failure {
            code: NO,
            ..failure
        },
    }
}

impl Planned {
    fn new(
        plan: Option<Plan>,
        workers: u32,
        steering: Vec<Steering>,
        held: Vec<Held>,
        program: &Program,
    ) -> Self {
        // As large as `run` makes them.
        let largest = steering
            .iter()
            .map(Steering::largest_share)
            .fold(0.0, f64::max);
        let objects = program.objects.iter().zip(&held);
        let divided = objects.filter(|(o, held)| {
            **held == Held::Divided && TABLES.contains(&o.kind.name) && workers > 1
        });
        let part = |capacity| share::part(capacity, largest, workers as usize);
        let parts = divided.map(|(o, _)| (o.name.clone(), part(o.capacity)));
        Self {
            parts: parts.collect(),
            plan,
            workers,
            steering,
            held,
            apart: None,
            home: None,
        }
    }

    /// Where packets come home that carry leased numbers.
    pub fn homes(&self) -> Option<Arc<Homes>> {
        self.home.as_ref().map(|h| h.homes.clone())
    }

    /// What is dealt out.
    pub fn deal(&self) -> Deal<'_> {
        Deal {
            workers: self.workers,
            dispatch: &self.steering,
            held: self.held.clone(),
            parts: self.parts.clone(),
            homes: self.home.iter().flat_map(|h| h.names.clone()).collect(),
            finder: self.plan.as_ref().map(|p| p.finder(&self.steering)),
        }
    }

    /// Whether each worker has a part of an object only.
    pub fn divides(&self, object: usize) -> bool {
        self.workers > 1 && matches!(self.held.get(object), Some(Held::Divided | Held::Merged))
    }

    /// How the whole runs.
    pub fn strategy(&self) -> Strategy {
        let shard = self.held.contains(&Held::Divided);
        let by_hand = if shard {
            Strategy::Shard
        } else {
            Strategy::Spread
        };
        self.plan.as_ref().map_or(by_hand, |p| p.strategy)
    }

    /// What there is to know of the plan besides.
    pub fn notes(&self, findings: &Findings, asked: u32) -> Vec<String> {
        let mut notes = Vec::new();
        let Some(plan) = &self.plan else {
            return notes;
        };
        for a in &plan.assumptions {
            let (name, value) = (&a.parameter, a.value);
            notes.push(format!(
                "the plan takes {name} to be {value}: {}",
                a.because
            ));
        }
        if plan.strategy == Strategy::Alone && asked > 1 {
            notes.push("the plan keeps it on one core; `millrace plan` says why".into());
        }
        for relaxed in &findings.relaxations {
            if !plan.relaxations.iter().any(|r| r.name == relaxed.name) {
                notes.push(format!("the plan does not announce `{}`", relaxed.name));
            }
        }
        notes
    }
}
