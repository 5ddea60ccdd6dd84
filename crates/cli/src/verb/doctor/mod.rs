//! `millrace doctor`: what this machine can do, what it lacks, and the command that fixes it.

mod checks;
mod guests;

use clap::Args;
use serde::Serialize;

use self::checks::System;
use crate::failure::{DONE, Failure, NO};
use crate::screen;

/// Say what this machine can do, what it lacks, and the command that fixes it
#[derive(Args)]
pub struct Doctor {
    /// Print the findings as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// How it stands with something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// it is there
    Ok,
    /// something optional does not work, or works less well
    Limited,
    /// nothing can be run without it
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// what was looked at
    pub name: &'static str,
    /// how it stands
    pub state: State,
    /// what was found
    pub found: String,
    /// what it is for
    pub serves: &'static str,
    /// the command that fixes it, or what to do; none when nothing needs to be done or can be
    pub remedy: Option<String>,
}

#[derive(Serialize)]
struct Document {
    ready: bool,
    findings: Vec<Finding>,
}

impl Doctor {
    /// Looks, and gives the exit status: 1 when functions cannot be built and run.
    pub fn perform(&self) -> Result<u8, Failure> {
        let findings = checks::all(&System::here());
        let ready = findings.iter().all(|f| f.state != State::Missing);
        screen::report(self.json, &text(&findings, ready));
        if self.json {
            screen::document(&Document { ready, findings });
        }
        Ok(if ready { DONE } else { NO })
    }
}

fn text(findings: &[Finding], ready: bool) -> String {
    let mut lines = Vec::new();
    for finding in findings {
        let state = match finding.state {
            State::Ok => "ok",
            State::Limited => "limited",
            State::Missing => "MISSING",
        };
        lines.push(format!("{:<16} {state:<8} {}", finding.name, finding.found));
        if finding.state != State::Ok {
            lines.push(format!("{:25} for {}", "", finding.serves));
        }
        if let Some(remedy) = &finding.remedy {
            lines.push(format!("{:25} {remedy}", ""));
        }
    }
    lines.push(String::new());
    lines.push(
        if ready {
            "functions can be built and run here"
        } else {
            "functions cannot be built here; the lines marked MISSING say how to fix it"
        }
        .to_owned(),
    );
    lines.join("\n")
}
