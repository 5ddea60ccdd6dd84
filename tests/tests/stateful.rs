//! Generated programs that keep state do on several cores what they do on one.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `MILLRACE_STATEFUL_PROGRAMS` | programs to try (6) |
//! | `MILLRACE_STATEFUL_SEED` | the first one's seed (0) |
//! | `MILLRACE_STATEFUL_STRATEGY` | the one strategy that programs are run under, or `all` (what the plan says, and one of four by the seed), or `moves` (what the plan says, with buckets that move) |
//! | `MILLRACE_STATEFUL_THREADS` | programs at a time (2) |
//! | `MILLRACE_STATEFUL_FINDINGS` | a file that findings are appended to; the test then goes on behind them |
//! | `MILLRACE_COMMAND` | the command, where it is not the one of this build |

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use millrace_model::weaken::RULES;
use millrace_tests::stateful::case::Case;
use millrace_tests::stateful::judge::{Judgement, STRATEGIES, Trial, judge};
use millrace_tests::stateful::{grammar, planted, render, sets, shrink};
use millrace_turns::of_today;

fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => otherwise,
    }
}

/// What many cases came to.
#[derive(Default)]
struct Counts {
    programs: u64,
    refused: u64,
    compared: u64,
    replayed: u64,
    explained: u64,
    moved: u64,
    by: BTreeMap<String, u64>,
    skipped: BTreeMap<String, u64>,
    errors: Vec<String>,
    findings: Vec<String>,
    /// how often each sort of finding came
    sorts: BTreeMap<String, Vec<u64>>,
}

impl Counts {
    fn add(&mut self, case: &Case, judgement: &Judgement) {
        self.programs += 1;
        if let Some(said) = &judgement.refused {
            self.refused += 1;
            let mut lines = said.lines().filter(|l| !l.trim().is_empty());
            let rule = (lines.clone().find(|l| l.contains("error"))).or_else(|| lines.next());
            *self
                .skipped
                .entry(format!("not admitted: {}", rule.unwrap_or_default()))
                .or_default() += 1;
            return;
        }
        self.compared += u64::from(judgement.compared);
        self.replayed += u64::from(judgement.replayed);
        self.explained += u64::from(judgement.explained);
        self.moved += u64::from(judgement.moved);
        let mut count = |what: String| *self.by.entry(what).or_default() += 1;
        count(format!("strategy {}", judgement.strategy));
        for [_, treatment, rule, _] in &judgement.objects {
            count(format!("object {treatment} {rule}"));
        }
        count(format!("dialect {:?}", case.program.dialect));
        for strategy in &judgement.served {
            count(format!("served by {strategy}"));
        }
        for (strategy, reason) in &judgement.declined {
            count(format!("not by {strategy}: {reason}"));
        }
        for s in &judgement.skipped {
            *self.skipped.entry(s.clone()).or_default() += 1;
        }
    }

    fn text(&self) -> String {
        let mut out = format!(
            "{} programs, {} not admitted, {} runs compared ({} by a replay), {} with moves, {} packets explained, {} findings, {} errors\n",
            self.programs,
            self.refused,
            self.compared,
            self.replayed,
            self.moved,
            self.explained,
            self.findings.len(),
            self.errors.len()
        );
        for (what, n) in &self.by {
            let _ = writeln!(out, "  {n:5} {what}");
        }
        for (what, n) in &self.skipped {
            let _ = writeln!(out, "  {n:5} {what}");
        }
        for (sort, seeds) in &self.sorts {
            let _ = writeln!(out, "finding {sort}: seeds {seeds:?}");
        }
        out
    }
}

/// What sort of finding it is: the objects' treatments and what differs, without its numbers.
fn sort_of(case: &Case, judgement: &Judgement) -> String {
    let objects = judgement.objects.iter().map(|[name, treatment, rule, _]| {
        let index = name.strip_prefix('m').and_then(|n| n.parse::<usize>().ok());
        let object = index.and_then(|i| case.program.objects.get(i));
        let kind = object.map_or_else(|| name.clone(), |o| format!("{:?}", o.kind));
        format!("{kind} {treatment} {rule}")
    });
    let objects: Vec<String> = objects.collect();
    let first = judgement.finding.iter().flat_map(|f| f.differences.first());
    let mut what: String = first
        .flat_map(|d| d.chars())
        .filter(|c| !c.is_ascii_digit())
        .collect();
    what.truncate(40);
    format!("{} | {what}", objects.join(", "))
}

