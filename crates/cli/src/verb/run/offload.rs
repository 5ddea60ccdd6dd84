//! `run --offload`: rules of a chain in a switch in front of it.
//!
//! The rules are there before the first packet is served, and a thread looks at them twice a second: a switch that has lost some,
//! because it was restarted or somebody took them out, gets all of them again. They go when the run ends, however it ends short of a signal
//! that cannot be caught.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use millrace_chain::{Description, What};
use millrace_switch::ovs::Bridge;
use millrace_switch::{Assumptions, Request, Rules, Server, compile, switch};
use millrace_synth::Synthesis;

use super::chain;
use crate::failure::Failure;
use crate::log;

/// How long the switch is left alone between looks.
const BETWEEN: Duration = Duration::from_millis(500);

/// What the option says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    bridge: String,
    /// device, the bridge's port, and its port to this run
    devices: Vec<(String, u32, u32)>,
    assume: Assumptions,
}

impl FromStr for Word {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = "as in ovs:br0?inside=1:11&outside=2:12";
        let rest = text
            .strip_prefix("ovs:")
            .ok_or_else(|| format!("a bridge of Open vSwitch, {wanted}"))?;
        let (bridge, options) = rest.split_once('?').unwrap_or((rest, ""));
        if bridge.is_empty() || bridge.starts_with('-') {
            return Err(format!("it names no bridge, {wanted}"));
        }
        let mut word = Self {
            bridge: bridge.to_owned(),
            devices: Vec::new(),
            assume: Assumptions::default(),
        };
        for option in options.split('&').filter(|o| !o.is_empty()) {
            let (name, value) = option
                .split_once('=')
                .ok_or_else(|| format!("'{option}' has no value, {wanted}"))?;
            if name == "assume" {
                for known in value.split('+') {
                    match known {
                        "headers" => word.assume.headers = true,
                        "options" => word.assume.options = true,
                        "padding" => word.assume.padding = true,
                        "mtu" => word.assume.mtu = true,
                        other => {
                            return Err(format!(
                                "'{other}' cannot be assumed: headers, options, padding, mtu"
                            ));
                        }
                    }
                }
                continue;
            }
            let ports = value.split_once(':');
            let ports = ports.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
            let (outer, inner) =
                ports.ok_or_else(|| format!("'{value}' is no pair of ports, {wanted}"))?;
            word.devices.push((name.to_owned(), outer, inner));
        }
        Ok(word)
    }
}

/// Rules that are installed.
pub struct Offloaded {
    bridge: Bridge,
    rules: Arc<Rules>,
    ended: Arc<AtomicBool>,
    watch: Option<JoinHandle<u32>>,
}

impl Offloaded {
    /// Installs the rules of a chain.
    ///
    /// # Errors
    /// It is no chain of Click, the option does not fit it, the switch refuses.
    pub fn start(word: &Word, chain: &Description) -> Result<Self, Failure> {
        let function = match chain.elements.as_slice() {
            [only] => match &only.what {
                What::Function(function) => Some(function),
                What::Guest(_) => None,
            },
            _ => None,
        };
        let path = function.map(|f| chain::path(chain, &f.word));
        let named = path.as_deref().and_then(millrace::click::named);
        let Some((path, options)) = named else {
            return Err(Failure::wrong(
                "--offload is for one Click configuration: its classes become the switch's rules",
            )
            .help("name a file FILE.click, or leave --offload out"));
        };
        let of = millrace::click::read(Path::new(path), false, options)?;
        let request = request(word, &of)?;
        let rules =
            compile(&of, &request).map_err(|e| super::super::chain::refused(&of.name, &e))?;
        let bridge = Bridge::new(&word.bridge, std::process::id());
        let installed = bridge
            .install(&rules)
            .map_err(|e| Failure::wrong(format!("--offload: {}", e.what)).help(&e.help))?;
        log::note(format!(
            "{}: {} rows and {} groups installed, cookie {:#x}",
            word.bridge, installed.rows, installed.groups, bridge.cookie
        ));
        let rules = Arc::new(rules);
        let ended = Arc::new(AtomicBool::new(false));
        let watch = {
            let (bridge, rules, ended) = (bridge.clone(), rules.clone(), ended.clone());
            std::thread::Builder::new()
                .name("offload".into())
                .spawn(move || watched(&bridge, &rules, &ended))
                .map_err(|e| Failure::wrong(format!("--offload: no thread can be started: {e}")))
        };
        let mut made = Self {
            bridge,
            rules,
            ended,
            watch: None,
        };
        made.watch = Some(watch?);
        Ok(made)
    }

    fn stop(&mut self) -> Result<(), millrace_switch::Error> {
        let Some(watch) = self.watch.take() else {
            return Ok(());
        };
        self.ended.store(true, Ordering::Release);
        watch.thread().unpark();
        let again = watch.join().unwrap_or(0);
        let done = self.bridge.remove(&self.rules);
        if again > 0 {
            log::note(format!(
                "{}: rules were installed again {again} times",
                self.bridge.name
            ));
        }
        done
    }

    /// Takes the rules out.
    ///
    /// # Errors
    /// The switch does not answer.
    pub fn end(mut self) -> Result<(), Failure> {
        self.stop()
            .map_err(|e| Failure::wrong(format!("--offload: {}", e.what)).help(&e.help))
    }
}

impl Drop for Offloaded {
    /// A run that failed has said why.
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// Looks at the rules until the run ends; how often they were installed again.
fn watched(bridge: &Bridge, rules: &Rules, ended: &AtomicBool) -> u32 {
    let wanted = rules.rows().count();
    let (mut again, mut silent) = (0, false);
    loop {
        std::thread::park_timeout(BETWEEN);
        if ended.load(Ordering::Acquire) {
            return again;
        }
        match bridge.have() {
            Ok(have) if have.rows == wanted && have.groups >= rules.groups.len() => silent = false,
            Ok(have) => {
                log::note(format!(
                    "{}: {} of {wanted} rows are left: they are installed again",
                    bridge.name, have.rows
                ));
                let done = bridge.remove(rules).and_then(|()| bridge.install(rules));
                match done {
                    Ok(_) => again += 1,
                    Err(error) => log::error(&error.what, &error.help),
                }
            }
            // A switch that is being restarted: it is said once, and asked again.
            Err(error) if !silent => {
                silent = true;
                log::error(&error.what, &error.help);
            }
            Err(_) => {}
        }
    }
}

fn request(word: &Word, of: &Synthesis) -> Result<Request, Failure> {
    let devices = of.ports.join(", ");
    if let Some((name, ..)) = word.devices.iter().find(|d| !of.ports.contains(&d.0)) {
        return Err(
            Failure::wrong(format!("--offload: the chain has no device '{name}'"))
                .help(format!("its devices are {devices}")),
        );
    }
    let (mut ports, mut inner) = (Vec::new(), Vec::new());
    for name in &of.ports {
        let Some(device) = word.devices.iter().find(|d| d.0 == *name) else {
            return Err(Failure::wrong(format!(
                "--offload: no ports are named for the device {name}"
            ))
            .help(format!(
                "name the bridge's port and the one that leads here: {name}=1:11"
            )));
        };
        ports.push(device.1);
        inner.push(device.2);
    }
    Ok(Request {
        switch: switch::Switch::open_vswitch(),
        ports,
        servers: vec![Server {
            weight: 1,
            ports: inner,
        }],
        assume: word.assume,
    })
}
