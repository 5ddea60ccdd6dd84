//! `--check`: the model against executions of its program.

use millrace_traffic::capture::Reader;
use millrace_validate::{Options, text, uncompared, validate};

use super::Model;
use crate::failure::{DONE, Failure, NO};
use crate::{budget, function, screen};

/// Most frames of a capture.
const FRAMES: usize = 1000;

impl Model {
    /// Frames of the captures, the first of each.
    fn frames(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let mut frames = Vec::new();
        for path in &self.input {
            let wrong = |e| Failure::wrong(format!("{}: {e}", path.display()));
            let mut reader = Reader::open(path).map_err(wrong)?;
            for _ in 0..FRAMES {
                match reader.next().map_err(wrong)? {
                    Some(record) => frames.push(record.data.to_vec()),
                    None => break,
                }
            }
        }
        Ok(frames)
    }

    /// Prints what came of it; exit status 1 if something is not as the model says.
    pub(super) fn check(&self) -> Result<u8, Failure> {
        let function = function::load(&self.nf, &self.make()?)?;
        let budget = budget::begin();
        let proved = function.check(budget)?;
        let model = proved.model(&self.limits(budget)?);
        if let Some(o) = uncompared(proved.program, &model) {
            return Err(Failure::wrong(format!(
                "`{}`, {}, is not compared: --check is for state in tables, arrays and allocators without timers, and for \
                 records of rings that no packet asks how full they are; `millrace verify` and `millrace run --sanitize` execute any function",
                o.name, o.kind.name
            )));
        }
        let options = Options {
            most: None,
            packets: self.packets,
            seed: self.seed,
            frames: self.frames()?,
            ..Options::default()
        };
        let findings = validate(proved.program, &model, &function.module, &options);
        if self.json {
            screen::document(&findings);
        } else {
            screen::out(text(&findings).trim_end());
        }
        Ok(if findings.agree() { DONE } else { NO })
    }
}
