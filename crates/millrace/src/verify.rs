//! Is it the same on several workers? A function as it would run, against the same function on one.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use millrace_control::Exposed;
use millrace_dataplane::Module;
use millrace_dataplane::module::{Config, Entry, Homes};
use millrace_dataplane::port::InputOptions;
use millrace_model::Model;
use millrace_place::{Held, Placement, Strategy};
use millrace_plan::Plan;
use millrace_steer::Steering;
use millrace_verify::{
    Build, Captured, Case, Deal, Findings, Moving, Names, Schedule, Trace, TraceError, Wanted,
};

use crate::find::Found;
use crate::ports::Ports;
use crate::written::Proved;
use crate::{Answer, Asked, Error, Function, Make, place};

/// A function and its circumstances, which are the same for any number of workers.
pub struct Comparison<'a> {
    /// where it is: modules for workers are built from there
    pub found: &'a Found,
    /// how it is made on one worker
    pub make: &'a Make,
    /// made so
    pub function: &'a Function,
    /// proved, with what was set ([`Function::check`])
    pub proved: &'a Proved<'a>,
    /// names of its ports
    pub names: &'a [String],
    /// what is there at start
    pub entries: &'a [Entry],
    /// what random draws and the keys of steering come from
    pub seed: u64,
    /// in what order workers do their packets
    pub schedule: Schedule,
    /// buckets of the indirection table change their workers at drawn moments, where they can
    pub moving: Option<Moving>,
}

impl Comparison<'_> {
    /// Runs both sides over the trace and compares every verdict, every byte, and the state at the end. Where the plan
    /// keeps the function on one worker, or one is asked for, that is compared with itself. `observe` hears how many
    /// packets are done, and of what share of the trace that is if it is known.
    ///
    /// # Errors
    /// It would not run as is asked, the trace cannot be read, or a side cannot be made.
    pub fn run(
        &self,
        model: &mut Model,
        asked: &Asked<'_>,
        trace: &mut dyn Trace,
        observe: &mut dyn FnMut(u64, Option<f64>),
    ) -> Result<(Strategy, Findings), Error> {
        let dealt = self.dealt(model, asked)?;
        let (placement, workers) = (&dealt.placement, dealt.workers as usize);
        let entries = self.entries.to_vec();
        let entries = place::owned(placement, workers, &self.function.exposed, entries)?;
        let case = Case {
            program: self.proved.program,
            entry: self.function.entry,
            ports: self.names.to_vec(),
            config: Config {
                homes: Homes::of_placement(placement).map(Arc::new),
                ..self.function.state(self.seed, entries)
            },
            deal: &Deal {
                workers: dealt.workers,
                dispatch: &dealt.dispatch,
                placement: Placement::clone(placement),
                finder: { dealt.plan.as_ref() }
                    .filter(|_| workers > 1)
                    .map(|plan| plan.finder(&dealt.dispatch)),
                moving: self.moving.filter(|_| workers > 1),
            },
            apart: placement.apart,
            schedule: self.schedule,
            names: &Shown(&self.function.exposed),
        };
        let mut builder = Builder {
            of: self,
            failed: None,
        };
        let found = millrace_verify::verify(&case, trace, &mut builder, observe);
        // What stands in the way of a function's code is told as it was found.
        let mut findings = found.map_err(|e| builder.failed.take().unwrap_or_else(|| e.into()))?;
        let notes = dealt.plan.as_ref().map(|plan| notes(plan, &findings));
        findings.notes.extend(notes.into_iter().flatten());
        Ok((placement.strategy(), findings))
    }

    /// How the function is dealt out to workers, as it would run.
    fn dealt(&self, model: &mut Model, asked: &Asked<'_>) -> Result<Dealt, Error> {
        let objects = &self.proved.program.objects;
        let one = |plan| Dealt {
            workers: 1,
            dispatch: Vec::new(),
            placement: Arc::new(Placement::even(
                objects,
                1,
                vec![Held::Alone; objects.len()],
            )),
            plan,
        };
        if asked.cores == 1 {
            return Ok(one(None));
        }
        let arrangement = match self.proved.arrange(model, asked)? {
            // That a lock cannot guard what it should is an answer; what the plan keeps on one core is compared there.
            Answer::One(plan) if !place::unguarded(&plan) => return Ok(one(Some(*plan))),
            answer => answer.several(asked.cores)?,
        };
        let placement = arrangement.placement;
        Ok(Dealt {
            workers: asked.cores as u32,
            dispatch: place::dispatch(&placement, self.names.len(), asked.cores)?,
            placement,
            plan: arrangement.plan,
        })
    }
}

/// How a function is dealt out to workers.
struct Dealt {
    workers: u32,
    /// who gets packets, by port
    dispatch: Vec<Steering>,
    placement: Arc<Placement>,
    /// why, where it is not the user's decision
    plan: Option<Plan>,
}

/// Notes on the plan beside the findings.
fn notes(plan: &Plan, findings: &Findings) -> Vec<String> {
    let mut notes = Vec::new();
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

/// Builds the function with other capacities.
struct Builder<'a> {
    of: &'a Comparison<'a>,
    failed: Option<Error>,
}

impl Build for Builder<'_> {
    fn module(&mut self, wanted: &Wanted<'_>) -> Result<Arc<Module>, String> {
        let make = Make {
            placement: wanted.placement.cloned().map(Arc::new),
            yields: wanted.yields,
            noted: wanted.noted,
            ..self.of.make.with_capacities(wanted.capacities)
        };
        let function = self.of.found.load(&make, &mut |_| {});
        function.map(|f| f.module).map_err(|e| {
            let what = e.what.clone();
            self.failed = Some(e);
            what
        })
    }
}

/// Entries as people write them.
struct Shown<'a>(&'a Exposed);

impl Names for Shown<'_> {
    fn key(&self, object: usize, key: &[u8]) -> String {
        self.0.words(object, key, &[]).0
    }

    fn value(&self, object: usize, value: &[u8]) -> String {
        self.0.words(object, &[], value).1
    }
}

impl Ports {
    /// The packets of the inputs, as often as they are asked for; they end when `stop` is raised.
    ///
    /// # Errors
    /// One cannot be opened, or can be read once only.
    pub fn trace<'a>(
        &'a self,
        names: &'a [String],
        stop: &'static AtomicBool,
    ) -> Result<impl Trace + 'a, Error> {
        if self.inputs.iter().any(|w| w == "-") {
            return Err(Error::wrong("--in -: standard input can be read once only")
                .help("packets are gone through more than once: give a file"));
        }
        let sources = move || {
            let options = InputOptions {
                loops: Some(1),
                stop,
            };
            self.sources(names, &options)
        };
        sources()?;
        Ok(Captured(move || {
            sources().map_err(|e| TraceError {
                what: e.what,
                help: e.help.unwrap_or_default(),
            })
        }))
    }
}
