//! A function on two machines: packets that come to the wrong one, and buckets that go to the other one while packets come.
//!
//! ```text
//!            ┌ a0 ═══ a1 ── n, the first machine ── b1 ═══ b0 ┐
//! namespace a                      p ═══ p                     namespace b
//!            └ a9 ═══ a8 ── y, the second one ───── b8 ═══ b9 ┘
//! ```
//!
//! What a sends goes through the first machine, what b answers through the second one, which has no bucket.

use std::path::Path;

use millrace_turns::its_turn;
use serde_json::Value;

use super::etcd::Etcd;
use super::instance::{Instance, count};
use super::net::{Net, run, until};
use crate::common::{json, millrace};

/// The second machine's namespace, which goes with the test.
struct Second<'a>(&'a Net);

impl<'a> Second<'a> {
    fn new(net: &'a Net) -> Self {
        let name = net.name("y");
        assert!(
            run("ip", &["netns", "add", &name])
                .unwrap()
                .status
                .success()
        );
        for end in ["a", "b"] {
            net.ip(
                end,
                &format!("link add {end}9 type veth peer name {end}8 netns {name}"),
            );
            net.ip("y", &format!("link set {end}8 up"));
            // The same host on both ways.
            let own = if end == "a" { 1 } else { 2 };
            for way in [0, 9] {
                net.ip(
                    end,
                    &format!("link set {end}{way} address 02:00:00:00:00:0{own} up"),
                );
                net.ip(end, &format!(
                    "neigh add 10.0.0.{other} lladdr 02:00:00:00:00:0{other} dev {end}{way} nud permanent",
                    other = 3 - own
                ));
                for interface in ["all", &format!("{end}{way}")] {
                    net.within(
                        end,
                        "sysctl",
                        &["-qw", &format!("net.ipv4.conf.{interface}.rp_filter=0")],
                    );
                }
            }
            net.ip(end, &format!("addr add 10.0.0.{own}/32 dev lo"));
            net.ip(end, "link set lo up");
        }
        net.ip("a", "route add 10.0.0.2 dev a0 src 10.0.0.1");
        net.ip("b", "route add 10.0.0.1 dev b9 src 10.0.0.2");
        net.ip(
            "n",
            &format!("link add p type veth peer name p netns {name}"),
        );
        for (end, own) in [("n", 1), ("y", 2)] {
            net.ip(end, &format!("addr add 10.9.0.{own}/24 dev p"));
            net.ip(end, "link set p up");
        }
        Self(net)
    }
}

impl Drop for Second<'_> {
    fn drop(&mut self) {
        let _ = run("ip", &["netns", "del", &self.0.name("y")]);
    }
}

/// Puts a table in place: which buckets each machine has.
fn table(file: &Path, version: u64, first: &str, second: &str) {
    let secret = "5a".repeat(32);
    let node = |name: &str, own: u8, buckets: &str| {
        format!(
            "[[node]]\nname = \"{name}\"\npeer = \"10.9.0.{own}:7100\"\nbuckets = [{buckets}]\n"
        )
    };
    let text = format!(
        "version = {version}\nsecret = \"{secret}\"\n{}{}",
        node("n", 1, first),
        node("y", 2, second)
    );
    let new = file.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, file).unwrap();
}

/// A firewall on one of the two machines.
fn started(net: &Net, end: &str, words: &[&str]) -> Instance {
    let (ports, peer) = match end {
        "n" => ("afpacket:a1,afpacket:b1", "10.9.0.1:7100"),
        _ => ("afpacket:a8,afpacket:b8", "10.9.0.2:7100"),
    };
    let mut args = vec!["nfs/firewall", "--ports", ports, "--cores", "2"];
    args.extend(["--node", end, "--peer", peer, "--peer-plain"]);
    args.extend(words);
    Instance::start(net, end, &args)
}

/// Pings the other host; how many got no answer.
fn ping(net: &Net, times: u64) -> u64 {
    let count = times.to_string();
    let args = ["-c", &count, "-i", "0.02", "-W", "5", "10.0.0.2"];
    let pinged = net.within("a", "ping", &args);
    let text = String::from_utf8_lossy(&pinged.stdout).into_owned();
    let received = text.split(" received").next().unwrap();
    let received = received.rsplit(' ').next().unwrap();
    times - received.parse::<u64>().unwrap()
}

/// Workers may still be made when the ports are served.
fn goes_through(net: &Net) {
    until("a packet goes through", || {
        let pinged = net.within("a", "ping", &["-c", "1", "-W", "1", "10.0.0.2"]);
        pinged.status.success()
    });
}

fn peers(account: &Value, name: &str) -> u64 {
    count(&account["peers"], name)
}

