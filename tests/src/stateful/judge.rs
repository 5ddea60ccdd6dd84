//! A case from its source to what differs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::case::{Action, Amount, Case, Kind, Leak, Mismatch, Program, Source};
use super::compare::{commits, differences};
use super::drive::{Bench, Ended, Ran};
use super::render;
use super::traffic::Packet;

/// What is tried of a case.
#[derive(Clone, Debug)]
pub struct Trial {
    /// numbers of cores beside one
    pub cores: Vec<usize>,
    /// variables of the command's environment
    pub environment: Vec<(String, String)>,
    /// strategies that everything is run under once more, whatever the plan says
    pub strategies: Vec<&'static str>,
    /// packets that are explained
    pub explained: u64,
    /// numbers of cores between which buckets move while packets come, and the key and the number of workers change, where the plan divides
    /// state
    pub moves: Vec<usize>,
}

/// Strategies that serve any program, or refuse it with a reason.
pub const STRATEGIES: [&str; 4] = ["lock", "transact", "replicate", "hybrid"];

/// The cores that a strategy is tried on.
const STRATEGY_CORES: usize = 4;

impl Trial {
    /// As CI tries a case: one of the strategies, and moves between one number of cores, by its seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let one = STRATEGIES[(seed % STRATEGIES.len() as u64) as usize];
        Self {
            strategies: vec![one],
            moves: vec![[2, 3, 5, 8][(seed / 4 % 4) as usize]],
            ..Self::default()
        }
    }
}

impl Default for Trial {
    fn default() -> Self {
        Self {
            cores: vec![2, 4, 8],
            environment: Vec::new(),
            strategies: STRATEGIES.to_vec(),
            explained: 2,
            moves: Vec::new(),
        }
    }
}

/// A difference that nothing explains.
#[derive(Clone, Debug)]
pub struct Finding {
    /// cores that it takes
    pub cores: usize,
    /// the words of the command that it takes
    pub words: Vec<String>,
    /// what differs
    pub differences: Vec<String>,
}

impl Finding {
    fn new(cores: usize, words: &[&str], differences: Vec<String>) -> Self {
        Self {
            cores,
            words: words.iter().map(|w| (*w).to_owned()).collect(),
            differences,
        }
    }

    /// Whether an explanation is what is wrong.
    #[must_use]
    pub fn explains(&self) -> bool {
        self.words.iter().any(|w| w == "explain")
    }

    /// Whether it is where buckets move.
    #[must_use]
    pub fn moves(&self) -> bool {
        self.words.iter().any(|w| w.starts_with("--moves"))
    }

    /// The strategy that was asked for, if one was.
    #[must_use]
    pub fn strategy(&self) -> Option<&'static str> {
        let asked = |s: &&&str| self.words.iter().any(|w| w == **s);
        STRATEGIES.iter().find(asked).copied()
    }
}

/// What came of a case.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// why the program was not admitted
    pub refused: Option<String>,
    /// the plan's strategy
    pub strategy: String,
    /// the plan's objects: name, treatment, rule, reason
    pub objects: Vec<[String; 4]>,
    /// relaxations that the plan names
    pub relaxations: Vec<String>,
    /// runs on several cores that were compared with the run on one
    pub compared: u32,
    /// of which by a replay of the order of commits
    pub replayed: u32,
    /// why runs were not compared
    pub skipped: Vec<String>,
    /// packets that were explained as what became of them
    pub explained: u32,
    /// runs in which buckets moved that were compared
    pub moved: u32,
    /// strategies that were asked for and that served it as one core does
    pub served: Vec<&'static str>,
    /// strategies that were asked for and refused it, with the reason
    pub declined: Vec<(&'static str, String)>,
    /// what is wrong
    pub finding: Option<Finding>,
}

impl Judgement {
    fn refusal(&mut self, strategy: &str, said: &str) {
        let reason = said.lines().find(|l| l.contains("error"));
        let reason = reason.or(said.lines().next()).unwrap_or_default();
        let named = STRATEGIES.iter().find(|s| **s == strategy);
        self.declined.extend(named.map(|s| (*s, reason.to_owned())));
    }
}

/// Models of NICs, each as often as it is drawn.
const NICS: [&str; 8] = [
    "software",
    "software",
    "generic",
    "e810",
    "connectx5",
    "software",
    "82599",
    "ena",
];

