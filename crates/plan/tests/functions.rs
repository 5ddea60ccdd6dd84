//! What is planned for the bundled functions, and for programs that must not be sharded.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use millrace_plan::plan::{By, Rule};
use millrace_plan::{Plan, Strategy, Treatment};
use support::{function, kind, object, port, program};

const TO: &str = "destination-address";
const FROM: &str = "source-address";
const TO_PORT: &str = "destination-port";
const FROM_PORT: &str = "source-port";

fn decided(plan: &Plan, name: &str) -> (Treatment, Rule) {
    let o = object(plan, name);
    (o.treatment, o.rule)
}

/// The fields that count for TCP over IPv4, all of whose packets the whole index tells apart.
fn counting(plan: &Plan, at: &str) -> Vec<String> {
    let tcp = kind(port(plan, at), "ipv4-tcp");
    assert!(tcp.bound && tcp.by == By::Nic, "{tcp:?}");
    assert_eq!(tcp.table_rank, 7, "{tcp:?}");
    tcp.fields.clone()
}

#[test]
fn without_state_any_packet_goes_anywhere() {
    let Some(plan) = function("nop") else { return };
    assert_eq!(plan.strategy, Strategy::Spread);
    let Some(plan) = function("sbridge") else {
        return;
    };
    assert_eq!(plan.strategy, Strategy::Spread);
    assert_eq!(decided(&plan, "stations").0, Treatment::Spread);
}

#[test]
fn the_policer_shards_on_the_destination() {
    let Some(plan) = function("policer") else {
        return;
    };
    assert_eq!(plan.strategy, Strategy::Shard);
    assert_eq!(decided(&plan, "buckets"), (Treatment::Shard, Rule::R1));
    assert_eq!(counting(&plan, "WAN"), [TO]);
    assert!(port(&plan, "LAN").kinds.iter().all(|k| !k.bound));
    // One key cannot cancel the source of IPv6 and keep the destination of IPv4.
    let six = kind(port(&plan, "WAN"), "ipv6-tcp");
    assert_eq!(
        (six.by, six.fields.as_slice()),
        (By::Software, &[TO.to_owned()][..])
    );
    assert!(plan.relaxations.iter().any(|r| r.name == "capacity"));
}

#[test]
fn the_bridge_is_locked_because_of_mac_addresses() {
    let Some(plan) = function("bridge") else {
        return;
    };
    assert_eq!(plan.strategy, Strategy::Lock);
    let o = object(&plan, "stations");
    assert_eq!((o.treatment, o.rule), (Treatment::Lock, Rule::R4));
    assert!(o.infeasible && o.reason.contains("MAC address"), "{o:?}");
    assert!(o.line.as_ref().unwrap().starts_with("bridge.c:"));
    assert!(o.remedy.as_ref().unwrap().contains("static"));
}

#[test]
fn the_firewall_shards_with_swapped_keys() {
    let Some(plan) = function("firewall") else {
        return;
    };
    assert_eq!(plan.strategy, Strategy::Shard);
    assert_eq!(decided(&plan, "flows"), (Treatment::Shard, Rule::R1));
    for at in ["LAN", "WAN"] {
        assert_eq!(counting(&plan, at), [FROM, TO, FROM_PORT, TO_PORT]);
        assert!(port(&plan, at).inside);
        // Errors behind extension headers can be about any flow.
        let six = kind(port(&plan, at), "ipv6-tcp");
        let because = six.because.as_deref().unwrap();
        assert!(
            six.fields.is_empty() && because.starts_with("firewall.c:"),
            "{six:?}"
        );
        assert!(because.contains("on WAN"), "{because}");
    }
    // An answer goes where what it answers went, whatever the secret.
    for secret in 0..4 {
        let steering = plan.steering(2, [secret; 32]).unwrap();
        let mut cores = std::collections::BTreeSet::new();
        for n in 0..200_u32 {
            let (a, b) = ([10, 0, 0, n as u8], [192, 0, 2, (n * 7) as u8]);
            let (p, q) = (1024 + n as u16, 80);
            let there = steering[0].queue(&tcp(a, b, p, q));
            assert_eq!(there, steering[1].queue(&tcp(b, a, q, p)), "{n}");
            cores.insert(there);
        }
        assert!(cores.len() > 8, "{cores:?}");
    }
}

