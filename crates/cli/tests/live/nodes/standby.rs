//! Machines that are killed while others keep copies of their buckets: their connections go on.

use millrace_turns::its_turn;
use std::time::Duration;

use serde_json::Value;

use super::fabric::Fabric;
use super::talks::{Talk, curl, go_on};
use super::{count, ends, flows, running, transfer, until};

fn copies(account: &Value, name: &str) -> u64 {
    count(&account["peers"]["copies"], name)
}

/// Waits until the machines have told each other all that they have.
fn until_copied(fabric: &Fabric, nodes: &[&str]) {
    until("copies are whole", || {
        std::thread::sleep(Duration::from_millis(200));
        let stats: Vec<Value> = nodes.iter().map(|node| fabric.stats(node)).collect();
        let had: usize = nodes.iter().map(|node| flows(fabric, node).len()).sum();
        let kept: u64 = stats.iter().map(|s| copies(s, "entries")).sum();
        // A flow is an entry, and a lease.
        had > 0 && kept >= 2 * had as u64 && stats.iter().all(|s| copies(s, "behind") == 0)
    });
}

#[test]
fn connections_of_a_machine_that_is_killed_go_on_at_its_standby() {
    if !its_turn("the standby of three machines", 4, 6) {
        return;
    }
    let Some((fabric, mut machines)) = running(&["--standby", "1"], 1) else {
        return;
    };
    let net = &fabric.net;
    let talks = Talk::begin(net, super::TALKS);
    let transferred = transfer(&fabric, 20);
    go_on(&talks);
    until_copied(&fabric, &super::NODES);
    let told = |node: &str| {
        let stats = fabric.stats(node);
        let of = |name: &str| copies(&stats, name);
        (
            of("rows"),
            of("bytes"),
            of("delay_ns"),
            count(&stats, "read"),
        )
    };
    let (rows, bytes, delay, read) = told("n3");
    println!("n3 told {rows} rows of {bytes} bytes for {read} packets, the last within {delay} ns");
    let gone = flows(&fabric, "n3");
    assert!(!gone.is_empty(), "n3 has no connection");
    // As without power: its process, and its routes.
    machines.remove("n3").unwrap().killed();
    fabric.routing.withdraw(net, "n3");
    go_on(&talks);
    fabric.until_shared(&["n1", "n2"]);
    go_on(&talks);
    assert!((0..10).all(|_| curl(net)), "a new connection fails");
    // The next one dies with what it has inherited, once that is copied, too: both of its neighbours' states are its own then.
    until_copied(&fabric, &["n1", "n2"]);
    machines.remove("n2").unwrap().killed();
    fabric.routing.withdraw(net, "n2");
    go_on(&talks);
    fabric.until_shared(&["n1"]);
    assert!((0..10).all(|_| curl(net)), "a new connection fails");
    ends(transferred);
    for talk in talks {
        let port = talk.port;
        assert_eq!(talk.end(), Ok(()), "the connection from port {port}");
    }
    let last = machines.remove("n1").unwrap();
    let said = last.said();
    let (account, status) = last.stop();
    assert_eq!(status, 0, "{account:#}");
    assert!(
        said.contains("node n2 is gone: its buckets go on here with"),
        "{said}"
    );
    assert!(copies(&account, "inherited_entries") > 0, "{account:#}");
    for none in ["partial", "lost", "full", "refused"] {
        assert_eq!(copies(&account, none), 0, "{none}: {account:#}");
    }
    for line in said.lines().filter(|line| line.contains("is gone")) {
        println!("{line}");
    }
}
