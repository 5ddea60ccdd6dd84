//! Millrace as a library: from the name of a network function to the account of its packets.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//!
//! use millrace::{Asked, Make, Ports};
//!
//! static STOP: AtomicBool = AtomicBool::new(false);
//!
//! # fn main() -> Result<(), millrace::Error> {
//! let make = Make::default();
//! let found = millrace::find("nfs/firewall")?; //                           where is it?
//! let written = found.read(&make)?; //                                      what is written?
//! let proved = written.check(make.begin())?; //                             is it safe?
//! let asked = Asked { cores: 2, ..Asked::default() };
//! let within = (millrace::model::SECONDS, make.begin());
//! let mut model = proved.model_for(asked.purpose(), within, &mut || {}); // what can it do?
//! let arranged = proved.arrange(&mut model, &asked)?.several(2)?; //        how does it run on two workers?
//! let function = found.load(&arranged.divided(&make), &mut |_| {})?; //     the code
//! let ports = Ports {
//!     inputs: vec!["captures/talk.pcap".into()],
//!     outputs: vec!["out.pcap".into()],
//!     split: Some("lan=10.0.0.0/24,fd00::/8".parse().map_err(millrace::Error::wrong)?),
//!     ..Ports::default()
//! };
//! let account = millrace::run(&function, &ports, &STOP)?; //                what happened?
//! assert_eq!(account.read, account.forwarded + account.dropped);
//! # Ok(())
//! # }
//! ```
//!
//! Each line gives one value, which the crates below own and this crate passes on; docs/library.md explains them, and
//! `examples/` has three programs. Nothing here prints, ends the process, or keeps anything between two calls but the
//! cache of compiled modules in the user's folder. Compiling a source needs clang.

pub mod balancer;
mod begun;
mod budget;
pub mod bundle;
pub mod click;
pub mod cluster;
pub mod cost;
mod error;
mod find;
mod function;
mod groups;
mod hints;
mod job;
mod linked;
pub mod packet_test;
mod parts;
pub mod place;
mod ports;
pub mod replicas;
pub mod rotation;
mod row;
mod rules;
mod seed;
mod served;
mod verdicts;
mod verify;
mod written;

pub use begun::Begun;
pub use budget::{Budgets, bytes};
pub use error::{Error, Kind, Refused};
pub use find::{Found, Member, Source, find};
pub use function::{Function, Make, objects_bytes};
pub use job::{Job, Opened, Seen, run};
pub use parts::{Apart, Parts};
pub use place::{Answer, Arrangement, Asked};
pub use ports::Ports;
pub use row::AsRow;
pub use seed::keys as secret_keys;
pub use served::{LENT, Served};
pub use verify::Comparison;
pub use written::{Proved, Types, Written, models};

// What passes through.
pub use millrace_check::Budget;
pub use millrace_dataplane::{self as dataplane, Account};
pub use millrace_emit::Stage;
pub use millrace_model as model;
pub use millrace_object as object;
pub use millrace_place::{Held, Placement, Strategy, Treatment};
pub use millrace_plan as plan;
pub use millrace_steer as steer;
pub use millrace_traffic as traffic;
pub use millrace_verify::{Findings, Schedule, Trace};
