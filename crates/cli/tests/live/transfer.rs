//! TCP, ping and traceroute through functions on every kind of port.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::instance::{Instance, count};
use super::net::{KINDS, Net};

/// Bytes of a transfer, each way.
pub const BYTES: usize = 6 << 20;
const SERVER: &str = "10.0.0.2:5001";

/// Bytes that differ everywhere, of each of these seeds the same: made once, since unoptimised code takes 0.1 s for them.
pub fn content(seed: usize) -> &'static [u8] {
    static MADE: [OnceLock<Vec<u8>>; 4] = [const { OnceLock::new() }; 4];
    MADE[seed].get_or_init(|| sequence(seed as u64))
}

/// A linear congruential sequence (Knuth's MMIX), its high bytes.
fn sequence(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(BYTES).collect()
}

fn patient(stream: &TcpStream) {
    let most = Some(Duration::from_secs(30));
    stream.set_read_timeout(most).unwrap();
    stream.set_write_timeout(most).unwrap();
}

/// A client behind a sends one content to a server behind b and gets another back.
pub fn both_directions(net: &Net) {
    let listening = net.thread("b", || TcpListener::bind(SERVER).unwrap());
    let listener = listening.join().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, from) = listener.accept().unwrap();
        patient(&stream);
        let mut got = vec![0; BYTES];
        stream.read_exact(&mut got).unwrap();
        stream.write_all(content(2)).unwrap();
        (got == content(1), from)
    });
    let client = net.thread("a", || {
        let address: SocketAddr = SERVER.parse().unwrap();
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(20)).unwrap();
        patient(&stream);
        stream.write_all(content(1)).unwrap();
        let mut got = vec![0; BYTES];
        stream.read_exact(&mut got).unwrap();
        got == content(2)
    });
    assert!(client.join().unwrap(), "the client got something else");
    let (right, from) = server.join().unwrap();
    assert!(right, "the server got something else, from {from}");
}

/// Gives b's side a way to the address that `nat` translates to: itself has none, being between.
pub fn behind_nat(net: &Net) {
    let lan = net.address("a", "a0");
    net.ip("b", "route add 192.0.2.1 dev b0");
    net.ip(
        "b",
        &format!("neigh add 192.0.2.1 lladdr {lan} dev b0 nud permanent"),
    );
}

/// Runs a function on a kind of port and transfers through it.
pub fn through(function: &str, kind: &'static str, rate: bool) {
    let Some(net) = Net::new(kind) else { return };
    let words = net.words("");
    let nf = format!("nfs/{function}");
    let instance = Instance::start(&net, "n", &[&nf, "--ports", &words]);
    net.settle();
    if function == "nat" {
        behind_nat(&net);
    }
    if rate {
        for end in ["a", "b"] {
            let device = format!("{end}0");
            let args = [
                "qdisc", "add", "dev", &device, "root", "tbf", "rate", "100mbit",
            ];
            let more = ["burst", "64kb", "latency", "50ms"];
            let output = net.within(end, "tc", &[&args[..], &more].concat());
            assert!(output.status.success(), "{output:?}");
        }
    }
    let began = Instant::now();
    both_directions(&net);
    let took = began.elapsed();
    let (account, status) = instance.stop();
    assert_eq!(status, 0, "{account:#}");
    // Segments are at most 1500 bytes, so a transfer is at least this many packets a way.
    let least = (BYTES / 1500) as u64;
    for port in account["ports"].as_array().unwrap() {
        assert!(port["read"].as_u64().unwrap() > least, "{account:#}");
    }
    let mbits = (2 * BYTES * 8) as f64 / took.as_secs_f64() / 1e6;
    println!(
        "{function} on {kind}: {} packets, {mbits:.0} Mbit/s",
        count(&account, "read")
    );
}

#[test]
fn tcp_goes_through_bridge_firewall_and_nat_on_afpacket() {
    for function in ["bridge", "firewall", "nat"] {
        through(function, "afpacket", false);
    }
}

#[test]
fn tcp_goes_through_bridge_firewall_and_nat_on_afxdp() {
    for function in ["bridge", "firewall", "nat"] {
        through(function, "afxdp", false);
    }
}

#[test]
fn tcp_goes_through_bridge_firewall_and_nat_on_tap() {
    for function in ["bridge", "firewall", "nat"] {
        through(function, "tap", false);
    }
}

#[test]
fn tcp_adapts_to_a_rate_limit() {
    for kind in ["afpacket", "afxdp"] {
        through("firewall", kind, true);
    }
}

#[test]
fn ping_and_traceroute_go_through_nat() {
    KINDS.into_iter().for_each(ping_and_traceroute);
}

/// Ping and traceroute through `nat` on a kind of port.
pub fn ping_and_traceroute(kind: &'static str) {
    let Some(net) = Net::new(kind) else { return };
    let instance = Instance::start(&net, "n", &["nfs/nat", "--ports", &net.words("")]);
    net.settle();
    behind_nat(&net);
    let ping = ["-c", "3", "-i", "0.2", "-W", "5", "10.0.0.2"];
    let output = net.within("a", "ping", &ping);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(" 3 received"), "{kind}: {text}");
    // UDP, so that the answers are ICMP errors about translated packets. The function is the first
    // hop and says nothing; the server is the second.
    let trace = ["-n", "-q", "1", "-w", "2", "-m", "4", "10.0.0.2"];
    match net.within("a", "traceroute", &trace) {
        output if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let hops: Vec<&str> = text.lines().skip(1).map(str::trim).collect();
            assert!(
                hops.first().is_some_and(|h| h.starts_with("1  *")),
                "{kind}: {text}"
            );
            assert!(
                hops.get(1).is_some_and(|h| h.starts_with("2  10.0.0.2")),
                "{kind}: {text}"
            );
        }
        output => println!(
            "skipped: traceroute: {}",
            String::from_utf8_lossy(&output.stderr)
        ),
    }
    let (account, status) = instance.stop();
    assert_eq!(status, 0, "{account:#}");
    assert!(
        account["reasons"]["ttl"].as_u64().unwrap() >= 1,
        "{account:#}"
    );
}
