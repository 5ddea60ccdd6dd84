//! `nat` on three machines between routers that spread packets over them, so that answers come to other machines than questions: machines that are
//! drained, upgraded, killed and cut off, with what people try a network with going on.

mod fabric;
mod routing;
mod standby;
mod talks;

use millrace_turns::its_turn;
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::instance::{Instance, count};
use super::net::{Served, until};
use fabric::{Fabric, NODES};
use talks::{Talk, curl, go_on, serve};

/// Connections that go on: at three machines, of which any has none only once in a thousand runs.
const TALKS: usize = 20;

/// All of it, with a function on each machine, with these options, and routes; and an etcd of so many servers.
fn running(options: &[&str], servers: usize) -> Option<(Fabric, BTreeMap<&'static str, Instance>)> {
    let fabric = Fabric::new(servers)?;
    let machines = NODES.map(|node| (node, fabric.start_with(node, options)));
    fabric.until_shared(&NODES);
    for node in NODES {
        fabric.routing.announce(&fabric.net, node);
    }
    serve(&fabric.net);
    Some((fabric, machines.into()))
}

fn peers(account: &Value, name: &str) -> u64 {
    count(&account["peers"], name)
}

/// A transfer at 2 Mbit/s for so many seconds, by iperf3; none where there is no such tool.
fn transfer(fabric: &Fabric, seconds: u32) -> Option<(Served, Served)> {
    if super::net::run("iperf3", &["--version"]).is_err() {
        println!("skipped: no iperf3");
        return None;
    }
    let server = fabric
        .net
        .command("s", "iperf3")
        .args(["-s", "-1", "-B", "198.51.100.1"])
        .stdout(Stdio::null())
        .spawn();
    let server = Served(server.unwrap());
    until("iperf3 listens", || {
        let shown = fabric.net.within("s", "ss", &["-tlnH", "sport = 5201"]);
        !shown.stdout.is_empty()
    });
    let client = fabric
        .net
        .command("c", "iperf3")
        .args(crate::common::words(&format!(
            "-c 198.51.100.1 -P 2 -b 1M --json -t {seconds}"
        )))
        .stdout(Stdio::piped())
        .spawn();
    Some((server, Served(client.unwrap())))
}

/// What it says has to be a transfer that reached its end.
fn ends(transfer: Option<(Served, Served)>) {
    let Some((_server, mut client)) = transfer else {
        return;
    };
    let said: Value = serde_json::from_str(&client.said()).unwrap();
    let bytes = said["end"]["sum_received"]["bytes"].as_u64();
    assert!(said.get("error").is_none() && bytes > Some(0), "{said:#}");
}

/// Pings the server every 50 ms until that is ended; how many got no answer, of how many.
fn pings(fabric: &Fabric) -> Served {
    let pinging = fabric
        .net
        .command("c", "ping")
        .args(["-q", "-i", "0.05", "198.51.100.1"])
        .stdout(Stdio::piped())
        .spawn();
    Served(pinging.unwrap())
}

fn unanswered(mut pings: Served) -> u64 {
    let pid = pings.0.id().to_string();
    super::net::run("kill", &["-s", "INT", &pid]).unwrap();
    let text = pings.said();
    let before = |what: &str| -> u64 {
        let head = text.split(what).next().unwrap();
        head.rsplit([' ', '\n']).next().unwrap().parse().unwrap()
    };
    // One may be under way.
    (before(" packets transmitted") - before(" received")).saturating_sub(1)
}

/// Whether a new connection is made, at the first try for which routers have routes.
fn connects(fabric: &Fabric) -> bool {
    for _ in 0..20 {
        let unrouted = fabric.unrouted();
        if curl(&fabric.net) {
            return true;
        }
        if fabric.unrouted() == unrouted {
            return false;
        }
    }
    false
}

