//! R6: numbers that the program leased come home.

use crate::support;

use millrace_place::{Strategy, Treatment};
use millrace_plan::plan::{By, Rule};
use millrace_steer::Parsed;
use support::{decided, function, kind, object, port, program, program_with};

#[test]
fn a_cone_shards_by_what_it_leased() {
    let Some(plan) = program("cone") else { return };
    assert_eq!(plan.strategy, Strategy::Shard, "{:?}", plan.objects);
    assert_eq!(decided(&plan, "numbers"), (Treatment::Shard, Rule::R6));
    assert_eq!(decided(&plan, "mappings"), (Treatment::Shard, Rule::R1));
    // Hairpin would touch two entries at once.
    assert_eq!(plan.assumptions[0].parameter, "hairpin");
    let tcp = kind(port(&plan, "LAN"), "ipv4-tcp");
    assert!(tcp.fields.contains(&"source-address".to_owned()), "{tcp:?}");
    assert_eq!(tcp.by, By::Nic);
    // Each flow of a host has numbers of its own: an echo counts as UDP from or to port 0, and no more than that.
    for name in ["ipv4-tcp", "ipv4-udp"] {
        let here = kind(port(&plan, "LAN"), name);
        assert_eq!(here.fields, ["source-address", "source-port"]);
    }
    for name in ["ipv4-tcp", "ipv4-udp"] {
        let there = kind(port(&plan, "WAN"), name);
        assert_eq!(there.fields, ["destination-port"]);
        assert_eq!(there.table_rank, 7);
    }
    assert!(port(&plan, "WAN").echoes && port(&plan, "WAN").inside);
    let home = &plan.homes[0];
    assert_eq!((home.indexes, home.numbers), (128, 504));
    let carried = home.carried.as_ref().unwrap();
    assert_eq!(
        (carried.port.as_str(), carried.field.as_str()),
        ("WAN", "destination-port")
    );
    for name in ["capacity", "lease"] {
        let of = |r: &&millrace_plan::plan::Relaxation| r.name == name && r.object == "numbers";
        assert!(plan.relaxations.iter().any(|r| of(&r)), "{name}");
    }

    for secret in 0..4 {
        let steering = plan.steering(2, [secret; 32]).unwrap();
        let (_, table) = plan.home_tables(&steering).remove(0);
        let mut counts = vec![0; 128];
        let mut cores = std::collections::BTreeSet::new();
        for (number, index) in (1024_u32..).zip(&table) {
            counts[*index as usize] += 1;
            // Whoever answers, and whatever protocol it is, and an error about what was sent.
            let server = [198, 51, (number >> 8) as u8, number as u8];
            for frame in coming_home(server, number as u16) {
                let taken = steering[1].index_of(&taken(&steering[1], &frame));
                assert_eq!(taken & 127, *index, "{number}");
            }
            cores.insert(steering[1].queue(&coming_home(server, number as u16)[0]));
        }
        assert!(counts.iter().all(|n| (480..=512).contains(n)), "{counts:?}");
        assert_eq!(cores.len(), 16);
    }
}

#[test]
fn with_hairpin_it_does_not() {
    let Some(plan) = program_with("cone", &[("hairpin", "1")]) else {
        return;
    };
    let o = object(&plan, "numbers");
    assert_eq!(o.treatment, Treatment::Lock, "{o:?}");
    assert!(plan.homes.is_empty());
}

#[test]
fn einat_shards_by_what_it_leased() {
    let Some(plan) = function("einat") else {
        return;
    };
    assert_eq!(plan.strategy, Strategy::Shard, "{:?}", plan.objects);
    for o in &plan.objects {
        let expected = match o.name.as_str() {
            ".rodata.params" => (Treatment::Spread, Rule::Nothing),
            "udp_mappings" => (Treatment::Shard, Rule::R1),
            "tcp_mappings" => (Treatment::Shard, Rule::R2),
            _ => (Treatment::Shard, Rule::R6),
        };
        assert_eq!((o.treatment, o.rule), expected, "{o:?}");
    }
    for name in ["ipv4-tcp", "ipv4-udp"] {
        assert_eq!(kind(port(&plan, "WAN"), name).fields, ["destination-port"]);
        assert_eq!(
            kind(port(&plan, "LAN"), name).fields,
            ["source-address", "source-port"]
        );
    }
}

