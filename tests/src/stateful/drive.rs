//! Runs of the `millrace` command, and what they left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::capture;
use super::traffic::Packet;
use crate::command;

/// A folder with a program and its packets.
pub struct Bench {
    folder: PathBuf,
    /// variables of the command's environment
    pub environment: Vec<(String, String)>,
    runs: std::cell::Cell<u32>,
}

/// What became of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fate {
    /// from 0, over all ports
    pub number: u64,
    /// the worker that had it
    pub worker: u64,
    /// its place in the order of packets, where workers share state
    pub commit: u64,
    /// the time that the program had for it, ns
    pub time: u64,
    /// `forwarded`, `dropped` …, the port or the reason behind it
    pub verdict: String,
    /// where it was written: the output of a port, or, behind the last one, of the host
    pub output: Option<usize>,
    /// its bytes there
    pub bytes: Option<Vec<u8>>,
}

/// What a run left.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// in ingress order
    pub fates: Vec<Fate>,
    /// object and bytes, in the order in which they were written
    pub records: Vec<(String, String)>,
    /// what was pinned, by object: key and value as text, sorted
    pub state: BTreeMap<String, Vec<(String, String)>>,
    /// the account
    pub account: Value,
    /// what was said on standard error
    pub said: String,
}

/// How a run ended.
#[derive(Debug)]
pub enum Ended {
    /// it ran
    Ran(Box<Ran>),
    /// exit status 1: the answer is no
    Refused(String),
}

/// The ports of every program.
const PORTS: usize = 2;

impl Bench {
    /// Makes the folder, and writes the program.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(folder: &Path, source: &str) -> Result<Self, String> {
        std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
        std::fs::write(folder.join("function.c"), source).map_err(|e| e.to_string())?;
        Ok(Self {
            folder: folder.to_owned(),
            environment: Vec::new(),
            runs: 0.into(),
        })
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = command::millrace();
        command.arg(verb).arg(self.folder.join("function.c"));
        command.env("MILLRACE_CACHE", self.folder.join("cache"));
        command.envs(self.environment.iter().map(|(k, v)| (k, v)));
        command
    }

    /// The plan for this many cores and a NIC.
    ///
    /// # Errors
    /// The program cannot be compiled, or the command failed.
    pub fn plan(&self, cores: usize, nic: &str) -> Result<Result<Value, String>, String> {
        let mut command = self.command("plan");
        command.args(["--json", "--nic", nic, "--cores", &cores.to_string()]);
        let output = command::run(&mut command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => serde_json::from_slice(&output.stdout)
                .map(Ok)
                .map_err(|e| e.to_string()),
            Some(1) => Ok(Err(said)),
            other => Err(format!("plan ended with {other:?}:\n{}", wrong(&said))),
        }
    }

    /// What `millrace verify` finds on this many cores, or why it does not run the program.
    ///
    /// # Errors
    /// The command failed otherwise.
    pub fn verify(
        &self,
        packets: &[Packet],
        cores: usize,
        words: &[&str],
    ) -> Result<Result<Vec<String>, String>, String> {
        let report = self.verified(packets, cores, words)?;
        Ok(report.map(|report| match report["equal"].as_bool() {
            Some(true) => Vec::new(),
            _ => vec![report.to_string()],
        }))
    }

    /// The report of that, or why it does not run the program.
    ///
    /// # Errors
    /// The command failed otherwise.
    pub fn verified(
        &self,
        packets: &[Packet],
        cores: usize,
        words: &[&str],
    ) -> Result<Result<Value, String>, String> {
        let inputs = self.inputs(packets, self.next())?;
        let mut command = self.command("verify");
        command
            .args(["--json", "--in", &inputs])
            .args(["--cores", &cores.to_string()])
            .args(words);
        let output = command::run(&mut command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        match output.status.code() {
            Some(0 | 1) => Ok(match report["error"].as_str() {
                Some(why) => Err(format!("error: {why}")),
                None => Ok(report),
            }),
            other => Err(format!("verify ended with {other:?}:\n{}", wrong(&said))),
        }
    }

    /// What `millrace explain` says of a packet: its verdict, or what is wrong with that.
    ///
    /// # Errors
    /// The command failed.
    pub fn explain(
        &self,
        packets: &[Packet],
        number: u64,
    ) -> Result<Result<Value, String>, String> {
        let inputs = self.inputs(packets, self.next())?;
        let mut command = self.command("explain");
        command
            .args(["--json", "--in", &inputs])
            .args(["--packet", &number.to_string()]);
        let output = command::run(&mut command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => (serde_json::from_slice(&output.stdout))
                .map(Ok)
                .map_err(|e| e.to_string()),
            Some(1) => Ok(Err(wrong(&said))),
            other => Err(format!("explain ended with {other:?}:\n{}", wrong(&said))),
        }
    }

    /// The number of the next run.
    fn next(&self) -> u32 {
        let number = self.runs.get();
        self.runs.set(number + 1);
        number
    }

    /// The packets as captures, one a port, in the words of `--in`.
    fn inputs(&self, packets: &[Packet], number: u32) -> Result<String, String> {
        let mut inputs = Vec::new();
        for port in 0..PORTS {
            let path = self.folder.join(format!("{number}-in{port}.pcap"));
            let mine = packets.iter().filter(|p| p.port as usize == port);
            capture::write(&path, mine.map(|p| (p.stamp, p.bytes.as_slice())))?;
            inputs.push(path.display().to_string());
        }
        Ok(inputs.join(","))
    }

    /// Runs these packets on this many cores.
    ///
    /// # Errors
    /// The command failed, or what it left cannot be read.
    pub fn run(
        &self,
        packets: &[Packet],
        cores: usize,
        words: &[&str],
        pin: bool,
    ) -> Result<Ended, String> {
        let number = self.next();
        let at = |name: &str| self.folder.join(format!("{number}-{name}"));
        let inputs = self.inputs(packets, number)?;
        let outputs: Vec<PathBuf> = (0..=PORTS).map(|p| at(&format!("out{p}.pcap"))).collect();
        let (fates, records, pins) = (at("fates"), at("records"), at("pins"));
        let mut command = self.command("run");
        command
            .args(["--json", "--control", "none", "--in", &inputs])
            .args(["--cores", &cores.to_string()])
            .args(words);
        let text = |p: &PathBuf| p.display().to_string();
        let (ports, host) = outputs.split_at(PORTS);
        let ports: Vec<String> = ports.iter().map(text).collect();
        command.args(["--out", &ports.join(",")]);
        command.arg("--pass").args(host);
        command.arg("--fates").arg(&fates);
        command.arg("--records").arg(&records);
        if pin {
            command.arg("--pin-all").arg("--pin").arg(&pins);
        }
        let output = command::run(&mut command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => {}
            Some(1) => return Ok(Ended::Refused(wrong(&said))),
            other => return Err(format!("run ended with {other:?}:\n{}", wrong(&said))),
        }
        let account = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
        let mut ran = Ran {
            fates: read_fates(&fates)?,
            records: read_records(&records)?,
            state: BTreeMap::new(),
            account,
            said,
        };
        attach(&mut ran.fates, &outputs)?;
        if pin {
            ran.state = read_pins(&pins)?;
        }
        Ok(Ended::Ran(Box::new(ran)))
    }
}

