//! The code of both sides, and who makes it.

use std::sync::Arc;

use millrace_check::facts::{Access, ArgFact, Op, Step};
use millrace_check::{Options, check};
use millrace_dataplane::module::{Config, Module, ModuleError};
use millrace_object::helper::{self, Arg};
use millrace_object::insn::Insn;
use millrace_object::program::Program;
use millrace_place::Placement;

use crate::copy::Start;
use crate::lane::Lane;
use crate::probes::Named;
use crate::replica;
use crate::run::Case;
use crate::schedule::Schedule;
use crate::sides::Sides;

/// How a module is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// capacities in place of the declared ones, by object
    pub capacities: &'a [(String, u64)],
    /// how objects live on several workers; none: on one. The parts' capacities stand above
    pub placement: Option<&'a Placement>,
    /// threads are to be switched where they touch shared state, at places that this seed chooses
    pub yields: Option<u64>,
    /// what packets see of other workers' parts of numbers is to be noted
    pub noted: bool,
}

/// Makes modules of the program.
pub trait Build {
    /// The module that is wanted.
    ///
    /// # Errors
    /// It cannot be built.
    fn module(&mut self, wanted: &Wanted<'_>) -> Result<Arc<Module>, String>;
}

/// Whether a program may write into packets; one that is not proved safe may.
#[must_use]
pub fn writes_packets(program: &Program) -> bool {
    let Ok(checked) = check(program, &Options::default()) else {
        return true;
    };
    let packet = |arg: &ArgFact| {
        matches!(
            arg,
            ArgFact::Memory {
                access: Access::Packet,
                ..
            }
        )
    };
    let writes = |step: &Step| match step.op {
        Op::Plain(Insn::Store { .. } | Insn::Atomic { .. }) => step.access == Some(Access::Packet),
        Op::Plain(Insn::Call { helper }) => helper::by_number(helper).is_none_or(|h| {
            // Of calls that are handed a part of the packet, those that only read a key or a value are the rule.
            let reads =
                |a: &Arg| matches!(a, Arg::Key | Arg::Value | Arg::Read { .. } | Arg::In(_));
            let given = step.args.iter().zip(h.args);
            let written = given
                .filter(|(fact, arg)| packet(fact) && !reads(arg))
                .count();
            written > 0 || h.effects.moves_packet || h.effects.writes_packet
        }),
        Op::Plain(Insn::CallRegister { .. }) => true,
        _ => false,
    };
    let mut steps = checked.running(program).flat_map(|r| &r.flow.steps);
    steps.any(|step| step.reached && writes(step))
}

/// The code of both sides.
pub struct Modules {
    pub sequential: Arc<Module>,
    pub parallel: Arc<Module>,
    /// that of heavy keys, where only these are replicated
    pub small: Option<Arc<Module>>,
    /// whether the program may write into packets
    pub rewrites: bool,
    /// where packets name leased numbers
    pub named: Arc<Named>,
}

/// The sequential program at start.
///
/// # Errors
/// There is no memory for its state.
pub fn alone(
    case: &Case<'_>,
    module: &Arc<Module>,
    rewrites: bool,
    time: u64,
) -> Result<Lane<'static>, ModuleError> {
    let config = Config {
        time,
        ..case.config.clone()
    };
    let mut lane = Lane::sequential(&Start {
        module,
        config: &config,
        entry: case.entry,
        ports: case.ports.len() as u32,
        rewrites,
        program: case.program,
        small: None,
    })?;
    lane.start(time, &[]);
    lane.take_records();
    Ok(lane)
}

impl Modules {
    /// Both sides at start.
    ///
    /// # Errors
    /// There is no memory for their state.
    pub fn sides<'a>(
        &self,
        case: &Case<'a>,
        schedule: Schedule,
        time: u64,
    ) -> Result<Sides<'a>, ModuleError> {
        let config = Config {
            time,
            ..case.config.clone()
        };
        let start = |module| Start {
            module,
            config: &config,
            entry: case.entry,
            ports: case.ports.len() as u32,
            rewrites: self.rewrites,
            program: case.program,
            small: None,
        };
        let one = start(&self.sequential);
        let other = Start {
            small: replica::small(case.deal, self.small.as_ref(), &config),
            ..start(&self.parallel)
        };
        let mut sides = Sides::new(&one, &other, (case.program, case.deal), schedule)?;
        sides.named = self.named.clone();
        sides.numbers = case
            .program
            .objects
            .iter()
            .map(|o| (o.first, o.capacity))
            .collect();
        sides.start(case.program, case.deal, time);
        Ok(sides)
    }

    /// Periods of the timers, ns.
    #[must_use]
    pub fn timers(&self) -> &[u64] {
        self.sequential.timers()
    }
}