/// Plans and runs a case in a folder of its own.
///
/// # Errors
/// The program does not compile, or the command did not do what it is to do with any program.
pub fn judge(case: &Case, folder: &Path, trial: &Trial) -> Result<Judgement, String> {
    let mut bench = Bench::new(folder, &render::source(&case.program))?;
    bench.environment.clone_from(&trial.environment);
    let nic = nic(case);
    let mut out = Judgement::default();
    let most = trial.cores.iter().copied().max().unwrap_or(1);
    let plan = match bench.plan(most, nic)? {
        Ok(plan) => plan,
        Err(said) => {
            out.refused = Some(said);
            return Ok(out);
        }
    };
    describe(&plan, &mut out);
    let pin = pins(&case.program);
    let one = match bench.run(&case.packets, 1, &[], pin)? {
        Ended::Ran(one) => *one,
        Ended::Refused(said) => return Err(format!("refused on one core: {said}")),
    };
    if one.fates.len() != case.packets.len() {
        return Err(format!(
            "{} of {} packets",
            one.fates.len(),
            case.packets.len()
        ));
    }
    let tried = Tried {
        bench: &bench,
        case,
        one: &one,
        pin,
    };
    out.finding = tried.explained(trial.explained, &mut out)?;
    for cores in &trial.cores {
        if out.finding.is_none() {
            out.finding = tried.planned(*cores, nic, &mut out)?;
        }
    }
    let alone = out.strategy == "alone";
    let divided = ["shard", "mixed"].contains(&out.strategy.as_str());
    for cores in trial.moves.iter().filter(|_| divided) {
        if out.finding.is_none() {
            out.finding = tried.moved(*cores, nic, &mut out)?;
        }
    }
    for strategy in &trial.strategies {
        if !alone && out.finding.is_none() {
            out.finding = tried.under(strategy, &mut out)?;
        }
    }
    Ok(out)
}

/// A case beside its run on one core.
struct Tried<'a> {
    bench: &'a Bench,
    case: &'a Case,
    one: &'a Ran,
    pin: bool,
}

impl Tried<'_> {
    /// Explains so many packets: the last one, which most of the state is behind, and others.
    fn explained(&self, count: u64, out: &mut Judgement) -> Result<Option<Finding>, String> {
        let packets = self.case.packets.len() as u64;
        for number in (0..count.min(packets)).map(|i| packets - 1 - i * packets / count) {
            let fate = &self.one.fates[number as usize];
            let said = match self.bench.explain(&self.case.packets, number)? {
                Ok(said) => said["verdict"].as_str().unwrap_or_default().to_owned(),
                Err(what) if what.contains(UNSAID) => {
                    out.declined.push(("explain", what));
                    break;
                }
                Err(what) => what,
            };
            if !explains(&said, &fate.verdict) {
                let differs = format!("packet {number}: {}, explained as {said}", fate.verdict);
                return Ok(Some(Finding::new(1, &["explain"], vec![differs])));
            }
            out.explained += 1;
        }
        Ok(None)
    }

    /// As the plan says, on so many cores.
    fn planned(
        &self,
        cores: usize,
        nic: &str,
        out: &mut Judgement,
    ) -> Result<Option<Finding>, String> {
        let words = ["--nic", nic];
        let alone = out.strategy == "alone";
        let found = match self
            .bench
            .run(&self.case.packets, cores, &words, self.pin)?
        {
            Ended::Refused(_) if alone => return Ok(None),
            Ended::Refused(said) => vec![format!(
                "planned {}, and refused by run: {}",
                out.strategy,
                said.lines().next().unwrap_or_default()
            )],
            // Fewer cores need less of a hash: the plan for them may be another one.
            Ended::Ran(_) if alone && is_alone(self.bench, cores, nic)? => {
                vec![format!("planned alone, and run on {cores} cores")]
            }
            Ended::Ran(other) => held(self.bench, self.case, (self.one, &other), self.pin, out)?,
        };
        Ok((!found.is_empty()).then(|| Finding::new(cores, &words, found)))
    }

    /// As the plan says, with buckets that move between so many workers at drawn moments.
    fn moved(
        &self,
        cores: usize,
        nic: &str,
        out: &mut Judgement,
    ) -> Result<Option<Finding>, String> {
        let seed = self.case.seed.to_string();
        let words = ["--nic", nic, "--moves=3", "--seed", &seed];
        match self.bench.verified(&self.case.packets, cores, &words)? {
            Ok(report) => {
                let runs = report["runs"].as_array().into_iter().flatten();
                let moves: u64 = { runs }.filter_map(|r| r["moved"]["moves"].as_u64()).sum();
                out.moved += u32::from(moves > 0);
                let differs = report["equal"] != true;
                Ok(differs.then(|| Finding::new(cores, &words, vec![report.to_string()])))
            }
            // Which bucket an entry has is not known of all.
            Err(said) => {
                let reason = said.lines().next().unwrap_or_default();
                out.declined.push(("moves", reason.to_owned()));
                Ok(None)
            }
        }
    }

    /// Under a strategy, or refused with a reason.
    fn under(
        &self,
        strategy: &'static str,
        out: &mut Judgement,
    ) -> Result<Option<Finding>, String> {
        let words = ["--strategy", strategy];
        let before = out.compared;
        let packets = &self.case.packets;
        // Packets under transactions have no order of commits to be replayed by: the versions that they saw tell one.
        let found = if strategy == "transact" {
            let found = self.bench.verify(packets, STRATEGY_CORES, &words)?;
            out.compared += u32::from(found.is_ok());
            found
        } else {
            match self.bench.run(packets, STRATEGY_CORES, &words, self.pin)? {
                Ended::Refused(said) => Err(said),
                Ended::Ran(other) => Ok(held(
                    self.bench,
                    self.case,
                    (self.one, &other),
                    self.pin,
                    out,
                )?),
            }
        };
        match found {
            Err(said) => out.refusal(strategy, &said),
            Ok(found) if !found.is_empty() => {
                return Ok(Some(Finding::new(STRATEGY_CORES, &words, found)));
            }
            // What was left out of the comparison is not said to be served.
            Ok(_) if out.compared > before => out.served.push(strategy),
            Ok(_) => {}
        }
        Ok(None)
    }
}

