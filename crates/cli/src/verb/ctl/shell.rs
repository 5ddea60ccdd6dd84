//! `millrace ctl` without a command: lines of the same commands, and those of `millrace map`. At a terminal with
//! completion and a history; else lines are read as they come.

use std::io::{BufRead, IsTerminal, Read};

use clap::{Parser, Subcommand};
use millrace_control::client::request;

use crate::failure::{DONE, Failure, WRONG, code, report};
use crate::target::Target;
use crate::verb::map;

/// The longest line that is read, bytes.
const MOST_LINE: u64 = 1 << 20;

/// A line of the shell.
#[derive(Parser)]
#[command(name = "", no_binary_name = true, disable_help_flag = true)]
pub struct Line {
    #[command(subcommand)]
    what: Said,

    /// Print one JSON document
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Said {
    #[command(flatten)]
    Ctl(super::What),
    /// Look at and change maps
    Map {
        #[command(subcommand)]
        what: map::What,
    },
    /// Leave the shell; the run goes on
    Quit,
}

/// Reads lines until their end or `quit`. The exit status is that of the last line that failed.
pub fn run(target: &Target, json: bool) -> Result<u8, Failure> {
    // Whom one talks to is said first, and that nobody is there before anything is typed.
    let hello = target.connect()?.ask(request("hello"))?;
    let name = hello["name"].as_str().unwrap_or("run").to_owned();
    if std::io::stdin().is_terminal() {
        super::terminal::run(target, &name, json)
    } else {
        from_lines(target, json)
    }
}

/// Does what a line says; none when it says to leave.
pub fn said(text: &str, target: &Target, json: bool) -> Option<u8> {
    if text.trim().is_empty() || text.trim_start().starts_with('#') {
        return Some(DONE);
    }
    let words = match shell_words::split(text) {
        Ok(words) => words,
        Err(error) => {
            report(&Failure::wrong(error).help("close the quotes"), json);
            return Some(WRONG);
        }
    };
    let line = match Line::try_parse_from(words) {
        Ok(line) => line,
        Err(error) => {
            let help = !error.use_stderr();
            // Whether it can be shown is of no consequence.
            let _ = error.print();
            return Some(if help { DONE } else { WRONG });
        }
    };
    let json = json || line.json;
    let done = match &line.what {
        Said::Quit => return None,
        Said::Ctl(what) => what.perform(target, json),
        Said::Map { what } => target
            .connect()
            .and_then(|mut c| what.perform(&mut c, json)),
    };
    Some(done.unwrap_or_else(|failure| {
        report(&failure, json);
        code(&failure)
    }))
}

fn from_lines(target: &Target, json: bool) -> Result<u8, Failure> {
    let mut input = std::io::stdin().lock();
    let mut status = DONE;
    loop {
        let mut line = Vec::new();
        let read = (&mut input).take(MOST_LINE).read_until(b'\n', &mut line);
        let count = read.map_err(|e| Failure::wrong(format!("standard input: {e}")))?;
        if count == 0 {
            return Ok(status);
        }
        if count as u64 == MOST_LINE {
            return Err(Failure::wrong("a line of more than 1 MiB")
                .help("import entries from a file: map import NAME FILE"));
        }
        match said(&String::from_utf8_lossy(&line), target, json) {
            None => return Ok(status),
            Some(DONE) => {}
            Some(failed) => status = failed,
        }
    }
}
