//! Traffic that is known before it comes: what the strategies make of it decides how a function runs.

use millrace_dataplane::port::vnic::{Rate, Settings};
use millrace_model::Model;
use millrace_place::Strategy;
use millrace_plan::{Plan, Wanted};
use millrace_steer::sequence::MAX_CORES;

use crate::cost::{Frames, Traced};
use crate::find::Found;
use crate::ports::{NEVER, Ports};
use crate::written::Proved;
use crate::{Make, seed};

/// A worker does so many packets a second of any function that a plan divides; fewer are no reason to measure.
const SURE: f64 = 1e6;
/// By how much, as a part, the heaviest bucket must be more than an even share.
const MARGIN: f64 = 0.05;

/// Packets that a software NIC is going to receive.
pub struct Foreseen<'a> {
    /// the function that is measured
    pub found: &'a Found,
    /// how it is made
    pub make: &'a Make,
    /// the NIC's capture
    pub traffic: &'a Traffic,
    /// hears what is done, in lines: measuring takes seconds
    pub told: &'a dyn Fn(&str),
}

/// The capture of a software NIC, and how fast it comes.
pub struct Traffic {
    captures: Ports,
    /// packets a second, over all workers; none: as they are taken
    rate: Option<f64>,
    charged_ns: f64,
}

impl Traffic {
    /// Packets that these ports are going to receive, as far as their words say it: one software NIC that leaves open who gets which
    /// packet, and that may be measured (`measure=off` is not set).
    #[must_use]
    pub fn of(ports: &Ports) -> Option<Self> {
        let [word] = ports.receiving() else {
            return None;
        };
        let rest = word.strip_prefix("vnic:")?;
        // What is wrong with a word is said where it is opened.
        let settings = Settings::parse(rest, 1).ok()?;
        if !settings.plain() || !settings.measure {
            return None;
        }
        let split = settings.split.or(ports.split.clone());
        Some(Self {
            captures: Ports::captures(&[settings.file], split.as_ref()),
            rate: match settings.rate {
                Rate::Taken => None,
                Rate::PerSecond(rate) => Some(rate),
            },
            charged_ns: settings.dispatch,
        })
    }
}

impl Proved<'_> {
    /// The plan that is measured to be the fastest for the traffic, where that may be another one than `plan`: the heaviest bucket of the
    /// indirection table has more of the packets than a worker's even share, so that no table helps; or packets are under a
    /// lock, or on one worker. And why, in lines. `plan` if it is not, or if nothing can be measured.
    pub(super) fn foreseen(
        &self,
        plan: Plan,
        model: &mut Model,
        wanted: &Wanted,
        foreseen: &Foreseen<'_>,
    ) -> (Plan, Vec<String>) {
        let (name, captures) = (&self.program.name, &foreseen.traffic.captures);
        let names = captures.names(&self.program.ports);
        let frames = names.and_then(|names| Frames::read(captures, &names, &NEVER));
        let Ok(frames) = frames else {
            return (plan, Vec::new());
        };
        let Some(why) = self.doubt(&plan, &frames, foreseen.traffic.rate) else {
            return (plan, Vec::new());
        };
        (foreseen.told)(&format!(
            "{name}: {why}: what strategies make of them is measured"
        ));
        let traced = Traced {
            found: foreseen.found,
            make: foreseen.make,
            ports: captures,
            charged_ns: foreseen.traffic.charged_ns,
        };
        let mut quiet = |_: &str| {};
        match self.measured(plan.clone(), model, wanted, &traced, &mut quiet) {
            // Who asked for several workers gets them.
            Ok(found) if found.strategy != Strategy::Alone => {
                let lines = figures(&found, &plan);
                (found, lines)
            }
            Ok(_) => (plan, vec![format!("{name}: one core would be as fast")]),
            Err(error) => {
                let why = format!("{name}: nothing could be measured: {}", error.what);
                (plan, vec![why])
            }
        }
    }

    /// Why another plan may be faster for these packets; none if hardly any may.
    fn doubt(&self, plan: &Plan, frames: &Frames, rate: Option<f64>) -> Option<String> {
        if self.built || plan.cores > u32::from(MAX_CORES) {
            return None;
        }
        let rate = rate.unwrap_or(f64::INFINITY);
        // Of a mixed plan, what is locked may be replicated alone; whoever measures finds out.
        let serves = || {
            if plan.strategy == Strategy::Mixed {
                return true;
            }
            let history = self.history();
            history.refusals.is_empty() && history.touches()
        };
        if !matches!(plan.strategy, Strategy::Shard) {
            let slow = matches!(
                plan.strategy,
                Strategy::Lock | Strategy::Mixed | Strategy::Alone
            );
            return (slow && rate > SURE && serves()).then(|| {
                format!(
                    "its plan is {}, and its state could be replicated",
                    plan.strategy.name()
                )
            });
        }
        let steering = plan.steering(plan.ports.len().max(1), seed::keys()).ok()?;
        let mut loads = plan.loads();
        for (frame, port) in frames.all() {
            loads.add(&steering, port as usize, frame);
        }
        let (heaviest, even) = (loads.heaviest(), 1.0 / f64::from(plan.cores.max(1)));
        let more = heaviest > even * (1.0 + MARGIN) && heaviest * rate > SURE && serves();
        more.then(|| {
            format!(
                "the heaviest bucket has {:.1} % of the packets, a worker's even share is {:.1} %",
                heaviest * 100.0,
                even * 100.0
            )
        })
    }
}

/// What was measured, and what is to be expected of the plan that was taken, beside the one that was found before.
fn figures(taken: &Plan, before: &Plan) -> Vec<String> {
    let Some(measured) = &taken.measured else {
        return Vec::new();
    };
    let rate = |plan: &Plan| {
        let found = taken.prediction(plan.strategy)?;
        Some(format!("{} {:.2} Mpps", plan.strategy.name(), found.mpps))
    };
    let mut rates: Vec<String> = rate(taken).into_iter().collect();
    if before.strategy != taken.strategy {
        rates.extend(rate(before));
    }
    let mut figures = vec![format!("d {:.1} ns", measured.dispatch_ns)];
    for work in &measured.strategies {
        if work.strategy != taken.strategy {
            continue;
        }
        let own = work.heavy.as_ref().map_or(work.packet_ns, |h| h.packet_ns);
        match work.replay_ns {
            Some(row) => figures.push(format!("c1 {own:.1} ns, c2 {row:.1} ns")),
            None => figures.push(format!("c {own:.1} ns")),
        }
    }
    vec![format!(
        "{}: predicted on {} cores: {} ({})",
        taken.name,
        taken.cores,
        rates.join(", "),
        figures.join(", ")
    )]
}
