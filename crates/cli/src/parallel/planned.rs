//! The plan that `plan`, `run`, `verify` and `bench` have in common: made here, so that what one of them prints the
//! others do.

use std::collections::BTreeSet;
use std::time::Duration;

use millrace_check::{Budget, Checked};
use millrace_emit::lock;
use millrace_model::{Limits, Model};
use millrace_object::program::{ObjectId, Program};
use millrace_place::{Strategy, Treatment};
use millrace_plan::plan::{ObjectPlan, Rule};
use millrace_plan::{Plan, PlanError, Wanted};

use super::by_hand;
use crate::failure::{Failure, NO};
use crate::{screen, seed};

/// How long, in seconds, the model may take where all is locked whatever the paths are.
pub const LITTLE: u64 = 5;

/// What a lock cannot guard is on one core, whose reason says so in these words.
const UNGUARDED: &str = "and no lock can guard it";

/// The model that an arrangement is made from, within so many seconds.
pub fn model(
    program: &Program,
    checked: &Checked,
    (seconds, budget): (u64, Budget),
    asked: Strategies,
) -> Model {
    let within = |seconds| Limits {
        time: Duration::from_secs(seconds),
        budget: Some(budget),
        ..Limits::default()
    };
    if asked == Strategies::ByHand {
        // What the proof of safety says of accesses, which are all that there may be.
        let quick = millrace_model::model(program, checked, &within(0));
        if !by_hand::asks(&quick, program) {
            return quick;
        }
    }
    screen::err(&format!("{}: making the model and the plan", program.name));
    let seconds = match asked {
        Strategies::Locked => seconds.min(LITTLE),
        _ => seconds,
    };
    millrace_model::model(program, checked, &within(seconds))
}

/// Purpose of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategies {
    /// whatever the plan finds
    Any,
    /// what is locked is locked whatever the paths are
    Locked,
    /// the user says who gets which packet
    ByHand,
}

/// Makes the plan.
///
/// # Errors
/// As [`millrace_plan::plan()`]; also where a strategy is asked for that a lock would have to guard and cannot.
pub fn plan(
    model: &mut Model,
    program: &Program,
    checked: &Checked,
    wanted: &Wanted,
) -> Result<Plan, PlanError> {
    let plan = guarded(
        millrace_plan::plan(model, program, wanted)?,
        program,
        checked,
    );
    let asked = wanted.strategy.filter(|s| *s != Strategy::Alone);
    match asked {
        Some(asked) if plan.strategy == Strategy::Alone => {
            let kept = plan.objects.iter();
            let mut kept = kept.filter(|o| o.treatment == Treatment::Alone);
            Err(PlanError::Strategy {
                name: plan.name.clone(),
                wanted: asked.name(),
                reason: kept.next().map_or_else(String::new, reason),
            })
        }
        _ => Ok(plan),
    }
}

/// The plan with what a lock asks for: handlers without a packet that work on a locked object, or add to a number, run
/// once for all workers, so all else that they write is one for all as well; and what cannot be guarded keeps the
/// function on one core.
fn guarded(mut plan: Plan, program: &Program, checked: &Checked) -> Plan {
    if plan.strategy == Strategy::Alone {
        return plan;
    }
    let repeated = lock::repeated(program, checked);
    let one = |o: &&ObjectPlan| match o.treatment {
        Treatment::Lock => true,
        Treatment::Merge => repeated.contains(&o.id),
        _ => false,
    };
    let locked = plan.objects.iter().filter(one).map(|o| o.id).collect();
    let shared: BTreeSet<ObjectId> = lock::together(program, checked, &locked);
    let mut changed = BTreeSet::new();
    for o in plan.objects.iter_mut().filter(|o| shared.contains(&o.id)) {
        let (treatment, why) = match (lock::obstacle(program, checked, o.id), o.treatment) {
            (Some(why), _) => (Treatment::Alone, format!("{UNGUARDED}: {why}")),
            (None, Treatment::Lock) => continue,
            (None, _) => (
                Treatment::Lock,
                "but a handler without a packet writes it, which runs once for all workers, so it is one for all of \
                 them"
                    .to_owned(),
            ),
        };
        (o.treatment, o.rule) = (treatment, Rule::R4);
        o.reason = format!("{}; {why}", o.reason);
        changed.insert(o.name.clone());
    }
    if changed.is_empty() {
        return plan;
    }
    plan.relaxations.retain(|r| !changed.contains(&r.object));
    plan.homes.retain(|h| !changed.contains(&h.object));
    plan.strategy = Strategy::of(plan.objects.iter().map(|o| o.treatment));
    if plan.strategy == Strategy::Alone {
        plan.cores = 1;
        plan.relaxations.clear();
        plan.homes.clear();
    }
    plan
}

/// The plan's reason for an object, in a line.
pub fn reason(object: &ObjectPlan) -> String {
    let line = object
        .line
        .as_ref()
        .map_or_else(String::new, |l| format!("{l}: "));
    let treatment = object.treatment.name();
    format!(
        "{}: {treatment} ({:?}): {line}{}",
        object.name, object.rule, object.reason
    )
}

/// The plan's notes beside the treatments, in lines.
pub fn besides(plan: &Plan) -> Vec<String> {
    let objects = plan.objects.iter();
    let mut reasons: Vec<_> = objects
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
    reasons
}

/// Whether a plan keeps a function on one core only because no lock can guard what it would lock.
pub fn unguarded(plan: &Plan) -> bool {
    let kept = |o: &&ObjectPlan| o.treatment == Treatment::Alone;
    plan.objects
        .iter()
        .filter(kept)
        .any(|o| o.reason.contains(UNGUARDED))
}

/// That a function runs on one core, as its plan says.
pub fn on_one_core(plan: &Plan, cores: usize) -> Failure {
    let kept: Vec<_> = plan
        .objects
        .iter()
        .filter(|o| o.treatment == Treatment::Alone)
        .collect();
    let detail: Vec<_> = kept.iter().map(|o| reason(o)).collect();
    let what = match detail.first() {
        Some(first) => format!("--cores {cores}: {} runs on one core: {first}", plan.name),
        None => format!("--cores {cores}: {} runs on one core", plan.name),
    };
    let help = match kept.iter().find_map(|o| o.remedy.clone()) {
        Some(remedy) => format!("use --cores 1; or {remedy}"),
        None => "use --cores 1".into(),
    };
    Failure {
        detail: Some(detail.join("\n")).filter(|_| kept.len() > 1),
        code: NO,
        ..Failure::wrong(what).help(help)
    }
}

/// Why there is no plan.
pub fn impossible(error: &PlanError) -> Failure {
    let failure = Failure::wrong(error);
    match error {
        PlanError::Strategy { .. } => Failure {
            code: NO,
            ..failure.help("leave --strategy out: `millrace plan` says what would be done instead")
        },
        PlanError::Cores { .. } => failure.help("use fewer cores, or a NIC with a larger table"),
        PlanError::Nic(_) => failure.help("see crates/steer/nics for the models there are"),
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
