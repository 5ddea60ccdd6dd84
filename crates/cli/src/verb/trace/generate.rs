//! `millrace trace gen`: traffic made to a specification.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Args;
use millrace_classify::{MOST_CLASSES, MOST_RULES, Rules};
use millrace_traffic::capture::{WriteError, Writer};
use millrace_traffic::generate::{Generator, Matched, Mix, Prefix, Shape, Size, Spec};

use crate::failure::{DONE, Failure};
use crate::progress::{Bar, SHOW};
use crate::quantity::{bytes, grouped};
use crate::screen;

/// Make a capture. The same options give the same bytes on every machine.
#[derive(Args)]
pub struct Generate {
    /// The capture to write; .pcapng keeps the two directions apart, - is standard output
    #[arg(short, long = "output", value_name = "FILE")]
    output: String,

    /// Packets to make [default: 100000]
    #[arg(long, value_name = "N")]
    packets: Option<u64>,

    /// Flows alive at once [default: 1000]
    #[arg(long, value_name = "N")]
    flows: Option<u64>,

    /// Exponent of Zipf's law over the flows' popularity; 0: all alike [default: 1.1]
    #[arg(long, value_name = "S")]
    zipf: Option<f64>,

    /// Popularity by the flow sizes of a network, in place of Zipf's law: university, backbone or hyperscale (data centers and an
    /// Internet backbone; approximations, docs/measurements/replication.md)
    #[arg(long, value_name = "SHAPE", conflicts_with = "zipf")]
    shape: Option<Shape>,

    /// Flows that end and are replaced by new ones, a minute of the capture's time [default: 0]
    #[arg(long, value_name = "FLOWS")]
    churn: Option<f64>,

    /// Packets a second [default: 100000]
    #[arg(long, value_name = "N")]
    rate: Option<f64>,

    /// Bytes of a frame: 64, 64-1514 or imix [default: imix]
    #[arg(long, value_name = "SIZE")]
    size: Option<Size>,

    /// Protocols with weights [default: tcp:8,udp:2]
    #[arg(long, value_name = "MIX")]
    mix: Option<Mix>,

    /// The share of flows that are IPv6, 0 to 1 [default: 0]
    #[arg(long, value_name = "SHARE")]
    ipv6: Option<f64>,

    /// Only what the LAN sends, no answers
    #[arg(long)]
    one_way: bool,

    /// Do not open and close TCP connections: all their packets carry data
    #[arg(long)]
    no_connections: bool,

    /// Every flow has a packet before any has a second
    #[arg(long)]
    every_flow: bool,

    /// Hosts that open flows [default: 10.0.0.0/16]
    #[arg(long, value_name = "CIDR")]
    lan: Option<Prefix>,

    /// Hosts that answer [default: 198.18.0.0/15]
    #[arg(long, value_name = "CIDR")]
    wan: Option<Prefix>,

    /// Hosts that open IPv6 flows [default: fd00::/64]
    #[arg(long, value_name = "CIDR")]
    lan6: Option<Prefix>,

    /// Hosts that answer over IPv6 [default: 2001:2::/48]
    #[arg(long, value_name = "CIDR")]
    wan6: Option<Prefix>,

    /// Packets that match rules (docs/maps.md) instead of flows: each rule that some packet can meet first is met alike often,
    /// and every class has packets; --packets, --rate, --size and --seed count
    #[arg(long = "match", value_name = "FILE", conflicts_with_all = ["flows", "zipf", "shape", "churn", "mix", "ipv6", "every_flow", "lan", "wan", "lan6", "wan6"])]
    matching: Option<PathBuf>,

    /// With --match: only packets of this class, 0 for those that no rule matches
    #[arg(long, value_name = "N", requires = "matching")]
    class: Option<u32>,

    /// What chance is drawn from [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Print one JSON document: the specification, and what was written
    #[arg(long)]
    pub json: bool,
}

