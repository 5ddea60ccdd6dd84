//! Several workers, and functions in a row, on live ports.

use super::instance::{Instance, balances};
use super::net::{KINDS, Net};
use super::transfer::both_directions;
use crate::common::{GATE, millrace, refused};

#[test]
fn several_workers_share_the_packets_of_a_function_without_state() {
    let Some(net) = Net::new("afpacket") else {
        return;
    };
    let words = net.words("");
    let instance = Instance::start(&net, "n", &["nfs/nop", "--ports", &words, "--cores", "2"]);
    net.settle();
    // Nothing that leaves comes in again: there would be no end of duplicates.
    let ping = ["-c", "3", "-i", "0.2", "-W", "5", "10.0.0.2"];
    let pinged = net.within("a", "ping", &ping);
    let text = String::from_utf8_lossy(&pinged.stdout).into_owned();
    assert!(text.contains(" 3 received, 0% packet loss"), "{text}");
    // Flows are divided by their hash: a few, so that both workers are likely to get some.
    for _ in 0..2 {
        both_directions(&net);
    }
    let (account, status) = instance.stop();
    assert_eq!(status, 0, "{account:#}");
    let workers = account["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 2);
    let sum: u64 = workers.iter().map(|w| w["packets"].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), account["read"].as_u64());
}

/// One worker with the sockets of two queues, then two workers with one each.
#[test]
fn workers_share_the_queues_of_afxdp() {
    for cores in ["1", "2"] {
        let Some(net) = Net::with_queues("afxdp", 2) else {
            return;
        };
        let words = net.words("");
        let args = ["nfs/nop", "--ports", &words, "--cores", cores];
        let instance = Instance::start(&net, "n", &args);
        net.settle();
        // The kernel picks a queue by a flow's hash: with this many all queues get some.
        for _ in 0..8 {
            both_directions(&net);
        }
        let (account, status) = instance.stop();
        assert_eq!(status, 0, "{account:#}");
        let facts = account["facts"].to_string();
        assert!(facts.contains("2 queues"), "{facts}");
        let workers = account["workers"].as_array().unwrap();
        let packets = workers.iter().map(|w| w["packets"].as_u64().unwrap());
        let packets: Vec<u64> = packets.collect();
        assert_eq!(packets.len().to_string(), cores);
        assert!(packets.iter().all(|p| *p > 0), "{packets:?}");
        assert_eq!(Some(packets.iter().sum()), account["read"].as_u64());
    }
}

#[test]
fn workers_with_parts_are_refused_for_a_function_that_no_key_parts_with_the_line() {
    let command = |nf: &str| {
        let mut command = millrace();
        command.args(crate::common::words(&format!(
            "run {nf} --cores 2 --strategy shard --ports afpacket:x,afpacket:y"
        )));
        command
    };
    let text = refused(&mut command("nfs/bridge"), 1);
    assert!(
        text.contains("bridge cannot run as `shard`: bridge.c:"),
        "{text}"
    );
    assert!(text.contains("MAC address"), "{text}");
    let text = refused(&mut command(GATE), 1);
    assert!(text.contains("cannot run as `shard`: "), "{text}");
}

/// Where a port cannot be told whose packets are whose, they are handed over: both directions of a flow
/// come to the worker that has its entry, on every kind of port.
#[test]
fn a_firewall_runs_on_two_workers_that_hand_packets_to_their_owners() {
    for kind in KINDS {
        let Some(net) = Net::with_queues(kind, 2) else {
            return;
        };
        let words = net.words("");
        let steer = format!("key={}", "6d5a".repeat(20));
        let args = format!("nfs/firewall --ports {words} --cores 2 --steer {steer}");
        let args = crate::common::words(&args);
        let instance = Instance::start(&net, "n", &args);
        net.settle();
        for _ in 0..8 {
            both_directions(&net);
        }
        // An idle worker is woken for what it is handed.
        let ping = ["-c", "3", "-i", "0.3", "-W", "5", "10.0.0.2"];
        let pinged = net.within("a", "ping", &ping);
        let text = String::from_utf8_lossy(&pinged.stdout).into_owned();
        assert!(
            text.contains(" 3 received, 0% packet loss"),
            "{kind}: {text}"
        );
        let (account, status) = instance.stop();
        assert_eq!(status, 0, "{account:#}");
        balances(&account);
        let facts = account["facts"].to_string();
        assert!(facts.contains("handed to their owners"), "{facts}");
        let workers = account["workers"].as_array().unwrap();
        assert!(
            workers.iter().all(|w| w["packets"].as_u64() > Some(0)),
            "{account:#}"
        );
        assert_eq!(account["reasons"].get("no_flow"), None, "{account:#}");
        let flows = crate::common::named(&account["objects"], "flows");
        assert_eq!(flows["by_worker"].as_array().unwrap().len(), 2);
        assert_eq!(flows["capacity"], 65536);
    }
}

#[test]
fn functions_in_a_row_run_on_one_worker() {
    let Some(net) = Net::new("afpacket") else {
        return;
    };
    let words = net.words("");
    let args = ["nfs/bridge", "nfs/firewall", "nfs/nop", "--ports", &words];
    let instance = Instance::start(&net, "n", &args);
    net.settle();
    both_directions(&net);
    let (account, status) = instance.stop();
    assert_eq!(status, 0, "{account:#}");
    let stages = account["stages"].as_array().unwrap();
    let names: Vec<_> = stages.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["bridge", "firewall", "nop"]);
    assert!(stages.iter().all(|s| s["packets"].as_u64().unwrap() > 8000));
    balances(&account);
}
