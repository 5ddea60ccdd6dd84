//! Z3, as a process that is asked in SMT-LIB text over pipes.
//!
//! A process rather than the library: nothing to build or link, a crash or a hang is a question
//! unanswered, and what is asked can be kept as a file. The process lives on between questions, but
//! each has a scope of its own, so that no answer depends on the ones before.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use millrace_check::moment;

use super::far::{Lemma, Values};
use super::smt::{Query, query};
use super::{Question, Said, Solve};
use crate::expr::{Arena, ExprId};

/// How long the first of two attempts may take.
const QUICK: Duration = Duration::from_millis(100);

struct Running {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The solver `z3`, found in `PATH`.
pub struct Z3 {
    command: PathBuf,
    timeout: Duration,
    running: Option<Running>,
    missing: Option<String>,
}

impl Z3 {
    /// Asks `command`, and waits at most `timeout` for an answer.
    #[must_use]
    pub fn new(command: PathBuf, timeout: Duration) -> Self {
        Self {
            command,
            timeout,
            running: None,
            missing: None,
        }
    }

    fn start(&self) -> Result<Running, String> {
        let mut child = Command::new(&self.command)
            .args(["-smt2", "-in"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| {
                let name = self.command.display();
                format!("the solver {name} cannot be started: {e} (Debian: apt-get install z3)")
            })?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the solver has no pipes".to_owned());
        };
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { break };
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Running {
            child,
            input,
            lines,
        })
    }

    fn tell(&mut self, text: &str) -> Result<(), String> {
        if self.running.is_none() {
            self.running = Some(self.start()?);
        }
        let Some(running) = &mut self.running else {
            return Err("the solver is not running".to_owned());
        };
        let written = running.input.write_all(text.as_bytes());
        written.and_then(|()| running.input.flush()).map_err(|e| {
            self.running = None;
            format!("the solver ended: {e}")
        })
    }

    /// The next answer: as many lines as close its parentheses.
    fn hear(&mut self) -> Result<String, String> {
        // Z3 is asked to stop by itself; the rest is for one that does not.
        let patience = self.timeout + Duration::from_secs(2);
        let mut text = String::new();
        let mut open = 0_i64;
        loop {
            let line = self
                .running
                .as_ref()
                .map(|r| r.lines.recv_timeout(patience));
            let Some(Ok(line)) = line else {
                self.running = None;
                return Err("the solver did not answer".to_owned());
            };
            for c in line.chars() {
                open += i64::from(c == '(') - i64::from(c == ')');
            }
            text.push_str(&line);
            text.push(' ');
            if open <= 0 {
                return Ok(text);
            }
        }
    }

    fn ask(&mut self, arena: &Arena, all: &[ExprId], lemmas: &[Lemma]) -> Result<Said, String> {
        let q = query(arena, all, lemmas);
        // Most questions are small: a scope is ten times cheaper than a reset, and the solver of a reset
        // process with a known logic is better at the rest.
        let quick = QUICK.min(self.timeout).as_millis();
        self.tell(&format!(
            "(push)\n(set-option :timeout {quick})\n{}(check-sat)\n",
            q.text
        ))?;
        let first = match self.hear()?.trim() {
            "sat" => Some(self.values(&q)?),
            "unsat" => Some(Said::Fails(None)),
            _ => None,
        };
        self.tell("(pop)\n")?;
        if let Some(answer) = first {
            return Ok(answer);
        }
        let timeout = self.timeout.as_millis();
        self.tell(&format!(
            "(reset)\n(set-option :timeout {timeout})\n(set-logic QF_BV)\n{}(check-sat)\n",
            q.text
        ))?;
        let answer = match self.hear()?.trim() {
            "sat" => self.values(&q),
            "unsat" => Ok(Said::Fails(None)),
            "unknown" | "timeout" => Err(format!("the solver found nothing within {timeout} ms")),
            other => {
                self.running = None;
                let said: String = other.chars().take(200).collect();
                return Err(format!("the solver said: {said}"));
            }
        };
        self.tell("(reset)\n")?;
        answer
    }

    fn values(&mut self, q: &Query) -> Result<Said, String> {
        if q.leaves.is_empty() {
            return Ok(Said::Holds(Values::default()));
        }
        let terms: Vec<String> = q.leaves.iter().map(|e| format!("e{}", e.0)).collect();
        self.tell(&format!("(get-value ({}))\n", terms.join(" ")))?;
        Ok(Said::Holds(values(&self.hear()?)))
    }
}

/// `((e1 #x0f) (e2 #b1) …)`
fn values(text: &str) -> Values {
    let clean = text.replace(['(', ')'], " ");
    let words: Vec<&str> = clean.split_whitespace().collect();
    let number = |w: &str| match (w.strip_prefix("#x"), w.strip_prefix("#b")) {
        (Some(hex), _) => u64::from_str_radix(hex, 16).ok(),
        (_, Some(bits)) => u64::from_str_radix(bits, 2).ok(),
        _ => None,
    };
    let leaf = |w: &str| w.strip_prefix('e')?.parse().ok().map(ExprId);
    words
        .chunks(2)
        .filter_map(|w| match w {
            [name, value] => Some((leaf(name)?, number(value)?)),
            _ => None,
        })
        .collect()
}

impl Solve for Z3 {
    fn solve(&mut self, arena: &Arena, question: &Question<'_>) -> Said {
        if let Some(why) = &self.missing {
            return Said::Unknown(why.clone());
        }
        let began = Instant::now();
        let said = self.ask(arena, question.all, question.lemmas);
        moment::waited(began.elapsed());
        match said {
            Ok(answer) => answer,
            Err(why) => {
                if self.running.is_none() && why.contains("cannot be started") {
                    self.missing = Some(why.clone());
                }
                Said::Unknown(why)
            }
        }
    }
}
