//! A running `millrace run` in a namespace.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::net::{Net, until};
use crate::common::millrace;

/// The command, running.
pub struct Instance {
    child: Child,
    said: Arc<Mutex<String>>,
    reader: Option<std::thread::JoinHandle<()>>,
    output: Option<std::thread::JoinHandle<Vec<u8>>>,
}

/// `millrace run` with these arguments in a namespace, not yet started.
pub fn command(net: &Net, end: &str, args: &[&str]) -> Command {
    let plain = millrace();
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", &net.name(end)])
        .arg(plain.get_program())
        .arg("run")
        .args(args)
        .current_dir(crate::common::root());
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

impl Instance {
    /// Starts it and waits until it serves its ports.
    pub fn start(net: &Net, end: &str, args: &[&str]) -> Self {
        let mut instance = Self::begin(command(net, end, args));
        let said = instance.said.clone();
        let child = &mut instance.child;
        until("the function serves its ports", || {
            let text = said.lock().unwrap().clone();
            assert!(child.try_wait().unwrap().is_none(), "it ended: {text}");
            text.contains("serving ")
        });
        instance
    }

    fn begin(mut command: Command) -> Self {
        let mut child = command
            .arg("--json")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let (mut errors, mut stdout) = (child.stderr.take().unwrap(), child.stdout.take().unwrap());
        let to = said.clone();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = errors.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..n]).into_owned();
                to.lock().unwrap().push_str(&text);
            }
        });
        let output = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stdout.read_to_end(&mut bytes);
            bytes
        });
        Self {
            child,
            said,
            reader: Some(reader),
            output: Some(output),
        }
    }

    /// What it said on standard error.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Sends it a signal by name.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = super::net::run("kill", &["-s", name, &pid]).unwrap();
        assert!(sent.status.success());
    }

    /// Asks it to drain, and gives its account, which must balance, and its exit status.
    pub fn stop(self) -> (Value, i32) {
        self.signal("INT");
        self.ended()
    }

    /// Waits for its end.
    pub fn ended(mut self) -> (Value, i32) {
        until("it ends", || self.child.try_wait().unwrap().is_some());
        let status = self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
        let bytes = self.output.take().unwrap().join().unwrap();
        let text = self.said();
        assert!(!text.contains("panicked"), "{text}");
        let account: Value = serde_json::from_slice(&bytes)
            .unwrap_or_else(|e| panic!("{e}: {}\n{text}", String::from_utf8_lossy(&bytes)));
        if account.get("read").is_some() {
            balances(&account);
        }
        (account, status.code().unwrap_or(-1))
    }

    /// Waits for its end, whatever it says.
    pub fn killed(mut self) {
        self.signal("KILL");
        let _ = self.child.wait();
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A count of an account.
pub fn count(account: &Value, name: &str) -> u64 {
    account[name].as_u64().unwrap()
}

/// Each packet read has exactly one fate, and each one dropped or aborted a reason.
pub fn balances(account: &Value) {
    let of = |name| count(account, name);
    let fates = of("forwarded") + of("dropped") + of("passed") + of("consumed") + of("aborted");
    assert_eq!(of("read"), fates, "{account:#}");
    let reasons = account["reasons"].as_object().unwrap().values();
    let reasons: u64 = reasons.map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(reasons, of("dropped") + of("aborted"), "{account:#}");
    let ports = account["ports"].as_array().unwrap();
    let sent: u64 = ports.iter().map(|p| p["sent"].as_u64().unwrap()).sum();
    assert_eq!(sent, of("forwarded") + of("created"), "{account:#}");
}