#[test]
fn all_machines_are_upgraded_one_after_the_other_and_no_connection_is_lost() {
    if !its_turn("the upgrade of three machines", 0, 6) {
        return;
    }
    let Some((fabric, mut machines)) = running(&[], 3) else {
        return;
    };
    let net = &fabric.net;
    let talks = Talk::begin(net, TALKS);
    go_on(&talks);
    let transferred = transfer(&fabric, 15);
    let unrouted = fabric.unrouted();
    let pinging = pings(&fabric);
    let (mut accounts, mut before_death) = (Vec::new(), None);
    for node in NODES {
        fabric.cluster("drain", &[node, "--wait", "60"]).unwrap();
        let rest: Vec<&str> = NODES.into_iter().filter(|n| *n != node).collect();
        fabric.until_shared(&rest);
        fabric.routing.withdraw(net, node);
        let (account, status) = machines.remove(node).unwrap().stop();
        assert_eq!(status, 0, "{account:#}");
        accounts.push(account);
        machines.insert(node, fabric.start(node));
        fabric.routing.announce(net, node);
        fabric.cluster("undrain", &[node]).unwrap();
        fabric.until_shared(&NODES);
        assert!(connects(&fabric));
        if node == NODES[0] {
            // Etcd's leader dies; the other machines are drained by what the two other servers agree on.
            let version = fabric.version();
            let server = fabric.etcd.kill_leader(net);
            println!("etcd at {server}, which led, was killed at version {version:?} of the table");
            go_on(&talks);
            assert!(connects(&fabric));
            before_death = version;
        }
    }
    assert!(
        fabric.version() > before_death,
        "nothing changed after etcd's leader had died"
    );
    // What an operator sees of it is published now and then.
    until("the metrics say who has which part", || {
        std::thread::sleep(Duration::from_millis(200));
        let of = NODES.map(|node| fabric.metric(node, "millrace_peer_buckets").unwrap_or(0));
        of.iter().sum::<u64>() == 512 && of.iter().all(|n| (170..=171).contains(n))
    });
    let sent = |node| fabric.metric(node, "millrace_peer_packets_total{what=\"sent\"}");
    assert!(NODES.iter().all(|node| sent(node) > Some(0)));
    let lost = unanswered(pinging);
    let unrouted = fabric.unrouted() - unrouted;
    go_on(&talks);
    ends(transferred);
    for talk in talks {
        let port = talk.port;
        assert_eq!(talk.end(), Ok(()), "the connection from port {port}");
    }
    // The last machines end without handing over: the ends of the connections are through before.
    let mut before = Vec::new();
    until("no packet comes any more", || {
        std::thread::sleep(Duration::from_millis(200));
        let read = |node: &str| count(&fabric.stats(node), "read");
        let now: Vec<u64> = NODES.into_iter().map(read).collect();
        now == std::mem::replace(&mut before, now.clone())
    });
    for (_, machine) in machines {
        let (account, status) = machine.stop();
        assert_eq!(status, 0, "{account:#}");
        accounts.push(account);
    }
    // What was sent on was read at another machine, or had no room there.
    let sum = |of: &dyn Fn(&Value) -> u64| accounts.iter().map(of).sum::<u64>();
    let came = sum(&|a| peers(a, "received") + peers(a, "missed"));
    assert!(came > 0, "no packet came to a machine without its bucket");
    assert_eq!(sum(&|a| peers(a, "sent")), came, "{accounts:#?}");
    assert_eq!(sum(&|a| peers(a, "malformed")), 0, "{accounts:#?}");
    // Connections went over old owners while new ones had their buckets.
    assert!(sum(&|a| peers(a, "marks")) > 0, "{accounts:#?}");
    let without = |a: &Value| a["reasons"]["no_lease"].as_u64().unwrap_or(0);
    println!(
        "{} packets came to a machine without a lease",
        sum(&without)
    );
    // A machine that had too little processor says what it dropped, and why, and so does a router; nothing else is lost.
    let late = sum(&|a| count(a, "dropped") + peers(a, "missed")) + unrouted;
    println!("{lost} pings without an answer, {unrouted} packets without a route");
    assert!(lost <= late, "{lost} lost: {accounts:#?}");
}

/// The clients' ports of the flows that a machine has.
fn flows(fabric: &Fabric, node: &str) -> Vec<u64> {
    let said = fabric.asked("map", node, &["export", "flows"]);
    let entries = said.as_array().unwrap_or_else(|| panic!("{said:#}"));
    let port = |e: &Value| e["key"]["sport"].as_u64().unwrap();
    entries.iter().map(port).collect()
}

#[test]
fn a_machine_that_is_killed_or_cut_off_costs_its_own_connections_and_no_other() {
    if !its_turn("the loss of one of three machines", 2, 6) {
        return;
    }
    let Some((fabric, mut machines)) = running(&[], 1) else {
        return;
    };
    let net = &fabric.net;
    let (killed, cut) = ("n3", "n2");
    let talks = Talk::begin(net, TALKS);
    go_on(&talks);
    // Killed: process and routes at once, as a machine without power.
    let gone = flows(&fabric, killed);
    machines.remove(killed).unwrap().killed();
    fabric.routing.withdraw(net, killed);
    let (lost, kept): (Vec<_>, Vec<_>) = talks
        .into_iter()
        .partition(|t| gone.contains(&t.port.into()));
    go_on(&kept);
    until("new connections are made", || curl(net));
    fabric.until_shared(&["n1", "n2"]);
    go_on(&kept);
    assert!(
        (0..10).all(|_| curl(net)),
        "a new connection fails when the buckets have new owners"
    );
    // Cut off from etcd and from the others, with packets that come to it all the same.
    net.ip("r", "route add 198.51.100.2 via 10.1.2.2");
    net.ip("s", "addr add 198.51.100.2/32 dev lo");
    let gone = flows(&fabric, cut);
    net.ip("e", &format!("link set p{cut} down"));
    if let routing::Routing::Own(_) = &fabric.routing {
        fabric.routing.withdraw(net, cut);
    }
    fabric.routing.until_withdrawn(net, cut);
    let stopped = || {
        let ping = ["-c", "3", "-i", "0.05", "-W", "1", "198.51.100.2"];
        net.within("c", "ping", &ping);
        fabric.stats(cut)["reasons"]["no_lease"].as_u64() > Some(0)
    };
    until("the machine that is cut off drops what comes", stopped);
    fabric.until_shared(&["n1"]);
    let (more, kept): (Vec<_>, Vec<_>) = kept
        .into_iter()
        .partition(|t| gone.contains(&t.port.into()));
    go_on(&kept);
    assert!(curl(net));
    // Healed, it comes back, without state, and the one that was killed too.
    net.ip("e", &format!("link set p{cut} up"));
    machines.insert(killed, fabric.start(killed));
    fabric.until_shared(&NODES);
    for node in [cut, killed] {
        fabric.routing.announce(net, node);
    }
    go_on(&kept);
    assert!((0..10).all(|_| curl(net)));
    for talk in kept {
        assert_eq!(talk.end(), Ok(()));
    }
    println!(
        "{} connections were the lost machines'",
        lost.len() + more.len()
    );
    for (node, machine) in machines {
        // Each packet that it read has one fate, or this fails.
        let (account, status) = machine.stop();
        assert_eq!(status, 0, "{account:#}");
        let reasons = account["reasons"].as_object().unwrap();
        let known = [
            "no_lease",
            "no_owner",
            "no_flow",
            "peer_circle",
            "peer_waits",
            "peer_full",
        ];
        assert!(
            reasons.keys().all(|r| known.contains(&r.as_str())),
            "{node}: {account:#}"
        );
    }
}
