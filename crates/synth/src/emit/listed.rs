//! Questions to lists of rules as C: a classifier for each list.

use std::fmt::Write as _;

use super::{Emitter, Known, choice, condition};
use crate::action::Value;
use crate::field::{Base, Var};

impl Emitter<'_> {
    /// The answer of a list.
    pub(super) fn ask(&mut self, answer: Var, known: Known, depth: usize) -> String {
        let of = self.of;
        let Some((question, list)) = of.actions.lists.of(answer) else {
            return "0".into();
        };
        self.lists.insert(question.list);
        let mut words = Vec::with_capacity(question.words.len());
        for (field, word) in list.fields.iter().zip(&question.words) {
            let value = match *word {
                Value::Constant(number) => condition::number(*field, number),
                Value::Field(var, 0) => self.read(var, known, depth),
                Value::Field(var, more) => {
                    let value = self.read(var, known, depth);
                    format!("({value}) + {more} & {:#x}", var.most())
                }
            };
            words.push(format!(".{} = {value}", condition::name(*field)));
        }
        format!(
            "classify(&rules_{0}, &(struct words_of_{0}){{ {1} }})",
            question.list,
            words.join(", ")
        )
    }

    /// Declares the classifiers of lists that are asked.
    pub(super) fn lists_declared(&self) -> String {
        let mut text = String::new();
        for number in &self.lists {
            let Some(list) = self.of.actions.lists.list(*number) else {
                continue;
            };
            let element = self.of.router.graph().elements.get(list.element);
            let title = element.map_or_else(String::new, |e| e.title());
            let title = title.replace("*/", "");
            let _ = write!(
                text,
                "\n/* Words by which {title} tells packets apart, host order. */\nstruct words_of_{number} {{\n"
            );
            for field in &list.fields {
                let _ = writeln!(text, "\t__u32 {};", condition::name(*field));
            }
            let _ = writeln!(
                text,
                "}};\n\nCLASSIFIER(rules_{number}, struct words_of_{number}, .classes = {});",
                list.rules.classes().max(2)
            );
        }
        text
    }

    /// Their rules.
    pub(super) fn lists_data(&self) -> String {
        let mut text = String::new();
        for number in &self.lists {
            if let Some(list) = self.of.actions.lists.list(*number) {
                let bytes = list.rules.to_bytes();
                text.push_str(&choice::data(&format!("rules_{number}"), &bytes));
            }
        }
        text
    }

    /// The last byte of the transport header that a branch reads.
    pub(super) fn reads_upper(&self, var: Var) -> u32 {
        let end = |var: Var| match var {
            Var::Bits(Base::Upper(_), ..) => var.end(),
            _ => 0,
        };
        match self.of.actions.lists.of(var) {
            None => end(var),
            Some((question, _)) => {
                let words = question.words.iter().map(|word| match *word {
                    Value::Field(var, _) => end(var),
                    Value::Constant(_) => 0,
                });
                words.max().unwrap_or(0)
            }
        }
    }
}
