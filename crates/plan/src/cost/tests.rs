use proptest::prelude::{prop_assert, proptest};

use super::*;

fn work(strategy: Strategy, writes: f64, shares: &[(u32, f64)], heaviest: f64) -> Work {
    let share = |(cores, share): &(u32, f64)| Share {
        cores: *cores,
        share: *share,
    };
    Work {
        strategy,
        packet_ns: 30.0,
        writes,
        busiest: shares.iter().map(share).collect(),
        heaviest,
        foreign: Vec::new(),
        met: Vec::new(),
        replay_ns: None,
        sequencer_ns: None,
        heavy: None,
    }
}

/// 20 ns to receive and send, 30 in the function, these for a row and for the sequencer.
fn replicated(replay: f64, sequencer: f64) -> Work {
    Work {
        replay_ns: Some(replay),
        sequencer_ns: Some(sequencer),
        ..work(Strategy::Replicate, 0.0, &[], 0.0)
    }
}

#[test]
fn replicas_share_packets_and_repeat_rows() {
    let m = measured(vec![replicated(10.0, 2.0)]);
    assert!(near(mpps(&m, Strategy::Replicate, 1), 20.0));
    // Two: 60 ns for two packets. Sixteen: 200 ns for sixteen.
    assert!(near(mpps(&m, Strategy::Replicate, 2), 2000.0 / 60.0));
    assert!(near(mpps(&m, Strategy::Replicate, 16), 80.0));
    // The sequencer is the limit.
    let slow = measured(vec![replicated(10.0, 25.0)]);
    assert!(near(mpps(&slow, Strategy::Replicate, 16), 40.0));
}

/// Half of the packets are of one key, the rest lies evenly: on eight cores each has a sixteenth of 50 ns, and half of a replica's
/// (20 + 40 + 70) / 8.
#[test]
fn heavy_keys_are_replicated_and_others_sharded() {
    let shares = vec![HeavyShare {
        cores: 8,
        sharded: 1.0 / 16.0,
        replicated: 0.5,
    }];
    let hybrid = Work {
        heavy: Some(HeavyWork {
            packet_ns: 40.0,
            shares,
        }),
        strategy: Strategy::Hybrid,
        ..replicated(10.0, 2.0)
    };
    let m = measured(vec![
        work(Strategy::Shard, 0.0, &[(8, 0.55)], 0.5),
        replicated(10.0, 2.0),
        hybrid,
    ]);
    assert!(near(mpps(&m, Strategy::Hybrid, 8), 1e3 / 11.25));
    // Of eight cores alone is anything known.
    let predicted = predict(&m, &[2, 8]);
    assert_eq!(
        predicted
            .iter()
            .filter(|p| p.strategy == Strategy::Hybrid)
            .count(),
        1
    );
    assert_eq!(best(&predicted, 8).unwrap().strategy, Strategy::Hybrid);
}

/// One flow has all packets: sharding is one core's rate, and replication is taken; where all flows are alike, it is not.
#[test]
fn an_elephant_is_replicated() {
    let one = measured(vec![
        work(Strategy::Shard, 0.0, &[(8, 1.0)], 1.0),
        work(Strategy::Alone, 0.0, &[], 0.0),
        replicated(10.0, 2.0),
    ]);
    let predicted = predict(&one, &[1, 8]);
    assert_eq!(best(&predicted, 8).unwrap().strategy, Strategy::Replicate);
    let even = measured(vec![
        work(Strategy::Shard, 0.0, &[(8, 0.125)], 0.01),
        replicated(10.0, 2.0),
    ]);
    let predicted = predict(&even, &[1, 8]);
    assert_eq!(best(&predicted, 8).unwrap().strategy, Strategy::Shard);
}

fn measured(strategies: Vec<Work>) -> Measured {
    Measured {
        trace: "t.pcap".into(),
        packets: 1000,
        processors: 2,
        dispatch_ns: 20.0,
        port: "vnic".into(),
        lock: Some(LockCost {
            writer_ns: 70.0,
            core_ns: Some(100.0),
            cores: 2,
        }),
        line_ns: Some(100.0),
        strategies,
        unmeasured: Vec::new(),
    }
}