/// What was said of errors.
fn wrong(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|l| l.contains("error")).collect();
    if lines.is_empty() {
        return said.to_owned();
    }
    lines.join("\n")
}

fn lines(path: &Path) -> Result<Vec<Value>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let parsed = text.lines().map(serde_json::from_str);
    parsed
        .collect::<Result<_, _>>()
        .map_err(|e: serde_json::Error| format!("{}: {e}", path.display()))
}

fn read_fates(path: &Path) -> Result<Vec<Fate>, String> {
    let number = |v: &Value, field: &str| v[field].as_u64().ok_or_else(|| v.to_string());
    let mut out = Vec::new();
    for line in lines(path)? {
        let fate = line["fate"].as_str().unwrap_or_default();
        let beside = [&line["to"], &line["reason"]];
        let beside: Vec<String> = beside
            .iter()
            .filter(|v| !v.is_null())
            .map(ToString::to_string)
            .collect();
        out.push(Fate {
            number: number(&line, "number")?,
            worker: number(&line, "worker")?,
            commit: number(&line, "commit")?,
            time: number(&line, "time")?,
            output: match fate {
                "forwarded" => line["to"].as_u64().map(|p| p as usize),
                "passed" => Some(PORTS),
                _ => None,
            }
            .filter(|p| *p <= PORTS),
            verdict: format!("{fate} {}", beside.join(" ")).trim().to_owned(),
            bytes: None,
        });
    }
    for (i, fate) in out.iter().enumerate() {
        if fate.number != i as u64 {
            return Err(format!(
                "packet {} stands at place {i} of the fates",
                fate.number
            ));
        }
    }
    Ok(out)
}

/// Gives each packet the bytes with which it left: what an output holds are the packets that went there, in order.
fn attach(fates: &mut [Fate], outputs: &[PathBuf]) -> Result<(), String> {
    for (port, path) in outputs.iter().enumerate() {
        let mut there = if path.exists() {
            capture::read(path)?.into_iter()
        } else {
            Vec::new().into_iter()
        };
        for fate in fates.iter_mut().filter(|f| f.output == Some(port)) {
            let Some((_, bytes)) = there.next() else {
                return Err(format!("packet {} is not in output {port}", fate.number));
            };
            fate.bytes = Some(bytes);
        }
        if there.next().is_some() {
            return Err(format!("output {port} has more packets than went there"));
        }
    }
    Ok(())
}

fn read_records(path: &Path) -> Result<Vec<(String, String)>, String> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let all = lines(path)?;
    Ok(all
        .iter()
        .map(|v| (text(&v["object"]), text(&v["bytes"])))
        .collect())
}

fn read_pins(folder: &Path) -> Result<BTreeMap<String, Vec<(String, String)>>, String> {
    let mut out = BTreeMap::new();
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
        let value: Value = serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))?;
        let mut pairs: Vec<(String, String)> = (value.as_array().into_iter().flatten())
            .map(|e| (e["key"].to_string(), e["value"].to_string()))
            .collect();
        pairs.sort();
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        out.insert(name.unwrap_or_default(), pairs);
    }
    Ok(out)
}
