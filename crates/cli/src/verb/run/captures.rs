//! From captures to captures.

use millrace_dataplane::Parallel;
use millrace_dataplane::account::Account;
use millrace_dataplane::module::Entry;
use millrace_dataplane::port::InputOptions;
use millrace_dataplane::signal;

use super::patience::Patience;
use super::{Run, fates, no_state, records};
use crate::failure::Failure;
use crate::function::Function;
use crate::parallel::Arrangement;
use crate::progress::Bar;
use crate::wiring::{self, Words};

impl Run {
    /// Runs a function from captures to captures.
    pub(super) fn between_ports(
        &self,
        function: &Function,
        routes: Vec<Entry>,
        arrangement: Option<&Arrangement>,
    ) -> Result<Account, Failure> {
        let words = Words {
            inputs: &self.inputs,
            outputs: &self.outputs,
            split: self.split.as_ref(),
            pass: self.pass.as_deref(),
        };
        signal::install();
        let ports = wiring::port_names(&function.ports, &words)?;
        let options = InputOptions {
            loops: self.rounds(),
            stop: signal::flag(),
        };
        let sources = wiring::sources(&words, &ports, &options)?;
        let (sinks, pass) = wiring::sinks(&words, &ports)?;
        let mut opened = self.outside.open(&function.exposed, &[], self.cores)?;
        opened.entries.extend(routes);
        let mut config = self.config(0, function, std::mem::take(&mut opened.entries));
        config.homes = arrangement.and_then(Arrangement::homes);
        let run = millrace_dataplane::Run {
            module: function.module.clone(),
            config,
            program: function.entry,
            prefetch: !self.no_prefetch,
            sources,
            ports,
            sinks,
            pass,
            records: self.records.as_deref().map(records).transpose()?,
            fates: self.fates.as_deref().map(fates).transpose()?,
            reasons: function.reasons.clone(),
            burst: self.burst,
            layout: self.layout(),
            packets: self.packets,
            time: self.seconds,
            objects_bytes: function.objects_bytes,
            mailbox: opened.mailboxes.first().cloned(),
            at_end: opened.at_end.take(),
        };
        let _patience = Patience::begin(self.json);
        let mut bar = Bar::new();
        let mut show = |progress| bar.show(progress);
        let account = match arrangement {
            None => millrace_dataplane::run(run, signal::flag(), &mut show),
            Some(arrangement) => {
                arrangement.allow_contents(&function.exposed, &run.config.entries, self.cores)?;
                let parallel = Parallel {
                    owners: arrangement.owners(run.ports.len(), self.cores)?,
                    shares: arrangement.shares(function),
                    apart: arrangement.placement.apart,
                    workers: self.cores,
                    cpus: self.cpus.clone(),
                    mailboxes: opened.mailboxes.clone(),
                    run,
                };
                millrace_dataplane::run_parallel(parallel, signal::flag(), &mut show)
            }
        };
        bar.end();
        opened.close(account.map_err(no_state))
    }
}
