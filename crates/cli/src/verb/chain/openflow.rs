//! `millrace chain --target openflow`: rules of a switch in front of servers that run the chain.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use millrace_switch::run::{Share, Switch};
use millrace_switch::{Assumptions, Request, Rules, Server, compile, switch};
use millrace_synth::Synthesis;
use serde_json::json;

use super::Chain;
use crate::failure::{DONE, Failure};
use crate::screen;

/// A switch that is known.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Open vSwitch, with its extensions
    Ovs,
    /// OpenFlow 1.3 and no more
    Standard,
}

/// What is known of packets, and cannot be seen in a switch.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Known {
    /// IP headers are right: version, lengths, sum
    Headers,
    /// IP headers have no options
    Options,
    /// padding of frames may stay
    Padding,
    /// frames have at most 1,514 bytes
    Mtu,
}

/// Options of rules.
#[derive(Args)]
pub struct Options {
    /// With --target openflow: the switch; ovs matches some bits of ports and the time to live, standard what OpenFlow 1.3 names
    #[arg(long, value_enum, default_value = "ovs", requires = "target")]
    switch: Kind,

    /// The switch's port for each device of the chain; 1, 2, … unless said otherwise
    #[arg(long, value_name = "PORT", value_delimiter = ',', requires = "target")]
    switch_ports: Vec<u32>,

    /// A server: the switch's port to it for each device, and its weight among several, as in 11,12*3; one server behind the
    /// chain's own ports unless said otherwise
    #[arg(long, value_name = "PORT,…[*WEIGHT]", requires = "target")]
    server: Vec<String>,

    /// What is known of packets that come to the switch, and cannot be seen there
    #[arg(long, value_enum, value_delimiter = ',', requires = "target")]
    assume: Vec<Known>,

    /// Rows that a table of the switch holds; rules that need more are refused
    #[arg(long, value_name = "N", requires = "target")]
    table_rows: Option<usize>,

    /// Write the rules into this folder, a file for each call of ovs-ofctl, and a script that installs them
    #[arg(long, short, value_name = "FOLDER", requires = "target")]
    output: Option<PathBuf>,
}

fn server(text: &str) -> Result<Server, Failure> {
    let (ports, weight) = text.split_once('*').unwrap_or((text, "1"));
    let ports: Result<Vec<u32>, _> = ports.split(',').map(|p| p.trim().parse()).collect();
    match (ports, weight.trim().parse()) {
        (Ok(ports), Ok(weight)) => Ok(Server { weight, ports }),
        _ => Err(Failure::wrong(format!("'{text}' is no server"))
            .help("write the switch's ports to it, and its weight: 11,12*3")),
    }
}

/// A refusal of the switch: the answer is no.
pub fn refused(name: &str, error: &millrace_switch::Error) -> Failure {
    Failure::no(format!("{name}: {}", error.what)).help(&error.help)
}

impl Options {
    /// The request for a chain.
    pub fn request(&self, of: &Synthesis) -> Result<Request, Failure> {
        let devices = of.ports.len() as u32;
        let mut kind = match self.switch {
            Kind::Ovs => switch::Switch::open_vswitch(),
            Kind::Standard => switch::Switch::standard(),
        };
        if let Some(rows) = self.table_rows {
            kind.rows = rows;
        }
        let known = |what| self.assume.contains(&what);
        let servers: Result<Vec<_>, _> = self.server.iter().map(|s| server(s)).collect();
        let mut servers = servers?;
        if servers.is_empty() {
            servers.push(Server {
                weight: 1,
                ports: (devices + 1..=2 * devices).collect(),
            });
        }
        let ports = match self.switch_ports.is_empty() {
            true => (1..=devices).collect(),
            false => self.switch_ports.clone(),
        };
        Ok(Request {
            switch: kind,
            ports,
            servers,
            assume: Assumptions {
                headers: known(Known::Headers),
                options: known(Known::Options),
                padding: known(Known::Padding),
                mtu: known(Known::Mtu),
            },
        })
    }
}

