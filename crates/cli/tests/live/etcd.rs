//! An etcd in a namespace, of one server or of several.

use std::cell::RefCell;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use super::net::{Net, Served, run, until};

/// It goes with the test, as does the folder that its data is in.
pub struct Etcd {
    end: &'static str,
    /// with their addresses
    servers: RefCell<Vec<(&'static str, Served)>>,
    folder: tempfile::TempDir,
}

impl Etcd {
    /// Whether there is one; else it is said that a test is skipped.
    pub fn is_there() -> bool {
        let there = run("etcd", &["--version"]).is_ok();
        if !there {
            println!("skipped: there is no etcd here (Debian: etcd-server)");
        }
        there
    }

    /// Starts one that answers at these addresses of a namespace, a server each.
    pub fn start(net: &Net, end: &'static str, addresses: &[&'static str]) -> Self {
        // Memory: a disk that others use makes etcd miss leases.
        let memory = Path::new("/dev/shm");
        let folder = match memory.is_dir() {
            true => tempfile::tempdir_in(memory).unwrap(),
            false => tempfile::tempdir().unwrap(),
        };
        let peer = |address: &str| format!("http://{address}:2380");
        let members = addresses.iter().map(|a| format!("{a}={}", peer(a)));
        let members = members.collect::<Vec<_>>().join(",");
        let serve = |address: &&'static str| {
            let clients = format!("http://{address}:2379");
            let etcd = (net.command(end, "etcd").arg("--data-dir"))
                .arg(folder.path().join(format!("etcd-{address}")))
                .args(["--name", address, "--initial-cluster", &members])
                .args(["--listen-client-urls", &clients])
                .args(["--advertise-client-urls", &clients])
                .args(["--listen-peer-urls", &peer(address)])
                .args(["--initial-advertise-peer-urls", &peer(address)])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            (*address, Served(etcd.unwrap()))
        };
        let etcd = Self {
            end,
            servers: RefCell::new(addresses.iter().map(serve).collect()),
            folder,
        };
        until("etcd answers", || {
            let answers = |address: &&str| {
                let health = ["-sf", &format!("http://{address}:2379/health")];
                net.within(end, "curl", &health).status.success()
            };
            addresses.iter().all(answers)
        });
        etcd
    }

    /// Kills the server that leads, as by `kill -9`; its address.
    pub fn kill_leader(&self, net: &Net) -> &'static str {
        let leads = |address: &str| {
            let status = format!("http://{address}:2379/v3/maintenance/status");
            let got = net.within(self.end, "curl", &["-sf", "-d", "{}", &status]);
            let said: Value = serde_json::from_slice(&got.stdout).unwrap_or_default();
            said["leader"].is_string() && said["leader"] == said["header"]["member_id"]
        };
        let mut leader = None;
        until("a server of etcd leads", || {
            let servers = self.servers.borrow();
            leader = servers.iter().position(|(address, _)| leads(address));
            leader.is_some()
        });
        // It is killed where it is dropped.
        self.servers.borrow_mut().remove(leader.unwrap()).0
    }

    /// A folder in memory.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}
