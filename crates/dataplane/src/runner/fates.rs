//! The fate of each packet of a run over captures, a JSON line each, in ingress order.
//!
//! Where workers share state, `commit` and `number` give an order in which one worker could have run all packets to the
//! same results (`mr_shared` in fastpath/abi.h): a run is checked by replaying that order on one worker.

use std::io::Write;

use crate::account::Failure;
use crate::packet::{Fate, Outcome};

/// Writes fates as JSON lines.
pub struct FateWriter {
    name: String,
    output: Box<dyn Write + Send>,
    error: Option<std::io::Error>,
}

#[derive(serde::Serialize)]
struct Line<'a> {
    /// from 0, over all ports
    number: u64,
    port: u32,
    /// the stamp in the capture, ns
    stamp: u64,
    /// what the function is told, ns: the latest stamp so far, or where workers share state that of the packet's place in
    /// their order
    time: u64,
    worker: u32,
    /// 0 where workers share no state
    commit: u64,
    fate: &'static str,
    /// the port of what is forwarded
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<u32>,
    /// why it was dropped, where the function says so
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl FateWriter {
    /// Writes to `output`, which errors call `name`.
    #[must_use]
    pub fn new(name: &str, output: Box<dyn Write + Send>) -> Self {
        Self {
            name: name.to_owned(),
            output,
            error: None,
        }
    }

    /// Writes a packet's fate at `worker`, with the place in the order of packets and the time (ns) that it had; false
    /// once the output takes no more.
    pub fn write(
        &mut self,
        packet: &Outcome<'_>,
        worker: u32,
        (commit, time): (u64, u64),
        reasons: &[String],
    ) -> bool {
        let (fate, to, reason) = match packet.fate {
            Fate::Forwarded(port) => ("forwarded", Some(port), None),
            Fate::Flooded => ("flooded", None, None),
            Fate::Passed => ("passed", None, None),
            Fate::Consumed => ("consumed", None, None),
            Fate::Aborted => ("aborted", None, None),
            Fate::Dropped(reason) => ("dropped", None, reasons.get(reason as usize)),
        };
        let line = Line {
            number: packet.number,
            port: packet.port,
            stamp: packet.stamp,
            time,
            worker,
            commit,
            fate,
            to,
            reason: reason.map(String::as_str),
        };
        if self.error.is_none() {
            let written = serde_json::to_string(&line)
                .map_err(std::io::Error::from)
                .and_then(|text| writeln!(self.output, "{text}"));
            self.error = written.err();
        }
        self.error.is_none()
    }

    /// Completes it; what went wrong, if anything did.
    #[must_use]
    pub fn finish(mut self) -> Option<Failure> {
        let error = self.error.take().or_else(|| self.output.flush().err())?;
        Some(Failure {
            error: format!("{}: cannot be written: {error}", self.name),
            help: "make room or choose another --fates".into(),
        })
    }
}
