//! Modules whose workers share state: on several threads, under sanitizers, with threads switched at places
//! that a seed chooses; and what they did, replayed by one worker in the order in which they committed it.

use crate::support;

use support::traffic::{SECOND, events, frame};
use support::workers::{Build, Event, PHASE, Result, TIMER, Way, difference, sharing, writers};
use support::{Bench, nf};

use millrace_emit::{Sharing, Test};
use millrace_object::Program;
use millrace_turns::of_today;

/// Runs events in each way that has its turn, `made` for this many workers; each must be what one worker makes of them
/// in the order of commits.
fn equal(
    bench: &Bench,
    program: &Program,
    shared: &[&str],
    workers: &[u32],
    made: impl Fn(u32) -> Vec<Event>,
) -> Vec<(Result, Vec<Event>)> {
    let name = &program.name;
    let text = bench.shared_text(program, &sharing(program, shared));
    let alone = bench.alone("alone", program, Build::Reference);
    let cold = "#define MR_CACHE_BYTES 0\n#define MR_FEW 0u\n";
    let mut results = Vec::new();
    // Each day threads are watched, and memory or what the optimiser makes of it.
    let ways = [
        (Build::Thread, true, 32),
        (Build::Thread, false, 32),
        (Build::Address, false, 7),
        (Build::Plain, false, 100),
    ];
    for (build, plain, burst) in of_today("builds of a shared module", ways, 2) {
        let module = bench.build("shared", &format!("{cold}{text}"), build);
        for &workers in workers {
            let events = made(workers);
            let way = Way {
                workers,
                plain,
                burst,
                rounds: 1,
            };
            let result = bench.replayed(program, (&module, &alone), build, way, &events);
            let result = result.unwrap_or_else(|e| panic!("{name}, {build:?}, {way:?}: {e}"));
            results.push((result, events));
        }
    }
    results
}

fn firewall_events(workers: u32) -> Vec<Event> {
    events(workers, 40, 120, 110 * SECOND, |random, _| {
        let lan = random.below(2) == 0;
        let (host, port) = (10 + random.below(12) as u32, 1000 + random.below(4) as u16);
        let bytes = match lan {
            true => frame((1, 2), host, 99, (port, 80)),
            false => frame((2, 1), 99, host, (80, port)),
        };
        (u32::MAX, u32::from(!lan), bytes)
    })
}

#[test]
fn firewall_on_two_and_four_workers() {
    let bench = Bench::new();
    let program = nf::load(&bench, "firewall");
    for run in equal(&bench, &program, &["flows"], &[2, 4], firewall_events) {
        let wrote = writers(&run);
        // Flows begin, end and are refreshed on several cores; most packets only read.
        assert!(wrote > 100 && wrote < run.1.len() / 2, "{wrote} writers");
    }
}

#[test]
fn bridge_on_two_and_four_workers() {
    let bench = Bench::new();
    let program = nf::load(&bench, "bridge");
    equal(&bench, &program, &["stations"], &[2, 4], |workers| {
        events(workers, 20, 200, 70 * SECOND, |random, _| {
            let (from, to) = (random.below(20) as u8, random.below(20) as u8);
            let port = u32::from(from % 2 == u8::from(random.below(50) != 0));
            (u32::MAX, port, frame((from, to), 1, 2, (3, 4)))
        })
    });
}

/// The flows are each worker's own, the backends and the table that a timer builds are shared.
#[test]
fn lb_shares_its_backends_and_not_its_flows() {
    let bench = Bench::new();
    let program = nf::load(&bench, "lb");
    let mut events = events(4, 40, 120, 20 * SECOND, |random, _| {
        if random.below(10) == 0 {
            let backend = random.below(9) as u8;
            return (
                u32::MAX,
                0,
                frame((backend, 99), 100 + u32::from(backend), 7, (9, 9)),
            );
        }
        let client = random.below(60) as u32;
        // As RSS would: a flow's packets at one worker.
        (
            client,
            1,
            frame((98, 99), 1000 + client, 5, (client as u16, 80)),
        )
    });
    // Between two phases, the timer.
    for at in (0..events.len()).rev() {
        if events[at].program == PHASE {
            let (phase, mut timer) = (events[at].clone(), events[at].clone());
            timer.program = TIMER;
            events.splice(at + 1..at + 1, [timer, phase]);
        }
    }
    let shared = [
        "backends",
        "unhealthy",
        "slots",
        "progress",
        "table",
        "walks",
    ];
    for run in equal(&bench, &program, &shared, &[4], |_| events.clone()) {
        let wrote = writers(&run);
        assert!(wrote > 10 && wrote < events.len() / 10, "{wrote} writers");
        let chosen = run.0.done.iter().filter(|d| d.outcome.fate == 3).count();
        assert!(chosen > 1000, "{chosen} forwarded");
    }
}

/// Leases are refreshed by readers, each core on its own.
#[test]
fn nat_shares_flows_and_leases() {
    let bench = Bench::new();
    let program = nf::load(&bench, "nat");
    let events = events(3, 30, 100, 50 * SECOND, |random, _| {
        let client = random.below(30) as u32;
        let lan = random.below(3) != 0;
        let bytes = match lan {
            true => frame(
                (1, 2),
                0x0a00_0001 + client,
                0xc633_6401,
                (2000 + client as u16, 80),
            ),
            false => frame((2, 1), 0xc633_6401, 0xcb00_7101, (80, 1024 + client as u16)),
        };
        (u32::MAX, u32::from(!lan), bytes)
    });
    for run in equal(&bench, &program, &["flows", "leases"], &[3], |_| {
        events.clone()
    }) {
        let wrote = writers(&run);
        assert!(wrote < events.len() / 2, "{wrote} writers");
    }
}