/// What the steering takes a frame for.
fn taken(steering: &millrace_steer::Steering, frame: &[u8]) -> Parsed {
    let own = millrace_steer::fields::parse(frame);
    let answered = millrace_steer::carried::answered(frame, steering.echoes);
    let echo = millrace_steer::carried::echo(frame, own).filter(|_| steering.echoes);
    answered.or(echo).unwrap_or(own)
}

/// Packets from the WAN to a leased number: TCP, UDP, an echo reply, an error about each.
fn coming_home(server: [u8; 4], number: u16) -> Vec<Vec<u8>> {
    let public = [192, 0, 2, 1];
    let ip = |protocol: u8, from: [u8; 4], to: [u8; 4]| {
        let mut bytes = vec![0x45, 0, 0, 60, 0, 0, 0, 0, 64, protocol, 0, 0];
        bytes.extend(from);
        bytes.extend(to);
        bytes
    };
    let ports = |a: u16, b: u16| [a.to_be_bytes(), b.to_be_bytes(), [0; 2], [0; 2]].concat();
    let echo = |kind: u8| {
        let mut bytes = vec![kind, 0, 0, 0];
        bytes.extend(number.to_be_bytes());
        bytes.extend([0, 1]);
        bytes
    };
    let frame = |packet: Vec<u8>| {
        let mut frame = vec![2; 12];
        frame.extend([8, 0]);
        frame.extend(packet);
        frame.extend([0; 20]);
        frame
    };
    let error = |inner: Vec<u8>| {
        let mut bytes = ip(1, [203, 0, 113, 9], public);
        bytes.extend([3, 1, 0, 0, 0, 0, 0, 0]);
        bytes.extend(inner);
        frame(bytes)
    };
    let mut out = Vec::new();
    for protocol in [6, 17] {
        out.push(frame(
            [ip(protocol, server, public), ports(443, number)].concat(),
        ));
        out.push(error(
            [ip(protocol, public, server), ports(number, 443)].concat(),
        ));
    }
    out.push(frame([ip(1, server, public), echo(0)].concat()));
    out.push(error([ip(1, public, server), echo(8)].concat()));
    out
}

/// A number that packets carry away names a flow, and is the key of an object that all share: two cores must not lease it
/// at a time, though no packet finds the lease by it.
#[test]
fn numbers_that_nothing_compares_are_told_apart() {
    let Some(plan) = program("numbered") else {
        return;
    };
    assert_eq!(decided(&plan, "numbers"), (Treatment::Shard, Rule::R1));
    assert_eq!(decided(&plan, "by_number"), (Treatment::Lock, Rule::R4));
    let home = &plan.homes[0];
    assert_eq!((home.indexes, home.numbers), (128, 32));
    assert!(home.carried.is_none());
    let steering = plan.steering(2, [3; 32]).unwrap();
    let (_, table) = plan.home_tables(&steering).remove(0);
    let of = |index| table.iter().filter(|i| **i == index).count();
    assert!((0..128).all(|index| of(index) == 32));
}

#[test]
fn too_few_numbers_cannot_be_told_apart() {
    let Some(plan) = support::program_of("numbered", &[("numbers", 100)]) else {
        return;
    };
    let o = object(&plan, "numbers");
    assert_eq!((o.treatment, o.rule), (Treatment::Lock, Rule::R6), "{o:?}");
    assert!(o.reason.contains("too few for 128 indexes"), "{}", o.reason);
}
