//! All of it: every path from its assignment, then packets alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use millrace_dataplane::module::Module;
use millrace_model::Model;
use millrace_model::expr::print::Printer;
use millrace_model::layout::Layout;
use millrace_object::program::{ObjectId, Program, Role};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::chart::Chart;
use crate::findings::{Difference, Findings, Rest};
use crate::judge::{Judged, judge};
use crate::packets::Packets;
use crate::pair::{Happened, Pair, hex};
use crate::predict::Disagreement;
use crate::trial::{Case, Content, Seed, Trial, takes_packets, with_contents};
use crate::witness::{START, case};

/// Differences that are told; the others are counted.
const TOLD: usize = 20;
/// Most settings of parameters under which packets are sent.
const SETTINGS: usize = 4;
/// How many packets come between two firings of each timer.
const TIMER: u64 = 64;

/// How much to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// packets to send one after another
    pub packets: u64,
    /// of the generator
    pub seed: u64,
    /// frames that packets are made from, besides those of the paths
    pub frames: Vec<Vec<u8>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            packets: 4000,
            seed: 1,
            frames: Vec::new(),
        }
    }
}

struct Validation<'a> {
    program: &'a Program,
    module: &'a Arc<Module>,
    charts: Vec<Chart<'a>>,
    findings: Findings,
}

/// Holds a model against executions of its program: of the module that was emitted from it, and of the
/// interpreter.
#[must_use]
pub fn validate(
    program: &Program,
    model: &Model,
    module: &Arc<Module>,
    options: &Options,
) -> Findings {
    let mut v = Validation {
        program,
        module,
        charts: model.entries.iter().map(Chart::new).collect(),
        findings: Findings {
            name: program.name.clone(),
            exhaustive: model.exhaustive(),
            paths: model.entries.iter().map(|e| e.paths.len()).sum(),
            seed: options.seed,
            ..Findings::default()
        },
    };
    let cases = v.seeded();
    v.alone(&cases, options);
    v.findings
}

