//! Counts of a run, in the terms of the program's objects.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use millrace_dataplane::account::{Account, StageAccount};
use millrace_dataplane::counters::Counts;
use millrace_dataplane::module::What;
use millrace_dataplane::runner::hex;
use millrace_object::options::OPTIONS;
use millrace_object::program::{Program, StateObject};
use millrace_place::Strategy;

use crate::declared::Sources;
use crate::document::{Abort, Caches, Cause, Change, Element, Recipe, Report, Time, With};
use crate::imbalance::Spread;
use crate::kinds::{Idea, Met, about};

/// What was measured.
pub struct Measured<'a> {
    /// the function's name
    pub name: &'a str,
    /// what was written
    pub program: &'a Program,
    /// its sources
    pub sources: &'a Sources,
    /// how it ran
    pub strategy: Strategy,
    /// on so many workers
    pub cores: usize,
    /// what happened, of a module that is made for a profile
    pub account: &'a Account,
    /// a tick of the processor's clock, ns
    pub ns_per_tick: f64,
    /// how packets came to workers
    pub spread: &'a Spread,
    /// strategies that the function could have instead
    pub others: &'a [Strategy],
    /// ns a packet of the same code on one worker, where that was measured
    pub solo: Option<f64>,
    /// ns a packet as it runs where nothing is counted, of several turns, where that was measured
    pub now: Option<f64>,
    /// where workers were seen
    pub times: &'a [Time],
    /// what the workers' processors counted, or why they did not
    pub counters: &'a Result<Counts, String>,
    /// objects that nothing can divide among cores, by the plan: others are shared for their sake
    pub infeasible: &'a [String],
}

/// A gain that is predicted when this part of the time is removed.
fn gain(removed: f64) -> f64 {
    1.0 / (1.0 - removed.clamp(0.0, 0.95))
}

impl Report {
    /// Sorts recipes by their gains, the greatest first.
    pub fn sort(&mut self) {
        self.recipes.sort_by(better);
    }
}

/// The greater gain first; where none is told apart those of the object itself stay before other strategies.
fn better(a: &Recipe, b: &Recipe) -> Ordering {
    let hundredths = |r: &Recipe| (r.gain * 100.0).round();
    hundredths(b).total_cmp(&hundredths(a))
}

fn at(what: What) -> &'static str {
    match what {
        What::Entry => "entry",
        What::Bucket => "bucket",
        What::Full => "full",
        What::Write => "write",
        What::Other => "other",
        What::Room => "room",
        What::Pool => "pool",
        What::Ways => "ways",
    }
}

