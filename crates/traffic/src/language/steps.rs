//! Going through a case: rounds, the clock, and what stands on each line.

use super::case::{Action, Block, Case, Step};
use super::error::{Error, Fault};
use super::lex;
use super::statement::{Line, expectation};

/// The steps of a case.
#[derive(Debug)]
pub struct Steps<'a> {
    case: &'a Case,
    outline: bool,
    block: usize,
    line: usize,
    round: u64,
    now_ns: u64,
    last_packet_ns: u64,
    ended: bool,
}

impl Iterator for Steps<'_> {
    type Item = Result<Step, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let Some(block) = self.case.blocks.get(self.block) else {
                break;
            };
            let Some((number, text)) = block.lines.get(self.line) else {
                self.next_round(block);
                continue;
            };
            self.line += 1;
            let round = block.rounds.map(|_| self.round);
            match self.step(block, *number, text, round) {
                Ok(None) => {}
                Ok(Some(action)) => {
                    return Some(Ok(Step {
                        line: *number,
                        round,
                        time_ns: self.now_ns,
                        action,
                    }));
                }
                Err((line, fault)) => {
                    self.ended = true;
                    return Some(Err(fault.at(&self.case.file, line, round)));
                }
            }
        }
        None
    }
}

impl<'a> Steps<'a> {
    /// `outline`: only the first and the last round of each `repeat`.
    pub(super) fn new(case: &'a Case, outline: bool) -> Self {
        Self {
            case,
            outline,
            block: 0,
            line: 0,
            round: 0,
            now_ns: 0,
            last_packet_ns: 0,
            ended: false,
        }
    }

    fn next_round(&mut self, block: &Block) {
        self.line = 0;
        let rounds = block.rounds.unwrap_or(1);
        // An empty body would go round without giving a step.
        self.round = if block.lines.is_empty() || self.round + 1 >= rounds {
            self.block += 1;
            0
        } else if self.outline {
            rounds - 1
        } else {
            self.round + 1
        };
    }

    fn step(
        &mut self,
        block: &Block,
        number: usize,
        text: &str,
        round: Option<u64>,
    ) -> Result<Option<Action>, (usize, Fault)> {
        let here = |fault| (number, fault);
        let words = lex::words(text, round).map_err(here)?;
        let line = Line::new(&words, text);
        match line.word(0) {
            "at" | "after" => {
                self.clock(&line).map_err(here)?;
                Ok(None)
            }
            "state" => {
                let (object, count) = line.count().map_err(here)?;
                Ok(Some(Action::State { object, count }))
            }
            "map" => {
                let (object, key, value) = line.entry().map_err(here)?;
                Ok(Some(Action::Map { object, key, value }))
            }
            "records" => {
                let (object, count) = line.count().map_err(here)?;
                Ok(Some(Action::Records { object, count }))
            }
            "->" => Err(here(Fault::new(
                line.column(0),
                "an arrow without a packet above it",
            ))),
            _ => {
                let (port, bytes) = line.packet(0).map_err(here)?;
                self.last_packet_ns = self.now_ns;
                let expectation = match block.lines.get(self.line) {
                    Some((number, text)) => {
                        expectation(*number, text, round).map_err(|fault| (*number, fault))?
                    }
                    None => None,
                };
                if expectation.is_some() {
                    self.line += 1;
                }
                Ok(Some(Action::Packet {
                    port,
                    bytes,
                    expectation,
                }))
            }
        }
    }

    fn clock(&mut self, line: &Line<'_>) -> Result<(), Fault> {
        let time = line.time(1)?;
        line.nothing_after(2)?;
        let since = if line.word(0) == "at" {
            0
        } else {
            self.last_packet_ns
        };
        let time = since.checked_add(time).ok_or_else(|| {
            Fault::new(
                line.column(1),
                "the clock goes up to 584 years and no further",
            )
        })?;
        if time < self.now_ns {
            let message = format!(
                "the clock cannot go back: it stands at {} ns already",
                self.now_ns
            );
            return Err(Fault::new(line.column(1), message));
        }
        self.now_ns = time;
        Ok(())
    }
}
