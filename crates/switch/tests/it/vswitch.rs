//! Open vSwitch with its dummy datapath, run in a folder of the test: no root, no interface.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use millrace_switch::ovs::Bridge;
use millrace_traffic::capture::Reader;

const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
const BRIDGE: &str = "br0";
/// Frames that its port takes at once; more are lost.
const BATCH: usize = 20;

/// A switch, ended and removed when it is dropped.
pub struct VSwitch {
    folder: tempfile::TempDir,
    database: Child,
    switch: Option<Child>,
    control: Option<UnixStream>,
    ports: Vec<u32>,
    /// files of captures, by their number: a file is whole once its port has the next one
    files: usize,
}

fn program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin"].map(str::to_owned);
    let all = paths.split(':').map(str::to_owned).chain(more);
    all.map(|p| Path::new(&p).join(name)).find(|p| p.exists())
}

fn until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl VSwitch {
    /// A switch with a bridge that has these ports; none, and said so, where Open vSwitch is absent.
    pub fn start(ports: &[u32]) -> Option<Self> {
        let needed = [
            "ovsdb-tool",
            "ovsdb-server",
            "ovs-vswitchd",
            "ovs-vsctl",
            "ovs-ofctl",
        ];
        if let Some(lacks) = needed.iter().find(|n| program(n).is_none()) {
            eprintln!("skipped: there is no {lacks} (Debian: apt-get install openvswitch-switch)");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("ovs").tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let made = Command::new("ovsdb-tool")
            .arg("create")
            .args([at("conf.db"), PathBuf::from(SCHEMA)])
            .status();
        assert!(made.unwrap().success());
        let database = Command::new(program("ovsdb-server").unwrap())
            .arg(at("conf.db"))
            .arg(format!("--remote=punix:{}", at("db.sock").display()))
            .arg(format!("--unixctl={}", at("db.ctl").display()))
            .env("OVS_RUNDIR", folder.path())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut made = Self {
            database,
            switch: None,
            control: None,
            ports: ports.to_vec(),
            files: 0,
            folder,
        };
        until("no database", || made.at("db.sock").exists().then_some(()));
        made.vsctl(&["--no-wait", "init"]);
        made.begin();
        made.vsctl(&[
            "add-br",
            BRIDGE,
            "--",
            "set",
            "bridge",
            BRIDGE,
            "datapath_type=dummy",
            "fail-mode=secure",
            "protocols=OpenFlow10,OpenFlow13,OpenFlow15",
        ]);
        for port in ports {
            let name = format!("p{port}");
            let capture = format!("options:tx_pcap={}", made.capture(*port).display());
            let number = format!("ofport_request={port}");
            made.vsctl(&[
                "add-port",
                BRIDGE,
                &name,
                "--",
                "set",
                "Interface",
                &name,
                "type=dummy",
                "mtu_request=9100",
                &number,
                &capture,
            ]);
        }
        Some(made)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn capture(&self, port: u32) -> PathBuf {
        self.at(&format!("p{port}-{}.pcap", self.files))
    }

    /// Starts the switch itself: the bridge is in the database.
    pub fn begin(&mut self) {
        let log = std::fs::File::create(self.at("vswitchd.log")).unwrap();
        let child = Command::new(program("ovs-vswitchd").unwrap())
            .arg(format!("unix:{}", self.at("db.sock").display()))
            .args(["--enable-dummy=override", "--disable-system"])
            .arg(format!("--unixctl={}", self.at("vs.ctl").display()))
            .env("OVS_RUNDIR", self.folder.path())
            .stderr(log)
            .spawn()
            .unwrap();
        self.switch = Some(child);
        let path = self.at("vs.ctl");
        let stream = until("no switch", || UnixStream::connect(&path).ok());
        self.control = Some(stream);
    }

    /// Ends the switch, as if it had crashed.
    pub fn crash(&mut self) {
        self.control = None;
        if let Some(mut child) = self.switch.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_file(self.at("vs.ctl"));
    }

    pub fn vsctl(&self, words: &[&str]) {
        let done = Command::new("ovs-vsctl")
            .arg(format!("--db=unix:{}", self.at("db.sock").display()))
            .args(words)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "ovs-vsctl {words:?}: {said}");
    }

    /// The bridge, for an installation.
    pub fn bridge(&self, installation: u32) -> Bridge {
        let name = format!("unix:{}", self.at("br0.mgmt").display());
        until("no bridge", || self.at("br0.mgmt").exists().then_some(()));
        Bridge::new(&name, installation)
    }

    fn ask(&mut self, method: &str, words: &[String]) -> String {
        let stream = self.control.as_mut().unwrap();
        let ask = serde_json::json!({ "id": 0, "method": method, "params": words });
        stream.write_all(ask.to_string().as_bytes()).unwrap();
        let (mut text, mut part) = (Vec::new(), [0; 4096]);
        loop {
            let count = stream.read(&mut part).unwrap();
            assert!(
                count > 0,
                "the switch ended: {}",
                self.folder.path().display()
            );
            text.extend_from_slice(&part[..count]);
            if let Ok(answer) = serde_json::from_slice::<serde_json::Value>(&text) {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].as_str().unwrap_or("").to_owned();
            }
        }
    }

    /// Gives frames to a port, in order. A frame needs 14 bytes.
    pub fn receive(&mut self, port: u32, frames: &[&[u8]]) {
        for batch in frames.chunks(BATCH) {
            let mut words = vec![format!("p{port}")];
            words.extend(batch.iter().map(|frame| {
                let hex = frame.iter().map(|b| format!("{b:02x}"));
                hex.collect::<String>()
            }));
            let wanted = self.taken(port) + batch.len();
            self.ask("netdev-dummy/receive", &words);
            // Its queue is short, and several commands may come before it is looked at.
            until("frames are not taken", || {
                (self.taken(port) >= wanted).then_some(())
            });
        }
    }

    /// Frames that the switch took from a port's queue.
    fn taken(&mut self, port: u32) -> usize {
        let said = self.ask("dpctl/show", &["-s".to_owned()]);
        let name = format!(": p{port} (");
        let found = said.split_once(&name).and_then(|(_, rest)| {
            let (_, rest) = rest.split_once("RX packets:")?;
            rest.split(' ').next()?.parse().ok()
        });
        found.unwrap_or_else(|| panic!("no count of p{port} in {said}"))
    }

    /// Has each port write into a new file, and gives what is in the old ones.
    fn turn(&mut self) -> Vec<Vec<Vec<u8>>> {
        let old: Vec<PathBuf> = self.ports.iter().map(|p| self.capture(*p)).collect();
        self.files += 1;
        let mut words = Vec::new();
        for port in &self.ports {
            let option = format!("options:tx_pcap={}", self.capture(*port).display());
            words.extend(["--", "set", "Interface"].map(str::to_owned));
            words.extend([format!("p{port}"), option]);
        }
        let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        self.vsctl(&words);
        let read = |path: &PathBuf| {
            let mut frames = Vec::new();
            let Ok(mut reader) = Reader::open(path) else {
                return frames;
            };
            while let Some(record) = reader.next().unwrap() {
                frames.push(record.data.to_vec());
            }
            frames
        };
        old.iter().map(read).collect()
    }

    /// What left by each port; `wanted` frames are waited for, and less are given only if no more come.
    pub fn sent(&mut self, wanted: usize) -> Vec<(u32, Vec<Vec<u8>>)> {
        let mut all: Vec<(u32, Vec<Vec<u8>>)> =
            self.ports.iter().map(|p| (*p, Vec::new())).collect();
        let mut idle = 0;
        while idle < 10 {
            let mut new = 0;
            for (slot, frames) in all.iter_mut().zip(self.turn()) {
                new += frames.len();
                slot.1.extend(frames);
            }
            let count: usize = all.iter().map(|a| a.1.len()).sum();
            idle = if new == 0 { idle + 1 } else { 0 };
            if count >= wanted && new == 0 {
                break;
            }
        }
        all
    }
}

impl Drop for VSwitch {
    fn drop(&mut self) {
        self.crash();
        let _ = self.database.kill();
        let _ = self.database.wait();
    }
}
