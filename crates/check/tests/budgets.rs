//! Budgets of time and memory for an object, and of work for a packet, on the worst known programs of each kind.

use std::fmt::Write;
use std::time::Duration;

use millrace_assemble::assemble;
use millrace_check::budget::{self, Budget};
use millrace_check::{Options, Refusal, check, check_with_statistics};

/// The one refusal of a program.
fn refusal(text: &str, options: &Options) -> Refusal {
    let mut refusals = check(&assemble(text), options).unwrap_err();
    assert_eq!(refusals.len(), 1, "{refusals:#?}");
    refusals.remove(0)
}

/// Names the stage, the budget, and how to raise it.
fn says(refusal: &Refusal, rule: &str, budget: &str, switch: &str) {
    assert_eq!(refusal.rule, rule, "{refusal:#?}");
    assert!(refusal.reason.starts_with("check: "), "{refusal:#?}");
    assert!(refusal.reason.contains(budget), "{refusal:#?}");
    assert!(refusal.remedy.contains(switch), "{refusal:#?}");
}

/// Functions that each call the next one so many times, seven deep: a few hundred bytes are a million steps.
fn tree(calls: usize) -> String {
    let mut text = String::new();
    for depth in 0..7 {
        let name = if depth == 0 { "main" } else { "f" };
        let number = if depth == 0 {
            String::new()
        } else {
            depth.to_string()
        };
        writeln!(text, "fn {name}{number}\nr6 = 1").unwrap();
        if depth < 6 {
            for _ in 0..calls {
                writeln!(text, "r1 = r6\ncall fn f{}\nr6 += r0", depth + 1).unwrap();
            }
        }
        text.push_str("call get_prandom_u32\nr0 ^= r6\nr0 &= 1\nexit\n");
    }
    text
}

/// Programs whose every path ends with other numbers that a pointer depends on: each state is one of its own.
fn paths(branches: usize) -> String {
    let mut text = "object t global value=4096\nr6 = 0\n".to_owned();
    for i in 0..branches {
        let bit = 1 << i;
        write!(
            text,
            "call get_prandom_u32\nif r0 > 7 goto a{i}\nr6 += {bit}\n*(u64 *)(r10 - {}) = r6\na{i}:\n",
            8 * (i % 60 + 1)
        )
        .unwrap();
    }
    text + "r1 = value t\nr1 += r6\nr0 = *(u8 *)(r1 + 0)\nr0 = 1\nexit"
}

#[test]
fn programs_of_an_object_share_its_steps() {
    says(
        &refusal(&tree(8), &Options::default()),
        "too-large",
        "object's budget",
        "--budget-memory",
    );
    // One alone would do.
    let one = tree(4);
    let steps = check(&assemble(&one), &Options::default()).unwrap().flows[0]
        .steps
        .len();
    let mut several = assemble(&one);
    let first = several.entries[0].clone();
    several.entries.extend(std::iter::repeat_n(first, 3));
    let options = |max_steps| Options {
        max_steps,
        ..Options::default()
    };
    check(&several, &options(4 * steps)).unwrap();
    let refusals = check(&several, &options(4 * steps - 1)).unwrap_err();
    assert_eq!(refusals.len(), 1);
    says(&refusals[0], "too-large", "left", "--budget-memory");
}

#[test]
fn programs_of_an_object_share_its_visits() {
    let mut program = assemble(&paths(11));
    let first = program.entries[0].clone();
    program.entries.extend(std::iter::repeat_n(first, 99));
    let options = Options {
        max_visits: 100_000,
        ..Options::default()
    };
    let (result, statistics) = check_with_statistics(&program, &options);
    let refusals = result.unwrap_err();
    says(
        &refusals[0],
        "too-complex",
        "for all of the object",
        "--budget-time",
    );
    assert!(statistics.visits < 4 * 100_000 + 200, "{statistics:?}");
}

#[test]
fn states_that_are_kept_are_bounded() {
    let small = Budget::begin(budget::TIME, 256 << 10);
    let options = Options {
        budget: Some(small),
        ..Options::default()
    };
    says(
        &refusal(&paths(12), &options),
        "too-complex",
        "of 256 KiB",
        "--budget-memory",
    );
    check(&assemble(&paths(12)), &Options::default()).unwrap();
}

#[test]
fn the_clock_ends_it() {
    let none = Budget::begin(Duration::ZERO, budget::MEMORY);
    let options = Options {
        budget: Some(none),
        ..Options::default()
    };
    says(
        &refusal(&paths(12), &options),
        "too-complex",
        "budget of 0 s",
        "--budget-time",
    );
}

#[test]
fn a_larger_budget_raises_what_is_counted() {
    let own = Options::default();
    let larger = Options::within(Budget::begin(3 * budget::TIME, 2 * budget::MEMORY));
    assert_eq!(larger.max_visits, 3 * own.max_visits);
    assert_eq!(larger.max_steps, 2 * own.max_steps);
    let smaller = Options::within(Budget::begin(budget::TIME / 2, budget::MEMORY / 2));
    assert_eq!(smaller.max_visits, own.max_visits);
    assert_eq!(smaller.max_steps, own.max_steps);
}

/// `rounds` calls of a function that writes a value of so many bytes.
fn updates(rounds: u32, bytes: u32) -> String {
    format!(
        "object m array key=4 value={bytes} capacity=2\nobject t global value={bytes}\nr1 = {rounds}\nr2 = function f\nr3 = 0\nr4 = 0\ncall loop\nr0 = 0\nexit\nfn f\n*(u32 *)(r10 - 4) = 0\nr1 = object m\nr2 = r10\nr2 += -4\nr3 = value t\nr4 = 0\ncall map_update_elem\nr0 = 0\nexit"
    )
}

#[test]
fn rounds_weigh_what_their_body_costs() {
    let options = Options::default();
    let accepts = |text: &str| drop(check(&assemble(text), &options).unwrap());
    accepts(&updates(1 << 23, 64));
    accepts(&updates(4096, 1 << 20));
    let refused = |text: &str| {
        let r = refusal(text, &options);
        assert_eq!(r.rule, "too-many-rounds", "{r:#?}");
        assert!(r.reason.contains("17179869184 steps"), "{r:#?}");
    };
    refused(&updates(1 << 23, 1 << 20));
    refused(&updates(1 << 15, 1 << 20));
    // Round by round it is as much.
    let mut straight =
        "object m array key=4 value=16777216 capacity=2\nobject t global value=16777216\n"
            .to_owned();
    for _ in 0..1200 {
        straight.push_str("*(u32 *)(r10 - 4) = 0\nr1 = object m\nr2 = r10\nr2 += -4\nr3 = value t\nr4 = 0\ncall map_update_elem\n");
    }
    refused(&(straight + "r0 = 0\nexit"));
}
