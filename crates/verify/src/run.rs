//! The whole: both sides through the trace, and what differs explained or shown.

use std::sync::Arc;

use millrace_dataplane::module::{Config, ModuleError};
use millrace_dataplane::runner::Timers;
use millrace_object::program::Program;
use millrace_place::Placement;

use crate::around;
use crate::compare::{Found, Kind, leaves};
use crate::deal::Deal;
use crate::findings::{Difference, Findings, Relaxed};
use crate::modules::{Build, Modules, Wanted, writes_packets};
use crate::probes::Named;
use crate::relax::{self, Fullness};
use crate::replica::{self, Numbered, Unlike};
use crate::schedule::Schedule;
use crate::show::Names;
use crate::sides::{Sides, Step};
use crate::state::{Elsewhere, StateFound};
use crate::trace::{Packet, Trace, TraceError};

/// Differences that are shown.
const SHOWN: usize = 8;
/// Packets between two looks at the observer.
const OBSERVE: u64 = 4096;

/// Input of a verification.
pub struct Case<'a> {
    /// the program, with the capacities of the sequential side
    pub program: &'a Program,
    /// which packet entry of the module
    pub entry: usize,
    /// the names of its ports
    pub ports: Vec<String>,
    /// the state at start; the time is the first packet's
    pub config: Config,
    /// how packets and state are dealt out
    pub deal: &'a Deal<'a>,
    /// how far apart in time (ns) packets may be that workers do at the same moment; none: as far as a window is
    pub apart: Option<u64>,
    /// in what order workers do their packets
    pub schedule: Schedule,
    /// how entries are written for people
    pub names: &'a dyn Names,
}

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A trace without packets.
    #[error("there are no packets in the trace")]
    Empty,
    /// The state cannot be made.
    #[error(transparent)]
    State(#[from] ModuleError),
    /// A module cannot be built.
    #[error("{0}")]
    Build(String),
}

/// How far it is: packets, and the share of the whole where that is known.
pub type Observe<'a> = &'a mut dyn FnMut(u64, Option<f64>);

/// Runs both sides over the trace and compares them.
///
/// # Errors
/// The trace cannot be read, or a side cannot be made.
pub fn verify(
    case: &Case<'_>,
    trace: &mut dyn Trace,
    build: &mut dyn Build,
    observe: Observe<'_>,
) -> Result<Findings, VerifyError> {
    let (placement, one) = (&case.deal.placement, case.deal.placement.for_one());
    let stale = case.deal.stale();
    let several = match case.deal.shares() || case.deal.replicates() || stale {
        true => placement,
        false => &one,
    };
    let mut module = |capacities: &[(String, u64)], placement: Option<&Placement>| {
        let wanted = Wanted {
            capacities,
            placement,
            yields: match case.schedule {
                Schedule::Seeded(seed) if placement.is_some_and(Placement::locks) => Some(seed),
                // What its packets read and wrote is noted, and says their order.
                _ if placement.is_some_and(Placement::transacts) => Some(0),
                _ => None,
            },
            noted: stale,
        };
        build.module(&wanted).map_err(VerifyError::Build)
    };
    let elephants = placement.elephants.as_ref();
    let replicas = elephants
        .filter(|_| case.deal.workers > 1)
        .map(|e| e.replicas.as_ref());
    let sequential = module(&[], None)?;
    let rewrites = writes_packets(case.program);
    let named = Named::learn(case, &sequential, rewrites, trace)?;
    let plain = Modules {
        sequential,
        parallel: module(&placement.parts(), Some(several))?,
        small: replicas.map(|r| module(&[], Some(r))).transpose()?,
        rewrites,
        named: Arc::new(named),
    };
    let relaxable = relax::may_differ(case.program, case.deal);
    // Workers that share state do not do the same again: what memory explains is explained at once.
    let once = case.deal.shares();
    if !(relaxable && once) {
        let mut first = Going::new(case, &plain, None)?;
        first.through(trace, observe, relaxable)?;
        if first.findings.differing == 0 {
            first.close();
        }
        if !relaxable || first.findings.differing == 0 {
            return first.look(trace);
        }
    }
    let packets = count(trace)?;
    let capacities = match relax::ample(case.program, case.deal, packets) {
        Ok(capacities) => capacities,
        Err(why) => {
            let mut all = Going::new(case, &plain, None)?;
            all.through(trace, observe, false)?;
            all.findings.notes.push(why);
            all.close();
            return all.look(trace);
        }
    };
    let ample = Modules {
        // Which numbers a packet may have is memory, too: here both sides have it divided.
        sequential: module(&capacities, Some(&one))?,
        parallel: module(&capacities, Some(several))?,
        small: replicas.map(|r| module(&capacities, Some(r))).transpose()?,
        rewrites: plain.rewrites,
        named: plain.named.clone(),
    };
    let mut both = Going::new(case, &plain, Some(&ample))?;
    both.through(trace, observe, false)?;
    both.close();
    both.look(trace)
}