/// The profile.
#[must_use]
pub fn report(m: &Measured<'_>) -> Report {
    let ns = m.now.unwrap_or(m.account.function.ns_per_packet);
    let all = ns * m.account.read as f64;
    let mut aborts = aborts(m, ns);
    let total: f64 = aborts.iter().map(|(a, _)| a.ns).sum();
    for (abort, _) in &mut aborts {
        abort.share = if total > 0.0 { abort.ns / total } else { 0.0 };
    }
    aborts.sort_by(|(a, _), (b, _)| {
        b.ns.total_cmp(&a.ns)
            .then_with(|| (&a.line, &a.operation).cmp(&(&b.line, &b.operation)))
    });
    // What a packet costs beyond one on one worker is what others cost it, waits that nothing counts included: but what a
    // packet was counted to wait for keeps each other worker waiting at most as long, and no few conflicts explain much.
    let counted = if all > 0.0 { total / all } else { 0.0 };
    let lost = match m.solo {
        Some(solo) if ns > 0.0 && total > 0.0 => {
            (1.0 - solo / ns).clamp(0.0, counted * m.cores.max(1) as f64)
        }
        _ => counted,
    };
    // Not below nothing, nor its negative.
    let lost = lost.clamp(0.0, 0.99) + 0.0;
    if total > 0.0 {
        let scale = lost * all / total;
        for (abort, _) in &mut aborts {
            abort.ns *= scale;
        }
    }
    let (causes, ideas) = causes(m, &aborts);
    // Several conflicts may ask for the same, which removes a part of each.
    let mut asked: Vec<(Recipe, f64)> = Vec::new();
    for (object, abort, idea) in ideas {
        let removes = if all > 0.0 {
            abort.ns / all * idea.removes
        } else {
            0.0
        };
        let recipe = recipe(m, object, abort, idea);
        let same = |(r, _): &&mut (Recipe, f64)| {
            (&r.object, &r.from, &r.to, r.line)
                == (&recipe.object, &recipe.from, &recipe.to, recipe.line)
        };
        match asked.iter_mut().find(same) {
            Some((_, sum)) => *sum += removes,
            None => asked.push((recipe, removes)),
        }
    }
    let mut recipes: Vec<Recipe> = asked
        .into_iter()
        .map(|(recipe, removes)| Recipe {
            gain: gain(removes),
            ..recipe
        })
        .collect();
    if let Some((first, _)) = aborts.first() {
        let (file, line) = place(&first.line);
        let mut to: Vec<Strategy> = m.others.to_vec();
        // Most of it is about one key, which can be replicated beside the rest.
        let one = aborts
            .iter()
            .any(|(a, _)| a.key.is_some() && a.share > 0.25);
        if one && !to.is_empty() {
            to.push(Strategy::Hybrid);
        }
        to.retain(|s| *s != m.strategy);
        to.dedup();
        recipes.extend(to.into_iter().map(|strategy| Recipe {
            object: None,
            file: file.to_owned(),
            line,
            from: format!("--strategy {}", m.strategy.name()),
            to: format!("--strategy {}", strategy.name()),
            why: described(strategy).into(),
            gain: gain(lost * removed_by(strategy)),
            tried: None,
            change: Change::Strategy(strategy),
        }));
    }
    let imbalance = m.spread.imbalance(m.account);
    let elephant = imbalance.cause.as_ref();
    if elephant.is_some_and(|c| c.starts_with("elephant flow")) {
        for strategy in [Strategy::Hybrid, Strategy::Replicate] {
            recipes.push(Recipe {
                object: None,
                file: format!("{}.c", m.program.name),
                line: 0,
                from: format!("--strategy {}", m.strategy.name()),
                to: format!("--strategy {}", strategy.name()),
                why: described(strategy).into(),
                // Each row is replayed by all others.
                gain: 1.0 + (imbalance.factor - 1.0) * removed_by(strategy),
                tried: None,
                change: Change::Strategy(strategy),
            });
        }
    }
    recipes.sort_by(better);
    let mut seen = BTreeSet::new();
    recipes.retain(|r| seen.insert((r.object.clone(), r.from.clone(), r.to.clone())));
    let mut notes = Vec::new();
    if let Err(why) = m.counters {
        notes.push(format!("cache misses are not counted: {why}"));
    }
    if aborts.is_empty() {
        notes.push(match m.strategy {
            Strategy::Lock | Strategy::Transact => "no packet met another worker's".to_owned(),
            other => format!(
                "{}: workers share nothing under a lock or in transactions",
                other.name()
            ),
        });
    }
    if let Some(t) = &m.account.transactions {
        notes.push(format!(
            "{} packets committed beside others, {} attempts did not commit, {} packets ran alone",
            t.commits, t.aborts, t.alone
        ));
        // An attempt that stops to run alone met nobody.
        if t.aborts > t.alone && m.account.conflicts.is_empty() {
            notes.push(
                "whom they met is counted in modules that are made for it (run --profile)"
                    .to_owned(),
            );
        }
    }
    let behind = m.account.workers.iter().filter_map(|w| w.behind).max();
    if let Some(behind) = behind.filter(|rows| *rows > 0) {
        notes.push(format!(
            "late rows: the worker that is furthest behind has {behind} to apply"
        ));
    }
    if let Some(rows) = m.account.replayed {
        let share = rows as f64 / (rows + m.account.read).max(1) as f64;
        notes.push(format!(
            "{rows} rows of other workers' packets were replayed, {:.0} % of all that workers did",
            share * 100.0
        ));
    }
    Report {
        name: m.name.to_owned(),
        strategy: m.strategy.name().to_owned(),
        cores: m.cores,
        packets: m.account.read,
        ns_per_packet: ns,
        lost,
        aborts: aborts.into_iter().map(|(a, _)| a).collect(),
        causes,
        recipes,
        imbalance,
        elements: m.account.stages.iter().map(element).collect(),
        times: m.times.to_vec(),
        caches: m
            .counters
            .as_ref()
            .ok()
            .map(|counts| caches(counts, m.account.read)),
        prefetch: None,
        notes,
    }
}

fn caches(counts: &Counts, packets: u64) -> Caches {
    let each = |count: u64| count as f64 / packets.max(1) as f64;
    Caches {
        misses_per_packet: each(counts.cache_misses),
        instructions_per_packet: each(counts.instructions),
    }
}

fn element(stage: &StageAccount) -> Element {
    Element {
        name: stage.name.clone(),
        packets: stage.packets,
        ns_per_packet: stage.seconds * 1e9 / stage.packets.max(1) as f64,
        share: stage.share,
    }
}

