//! An etcd in a namespace.

use std::path::Path;
use std::process::Stdio;

use super::net::{Net, Served, run, until};

/// It goes with the test, as does the folder that its data is in.
pub struct Etcd {
    _served: Served,
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

    /// Starts one that answers at this address of a namespace.
    pub fn start(net: &Net, end: &str, address: &str) -> Self {
        // Memory: a disk that others use makes etcd miss leases.
        let memory = Path::new("/dev/shm");
        let folder = match memory.is_dir() {
            true => tempfile::tempdir_in(memory).unwrap(),
            false => tempfile::tempdir().unwrap(),
        };
        let clients = format!("http://{address}:2379");
        let etcd = (net.command(end, "etcd").arg("--data-dir"))
            .arg(folder.path().join("etcd"))
            .args(["--listen-client-urls", &clients])
            .args(["--advertise-client-urls", &clients])
            .args(["--listen-peer-urls", "http://127.0.0.1:2380"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let etcd = Self {
            _served: Served(etcd.unwrap()),
            folder,
        };
        until("etcd answers", || {
            let health = ["-sf", &format!("{clients}/health")];
            net.within(end, "curl", &health).status.success()
        });
        etcd
    }

    /// A folder in memory.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}
