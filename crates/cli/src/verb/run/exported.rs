//! `--sample` and `--export`: flow records of some packets.

use std::sync::Arc;

use millrace_control::Trouble;
use millrace_dataplane::mailbox::{Desk, Mailbox};
use millrace_dataplane::module::Instance;
use millrace_dataplane::worker::watch::{Observer, Purpose, Sight};
use millrace_explain::{Decider, live};
use millrace_export::flows::Timeouts;
use millrace_export::{Collector, Exporter, Lines, Sampler, Setting};

use super::Run;
use crate::failure::Failure;

/// One packet of so many, `1/N`.
pub fn sample(text: &str) -> Result<u32, String> {
    let parts = text.split_once('/');
    let every = parts.filter(|(one, _)| *one == "1");
    let every = every.and_then(|(_, n)| n.parse().ok().filter(|n| *n > 0));
    every.ok_or_else(|| "one packet of so many, as in 1/1000".into())
}

/// Where records go.
pub fn collector(text: &str) -> Result<Collector, String> {
    text.parse()
        .map_err(|t: millrace_export::Trouble| format!("{t}: {}", t.help))
}

/// The functions of a run as what tells lines.
struct Known(Decider);

impl Lines for Known {
    fn line(&mut self, element: u64, state: &mut Instance, packet: &Sight<'_>) -> Option<Arc<str>> {
        self.0.line(element, state, packet)
    }
}

/// Has a worker watch from its first packet on. Before there is one, it asks again.
fn watch(mailbox: &Arc<Mailbox>, observer: Box<dyn Observer>) {
    let again = mailbox.clone();
    mailbox.post(Box::new(move |desk: &mut Desk<'_>| {
        match desk.watchable() {
            true => {
                desk.watch(Purpose::Sample, Some(observer));
            }
            false => watch(&again, observer),
        };
    }));
}

impl Run {
    /// Begins to export, where that is asked for: samples of these workers. `live`: packets wait in ports.
    pub(super) fn export(
        &self,
        ports: &[String],
        functions: impl FnOnce() -> Result<Vec<live::Function>, Trouble>,
        mailboxes: &[Arc<Mailbox>],
        live: bool,
    ) -> Result<Option<Exporter>, Failure> {
        let (Some(every), Some(collector)) = (self.sample, &self.export) else {
            return Ok(None);
        };
        let setting = Setting {
            every,
            collector: collector.clone(),
            timeouts: Timeouts::default(),
        };
        let begun = Exporter::begin(&setting, ports, mailboxes.len());
        let (exporter, feeds) =
            begun.map_err(|t| Failure::wrong(format!("--export: {t}")).help(t.help))?;
        let functions = functions().map_err(|t| {
            Failure::wrong(format!("--sample: {}", t.what)).help(t.help.unwrap_or_default())
        })?;
        let name = functions.first().map_or("", |f| &f.name).to_owned();
        let functions = Arc::new(functions);
        for (mailbox, feed) in mailboxes.iter().zip(feeds) {
            let lines = Box::new(Known(Decider::new(&functions)));
            watch(
                mailbox,
                Box::new(Sampler::new(every, &name, feed, lines, live)),
            );
        }
        Ok(Some(exporter))
    }
}