/// What a strategy does otherwise.
fn described(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Shard | Strategy::Spread => {
            "another strategy: each core has a part of the state, and of the numbers that are leased"
        }
        Strategy::Hybrid => "another strategy: heavy keys are replicated, all others have one core",
        Strategy::Replicate => {
            "another strategy: each core repeats what packets of others do to state"
        }
        Strategy::Transact => {
            "another strategy: packets of several cores change different entries beside each other"
        }
        _ => "another strategy",
    }
}

/// How much of what conflicts take another strategy is expected to save. Rough: `--try` measures it.
fn removed_by(strategy: Strategy) -> f64 {
    match strategy {
        Strategy::Shard | Strategy::Spread => 1.0,
        Strategy::Hybrid => 0.8,
        Strategy::Transact => 0.7,
        Strategy::Replicate => 0.5,
        _ => 0.2,
    }
}

type Counted = (Abort, Option<What>);

/// What packets met, by line and by whom they met.
fn aborts(m: &Measured<'_>, ns_per_packet: f64) -> Vec<Counted> {
    type Key = (String, String, String, Option<(String, String)>, What);
    // How often, ns, and votes by key.
    type Sum = (u64, f64, BTreeMap<Vec<u8>, u64>);
    let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
    for (_, c) in &m.account.conflicts {
        let with = c.theirs.as_ref();
        let with = with.map(|t| (without_folder(&t.line), t.operation.clone()));
        let mine = &c.mine;
        let key = (
            without_folder(&mine.line),
            mine.operation.clone(),
            mine.object.clone(),
            with,
            c.what,
        );
        let sum = sums.entry(key).or_default();
        sum.0 += c.count;
        sum.1 += match c.what {
            What::Write => c.ticks as f64 * m.ns_per_tick,
            _ if c.alone.is_some() => waited(m, c.count, ns_per_packet),
            // The attempt is repeated.
            _ => c.count as f64 * ns_per_packet,
        };
        if let Some((key, votes)) = &c.key {
            *sum.2.entry(key.clone()).or_default() += votes;
        }
    }
    let mut out: Vec<Counted> = Vec::new();
    for ((line, operation, object, with, what), (count, ns, keys)) in sums {
        let most = keys.into_iter().max_by_key(|(_, votes)| *votes);
        let key = most.filter(|(_, votes)| votes * 2 > count);
        out.push((
            Abort {
                line,
                object,
                operation,
                with: with.map(|(line, operation)| With { line, operation }),
                at: at(what).to_owned(),
                key: key.map(|(key, _)| hex(&key)),
                count,
                share: 0.0,
                ns,
            },
            Some(what),
        ));
    }
    let conflicts = m.account.conflicts.iter();
    let told: BTreeSet<&String> = conflicts.filter_map(|(_, c)| c.alone.as_ref()).collect();
    let reasons = m.account.transactions.iter().flat_map(|t| &t.reasons);
    for (why, count) in reasons.filter(|(why, _)| !told.contains(why)) {
        let (line, operation, object) = said(why);
        let ns = waited(m, *count, ns_per_packet);
        out.push((
            Abort {
                line,
                object,
                operation,
                with: None,
                at: "alone".to_owned(),
                key: None,
                count: *count,
                share: 0.0,
                ns,
            },
            None,
        ));
    }
    out
}

/// What all other workers wait for packets that run alone, ns; their own work these have to do in any case. The mean has the others'
/// waits in it.
fn waited(m: &Measured<'_>, packets: u64, ns_per_packet: f64) -> f64 {
    let waits = packets as f64 * (m.cores.max(1) - 1) as f64;
    let read = m.account.read.max(1) as f64;
    waits * ns_per_packet * read / (read + waits)
}

/// A reason to run alone, `FILE:LINE: OPERATION of OBJECT`, `FUNCTION instruction N: …` of a program without lines, or one of the
/// protocol itself.
fn said(why: &str) -> (String, String, String) {
    let number = |text: &str| text.parse::<u32>().is_ok();
    let parts = why.split_once(": ").and_then(|(place, what)| {
        let line = place.rsplit_once(':').is_some_and(|(_, n)| number(n));
        let instruction = place.rsplit_once(" instruction ");
        if !line && !instruction.is_some_and(|(_, n)| number(n)) {
            return None;
        }
        let (operation, object) = what.split_once(" of ").unwrap_or((what, ""));
        Some((
            without_folder(place),
            operation.to_owned(),
            object.to_owned(),
        ))
    });
    parts.unwrap_or_else(|| (String::new(), why.to_owned(), String::new()))
}

/// `FILE:LINE` without the folder.
fn without_folder(line: &str) -> String {
    line.rsplit('/').next().unwrap_or(line).to_owned()
}