/// How an explanation says that it cannot be given.
const UNSAID: &str = "cannot be said beforehand";

/// Whether an explanation's verdict is what a run said.
fn explains(said: &str, fate: &str) -> bool {
    let first = |text: &str| text.split([' ', ':']).next().unwrap_or_default().to_owned();
    first(said) == first(fate)
}

/// Whether a program is planned alone on this many cores.
fn is_alone(bench: &Bench, cores: usize, nic: &str) -> Result<bool, String> {
    Ok(bench
        .plan(cores, nic)?
        .is_ok_and(|p| p["strategy"] == "alone"))
}

fn nic(case: &Case) -> &'static str {
    NICS[(case.seed / 12 % NICS.len() as u64) as usize]
}

/// Whether a program has state that can be pinned. Objects without entries to list end `--pin-all` with status 2, which
/// is a finding of its own and hides all others.
fn pins(program: &Program) -> bool {
    let kept = |s: &Source| matches!(s, Source::Queue | Source::Stack);
    let unlisted = |b: &super::case::Block| {
        b.leak == Leak::TailCall || matches!(b.source, Source::Bloom(_) | Source::Leased { .. })
    };
    if program.blocks.iter().any(unlisted) {
        return false;
    }
    program.objects.iter().any(|o| o.kind != Kind::Global)
        || program.blocks.iter().any(|b| kept(&b.source))
}

fn describe(plan: &Value, out: &mut Judgement) {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    out.strategy = text(&plan["strategy"]);
    for o in plan["objects"].as_array().into_iter().flatten() {
        out.objects.push([
            text(&o["name"]),
            text(&o["treatment"]),
            text(&o["rule"]),
            text(&o["reason"]),
        ]);
    }
    for r in plan["relaxations"].as_array().into_iter().flatten() {
        out.relaxations
            .push(format!("{} of {}", text(&r["name"]), text(&r["object"])));
    }
}