/// How many packets a trace has.
fn count(trace: &mut dyn Trace) -> Result<u64, TraceError> {
    let mut pass = trace.open()?;
    let mut packets = 0;
    while pass.next()?.is_some() {
        packets += 1;
    }
    Ok(packets)
}

/// One time through the trace.
struct Going<'a, 'b> {
    case: &'b Case<'a>,
    modules: (&'b Modules, Option<&'b Modules>),
    sides: Option<(Sides<'a>, Option<Sides<'a>>)>,
    timers: Timers,
    findings: Findings,
    fullness: Fullness,
    /// the first packet that differs
    first: Option<u64>,
    clock: u64,
    ended: bool,
}

impl<'a, 'b> Going<'a, 'b> {
    fn new(
        case: &'b Case<'a>,
        plain: &'b Modules,
        ample: Option<&'b Modules>,
    ) -> Result<Self, VerifyError> {
        Ok(Self {
            case,
            modules: (plain, ample),
            sides: None,
            timers: Timers::new(&[], 0),
            findings: Findings {
                workers: case.deal.workers,
                schedule: case.schedule.name(),
                writers: (case.deal.shares() && !case.deal.transacts()).then_some(0),
                shares: vec![0; case.deal.workers as usize],
                ..Findings::default()
            },
            fullness: Fullness::default(),
            first: None,
            clock: 0,
            ended: false,
        })
    }

    /// Goes through the trace, to its end or to the first difference.
    fn through(
        &mut self,
        trace: &mut dyn Trace,
        observe: Observe<'_>,
        to_difference: bool,
    ) -> Result<(), VerifyError> {
        let mut pass = trace.open()?;
        let size = self.case.schedule.window();
        let mut window: Vec<Packet> = Vec::with_capacity(size);
        let mut number = 0;
        while let Some((port, time, wire, frame)) = pass.next()? {
            let time = time.max(self.clock);
            self.clock = time;
            if self.sides.is_none() {
                self.begin(time)?;
            }
            let begin = window.first().map_or(time, |p| p.time);
            if time - begin > self.case.apart.unwrap_or(u64::MAX) {
                self.work(&mut window);
            }
            if self.timers.due(time) {
                self.work(&mut window);
                for (moment, timer) in self.timers.take(time) {
                    if let Some((plain, ample)) = &mut self.sides {
                        plain.fire(timer, moment);
                        if let Some(ample) = ample {
                            ample.fire(timer, moment);
                        }
                    }
                }
            }
            window.push(Packet {
                number,
                port,
                time,
                wire,
                frame: frame.to_vec(),
            });
            number += 1;
            if window.len() >= size {
                self.work(&mut window);
            }
            if number % OBSERVE == 0 {
                observe(number, pass.share());
            }
            if self.ended || (to_difference && self.findings.differing > 0) {
                break;
            }
        }
        self.work(&mut window);
        if let Some((sides, _)) = &mut self.sides {
            for what in sides.beyond() {
                self.differs(Difference::of(Kind::Cycle, what));
            }
        }
        self.findings.packets = number;
        if self.sides.is_none() {
            return Err(VerifyError::Empty);
        }
        Ok(())
    }

    fn begin(&mut self, time: u64) -> Result<(), VerifyError> {
        let (plain, ample) = self.modules;
        let schedule = self.case.schedule;
        let ample = ample.map(|m| m.sides(self.case, schedule, time));
        let sides = (plain.sides(self.case, schedule, time)?, ample.transpose()?);
        self.sides = Some(sides);
        self.timers = Timers::new(plain.timers(), time);
        Ok(())
    }

