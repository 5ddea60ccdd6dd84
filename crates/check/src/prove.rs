//! One entry, from instructions to facts: explore, and where that fails, remember more or take
//! loops round by round, and explore again.

use millrace_object::program::{Entry, FunctionId, ObjectId, Program, Role};

use crate::budget::{Budget, Spent};
use crate::explore::plan::Plan;
use crate::explore::{Explored, Explorer, Failure, Why};
use crate::facts::{Access, Flow, Op, Refusal, StepId, timed_role};
use crate::flow::loops::LoopId;
use crate::refuse::{Fault, refusal};
use crate::rule::Rule;
use crate::{Options, Statistics, dispatch, expand, part, zero};

/// All explorations of an object together may take so many times what one may.
const TRIES: u64 = 4;

/// Explorations before everything is remembered.
const PATIENCE: u32 = 24;

/// How often a flow may be laid out for calls on several objects. An exploration that ends has seen all objects of every call, so the
/// second layout is the last, unless what was forgotten at other places lets others seem possible.
const LAYOUTS: u32 = 4;

/// Proves one entry safe.
///
/// # Errors
/// The rule that it breaks, when everything has been tried.
pub fn prove(
    program: &Program,
    entry: &Entry,
    (options, budget): (&Options, Budget),
    statistics: &mut Statistics,
) -> Result<Flow, Box<Refusal>> {
    let flow = expand::expand(program, entry, options)?;
    prove_flow(program, entry.role, flow, (options, budget), statistics)
}

/// Proves a function safe that timers of a map call.
///
/// # Errors
/// The rule that it breaks.
pub fn prove_timed(
    program: &Program,
    object: ObjectId,
    function: FunctionId,
    (options, budget): (&Options, Budget),
    statistics: &mut Statistics,
) -> Result<Flow, Box<Refusal>> {
    let flow = expand::expand_timed(program, object, function, options)?;
    let role = timed_role(program, object, function);
    prove_flow(program, role, flow, (options, budget), statistics)
}

fn prove_flow(
    program: &Program,
    role: Role,
    mut flow: Flow,
    (options, budget): (&Options, Budget),
    statistics: &mut Statistics,
) -> Result<Flow, Box<Refusal>> {
    let (mut layouts, mut parted, before) = (1, 0, statistics.visits);
    let mut unwritten: Option<(StepId, Fault)> = None;
    let (facts, carrying) = loop {
        if let Some(spent) = budget.spent() {
            return Err(refusal(program, &flow, StepId(0), over(spent)));
        }
        let mut plan = Plan::new(program, &flow, role);
        plan.gathers = unwritten.is_some();
        let explored = search(
            program,
            role,
            &flow,
            (options, budget),
            &mut plan,
            statistics,
        );
        if let Some((step, fault)) = unwritten.take() {
            // Another rule that is broken goes first: zeros do not help there.
            let explored = explored.map_err(|(step, f)| refusal(program, &flow, step, f))?;
            drop(plan);
            let shown = refusal(program, &flow, step, fault);
            if !zero::begin(&mut flow, &explored.unwritten) {
                return Err(shown);
            }
            continue;
        }
        let explored = match explored {
            Err(fault) if fault.1.rule == Rule::UninitialisedStack => {
                unwritten = Some(fault);
                continue;
            }
            other => other.map_err(|(step, fault)| refusal(program, &flow, step, fault))?,
        };
        let several = explored.facts.several();
        if several.is_empty() {
            let decided = explored.facts.decided();
            let carrying = plan.carrying_loads(&explored.numbers, &decided);
            break (explored.facts, carrying);
        }
        drop(plan);
        let alike =
            |(_, objects): &&(StepId, Vec<ObjectId>)| dispatch::named(program, objects).is_none();
        if let Some(&(at, _)) = several.iter().find(alike) {
            let spent = statistics.visits - before;
            let may = parted < part::MOST && spent <= options.max_visits;
            if !(may && part::part(&mut flow, at)) {
                return Err(refusal(program, &flow, at, dispatch::fault()));
            }
            parted += 1;
            continue;
        }
        for (at, objects) in several {
            if layouts == LAYOUTS {
                return Err(refusal(program, &flow, at, dispatch::fault()));
            }
            let named = dispatch::named(program, &objects).unwrap_or_default();
            dispatch::split(&mut flow, at, &named, options.max_steps)
                .map_err(|fault| refusal(program, &flow, at, fault))?;
        }
        layouts += 1;
    };
    facts.finish(&mut flow);
    for (step, carries) in flow.steps.iter_mut().zip(carrying) {
        step.load_once = carries && step.access.is_some_and(|a| others_write(program, a));
    }
    Ok(flow)
}

/// Whether somebody else may write there while the program runs. Constants and parameters change
/// between bursts at most, the stack and the context belong to the execution.
fn others_write(program: &Program, access: Access) -> bool {
    match access {
        Access::Packet | Access::Record(_) | Access::Several => true,
        Access::Value(object) => program.objects.get(object.0).is_none_or(|o| !o.read_only),
        Access::Context { .. } | Access::Stack { .. } => false,
    }
}

