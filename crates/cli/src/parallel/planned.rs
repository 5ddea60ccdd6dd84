//! What the plan says, as workers need it.

use std::collections::BTreeSet;
use std::time::Duration;

use millrace_check::Checked;
use millrace_emit::lock;
use millrace_model::Limits;
use millrace_object::program::{ObjectId, Program};
use millrace_plan::plan::ObjectPlan;
use millrace_plan::{Plan, PlanError, Treatment, Wanted};
use millrace_steer::Steering;

use super::homes::ComingHome;
use super::{Asked, LITTLE, MOST_PORTS, Strategy, balance};
use crate::failure::{Failure, NO};
use crate::{screen, seed};

/// How long the model may take. On a machine that is busy with other work it takes a multiple of what it needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the plan says of a program.
#[derive(Default)]
pub struct Planned {
    /// objects of which each worker has a part, found by a key that comes to one worker only
    pub divided: Vec<String>,
    /// objects of which each worker has a part that all add to
    pub merged: Vec<String>,
    /// objects that are one for all workers
    pub locked: Vec<String>,
    /// how far apart in the packets' time workers may be because of them, ns
    pub apart: Option<u64>,
    /// a port each
    pub steering: Vec<Steering>,
    /// allocators whose numbers come home
    pub home: Option<ComingHome>,
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
        time: match asked.strategy {
            Strategy::Lock => Duration::from_secs(LITTLE),
            _ => PATIENCE,
        },
        ..Limits::default()
    };
    let mut model = millrace_model::model(program, checked, &limits);
    let wanted = Wanted {
        cores: asked.cores as u32,
        nic: asked.nic.to_owned(),
        strategy: asked.strategy.of_plan(),
        ..Wanted::default()
    };
    let plan = millrace_plan::plan(&mut model, program, &wanted).map_err(|e| impossible(&e))?;
    let alone = |o: &ObjectPlan| held(program, o).is_some();
    if plan.strategy == millrace_plan::Strategy::Alone || plan.objects.iter().any(alone) {
        return Err(on_one_core(program, &plan, asked.cores));
    }
    let locked = shared(&plan, program, checked);
    let is_locked = |name: &String| locked.iter().any(|id| named(program, *id) == *name);
    let mut steering = plan
        .steering(program.ports.len().clamp(1, MOST_PORTS), secret())
        .map_err(|e| Failure::wrong(format!("--cores {}: {e}", asked.cores)))?;
    let of = |treatment| {
        let objects = plan
            .objects
            .iter()
            .filter(move |o| o.treatment == treatment);
        let names = objects.map(|o| o.name.clone());
        names.filter(|n| !is_locked(n)).collect::<Vec<_>>()
    };
    let mut reasons: Vec<_> = plan
        .objects
        .iter()
        .filter(|o| o.treatment != Treatment::Spread)
        .map(reason)
        .collect();
    for home in &plan.homes {
        reasons.push(format!(
            "{}: {} numbers for each of {} indexes of the table; when they run out a flow is refused, and counted as `capacity`",
            home.object, home.numbers, home.indexes
        ));
    }
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
        locked: locked.iter().map(|id| named(program, *id)).collect(),
        apart: lock::apart(program, checked, &locked),
        home: ComingHome::of(&plan, program, &steering),
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

/// The objects that are one for all workers under a plan: those that it locks, those to which timers add, which must do
/// so once, and what goes with either.
pub fn shared(plan: &Plan, program: &Program, checked: &Checked) -> BTreeSet<ObjectId> {
    let repeated = lock::repeated(program, checked);
    let one = |o: &&ObjectPlan| match o.treatment {
        Treatment::Lock => true,
        Treatment::Merge => repeated.contains(&o.id) && lock::obstacle(program, o.id).is_none(),
        _ => false,
    };
    let locked = plan.objects.iter().filter(one);
    lock::together(program, checked, &locked.map(|o| o.id).collect())
}

/// What keeps an object on one core, beside its treatment.
pub fn held(program: &Program, object: &ObjectPlan) -> Option<&'static str> {
    match object.treatment {
        Treatment::Spread | Treatment::Shard | Treatment::Merge => None,
        Treatment::Lock => lock::obstacle(program, object.id),
        Treatment::Alone => Some(""),
    }
}

fn named(program: &Program, id: ObjectId) -> String {
    program
        .objects
        .get(id.0)
        .map_or_else(String::new, |o| o.name.clone())
}

fn on_one_core(program: &Program, plan: &Plan, cores: usize) -> Failure {
    let kept: Vec<_> = plan
        .objects
        .iter()
        .filter_map(|o| Some((o, held(program, o)?)))
        .collect();
    let said = |(object, why): &(&ObjectPlan, &str)| match *why {
        "" => reason(object),
        why => format!("{}; and no lock can guard it: {why}", reason(object)),
    };
    let detail: Vec<_> = kept.iter().map(said).collect();
    let what = match detail.first() {
        Some(first) => format!(
            "--cores {cores}: {} runs on one core: {first}",
            program.name
        ),
        None => format!("--cores {cores}: {} runs on one core", program.name),
    };
    let help = match kept.iter().find_map(|(o, _)| o.remedy.clone()) {
        Some(remedy) => format!("use --cores 1; or {remedy}"),
        None => "use --cores 1".into(),
    };
    Failure {
        detail: Some(detail.join("\n")).filter(|_| kept.len() > 1),
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
