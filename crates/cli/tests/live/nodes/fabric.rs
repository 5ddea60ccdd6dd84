//! Three machines between two routers, which spread packets over them (ECMP), and what the machines agree in.
//!
//! ```text
//! 10.0.0.2 c ── r ══ w1, w2, w3 ══ n1, n2, n3 ══ w1, w2, w3 ══ s 198.51.100.1
//!               └──────── p ────────── e (etcd) ────────── p ───┘
//! ```
//!
//! Machines are wires between the routers, which have one Ethernet address on all of them: what a machine sends on comes out at another one.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::routing::Routing;
use crate::common::{json, millrace};
use crate::live::etcd::Etcd;
use crate::live::instance::Instance;
use crate::live::net::{Net, until};

/// The machines.
pub const NODES: [&str; 3] = ["n1", "n2", "n3"];
/// Servers of etcd.
const SERVERS: [&str; 3] = ["10.9.0.9", "10.9.0.8", "10.9.0.7"];

/// All of it.
pub struct Fabric {
    // In this order: what runs in the namespaces ends before they do.
    pub routing: Routing,
    pub etcd: Etcd,
    /// where the machines agree
    cluster: String,
    pub net: Net,
}

impl Fabric {
    /// With an etcd of so many servers. None, said aloud, where it cannot be made.
    pub fn new(servers: usize) -> Option<Self> {
        if !Etcd::is_there() {
            return None;
        }
        let net = Net::of("afpacket", &["c", "r", "s", "e", "n1", "n2", "n3"])?;
        lines(&net);
        let servers = &SERVERS[..servers];
        let etcd = Etcd::start(&net, "e", servers);
        let routing = Routing::start(&net, etcd.folder());
        let at = servers.iter().map(|s| format!("{s}:2379"));
        let at = at.collect::<Vec<_>>().join(",");
        Some(Self {
            routing,
            etcd,
            cluster: format!("etcd://{at}/lab"),
            net,
        })
    }

    /// Starts `nat` on a machine, with one core.
    pub fn start(&self, node: &str) -> Instance {
        self.start_with(node, &[])
    }

    /// The same with further options.
    pub fn start_with(&self, node: &str, options: &[&str]) -> Instance {
        let peer = format!("10.9.0.{}:7100", number(node));
        let socket = self.socket(node);
        let mut args = vec!["nfs/nat", "--ports", "afpacket:lan,afpacket:wan"];
        args.extend(["--cluster", &self.cluster, "--node", node, "--peer", &peer]);
        args.extend(["--peer-plain", "--control", socket.to_str().unwrap()]);
        let metrics = format!("10.9.0.{}:9184", number(node));
        args.extend(["--metrics", &metrics]);
        args.extend(options);
        Instance::start(&self.net, node, &args)
    }

    fn socket(&self, node: &str) -> PathBuf {
        self.etcd.folder().join(node)
    }

    /// What `millrace ctl` or `millrace map` says of a machine that runs.
    pub fn asked(&self, verb: &str, node: &str, words: &[&str]) -> Value {
        let mut command = millrace();
        command.arg(verb).args(words);
        command.arg("--control").arg(self.socket(node));
        json(&mut command).0
    }

    /// The account of a machine up to now, which has one worker.
    pub fn stats(&self, node: &str) -> Value {
        self.asked("ctl", node, &["stats"])["accounts"][0].take()
    }

    /// The value of a series that a machine shows to Prometheus, whose labels may be left out.
    pub fn metric(&self, node: &str, series: &str) -> Option<u64> {
        let at = format!("http://10.9.0.{}:9184/metrics", number(node));
        let got = self.net.within("e", "curl", &["-sf", &at]);
        let text = String::from_utf8_lossy(&got.stdout).into_owned();
        let line = text.lines().find(|l| l.starts_with(series))?;
        let value: f64 = line.rsplit(' ').next()?.parse().ok()?;
        Some(value as u64)
    }

    /// What `millrace cluster` says, where etcd is.
    ///
    /// # Errors
    /// What it says where it is not done.
    pub fn cluster(&self, what: &str, rest: &[&str]) -> Result<Value, String> {
        let plain = millrace();
        let program = plain.get_program().to_str().unwrap();
        let args = [&["cluster", what, &self.cluster, "--json"], rest].concat();
        let said = self.net.within("e", program, &args);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match said.status.success() {
            true => serde_json::from_slice(&said.stdout).map_err(|e| e.to_string()),
            false => Err(text(&said.stdout) + &text(&said.stderr)),
        }
    }

