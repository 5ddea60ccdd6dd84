//! Whole tables for paths that a solver's assignment does not lead to.
//!
//! A path through loops that are taken for any number of turns says of what a turn finds that it is any number,
//! so its assignment names no tables through which the execution would come out of the loop where the path does.
//! They are looked for: tables are filled with numbers that mean something to the program, the execution is held
//! against the model, and tables that led to paths which none had led to before are kept and changed further, as
//! a fuzzer does that is guided by coverage. Only the numbers of the generator decide, so that a search finds the
//! same again.

mod draft;
mod words;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use millrace_object::program::{ObjectId, Program};
use millrace_reference::Log;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::chart::Chart;
use crate::pair::Pair;
use crate::run::{Options, Validation};
use crate::trial::{Case, with_contents};
use crate::turns::{Sort, has_turns, sort};
use draft::Draft;
use words::Words;

/// Accesses of all executions of an entry's search together, after which it ends whatever it finds: a program may have
/// millions in each.
const ACCESSES: u64 = 1 << 28;
/// Most changes from one draft to the next.
const CHANGES: u32 = 6;
/// The drafts that found something last are changed more often than others.
const LATEST: usize = 8;
/// Drafts that are kept.
const KEPT: usize = 256;

/// A path that its assignment did not lead to.
pub(crate) struct Missed {
    /// why
    pub(crate) why: String,
    /// what was made of its assignment
    pub(crate) case: Option<Case>,
}

/// Features that distinguish executions.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Feature {
    /// one sort of access on another one, and the logarithm of how often
    Follows(Sort, Sort, u32),
    /// the paths that it can be of
    Paths(Vec<usize>),
}

/// These, by entry and path.
pub(crate) type AllMissed = BTreeMap<(usize, usize), Missed>;

/// The search for tables of one entry.
struct Search {
    /// objects whose tables are filled: those that loops come to
    altered: Vec<ObjectId>,
    words: Words,
    /// what comes in, by path
    cases: BTreeMap<usize, Case>,
    /// paths that nothing has led to yet
    waiting: Vec<usize>,
    drafts: Vec<Draft>,
    seen: BTreeSet<Feature>,
    random: ChaCha8Rng,
}

impl Search {
    /// For the paths of an entry that are missed and go through loops; none if there is nothing to search.
    fn of(
        program: &Program,
        chart: &Chart<'_>,
        missed: impl Iterator<Item = (usize, Case)>,
        seed: u64,
    ) -> Option<Self> {
        let (mut altered, mut words) = (BTreeSet::new(), Words::default());
        let mut cases = BTreeMap::new();
        for (i, case) in missed {
            let Some(path) = chart.entry.paths.get(i).filter(|p| has_turns(p)) else {
                continue;
            };
            let turned = path.accesses.iter().filter(|a| a.repeated);
            let objects = turned.map(|a| a.object);
            altered.extend(objects.filter(|o| draft::fills(program, *o)));
            words.of_path(&chart.entry.arena, path);
            cases.insert(i, case);
        }
        let altered: Vec<ObjectId> = altered.into_iter().collect();
        words.of_objects(program, &altered);
        (!altered.is_empty()).then(|| Self {
            altered,
            words,
            waiting: cases.keys().copied().collect(),
            cases,
            drafts: Vec::new(),
            seen: BTreeSet::new(),
            random: ChaCha8Rng::seed_from_u64(seed),
        })
    }

    /// The next attempt: packets and state.
    fn draft(&mut self, program: &Program) -> Option<(Case, Draft)> {
        if self.waiting.is_empty() {
            return None;
        }
        let (random, drafts) = (&mut self.random, &self.drafts);
        // What led to one path may lead a packet of another kind to its like.
        let at = random.random_range(0..self.waiting.len());
        let case = self.cases.get(self.waiting.get(at)?)?;
        let from = match random.random_range(0..8) {
            0 => drafts.len(),
            1..4 => drafts.len().saturating_sub(LATEST),
            _ => 0,
        };
        let draft = if from < drafts.len() {
            let kept = drafts.get(random.random_range(from..drafts.len()))?;
            kept.with(case, &self.altered)
        } else {
            let mut draft = Draft::of(case, &self.altered);
            draft.fill(program, &self.altered, &self.words, random);
            draft
        };
        let mut draft = draft;
        for _ in 0..random.random_range(0..=CHANGES) {
            draft.change(program, &self.altered, &self.words, random);
        }
        Some((case.clone(), draft))
    }

    /// Keeps a draft that brought something new; the paths among those waited for.
    fn learn(&mut self, draft: Draft, taken: Vec<usize>, log: &Log) -> Vec<usize> {
        let (found, waiting): (Vec<usize>, Vec<usize>) =
            self.waiting.iter().partition(|p| taken.contains(p));
        self.waiting = waiting;
        let known = self.seen.len();
        self.seen.extend(follows(log));
        self.seen.insert(Feature::Paths(taken));
        if self.seen.len() > known {
            if self.drafts.len() >= KEPT {
                self.drafts.remove(0);
            }
            self.drafts.push(draft);
        }
        found
    }
}

/// Successions of accesses and their number, in powers of two.
fn follows(log: &Log) -> impl Iterator<Item = Feature> {
    let mut counts: HashMap<(Sort, Sort), u32> = HashMap::new();
    for (a, b) in log.touches.iter().zip(log.touches.iter().skip(1)) {
        *counts.entry((sort(a), sort(b))).or_default() += 1;
    }
    let counts = counts.into_iter();
    counts.map(|((a, b), n)| Feature::Follows(a, b, n.ilog2()))
}

impl Validation<'_> {
    /// Looks for tables that lead to paths through loops, and takes away those that it finds.
    pub(crate) fn search(&mut self, missed: &mut AllMissed, options: &Options) {
        for entry in 0..self.charts.len() {
            let Some(chart) = self.charts.get(entry) else {
                return;
            };
            let own = missed.range((entry, 0)..(entry + 1, 0));
            let own = own.filter_map(|((_, i), m)| Some((*i, m.case.clone()?)));
            let seed = options.seed.wrapping_add(entry as u64);
            let search = Search::of(self.program, chart, own, seed);
            let Some(mut search) = search else { continue };
            let (mut idle, mut accesses) = (0, 0);
            while idle < options.patience && accesses < ACCESSES {
                idle += 1;
                let Some((case, draft)) = search.draft(self.program) else {
                    break;
                };
                let Some((taken, log)) = self.try_draft(&case, &draft) else {
                    continue;
                };
                accesses += log.touches.len() as u64;
                for path in search.learn(draft, taken, &log) {
                    missed.remove(&(entry, path));
                    self.findings.driven += 1;
                    idle = 0;
                }
            }
        }
    }

    /// The paths that an execution from this state can have taken, and its accesses.
    fn try_draft(&mut self, case: &Case, draft: &Draft) -> Option<(Vec<usize>, Log)> {
        let program = with_contents(self.program, &case.contents);
        let mut pair = Pair::new(&program, self.module, case.trial.time).ok()?;
        for seed in draft.seeds() {
            pair.seed(&seed).ok()?;
        }
        let (judged, happened) = self.run("seeded", &program, &mut pair, &case.trial)?;
        self.tell("seeded", &case.trial, &judged);
        self.findings.searched += 1;
        let taken = judged.path.into_iter().chain(judged.others);
        Some((taken.collect(), happened.log))
    }
}