impl Validation<'_> {
    /// The number of a path in the report: over all entries, from 1.
    fn number(&self, entry: usize, path: usize) -> usize {
        let before = self.charts.iter().take(entry);
        before.map(|c| c.entry.paths.len()).sum::<usize>() + path + 1
    }

    fn guard(&self, entry: usize, path: usize) -> Vec<String> {
        let Some(e) = self.charts.get(entry).map(|c| c.entry) else {
            return Vec::new();
        };
        let Some(p) = e.paths.get(path) else {
            return Vec::new();
        };
        let printer = Printer {
            arena: &e.arena,
            layout: &Layout::of(&e.arena, &p.guard),
        };
        p.guard.iter().map(|g| printer.text(*g)).collect()
    }

    fn rest(&self, entry: usize, path: usize, why: Option<String>) -> Rest {
        Rest {
            entry: self.function(entry),
            path: self.number(entry, path),
            guard: self.guard(entry, path),
            why,
        }
    }

    fn function(&self, entry: usize) -> String {
        let chart = self.charts.get(entry);
        chart.map_or(String::new(), |c| c.entry.function.clone())
    }

    fn differ(&mut self, from: &'static str, trial: &Trial, path: Option<usize>, d: Disagreement) {
        self.findings.differing += 1;
        if self.findings.differences.len() >= TOLD {
            return;
        }
        let difference = Difference {
            entry: self.function(trial.entry),
            path: path.map(|p| self.number(trial.entry, p)),
            guard: path.map_or_else(Vec::new, |p| self.guard(trial.entry, p)),
            what: d.what,
            predicted: d.predicted,
            happened: d.happened,
            from,
            packet: hex(&trial.packet),
            port: trial.port,
            time: trial.time,
        };
        self.findings.differences.push(difference);
    }

    /// Runs a trial and judges it. None if the executions did not agree, which is told.
    fn run(
        &mut self,
        from: &'static str,
        program: &Program,
        pair: &mut Pair<'_>,
        trial: &Trial,
    ) -> Option<(Judged, Happened)> {
        let happened = match pair.run(trial) {
            Ok(happened) => happened,
            Err(why) => {
                let d = Disagreement {
                    what: "execution",
                    predicted: "emitted code and interpreter do the same".to_owned(),
                    happened: why,
                };
                self.differ(from, trial, None, d);
                return None;
            }
        };
        let chart = self.charts.get(trial.entry)?;
        let judged = judge(program, chart, trial, &happened, pair);
        Some((judged, happened))
    }

    /// Tells what a judgement says.
    fn tell(&mut self, from: &'static str, trial: &Trial, judged: &Judged) {
        for d in &judged.disagreements {
            self.differ(from, trial, judged.path, d.clone());
        }
        if judged.outside {
            if self.all(trial.entry) {
                let d = Disagreement {
                    what: "guards",
                    predicted: "one path's guard holds".to_owned(),
                    happened: "none does".to_owned(),
                };
                self.differ(from, trial, None, d);
            } else {
                self.findings.outside += 1;
            }
        }
    }

    /// Whether an entry's paths are all.
    fn all(&self, entry: usize) -> bool {
        let chart = self.charts.get(entry);
        chart.is_some_and(|c| c.entry.outcome == millrace_model::model::Outcome::Exhaustive)
    }

    /// Every path from its assignment. The cases, by path.
    fn seeded(&mut self) -> Vec<Case> {
        let mut cases = Vec::new();
        for entry in 0..self.charts.len() {
            let paths = self.charts.get(entry).map_or(0, |c| c.entry.paths.len());
            let made: Vec<_> = match self.charts.get(entry) {
                Some(chart) => (0..paths)
                    .map(|p| case(self.program, entry, chart, p))
                    .collect(),
                None => continue,
            };
            for (path, case) in made.iter().enumerate() {
                let why = match case {
                    Err(why) => Some(why.clone()),
                    Ok(case) => self.drive(entry, path, case, &made),
                };
                match why {
                    None => self.findings.driven += 1,
                    Some(why) => {
                        let rest = self.rest(entry, path, Some(why));
                        self.findings.not_driven.push(rest);
                    }
                }
            }
            cases.extend(made.into_iter().flatten());
        }
        cases
    }

    /// Runs a case; why it did not take the path.
    fn drive(
        &mut self,
        entry: usize,
        path: usize,
        case: &Case,
        others: &[Result<Case, String>],
    ) -> Option<String> {
        let program = with_contents(self.program, &case.contents);
        let mut seeds = case.seeds.clone();
        let mut last = None;
        // A sum that an addition answers is known only when it has been added to.
        for attempt in 0..2 {
            let mut pair = match Pair::new(&program, self.module, case.trial.time) {
                Ok(pair) => pair,
                Err(why) => return Some(why),
            };
            if let Some(why) = self.prepare(&mut pair, entry, case, &seeds, others) {
                return Some(why);
            }
            let Some((judged, happened)) = self.run("seeded", &program, &mut pair, &case.trial)
            else {
                return Some("emitted code and interpreter differ".to_owned());
            };
            let took = judged.path;
            let again = attempt == 0 && took != Some(path) && lowered(&mut seeds, &happened);
            if !again {
                self.tell("seeded", &case.trial, &judged);
                if took == Some(path) {
                    return None;
                }
                last = Some(match took {
                    Some(other) => {
                        format!("its assignment leads to path {}", self.number(entry, other))
                    }
                    None => "its assignment leads to no path".to_owned(),
                });
                break;
            }
        }
        last
    }

    /// Puts the state of a case there; why that cannot be done.
    fn prepare(
        &self,
        pair: &mut Pair<'_>,
        entry: usize,
        case: &Case,
        seeds: &[Seed],
        others: &[Result<Case, String>],
    ) -> Option<String> {
        let is_ring = |object: ObjectId| {
            let o = self.program.objects.get(object.0);
            o.is_some_and(|o| o.kind.name == "ringbuf")
        };
        let rings = seeds.iter().filter_map(|s| match s {
            Seed::Full { object, .. } if is_ring(*object) => Some(*object),
            _ => None,
        });
        let rings: Vec<ObjectId> = rings.collect();
        for ring in &rings {
            // Nobody outside writes to a ring: another path of the program does.
            let chart = self.charts.get(entry);
            let paths = chart.into_iter().flat_map(|c| &c.entry.paths).zip(others);
            let by = paths.filter_map(|(p, other)| {
                let appends = p.accesses.iter().any(|a| {
                    a.object == *ring && matches!(a.outcome, Some("reserved" | "appended"))
                });
                let other = other.as_ref().ok()?;
                (appends && other.contents == case.contents).then_some(other)
            });
            let Some(by) = by.into_iter().next() else {
                return Some("no other path fills the ring".to_owned());
            };
            if let Err(why) = pair.fill(*ring, by) {
                return Some(why);
            }
        }
        let rest = |s: &&Seed| !matches!(s, Seed::Full { object, .. } if is_ring(*object));
        seeds.iter().filter(rest).find_map(|s| pair.seed(s).err())
    }

    /// Packets one after another, from empty state, under each setting.
    fn alone(&mut self, cases: &[Case], options: &Options) {
        let mut settings: Vec<Vec<Content>> = vec![Vec::new()];
        for case in cases {
            let params = self.params(&case.contents);
            if settings.len() < SETTINGS && !settings.contains(&params) {
                settings.push(params);
            }
        }
        let mut pool: Vec<Vec<u8>> = cases
            .iter()
            .map(|c| c.trial.packet.clone())
            .filter(|p| !p.is_empty())
            .collect();
        pool.extend(options.frames.iter().cloned());
        let mut reached = BTreeSet::new();
        let each = options.packets.div_ceil(settings.len() as u64);
        for (i, contents) in settings.iter().enumerate() {
            let random = ChaCha8Rng::seed_from_u64(options.seed.wrapping_add(i as u64));
            let ports = match self.program.ports.len() {
                0 => 3,
                n => n as u32,
            };
            let packets = Packets::new(random, pool.clone(), ports);
            let most = each.min(options.packets - self.findings.packets);
            self.round(contents, packets, most, &mut reached);
        }
        let all: BTreeMap<usize, usize> = (0..self.charts.len())
            .map(|e| (e, self.charts.get(e).map_or(0, |c| c.entry.paths.len())))
            .collect();
        for (entry, paths) in all {
            for path in (0..paths).filter(|p| !reached.contains(&(entry, *p))) {
                let rest = self.rest(entry, path, None);
                self.findings.not_reached.push(rest);
            }
        }
        self.findings.reached = reached.len();
    }

    /// The contents that parameters have, other globals being as at start.
    fn params(&self, contents: &[Content]) -> Vec<Content> {
        let settable = |object: &ObjectId| {
            let o = self.program.objects.get(object.0);
            o.is_some_and(|o| o.settable)
        };
        contents
            .iter()
            .filter(|c| settable(&c.0))
            .cloned()
            .collect()
    }

    fn round(
        &mut self,
        contents: &[Content],
        mut packets: Packets<ChaCha8Rng>,
        most: u64,
        reached: &mut BTreeSet<(usize, usize)>,
    ) {
        let program = with_contents(self.program, contents);
        let mut now = START;
        let of_role = |wanted: fn(Role) -> bool| -> Vec<usize> {
            let entries = program.entries.iter().enumerate();
            entries
                .filter(|(_, e)| wanted(e.role))
                .map(|(i, _)| i)
                .collect()
        };
        let takers: Vec<usize> = of_role(takes_packets)
            .into_iter()
            .filter(|e| !program.is_tail_call_target(*e))
            .collect();
        let timers = of_role(|r| matches!(r, Role::Every { .. }));
        let idle = |entry, time| Trial {
            entry,
            packet: Vec::new(),
            port: 0,
            ports: 0,
            time,
        };
        let mut pair = match Pair::new(&program, self.module, now) {
            Ok(pair) => pair,
            Err(_) => return,
        };
        let mut waiting = of_role(|r| r == Role::OnStart);
        let mut sent = 0;
        while sent < most {
            let trial = if let Some(entry) = waiting.pop() {
                idle(entry, now)
            } else {
                if sent % TIMER == TIMER - 1 {
                    waiting.extend(&timers);
                }
                sent += 1;
                let Some(entry) = takers.get((sent % takers.len().max(1) as u64) as usize) else {
                    break;
                };
                packets.trial(*entry, now)
            };
            now = trial.time;
            let Some((judged, _)) = self.run("packets", &program, &mut pair, &trial) else {
                break;
            };
            self.tell("packets", &trial, &judged);
            if let Some(path) = judged.path
                && reached.insert((trial.entry, path))
            {
                packets.keep(&trial.packet);
            }
        }
        self.findings.packets += sent;
        if let Err(why) = pair.same_state() {
            let d = Disagreement {
                what: "execution",
                predicted: "emitted code and interpreter leave the same state".to_owned(),
                happened: why,
            };
            self.differ("packets", &idle(0, now), None, d);
        }
    }
}

/// Lowers the sums that were seeded by what was added to them; whether any was.
fn lowered(seeds: &mut [Seed], happened: &Happened) -> bool {
    let mut any = false;
    for seed in seeds {
        let Seed::Estimate { object, key, sum } = seed else {
            continue;
        };
        let touches = happened.log.touches.iter();
        let mut of = touches.filter(|t| t.object == *object && t.key == *key);
        if let Some(touch) = of.find(|t| t.operation == "sketch_add") {
            let added = touch.result.saturating_sub(u64::from(*sum));
            let lower = u64::from(*sum).saturating_sub(added);
            any |= added > 0;
            *sum = u32::try_from(lower).unwrap_or(0);
        }
    }
    any
}