/// A finding as a person reads it.
fn told(case: &Case, judgement: &Judgement) -> String {
    let mut out = format!("## seed {}\n\n", case.seed);
    if let Some(finding) = &judgement.finding {
        let _ = writeln!(
            out,
            "{} packets, `--cores {} {}`; planned {}, {}\n",
            case.packets.len(),
            finding.cores,
            finding.words.join(" "),
            judgement.strategy,
            judgement.relaxations.join(", ")
        );
        for [name, treatment, rule, reason] in &judgement.objects {
            let _ = writeln!(out, "- {name}: {treatment} ({rule}): {reason}");
        }
        out.push('\n');
        for line in &finding.differences {
            let _ = writeln!(out, "- {line}");
        }
    }
    let _ = writeln!(out, "\n```c\n{}```\n", render::source(&case.program));
    out
}

fn attempt(case: &Case, trial: &Trial) -> Result<Judgement, String> {
    let folder = tempfile::tempdir().unwrap();
    judge(case, folder.path(), trial)
}

fn trials(
    first: u64,
    programs: u64,
    threads: u64,
    (draw, trial): (impl Fn(u64) -> Case + Sync, impl Fn(u64) -> Trial + Sync),
) -> Counts {
    let counts = Mutex::new(Counts::default());
    let next = AtomicU64::new(first);
    let begin = Instant::now();
    // Programs without a clock alone, to look behind defects that concern time.
    let clock = number("MILLRACE_STATEFUL_CLOCK", 1) == 1;
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + programs {
                        break;
                    }
                    let mut case = draw(seed);
                    case.program.clock &= clock;
                    let trial = trial(seed);
                    let judgement = attempt(&case, &trial);
                    let mut told_of = None;
                    if let Ok(j) = &judgement
                        && let Some(finding) = &j.finding
                    {
                        let again = Trial {
                            cores: match finding.moves() {
                                true => Vec::new(),
                                false => vec![finding.cores],
                            },
                            strategies: finding.strategy().into_iter().collect(),
                            moves: match finding.moves() {
                                true => vec![finding.cores],
                                false => Vec::new(),
                            },
                            explained: if finding.explains() {
                                trial.explained
                            } else {
                                0
                            },
                            ..trial.clone()
                        };
                        let sort = sort_of(&case, j);
                        let mut counts = counts.lock().unwrap();
                        let known = counts.sorts.entry(sort).or_default();
                        known.push(seed);
                        let new = known.len() == 1;
                        drop(counts);
                        let steps = if new { 16 } else { 0 };
                        let small = shrink::shrink(&case, steps, |c| {
                            attempt(c, &again).is_ok_and(|j| j.finding.is_some())
                        });
                        let of_small = if new {
                            attempt(&small, &again).unwrap_or_default()
                        } else {
                            Judgement::default()
                        };
                        told_of = Some(match of_small.finding {
                            _ if !new => format!("seed {seed}: {}\n", sort_of(&case, j)),
                            Some(_) => told(&small, &of_small),
                            None => told(&case, j),
                        });
                    }
                    let mut counts = counts.lock().unwrap();
                    match judgement {
                        Ok(j) => counts.add(&case, &j),
                        Err(e) => {
                            let e = format!("seed {seed}: {e}\n{}", render::source(&case.program));
                            report(&format!("## error\n\n```\n{e}\n```\n"));
                            counts.errors.push(e);
                        }
                    }
                    if let Some(text) = told_of {
                        if !text.is_empty() {
                            report(&text);
                        }
                        counts.findings.push(text);
                    }
                    let done = counts.programs;
                    if done.is_multiple_of(20) {
                        eprintln!(
                            "{done} of {programs} programs in {:.0} s, {} findings",
                            begin.elapsed().as_secs_f64(),
                            counts.findings.len()
                        );
                    }
                }
            });
        }
    });
    counts.into_inner().unwrap()
}

fn report(text: &str) {
    if let Some(path) = std::env::var_os("MILLRACE_STATEFUL_FINDINGS") {
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        writeln!(file.unwrap(), "{text}").unwrap();
    }
}

