//! Servers of etcd for one test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use millrace_cluster::etcd::{Endpoint, Etcd, Tls};
use tempfile::TempDir;

/// Where Debian has it.
fn binary() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join("etcd"))
        .find(|file| file.is_file())
}

/// As many servers as asked for, one cluster of etcd.
pub struct Servers {
    binary: PathBuf,
    folder: TempDir,
    /// ports for clients and for each other
    ports: Vec<(u16, u16)>,
    running: Vec<Option<Child>>,
    /// bytes that a server stores; none: as many as it does by itself
    quota: Option<u64>,
    pub tls: Option<Tls>,
}

fn free_ports(count: usize) -> Vec<u16> {
    let sockets: Vec<_> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"))
        .collect();
    sockets
        .iter()
        .map(|s| s.local_addr().expect("bound").port())
        .collect()
}

/// An authority, and a certificate of 127.0.0.1 for servers and clients.
fn certify(folder: &Path) -> Option<Tls> {
    let script = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority &&
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout own.key -out own.csr -subj /CN=node &&
        printf 'subjectAltName=IP:127.0.0.1\\nextendedKeyUsage=serverAuth,clientAuth\\nbasicConstraints=CA:FALSE\\n' > ext &&
        openssl x509 -req -in own.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out own.pem";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    made.ok().filter(|s| s.success())?;
    Some(Tls {
        authority: Some(folder.join("ca.pem")),
        own: Some((folder.join("own.pem"), folder.join("own.key"))),
    })
}

impl Servers {
    /// None, with the reason printed, where there is no etcd.
    pub fn start(count: usize, secure: bool) -> Option<Self> {
        let Some(binary) = binary() else {
            println!("skipped: there is no etcd here (Debian: etcd-server)");
            return None;
        };
        let folder = TempDir::new().expect("a folder");
        let tls = if secure {
            let Some(tls) = certify(folder.path()) else {
                println!("skipped: openssl makes no certificates here");
                return None;
            };
            Some(tls)
        } else {
            None
        };
        let ports = free_ports(2 * count);
        let mut servers = Self {
            binary,
            folder,
            ports: ports.chunks(2).map(|p| (p[0], p[1])).collect(),
            running: (0..count).map(|_| None).collect(),
            quota: None,
            tls,
        };
        (0..count).for_each(|at| servers.run(at));
        servers.wait();
        Some(servers)
    }

    pub fn run(&mut self, at: usize) {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let (client, peer) = self.ports[at];
        let all: Vec<String> = (0..)
            .zip(&self.ports)
            .map(|(n, (_, peer))| format!("e{n}=http://127.0.0.1:{peer}"))
            .collect();
        let urls = (
            format!("{scheme}://127.0.0.1:{client}"),
            format!("http://127.0.0.1:{peer}"),
        );
        let mut command = Command::new(&self.binary);
        command
            .args(["--name", &format!("e{at}"), "--data-dir"])
            .arg(self.folder.path().join(format!("e{at}")))
            .args(["--listen-client-urls", &urls.0])
            .args(["--advertise-client-urls", &urls.0])
            .args(["--listen-peer-urls", &urls.1])
            .args(["--initial-advertise-peer-urls", &urls.1])
            .args(["--initial-cluster", &all.join(",")])
            .args(["--unsafe-no-fsync"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(quota) = self.quota {
            command.args(["--quota-backend-bytes", &quota.to_string()]);
        }
        if let Some(tls) = &self.tls
            && let (Some(authority), Some((own, key))) = (&tls.authority, &tls.own)
        {
            command.arg("--client-cert-auth");
            command.arg("--trusted-ca-file").arg(authority);
            command.arg("--cert-file").arg(own);
            command.arg("--key-file").arg(key);
        }
        self.running[at] = Some(command.spawn().expect("etcd starts"));
    }

    pub fn kill(&mut self, at: usize) {
        if let Some(mut child) = self.running[at].take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn endpoint(&self, name: &str) -> Endpoint {
        Endpoint {
            hosts: self
                .ports
                .iter()
                .map(|(client, _)| format!("127.0.0.1:{client}"))
                .collect(),
            name: name.to_owned(),
            secure: self.tls.is_some(),
        }
    }

    pub fn etcd(&self, name: &str) -> Etcd {
        let tls = self.tls.clone().unwrap_or_default();
        let timeout = Duration::from_millis(500);
        Etcd::new(&self.endpoint(name), &tls, timeout).expect("files")
    }

    /// Until requests are answered.
    pub fn wait(&self) {
        let etcd = self.etcd("wait");
        until("etcd answers", || etcd.view().is_ok());
    }

    /// Writes to a key below a cluster's name, as another program would.
    pub fn put(&self, name: &str, key: &str, value: &[u8]) {
        let base64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
        let key = base64(format!("/millrace/{name}/{key}").as_bytes());
        let body = serde_json::json!({"key": key, "value": base64(value)});
        let url = format!("http://127.0.0.1:{}/v3/kv/put", self.ports[0].0);
        ureq::post(url).send(body.to_string()).expect("it is put");
    }

    /// Starts the only server again with room for so many bytes, and fills it.
    pub fn fill(&mut self, quota: u64) {
        self.kill(0);
        self.quota = Some(quota);
        self.run(0);
        self.wait();
        let base64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
        let url = format!("http://127.0.0.1:{}/v3/kv/put", self.ports[0].0);
        let body = serde_json::json!({"key": base64(b"/fill"), "value": base64(&[7; 8192])});
        let full = |url: &str| ureq::post(url).send(body.to_string()).is_err();
        until("it has no room", || full(&url));
    }

    /// Removes a key below a cluster's name.
    pub fn remove(&self, name: &str, key: &str) {
        let key =
            base64::engine::general_purpose::STANDARD.encode(format!("/millrace/{name}/{key}"));
        let body = serde_json::json!({ "key": key });
        let url = format!("http://127.0.0.1:{}/v3/kv/deleterange", self.ports[0].0);
        ureq::post(url)
            .send(body.to_string())
            .expect("it is removed");
    }

    /// Which server leads the others.
    pub fn leader(&self) -> usize {
        let status = |at: usize| {
            let url = format!(
                "http://127.0.0.1:{}/v3/maintenance/status",
                self.ports[at].0
            );
            let text = ureq::post(url).send("{}").ok()?.body_mut().read_to_string();
            let value: serde_json::Value = serde_json::from_str(&text.ok()?).ok()?;
            Some(value["leader"] == value["header"]["member_id"])
        };
        let all = 0..self.ports.len();
        all.into_iter()
            .find(|at| status(*at) == Some(true))
            .expect("a leader")
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        (0..self.running.len()).for_each(|at| self.kill(at));
    }
}

/// Waits for something that comes about; how long it takes is not the question.
pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(90);
    while !is() {
        assert!(Instant::now() < end, "it never came about that {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
