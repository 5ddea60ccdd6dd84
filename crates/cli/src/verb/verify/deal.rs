//! How `run` would have a function on a number of cores, as `verify` takes it.

use std::sync::Arc;

use millrace_check::Checked;
use millrace_dataplane::module::{Entry, Homes};
use millrace_model::Model;
use millrace_object::program::Program;
use millrace_place::{Held, Placement, Strategy};
use millrace_plan::Plan;
use millrace_steer::Steering;
use millrace_verify::{Deal, Findings};

use super::Verify;
use crate::failure::Failure;
use crate::function::Function;
use crate::parallel::{self, Answer, Arrangement, arranged, planned};
use crate::strategy::Wished;

/// How a function is dealt out to workers.
pub struct Planned {
    workers: u32,
    /// who gets packets, by port
    dispatch: Vec<Steering>,
    placement: Arc<Placement>,
    how: How,
}

/// As `run` has it.
enum How {
    /// on several workers
    Several(Box<Arrangement>),
    /// on one, for that is what was asked, or what the plan says
    One(Option<Box<Plan>>),
}

/// Asks what `run` asks.
///
/// # Errors
/// `run` would not run it so.
pub fn planned(
    of: &Verify,
    model: &mut Model,
    program: &Program,
    checked: &Checked,
    ports: &[String],
    cores: u32,
) -> Result<Planned, Failure> {
    let one = |plan| Planned {
        workers: 1,
        dispatch: Vec::new(),
        placement: Arc::new(Placement::even(
            &program.objects,
            1,
            vec![Held::Alone; program.objects.len()],
        )),
        how: How::One(plan),
    };
    if cores == 1 || of.strategy == Wished::SEQUENTIAL {
        return Ok(one(None));
    }
    let mut secret = [0; 32];
    for (place, byte) in secret.iter_mut().zip(of.seed.to_le_bytes()) {
        *place = byte;
    }
    let asked = parallel::Asked {
        cores: cores as usize,
        strategy: of.strategy,
        steer: &of.steer,
        nic: &of.nic,
        trace: None,
        secret: Some(secret),
        built: false,
        budget: None,
    };
    let arrangement = match arranged(model, program, checked, &asked)? {
        Answer::Several(arrangement) => arrangement,
        // That a lock cannot guard what it should is an answer; what the plan keeps on one core is compared there.
        Answer::One(plan) if planned::unguarded(&plan) => {
            return Err(planned::on_one_core(&plan, cores as usize));
        }
        Answer::One(plan) => return Ok(one(Some(plan))),
    };
    Ok(Planned {
        workers: cores,
        dispatch: arrangement.dispatch(ports.len(), cores as usize)?,
        placement: arrangement.placement.clone(),
        how: How::Several(arrangement),
    })
}

impl Planned {
    fn several(&self) -> Option<&Arrangement> {
        match &self.how {
            How::Several(arrangement) => Some(arrangement),
            How::One(_) => None,
        }
    }

    fn plan(&self) -> Option<&Plan> {
        match &self.how {
            How::Several(arrangement) => arrangement.plan.as_ref(),
            How::One(plan) => plan.as_deref(),
        }
    }

    /// Where packets come home that carry leased numbers.
    pub fn homes(&self) -> Option<Arc<Homes>> {
        self.several().and_then(Arrangement::homes)
    }

    /// How far apart in time packets may be that workers do at the same moment, ns.
    pub fn apart(&self) -> Option<u64> {
        self.placement.apart
    }

    /// The distribution of packets.
    pub fn deal(&self) -> Deal<'_> {
        let plan = self.several().and_then(|a| a.plan.as_ref());
        Deal {
            workers: self.workers,
            dispatch: &self.dispatch,
            placement: Placement::clone(&self.placement),
            finder: plan.map(|plan| plan.finder(&self.dispatch)),
        }
    }

    /// Refuses what `run` refuses to have there at start.
    ///
    /// # Errors
    /// Entries of an object that is divided.
    pub fn allow_contents(&self, function: &Function, entries: &[Entry]) -> Result<(), Failure> {
        match self.several() {
            Some(several) => {
                several.allow_contents(&function.exposed, entries, self.workers as usize)
            }
            None => Ok(()),
        }
    }

    /// How the whole runs.
    pub fn strategy(&self) -> Strategy {
        self.placement.strategy()
    }

    /// Further notes on the plan.
    pub fn notes(&self, findings: &Findings) -> Vec<String> {
        let mut notes = Vec::new();
        let Some(plan) = self.plan() else {
            return notes;
        };
        for a in &plan.assumptions {
            let (name, value) = (&a.parameter, a.value);
            notes.push(format!(
                "the plan takes {name} to be {value}: {}",
                a.because
            ));
        }
        if plan.strategy == Strategy::Alone {
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
