//! The verbs, one file each.

mod bench;
mod build;
mod chain;
mod check;
mod cluster;
mod conform;
mod ctl;
mod doctor;
mod emit;
mod explain;
mod manual;
mod map;
mod model;
mod plan;
mod profile;
mod receive;
mod run;
mod sequence;
mod survey;
mod test;
mod top;
mod trace;
mod verify;

use clap::Subcommand;

use crate::failure::Failure;

/// Lists the verbs once: a module above, and a line here.
macro_rules! verbs {
    ($($verb:ident($type:path)),* $(,)?) => {
        /// What `millrace` can do.
        #[derive(Subcommand)]
        pub enum Verb {
            $(#[allow(missing_docs)] $verb(Box<$type>),)*
        }

        impl Verb {
            /// Whether standard output is for one JSON document.
            pub fn json(&self) -> bool {
                match self {
                    $(Self::$verb(verb) => verb.json(),)*
                }
            }

            /// Does it, and gives the exit status.
            pub fn perform(&self) -> Result<u8, Failure> {
                match self {
                    $(Self::$verb(verb) => verb.perform(),)*
                }
            }
        }
    };
}

verbs! {
    Check(check::Check),
    Run(run::Invoked),
    Test(test::Test),
    Bench(bench::Bench),
    Build(build::Build),
    Emit(emit::Emit),
    Model(model::Model),
    Plan(plan::Plan),
    Verify(verify::Verify),
    Profile(profile::Profile),
    Explain(explain::Explain),
    Chain(chain::Chain),
    Sequence(sequence::Sequence),
    Trace(trace::Trace),
    Map(map::Map),
    Ctl(ctl::Ctl),
    Cluster(cluster::Cluster),
    Receive(receive::Receive),
    Top(top::Top),
    Conform(conform::Conform),
    Doctor(doctor::Doctor),
    Manual(manual::Manual),
}
