//! Measurements of the lock's cost, run by hand (docs/measurements/bench.md, The lock).

use crate::support;

use millrace_emit::Sharing;
use millrace_object::Program;
use support::traffic::{events, frame};
use support::workers::{Build, Way, sharing};
use support::{Bench, nf};

/// `cargo test -p millrace-emit --test lock_cost -- --ignored --nocapture what_reading_costs`
#[test]
#[ignore = "a measurement"]
fn what_reading_costs() {
    let bench = Bench::new();
    let plain = |program: &Program, names: &[&str]| Sharing {
        test: None,
        ..sharing(program, names)
    };
    for (name, shared) in [("firewall", &["flows"][..]), ("sbridge", &["stations"])] {
        let program = nf::load(&bench, name);
        let events = events(1, 1, 2048, 0, |random, _| {
            let (host, port) = (10 + random.below(30) as u32, 1000 + random.below(32) as u16);
            (0, 0, frame((1, 2), host, 99, (port, 80)))
        });
        let events = &events[..2048];
        let alone = bench.alone(&format!("{name}-alone"), &program, Build::Plain);
        let text = bench.shared_text(&program, &plain(&program, shared));
        let shared = bench.build(&format!("{name}-shared"), &text, Build::Plain);
        for burst in [1, 32] {
            let way = Way {
                workers: 1,
                plain: false,
                burst,
                rounds: 2000,
            };
            let mut ticks = [Vec::new(), Vec::new()];
            for _ in 0..7 {
                for (module, ticks) in [&alone, &shared].into_iter().zip(&mut ticks) {
                    let run = bench.work(&program, module, Build::Plain, way, events);
                    ticks.push(run.unwrap().ticks as f64 / 100.0);
                }
            }
            for ticks in &mut ticks {
                ticks.sort_by(f64::total_cmp);
            }
            println!(
                "{name}, bursts of {burst}: alone {:.1} ticks a packet ({:.1} to {:.1}), as a reader {:.1} ({:.1} to {:.1})",
                ticks[0][3], ticks[0][0], ticks[0][6], ticks[1][3], ticks[1][0], ticks[1][6]
            );
        }
    }
}

/// `cargo test -p millrace-emit --test lock_cost -- --ignored --nocapture what_time_costs`
#[test]
#[ignore = "a measurement"]
fn what_time_costs() {
    let bench = Bench::new();
    for (name, shared) in [
        ("bridge", &["stations"][..]),
        // All that its timer works on beside its table.
        ("lb", &["backends", "slots", "progress", "table", "walks"]),
    ] {
        let program = nf::load(&bench, name);
        let there = |n: &&&str| program.objects.iter().any(|o| o.name == **n);
        let shared: Vec<&str> = shared.iter().filter(there).copied().collect();
        let plain = Sharing {
            test: None,
            ..sharing(&program, &shared)
        };
        let text = bench.shared_text(&program, &plain);
        // As it is, and with packets keeping the time that they came with.
        let kept = [
            (
                "lock_time_read(&self->shared->lock, self->core, packets[i]->time)",
                "packets[i]->time",
            ),
            (
                "lock_time_write(&self->shared->lock, pkt->time)",
                "pkt->time",
            ),
        ];
        let own = kept.iter().fold(text.clone(), |text, (moved, own)| {
            assert!(text.contains(moved), "there is no `{moved}` any more");
            text.replace(moved, own)
        });
        let modules = [("own", &own), ("moved", &text)];
        let modules = modules.map(|(n, t)| bench.build(&format!("{name}-{n}"), t, Build::Plain));
        for workers in [1, 2] {
            let events = events(workers, 1, 2048, 0, |random, _| {
                let (host, port) = (10 + random.below(30) as u32, 1000 + random.below(32) as u16);
                (u32::MAX, 1, frame((1, 2), host, 99, (port, 80)))
            });
            let way = Way {
                workers,
                plain: false,
                burst: 32,
                rounds: 100,
            };
            let mut ratios = Vec::new();
            // A turn that nobody has disturbed is the shortest.
            let mut best = [f64::INFINITY; 2];
            for _ in 0..201 {
                let ticks = modules.each_ref().map(|module| {
                    let run = bench.work(&program, module, Build::Plain, way, &events);
                    run.unwrap().ticks as f64
                });
                ratios.push(ticks[1] / ticks[0]);
                for (best, ticks) in best.iter_mut().zip(ticks) {
                    *best = best.min(ticks);
                }
            }
            ratios.sort_by(f64::total_cmp);
            println!(
                "{name}, {workers} workers: {:.3} of the time without by the best turns; {:.3} by the median, half of them \
                 {:.3} to {:.3}",
                best[1] / best[0],
                ratios[100],
                ratios[50],
                ratios[150]
            );
        }
    }
}

/// One of this many packets of each worker writes; the others look up one of a thousand flows.
const SHARES: &str = r#"
#include <millrace/nf.h>

PARAM(__u64, period, 0);
VECTOR(counted, __u64, .capacity = 1);
MAP(flows, __u32, __u64, .capacity = 4096);

ON_START(p)
{
	for (__u32 i = 0; i < 1024; i++)
		map_put(&flows, &i, &(__u64){ 0 });
}

ON_PACKET(p)
{
	__u8 *bytes = packet_bytes(p, 0, 54);
	__u64 *count = vector_at(&counted, 0), *value;
	__u32 key;

	if (!bytes || !count)
		return DROP;
	key = (bytes[28] << 8 | bytes[29]) & 1023;
	*count += 1;
	value = map_get(&flows, &key);
	if (!value)
		return DROP;
	if (*count >= period) {
		*count = 0;
		*value += 1;
	}
	return FORWARD(0);
}
"#;

/// `cargo test -p millrace-emit --test lock_cost -- --ignored --nocapture what_writing_costs`
#[test]
#[ignore = "a measurement"]
fn what_writing_costs() {
    let bench = Bench::new();
    let mut program = nf::compile(&bench, "shares", SHARES);
    let module = |program: &Program, name: &str, shared: &[&str]| {
        let sharing = Sharing {
            test: None,
            ..sharing(program, shared)
        };
        bench.build(name, &bench.shared_text(program, &sharing), Build::Plain)
    };
    let locked = module(&program, "locked", &["flows"]);
    let made = |workers: u32| {
        let packets = 2048 * workers;
        let mut made = events(workers, 1, packets, 0, |random, _| {
            let source = random.below(1024) as u32;
            (u32::MAX, 0, frame((1, 2), source, 9, (5, 6)))
        });
        made.truncate(packets as usize);
        for (at, event) in made.iter_mut().enumerate() {
            event.worker = at as u32 % workers;
        }
        made
    };
    println!("share of writers   2 workers / 1, both under the lock (range of 5)");
    for period in [u64::MAX, 100_000, 10_000, 1000, 100, 10] {
        program.set_param("period", &period.to_string()).unwrap();
        let mut gains = Vec::new();
        for _ in 0..5 {
            let ticks = |workers: u32| {
                let way = Way {
                    workers,
                    plain: true,
                    burst: 32,
                    rounds: 1000,
                };
                let run = bench.work(&program, &locked, Build::Plain, way, &made(workers));
                run.unwrap().ticks as f64
            };
            gains.push(ticks(1) / ticks(2));
        }
        gains.sort_by(f64::total_cmp);
        println!(
            "{:>10.4} %   {:.2} ({:.2} to {:.2})",
            100.0 / period as f64,
            gains[2],
            gains[0],
            gains[4]
        );
    }
}
