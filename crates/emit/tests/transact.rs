//! Modules whose packets are transactions: on several threads, under sanitizers, with threads switched at places that a
//! seed chooses; and what they did, replayed by one worker in the order of their commits.

use crate::support;

use millrace_emit::{Sharing, Test};
use millrace_object::Program;
use millrace_place::{Held, Placement};
use millrace_turns::of_today;
use support::traffic::{SECOND, events, frame, talks};
use support::workers::{Build, Event, Way, written};
use support::{Bench, facts, nf};

/// These objects, or all that packets write, in transactions.
fn sharing(program: &Program, shared: &[&str]) -> Sharing {
    let held = |name: &str| match shared.contains(&name) {
        true => Held::Transacted,
        false => Held::Copied,
    };
    let held = program.objects.iter().map(|o| held(&o.name)).collect();
    Sharing {
        placement: Placement::even(&program.objects, 1, held),
        test: Some(Test::default()),
        profile: false,
    }
}

/// Runs events in each way there is; each must be what one worker makes of them in the order of commits.
fn equal(program: &Program, bench: &Bench, workers: &[u32], made: impl Fn(u32) -> Vec<Event>) {
    let name = &program.name;
    let text = bench.shared_text(program, &sharing(program, &written(program)));
    let alone = bench.alone(&format!("{name}-alone"), program, Build::Reference);
    let cold = "#define MR_CACHE_BYTES 0\n#define MR_FEW 0u\n";
    for (build, plain, burst) in [(Build::Address, true, 7), (Build::Plain, false, 32)] {
        let module = bench.build(&format!("{name}-shared"), &format!("{cold}{text}"), build);
        for &workers in workers {
            let events = made(workers);
            let way = Way {
                workers,
                plain,
                burst,
                rounds: 1,
            };
            let result = bench.replayed(program, (&module, &alone), build, way, &events);
            result.unwrap_or_else(|e| panic!("{name}, {build:?}, {way:?}: {e}"));
        }
    }
}

#[test]
fn bridge_is_replayed() {
    let bench = Bench::new();
    let program = nf::load(&bench, "bridge");
    equal(&program, &bench, &[2, 4], |workers| {
        events(workers, 12, 200, 70 * SECOND, |random, _| {
            let (from, to) = (random.below(20) as u8, random.below(20) as u8);
            let port = u32::from(from % 2 == u8::from(random.below(50) != 0));
            (u32::MAX, port, frame((from, to), 1, 2, (3, 4)))
        })
    });
}

#[test]
fn policer_is_replayed() {
    let bench = Bench::new();
    let program = nf::load(&bench, "policer");
    equal(&program, &bench, &[2, 4], |workers| {
        events(workers, 12, 200, 45 * SECOND, |random, _| {
            let to = 0x0a00_0001 + random.below(6) as u32;
            (u32::MAX, 1, frame((2, 1), 7, to, (80, 2000)))
        })
    });
}

/// What packets do not share costs nothing: where no object is in transactions, the code is that of a worker which shares nothing.
#[test]
fn what_is_not_shared_costs_nothing() {
    let bench = Bench::new();
    let program = nf::load(&bench, "policer");
    let checked = facts(&program);
    let alone = millrace_emit::alone::emit(&program, &checked, "m.c").unwrap();
    let emitted = |held: Vec<Held>| {
        let sharing = Sharing {
            placement: Placement::even(&program.objects, 1, held),
            test: None,
            profile: false,
        };
        millrace_emit::emit(&program, &checked, &sharing, "m.c").unwrap()
    };
    let divided = program.objects.iter().map(Held::where_all_is_divided);
    assert!(
        emitted(divided.collect()) == alone,
        "sharded code is another one"
    );
    let shared = program.objects.iter().map(|o| match o.read_only {
        true => Held::Copied,
        false => Held::Transacted,
    });
    let shared = emitted(shared.collect());
    assert!(shared.contains("shared_hash_") && !alone.contains("shared_hash_"));
}

