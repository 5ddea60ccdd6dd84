//! The tools that people try a network with, through functions on every kind of port: iperf3 both ways
//! at once, and curl of a large file.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use millrace_turns::of_today;

use super::instance::{Instance, count};
use super::net::{KINDS, Net, Served, run};
use super::transfer::{BYTES, behind_nat, content};

/// Whether a tool is there; says so where it is not.
fn there(tool: &str) -> bool {
    let found = run(tool, &["--version"]).is_ok_and(|o| o.status.success());
    if !found {
        println!("skipped: no {tool}");
    }
    found
}

/// Both ways at once for a second; Mbit/s that arrived, from a to b and back.
fn iperf3(net: &Net) -> (f64, f64) {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let server = (net.command("b", "iperf3"))
            .args(["-s", "-1", "-B", "10.0.0.2"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let _server = Served(server.unwrap());
        std::thread::sleep(Duration::from_millis(100));
        let client = ["-c", "10.0.0.2", "-t", "1", "--bidir", "--json"];
        let output = net.within("a", "iperf3", &client);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let rate = |of: &str| document["end"][of]["bits_per_second"].as_f64();
        let sums = rate("sum_received").zip(rate("sum_received_bidir_reverse"));
        if let Some((on, back)) = sums {
            return (on / 1e6, back / 1e6);
        }
        // The server may not have listened yet.
        assert!(Instant::now() < end, "{}: iperf3: {text}", net.kind);
    }
}

/// Serves one file to one client by HTTP/1.1 (RFC 9112), behind b.
fn serve(net: &Net) -> std::thread::JoinHandle<()> {
    let bound = net.thread("b", || TcpListener::bind("10.0.0.2:8080").unwrap());
    let listener = bound.join().unwrap();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let mut request = BufReader::new(&stream);
        let mut line = String::new();
        while request.read_line(&mut line).unwrap() > 2 {
            line.clear();
        }
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\nConnection: close\r\n\r\n");
        let mut stream = &stream;
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(content(3)).unwrap();
    })
}

fn curl(net: &Net, folder: &std::path::Path) {
    let server = serve(net);
    let file = folder.join(format!("{}.bin", net.kind));
    let to = file.to_str().unwrap();
    let args = format!("-sS --max-time 60 -o {to} http://10.0.0.2:8080/file");
    let args = crate::common::words(&args);
    let output = net.within("a", "curl", &args);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: curl: {text}", net.kind);
    server.join().unwrap();
    let got = std::fs::read(&file).unwrap();
    assert!(got == content(3), "{}: another file arrived", net.kind);
}

/// What the links carry, Mbit/s: less than any port does.
const LIMIT: f64 = 200.0;

/// Limits what leaves both ends (tc-tbf(8)).
fn limit(net: &Net) {
    let rate = format!("{LIMIT}mbit");
    for end in ["a", "b"] {
        let device = format!("{end}0");
        let args = ["qdisc", "add", "dev", &device, "root", "tbf", "rate", &rate];
        let more = ["burst", "64kb", "latency", "50ms"];
        let output = net.within(end, "tc", &[&args[..], &more].concat());
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn iperf3_and_curl_go_through_nat_firewall_and_bridge() {
    of_today("kinds of port under iperf3 and curl", KINDS, 3)
        .into_iter()
        .for_each(tools_go_through);
}

/// Iperf3 and curl through functions on a kind of port, between links of limited rate.
pub fn tools_go_through(kind: &'static str) {
    if !(there("iperf3") && there("curl")) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for function in ["nat", "firewall", "bridge"] {
        let Some(net) = Net::new(kind) else { return };
        let nf = format!("nfs/{function}");
        let instance = Instance::start(&net, "n", &[&nf, "--ports", &net.words("")]);
        net.settle();
        if function == "nat" {
            behind_nat(&net);
        }
        limit(&net);
        let (on, back) = iperf3(&net);
        curl(&net, folder.path());
        let (account, status) = instance.stop();
        assert_eq!(status, 0, "{account:#}");
        // What arrives is less than the limit by headers, and more by the burst that a bucket holds.
        let within = |rate: f64| rate > 1.0 && rate < 1.1 * LIMIT;
        assert!(
            within(on) && within(back),
            "{function} on {kind}: {on} and {back} Mbit/s"
        );
        println!(
            "{function} on {kind}: iperf3 {on:.0} and {back:.0} Mbit/s, a file of {} MiB, {} packets",
            BYTES >> 20,
            count(&account, "read")
        );
    }
}