/// Holds a run on several cores against the one on one.
fn held(
    bench: &Bench,
    case: &Case,
    (one, other): (&Ran, &Ran),
    pin: bool,
    out: &mut Judgement,
) -> Result<Vec<String>, String> {
    // Relaxations are counted when they happen; what was not counted is no excuse.
    let relaxed: BTreeMap<String, u64> = (other.account["relaxations"].as_object().into_iter())
        .flatten()
        .filter_map(|(name, n)| Some((name.clone(), n.as_u64()?)))
        .filter(|(_, n)| *n > 0)
        .collect();
    if let Some((name, n)) = relaxed.first_key_value() {
        out.skipped.push(format!("{name} was counted {n} times"));
        return Ok(Vec::new());
    }
    // This cannot be counted: a run does not know what another CPU's number would have done.
    if out.relaxations.iter().any(|r| r.starts_with("cpu")) {
        out.skipped
            .push("the plan says that the CPU's number shows".to_owned());
        return Ok(Vec::new());
    }
    // By R5 a packet that does not fit goes the way of one whose number is free, so that numbers do not show. By R6 they
    // may: which of them is leased is the relaxation.
    let shows =
        |s: &Source| matches!(s, Source::Leased { mismatch, .. } if *mismatch != Mismatch::AsMiss);
    // The host reads while packets come: how far it is belongs to no order of packets.
    if case.program.blocks.iter().any(|b| b.source == Source::Ring) {
        out.skipped
            .push("whether a ring has room depends on how far it is read".to_owned());
        return Ok(Vec::new());
    }
    let homed = out.objects.iter().any(|o| o[0] == "leases" && o[2] == "R6");
    if homed && case.program.blocks.iter().any(|b| shows(&b.source)) {
        out.skipped
            .push("which number is leased shows to strangers".to_owned());
        return Ok(Vec::new());
    }
    let beside = scratch(&case.program, out);
    let shared = other.fates.iter().any(|f| f.commit != 0);
    out.compared += 1;
    if !shared {
        return Ok(differences(one, other, None, &beside));
    }
    let drawn = |s: &Source| matches!(s, Source::Random | Source::Cpu);
    if case.program.blocks.iter().any(|b| drawn(&b.source)) {
        out.skipped
            .push("numbers drawn for a packet by its place are others in a replay".to_owned());
        return Ok(Vec::new());
    }
    let order = match commits(other, &case.packets) {
        Ok(order) => order,
        Err(what) => return Ok(vec![what]),
    };
    let replayed = match bench.run(&reordered(&case.packets, other, &order), 1, &[], pin)? {
        Ended::Ran(replayed) => replayed,
        Ended::Refused(said) => return Err(format!("a replay is refused: {said}")),
    };
    out.replayed += 1;
    Ok(differences(&replayed, other, Some(&order), &beside))
}

/// Per-CPU objects of which the plan says that nothing in them decides over another packet: each worker has its own.
fn scratch(program: &Program, judgement: &Judgement) -> BTreeSet<String> {
    let percpu = |name: &str| {
        let index = name.strip_prefix('m').and_then(|n| n.parse::<usize>().ok());
        let object = index.and_then(|i| program.objects.get(i));
        object.is_some_and(|o| o.kind.percpu())
    };
    let spread = judgement.objects.iter().filter(|o| o[1] == "spread");
    let names = spread.map(|o| o[0].clone());
    let mut beside: BTreeSet<String> = names.filter(|n| percpu(n)).collect();
    let sharded = judgement.objects.iter().filter(|o| o[1] == "shard");
    let sharded: BTreeSet<&String> = sharded.map(|o| &o[0]).collect();
    // Of per-CPU values only numbers that are added to, by what packets bring, have a sum.
    for b in &program.blocks {
        if let Source::Value {
            object,
            action,
            amount,
            ..
        } = &b.source
            && (!adds(*action) || matches!(amount, Amount::Of(_)))
            && percpu(&format!("m{object}"))
            // One CPU has the entry, as on one core.
            && !sharded.contains(&format!("m{object}"))
        {
            beside.insert(format!("m{object}"));
        }
    }
    // Which number a flow leased may differ; nothing else of these programs shows it.
    if judgement.relaxations.iter().any(|r| r.starts_with("lease")) {
        beside.extend(["known".to_owned(), "leases".to_owned()]);
    }
    beside
}

/// Whether an action only adds.
fn adds(action: Action) -> bool {
    matches!(
        action,
        Action::Add | Action::AddTwo | Action::AtomicAdd | Action::Subtract
    )
}

/// The packets in an order, with the time that each had there: a clock that never runs backwards. Captures of several
/// ports are merged by their stamps, so that packets of different ports may not have the same: a later one has one that is
/// some ns later, less than the unit in which programs look at the clock.
fn reordered(packets: &[Packet], ran: &Ran, order: &[u64]) -> Vec<Packet> {
    let (mut clock, mut port) = (0, 0);
    let in_order = order.iter().filter_map(|n| {
        let n = *n as usize;
        Some((packets.get(n)?, ran.fates.get(n)?.time))
    });
    in_order
        .map(|(p, time)| {
            let before = clock;
            clock = clock.max(time);
            if clock == before && p.port != port {
                clock += 1;
            }
            port = p.port;
            Packet {
                stamp: clock,
                ..p.clone()
            }
        })
        .collect()
}