fn mpps(measured: &Measured, strategy: Strategy, cores: u32) -> f64 {
    let all = predict(measured, &[cores]);
    all.iter().find(|p| p.strategy == strategy).unwrap().mpps
}

fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

#[test]
fn known_points() {
    let m = measured(vec![
        work(Strategy::Shard, 0.0, &[(2, 0.5), (4, 0.4)], 0.1),
        work(Strategy::Lock, 0.01, &[(2, 0.5), (4, 0.25)], 0.0),
        work(Strategy::Alone, 0.0, &[], 0.0),
    ]);
    // 50 ns a packet on one core, whatever the strategy.
    for strategy in [Strategy::Shard, Strategy::Lock, Strategy::Alone] {
        assert!(near(mpps(&m, strategy, 1), 20.0), "{strategy:?}");
    }
    assert!(near(mpps(&m, Strategy::Shard, 2), 40.0));
    // The busiest of four has 0.4 of the packets: 20 ns.
    assert!(near(mpps(&m, Strategy::Shard, 4), 50.0));
    // No table makes less of the heaviest entry: 5 ns.
    assert!(near(mpps(&m, Strategy::Shard, 1000), 200.0));
    // 12.5 ns of its own, 0.01 x 0.75 x 100 for others' writes, 0.01 x 3 x 100 for lines.
    assert!(near(mpps(&m, Strategy::Lock, 4), 1e3 / (12.5 + 0.75 + 3.0)));
    // Alone has one core.
    assert!(
        predict(&m, &[2])
            .iter()
            .all(|p| p.strategy != Strategy::Alone)
    );
    let simulated: Vec<_> = predict(&m, &[2, 4]).iter().map(|p| p.simulated).collect();
    assert_eq!(simulated, [false, true, false, true]);
}

/// Half of the packets find what another core wrote, a tenth meets one: on two cores each packet has 50 ns, 50 for lines and 3 for
/// another run. Where none does, it is as if nothing were shared.
#[test]
fn transactions_cost_lines_and_attempts() {
    let shares = |share| vec![Share { cores: 2, share }];
    let transact = |foreign, met| Work {
        foreign: shares(foreign),
        met: shares(met),
        ..work(Strategy::Transact, 0.0, &[(2, 0.5)], 0.0)
    };
    let m = measured(vec![transact(0.5, 0.1)]);
    assert!(near(mpps(&m, Strategy::Transact, 2), 1e3 / (0.5 * 103.0)));
    assert!(near(mpps(&m, Strategy::Transact, 1), 20.0));
    let m = measured(vec![
        transact(0.0, 0.0),
        work(Strategy::Lock, 0.01, &[(2, 0.5)], 0.0),
    ]);
    assert!(near(mpps(&m, Strategy::Transact, 2), 40.0));
    assert_eq!(
        best(&predict(&m, &[1, 2]), 2).unwrap().strategy,
        Strategy::Transact
    );
    // How long a line takes is not known.
    let mut m = measured(vec![transact(0.5, 0.1)]);
    m.line_ns = None;
    assert_eq!(predict(&m, &[2]), []);
}

#[test]
fn what_was_not_measured_is_not_predicted() {
    let mut m = measured(vec![work(Strategy::Lock, 0.01, &[(2, 0.5)], 0.0)]);
    m.lock = Some(LockCost {
        core_ns: None,
        ..m.lock.unwrap()
    });
    let cores = |m: &Measured| -> Vec<u32> { predict(m, &CORES).iter().map(|p| p.cores).collect() };
    assert_eq!(cores(&m), [1]);
    // Without writes the lock's lines never travel.
    m.strategies[0].writes = 0.0;
    assert_eq!(cores(&m), CORES);
    assert_eq!(predict(&m, &[0]), []);
}

