//! How packets are shared out, and where objects are declared.

use millrace_dataplane::account::{Account, WorkerAccount};
use millrace_profile::{Sources, Spread};

/// Ethernet, IPv4, UDP from this host and port.
fn udp(host: u8, port: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([
        0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, host, 192, 0, 2, 1,
    ]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 53, 0, 8, 0, 0]);
    frame
}

fn account(packets: &[u64]) -> Account {
    let workers = packets
        .iter()
        .zip(0..)
        .map(|(packets, worker)| WorkerAccount {
            worker,
            packets: *packets,
            ..WorkerAccount::default()
        });
    Account {
        workers: workers.collect(),
        ..Account::default()
    }
}

/// Packets of this flow number have this index, which leads to the first worker below `first`.
fn spread(first: u32, packets: impl Iterator<Item = (u16, Option<u32>)>) -> Spread {
    let mut spread = Spread::default();
    for (flow, index) in packets {
        let place = index.map(|i| (i, u32::from(i >= first)));
        spread.add(0, place, &udp(1, flow));
    }
    spread
}

#[test]
fn a_planted_imbalance_is_named_by_its_cause() {
    let cause = |spread: &Spread, packets: &[u64]| {
        let found = spread.imbalance(&account(packets));
        found.cause.unwrap_or_default()
    };
    let hashed = |n: u32| (n as u16, Some(n % 128));
    let even = spread(64, (0..1000).map(hashed));
    assert_eq!(cause(&even, &[500, 500]), "");
    // Half of all packets are one flow's.
    let elephant = spread(
        64,
        (0..1000).map(|n| if n % 2 == 0 { (7, Some(7)) } else { hashed(n) }),
    );
    let said = cause(&elephant, &[750, 250]);
    assert!(
        said.starts_with("elephant flow: udp 10.0.0.1 > 192.0.2.1 is 50 %"),
        "{said}"
    );
    // Many flows whose hashes collide.
    let bucket = spread(
        64,
        (0..1000).map(|n| (n as u16, Some(if n % 2 == 0 { 7 } else { n % 128 }))),
    );
    let said = cause(&bucket, &[750, 250]);
    assert!(said.starts_with("heavy bucket: 5"), "{said}");
    // Five values of what is hashed, on four workers.
    let key = spread(4, (0..1000).map(|n| (n as u16, Some(n % 5))));
    let said = cause(&key, &[400, 200, 200, 200]);
    assert!(
        said.starts_with("key: the fields that the hash takes have 5"),
        "{said}"
    );
    // Even buckets, of which one worker has more.
    let table = spread(100, (0..1000).map(hashed));
    let said = cause(&table, &[800, 200]);
    assert!(said.starts_with("table: "), "{said}");
    // The keys are even, and the workers' time was not.
    assert!(cause(&even, &[800, 200]).starts_with("workers had unequal time"));
    let dealt = spread(0, (0..1000).map(|n| (n as u16, None)));
    assert!(cause(&dealt, &[800, 200]).contains("not hashed"));
}

#[test]
fn declarations_are_found_by_their_names() {
    let text = "#include <millrace/nf.h>\n\nMAP(flows_of, int, int);\nMAP(flows, int, int, .capacity = 8);\n\
                struct {} seen SEC(\".maps\");\nPACKET_SET(sets, int, int);\nint used = flows(1);\n";
    let sources = Sources::of(&[("a.c", text)]);
    assert_eq!(sources.declaration("flows"), Some(("a.c", 4)));
    assert_eq!(sources.declaration("seen"), Some(("a.c", 5)));
    assert_eq!(sources.declaration("sets"), Some(("a.c", 6)));
    assert_eq!(sources.declaration("used"), None);
    assert_eq!(sources.line("a.c:3"), Some("MAP(flows_of, int, int);"));
    assert_eq!(sources.line("a.c:99"), None);
}
