//! Programs as plans.
#![allow(dead_code)]

#[path = "../../../model/tests/support/mod.rs"]
mod models;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use millrace_check::Options;
use millrace_history::History;
use millrace_model::{Limits, Model};
use millrace_object::program::Program;
use millrace_place::{Strategy, Treatment};
use millrace_plan::plan::{KindPlan, ObjectPlan, PortPlan, Rule};
use millrace_plan::{Plan, PlanError, Wanted, plan};

/// Where a bundled function is.
pub fn source(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nfs");
    folder.join(name).join(name).with_extension("c")
}

/// A bundled function for 16 cores.
pub fn function(name: &str) -> Option<Plan> {
    Some(modelled(&source(name))?.plan("generic"))
}

/// A program of tests/programs for 16 cores.
pub fn program(name: &str) -> Option<Plan> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    Some(modelled(&folder.join(name).with_extension("c"))?.plan("generic"))
}

/// A program of tests/programs with these settings, for 16 cores.
pub fn program_with(name: &str, settings: &[(&str, &str)]) -> Option<Plan> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let source = folder.join(name).with_extension("c");
    Some(modelled_with(&source, settings)?.plan("generic"))
}

/// A program of tests/programs whose objects have these capacities, for 16 cores.
pub fn program_of(name: &str, capacities: &[(&str, u64)]) -> Option<Plan> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let source = folder.join(name).with_extension("c");
    let resized = |program: &mut Program| {
        for (object, capacity) in capacities {
            let mut named = program.objects.iter_mut();
            named.find(|o| o.name == *object).unwrap().capacity = *capacity;
        }
    };
    Some(modelled_as(&source, resized)?.plan("generic"))
}

/// What plans are made from.
pub struct Modelled {
    pub program: Program,
    pub model: Model,
    pub history: Arc<History>,
}

/// Compiles, proves and models; none, and a line that says why, if clang or Z3 is not here.
pub fn modelled(source: &Path) -> Option<Modelled> {
    modelled_with(source, &[])
}

/// The same with these settings.
pub fn modelled_with(source: &Path, settings: &[(&str, &str)]) -> Option<Modelled> {
    modelled_as(source, |program| {
        for (name, value) in settings {
            program.set_param(name, value).unwrap();
        }
    })
}

fn modelled_as(source: &Path, changed: impl Fn(&mut Program)) -> Option<Modelled> {
    let mut loaded = models::compile(source)?;
    changed(&mut loaded.program);
    let checked = millrace_check::check(&loaded.program, &Options::default()).unwrap();
    // A machine that is busy answers late, and a question without an answer is a path too many.
    let limits = Limits {
        time: Duration::from_secs(240),
        question: Duration::from_secs(60),
        ..Limits::default()
    };
    // Others plan the same functions.
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache/models");
    let model = millrace_model::kept::model(&loaded.program, &checked, &limits, Some(&kept)).0;
    let history = Arc::new(History::of(&loaded.program, &checked));
    let program = loaded.program;
    Some(Modelled {
        program,
        model,
        history,
    })
}

impl Modelled {
    /// The plan for 16 cores behind a NIC.
    pub fn plan(&mut self, nic: &str) -> Plan {
        let wanted = Wanted {
            cores: 16,
            nic: nic.to_owned(),
            history: Some(self.history.clone()),
            ..Wanted::default()
        };
        plan(&mut self.model, &self.program, &wanted).unwrap()
    }

    /// The plan for 16 cores with all state replicated.
    pub fn replicated(&mut self) -> Result<Plan, PlanError> {
        self.asked(Strategy::Replicate)
    }

    /// The plan for 16 cores by this strategy.
    pub fn asked(&mut self, strategy: Strategy) -> Result<Plan, PlanError> {
        let wanted = Wanted {
            cores: 16,
            strategy: Some(strategy),
            history: Some(self.history.clone()),
            ..Wanted::default()
        };
        plan(&mut self.model, &self.program, &wanted)
    }
}

/// What is planned for an object.
pub fn object<'a>(plan: &'a Plan, name: &str) -> &'a ObjectPlan {
    let found = plan.objects.iter().find(|o| o.name == name);
    found.unwrap_or_else(|| panic!("no object {name}"))
}

/// What is done with an object, and by which rule.
pub fn decided(plan: &Plan, name: &str) -> (Treatment, Rule) {
    let o = object(plan, name);
    (o.treatment, o.rule)
}

/// A TCP segment over IPv4.
pub fn tcp(from: [u8; 4], to: [u8; 4], sport: u16, dport: u16) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
    frame.extend(from);
    frame.extend(to);
    frame.extend(sport.to_be_bytes());
    frame.extend(dport.to_be_bytes());
    frame.extend([0; 16]);
    frame
}

/// What is planned for a port.
pub fn port<'a>(plan: &'a Plan, name: &str) -> &'a PortPlan {
    let found = plan.ports.iter().find(|p| p.name == name);
    found.unwrap_or_else(|| panic!("no port {name}"))
}

/// What is planned for a kind of packet.
pub fn kind<'a>(port: &'a PortPlan, name: &str) -> &'a KindPlan {
    let found = port.kinds.iter().find(|k| k.kind == name);
    found.unwrap_or_else(|| panic!("no kind {name}"))
}
