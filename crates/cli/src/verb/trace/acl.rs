//! `millrace trace acl`: access control lists after ClassBench's seeds.

use clap::Args;
use millrace_traffic::generate::{Acl as List, AclShape};

use crate::failure::{DONE, Failure};
use crate::quantity::{bytes, grouped};
use crate::screen;

/// Make rules for a classifier, in ClassBench's form (docs/maps.md). The same options give the same bytes on every machine.
#[derive(Args)]
pub struct Acl {
    /// The file to write; - is standard output
    #[arg(short, long = "output", value_name = "FILE")]
    output: String,

    /// Rules to make
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    rules: u32,

    /// What they are like: acl (a provider's access control list), fw (a firewall), ipc (an IP chain)
    #[arg(long, value_name = "SEED", default_value = "acl")]
    like: AclShape,

    /// Classes, from 1 on; each rule has one of them
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..65_536))]
    classes: u32,

    /// What chance is drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print one JSON document: the specification, and what was written
    #[arg(long)]
    pub json: bool,
}

impl Acl {
    /// Makes it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        if self.json && self.output == "-" {
            return Err(
                Failure::wrong("--json and rules cannot both go to standard output")
                    .help("write the rules to a file"),
            );
        }
        let list = List {
            shape: self.like,
            rules: self.rules,
            classes: self.classes,
            seed: self.seed,
        };
        let text = list.text();
        if self.output == "-" {
            screen::out(text.trim_end());
            return Ok(DONE);
        }
        std::fs::write(&self.output, &text).map_err(|e| {
            Failure::wrong(format!("{}: {e}", self.output)).help("make room or choose another -o")
        })?;
        let said = format!(
            "written {}: {} rules, {}",
            self.output,
            grouped(u64::from(self.rules)),
            bytes(text.len() as u64)
        );
        screen::report(self.json, &said);
        if self.json {
            screen::document(
                &serde_json::json!({ "output": self.output, "bytes": text.len(), "spec": list }),
            );
        }
        Ok(DONE)
    }
}
