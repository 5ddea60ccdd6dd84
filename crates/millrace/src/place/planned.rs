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

use super::{by_hand, hybrid, parts};
use crate::Error;
use crate::written::Proved;

/// How long, in seconds, the model may take where all is locked whatever the paths are.
const LITTLE: u64 = 5;

/// What a lock cannot guard is on one core, whose reason says so in these words.
const UNGUARDED: &str = "and no lock can guard it";

/// Purpose of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// whatever the plan finds
    Any,
    /// what is locked is locked whatever the paths are
    Locked,
    /// the user says who gets which packet
    ByHand,
    /// what is replicated is replicated whatever the paths are
    Replicated,
}

impl Purpose {
    /// Under a strategy that was asked for, or a steering that is given.
    #[must_use]
    pub fn of(strategy: Option<Strategy>, by_hand: bool) -> Self {
        match (by_hand, strategy) {
            (true, _) => Self::ByHand,
            (false, Some(Strategy::Lock | Strategy::Transact)) => Self::Locked,
            (false, Some(Strategy::Replicate)) => Self::Replicated,
            (false, _) => Self::Any,
        }
    }

    /// How long its model may take, of this many seconds.
    #[must_use]
    pub fn within(self, seconds: u64) -> Duration {
        Duration::from_secs(match self {
            Self::Locked => seconds.min(LITTLE),
            Self::Any | Self::ByHand | Self::Replicated => seconds,
        })
    }
}

impl Proved<'_> {
    /// The model that an arrangement is made from, within this many seconds and what is left for the object. `begins` is
    /// called before paths are followed, which takes a while.
    pub fn model_for(
        &self,
        purpose: Purpose,
        (seconds, budget): (u64, Budget),
        begins: &mut dyn FnMut(),
    ) -> Model {
        if purpose == Purpose::ByHand {
            let quick = self.glance(budget);
            if !by_hand::asks(&quick, self.program) {
                return quick;
            }
        }
        if purpose == Purpose::Replicated {
            let quick = self.glance(budget);
            // What is added to values that each core has, paths have to show.
            let objects = (0..).map(ObjectId).zip(&self.program.objects);
            let mut own = objects.filter(|(_, object)| object.kind.per_cpu);
            if !own.any(|(id, _)| super::written(&quick, id)) {
                return quick;
            }
        }
        begins();
        self.model(&Limits {
            time: purpose.within(seconds),
            budget: Some(budget),
            ..Limits::default()
        })
    }

    /// Makes the plan.
    ///
    /// # Errors
    /// As [`millrace_plan::plan()`]; also where a strategy is asked for that a lock would have to guard and cannot.
    pub fn plan(&self, model: &mut Model, wanted: &Wanted) -> Result<Plan, PlanError> {
        if wanted.strategy == Some(Strategy::Hybrid) {
            let found = match parts::plan(self, model, wanted) {
                Ok(Some(found)) => Ok(found.plan),
                Ok(None) => hybrid::plan(self, model, wanted).map(|(plan, ..)| hybrid::of(plan)),
                Err(error) => Err(error),
            };
            return found.map_err(|e| PlanError::Strategy {
                name: self.program.name.clone(),
                wanted: Strategy::Hybrid.name(),
                reason: e.what,
            });
        }
        let replicated = wanted.strategy == Some(Strategy::Replicate);
        let asked = (replicated && wanted.history.is_none()).then(|| Wanted {
            history: Some(self.history()),
            ..wanted.clone()
        });
        let plan = millrace_plan::plan(model, self.program, asked.as_ref().unwrap_or(wanted))?;
        let plan = guarded(plan, self.program, &self.checked);
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
}

/// The plan with what a lock asks for: handlers without a packet that work on a locked object, or add to a number, run
/// once for all workers, so all else that they write is one for all as well; and what cannot be guarded keeps the
/// function on one core.
fn guarded(mut plan: Plan, program: &Program, checked: &Checked) -> Plan {
    if matches!(plan.strategy, Strategy::Alone | Strategy::Replicate) {
        return plan;
    }
    let repeated = lock::repeated(program, checked);
    let one = |o: &&ObjectPlan| match o.treatment {
        Treatment::Lock | Treatment::Transact => true,
        Treatment::Merge => repeated.contains(&o.id),
        _ => false,
    };
    let locked = plan.objects.iter().filter(one).map(|o| o.id).collect();
    let shared: BTreeSet<ObjectId> = lock::together(program, checked, &locked);
    let mut changed = BTreeSet::new();
    for o in plan.objects.iter_mut().filter(|o| shared.contains(&o.id)) {
        let (treatment, why) = match (lock::obstacle(program, checked, o.id), o.treatment) {
            (Some(why), _) => (Treatment::Alone, format!("{UNGUARDED}: {why}")),
            (None, Treatment::Lock | Treatment::Transact) => continue,
            (None, _) => (
                match plan.strategy {
                    Strategy::Transact => Treatment::Transact,
                    _ => Treatment::Lock,
                },
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
#[must_use]
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
pub(super) fn besides(plan: &Plan) -> Vec<String> {
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
#[must_use]
pub fn unguarded(plan: &Plan) -> bool {
    let kept = |o: &&ObjectPlan| o.treatment == Treatment::Alone;
    plan.objects
        .iter()
        .filter(kept)
        .any(|o| o.reason.contains(UNGUARDED))
}

/// That a function runs on one core, as its plan says.
pub(super) fn on_one_core(plan: &Plan, cores: usize) -> Error {
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
    Error {
        detail: Some(detail.join("\n")).filter(|_| kept.len() > 1),
        ..Error::no(what).help(help)
    }
}