#[test]
fn buckets_go_to_another_machine_and_back_and_no_packet_is_lost() {
    let Some(net) = Net::new("afpacket") else {
        return;
    };
    let _second = Second::new(&net);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("table.toml");
    table(&file, 1, "\"0-511\"", "");
    let cluster = format!("static:{}", file.display());
    let socket = |end: &str| folder.path().join(end).display().to_string();
    let start = |end: &str| {
        started(
            &net,
            end,
            &["--cluster", &cluster, "--control", &socket(end)],
        )
    };
    let first = start("n");
    let second = start("y");
    goes_through(&net);
    assert_eq!(ping(&net, 10), 0);
    let here = |end: &str| {
        let mut command = millrace();
        command.args(["ctl", "class", "show", "--control", &socket(end)]);
        let classes = json(&mut command).0["classes"].as_array().unwrap().clone();
        classes.iter().filter(|c| c["worker"].is_u64()).count()
    };
    for (version, owners, (one, other)) in [
        (2, ("\"256-511\"", "\"0-255\""), (256, 256)),
        (3, ("", "\"0-511\""), (0, 512)),
        (4, ("\"0-511\"", ""), (512, 0)),
    ] {
        std::thread::scope(|scope| {
            let pings = scope.spawn(|| assert_eq!(ping(&net, 100), 0));
            table(&file, version, owners.0, owners.1);
            until("all buckets are where they shall be", || {
                (here("n"), here("y")) == (one, other)
            });
            pings.join().unwrap();
        });
        // One that begins behind the move, too.
        assert_eq!(ping(&net, 10), 0);
    }
    let (second, status) = second.stop();
    assert_eq!(status, 0, "{second:#}");
    let (first, status) = first.stop();
    assert_eq!(status, 0, "{first:#}");
    // What one sent on the other one has read, and each packet has one fate.
    for (from, to) in [(&first, &second), (&second, &first)] {
        assert!(peers(from, "sent") > 0, "{from:#}");
        assert_eq!(peers(from, "sent"), peers(to, "received"), "{from:#}{to:#}");
        assert_eq!(
            (peers(to, "malformed"), count(to, "dropped")),
            (0, 0),
            "{to:#}"
        );
    }
    assert!(
        peers(&second, "taken") > 100 && peers(&first, "given") > 100,
        "{second:#}"
    );
}

/// What `millrace cluster` says, at the second machine.
fn asked(net: &Net, words: &[&str]) -> Option<Value> {
    let command = super::instance::command(net, "y", &[]);
    let millrace = command.get_args().nth(3).unwrap().to_owned();
    let (what, rest) = words.split_first().unwrap();
    let mut args = vec!["cluster", what, "etcd://10.9.0.1:2379/fw", "--json"];
    args.extend(rest);
    let said = net.within("y", millrace.to_str().unwrap(), &args);
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    serde_json::from_str(&text).ok()
}

/// How many buckets a node has.
fn buckets(net: &Net, name: &str) -> Option<u64> {
    let status = asked(net, &["show"])?;
    let nodes = status["status"]["nodes"].as_array()?;
    let node = nodes.iter().find(|n| n["name"] == name)?;
    node["buckets"].as_u64()
}

#[test]
fn machines_agree_in_etcd_and_one_is_drained_without_a_packet_lost() {
    if !its_turn("machines that agree in etcd", 1, 3) {
        return;
    }
    if !Etcd::is_there() {
        return;
    }
    let Some(net) = Net::new("afpacket") else {
        return;
    };
    let _second = Second::new(&net);
    net.ip("n", "link set lo up");
    let _etcd = Etcd::start(&net, "n", &["10.9.0.1"]);
    let start = |end: &str| started(&net, end, &["--cluster", "etcd://10.9.0.1:2379/fw"]);
    let first = start("n");
    let second = start("y");
    until("each machine has half of the buckets", || {
        buckets(&net, "n") == Some(256) && buckets(&net, "y") == Some(256)
    });
    let mut lost = 0;
    goes_through(&net);
    // One echo's identifier is one flow: it is with a machine of the two, which is drained and comes back.
    for node in ["n", "y"] {
        std::thread::scope(|scope| {
            let pings = scope.spawn(|| ping(&net, 200));
            asked(&net, &["drain", node]);
            until("it has no bucket", || buckets(&net, node) == Some(0));
            asked(&net, &["undrain", node]);
            until("it has half of them", || buckets(&net, node) == Some(256));
            lost += pings.join().unwrap();
        });
    }
    let (second, status) = second.stop();
    assert_eq!(status, 0, "{second:#}");
    until("the other one has all buckets", || {
        buckets(&net, "n") == Some(512)
    });
    let (first, status) = first.stop();
    assert_eq!(status, 0, "{first:#}");
    // A machine that had too little processor to keep its lease says that it dropped, and why; nothing else is lost.
    let dropped = |account: &Value| count(account, "dropped");
    let late = dropped(&first) + dropped(&second);
    assert!(lost <= late, "{lost} lost: {first:#}{second:#}");
    for (from, to) in [(&first, &second), (&second, &first)] {
        assert!(peers(from, "sent") > 0, "{from:#}");
        assert_eq!(peers(to, "malformed"), 0, "{to:#}");
        assert!(
            peers(from, "given") > 100 && peers(from, "taken") > 100,
            "{from:#}"
        );
    }
}
