//! Ten routers of a Click configuration between two hosts: what they forward is one function, and what they answer is its slow path.
//! ARP, traceroute, ping of packets that are too long, options; and a flood of what they answer beside packets that they forward.

use std::net::UdpSocket;

use serde_json::Value;

use super::instance::{Instance, count};
use super::net::Net;

const FAR: &str = "198.51.100.2";

/// Two hosts with the routers between them, whose frames have the addresses that `hops-10.click` knows.
fn between(chain: &str, cores: &str) -> Option<(Net, Instance)> {
    let net = Net::new("afpacket")?;
    for (end, mac, address, gateway) in [
        ("a", "02:00:00:00:00:02", "10.0.0.1/16", "10.0.0.254"),
        (
            "b",
            "02:00:00:00:01:02",
            "198.51.100.2/24",
            "198.51.100.254",
        ),
    ] {
        net.ip(end, &format!("link set {end}0 address {mac}"));
        net.ip(end, &format!("addr add {address} dev {end}0"));
        net.ip(end, &format!("route add default via {gateway}"));
    }
    // Their interfaces need no addresses of the routers: packet sockets see all frames.
    let nf = format!("chains/routers/{chain}.click");
    let words = net.words("");
    let instance = Instance::start(&net, "n", &[&nf, "--ports", &words, "--cores", cores]);
    Some((net, instance))
}

/// What ping says; whether all were answered.
fn ping(net: &Net, args: &[&str]) -> (String, bool) {
    let output = net.within("a", "ping", args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.success())
}

fn slow(account: &Value) -> &Value {
    &account["stages"][0]["slow"]
}

/// Packets that elements of a class have had.
fn of_class(account: &Value, class: &str) -> (u64, u64) {
    let elements = slow(account)["elements"].as_array().unwrap();
    let own = elements.iter().filter(|e| {
        let element = e["element"].as_str().unwrap();
        element.ends_with(&format!(":: {class}"))
    });
    own.fold((0, 0), |sum, e| {
        (sum.0 + count(e, "handed"), sum.1 + count(e, "refused"))
    })
}

/// Each hop of traceroute, by its address.
fn traced(net: &Net) -> Vec<String> {
    let args = ["-n", "-q", "1", "-w", "5", "-m", "15", FAR];
    let output = net.within("a", "traceroute", &args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let hops = text.lines().skip(1);
    hops.filter_map(|line| line.split_whitespace().nth(1).map(str::to_owned))
        .collect()
}

fn hops() -> Vec<String> {
    let mut hops = vec!["10.0.0.254".to_owned()];
    hops.extend((1..10).map(|hop| format!("10.255.{hop}.2")));
    hops.push(FAR.to_owned());
    hops
}

fn answers(chain: &str, cores: &str) {
    let Some((net, instance)) = between(chain, cores) else {
        return;
    };
    let said = ping(&net, &["-c", "3", "-W", "10", FAR]);
    assert!(said.1 && said.0.contains("ttl=54"), "{}", said.0);
    assert_eq!(traced(&net), hops());
    // Not to be cut: the sixth router says how long packets may be.
    let said = ping(&net, &["-c", "1", "-W", "5", "-M", "do", "-s", "1400", FAR]);
    let wanted = "From 10.255.5.2 icmp_seq=1 Frag needed and DF set (mtu = 1000)";
    assert!(said.0.contains(wanted), "{}", said.0);
    // Cut by it, on the way there and back.
    net.ip("a", "route flush cache");
    let said = ping(
        &net,
        &["-c", "2", "-W", "10", "-M", "dont", "-s", "1400", FAR],
    );
    assert!(said.1 && said.0.contains("1408 bytes from"), "{}", said.0);
    // Each router notes its address in the option.
    let said = ping(&net, &["-c", "1", "-W", "10", "-R", FAR]);
    assert!(said.1, "{}", said.0);
    for hop in ["10.255.1.1", "10.255.8.1"] {
        assert!(said.0.contains(hop), "{hop}: {}", said.0);
    }
    let said = ping(&net, &["-c", "1", "-W", "10", "10.255.3.1"]);
    assert!(said.1, "{}", said.0);
    let (account, status) = instance.stop();
    assert_eq!(status, 0, "{account:#}");
    assert_eq!(count(slow(&account), "refused"), 0, "{account:#}");
    for class in [
        "ARPResponder",
        "ICMPError",
        "IPFragmenter",
        "IPGWOptions",
        "ICMPPingResponder",
    ] {
        let own = of_class(&account, class).0 > 0;
        // Behind a querier all packets are handed over there, or before.
        assert!(own || chain == "arp-10", "{class}: {account:#}");
    }
    let handed = count(slow(&account), "handed");
    assert_eq!(count(&account, "consumed"), handed, "{account:#}");
    assert!(count(&account, "created") > 20, "{account:#}");
}

#[test]
fn ten_routers_answer_arp_traceroute_and_packets_that_are_too_long() {
    answers("hops-10", "1");
}

/// The interpreter is one for all workers.
#[test]
fn ten_routers_answer_on_two_cores() {
    answers("hops-10", "2");
}

/// The first and the last router ask for their neighbours: packets are held until the answer comes.
#[test]
fn routers_ask_for_their_neighbours() {
    answers("arp-10", "1");
}

/// Packets whose time to live ends, as fast as a host sends them, beside packets that are forwarded.
#[test]
fn a_flood_of_the_slow_path_harms_no_others() {
    const FLOOD: u64 = 60_000;
    let Some((net, instance)) = between("hops-10", "1") else {
        return;
    };
    let said = ping(&net, &["-c", "1", "-W", "10", FAR]);
    assert!(said.1, "{}", said.0);
    let flood = net.thread("a", || {
        let socket = UdpSocket::bind("10.0.0.1:0").unwrap();
        socket.set_ttl(1).unwrap();
        for number in 0..FLOOD {
            // What the host's own queue does not take is not sent; errors that come back are said at the next packet.
            let _ = socket.send_to(&number.to_be_bytes(), (FAR, 9_999));
        }
    });
    // On a machine that does other work as well the port's ring overflows, so that some of these are lost before anybody sees them.
    let said = ping(&net, &["-c", "50", "-i", "0.02", "-W", "10", FAR]);
    println!("{}", said.0.lines().last().unwrap_or_default());
    flood.join().unwrap();
    let said = ping(&net, &["-c", "3", "-i", "0.2", "-W", "10", FAR]);
    assert!(said.1, "{}", said.0);
    let (account, status) = instance.stop();
    assert_eq!(status, 0, "{account:#}");
    let (handed, refused) = of_class(&account, "ICMPError");
    println!("{handed} handed over, {refused} refused of {FLOOD}");
    assert!(handed > 0 && handed + refused <= FLOOD, "{account:#}");
    let full = account["reasons"]["slow_path_full"].as_u64().unwrap_or(0);
    assert_eq!(full, count(slow(&account), "refused"), "{account:#}");
    // Nobody else was refused.
    assert_eq!(refused, full, "{account:#}");
    assert!(count(&account, "forwarded") >= 8, "{account:#}");
}
