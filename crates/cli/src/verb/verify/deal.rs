//! What the plan says of a number of cores, as `verify` takes it.

use millrace_model::Model;
use millrace_object::program::Program;
use millrace_plan::{Plan, PlanError, Strategy, Wanted, plan};
use millrace_steer::Steering;
use millrace_verify::{Deal, Findings, Held};

use super::Verify;
use crate::failure::{Failure, NO};

/// A plan, and what it deals out.
pub struct Planned {
    plan: Plan,
    steering: Vec<Steering>,
    held: Vec<Held>,
}

/// Makes the plan for a number of cores, and draws its keys.
///
/// # Errors
/// There is no plan, or what it shares cannot be verified.
pub fn planned(
    of: &Verify,
    model: &mut Model,
    program: &Program,
    ports: &[String],
    cores: u32,
) -> Result<Planned, Failure> {
    let wanted = Wanted {
        cores,
        nic: of.nic.clone(),
        strategy: (cores == 1).then_some(Strategy::Alone),
    };
    let plan = plan(model, program, &wanted).map_err(|e| refused(&e))?;
    let mut secret = [0; 32];
    for (place, byte) in secret.iter_mut().zip(of.seed.to_le_bytes()) {
        *place = byte;
    }
    let steering = plan.steering(ports.len(), secret).map_err(|e| {
        Failure::wrong(format!("{cores} cores: {e}")).help("give fewer cores, or another --nic")
    })?;
    let held = millrace_verify::held(&plan, program).map_err(|locked| {
        Failure::wrong(format!(
            "{} on {cores} cores: the plan locks `{}`, and verify replays no order of commits yet",
            program.name,
            locked.join("`, `")
        ))
        .help(
            "`millrace plan` says what stands in the way of sharding; --cores 1 verifies one core",
        )
    })?;
    Ok(Planned {
        plan,
        steering,
        held,
    })
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
    /// What is dealt out.
    pub fn deal(&self) -> Deal<'_> {
        Deal {
            workers: self.plan.cores,
            dispatch: &self.steering,
            held: self.held.clone(),
        }
    }

    /// Whether each worker has a part of an object only.
    pub fn divides(&self, object: usize) -> bool {
        self.plan.cores > 1 && matches!(self.held.get(object), Some(Held::Divided | Held::Merged))
    }

    /// How the whole runs.
    pub fn strategy(&self) -> Strategy {
        self.plan.strategy
    }

    /// What there is to know of the plan besides.
    pub fn notes(&self, findings: &Findings) -> Vec<String> {
        let mut notes = Vec::new();
        for a in &self.plan.assumptions {
            notes.push(format!(
                "the plan takes {} to be {}: {}",
                a.parameter, a.value, a.because
            ));
        }
        if self.plan.strategy == Strategy::Alone && findings.workers == 1 {
            let reasons = self.plan.objects.iter().map(|o| o.reason.as_str());
            if let Some(reason) = reasons.clone().find(|r| !r.is_empty()) {
                notes.push(format!("on one core: {reason}"));
            }
        }
        for relaxed in &findings.relaxations {
            if !self.plan.relaxations.iter().any(|r| r.name == relaxed.name) {
                notes.push(format!("the plan does not announce `{}`", relaxed.name));
            }
        }
        notes
    }
}