impl Generate {
    /// Makes it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        if self.json && self.output == "-" {
            return Err(
                Failure::wrong("--json and packets cannot both go to standard output")
                    .help("write the packets to a file"),
            );
        }
        if let Some(file) = &self.matching {
            return self.matched(file);
        }
        let mut generator = Generator::new(self.spec())
            .map_err(|e| Failure::wrong(e).help("see millrace trace gen --help"))?;
        let failed = |e: WriteError| Failure::wrong(e).help("make room or choose another -o");
        let mut writer = Writer::create(&self.output, &["LAN", "WAN"]).map_err(failed)?;
        let (mut bar, mut made, all) = (Bar::new(), 0_u64, generator.spec().packets);
        while let Some(r) = generator.next() {
            made += 1;
            if made.is_multiple_of(SHOW) {
                let share = Some(made as f64 / all as f64);
                bar.show(made, share);
            }
            writer
                .write(r.time_ns, r.interface, r.original_length, r.data)
                .map_err(failed)?;
        }
        bar.end();
        let written = writer.finish().map_err(failed)?;
        let (packets, size) = (grouped(written.packets), bytes(written.bytes));
        let text = format!("written {}: {packets} packets, {size}", self.output);
        screen::report(self.json || self.output == "-", &text);
        if self.json {
            screen::document(&serde_json::json!({
                "output": self.output,
                "written": written,
                "spec": generator.spec(),
            }));
        }
        Ok(DONE)
    }

    /// Packets to rules.
    fn matched(&self, file: &Path) -> Result<u8, Failure> {
        let name = file.display();
        let wrong = |what: String| {
            Failure::wrong(format!("{name}: {what}"))
                .help("docs/maps.md says how rules are written")
        };
        let text = File::open(file).map_err(|e| wrong(e.to_string()))?;
        let read = Rules::read(
            BufReader::new(text),
            &Matched::key(),
            MOST_CLASSES,
            MOST_RULES,
        );
        let rules = read.map_err(|e| wrong(e.to_string()))?.rules;
        let (spec, all) = (self.spec(), rules.len());
        spec.validate()
            .map_err(|e| Failure::wrong(e).help("see millrace trace gen --help"))?;
        let size = match spec.size {
            Size::Fixed(size) => size,
            _ if self.size.is_none() => 64,
            _ => {
                return Err(Failure::wrong("--match makes frames of one size")
                    .help("give --size one number, as 64"));
            }
        };
        let gap = (1e9 / spec.rate).round() as u64;
        let mut packets = Matched::new(rules, spec.seed, usize::from(size), spec.start_ns, gap);
        if let Some(class) = self.class {
            packets.only(class);
        }
        let (met, classes) = packets.met();
        let (classes, said) = (
            classes.to_vec(),
            format!(
                "{} of {} rules are met",
                grouped(met as u64),
                grouped(all as u64)
            ),
        );
        if classes.is_empty() {
            return Err(wrong(match self.class {
                Some(class) => format!("no packet of IPv4 has the class {class}"),
                None => "no packet of IPv4 meets a rule, or none".into(),
            }));
        }
        let failed = |e: WriteError| Failure::wrong(e).help("make room or choose another -o");
        let mut writer = Writer::create(&self.output, &["LAN", "WAN"]).map_err(failed)?;
        for _ in 0..spec.packets {
            let Some(r) = packets.next() else { break };
            writer
                .write(r.time_ns, r.interface, r.original_length, r.data)
                .map_err(failed)?;
        }
        let written = writer.finish().map_err(failed)?;
        let text = format!(
            "written {}: {} packets, {}; {said}, {} classes",
            self.output,
            grouped(written.packets),
            bytes(written.bytes),
            classes.len()
        );
        screen::report(self.json || self.output == "-", &text);
        if self.json {
            screen::document(&serde_json::json!({
                "output": self.output,
                "written": written,
                "rules": all,
                "met": met,
                "classes": classes,
            }));
        }
        Ok(DONE)
    }

    fn spec(&self) -> Spec {
        let usual = Spec::default();
        Spec {
            seed: self.seed.unwrap_or(usual.seed),
            packets: self.packets.unwrap_or(usual.packets),
            flows: self.flows.unwrap_or(usual.flows),
            zipf: self.zipf.unwrap_or(usual.zipf),
            shape: self.shape,
            churn: self.churn.unwrap_or(usual.churn),
            rate: self.rate.unwrap_or(usual.rate),
            size: self.size.unwrap_or(usual.size),
            mix: self.mix.unwrap_or(usual.mix),
            ipv6: self.ipv6.unwrap_or(usual.ipv6),
            both: !self.one_way,
            connections: !self.no_connections,
            every_flow: self.every_flow,
            lan: self.lan.unwrap_or(usual.lan),
            wan: self.wan.unwrap_or(usual.wan),
            lan6: self.lan6.unwrap_or(usual.lan6),
            wan6: self.wan6.unwrap_or(usual.wan6),
            start_ns: usual.start_ns,
        }
    }
}