#[test]
fn the_connection_limiter_shards_on_both_addresses() {
    let Some(plan) = function("cl") else { return };
    assert_eq!(plan.strategy, Strategy::Shard);
    assert_eq!(decided(&plan, "opened"), (Treatment::Shard, Rule::R1));
    assert_eq!(decided(&plan, "flows"), (Treatment::Shard, Rule::R2));
    assert_eq!(counting(&plan, "LAN"), [FROM, TO]);
    assert!(plan.relaxations.iter().any(|r| r.name == "collision"));
}

#[test]
fn the_nat_shards_on_the_server() {
    let Some(plan) = function("nat") else { return };
    assert_eq!(plan.strategy, Strategy::Shard);
    assert_eq!(decided(&plan, "leases"), (Treatment::Shard, Rule::R5));
    assert_eq!(decided(&plan, "flows"), (Treatment::Shard, Rule::R2));
    assert_eq!(counting(&plan, "LAN"), [TO, TO_PORT]);
    assert_eq!(counting(&plan, "WAN"), [FROM, FROM_PORT]);
    assert!(plan.relaxations.iter().any(|r| r.name == "lease"));
    // What a server sends back goes where the packet to it went, whichever number was leased.
    let steering = plan.steering(2, [9; 32]).unwrap();
    for n in 0..200_u32 {
        let server = [198, 51, 100, n as u8];
        let out = steering[0].queue(&tcp([10, 0, 0, 1], server, 5000, 443));
        let back = tcp(server, [192, 0, 2, 1], 443, 1024 + 17 * n as u16);
        assert_eq!(out, steering[1].queue(&back), "{n}");
    }
}

#[test]
fn xdp_objects_shard_on_what_their_keys_are() {
    for (name, of, fields) in [
        ("ddos", "sources", &[FROM][..]),
        ("portknock", "sources", &[FROM]),
        // First fragments have ports, later ones count for their pair of hosts.
        ("heavyhitter", "flows", &[FROM, TO]),
        ("tokenbucket", "buckets", &[FROM, TO]),
    ] {
        let Some(plan) = function(name) else { return };
        assert_eq!(plan.strategy, Strategy::Shard, "{name}");
        assert_eq!(decided(&plan, of), (Treatment::Shard, Rule::R1), "{name}");
        let counting = counting(&plan, "*");
        assert!(
            fields.iter().all(|f| counting.contains(&(*f).to_owned())),
            "{name}: {counting:?}"
        );
        if fields.len() == 1 {
            assert_eq!(counting, fields, "{name}");
        }
    }
}

#[test]
fn two_counters_cannot_both_be_sharded() {
    let Some(plan) = program("two_counters") else {
        return;
    };
    assert_eq!(plan.strategy, Strategy::Mixed);
    assert_eq!(decided(&plan, "by_source"), (Treatment::Shard, Rule::R1));
    let o = object(&plan, "by_destination");
    assert_eq!((o.treatment, o.rule), (Treatment::Lock, Rule::R3));
    assert!(o.infeasible && o.reason.contains("D = 0"), "{o:?}");
    assert_eq!(counting(&plan, "LAN"), [FROM]);
}

#[test]
fn one_place_for_all_packets_does_not_shard() {
    let Some(plan) = program("constant_key") else {
        return;
    };
    assert_eq!(plan.strategy, Strategy::Lock);
    for name in ["total", ".bss"] {
        let o = object(&plan, name);
        assert_eq!((o.treatment, o.rule), (Treatment::Lock, Rule::R4), "{name}");
        assert!(o.reason.contains("constant"), "{o:?}");
    }
}

#[test]
fn a_key_from_state_does_not_shard() {
    let Some(plan) = program("key_from_state") else {
        return;
    };
    assert_eq!(plan.strategy, Strategy::Mixed);
    assert_eq!(decided(&plan, "groups"), (Treatment::Shard, Rule::R1));
    let o = object(&plan, "counts");
    assert_eq!((o.treatment, o.rule), (Treatment::Lock, Rule::R4));
    assert!(o.reason.contains("read from groups"), "{o:?}");
}

/// A TCP segment over IPv4.
fn tcp(from: [u8; 4], to: [u8; 4], sport: u16, dport: u16) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
    frame.extend(from);
    frame.extend(to);
    frame.extend(sport.to_be_bytes());
    frame.extend(dport.to_be_bytes());
    frame.extend([0; 16]);
    frame
}
