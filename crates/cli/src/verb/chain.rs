//! `millrace chain`: traffic classes of a Click configuration, and the function that it becomes.

use std::path::PathBuf;

use clap::Args;
use millrace_synth::{Synthesis, classes, emit};
use serde_json::json;

use crate::failure::{DONE, Failure};
use crate::screen;

/// Show the traffic classes of a Click configuration: which packets are treated alike, what is written, where they leave.
/// `check`, `model`, `plan`, `run` and `verify` take the file as a function.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 done, 2 the configuration is wrong or cannot be synthesised.")]
pub struct Chain {
    /// The configuration (.click)
    file: PathBuf,

    /// Print the function's C instead
    #[arg(long, conflicts_with = "json")]
    emit_c: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Chain {
    /// Whether standard output is for one JSON document.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Does it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        let synthesis = millrace::click::read(&self.file, false)?;
        if self.emit_c {
            screen::out(emit::c(&synthesis).trim_end());
            return Ok(DONE);
        }
        let classes = classes::classes(&synthesis);
        let (_, paths) = classes::paths(&synthesis, synthesis.root, 0);
        let nodes = synthesis.store.reachable(synthesis.root).len();
        if self.json {
            screen::document(&json!({
                "name": synthesis.name,
                "elements": synthesis.router.graph().elements.len(),
                "ports": synthesis.ports,
                "nodes": nodes,
                "paths": paths,
                "classes": classes,
            }));
            return Ok(DONE);
        }
        screen::out(text(&synthesis, &classes, nodes, paths).trim_end());
        Ok(DONE)
    }
}

fn text(of: &Synthesis, classes: &[classes::Class], nodes: usize, paths: u64) -> String {
    let mut text = format!(
        "{}: {} elements become {} traffic classes ({nodes} nodes, {paths} paths)\nports: {}\n",
        of.name,
        of.router.graph().elements.len(),
        classes.len(),
        of.ports.join(", ")
    );
    for class in classes {
        let what = match &class.device {
            Some(device) => format!("{} to {device}", class.verdict),
            None => format!("{} by {}", class.verdict, class.element),
        };
        let place = match class.line {
            0 => String::new(),
            line => format!("  ({}:{line})", class.file),
        };
        text.push_str(&format!("\n{what}{place}\n"));
        for write in &class.writes {
            text.push_str(&format!("    write {write}\n"));
        }
        for packets in &class.packets {
            text.push_str(&format!("    {packets}\n"));
        }
        if class.more > 0 {
            text.push_str(&format!("    … and {} more\n", class.more));
        }
    }
    text
}