    /// Both sides, or all four, do the packets of a window.
    fn work(&mut self, window: &mut Vec<Packet>) {
        let packets = std::mem::take(window);
        let Some((mut plain, mut ample)) = self.sides.take() else {
            return;
        };
        let steps = plain.work(&packets);
        let others = ample.as_mut().map(|ample| ample.work(&packets));
        let lost = packets.len() - steps.len();
        if lost > 0 {
            let what = format!("{lost} packets were not done by every side");
            self.differs(Difference::of(Kind::Verdict, what));
        }
        for (i, (step, packet)) in steps.iter().zip(&packets).enumerate() {
            if self.ended {
                break;
            }
            let worker = step.parallel.outcome.worker;
            if let Some(share) = self.findings.shares.get_mut(worker as usize) {
                *share += 1;
            }
            self.findings.compared += 1;
            self.findings.forwarded += u64::from(leaves(step.parallel.outcome.fate));
            if let Some(writers) = &mut self.findings.writers {
                *writers += u64::from(step.parallel.outcome.commit % 2 == 0);
            }
            let other = others.as_ref().and_then(|o| o.get(i));
            match other {
                None => self.judge(step, packet, None),
                Some(other) => {
                    if matches!(other.found, Found::Differs(_)) {
                        let now = packet.time;
                        let none_left = ample
                            .as_mut()
                            .and_then(|a| relax::exhausted(self.case.program, a, now));
                        if let Some(object) = none_left {
                            self.stop_at(packet, &object);
                            break;
                        }
                        self.judge(other, packet, None);
                    } else if matches!(step.found, Found::Differs(_)) {
                        let (program, deal) = (self.case.program, self.case.deal);
                        let fullness = &mut self.fullness;
                        let names = fullness.names(program, deal, &mut plain, worker, packet.time);
                        if names.is_empty() {
                            let why = "with memory for everything both sides agree, but nothing was full: ";
                            self.judge(step, packet, Some(why));
                        } else {
                            self.fullness.count(&names, 1, 0);
                        }
                    }
                }
            }
        }
        self.sides = Some((plain, ample));
    }

    /// The sequential program itself has nothing left to lease: what it refuses from here on, a program with
    /// more numbers would not have refused.
    fn stop_at(&mut self, packet: &Packet, object: &str) {
        self.ended = true;
        self.findings.compared -= 1;
        self.findings.notes.push(format!(
            "compared up to packet {}: there the sequential program has leased all of `{object}`, which the \
             workers have as often as there are workers",
            packet.number
        ));
    }

    fn judge(&mut self, step: &Step, packet: &Packet, prefix: Option<&str>) {
        let Found::Differs(kind) = step.found else {
            return;
        };
        if self.first.is_none() {
            self.first = Some(packet.number);
        }
        let shown = self.findings.differences.len() < SHOWN;
        if shown {
            let difference = around::difference(self.case, kind, step, packet, prefix);
            self.differs(difference);
        } else {
            self.findings.differing += 1;
        }
    }

    fn differs(&mut self, difference: Difference) {
        self.findings.differing += 1;
        if self.findings.differences.len() < SHOWN {
            self.findings.differences.push(difference);
        }
    }

    /// Compares the state, once.
    fn close(&mut self) {
        let Some((mut sides, mut others)) = self.sides.take() else {
            return;
        };
        if !self.ended {
            self.end(&mut sides, others.as_mut());
        }
        let leases = sides.bijection.packets;
        if leases > 0 {
            self.findings.relaxations.push(Relaxed {
                name: "lease",
                packets: leases,
                entries: 0,
            });
        }
        let behind = sides.behind();
        if behind > 0 {
            self.findings.relaxations.push(Relaxed {
                name: "staleness",
                packets: behind,
                entries: 0,
            });
        }
        self.findings.redirected = sides.parallel.answers.redirected;
        self.findings.transactions = sides.transactions();
        for (name, (packets, entries)) in &self.fullness.counts {
            self.findings.relaxations.push(Relaxed {
                name,
                packets: *packets,
                entries: *entries,
            });
        }
    }

