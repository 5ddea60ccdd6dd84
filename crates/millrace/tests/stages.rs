//! The stages, one value each, as the examples go through them.

use millrace::plan::plan::Rule;
use millrace::{Asked, Comparison, Make, Ports, Schedule, Strategy, Treatment};

use super::{check, of_repository, plan, run};

#[test]
fn the_firewall_is_safe() {
    let verdict = check::verdict(&of_repository("nfs/firewall")).unwrap();
    assert_eq!(verdict, "firewall: safe");
}

#[test]
fn the_firewall_shards_by_flow() {
    let plan = plan::plan(&of_repository("nfs/firewall"), 4).unwrap();
    assert_eq!((plan.strategy, plan.cores), (Strategy::Shard, 4));
    let flows = plan.objects.iter().find(|o| o.name == "flows").unwrap();
    assert_eq!((flows.treatment, flows.rule), (Treatment::Shard, Rule::R1));
}

#[test]
fn two_workers_account_for_every_packet_and_write_what_one_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (nf, input) = (
        of_repository("nfs/firewall"),
        of_repository("captures/talk.pcap"),
    );
    let two = run::run(&nf, &input, &path("two.pcap")).unwrap();
    assert_eq!((two.read, two.forwarded, two.dropped), (1619, 1571, 48));
    assert_eq!(two.workers.len(), 2);
    assert!(two.workers.iter().all(|w| w.packets > 0));
    assert_eq!(two.reasons.values().sum::<u64>(), two.dropped);
    assert!(two.errors.is_empty(), "{:?}", two.errors);

    let found = millrace::find(&nf).unwrap();
    let one = found.load(&Make::default(), &mut |_| {}).unwrap();
    let ports = Ports {
        inputs: vec![input],
        outputs: vec![path("one.pcap")],
        split: "lan=10.0.0.0/24,fd00::/8".parse().ok(),
        ..Ports::default()
    };
    let one = millrace::run(&one, &ports, &run::STOP).unwrap();
    assert_eq!((one.read, one.workers.len()), (1619, 1));
    let bytes = |name: &str| std::fs::read(path(name)).unwrap();
    assert!(bytes("one.pcap") == bytes("two.pcap"));
}

#[test]
fn settings_and_capacities_are_typed() {
    let found = millrace::find(&of_repository("nfs/firewall")).unwrap();
    let make = Make {
        capacities: vec![("flows".into(), 1000)],
        ..Make::default()
    };
    let written = found.read(&make).unwrap();
    let flows = written.program.objects.iter().find(|o| o.name == "flows");
    assert_eq!(flows.unwrap().capacity, 1000);
    let make = make.with_capacities(&[("flows".into(), 500)]);
    assert_eq!(make.capacities, [("flows".to_owned(), 500)]);
}

#[test]
fn two_workers_are_compared_with_one() {
    let found = millrace::find(&of_repository("nfs/firewall")).unwrap();
    let make = Make::default();
    let function = found.load(&make, &mut |_| {}).unwrap();
    let proved = function.check(make.begin()).unwrap();
    let ports = Ports {
        inputs: vec![of_repository("captures/talk.pcap")],
        split: "lan=10.0.0.0/24,fd00::/8".parse().ok(),
        ..Ports::default()
    };
    let names = ports.names(&function.ports).unwrap();
    let comparison = Comparison {
        found: &found,
        make: &make,
        function: &function,
        proved: &proved,
        names: &names,
        entries: &[],
        seed: 7,
        schedule: Schedule::Seeded(7),
        moving: None,
    };
    let asked = Asked::default();
    let within = (millrace::model::SECONDS, make.begin());
    let mut model = proved.model_for(asked.purpose(), within, &mut || {});
    let mut trace = ports.trace(&names, &run::STOP).unwrap();
    let found = comparison.run(&mut model, &asked, &mut trace, &mut |_, _| {});
    let (strategy, findings) = found.unwrap();
    assert!(findings.equal, "{:?}", findings.differences);
    assert_eq!(strategy, Strategy::Shard);
    assert_eq!((findings.packets, findings.workers), (1619, 2));
}