/// `FILE:LINE` as both.
fn place(line: &str) -> (&str, u32) {
    let parts = line.rsplit_once(':');
    let parts = parts.and_then(|(file, line)| Some((file, line.parse().ok()?)));
    parts.unwrap_or((line, 0))
}

type Ideas<'a> = Vec<(&'a StateObject, &'a Abort, Idea)>;

/// Causes, those of one object and one kind together, and what would help.
fn causes<'a>(m: &Measured<'a>, aborts: &'a [Counted]) -> (Vec<Cause>, Ideas<'a>) {
    let mut causes: Vec<Cause> = Vec::new();
    let mut ideas: Ideas<'a> = Vec::new();
    for (abort, what) in aborts {
        let object = m.program.objects.iter().find(|o| o.name == abort.object);
        let Some(object) = object else {
            causes.push(Cause {
                object: abort.object.clone(),
                line: abort.line.clone(),
                operations: vec![abort.operation.clone()],
                cause: match abort.operation.is_empty() {
                    true => "the program runs alone from its beginning".into(),
                    false => abort.operation.clone(),
                },
                share: abort.share,
                ns: abort.ns,
            });
            continue;
        };
        // An object that could be divided, but for another one.
        let forces = match m.infeasible.contains(&object.name) {
            true => None,
            false => m
                .program
                .objects
                .iter()
                .find(|o| m.infeasible.contains(&o.name) && (about(o).forces)(o)),
        };
        let shared = object;
        let object = forces.unwrap_or(object);
        let used = forces.and_then(|o| m.sources.used(&o.name));
        let entries = m.account.objects.iter().find(|o| o.name == object.name);
        let met = Met {
            object,
            what: *what,
            abort,
            entries: entries.and_then(|o| o.entries),
        };
        let advice = about(object);
        let cause = match forces {
            None => (advice.cause)(&met),
            Some(_) => format!(
                "{}; so {}, which could be divided among cores, is shared with it",
                (advice.cause)(&met),
                shared.name
            ),
        };
        match causes
            .iter_mut()
            .find(|c| c.object == object.name && c.cause == cause)
        {
            Some(known) => {
                known.share += abort.share;
                known.ns += abort.ns;
                if !known.operations.contains(&abort.operation) {
                    known.operations.push(abort.operation.clone());
                }
            }
            None => {
                causes.push(Cause {
                    object: object.name.clone(),
                    line: used.unwrap_or_else(|| abort.line.clone()),
                    operations: vec![abort.operation.clone()],
                    cause,
                    share: abort.share,
                    ns: abort.ns,
                });
            }
        }
        ideas.extend(
            (advice.ideas)(&met)
                .into_iter()
                .map(|idea| (object, abort, idea)),
        );
    }
    causes.sort_by(|a, b| b.ns.total_cmp(&a.ns).then_with(|| a.line.cmp(&b.line)));
    (causes, ideas)
}

/// An idea as it is written down.
fn recipe(m: &Measured<'_>, object: &StateObject, abort: &Abort, idea: Idea) -> Recipe {
    let name = &object.name;
    match idea.option {
        Some((option, value)) => {
            let known = OPTIONS.iter().find(|o| o.name == option);
            let is = known.map_or(0, |o| (o.get)(object));
            let time = known.is_some_and(|o| o.time);
            let declared = m.sources.declaration(name);
            let (file, line) = declared.unwrap_or_else(|| place(&abort.line));
            Recipe {
                object: Some(name.clone()),
                file: file.to_owned(),
                line,
                from: format!(".{option} = {}", shown(is, time)),
                to: format!(".{option} = {}", shown(value, time)),
                why: idea.why.into(),
                gain: 1.0,
                tried: None,
                change: Change::Option {
                    object: name.clone(),
                    option,
                    value: value.to_string(),
                },
            }
        }
        None => {
            let (file, line) = place(&abort.line);
            Recipe {
                object: Some(name.clone()),
                file: file.to_owned(),
                line,
                from: idea.from,
                to: idea.to,
                why: idea.why.into(),
                gain: 1.0,
                tried: None,
                change: match idea.edit {
                    Some((from, to)) => Change::Edit { from, to },
                    None => Change::Source,
                },
            }
        }
    }
}

/// A number, or a time as declarations have it.
fn shown(n: u64, time: bool) -> String {
    match (time, n) {
        (false, n) | (true, n @ 0) => n.to_string(),
        (true, n) if n.is_multiple_of(1_000_000_000) => format!("SECONDS({})", n / 1_000_000_000),
        (true, n) if n.is_multiple_of(1_000_000) => format!("MILLISECONDS({})", n / 1_000_000),
        (true, n) => format!("{n}"),
    }
}