    /// State around the first difference, with which the findings are complete.
    fn look(mut self, trace: &mut dyn Trace) -> Result<Findings, VerifyError> {
        self.close();
        self.findings.equal = self.findings.differing == 0;
        if !self.findings.equal && self.modules.1.is_some() {
            let note = "these differences remain when every table has room for everything";
            self.findings.notes.push(note.into());
        }
        if self.first.is_some() && self.case.deal.shares() {
            let note = "the workers shared state, and another run would do otherwise: what was there around the \
                        first difference is not shown";
            self.findings.notes.push(note.into());
        } else if let Some(number) = self.first {
            // Which entries matter shows with the memory under which the sides differ.
            let modules = self.modules.1.unwrap_or(self.modules.0);
            let found = around::look(self.case, modules, trace, number)?;
            let differences = self.findings.differences.iter_mut();
            let mut here =
                differences.filter(|d| d.packet.as_ref().is_some_and(|p| p.number == number));
            if let (Some(difference), Some(found)) = (here.next(), found) {
                found.put(difference);
            }
        }
        Ok(self.findings)
    }

    fn end(&mut self, sides: &mut Sides<'a>, others: Option<&mut Sides<'a>>) {
        let (program, deal, now) = (self.case.program, self.case.deal, self.clock);
        sides.stop(now);
        let found = sides.state(program, deal, now);
        self.findings.entries = found.entries;
        let lying = sides.lying(program, deal, now);
        self.findings.found_by_index = lying.found;
        for elsewhere in lying.elsewhere {
            self.lies_elsewhere(&elsewhere);
        }
        let numbered = sides.parallel.numbered.as_ref();
        self.findings.rows = numbered.map(Numbered::rows);
        let moves = numbered.and_then(Numbered::moves);
        (self.findings.promotions, self.findings.demotions) = moves.unzip();
        self.findings.foreseen = moves.and(numbered.map(Numbered::foreseen));
        self.findings.moved = sides.parallel.table.as_ref().map(|t| t.seen);
        for unlike in replica::unlike(program, deal, &mut sides.parallel, now) {
            self.unlike(&unlike);
        }
        self.findings.not_compared = found.not_compared.clone();
        let Some(others) = others else {
            return self.entries(&found, "");
        };
        others.stop(now);
        let ample = others.state(program, deal, now);
        if ample.differing > 0 {
            return self.entries(&ample, "");
        }
        for difference in &found.differences {
            let workers = difference.parallel.iter().map(|p| p.0);
            let everybody: Vec<u32> = (0..deal.workers).collect();
            let mut workers: Vec<u32> = workers.collect();
            if workers.is_empty() {
                workers = everybody;
            }
            let mut names = std::collections::BTreeSet::new();
            for worker in workers {
                names.extend(self.fullness.names(program, deal, sides, worker, now));
            }
            if names.is_empty() {
                return self.entries(&found, "nothing was full: ");
            }
            self.fullness.count(&names, 0, 1);
        }
        let shown = found.differences.len() as u64;
        let rest = found.differing.saturating_sub(shown);
        if let Some(name) = self.fullness.counts.keys().next().copied() {
            self.fullness.count(&[name].into(), 0, rest);
        }
    }

    fn unlike(&mut self, unlike: &Unlike) {
        let what = match unlike {
            Unlike::Object { object, worker } => {
                let object = self.case.program.objects.get(*object);
                let name = object.map_or("?", |o| o.name.as_str());
                format!(
                    "the replica of {name} at worker {worker} is not that of worker 0, byte for byte"
                )
            }
            Unlike::Stopped(fault) => fault.to_string(),
            Unlike::Kept(what) => format!("replicas cannot be compared: {what}"),
        };
        self.differs(Difference::of(Kind::State, what));
    }

    fn lies_elsewhere(&mut self, e: &Elsewhere) {
        let object = self.case.program.objects.get(e.object);
        let name = object.map_or("?", |o| o.name.as_str());
        let key: String = e.key.iter().map(|b| format!("{b:02x}")).collect();
        let what = format!(
            "an entry of {name} lies at worker {}, and its key, hex:{key}, says index {} of the table, which leads to \
             worker {}",
            e.at, e.index, e.worker
        );
        self.differs(Difference::of(Kind::State, what));
    }

    fn entries(&mut self, found: &StateFound, prefix: &str) {
        let shown = found.differences.len() as u64;
        for difference in &found.differences {
            let difference = around::entry(self.case, difference, prefix);
            self.differs(difference);
        }
        self.findings.differing += found.differing.saturating_sub(shown);
    }
}
