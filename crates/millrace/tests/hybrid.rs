//! Heavy keys replicated and others sharded, chosen as packets come: between captures and behind a software NIC; what is seen from
//! outside; functions that cannot be run so.

use std::sync::atomic::AtomicBool;

use millrace::{Account, Asked, Error, Function, Job, Kind, Make, Ports, Strategy};

use millrace_traffic::capture::Writer;
use millrace_traffic::generate::{Generator, Spec};

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
        assert!(replayed > 0 && replayed.is_multiple_of(others), "{replayed}");
        for (a, b) in one.objects.iter().zip(&several.objects) {
            assert_eq!(a.entries, b.entries, "{name}: {}", a.name);
        }
    }
}

#[test]
fn a_device_moves_keys_while_packets_come() {
    let folder = tempfile::tempdir().unwrap();
    let file = elephant(folder.path());
    let ports = Ports {
        inputs: vec![format!("vnic:{file}?measure=off")],
        outputs: vec!["null:".into()],
        ..Ports::default()
    };
    for (name, workers) in [("heavyhitter", 2), ("ddos", 4)] {
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
        assert!(account.objects[0].entries.unwrap() > 0);
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