/// Tries as many programs of a kind as the environment says, or so many.
fn tried(draw: impl Fn(u64) -> Case + Sync, otherwise: u64) {
    let first = number("MILLRACE_STATEFUL_SEED", 0);
    let programs = number("MILLRACE_STATEFUL_PROGRAMS", otherwise);
    let threads = number("MILLRACE_STATEFUL_THREADS", 2);
    let begin = Instant::now();
    let strategy = std::env::var("MILLRACE_STATEFUL_STRATEGY").ok();
    let trial = |seed| match strategy.as_deref() {
        None => Trial::of(seed),
        Some("all") => Trial {
            moves: Trial::default().cores,
            ..Trial::default()
        },
        // Where buckets move alone, whatever the strategies are.
        Some("moves") => Trial {
            cores: Vec::new(),
            strategies: Vec::new(),
            explained: 0,
            moves: vec![2, 3, 5, 8],
            ..Trial::default()
        },
        Some(one) => Trial {
            cores: Vec::new(),
            strategies: STRATEGIES.into_iter().filter(|s| *s == one).collect(),
            explained: if one == "explain" { 8 } else { 0 },
            ..Trial::default()
        },
    };
    let counts = trials(first, programs, threads, (draw, trial));
    println!("{}{:.0} s", counts.text(), begin.elapsed().as_secs_f64());
    assert!(counts.errors.is_empty(), "{}", counts.errors.join("\n"));
    assert!(counts.findings.is_empty(), "{}", counts.findings.join("\n"));
    // A strategy alone may serve few of them.
    let few = if strategy.is_none() { programs / 2 } else { 0 };
    let compared = match strategy.as_deref() {
        Some("explain") => counts.explained,
        Some("moves") => counts.moved,
        _ => counts.compared,
    };
    assert!(compared > few, "too little is compared");
}

#[test]
fn several_cores_do_what_one_does() {
    tried(grammar::case, 6);
}

#[test]
fn packet_sets_on_several_cores_do_what_they_do_on_one() {
    tried(sets::case, 1);
}

/// Programs that once came out otherwise under a strategy than on one core, and why.
const FOUND: &[(u64, &str)] = &[
    // Ways past what each core has for itself load one register from the stack again each: the row was filled without.
    (22, "replicate"),
    // A packet's verdict hangs on what it finds in a per-CPU table, which replicas do not share.
    (33, "replicate"),
    // Where a transaction commits was lost in front of stores that were put in order, and of branches.
    (125, "transact"),
    (140, "transact"),
];

#[test]
fn what_was_found_stays_right() {
    for (seed, strategy) in FOUND {
        let trial = Trial {
            cores: Vec::new(),
            strategies: vec![strategy],
            explained: 0,
            ..Trial::default()
        };
        let case = grammar::case(*seed);
        let judgement = attempt(&case, &trial).unwrap();
        let tried = judgement.served.len() + judgement.declined.len();
        assert_eq!(tried, 1, "seed {seed}: {}", told(&case, &judgement));
    }
}

/// A seed for each rule of the plan whose program notices that the rule is switched off (`millrace_model::weaken`).
/// `seeds_for_planted_mistakes` finds others when the grammar has changed.
const PLANTED: &[(&str, u64)] = &[
    ("observe-guard", 74),
    ("observe-told", 11),
    ("observe-borders", 34),
    ("observe-byte", 526),
    ("observe-key", 212),
    ("observe-stored", 238),
    ("sums-own", 334),
    ("sums-observed", 11),
    ("nothing-percpu", 147),
    ("meet-kinds", 1),
    ("observe-place", 1220),
    ("meet-readers", 28),
    ("meet-ports", 18),
    ("meet-coarser", 21),
    ("lock-spread", 0),
    ("alone-spread", 147),
    ("merge-spread", 6),
    ("observe-target", 61),
    ("observe-verdict", 60),
    ("inert-borders", 182),
    ("nothing-records", 57),
    ("derived", 64),
    ("handed-over", 1),
];

/// Runs in which a planted mistake has to show once.
const DRAWS: usize = 10;