    /// Packets for which a router had no route, so far: on a machine that is busy for longer than three of its beats, BFD takes all of them back.
    pub fn unrouted(&self) -> u64 {
        let counts = |end: &str| -> u64 {
            let got = (self.net).within(end, "cat", &["/proc/net/snmp", "/proc/net/netstat"]);
            let text = String::from_utf8_lossy(&got.stdout).into_owned();
            let lines: Vec<&str> = text.lines().collect();
            let pairs = lines.chunks_exact(2).flat_map(|pair| {
                let [names, values] = [0, 1].map(|at| pair[at].split(' '));
                names.zip(values)
            });
            let unrouted = pairs.filter(|(name, _)| ["OutNoRoutes", "InNoRoutes"].contains(name));
            unrouted.map(|(_, n)| n.parse::<u64>().unwrap()).sum()
        };
        ["r", "s"].into_iter().map(counts).sum()
    }

    /// The version of the table.
    pub fn version(&self) -> Option<u64> {
        self.cluster("show", &[]).ok()?["status"]["version"].as_u64()
    }

    /// How many buckets each machine has; none while some are to move.
    pub fn settled(&self) -> Option<[u64; 3]> {
        let said = self.cluster("show", &[]).ok()?;
        let status = &said["status"];
        let nodes = status["nodes"].as_array()?;
        let of = |name: &str| {
            let node = nodes.iter().find(|n| n["name"] == name);
            node.and_then(|n| n["buckets"].as_u64()).unwrap_or(0)
        };
        let still = status["moving"] == 0 && status["unowned"] == 0;
        still.then(|| NODES.map(of))
    }

    /// Waits until these machines have all buckets.
    pub fn until_shared(&self, among: &[&str]) {
        until("all buckets are shared out", || {
            // Each look is a process.
            std::thread::sleep(Duration::from_millis(200));
            let has = |n: &str| among.contains(&n);
            self.settled()
                .is_some_and(|of| NODES.iter().zip(of).all(|(n, of)| has(n) == (of > 0)))
        });
    }
}

/// The number of a machine.
pub fn number(node: &str) -> &str {
    &node[1..]
}

/// Interfaces and addresses.
fn lines(net: &Net) {
    for end in ["r", "s"] {
        for set in [
            "ipv4.ip_forward=1",
            "ipv4.fib_multipath_hash_policy=1",
            "ipv4.conf.all.rp_filter=0",
            "ipv4.conf.default.rp_filter=0",
        ] {
            net.within(end, "sysctl", &["-qw", &format!("net.{set}")]);
        }
    }
    let up = |end: &str, device: &str, address: &str| {
        net.ip(end, &format!("addr add {address} dev {device}"));
        net.ip(end, &format!("link set {device} up"));
    };
    let r = net.name("r");
    net.ip(
        "c",
        &format!("link add c0 type veth peer name c0 netns {r}"),
    );
    up("c", "c0", "10.0.0.2/24");
    up("r", "c0", "10.0.0.1/24");
    net.ip("c", "route add default via 10.0.0.1");
    up("s", "lo", "198.51.100.1/32");
    net.ip("e", "link set lo up");
    net.ip("e", "link add name sw type bridge");
    for server in SERVERS {
        up("e", "sw", &format!("{server}/24"));
    }
    for (end, last) in [("r", 11), ("s", 12), ("n1", 1), ("n2", 2), ("n3", 3)] {
        let own = net.name(end);
        net.ip(
            "e",
            &format!("link add p{end} type veth peer name p netns {own}"),
        );
        net.ip("e", &format!("link set p{end} master sw up"));
        up(end, "p", &format!("10.9.0.{last}/24"));
    }
    for node in NODES {
        let i = number(node);
        for (end, side, own, other) in [("r", "lan", 1, 2), ("s", "wan", 2, 1)] {
            let router = net.name(end);
            net.ip(
                node,
                &format!("link add {side} type veth peer name w{i} netns {router}"),
            );
            net.ip(node, &format!("link set {side} up"));
            net.ip(end, &format!("link set w{i} address 02:00:00:00:00:1{own}"));
            up(end, &format!("w{i}"), &format!("10.1.{i}.{own}/30"));
            net.ip(
                end,
                &format!("neigh add 10.1.{i}.{other} lladdr 02:00:00:00:00:1{other} dev w{i} nud permanent"),
            );
        }
    }
}