/// XDP, whose values are written through pointers.
#[test]
fn portknock_writes_through_value_pointers() {
    let bench = Bench::new();
    let program = nf::load(&bench, "portknock");
    let events = events(4, 30, 200, SECOND, |random, _| {
        let source = random.below(10) as u32;
        let port = 98 + random.below(6) as u16;
        (u32::MAX, 0, frame((1, 2), source, 9, (5, port)))
    });
    for (result, _) in equal(&bench, &program, &["sources"], &[4], |_| events.clone()) {
        assert!(result.entries[0].len() == 10);
    }
}

/// A packet is marked, counted by its worker and given a draw before it is known whether it writes shared
/// state; half of them do.
const UNSURE: &str = r#"
#include <millrace/nf.h>

VECTOR(seen, __u64, .capacity = 4);
MAP(sources, __u32, __u64, .capacity = 1024);
MAP(noted, __u32, __u64, .capacity = 1024);

ON_PACKET(p)
{
	__u8 *bytes = packet_bytes(p, 0, 54);
	__u64 *mine, *known;
	__u32 source, own;

	if (!bytes)
		return DROP;
	source = bytes[29];
	own = source & 3;
	mine = vector_at(&seen, own);
	if (!mine)
		return DROP;
	*mine += 1;
	bytes[0] ^= 0xff;
	bytes[1] = random32();
	bytes[1] ^= bytes[0];
	known = map_get(&sources, &source);
	if (known && *known >= 3) {
		map_put(&noted, &source, known);
		return FORWARD(1);
	}
	map_put(&sources, &source, &(__u64){ known ? *known + 1 : 1 });
	bytes[2] = random32();
	return FORWARD(0);
}
"#;

#[test]
fn what_a_reader_did_is_undone() {
    let bench = Bench::new();
    let program = nf::compile(&bench, "unsure", UNSURE);
    let made = || {
        events(4, 10, 200, SECOND, |random, _| {
            let source = random.below(200) as u32;
            // Each source at one worker, so that what is noted is apart.
            (source, 0, frame((1, 2), source, 9, (5, 6)))
        })
    };
    let text = bench.shared_text(&program, &sharing(&program, &["sources"]));
    let reader = text.split("reader0_").nth(1).unwrap();
    assert!(reader.matches("undo_keep(").count() >= 3, "{reader}");
    for run in equal(&bench, &program, &["sources"], &[4], |_| made()) {
        assert!(writers(&run) > 300);
    }
    // Where there is no room to keep what is overwritten, the reader becomes a writer.
    let small = format!("#define UNDO_MAX 2u\n{text}");
    let module = bench.build("small", &small, Build::Address);
    let alone = bench.alone("alone", &program, Build::Plain);
    let way = Way {
        workers: 4,
        plain: false,
        burst: 16,
        rounds: 1,
    };
    let modules = (&*module, &*alone);
    let result = bench.replayed(&program, modules, Build::Address, way, &made());
    result.unwrap();
}

/// Counts per key, through a value pointer.
const COUNTER: &str = r#"
#include <millrace/nf.h>

VECTOR(counts, __u64, .capacity = 4);

ON_PACKET(p)
{
	__u8 *bytes = packet_bytes(p, 0, 54);
	__u64 *count = bytes ? vector_at(&counts, bytes[29] & 3) : NULL;

	if (!count)
		return DROP;
	*count += 1;
	bytes[0] = *count;
	return FORWARD(1);
}
"#;

#[test]
fn a_lock_that_is_dropped_shows() {
    let bench = Bench::new();
    let program = nf::compile(&bench, "counter", COUNTER);
    let made = |phases| {
        events(4, phases, 2000, SECOND, |random, _| {
            (
                u32::MAX,
                0,
                frame((1, 2), random.below(2) as u32, 9, (5, 6)),
            )
        })
    };
    // Each of them writes, so that one phase meets often.
    equal(&bench, &program, &["counts"], &[4], |_| made(1));
    let events = made(4);
    let dropped = |seed: u64| {
        let sharing = Sharing {
            test: Some(Test {
                seed,
                dropped: true,
                log: false,
            }),
            ..sharing(&program, &["counts"])
        };
        bench.shared_text(&program, &sharing)
    };
    let alone = bench.alone("alone", &program, Build::Plain);
    let found = (0..10).find_map(|seed| {
        let module = bench.build("dropped", &dropped(seed), Build::Plain);
        let way = Way {
            workers: 4,
            plain: true,
            burst: 32,
            rounds: 1,
        };
        let result = bench
            .work(&program, &module, Build::Plain, way, &events)
            .unwrap();
        difference(
            &program,
            &result,
            &bench.replay(&program, &alone, &events, &result),
        )
    });
    assert!(found.is_some(), "no seed showed it");
    let module = bench.build("dropped", &dropped(1), Build::Thread);
    let way = Way {
        workers: 2,
        plain: true,
        burst: 32,
        rounds: 1,
    };
    let said = bench
        .work(&program, &module, Build::Thread, way, &events)
        .unwrap_err();
    assert!(said.contains("data race"), "{said}");
}
