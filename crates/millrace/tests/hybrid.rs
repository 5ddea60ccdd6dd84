//! Heavy keys replicated and others sharded, chosen as packets come: between captures and behind a software NIC; what is seen from
//! outside; functions that cannot be run so.

use std::sync::atomic::AtomicBool;

use millrace::{Account, Asked, Error, Function, Job, Kind, Make, Ports, Strategy};

use millrace_steer::hybrid::{Key, ROW, divide};
use millrace_traffic::capture::Writer;
use millrace_traffic::generate::{Generator, Shape, Spec};

use super::of_repository;

static STOP: AtomicBool = AtomicBool::new(false);

/// A function whose heavy keys are replicated on this many workers.
fn hybrid(name: &str, cores: usize) -> Result<Function, Error> {
    let make = Make::default();
    let found = millrace::find(&of_repository(&format!("nfs/{name}"))).unwrap();
    let written = found.read(&make).unwrap();
    let proved = written.check(make.begin()).unwrap();
    let asked = Asked {
        cores,
        strategy: Some(Strategy::Hybrid),
        secret: Some([7; 32]),
        ..Asked::default()
    };
    let within = (millrace::model::SECONDS, make.begin());
    let mut model = proved.model_for(asked.purpose(), within, &mut || {});
    let arranged = proved.arrange(&mut model, &asked)?.several(cores)?;
    assert_eq!(arranged.placement.strategy(), Strategy::Hybrid);
    assert_eq!(arranged.plan.as_ref().unwrap().strategy, Strategy::Hybrid);
    found.load(&arranged.divided(&make), &mut |_| {})
}

/// Packets of which most are of one flow.
fn elephant(folder: &std::path::Path) -> String {
    let spec = Spec {
        packets: 40_000,
        flows: 400,
        zipf: 2.0,
        seed: 5,
        ..Default::default()
    };
    let file = folder.join("elephant.pcap");
    let mut packets = Generator::new(spec).unwrap();
    let name = file.display().to_string();
    let mut writer = Writer::create(&name, &["LAN", "WAN"]).unwrap();
    while let Some(r) = packets.next() {
        let done = writer.write(r.time_ns, r.interface, r.original_length, r.data);
        done.unwrap();
    }
    writer.finish().unwrap();
    name
}

fn fates(account: &Account) -> [u64; 5] {
    [
        account.forwarded,
        account.dropped,
        account.passed,
        account.consumed,
        account.aborted,
    ]
}

/// What leaves is what leaves one core, byte for byte, and what is left of state is what one core has.
#[test]
fn captures_give_what_one_core_gives() {
    let folder = tempfile::tempdir().unwrap();
    let file = elephant(folder.path());
    for (name, workers) in [("heavyhitter", 3), ("conntrack", 2)] {
        let out = |n: usize| folder.path().join(format!("{name}{n}.pcap"));
        let ports = |n: usize| Ports {
            inputs: vec![file.clone()],
            outputs: vec![out(n).display().to_string()],
            ..Ports::default()
        };
        let one = millrace::find(&of_repository(&format!("nfs/{name}"))).unwrap();
        let one = one.load(&Make::default(), &mut |_| {}).unwrap();
        let one = millrace::run(&one, &ports(1), &STOP).unwrap();
        let several = hybrid(name, workers).unwrap();
        let several = millrace::run(&several, &ports(workers), &STOP).unwrap();
        assert!(several.errors.is_empty(), "{:?}", several.errors);
        assert_eq!(fates(&one), fates(&several));
        let bytes = |n: usize| std::fs::read(out(n)).unwrap();
        assert_eq!(bytes(1), bytes(workers), "{name}");
        let elephants = several.elephants.unwrap();
        assert!(!elephants.is_empty() && one.elephants.is_none());
        let first = &elephants[0];
        assert!(first.packets > 1000 && first.promoted > 0, "{first:?}");
        assert!(first.flow.contains(" > "), "{first:?}");
        // Rows are applied by all other workers.
        let others = workers as u64 - 1;
        let replayed = several.replayed.unwrap();
        assert!(
            replayed > 0 && replayed.is_multiple_of(others),
            "{replayed}"
        );
        for (a, b) in one.objects.iter().zip(&several.objects) {
            assert_eq!(a.entries, b.entries, "{name}: {}", a.name);
        }
    }
}

/// Entries that one core's run over a capture leaves in the first object.
fn alone(name: &str, file: &str) -> Option<u64> {
    let ports = Ports {
        inputs: vec![file.to_owned()],
        outputs: vec!["null:".into()],
        ..Ports::default()
    };
    let found = millrace::find(&of_repository(&format!("nfs/{name}"))).unwrap();
    let function = found.load(&Make::default(), &mut |_| {}).unwrap();
    let account = millrace::run(&function, &ports, &STOP).unwrap();
    account.objects[0].entries
}

