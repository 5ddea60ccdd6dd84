//! On interfaces, in the kernel.

use millrace::Function;
use millrace_dataplane::account::Account;

use super::{Run, Serving, records};
use crate::failure::Failure;
use crate::in_kernel;

impl Run {
    /// Runs a function in the kernel, on its interfaces.
    pub(super) fn by_kernel(
        &self,
        function: &Function,
        Serving { aside, notify }: Serving,
    ) -> Result<Account, Failure> {
        let flags = [
            (self.nfs.len() > 1, "several functions"),
            (
                !self.inputs.is_empty() || !self.outputs.is_empty(),
                "--in and --out",
            ),
            (self.split.is_some(), "--split"),
            (self.pass.is_some(), "--pass"),
            (self.routes.is_some(), "--routes"),
            (
                self.cores > 1 || !self.cpus.is_empty(),
                "--cores and --cpus",
            ),
            (self.packets.is_some(), "--packets"),
            (self.sanitize, "--sanitize"),
        ];
        let run = in_kernel::Asked {
            function,
            ports: &self.ports,
            given: flags
                .iter()
                .find(|(given, _)| *given)
                .map(|(_, flag)| *flag),
            capacity: &self.capacity,
            outside: &self.outside,
            records: self.records.as_deref().map(records).transpose()?,
            metrics: self.metrics,
            time: self.seconds,
        };
        in_kernel::run(run, aside, notify)
    }
}
