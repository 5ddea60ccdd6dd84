//! What is planned for the bundled functions, and for programs that must not be sharded.

use crate::support;

use millrace_place::{Strategy, Treatment};
use millrace_plan::Plan;
use millrace_plan::plan::{By, Rule};
use support::{decided, function, kind, object, port, program, tcp};

const TO: &str = "destination-address";
const FROM: &str = "source-address";
const TO_PORT: &str = "destination-port";
const FROM_PORT: &str = "source-port";

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
fn every_treatment_is_possible_or_said_not_to_be() {
    use Treatment::{Alone, Lock, Replicate, Shard, Spread, Transact};
    for (name, of, possible) in [
        (
            "policer",
            "buckets",
            &[Shard, Lock, Alone, Transact, Replicate][..],
        ),
        ("bridge", "stations", &[Lock, Alone, Transact, Replicate]),
        (
            "sbridge",
            "stations",
            &[Spread, Lock, Alone, Transact, Replicate],
        ),
        ("nat", "flows", &[Shard, Lock, Alone, Transact]),
    ] {
        let Some(plan) = function(name) else { return };
        let o = object(&plan, of);
        let all: Vec<Treatment> = o.offers.iter().map(|o| o.treatment).collect();
        // A function as a whole is hybrid.
        let mut wanted = Treatment::ALL.iter().filter(|t| **t != Treatment::Hybrid);
        assert!(wanted.all(|t| all.contains(t)), "{all:?}");
        let open = o.offers.iter().filter(|o| o.impossible.is_none());
        let open: Vec<Treatment> = open.map(|o| o.treatment).collect();
        assert_eq!(open, possible, "{name}");
        assert_eq!(o.treatment, open[0], "{name}");
        let shard = o.offers.iter().find(|o| o.treatment == Shard).unwrap();
        // What bars a table from being sharded is why it is locked.
        let locked = (o.treatment == Lock).then_some(&o.reason);
        assert!(locked.is_none_or(|reason| shard.impossible.as_ref() == Some(reason)));
    }
}

