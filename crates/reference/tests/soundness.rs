//! Random programs that the checker admits, executed by the interpreter: none steps outside of its memory, and all end.
//! With a rule switched off the same test catches programs that break it.

use millrace_assemble::generate;
use millrace_check::{Options, Rule, check};
use millrace_reference::{End, Machine, Violation};
use rand::{RngExt, SeedableRng};

struct Tally {
    admitted: u32,
    executions: u32,
    violations: Vec<(Violation, String)>,
}

fn try_programs(programs: u64, disabled: Vec<Rule>) -> Tally {
    let options = Options {
        disabled,
        max_visits: 20_000,
        ..Options::default()
    };
    let mut tally = Tally {
        admitted: 0,
        executions: 0,
        violations: Vec::new(),
    };
    for seed in 0..programs {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let len = rng.random_range(1..60);
        let bytes: Vec<u8> = (0..len).map(|_| rng.random()).collect();
        let program = generate::program(&bytes);
        let Ok(checked) = check(&program, &options) else {
            continue;
        };
        tally.admitted += 1;
        for _ in 0..12 {
            let len = rng.random_range(0..70);
            let packet: Vec<u8> = (0..len)
                .map(|_| {
                    if rng.random() {
                        rng.random()
                    } else {
                        rng.random_range(0..70)
                    }
                })
                .collect();
            let entry = &program.entries[0];
            tally.executions += 1;
            // Two nested loops of forty rounds, a hundred instructions each, are well below this.
            let mut machine = Machine::new(&program, &packet, rng.random());
            machine.begin_as_proved(&checked);
            let end = machine.run(entry.function, entry.role, 1_000_000);
            let violation = match end {
                Ok(End::Verdict(_)) => continue,
                Ok(End::OutOfSteps) => Violation("does not end".to_owned()),
                Err(v) => v,
            };
            let text: Vec<String> = program.functions[0]
                .insns
                .iter()
                .enumerate()
                .map(|(i, x)| format!("{i}: {x}"))
                .collect();
            tally.violations.push((violation, text.join("\n")));
            break;
        }
    }
    tally
}

#[test]
fn admitted_programs_stay_inside() {
    // More when there is time: SOUNDNESS_PROGRAMS=1000000 cargo test --release …
    let programs = std::env::var("SOUNDNESS_PROGRAMS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(6000);
    let t = try_programs(programs, Vec::new());
    if let Some((v, text)) = t.violations.first() {
        panic!("{v:?}\n{text}");
    }
    // Enough programs pass for the test to mean something, and enough do not.
    assert!(
        u64::from(t.admitted) > programs / 10 && u64::from(t.admitted) < programs * 9 / 10,
        "{} admitted",
        t.admitted
    );
    assert!(t.executions >= 12 * t.admitted);
}

#[test]
fn a_missing_rule_is_noticed() {
    for rule in [
        Rule::PacketBounds,
        Rule::StackBounds,
        Rule::ValueBounds,
        Rule::RecordBounds,
        Rule::UncheckedNull,
        Rule::UninitialisedStack,
        Rule::RecordLeak,
        Rule::Atomic,
    ] {
        let t = try_programs(3000, vec![rule]);
        assert!(
            !t.violations.is_empty(),
            "without {} nothing was noticed ({} admitted)",
            rule.name(),
            t.admitted
        );
    }
}