impl Chain {
    pub(super) fn openflow(&self, of: &Synthesis) -> Result<u8, Failure> {
        let request = self.openflow.request(of)?;
        let rules = compile(of, &request).map_err(|e| refused(&of.name, &e))?;
        let share = match self.input.is_empty() {
            true => None,
            false => Some(self.share(of, &request, &rules)?),
        };
        if let Some(folder) = &self.openflow.output {
            write(folder, &rules)?;
        }
        if self.json {
            let mut document = rules.json();
            if let Some(map) = document.as_object_mut() {
                map.insert("name".into(), json!(of.name));
                if let Some(share) = share {
                    map.insert("traffic".into(), json!(share));
                    map.insert("servers_share".into(), json!(share.of_servers()));
                }
            }
            screen::document(&document);
            return Ok(DONE);
        }
        let mut text = described(of, &rules, share);
        if self.openflow.output.is_none() {
            for part in rules.parts() {
                text.push_str(&format!(
                    "# ovs-ofctl -O {} {} BRIDGE FILE\n{}",
                    part.version, part.command, part.text
                ));
            }
        }
        screen::out(text.trim_end());
        Ok(DONE)
    }

    fn share(&self, of: &Synthesis, request: &Request, rules: &Rules) -> Result<Share, Failure> {
        let switch = Switch::new(rules);
        let mut share = Share::default();
        for packet in self.given(of)? {
            let port = request.ports.get(usize::from(packet.port)).copied();
            let fate = switch.pass(&packet.bytes, port.unwrap_or(0));
            share.count(rules, &fate);
        }
        Ok(share)
    }
}

/// Counts, as comments.
fn described(of: &Synthesis, rules: &Rules, share: Option<Share>) -> String {
    let rows = rules.rows().count();
    let mut text = format!("# {}: {rows} rows, OpenFlow 1.3\n", of.name);
    for table in &rules.tables {
        text.push_str(&format!(
            "# table {}: {}, {} rows\n",
            table.number,
            table.name,
            table.rows.len()
        ));
    }
    for (n, [source, destination]) in rules.bits.iter().enumerate() {
        if source + destination > 0 {
            text.push_str(&format!(
                "# stage {}: {source} bits of metadata for ranges of source ports, {destination} for destination ports\n",
                n + 1
            ));
        }
    }
    if !rules.extensions.is_empty() {
        let all = rules.extensions.join(", ");
        text.push_str(&format!("# extensions of Open vSwitch: {all}\n"));
    }
    for (reason, actions) in &rules.reasons {
        let kinds = if *actions == 1 { "class" } else { "classes" };
        text.push_str(&format!("# to servers: {reason} ({actions} {kinds})\n"));
    }
    if !rules.unseen.is_empty() {
        let all = rules.unseen.join(", ");
        text.push_str(&format!("# to servers: a switch does not see {all}\n"));
    }
    if let Some(share) = share {
        text.push_str(&format!(
            "# of {} packets the switch dropped {} and forwarded {}; servers see {} ({:.1} %)\n",
            share.packets,
            share.dropped,
            share.forwarded,
            share.to_servers,
            100.0 * share.of_servers()
        ));
    }
    text
}

/// Files for `ovs-ofctl`, and a script that calls it.
fn write(folder: &Path, rules: &Rules) -> Result<(), Failure> {
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|e| {
            Failure::wrong(format!("{}: cannot be written: {e}", path.display()))
                .help("choose another folder")
        })
    };
    std::fs::create_dir_all(folder).map_err(|e| {
        Failure::wrong(format!("{}: cannot be made: {e}", folder.display()))
            .help("choose another folder")
    })?;
    let mut script =
        "#!/bin/sh\n# usage: install.sh BRIDGE\nset -eu\ncd \"$(dirname \"$0\")\"\n".to_owned();
    for part in rules.parts() {
        put(part.name, &part.text)?;
        script.push_str(&format!(
            "ovs-ofctl -O {} {} \"$1\" {}\n",
            part.version, part.command, part.name
        ));
    }
    put("install.sh", &script)
}
