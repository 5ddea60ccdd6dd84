//! Rules of classifiers: a table that the host has made, handed to emitted code by its address.
//!
//! All workers walk one table. Each holds a reference to it and lets go of it when it has attached another one, between two of
//! its bursts; so the old one is freed once every worker has passed (what RCU calls a grace period).

use std::sync::Arc;

use millrace_classify::{Budget, Classifier, Rules};
use millrace_state::{Content, Piece, What};

use super::control::control;
use super::instance::errno;
use super::{Instance, ModuleError};

/// Bytes of rules in one piece of a saved content: the most that one may have.
const PIECE: usize = 4096;

impl Instance {
    /// Puts rules in force from the next burst on, in place of those before, which are given back; none: every key has
    /// class 0.
    ///
    /// # Errors
    /// [`ModuleError::Control`] when the object takes no rules, or these are of another key or of more classes.
    pub fn set_rules(
        &mut self,
        index: usize,
        rules: Option<Arc<Classifier>>,
    ) -> Result<Option<Arc<Classifier>>, ModuleError> {
        let (info, object) = self.object(index, "set rules")?;
        let Some(attach) = object.attach.filter(|_| object.shared == 0) else {
            return Err(control(info, "set rules", "it takes none".into()));
        };
        let blocks = rules.as_ref().map(|r| r.table().blocks());
        let table = blocks.map_or(std::ptr::null(), |b| b.as_ptr());
        // SAFETY: a control function of this module on its own created instance. The table is null, or blocks of 64 bytes
        // at that alignment, as `Table` lays them out, which nothing changes and `self.rules` keeps as long as it is
        // attached; `destroy` does not look at it.
        match unsafe { attach(self.memory.as_ptr(), table.cast()) } {
            0 => {}
            e if e == -libc::EINVAL => {
                return Err(control(
                    info,
                    "set rules",
                    "they are of another key, or of more classes".into(),
                ));
            }
            e => return Err(control(info, "set rules", errno(e))),
        }
        Ok(match rules {
            Some(rules) => self.rules.insert(index, rules),
            None => self.rules.remove(&index),
        })
    }

    /// The rules in force; none where none were set.
    #[must_use]
    pub fn rules(&self, index: usize) -> Option<&Arc<Classifier>> {
        self.rules.get(&index)
    }

    /// All rules as a content: none is a head and an end.
    pub(super) fn save_rules(&self, index: usize) -> Content {
        let mut content = Content::default();
        content.push(&Piece::new(What::Head));
        if let Some(rules) = self.rules(index) {
            let bytes = rules.rules().to_bytes();
            for (place, part) in (0..).step_by(PIECE).zip(bytes.chunks(PIECE)) {
                content.push(&Piece {
                    place,
                    length: part.len() as u64,
                    value: part,
                    ..Piece::new(What::Bytes)
                });
            }
        }
        content.push(&Piece::new(What::End));
        content
    }

    /// Makes rules of a content and puts them in force; how many there are.
    pub(super) fn load_rules(
        &mut self,
        index: usize,
        content: &Content,
    ) -> Result<u64, ModuleError> {
        let (info, _) = self.object(index, "load")?;
        let (info, form) = (info.clone(), super::saved::form(info));
        let failed = |what: String| control(&info, "load", what);
        let mut bytes = Vec::new();
        for piece in content.pieces(form) {
            let piece = piece.map_err(|e| failed(e.to_string()))?;
            match piece.what {
                What::Head | What::End => {}
                What::Bytes if piece.place == bytes.len() as u64 => bytes.extend(piece.value),
                _ => return Err(failed("a classifier has no such piece".into())),
            }
        }
        if bytes.is_empty() {
            self.set_rules(index, None)?;
            return Ok(0);
        }
        let rules = Rules::from_bytes(&bytes).map_err(|e| failed(e.to_string()))?;
        let count = rules.len() as u64;
        let made = Classifier::build(rules, &Budget::default());
        self.set_rules(index, Some(Arc::new(made)))?;
        Ok(count)
    }
}
