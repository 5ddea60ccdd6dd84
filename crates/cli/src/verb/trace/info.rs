//! `millrace trace info`: what a capture is like.

use clap::Args;
use millrace_traffic::capture::Reader;
use millrace_traffic::info::{DEFAULT_FLOW_LIMIT, Describer};

use crate::failure::{DONE, Failure, WRONG};
use crate::progress::{Bar, SHOW};
use crate::screen;

/// Describe a capture: packets, flows, sizes, bursts, protocols, wrong checksums.
#[derive(Args)]
pub struct Info {
    /// The capture; - is standard input
    capture: String,

    /// Flows that are told apart, some 18 bytes each
    #[arg(long, value_name = "N", default_value_t = DEFAULT_FLOW_LIMIT)]
    flow_limit: usize,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

impl Info {
    /// Describes it, and gives the exit status. A damaged capture is described up to the damage.
    pub fn perform(&self) -> Result<u8, Failure> {
        let failed = |e: millrace_traffic::capture::Error| {
            Failure::wrong(e).help("give a capture (pcap or pcapng) that can be read")
        };
        let mut reader = Reader::open(&self.capture).map_err(failed)?;
        let mut describer = Describer::new(self.flow_limit);
        let (mut bar, mut read) = (Bar::new(), 0_u64);
        // A pipe has no length.
        let bytes = std::fs::metadata(&self.capture)
            .ok()
            .filter(|m| m.is_file())
            .map(|m| m.len());
        let damage = loop {
            if read.is_multiple_of(SHOW) {
                let share = bytes.map(|all| reader.position() as f64 / all.max(1) as f64);
                bar.show(read, share);
            }
            match reader.next() {
                Ok(Some(record)) => {
                    describer.add(&record);
                    read += 1;
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        bar.end();
        let description = describer.finish();
        screen::report(self.json, description.to_string().trim_end());
        if self.json {
            screen::document(&description);
        }
        let Some(damage) = damage else {
            return Ok(DONE);
        };
        screen::err(&format!(
            "error: {damage}\nhelp: what comes before it is described above"
        ));
        Ok(WRONG)
    }
}
