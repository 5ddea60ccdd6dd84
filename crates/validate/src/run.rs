//! All of it: every path from its assignment, then packets alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use millrace_dataplane::module::Module;
use millrace_dataplane::runner::hex;
use millrace_model::Model;
use millrace_object::contract::Holds;
use millrace_object::helper::RINGBUF_QUERY;
use millrace_object::program::{Program, StateObject};
use millrace_object::state::routes;
use millrace_report::Guards;

use crate::chart::Chart;
use crate::findings::{Difference, Findings, Rest};
use crate::judge::{Judged, judge};
use crate::pair::{Happened, Pair};
use crate::predict::Disagreement;
use crate::trial::Trial;

/// Differences that are told; the others are counted.
const TOLD: usize = 20;
/// How much to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// packets to send one after another
    pub packets: u64,
    /// of the generator
    pub seed: u64,
    /// most paths of an entry that are driven: every second, third, … where there are more; none: all
    pub most: Option<usize>,
    /// executions after which a search for tables ends that has driven no further path in them
    pub patience: u64,
    /// frames that packets are made from, besides those of the paths
    pub frames: Vec<Vec<u8>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            packets: 4000,
            seed: 1,
            most: None,
            patience: 1000,
            frames: Vec::new(),
        }
    }
}

/// Work under way.
pub(crate) struct Validation<'a> {
    pub(crate) program: &'a Program,
    pub(crate) module: &'a Arc<Module>,
    pub(crate) charts: Vec<Chart<'a>>,
    pub(crate) findings: Findings,
    guards: Guards<'a>,
    /// paths that assignments of others led to
    pub(crate) took: BTreeSet<(usize, usize)>,
}

/// An object that packets touch and of which no prediction says what calls find in it: a queue, a stack, a Bloom filter,
/// a ring buffer whose fill is asked for, what is found in a map of maps, which has another name in an execution, the
/// host's routes, or values with timers, which fire between packets.
#[must_use]
pub fn uncompared<'a>(program: &'a Program, model: &Model) -> Option<&'a StateObject> {
    let paths = model.entries.iter().flat_map(|e| &e.paths);
    let mut touched: BTreeSet<usize> = BTreeSet::new();
    let mut asked: BTreeSet<usize> = BTreeSet::new();
    for a in paths.flat_map(|p| &p.accesses) {
        touched.insert(a.object.0);
        if a.operation == RINGBUF_QUERY.name {
            asked.insert(a.object.0);
        }
    }
    let mut objects = touched.iter().filter(|i| {
        program.objects.get(**i).is_some_and(|o| {
            let other = matches!(o.kind.holds, Holds::Sequence { .. } | Holds::Membership);
            let outside = *o.kind == routes::KIND || o.timer.is_some();
            other || outside || o.is_shape() || asked.contains(*i)
        })
    });
    program.objects.get(*objects.next()?)
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
            covers: model.covers(),
            paths: model.entries.iter().map(|e| e.paths.len()).sum(),
            seed: options.seed,
            ..Findings::default()
        },
        took: BTreeSet::new(),
        guards: Guards::new(program),
    };
    let (cases, mut missed) = v.seeded(options.most);
    v.search(&mut missed, options);
    v.not_driven(missed);
    v.alone(&cases, options);
    v.findings
}

impl Validation<'_> {
    /// The number of a path in the report: over all entries, from 1.
    pub(crate) fn number(&self, entry: usize, path: usize) -> usize {
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
        self.guards.of(e, p)
    }

    pub(crate) fn rest(&self, entry: usize, path: usize, why: Option<String>) -> Rest {
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

    pub(crate) fn differ(
        &mut self,
        from: &'static str,
        trial: &Trial,
        path: Option<usize>,
        d: Disagreement,
    ) {
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
    pub(crate) fn run(
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
    pub(crate) fn tell(&mut self, from: &'static str, trial: &Trial, judged: &Judged) {
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
        chart.is_some_and(|c| c.entry.outcome.covers())
    }
}
