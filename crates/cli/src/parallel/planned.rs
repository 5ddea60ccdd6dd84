//! What the plan says, as workers need it.

use std::time::Duration;

use millrace_check::Checked;
use millrace_model::Limits;
use millrace_object::program::Program;
use millrace_plan::plan::ObjectPlan;
use millrace_plan::{Plan, PlanError, Treatment, Wanted};
use millrace_steer::Steering;

use super::{Asked, MOST_PORTS, Strategy, balance};
use crate::failure::{Failure, NO};
use crate::{screen, seed};

/// How long the model may take. On a machine that is busy with other work it takes a multiple of what it needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the plan says of a program.
pub struct Planned {
    /// objects of which each worker has a part, found by a key that comes to one worker only
    pub divided: Vec<String>,
    /// objects of which each worker has a part that all add to
    pub merged: Vec<String>,
    /// a port each
    pub steering: Vec<Steering>,
    /// why, in a few lines
    pub reasons: Vec<String>,
}

/// Makes the plan of a program, and the keys from a fresh secret.
///
/// # Errors
/// The plan says that the program runs on one core, or not as was asked; the reasons are the plan's.
pub fn plan(program: &Program, checked: &Checked, asked: &Asked<'_>) -> Result<Planned, Failure> {
    screen::err(&format!("{}: making the model and the plan", program.name));
    let limits = Limits {
        time: PATIENCE,
        ..Limits::default()
    };
    let mut model = millrace_model::model(program, checked, &limits);
    let wanted = Wanted {
        cores: asked.cores as u32,
        nic: asked.nic.to_owned(),
        strategy: match asked.strategy {
            Strategy::Best => None,
            Strategy::Spread => Some(millrace_plan::Strategy::Spread),
            Strategy::Shard => Some(millrace_plan::Strategy::Shard),
            Strategy::Sequential => Some(millrace_plan::Strategy::Alone),
        },
    };
    let plan = millrace_plan::plan(&mut model, program, &wanted).map_err(|e| impossible(&e))?;
    // The treatments that workers with parts of their own can give.
    let serves = |t| matches!(t, Treatment::Spread | Treatment::Shard | Treatment::Merge);
    if plan.strategy == millrace_plan::Strategy::Alone
        || plan.objects.iter().any(|o| !serves(o.treatment))
    {
        return Err(on_one_core(program, &plan, asked.cores));
    }
    let mut steering = plan
        .steering(program.ports.len().clamp(1, MOST_PORTS), secret())
        .map_err(|e| Failure::wrong(format!("--cores {}: {e}", asked.cores)))?;
    let of = |treatment| {
        let objects = plan
            .objects
            .iter()
            .filter(move |o| o.treatment == treatment);
        objects.map(|o| o.name.clone()).collect::<Vec<_>>()
    };
    let mut reasons: Vec<_> = plan
        .objects
        .iter()
        .filter(|o| o.treatment != Treatment::Spread)
        .map(reason)
        .collect();
    for relaxation in &plan.relaxations {
        reasons.push(format!(
            "may differ from one core: {} of {}: {}",
            relaxation.name, relaxation.object, relaxation.meaning
        ));
    }
    for assumption in &plan.assumptions {
        reasons.push(format!(
            "as long as {} is {}: {}",
            assumption.parameter, assumption.value, assumption.because
        ));
    }
    if let Some(words) = &asked.trace {
        reasons.push(balance::to(&plan, program, words, &mut steering)?);
    }
    Ok(Planned {
        divided: of(Treatment::Shard),
        merged: of(Treatment::Merge),
        steering,
        reasons,
    })
}

fn reason(object: &ObjectPlan) -> String {
    let line = object
        .line
        .as_ref()
        .map_or_else(String::new, |l| format!("{l}: "));
    let treatment = format!("{:?}", object.treatment).to_lowercase();
    format!(
        "{}: {treatment} ({:?}): {line}{}",
        object.name, object.rule, object.reason
    )
}

fn on_one_core(program: &Program, plan: &Plan, cores: usize) -> Failure {
    let held: Vec<_> = plan
        .objects
        .iter()
        .filter(|o| matches!(o.treatment, Treatment::Alone | Treatment::Lock))
        .collect();
    let detail: Vec<_> = held.iter().map(|o| reason(o)).collect();
    let what = match held.first() {
        Some(object) => format!(
            "--cores {cores}: {} runs on one core: {}",
            program.name,
            reason(object)
        ),
        None => format!("--cores {cores}: {} runs on one core", program.name),
    };
    let locked = held.iter().any(|o| o.treatment == Treatment::Lock);
    let help = match held.iter().find_map(|o| o.remedy.clone()) {
        Some(remedy) => format!("use --cores 1; or {remedy}"),
        None if locked => {
            "use --cores 1: state that workers would share under a lock is not run yet".into()
        }
        None => "use --cores 1".into(),
    };
    Failure {
        detail: Some(detail.join("\n")).filter(|_| held.len() > 1),
        code: NO,
        ..Failure::wrong(what).help(help)
    }
}

fn impossible(error: &PlanError) -> Failure {
    let failure = Failure::wrong(error);
    match error {
        PlanError::Strategy { .. } => Failure {
            code: NO,
            ..failure.help("leave --strategy out, or use --cores 1")
        },
        PlanError::Cores { .. } => failure.help("use fewer cores, or a NIC with a larger table"),
        PlanError::Nic(_) => failure,
    }
}

/// A secret for the keys, fresh at each start, so that nobody outside can aim packets at one worker.
pub fn secret() -> [u8; 32] {
    let mut bytes = [0; 32];
    for eight in bytes.chunks_exact_mut(8) {
        eight.copy_from_slice(&seed::secret().to_ne_bytes());
    }
    bytes
}