/// Nothing asks for it before something is measured; where it is asked for, all that packets change is replicated by R7, or the
/// object, the line and the reason against it are said.
#[test]
fn what_is_replicated_is_by_its_rows() {
    for (name, of, bytes) in [
        ("bridge", "stations", 15),
        ("portknock", "sources", 6),
        ("heavyhitter", "flows", 15),
    ] {
        let Some(mut modelled) = support::modelled(&support::source(name)) else {
            return;
        };
        let plan = modelled.replicated().unwrap();
        assert_eq!((plan.strategy, plan.cores), (Strategy::Replicate, 16));
        assert_eq!(decided(&plan, of), (Treatment::Replicate, Rule::R7));
        let o = object(&plan, of);
        assert!(
            o.reason.contains(&format!("a row of {bytes} bytes")),
            "{o:?}"
        );
        assert!(o.line.as_ref().unwrap().contains(".c:"), "{o:?}");
        assert_eq!(plan.history.as_ref().unwrap().bytes, bytes);
        let names: Vec<&str> = plan.relaxations.iter().map(|r| r.name).collect();
        assert!(
            names.contains(&"order") && names.contains(&"lost"),
            "{names:?}"
        );
        // Records are each core's own.
        let reports = plan.objects.iter().find(|o| o.name == "reports");
        assert!(reports.is_none_or(|o| o.treatment == Treatment::Merge));
        // A packet of one flow goes to any core.
        let steering = plan.steering(2, [3; 32]).unwrap();
        assert_eq!(steering.len(), 2);
    }
    let Some(mut nat) = support::modelled(&support::source("nat")) else {
        return;
    };
    let error = nat.replicated().unwrap_err().to_string();
    for part in ["replicate", "nat.c:", "forwards", "several kinds of memory"] {
        assert!(error.contains(part), "{error}");
    }
    let plan = nat.plan("generic");
    assert_eq!(plan.history.as_ref().unwrap().refusals.len(), 1);
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
fn the_nat_shards_by_what_it_leased() {
    let Some(plan) = function("nat") else { return };
    assert_eq!(plan.strategy, Strategy::Shard);
    assert_eq!(decided(&plan, "leases"), (Treatment::Shard, Rule::R6));
    assert_eq!(decided(&plan, "flows"), (Treatment::Shard, Rule::R2));
    // Hosts that all ask one server are told apart by their own address and port.
    assert_eq!(counting(&plan, "LAN"), [FROM, TO, FROM_PORT, TO_PORT]);
    assert_eq!(counting(&plan, "WAN"), [TO_PORT]);
    assert!(plan.relaxations.iter().any(|r| r.name == "lease"));
    let steering = plan.steering(2, [9; 32]).unwrap();
    let mut cores = std::collections::BTreeMap::new();
    for n in 0..20_000_u32 {
        let host = [10, 1, (n >> 8) as u8, n as u8];
        let out = steering[0].queue(&tcp(
            host,
            [8, 8, 8, 8],
            1024 + (n * 7919 % 60_000) as u16,
            53,
        ));
        *cores.entry(out).or_insert(0_u32) += 1;
    }
    assert_eq!(cores.len(), 16);
    assert!(
        cores.values().all(|n| *n <= 20_000 / 16 * 3 / 2),
        "{cores:?}"
    );
}

/// R5 of the paper's NAT, which a plan falls back to, and which traces may prefer.
fn by_the_server(plan: &Plan) {
    assert_eq!(plan.strategy, Strategy::Shard, "{:?}", plan.objects);
    assert_eq!(decided(plan, "leases"), (Treatment::Shard, Rule::R5));
    assert_eq!(decided(plan, "flows"), (Treatment::Shard, Rule::R2));
    assert_eq!(counting(plan, "LAN"), [TO, TO_PORT]);
    assert_eq!(counting(plan, "WAN"), [FROM, FROM_PORT]);
    assert!(plan.homes.is_empty() && !port(plan, "WAN").echoes);
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
fn where_numbers_cannot_come_home_the_server_is_compared() {
    let Some(mut nat) = support::modelled(&support::source("nat")) else {
        return;
    };
    let compared = millrace_plan::Wanted {
        cores: 16,
        carried: millrace_plan::Carried::Compared,
        ..millrace_plan::Wanted::default()
    };
    by_the_server(&millrace_plan::plan(&mut nat.model, &nat.program, &compared).unwrap());
    // Fewer numbers than the table has indexes: flows of some would never be leased one.
    let mut leases = nat
        .program
        .objects
        .iter_mut()
        .filter(|o| o.name == "leases");
    leases.next().unwrap().capacity = 100;
    by_the_server(&nat.plan("generic"));
    // No field of a packet holds the number.
    if let Some(plan) = program("last_byte") {
        by_the_server(&plan);
    }
}

/// What one core has all of, at a port: by how many bits of which fields it is known, and in words.
fn degenerate(plan: &Plan, at: &str) -> Vec<(Vec<(String, u32)>, String)> {
    let tcp = kind(port(plan, at), "ipv4-tcp");
    let each = tcp.degenerate.iter().inspect(|d| assert_eq!(d.cores, 1));
    let held = |d: &millrace_plan::plan::Degenerate| {
        let fields = d.fields.iter().map(|f| (f.field.clone(), f.bits));
        (fields.collect(), d.traffic.clone())
    };
    each.map(held).collect()
}

#[test]
fn a_plan_says_which_traffic_its_keys_do_not_spread() {
    let one = |fields: &[(&str, u32)], traffic: &str| {
        let fields = fields.iter().map(|(f, bits)| ((*f).to_owned(), *bits));
        vec![(fields.collect::<Vec<_>>(), traffic.to_owned())]
    };
    let all = [(FROM, 32), (TO, 32), (FROM_PORT, 16), (TO_PORT, 16)];
    for (name, at, fields, traffic) in [
        ("policer", "WAN", &[(TO, 32)][..], "packets to one address"),
        ("psd", "WAN", &[(FROM, 32)], "packets from one address"),
        ("hhh", "WAN", &[(FROM, 8)], "packets from one /8"),
        (
            "cl",
            "LAN",
            &[(FROM, 32), (TO, 32)],
            "packets from one address to one address",
        ),
        ("firewall", "WAN", &all, "packets of one flow"),
        ("nat", "LAN", &all, "packets of one flow"),
        (
            "nat",
            "WAN",
            &[(TO_PORT, 16)],
            "packets that carry one leased number",
        ),
    ] {
        let Some(plan) = function(name) else { return };
        assert_eq!(degenerate(&plan, at), one(fields, traffic), "{name} {at}");
        let said = millrace_plan::text::text(&plan).contains(&format!("not spread: {traffic} "));
        assert_eq!(said, fields.len() < 4, "{name} {at}");
    }
    let Some(plan) = program("last_byte") else {
        return;
    };
    let to = one(
        &[(TO, 32), (TO_PORT, 16)],
        "packets to one address and port",
    );
    assert_eq!(degenerate(&plan, "LAN"), to);
}

#[test]
fn debug_output_of_a_plan_and_its_steering_shows_no_key() {
    let Some(plan) = function("policer") else {
        return;
    };
    let steering = plan.steering(2, [3; 32]).unwrap();
    let text = format!("{plan:?} {steering:?} {:?}", plan.finder(&steering));
    // Were a key of 40 bytes, or a table of 128 workers, there, so would be a long list of numbers.
    let numbers = |list: &str| {
        let each = list.split(", ");
        each.filter(|n| n.parse::<u64>().is_ok()).count()
    };
    let longest = text.split(['[', ']']).map(numbers).max();
    assert!(longest < Some(32), "{longest:?}");
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

#[test]
fn padding_that_nobody_writes_is_no_part_of_a_key() {
    let Some(plan) = program("padded_key") else {
        return;
    };
    assert_eq!(plan.strategy, Strategy::Shard, "{:?}", plan.objects);
    assert_eq!(decided(&plan, "padded"), (Treatment::Shard, Rule::R1));
    assert_eq!(counting(&plan, "LAN"), [FROM]);
}