fn weakened(rule: &str) -> Trial {
    Trial {
        cores: vec![4],
        environment: vec![("MILLRACE_WEAKEN".to_owned(), rule.to_owned())],
        strategies: Vec::new(),
        explained: 0,
        moves: Vec::new(),
    }
}

/// Whether the program of a seed notices that a rule is switched off, and nothing while it is not: what differs then.
fn notices(rule: &str, seed: u64) -> Result<String, String> {
    let case = grammar::case(seed);
    let folder = tempfile::tempdir().unwrap();
    let with = |name: &str, mut trial: Trial| {
        // What the runs have in common is compiled once.
        let cache = folder.path().join("cache").display().to_string();
        trial.environment.push(("MILLRACE_CACHE".to_owned(), cache));
        judge(&case, &folder.path().join(name), &trial)
    };
    let sound = Trial {
        environment: Vec::new(),
        ..weakened(rule)
    };
    let without = with("sound", sound)?;
    if without.finding.is_some() {
        return Err(format!(
            "{rule}: not switched off: {}",
            told(&case, &without)
        ));
    }
    // Keys are drawn anew for each run, and some part packets that others bring together.
    for i in 0..DRAWS {
        if let Some(finding) = with(&format!("weak{i}"), weakened(rule))?.finding {
            return Ok(format!("{rule}: seed {seed}: {}", finding.differences[0]));
        }
    }
    Err(format!("{rule}: seed {seed} does not notice"))
}

#[test]
fn a_planted_mistake_in_every_rule_is_found() {
    let known = |rule: &&&str| PLANTED.iter().any(|p| p.0 == **rule);
    let unknown = RULES.iter().filter(|r| !known(r));
    let missed: Vec<String> = unknown.map(|r| format!("{r}: no seed is known")).collect();
    let missed = Mutex::new(missed);
    let planted = of_today("planted mistakes of the planner", PLANTED, 5);
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..number("MILLRACE_STATEFUL_THREADS", 2) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed) as usize;
                    let Some((rule, seed)) = planted.get(at) else {
                        break;
                    };
                    match notices(rule, *seed) {
                        Ok(what) => println!("{what}"),
                        Err(what) => missed.lock().unwrap().push(what),
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Prints, for each rule that can be switched off, a seed that notices.
#[test]
#[ignore = "takes minutes"]
fn seeds_for_planted_mistakes() {
    let first = number("MILLRACE_STATEFUL_SEED", 0);
    let each = number("MILLRACE_STATEFUL_PROGRAMS", 12) as usize;
    let only = std::env::var("MILLRACE_STATEFUL_RULES").unwrap_or_default();
    let open = RULES
        .iter()
        .filter(|r| only.is_empty() || only.split(',').any(|o| o == **r));
    let open: Vec<&str> = open.copied().collect();
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..number("MILLRACE_STATEFUL_THREADS", 2) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed) as usize;
                    let Some(rule) = open.get(at) else { break };
                    match noticed(rule, first, each) {
                        Some((seed, what)) => println!("    (\"{rule}\", {seed}), // {what}"),
                        None => println!("    // {rule}: not found"),
                    }
                }
            });
        }
    });
}

/// A seed that notices that a rule is switched off, among the first so many that may, and what it notices.
fn noticed(rule: &str, first: u64, each: usize) -> Option<(u64, String)> {
    let seeds = (first..first + 20_000).map(grammar::case);
    let mut cases = seeds.filter(|c| planted::may_notice(c, rule)).take(each);
    cases.find_map(|case| {
        let finding = attempt(&case, &weakened(rule)).ok()?.finding?;
        let sound = Trial {
            environment: Vec::new(),
            ..weakened(rule)
        };
        let right = attempt(&case, &sound).is_ok_and(|j| j.finding.is_none());
        right.then(|| (case.seed, finding.differences.join("; ")))
    })
}

/// Prints the program of a seed, for a person who looks into one.
#[test]
#[ignore = "prints a program"]
fn show() {
    let case = grammar::case(number("MILLRACE_STATEFUL_SEED", 0));
    println!("{}", render::source(&case.program));
    let folder = std::path::PathBuf::from("/tmp").join(format!("stateful-{}", case.seed));
    println!("{:#?}", judge(&case, &folder, &Trial::default()));
}
