//! The `millrace` command: one word, then a verb, one file a verb.
//!
//! Exit status: 0 done, 1 the answer is no (a program is unsafe, a test failed), 2 wrong use or an
//! input or output that failed, 3 a run that was stopped within a packet. With `--json` a verb prints one JSON document on standard output and
//! nothing else there; what is meant for people goes to standard error then.

mod account;
mod budget;
mod failure;
mod function;
mod in_kernel;
mod log;
mod metrics;
mod notify;
mod outside;
mod progress;
mod quantity;
mod refusal;
mod routing;
mod sanitize;
mod screen;
mod steer;
mod strategy;
mod target;
mod verb;

use std::process::ExitCode;

use clap::Parser;

/// Writes network functions once, runs them natively.
#[derive(Parser)]
#[command(
    name = "millrace",
    version,
    arg_required_else_help = true,
    propagate_version = true
)]
struct Millrace {
    #[command(subcommand)]
    verb: verb::Verb,

    #[command(flatten)]
    budget: budget::Switches,
}

fn main() -> ExitCode {
    let command = Millrace::parse();
    command.budget.apply();
    millrace_check::budget::give_back_by(millrace_dataplane::memory::give_back);
    let json = command.verb.json();
    match command.verb.perform() {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            failure::report(&failure, json);
            ExitCode::from(failure::code(&failure))
        }
    }
}
