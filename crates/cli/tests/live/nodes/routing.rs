//! Routes over the machines: by BIRD, configured as docs/cluster.md shows, or by the test where there is no BIRD.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::fabric::{NODES, number};
use crate::common::typed::blocks;
use crate::live::net::{Net, Served, run, until};

/// Who says which machines a router may send to.
pub enum Routing {
    /// BIRD on each machine and each router; configurations and sockets are in a folder
    Bird {
        folder: PathBuf,
        running: RefCell<Vec<(String, Served)>>,
    },
    /// the test does
    Own(RefCell<BTreeSet<&'static str>>),
}

impl Routing {
    pub fn start(net: &Net, folder: &Path) -> Self {
        if program().is_none() {
            println!(
                "skipped: there is no BIRD here (Debian: bird2): the test itself sets the routes"
            );
            return Self::Own(RefCell::default());
        }
        let shown = blocks("docs/cluster.md", "From one machine to three");
        let mut shown = shown.iter().filter(|b| b.info == "bird");
        let [node, router] = [shown.next(), shown.next()].map(|b| b.unwrap().text.clone());
        let write = |end: &str, text: String| {
            std::fs::write(folder.join(format!("{end}.conf")), text).unwrap();
        };
        for end in NODES {
            let i = number(end);
            let own = node.replace("10.9.0.1;", &format!("10.9.0.{i};"));
            let own = own.replace("10.9.0.1 as", &format!("10.9.0.{i} as"));
            write(end, own.replace("10.1.1.", &format!("10.1.{i}.")));
        }
        write("s", router.replace("10.9.0.11", "10.9.0.12"));
        write("r", router);
        let this = Self::Bird {
            folder: folder.to_owned(),
            running: RefCell::default(),
        };
        for end in ["r", "s"] {
            this.bird(net, end);
        }
        this
    }

    fn bird(&self, net: &Net, end: &str) {
        let Self::Bird { folder, running } = self else {
            return;
        };
        let file = |kind: &str| folder.join(format!("{end}.{kind}"));
        let started = net
            .command(end, program().unwrap())
            .args(["-f", "-c"])
            .arg(file("conf"))
            .arg("-s")
            .arg(file("bird"))
            .stderr(Stdio::null())
            .spawn();
        running
            .borrow_mut()
            .push((end.to_owned(), Served(started.unwrap())));
    }

    /// A machine may be sent to: its BIRD begins.
    pub fn announce(&self, net: &Net, node: &'static str) {
        match self {
            Self::Bird { .. } => self.bird(net, node),
            Self::Own(nodes) => {
                nodes.borrow_mut().insert(node);
                self.set(net);
            }
        }
        until("routers send to it", || sends(net, node) == [true; 2]);
    }

    /// A machine is not to be sent to any more, or is dead: its BIRD is killed.
    pub fn withdraw(&self, net: &Net, node: &str) {
        match self {
            Self::Bird { running, .. } => running.borrow_mut().retain(|(end, _)| end != node),
            Self::Own(nodes) => {
                nodes.borrow_mut().retain(|n| *n != node);
                self.set(net);
            }
        }
        self.until_withdrawn(net, node);
    }

    /// Waits until no router sends to a machine.
    pub fn until_withdrawn(&self, net: &Net, node: &str) {
        until("no router sends to it", || sends(net, node) == [false; 2]);
    }

    fn set(&self, net: &Net) {
        let Self::Own(nodes) = self else { return };
        let nodes = nodes.borrow();
        for (end, to, other) in [
            ("r", "198.51.100.0/24", 2),
            ("s", "192.0.2.1 src 198.51.100.1", 1),
        ] {
            let hops = nodes
                .iter()
                .map(|n| format!(" nexthop via 10.1.{}.{other}", number(n)));
            let hops: String = hops.collect();
            match hops.is_empty() {
                true => net.ip(end, &format!("route del {}", to.split(' ').next().unwrap())),
                false => net.ip(end, &format!("route replace {to}{hops}")),
            }
        }
    }
}

/// Where BIRD is, which not every PATH has.
fn program() -> Option<&'static str> {
    let mut places = ["bird", "/usr/sbin/bird"].into_iter();
    places.find(|at| run(at, &["--version"]).is_ok())
}

/// Whether the routers send to a machine.
fn sends(net: &Net, node: &str) -> [bool; 2] {
    std::thread::sleep(Duration::from_millis(50));
    let i = number(node);
    [("r", "198.51.100.0/24", 2), ("s", "192.0.2.1", 1)].map(|(end, to, other)| {
        let shown = net.within(end, "ip", &["route", "show", to]);
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        text.contains(&format!("via 10.1.{i}.{other} "))
    })
}
