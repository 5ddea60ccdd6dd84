//! Every bundled function behind every model of a NIC: what is expected is the same, or said to differ.

use crate::support;

use millrace_place::Strategy;
use millrace_plan::plan::By;
use millrace_plan::{Plan, PlanError, Wanted, plan};
use millrace_steer::nic::{named, names};
use support::{Modelled, kind, modelled, object, port, program, source};

const FROM: &str = "source-address";
const TO: &str = "destination-address";
const FROM_PORT: &str = "source-port";
const TO_PORT: &str = "destination-port";
const ALL: [&str; 4] = [FROM, TO, FROM_PORT, TO_PORT];

/// Most that a plan may take on the processor, ms: far above the 100 that the benchmark asks for, as this is not
/// optimised.
const LONGEST: f64 = 3000.0;

/// Time that this thread was on a processor, ms; whatever else the machine does is not in it.
fn on_processor() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let ns: f64 = text.split_whitespace().next().unwrap().parse().unwrap();
    ns / 1e6
}

/// A function's plan behind each NIC, and the time of the fastest.
fn behind_each(name: &str, expected: Strategy, holds: impl Fn(&Plan, &str)) {
    let Some(mut modelled) = modelled(&source(name)) else {
        return;
    };
    let mut fastest = f64::INFINITY;
    for nic in names() {
        let began = on_processor();
        let plan = modelled.plan(nic);
        fastest = fastest.min(on_processor() - began);
        assert_eq!(plan.strategy, expected, "{name} behind {nic}");
        holds(&plan, nic);
    }
    assert!(fastest < LONGEST, "{name}: {fastest:.0} ms");
    println!("{name}: {fastest:.1} ms");
}

/// Index bits of the NIC's usual table.
fn index_bits(nic: &str) -> u32 {
    named(nic).unwrap().table_sizes[0].ilog2()
}

/// TCP over IPv4 of a port is told apart by these fields, as far as the table goes.
fn by(plan: &Plan, nic: &str, at: &str, fields: &[&str]) {
    let tcp = kind(port(plan, at), "ipv4-tcp");
    let name = &plan.name;
    assert!(tcp.bound && tcp.by == By::Nic, "{name} {nic} {at}: {tcp:?}");
    assert_eq!(tcp.fields, fields, "{name} {nic} {at}");
    assert_eq!(
        tcp.table_rank,
        index_bits(nic),
        "{name} {nic} {at}: {tcp:?}"
    );
    // No difference between two flows leaves their entry to be foreseen.
    let guess = tcp.guess.unwrap();
    assert!(
        guess.entry_bits >= 1 && guess.core_bits > 0.9,
        "{name} {nic} {at}: {guess:?}"
    );
}

#[test]
fn without_state_and_with_state_that_is_only_read() {
    for name in ["nop", "sbridge"] {
        behind_each(name, Strategy::Spread, |plan, _| {
            assert!(plan.ports.iter().all(|p| p.kinds.iter().all(|k| !k.bound)));
        });
    }
}

#[test]
fn mac_addresses_are_hashed_by_none() {
    behind_each("bridge", Strategy::Lock, |plan, nic| {
        let stations = object(plan, "stations");
        assert!(
            stations.infeasible && stations.reason.contains("MAC"),
            "{nic}"
        );
    });
}

#[test]
fn one_address() {
    behind_each("policer", Strategy::Shard, |plan, nic| {
        by(plan, nic, "WAN", &[TO]);
    });
    behind_each("psd", Strategy::Shard, |plan, nic| {
        by(plan, nic, "WAN", &[FROM]);
    });
}

#[test]
fn both_addresses() {
    behind_each("cl", Strategy::Shard, |plan, nic| {
        by(plan, nic, "LAN", &[FROM, TO]);
    });
}

#[test]
fn flows_of_two_ports_go_by_hosts_and_ports() {
    behind_each("firewall", Strategy::Shard, |plan, nic| {
        for at in ["LAN", "WAN"] {
            by(plan, nic, at, &ALL);
        }
    });
}

#[test]
fn whole_connections() {
    behind_each("conntrack", Strategy::Shard, |plan, nic| {
        by(plan, nic, "*", &ALL);
    });
}

#[test]
fn translated_flows_and_their_leased_ports() {
    behind_each("nat", Strategy::Shard, |plan, nic| {
        by(plan, nic, "LAN", &ALL);
        by(plan, nic, "WAN", &[TO_PORT]);
    });
}

#[test]
fn the_coarsest_prefix() {
    behind_each("hhh", Strategy::Shard, |plan, nic| {
        let tcp = kind(port(plan, "WAN"), "ipv4-tcp");
        assert_eq!(tcp.fields, [FROM], "{nic}: {tcp:?}");
        // Of a /8 eight bits can be told apart, whatever the table.
        assert_eq!(tcp.table_rank, index_bits(nic).min(8), "{nic}: {tcp:?}");
    });
}

#[test]
fn the_three_kinds_of_no() {
    for (name, of, says) in [
        ("two_counters", "by_destination", "D = 0"),
        ("overlap", "combed", "windows in the key overlap"),
        ("narrow", "quarters", "only 2 bits reach"),
    ] {
        let Some(plan) = program(name) else { return };
        let o = object(&plan, of);
        assert!(o.infeasible && o.reason.contains(says), "{name}: {o:?}");
        let others = ["D = 0", "windows in the key overlap", "bits reach"];
        let said = others.iter().filter(|s| o.reason.contains(**s)).count();
        assert_eq!(said, 1, "{name}: {}", o.reason);
    }
}

#[test]
fn more_cores_than_a_nic_can_name() {
    let Some(Modelled {
        program, mut model, ..
    }) = modelled(&source("nop"))
    else {
        return;
    };
    for (nic, most, says) in [
        ("82599", 16, "it has 16 queues"),
        ("generic", 128, ""),
        ("connectx5", 512, ""),
    ] {
        let mut with = |cores: u32| {
            let nic = nic.to_owned();
            plan(
                &mut model,
                &program,
                &Wanted {
                    cores,
                    nic,
                    ..Wanted::default()
                },
            )
        };
        assert_eq!(with(most).unwrap().cores, most, "{nic}");
        for cores in [most + 1, 0] {
            let error = with(cores).unwrap_err();
            assert!(matches!(error, PlanError::Cores { .. }), "{nic}: {error}");
            if cores > most {
                assert!(error.to_string().contains(says), "{nic}: {error}");
            }
        }
    }
}