/// A module in which the protocol has a fault gives what no order gives.
#[test]
fn planted_faults_are_found() {
    let bench = Bench::new();
    let program = nf::load(&bench, "policer");
    let text = bench.shared_text(&program, &sharing(&program, &written(&program)));
    let alone = bench.alone("alone", &program, Build::Reference);
    let events = events(4, 12, 400, 45 * SECOND, |random, _| {
        let to = 0x0a00_0001 + random.below(2) as u32;
        (u32::MAX, 1, frame((2, 1), 7, to, (80, 2000)))
    });
    let way = Way {
        workers: 4,
        plain: true,
        burst: 32,
        rounds: 1,
    };
    // An update from a version that was not seen, and a packet that runs alone without the lines (fastpath/sync/transact.h).
    for (fault, most) in [("4", ""), ("9", "#define TRANSACT_ALONE 2u\n")] {
        let text = format!("#define TRANSACT_FAULT(n) ((n) == {fault})\n{most}{text}");
        let module = bench.build(&format!("fault-{fault}"), &text, Build::Plain);
        let modules = (&*module, &*alone);
        let run = || bench.replayed(&program, modules, Build::Plain, way, &events);
        let found = (0..5).any(|_| run().is_err());
        assert!(found, "fault {fault} shows in nothing");
    }
}

/// Functions with all that they write: what transactions do not cover runs alone. Not those that lease numbers, of which another one is
/// as right: `verify` compares these (crates/cli/tests/transact.rs).
#[test]
fn others_are_replayed() {
    let bench = Bench::new();
    let events = talks(12);
    let way = Way {
        workers: 3,
        plain: false,
        burst: 32,
        rounds: 1,
    };
    let names = ["conntrack", "dummy", "firewall", "lb"];
    for name in of_today("functions under transactions", names, 4) {
        let program = nf::load(&bench, name);
        let text = bench.shared_text(&program, &sharing(&program, &written(&program)));
        let module = bench.build(name, &text, Build::Plain);
        let alone = bench.alone(&format!("{name}-alone"), &program, Build::Reference);
        let result = bench.replayed(&program, (&module, &alone), Build::Plain, way, &events);
        result.unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// `cargo test -p millrace-emit --test it what_two_workers_do -- --ignored --nocapture`: the ticks of two workers a packet, over
/// those of one that shares nothing, which has the same packets twice as often.
#[test]
#[ignore = "a measurement"]
fn what_two_workers_do() {
    let bench = Bench::new();
    let plain = |sharing: Sharing| Sharing {
        test: None,
        ..sharing
    };
    for (name, port, keys) in [
        ("bridge", 1, 64),
        ("policer", 1, 64),
        ("policer", 1, 20_000),
    ] {
        let program = nf::load(&bench, name);
        let checked = facts(&program);
        let all = written(&program);
        let alone = millrace_emit::alone::emit(&program, &checked, "m.c").unwrap();
        let lock = support::workers::sharing(&program, &all);
        let lock = millrace_emit::emit(&program, &checked, &plain(lock), "m.c").unwrap();
        let transact = plain(sharing(&program, &all));
        let transact = millrace_emit::emit(&program, &checked, &transact, "m.c").unwrap();
        let modules = [("alone", alone), ("lock", lock), ("transact", transact)];
        let modules = modules.map(|(n, t)| bench.build(&format!("{name}-{n}"), &t, Build::Plain));
        let made = |workers| {
            let all = events(workers, 1, 16_384, 0, |random, _| {
                let (from, to) = (random.below(250) as u8, random.below(250) as u8);
                let host = 0x0a00_0001 + random.below(keys) as u32;
                (u32::MAX, port, frame((from, to), 7, host, (80, 2000)))
            });
            all[..16_384].to_vec()
        };
        let one = made(1);
        let two = made(2);
        let mut rates = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..21 {
            let run = |module: usize, workers: u32| {
                let events = if workers == 1 { &one } else { &two };
                let way = Way {
                    workers,
                    plain: false,
                    burst: 32,
                    rounds: 30,
                };
                let run = bench.work(&program, &modules[module], Build::Plain, way, events);
                run.unwrap().ticks as f64
            };
            let base = run(0, 1);
            for (at, (module, workers)) in [(1, 1), (2, 1), (1, 2), (2, 2)].into_iter().enumerate()
            {
                rates[at].push(base / run(module, workers));
            }
        }
        for rates in &mut rates {
            rates.sort_by(f64::total_cmp);
        }
        let said = |at: usize| {
            let rates = &rates[at];
            format!("{:.2} ({:.2} to {:.2})", rates[10], rates[5], rates[15])
        };
        println!(
            "{name}, {keys} keys: one worker: lock {}, transact {}; two: lock {}, transact {}",
            said(0),
            said(1),
            said(2),
            said(3)
        );
    }
}
