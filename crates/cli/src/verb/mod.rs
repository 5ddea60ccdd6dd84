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

/// Lists the verbs once: a module above, and a line here. In brackets is what says that standard output is for one JSON
/// document, of verbs that can print one.
macro_rules! verbs {
    ($($verb:ident($type:path) $([$($json:tt)+])?),* $(,)?) => {
        /// What `millrace` can do.
        #[derive(Subcommand)]
        pub enum Verb {
            $(#[allow(missing_docs)] $verb(Box<$type>),)*
        }

        impl Verb {
            /// Whether standard output is for one JSON document.
            pub fn json(&self) -> bool {
                match self {
                    $(Self::$verb(_verb) => false $(|| _verb.$($json)+)?,)*
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
    Check(check::Check) [json],
    Run(run::Invoked) [json()],
    Test(test::Test) [json],
    Bench(bench::Bench) [json],
    Build(build::Build) [json],
    Emit(emit::Emit) [json],
    Model(model::Model) [json],
    Plan(plan::Plan) [json],
    Verify(verify::Verify) [json],
    Profile(profile::Profile) [json],
    Explain(explain::Explain) [json],
    Chain(chain::Chain) [json],
    Sequence(sequence::Sequence) [json],
    Trace(trace::Trace) [json()],
    Map(map::Map) [json],
    Ctl(ctl::Ctl) [json],
    Cluster(cluster::Cluster) [json],
    Receive(receive::Receive) [json],
    Top(top::Top) [json],
    Conform(conform::Conform),
    Doctor(doctor::Doctor) [json],
    Manual(manual::Manual),
}