#[test]
fn a_device_moves_keys_while_packets_come() {
    let folder = tempfile::tempdir().unwrap();
    let file = elephant(folder.path());
    // Threads of the device choose together, and each has the packets of its workers.
    for (name, workers, threads) in [
        ("heavyhitter", 2, 1),
        ("heavyhitter", 2, 2),
        ("ddos", 4, 1),
        ("ddos", 4, 3),
    ] {
        let ports = Ports {
            inputs: vec![format!("vnic:{file}?measure=off&threads={threads}")],
            outputs: vec!["null:".into()],
            ..Ports::default()
        };
        let function = hybrid(name, workers).unwrap();
        let job = Job {
            loops: Some(2),
            ..Job::of(&function, &ports).unwrap()
        };
        let account = job.open(&ports, &STOP).unwrap().run(&STOP, &mut |_| {});
        let account = account.unwrap();
        assert!(account.errors.is_empty(), "{name}: {:?}", account.errors);
        assert_eq!(account.read, 80_000);
        assert_eq!(fates(&account).iter().sum::<u64>(), account.read);
        assert_eq!(account.aborted, 0);
        let elephants = account.elephants.unwrap();
        assert!(elephants.iter().any(|e| e.packets > 1000), "{elephants:?}");
        assert!(account.replayed.unwrap() > 0);
        // Each packet is counted in one entry, wherever that is at the end.
        assert_eq!(account.objects[0].entries, alone(name, &file), "{threads}");
    }
}

#[test]
fn what_cannot_be_run_so_is_refused_by_name() {
    let refused = |name: &str| {
        let error = hybrid(name, 2).err().unwrap();
        assert_eq!(error.kind, Kind::No);
        error.what
    };
    assert!(refused("cl").contains("opened: entries of sketch cannot be moved"));
    assert!(refused("nat").contains("nat.c:"));
    let bridge = hybrid("bridge", 2).err().unwrap();
    assert!(bridge.what.contains("bridge.c:"), "{}", bridge.what);
}

/// ns: the function alone, a packet with its row, a row from the ring, at 60,000 flows; and the latter two at one flow
/// (docs/measurements/replication.md).
const COSTS: [(&str, [f64; 5]); 5] = [
    ("ddos", [8.3, 11.5, 6.6, 11.8, 6.3]),
    ("portknock", [8.7, 12.9, 6.6, 10.3, 6.1]),
    ("heavyhitter", [9.7, 20.0, 11.2, 16.5, 7.4]),
    ("tokenbucket", [12.1, 23.0, 15.3, 20.7, 9.4]),
    ("conntrack", [25.8, 29.0, 18.1, 26.2, 14.6]),
];

/// A trace's packets by flow, as sharding reads them; of `heavy` in a hundred the flow is one and the same.
fn flows(shape: Option<Shape>, heavy: usize) -> Vec<(Key, u32)> {
    let spec = Spec {
        packets: 150_000,
        flows: if shape.is_some() { 1000 } else { 20_000 },
        shape,
        zipf: 0.0,
        both: false,
        connections: false,
        seed: 3,
        ..Spec::default()
    };
    let mut packets = Generator::new(spec).unwrap();
    let mut all = Vec::new();
    while let Some(r) = packets.next() {
        let flow = match all.len() * 37 % 100 < heavy {
            true => [7; 12],
            false => <[u8; 12]>::try_from(&r.data[26..38]).unwrap(),
        };
        let key = flow.iter().fold(0_u128, |k, b| k << 8 | u128::from(*b));
        let mixed = (key as u64 ^ (key >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        all.push((Key(key), (mixed >> 40) as u32));
    }
    all
}

/// Rates from shares: each of n cores has what the choice of keys leaves it, at the times that were measured of one core. Hybrid is
/// within 3 % of the better of shard and replicate on the three shapes of traffic, and beats both where one key is heavy and many
/// are light. `cargo test -p millrace --test it hybrid::shares -- --nocapture` prints the table of docs/measurements/replication.md.
#[test]
fn shares_of_hybrid_on_shapes_of_traffic() {
    let mixed = "mixed";
    let shapes = Shape::ALL.map(|s| (s.name(), Some(s), 0));
    for (name, shape, heavy) in shapes.into_iter().chain([(mixed, None, 40)]) {
        let packets = flows(shape, heavy);
        for cores in [2_u16, 4, 8, 16] {
            let n = f64::from(cores);
            let parts = divide(&packets, 9, cores, ROW);
            let mut ratios = Vec::new();
            for d in [20.0, 60.0, 100.0] {
                let each = COSTS.map(|(program, [c, c1, c2, h, r])| {
                    let shard = parts.without * (d + c);
                    let replicate = (d + c1 + (n - 1.0) * c2) / n;
                    let hybrid = parts.sharded * (d + c)
                        + parts.replicated * (d + h + (n - 1.0) * r) / n;
                    println!(
                        "{name} {program} d={d} n={cores}: shard {shard:.1} replicate {replicate:.1} hybrid {hybrid:.1}"
                    );
                    shard.min(replicate) / hybrid
                });
                let least = each.iter().copied().fold(f64::INFINITY, f64::min);
                ratios.push(format!(
                    "{least:.2} to {:.2}",
                    each.iter().copied().fold(0.0, f64::max)
                ));
                let bar = match (name == mixed, cores) {
                    (false, _) => 0.97,
                    (true, 16) => 1.2,
                    _ => 0.0,
                };
                assert!(d < 100.0 || least >= bar, "{name} on {cores}: {least}");
            }
            println!(
                "| {name} | {cores} | {:.3} | {:.3} | {:.3} | {} |",
                parts.without,
                parts.sharded,
                parts.replicated,
                ratios.join(" | ")
            );
        }
    }
}