fn search(
    program: &Program,
    role: Role,
    flow: &Flow,
    (options, budget): (&Options, Budget),
    plan: &mut Plan<'_>,
    statistics: &mut Statistics,
) -> Result<Explored, (StepId, Fault)> {
    // What went wrong while loops were still taken together says more than an exhausted budget.
    let mut first: Option<(StepId, Fault)> = None;
    let mut round = 0;
    loop {
        round += 1;
        statistics.rounds += 1;
        let left = (TRIES * options.max_visits)
            .saturating_sub(statistics.visits)
            .min(options.max_visits);
        let explorer = Explorer::new(program, role, flow, options, plan, budget);
        let failure = match explorer.run(left) {
            Ok(explored) => {
                statistics.visits += explored.visits;
                statistics.states += explored.states;
                return Ok(explored);
            }
            Err(f) => f,
        };
        statistics.visits += failure.visits;
        statistics.states += failure.states;
        if improve(plan, &failure, round) {
            continue;
        }
        let over = matches!(failure.why, Why::Budget(_) | Why::Spent(_));
        if !over && keep_apart(plan, &failure.joined) {
            first = first.or_else(|| Some(fault(flow, plan, options, *failure)));
            continue;
        }
        if !over && unroll(plan, &failure.widened) {
            first = first.or_else(|| Some(fault(flow, plan, options, *failure)));
            continue;
        }
        let last = fault(flow, plan, options, *failure);
        return Err(match first {
            Some(f) if matches!(last.1.rule, Rule::UnboundedLoop | Rule::TooComplex) => f,
            _ => last,
        });
    }
}

/// Whether the plan could be changed so that the same failure may not happen again.
fn improve(plan: &mut Plan<'_>, failure: &Failure, round: u32) -> bool {
    match failure.why {
        Why::Uncounted(l) => plan.unroll.insert(l),
        // Joined states may have more paths than those that they stand for, though few have.
        Why::Budget(_) if !failure.joined.is_empty() => !std::mem::replace(&mut plan.exact, true),
        Why::Budget(_) | Why::Spent(_) => false,
        // What was forgotten may have widened a counter's bounds.
        Why::Rounds => plan.remember_all(),
        Why::Rule(_) | Why::Endless => {
            round < PATIENCE && plan.refine(&failure.undecided, &failure.numbers)
                || plan.remember_all()
        }
    }
}

/// Joins no states any more where the failing way did; false if it joined none.
fn keep_apart(plan: &mut Plan<'_>, blocks: &[usize]) -> bool {
    let mut new = false;
    for &b in blocks {
        new |= plan.apart.insert(b);
    }
    new
}

fn unroll(plan: &mut Plan<'_>, loops: &[LoopId]) -> bool {
    let mut new = false;
    for &l in loops {
        new |= plan.unroll.insert(l);
    }
    new
}

fn fault(flow: &Flow, plan: &Plan<'_>, options: &Options, failure: Failure) -> (StepId, Fault) {
    match failure.why {
        Why::Rule(f) => (failure.step, f),
        Why::Endless => (
            loop_step(flow, plan, failure.step),
            unbounded(
                "comes round without any change in what is known, so nothing shows that it ends",
            ),
        ),
        Why::Rounds => (
            loop_step(flow, plan, failure.step),
            Fault::new(
                Rule::TooManyRounds,
                format!(
                    "the rounds of this loop, with those of the loops in it and around it, may be more than {} steps for one packet, where a call counts each byte that it touches",
                    crate::explore::terminate::MOST_WORK
                ),
                "Give the loops, or the calls of `bpf_loop`, smaller constant bounds, or do less in each round.",
            ),
        ),
        Why::Spent(spent) => (failure.step, over(spent)),
        Why::Uncounted(_) => (
            loop_step(flow, plan, failure.step),
            unbounded("has no counter that shows that it ends"),
        ),
        Why::Budget(Some(l)) => {
            let head = plan
                .loops
                .all
                .get(l)
                .and_then(|l| plan.blocks.starts.get(l.head))
                .copied()
                .unwrap_or(0);
            (
                loop_step(flow, plan, StepId(head)),
                unbounded(&format!(
                    "was followed round by round, and had not ended when {} instructions had been followed in all",
                    options.max_visits
                )),
            )
        }
        Why::Budget(None) => (
            failure.step,
            Fault::new(
                Rule::TooComplex,
                format!(
                    "check: after {} instructions for one program, or {} for all of the object, not every way had been followed to its end",
                    options.max_visits,
                    TRIES * options.max_visits
                ),
                "Split the program into fewer combinations of conditions, or give loops a smaller constant bound, and an object of many programs into several; or raise the limit with `--budget-time SECONDS`, with which it grows.",
            ),
        ),
    }
}

/// The object's budget ended the proof.
pub fn over(spent: Spent) -> Fault {
    Fault::new(
        Rule::TooComplex,
        format!(
            "check: {spent} is used up, and not every way through the program has been followed to its end"
        ),
        format!(
            "Split the program into fewer combinations of conditions; or {}.",
            spent.raise()
        ),
    )
}

fn unbounded(what: &str) -> Fault {
    Fault::new(
        Rule::UnboundedLoop,
        format!("this loop {what}"),
        "Count its rounds up to a constant: `for (int i = 0; i < 64; i++)`, with every other way out as a `break`.",
    )
}

/// The instruction that an author would point at for the loop around a step: the branch that goes
/// back, or the head.
fn loop_step(flow: &Flow, plan: &Plan<'_>, step: StepId) -> StepId {
    let Some(&block) = plan.blocks.of.get(step.0) else {
        return step;
    };
    let Some(l) = plan
        .loops
        .at_head(block)
        .and_then(|l| plan.loops.all.get(l))
    else {
        return step;
    };
    let back = l
        .latches
        .first()
        .map(|&b| plan.blocks.steps(b).end.saturating_sub(1));
    match back {
        Some(at) if matches!(flow.steps.get(at).map(|s| s.op), Some(Op::Branch { .. })) => {
            StepId(at)
        }
        _ => step,
    }
}