#[test]
fn the_best_is_the_fastest_and_of_equals_the_first() {
    let m = measured(vec![
        work(Strategy::Shard, 0.0, &[(8, 0.125)], 0.0),
        work(Strategy::Lock, 0.0001, &[(8, 0.125)], 0.0),
        work(Strategy::Alone, 0.0, &[], 0.0),
    ]);
    let take = |m: &Measured, n| best(&predict(m, &CORES), n).unwrap().strategy;
    assert_eq!(take(&m, 8), Strategy::Shard);
    // One flow that is everything: sharding keeps it on one core, the lock does not help who only waits.
    let elephant = measured(vec![
        work(Strategy::Shard, 0.0, &[(8, 1.0)], 1.0),
        work(Strategy::Lock, 0.0, &[(8, 0.125)], 0.0),
    ]);
    assert_eq!(take(&elephant, 8), Strategy::Lock);
    // All packets write: one core beats eight that wait for each other.
    let writers = measured(vec![
        work(Strategy::Lock, 1.0, &[(8, 0.125)], 0.0),
        work(Strategy::Alone, 0.0, &[], 0.0),
    ]);
    assert_eq!(take(&writers, 8), Strategy::Alone);
    assert_eq!(best(&[], 8), None);
}

#[test]
fn the_table_says_what_is_simulated_and_what_is_taken() {
    let m = measured(vec![
        work(Strategy::Shard, 0.0, &[(16, 0.0625)], 0.01),
        work(Strategy::Alone, 0.0, &[], 0.0),
    ]);
    let text = text(&m, &predict(&m, &CORES), Strategy::Shard);
    let line = text.lines().find(|l| l.starts_with("  shard  ")).unwrap();
    assert!(line.contains("20.00") && line.ends_with('*'), "{text}");
    assert_eq!(line.matches('~').count(), 3, "{text}");
    assert!(text.contains("heaviest table entry 1.00 %"), "{text}");
}

proptest! {
    /// More of anything that costs never makes it faster, and no prediction exceeds `n` times one core.
    #[test]
    fn more_cost_is_never_faster(
        packet in 1.0_f64..1000.0,
        dispatch in 0.0_f64..200.0,
        writes in 0.0_f64..1.0,
        heaviest in 0.0_f64..1.0,
        core_ns in 0.0_f64..5000.0,
        more in 1.0_f64..3.0,
        cores in 2_u32..64,
    ) {
        let make = |packet: f64, dispatch: f64, writes: f64, heaviest: f64, core_ns: f64| {
            let even = 1.0 / f64::from(cores);
            let mut m = measured(vec![Work {
                packet_ns: packet,
                ..work(Strategy::Lock, writes, &[(cores, even.max(heaviest))], heaviest)
            }]);
            m.dispatch_ns = dispatch;
            m.lock = Some(LockCost { writer_ns: 50.0, core_ns: Some(core_ns), cores: 2 });
            m
        };
        let rate = |m: &Measured, n| mpps(m, Strategy::Lock, n);
        let base = make(packet, dispatch, writes, heaviest, core_ns);
        let bar = rate(&base, cores) * (1.0 + 1e-9);
        for worse in [
            make(packet * more, dispatch, writes, heaviest, core_ns),
            make(packet, dispatch * more, writes, heaviest, core_ns),
            make(packet, dispatch, (writes * more).min(1.0), heaviest, core_ns),
            make(packet, dispatch, writes, heaviest, core_ns * more),
        ] {
            prop_assert!(rate(&worse, cores) <= bar);
        }
        prop_assert!(bar <= rate(&base, 1) * f64::from(cores) * (1.0 + 1e-6));
    }

    /// Without writers more cores are never slower, and a more uneven load is never faster.
    #[test]
    fn sharding_grows_with_cores_and_falls_with_skew(
        heaviest in 0.0_f64..1.0,
        heavier in 0.0_f64..1.0,
        cores in 1_u32..200,
    ) {
        let (low, high) = if heaviest < heavier { (heaviest, heavier) } else { (heavier, heaviest) };
        let of = |heaviest: f64, cores: u32| {
            mpps(&measured(vec![work(Strategy::Shard, 0.0, &[], heaviest)]), Strategy::Shard, cores)
        };
        prop_assert!(of(low, cores + 1) >= of(low, cores) * (1.0 - 1e-12));
        prop_assert!(of(high, cores) <= of(low, cores) * (1.0 + 1e-12));
    }
}
