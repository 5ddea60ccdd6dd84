//! Open vSwitch: rules installed in a bridge, counted and taken out again, by its own commands.
//!
//! The commands are `ovs-ofctl` and `ovs-vsctl`, which every Open vSwitch has and which speak the version of OpenFlow that it speaks.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::Error;
use crate::compile::Rules;

/// Rules of ours have this in the upper half of their cookies; the lower half is the installation's.
const OURS: u64 = 0x4d69_6c6c << 32;

/// A bridge.
#[derive(Clone, Debug)]
pub struct Bridge {
    /// its name, or a connection to it (`unix:/run/openvswitch/br0.mgmt`)
    pub name: String,
    /// what marks the rules of this installation
    pub cookie: u64,
    /// the folder of the switch's sockets, where it is not the system's
    pub folder: Option<String>,
}

/// What an installation has in the switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Installed {
    /// rows
    pub rows: usize,
    /// groups
    pub groups: usize,
}

impl Bridge {
    /// A bridge, and the number of an installation there.
    #[must_use]
    pub fn new(name: &str, installation: u32) -> Self {
        Self {
            name: name.to_owned(),
            cookie: OURS | u64::from(installation),
            folder: None,
        }
    }

    fn run(&self, version: &str, words: &[&str], input: &str) -> Result<String, Error> {
        let mut command = Command::new("ovs-ofctl");
        command.args(["-O", version, "-t", "20"]).args(words);
        if let Some(folder) = &self.folder {
            command.env("OVS_RUNDIR", folder);
        }
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = command.spawn().map_err(|e| {
            Error::new(
                format!("ovs-ofctl cannot be started: {e}"),
                "install Open vSwitch (Debian: apt-get install openvswitch-switch)",
            )
        });
        let mut child = started?;
        if let Some(mut pipe) = child.stdin.take() {
            // A command that ends early says why itself.
            let _ = pipe.write_all(input.as_bytes());
        }
        let done = child.wait_with_output().map_err(|e| {
            Error::new(
                format!("ovs-ofctl: {e}"),
                "look whether the machine has memory left",
            )
        })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if done.status.success() {
            return Ok(text(&done.stdout));
        }
        let said = text(&done.stderr);
        let first: Vec<&str> = said.lines().take(3).collect();
        Err(Error::new(
            format!("bridge {}: {}", self.name, first.join(" ")),
            "look whether the switch runs (ovs-vsctl show) and the bridge speaks OpenFlow 1.3 (ovs-vsctl set bridge BRIDGE protocols=OpenFlow13,OpenFlow15)",
        ))
    }

    /// Installs the rules. If the switch refuses one, all that was installed is taken out again.
    ///
    /// # Errors
    /// What the switch said.
    pub fn install(&self, rules: &Rules) -> Result<Installed, Error> {
        let done = self.add(rules);
        if done.is_err() {
            // The refusal is what is reported; a switch that is gone has none of the rules either.
            let _ = self.remove(rules);
        }
        done
    }

    fn add(&self, rules: &Rules) -> Result<Installed, Error> {
        for part in rules.parts() {
            let mut text = String::new();
            for line in part.text.lines().filter(|l| !l.starts_with('#')) {
                match part.command {
                    "add-flows" => {
                        let _ = writeln!(text, "cookie={:#x},{line}", self.cookie);
                    }
                    _ => {
                        let _ = writeln!(text, "{line}");
                    }
                }
            }
            self.run(part.version, &[part.command, &self.name, "-"], &text)?;
        }
        let have = self.have()?;
        let wanted = rules.rows().count();
        match have.rows == wanted {
            true => Ok(have),
            false => Err(Error::new(
                format!(
                    "bridge {}: {} of {wanted} rows are there",
                    self.name, have.rows
                ),
                "look whether another controller has the bridge (ovs-vsctl get-controller BRIDGE)",
            )),
        }
    }

    /// How many rules of this installation the switch has.
    ///
    /// # Errors
    /// The switch does not answer.
    pub fn have(&self) -> Result<Installed, Error> {
        let which = format!("cookie={:#x}/-1", self.cookie);
        let said = self.run("OpenFlow13", &["dump-aggregate", &self.name, &which], "")?;
        let rows = said
            .split("flow_count=")
            .nth(1)
            .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next())
            .and_then(|digits| digits.parse().ok());
        let Some(rows) = rows else {
            return Err(Error::new(
                format!("bridge {}: no number of rows in: {said}", self.name),
                "report this with the version of Open vSwitch",
            ));
        };
        let said = self.run("OpenFlow13", &["dump-groups", &self.name], "")?;
        let groups = said.lines().filter(|l| l.contains("group_id=")).count();
        Ok(Installed { rows, groups })
    }

    /// Takes the rules of this installation out.
    ///
    /// # Errors
    /// The switch does not answer.
    pub fn remove(&self, rules: &Rules) -> Result<(), Error> {
        let which = format!("cookie={:#x}/-1", self.cookie);
        self.run("OpenFlow13", &["del-flows", &self.name, &which], "")?;
        for group in &rules.groups {
            let which = format!("group_id={}", group.id);
            self.run("OpenFlow15", &["del-groups", &self.name, &which], "")?;
        }
        Ok(())
    }
}
